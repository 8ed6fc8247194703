// The small files around a tokenizer in a Hugging Face folder, which say the same things in several ways over
// the years: tokenizer_config.json (special tokens as text or as {"content": ...}; chat_template as text or
// as a list of
// {"name", "template"}), special_tokens_map.json (only older folders need it), chat_template.jinja (which
// wins).
#ifndef INLAID_SDK_FORMATS_TOKENIZER_CONFIG_H_
#define INLAID_SDK_FORMATS_TOKENIZER_CONFIG_H_

#include <string>

#include "sdk/base/json.h"

namespace inlaid::formats {

// `config` with every special token as plain text, and those that only `special_tokens_map` names added.
Json normal_tokenizer_config(Json config, const Json& special_tokens_map);
// The template that `config` carries: its text, or of a list the one named "default" (else the only one); ""
// for none.
std::string chat_template_of(const Json& config);
// `config` for a folder whose template lies in chat_template.jinja: no template of its own, so that there is
// one truth, except further named ones in a list.
Json without_chat_template(Json config, const std::string& chat_template);

}  // namespace inlaid::formats

#endif  // INLAID_SDK_FORMATS_TOKENIZER_CONFIG_H_

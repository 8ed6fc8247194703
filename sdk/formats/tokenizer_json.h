// Writes a tokenizer.json from its parts. Vocabularies have up to some 300,000 entries, so the model is text
// that is built by hand; the small parts around it are Json. Key order is that of the library tokenizers.
// Tested through the tokenizers that are made of it: gguf_tokenizer_test.cc, tokenizer_ids_test.cc.
#ifndef INLAID_SDK_FORMATS_TOKENIZER_JSON_H_
#define INLAID_SDK_FORMATS_TOKENIZER_JSON_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sdk/base/json.h"

namespace inlaid::formats {

struct AddedToken {
  size_t id;
  std::string content;
  bool special;
};

struct TokenizerParts {
  std::vector<AddedToken> added;  // in order of id
  Json normalizer, pre_tokenizer, post_processor, decoder;
  std::string model;
};
std::string tokenizer_json_text(const TokenizerParts& parts);

// JSON text of token number `id`; kDataLoss naming `what` when it is not UTF-8.
std::string quoted_token(std::string_view token, size_t id, std::string_view what);

struct SpecialToken {
  std::string text;
  int64_t id;
};
// A post-processor that puts one token before and one behind each text; null when there is neither.
// `pair_once`: in front of the first of two texts only, as BERT does.
Json surrounding_tokens(const std::optional<SpecialToken>& before, const std::optional<SpecialToken>& behind,
                        bool pair_once = false);

// Parts of which normalizers, pre-tokenizers and decoders are made.
Json replace_text(const char* text, const char* by);
Json replace_regex(const char* regex, const char* by);
Json split_at(const Json& pattern, const char* behavior);
Json metaspace(const char* prepend_scheme, bool split);
// {"type": "Sequence", KEY: parts}; the only part itself, or null for none.
Json sequence_of(const char* key, std::vector<Json> parts);
// `kSpace` becomes a space, runs of byte tokens become text, and one space at the start of all goes away.
Json piece_decoder(bool byte_fallback, bool strip_first_space);

// U+2581, which stands for a space in SentencePiece vocabularies.
inline constexpr const char* kSpace = "\u2581";

}  // namespace inlaid::formats

#endif  // INLAID_SDK_FORMATS_TOKENIZER_JSON_H_

// The byte-level pre-tokenizers that GGUF names by a word (`tokenizer.ggml.pre`) and tokenizer.json spells
// out. Import writes the structure of the word; export recognises the word by the structure. A wrong word
// gives ids that are subtly wrong, so one that is not in this table is refused by name, in both directions.
//
// Some 90 words stand for some 35 ways to split: a list of regular expressions, each of which isolates its
// matches in what the ones before it left. Every word that llama.cpp knows is here or is refused with a
// reason.
//
// A word does not tell about normalisation. As in llama.cpp there is none, but for `qwen2`, whose models are
// known to begin with NFC. Where llama.cpp rewrote an expression for its own engine (no case-insensitive
// groups, no subclasses of letters) the one of the models' own tokenizer.json stands here.
//
// Sources: llama.cpp src/llama-vocab.cpp (words, expressions, and in comments the models' own), transformers
// (Llama 3, Qwen 2 and 3.5, Tekken, GPT-4o). Tests: pre_tokenizers_test.cc (ids of tokenizers and llama.cpp).
#ifndef INLAID_SDK_FORMATS_PRE_TOKENIZERS_H_
#define INLAID_SDK_FORMATS_PRE_TOKENIZERS_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sdk/base/json.h"

namespace inlaid::formats {

struct PreTokenizer {
  std::string name;  // tokenizer.ggml.pre
  Json normalizer;   // null when there is none
  Json pre_tokenizer;
  bool ignore_merges = false;
  bool adds_bos = false;  // when tokenizer.ggml.add_bos_token is absent
};

// By GGUF name; nothing for an unknown one.
std::optional<PreTokenizer> pre_tokenizer_named(std::string_view name);
// Why a name that llama.cpp knows is not supported; "" for any other name.
std::string pre_tokenizer_refusal(std::string_view name);
// By the parts of a tokenizer.json; nothing when no known one splits the same way. Of several names for the
// same the first of the table.
std::optional<PreTokenizer> pre_tokenizer_like(const Json& normalizer, const Json& pre_tokenizer,
                                               bool ignore_merges);
// "gpt-2, smollm, ...", for messages; all of them.
std::string pre_tokenizer_names();
std::vector<std::string_view> pre_tokenizer_list();

}  // namespace inlaid::formats

#endif  // INLAID_SDK_FORMATS_PRE_TOKENIZERS_H_

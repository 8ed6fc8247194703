// The byte-level pre-tokenizers that GGUF names by a word (`tokenizer.ggml.pre`) and tokenizer.json spells
// out. Import writes the structure of the word; export recognises the word by the structure. A wrong word
// gives ids that are subtly wrong, so one that is not in this table is refused by name, in both directions.
//
//   gpt-2      GPT-2's pattern
//   smollm     every number character by itself, then GPT-2's pattern
//   default    what llama.cpp falls back to: punctuation, GPT-2's pattern, runs of numbers, groups of three
//   ASCII digits llama-bpe  Llama 3's pattern; a whole word of the vocabulary wins over its merges; a BOS is
//   the custom qwen2      Qwen2's pattern after NFC
// Sources: llama.cpp src/llama-vocab.cpp (names and patterns), the models' own tokenizer.json.
#ifndef INLAID_SDK_FORMATS_PRE_TOKENIZERS_H_
#define INLAID_SDK_FORMATS_PRE_TOKENIZERS_H_

#include <optional>
#include <string>
#include <string_view>

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
// By the parts of a tokenizer.json; nothing when no known one splits the same way.
std::optional<PreTokenizer> pre_tokenizer_like(const Json& normalizer, const Json& pre_tokenizer,
                                               bool ignore_merges);
// "gpt-2, smollm, ...", for messages.
std::string pre_tokenizer_names();

}  // namespace inlaid::formats

#endif  // INLAID_SDK_FORMATS_PRE_TOKENIZERS_H_

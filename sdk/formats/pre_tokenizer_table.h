// The rows behind pre_tokenizers.h.
#ifndef INLAID_SDK_FORMATS_PRE_TOKENIZER_TABLE_H_
#define INLAID_SDK_FORMATS_PRE_TOKENIZER_TABLE_H_

#include <span>
#include <string_view>

namespace inlaid::formats {

struct PreTokenizerRow {
  std::string_view names;  // separated by spaces, the main one first
  // Expressions in order. "digits": every number character by itself; "gpt2": GPT-2's pattern, as the library
  // tokenizers has both built in.
  std::span<const std::string_view> splits;
  bool ignore_merges = false;
  bool adds_bos = false;
  bool nfc = false;
};
std::span<const PreTokenizerRow> pre_tokenizer_rows();

struct RefusedPreTokenizer {
  std::string_view names, reason;
};
std::span<const RefusedPreTokenizer> refused_pre_tokenizers();

}  // namespace inlaid::formats

#endif  // INLAID_SDK_FORMATS_PRE_TOKENIZER_TABLE_H_

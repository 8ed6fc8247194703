// All tokens of a tokenizer.json by id, from model.vocab (an object for BPE and WordPiece, a list for
// Unigram) and added_tokens.
#ifndef INLAID_SDK_FORMATS_JSON_VOCABULARY_H_
#define INLAID_SDK_FORMATS_JSON_VOCABULARY_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sdk/base/json.h"

namespace inlaid::formats {

struct JsonVocabulary {
  enum class Kind {
    kModel,
    kSpecial,
    kAdded
  };  // in the model only; added and special; added and not special
  std::vector<std::optional<std::string>> tokens;  // [largest id + 1]
  std::vector<Kind> kinds;
  std::vector<double> scores;  // of Unigram; else 0
};
// kInvalidArgument naming `what` for ids that are given twice, are none, are over 16,777,215, or leave most ids without a token.
JsonVocabulary json_vocabulary(const Json& tokenizer, std::string_view what);

}  // namespace inlaid::formats

#endif  // INLAID_SDK_FORMATS_JSON_VOCABULARY_H_

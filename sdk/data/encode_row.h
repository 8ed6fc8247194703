// One row from text to a sample: parse, read its format, render, tokenise, mask, truncate, check. A pure
// function of its arguments, so rows run on any thread in any order. Tests: encode_row_test.cc.
#ifndef INLAID_SDK_DATA_ENCODE_ROW_H_
#define INLAID_SDK_DATA_ENCODE_ROW_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sdk/data/conversation.h"
#include "sdk/data/dataset.h"

namespace inlaid::data {

enum class LossOn { kAssistant, kLastAssistant, kCompletion, kAll };
enum class Truncation { kError, kRight, kLeft, kDrop };

// DatasetOptions, checked and resolved against the tokenizer; shared by all rows.
struct RowEncoder {
  // kInvalidArgument for an option that has no meaning, naming its key.
  RowEncoder(const DatasetOptions& options, const text::Tokenizer& tokenizer,
             const text::ChatTemplate* chat_template);

  const text::Tokenizer& tokenizer;
  const text::ChatTemplate* chat_template;  // may be null: then only texts can be encoded
  LossOn loss_on;
  Truncation truncation;
  int64_t max_length;
  std::vector<std::string> eos_candidates;
  Json template_variables;
  std::optional<int32_t> eos;     // id of eos_candidates[0]: ends texts and completions
  std::vector<int32_t> stop_ids;  // ids of all eos_candidates that the vocabulary has
  std::optional<int32_t> bos;     // what the tokenizer itself puts in front of a text
};

struct EncodedRow {
  std::vector<int32_t> tokens, targets;
  bool truncated = false;
  bool chat = false;         // the sample came from a chat template
  bool trains_stop = false;  // a stop token is among the targets
  int64_t target_tokens = 0;
  int64_t boundary_tokens = 0;  // see loss_mask.h
  std::string dropped;          // why the row is left out under truncation = drop
  std::vector<std::string> unused_columns;
};

// Encodes one row: a JSON object, or a document when `plain_text`. kInvalidArgument with a reason that fits
// behind "FILE: row N: " for a bad row. Under kUnknown format every row is bad.
EncodedRow encode_row(const RowEncoder& encoder, Format format, bool plain_text, std::string_view row,
                      const Json& renames);

}  // namespace inlaid::data

#endif  // INLAID_SDK_DATA_ENCODE_ROW_H_

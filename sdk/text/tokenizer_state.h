// What a Tokenizer holds. Shared by tokenizer.cc and decode_stream.cc only.
#ifndef INLAID_SDK_TEXT_TOKENIZER_STATE_H_
#define INLAID_SDK_TEXT_TOKENIZER_STATE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "sdk/text/rust/inlaid_text.h"
#include "sdk/text/tokenizer.h"

namespace inlaid::text {

struct Tokenizer::State {
  enum class Kind : uint8_t { kHole, kOrdinary, kSpecial };
  // How the decoder may be used on a growing sequence, see inlaid_text_tokenizer_streaming.
  enum class Streaming : int32_t { kWholeOnly = 0, kSteps = 1, kStepsOutsideBytes = 2 };

  ~State();
  bool has(int32_t id) const;
  void check_id(int32_t id) const;  // kInvalidArgument unless has(id)

  inlaid_text_tokenizer* handle = nullptr;
  std::string what;
  std::string json;
  std::vector<Kind> kinds;  // [largest id + 1]
  Streaming streaming = Streaming::kWholeOnly;
};

}  // namespace inlaid::text

#endif  // INLAID_SDK_TEXT_TOKENIZER_STATE_H_

// Picking a token from logits.
#ifndef INLAID_SDK_TRAIN_SAMPLING_H_
#define INLAID_SDK_TRAIN_SAMPLING_H_

#include <cstdint>
#include <span>

namespace inlaid::train {

struct Sampling {
  double temperature = 0;  // 0 = greedy: the first largest logit
  int64_t top_k = 0;       // 0 = all
  double top_p = 1.0;      // smallest set of most likely tokens whose probabilities reach top_p
};

// A pure function of its arguments: the random number is Philox(seed, position). Temperature first, then top-k, then top-p, as
// transformers orders its warpers. kOutOfRange if every logit is NaN or minus infinity.
int32_t sample(std::span<const float> logits, const Sampling& sampling, uint64_t seed, uint64_t position);

}  // namespace inlaid::train

#endif  // INLAID_SDK_TRAIN_SAMPLING_H_

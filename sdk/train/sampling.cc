#include "sdk/train/sampling.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "sdk/base/error.h"
#include "sdk/tensor/random.h"

namespace inlaid::train {

int32_t sample(std::span<const float> logits, const Sampling& sampling, uint64_t seed, uint64_t position) {
  // Larger logit first; among equals the smaller id; NaN last.
  const auto before = [&](int32_t a, int32_t b) {
    const float x = logits[static_cast<size_t>(a)], y = logits[static_cast<size_t>(b)];
    if (std::isnan(x) || std::isnan(y)) return !std::isnan(x) || (std::isnan(y) && a < b);
    return x != y ? x > y : a < b;
  };
  std::vector<int32_t> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  const int32_t best = *std::min_element(ids.begin(), ids.end(), before);
  const float largest = logits[static_cast<size_t>(best)];
  if (!std::isfinite(largest)) fail(Code::kOutOfRange, "the model's logits are not finite");
  if (sampling.temperature == 0) return best;

  size_t count = ids.size();
  if (sampling.top_k > 0) count = std::min(count, static_cast<size_t>(sampling.top_k));
  std::partial_sort(ids.begin(), ids.begin() + static_cast<int64_t>(count), ids.end(), before);
  std::vector<double> weight(count);
  double total = 0;
  for (size_t i = 0; i < count; ++i) {
    const double z = (static_cast<double>(logits[static_cast<size_t>(ids[i])]) - static_cast<double>(largest));
    weight[i] = std::isnan(z) ? 0.0 : std::exp(z / sampling.temperature);
    total += weight[i];
  }
  if (sampling.top_p < 1.0) {
    double sum = 0;
    size_t kept = 0;
    while (kept < count && sum < sampling.top_p * total) sum += weight[kept++];
    count = std::max<size_t>(kept, 1);
    total = std::accumulate(weight.begin(), weight.begin() + static_cast<int64_t>(count), 0.0);
  }
  float unit = 0;
  fill_uniform(random_key(seed, "sampling") + position, 0.0, 1.0, {&unit, 1});
  double rest = static_cast<double>(unit) * total;
  for (size_t i = 0; i < count; ++i) {
    rest -= weight[i];
    if (rest < 0) return ids[i];
  }
  return ids[count - 1];
}

}  // namespace inlaid::train

#include "kernels/storage/encode_q4_k.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/storage/half.h"
#include "kernels/storage/six_bits.h"
#include "kernels/storage/super_block.h"

namespace inlaid::kernels {
namespace {

constexpr int kTop = 15;  // the largest step
constexpr int kTries = 21;

// One number for each of the eight groups, which go through the same operations side by side.
using Lanes = float[kGroups];

int nearest(float x) {
  const auto bits = std::bit_cast<int32_t>(x + 12582912.0f);  // 1.5 * 2^23
  return (bits & 0x7fffff) - 0x400000;
}
int step_of(float x) {
  const int q = nearest(x);
  return q < 0 ? 0 : q > kTop ? kTop : q;
}

// The fit of each group, as it gets better.
struct Fit {
  Lanes x[kGroup], weight[kGroup];  // [value][group]
  Lanes smallest, largest;          // values; smallest at most 0
  Lanes sum_w, sum_x;               // of weights, and of weights times values

  Lanes scale, minimum, error;  // x is about scale * q + minimum
  Lanes step[kGroup];           // q

  explicit Fit(const float* values);
  void take_range();
  void improve(float steps);
};

Fit::Fit(const float* values) {
  Lanes squares{};
  for (int j = 0; j < kGroup; ++j) {
    for (int g = 0; g < kGroups; ++g) {
      x[j][g] = values[g * kGroup + j];
      squares[g] += x[j][g] * x[j][g];
    }
  }
  for (int g = 0; g < kGroups; ++g) squares[g] = std::sqrt(squares[g] / kGroup);
  for (int g = 0; g < kGroups; ++g) smallest[g] = largest[g] = x[0][g];
  for (int j = 0; j < kGroup; ++j) {
    for (int g = 0; g < kGroups; ++g) {
      weight[j][g] = squares[g] + std::fabs(x[j][g]);
      const float wx = weight[j][g] * x[j][g];
      sum_w[g] = j == 0 ? weight[j][g] : sum_w[g] + weight[j][g];
      sum_x[g] = j == 0 ? wx : sum_x[g] + wx;
      smallest[g] = x[j][g] < smallest[g] ? x[j][g] : smallest[g];
      largest[g] = x[j][g] > largest[g] ? x[j][g] : largest[g];
    }
  }
  for (int g = 0; g < kGroups; ++g) {
    if (smallest[g] > 0) smallest[g] = 0;
  }
  take_range();
}

// The first fit: fifteen steps from the smallest to the largest value.
void Fit::take_range() {
  Lanes inverse;
  for (int g = 0; g < kGroups; ++g) {
    minimum[g] = smallest[g];
    inverse[g] = kTop / (largest[g] - minimum[g]);
    scale[g] = 1 / inverse[g];
    error[g] = 0;
  }
  for (int j = 0; j < kGroup; ++j) {
    for (int g = 0; g < kGroups; ++g) {
      step[j][g] = static_cast<float>(step_of(inverse[g] * (x[j][g] - minimum[g])));
      const float off = scale[g] * step[j][g] + minimum[g] - x[j][g];
      error[g] += weight[j][g] * (off * off);
    }
  }
}

// `steps` steps from the minimum of the best fit so far to the largest value, and the best line through them.
void Fit::improve(float steps) {
  Lanes inverse, tried[kGroup], sum_q{}, sum_qq{}, sum_qx{};
  for (int g = 0; g < kGroups; ++g) inverse[g] = steps / (largest[g] - minimum[g]);
  for (int j = 0; j < kGroup; ++j) {
    for (int g = 0; g < kGroups; ++g) {
      const float q = static_cast<float>(step_of(inverse[g] * (x[j][g] - minimum[g])));
      const float wq = weight[j][g] * q;
      tried[j][g] = q;
      sum_q[g] += wq;
      sum_qq[g] += wq * q;
      sum_qx[g] += wq * x[j][g];
    }
  }
  Lanes slope, floor, off{};
  bool solved[kGroups];
  for (int g = 0; g < kGroups; ++g) {
    const float determinant = sum_w[g] * sum_qq[g] - sum_q[g] * sum_q[g];
    solved[g] = determinant > 0;
    slope[g] = (sum_w[g] * sum_qx[g] - sum_x[g] * sum_q[g]) / determinant;
    floor[g] = (sum_qq[g] * sum_x[g] - sum_q[g] * sum_qx[g]) / determinant;
    if (floor[g] > 0) {
      floor[g] = 0;
      slope[g] = sum_qx[g] / sum_qq[g];
    }
  }
  for (int j = 0; j < kGroup; ++j) {
    for (int g = 0; g < kGroups; ++g) {
      const float miss = slope[g] * tried[j][g] + floor[g] - x[j][g];
      off[g] += weight[j][g] * (miss * miss);
    }
  }
  for (int g = 0; g < kGroups; ++g) {
    if (!solved[g] || !(off[g] < error[g])) continue;
    error[g] = off[g];
    scale[g] = slope[g];
    minimum[g] = floor[g];
    for (int j = 0; j < kGroup; ++j) step[j][g] = tried[j][g];
  }
}

// value as a multiple of largest / 63; ggml takes the low eight bits first.
uint8_t six_bits(float inverse, float value) {
  const auto q = static_cast<uint8_t>(nearest(inverse * value));
  return q < 63 ? q : 63;
}

void pack(const uint8_t (&scales)[kGroups], const uint8_t (&minima)[kGroups], uint8_t* out) {
  for (int g = 0; g < 4; ++g) {
    out[g] = static_cast<uint8_t>(scales[g] | scales[g + 4] >> 4 << 6);
    out[g + 4] = static_cast<uint8_t>(minima[g] | minima[g + 4] >> 4 << 6);
    out[g + 8] = static_cast<uint8_t>((scales[g + 4] & 15) | (minima[g + 4] & 15) << 4);
  }
}

void store_half(uint8_t* out, float x) {
  const uint16_t h = f32_to_f16(x);
  std::memcpy(out, &h, sizeof h);
}
float half_at(const uint8_t* p) {
  uint16_t h;
  std::memcpy(&h, p, sizeof h);
  return f16_to_f32(h);
}

}  // namespace

void encode_q4_k(const float* x, uint8_t* block) {
  for (int i = 0; i < kSuperBlock; ++i) {
    if (std::isfinite(x[i])) continue;
    std::memset(block, 0, Q4K::kBytes);
    store_half(block + Q4K::kScale, std::numeric_limits<float>::quiet_NaN());
    return;
  }
  Fit fit(x);
  for (int i = 0; i < kTries; ++i) fit.improve(-1.0f + 0.1f * static_cast<float>(i) + kTop);

  float largest_scale = 0, largest_minimum = 0;
  for (int g = 0; g < kGroups; ++g) {
    if (fit.largest[g] == fit.smallest[g]) {  // all values alike: no steps, only a minimum
      fit.scale[g] = 0;
      fit.minimum[g] = fit.smallest[g];
      for (int j = 0; j < kGroup; ++j) fit.step[j][g] = 0;
    }
    fit.minimum[g] = -fit.minimum[g];
    if (fit.scale[g] > largest_scale) largest_scale = fit.scale[g];
    if (fit.minimum[g] > largest_minimum) largest_minimum = fit.minimum[g];
  }
  const float inverse_scale = largest_scale > 0 ? 63.0f / largest_scale : 0.0f;
  const float inverse_minimum = largest_minimum > 0 ? 63.0f / largest_minimum : 0.0f;
  uint8_t scales[kGroups], minima[kGroups];
  for (int g = 0; g < kGroups; ++g) {
    scales[g] = six_bits(inverse_scale, fit.scale[g]);
    minima[g] = six_bits(inverse_minimum, fit.minimum[g]);
  }
  store_half(block + Q4K::kScale, largest_scale / 63.0f);
  store_half(block + Q4K::kMinimum, largest_minimum / 63.0f);
  pack(scales, minima, block + Q4K::kScales);

  // The steps of the rounded scales; a group whose scale became 0 keeps those of its fit.
  uint8_t steps[kSuperBlock];
  for (int g = 0; g < kGroups; ++g) {
    const float scale = half_at(block + Q4K::kScale) * static_cast<float>(scales[g]);
    const float minimum = half_at(block + Q4K::kMinimum) * static_cast<float>(minima[g]);
    for (int j = 0; j < kGroup; ++j) {
      const int q = scale != 0 ? step_of((fit.x[j][g] + minimum) / scale) : static_cast<int>(fit.step[j][g]);
      steps[g * kGroup + j] = static_cast<uint8_t>(q);
    }
  }
  for (int run = 0; run < kGroups / 2; ++run) {
    for (int j = 0; j < kGroup; ++j) {
      const uint8_t* low = steps + run * 2 * kGroup + j;
      block[Q4K::kLow + run * kGroup + j] = static_cast<uint8_t>(low[0] | low[kGroup] << 4);
    }
  }
}

}  // namespace inlaid::kernels

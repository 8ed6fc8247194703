// Rotary position embedding (arXiv 2104.09864) with half-split pairs: feature i of a head turns with feature
// i + D/2 by the angle position * inv_freq[i]. The table is made once per micro-batch and used by every
// layer, forward and backward.
//
// Numerics: the angle is computed in f64, since position * frequency loses up to log2(position) bits in f32.
// Turning is one product and one fused multiply-add per element. Tested by rotary_test.cc.
#include <cmath>

#include "kernels/level.h"
#include "kernels/plane.h"

namespace inlaid::kernels::INLAID_LEVEL {

void rotary_table(const Context& context, const RotaryTableArgs& args) {
  const Plane cosine = plane(args.cos), sine = plane(args.sin);
  const int32_t* positions = static_cast<const int32_t*>(args.positions.data);
  const double* inv_freq = static_cast<const double*>(args.inv_freq.data);
  constexpr int64_t kRows = 16;
  parallel(*context.executor, ceil_div(cosine.rows, kRows), [&](int64_t task, int32_t) {
    const int64_t end = smaller((task + 1) * kRows, cosine.rows);
    for (int64_t t = task * kRows; t < end; ++t) {
      for (int64_t i = 0; i < cosine.columns; ++i) {
        const double angle = positions[t] * inv_freq[i];
        cosine.data[t * cosine.stride + i] = static_cast<float>(args.scale * std::cos(angle));
        sine.data[t * sine.stride + i] = static_cast<float>(args.scale * std::sin(angle));
      }
    }
  });
}

void rotary(const Context& context, const RotaryArgs& args) {
  const Plane x = plane(args.x), cosine = plane(args.cos), sine = plane(args.sin);
  const int64_t half = cosine.columns;
  for_rows(context, x, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const float* ct = cosine.data + t * cosine.stride;
      const float* st = sine.data + t * sine.stride;
      for (int64_t h = 0; h < args.heads; ++h) {
        float* low = x.data + t * x.stride + h * 2 * half;
        float* high = low + half;
        along(0, half, [&](int64_t i, auto lanes) {
          const V a = load_lanes(low + i, lanes), b = load_lanes(high + i, lanes),
                  c = load_lanes(ct + i, lanes);
          V s = load_lanes(st + i, lanes);
          if (args.inverse) s = -s;
          store_lanes(low + i, fma(b, -s, a * c), lanes);
          store_lanes(high + i, fma(a, s, b * c), lanes);
        });
      }
    }
  });
}

}  // namespace inlaid::kernels::INLAID_LEVEL

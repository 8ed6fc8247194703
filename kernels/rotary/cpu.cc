// Rotary position embedding (arXiv 2104.09864) with half-split pairs: feature i of a head turns with feature
// i + R/2 by the angle position * frequency, for the first R features of a head. The table is made once per
// micro-batch and used by every layer, forward and backward.
//
// Two kinds of scaling choose the frequencies by the length of a text. The length is that of the row's own
// document: what else is packed into the same rows changes nothing.
//
// Numerics: the angle is computed in f64, since position * frequency loses up to log2(position) bits in f32.
// Turning is one product and one fused multiply-add per element. Tested by rotary_test.cc.
#include <cmath>

#include "kernels/level.h"
#include "kernels/plane.h"

namespace inlaid::kernels::INLAID_LEVEL {

namespace {

// Frequency i of a row, by the length of its document.
class Frequencies {
 public:
  explicit Frequencies(const RotaryTableArgs& args)
      : args_(args),
        lengths_(static_cast<const int32_t*>(args.lengths.data)),
        base_(static_cast<const double*>(args.inv_freq.data)),
        long_(static_cast<const double*>(args.long_inv_freq.data)),
        exponent_(-2.0 / static_cast<double>(2 * args.cos.shape[1] - 2)) {}

  void choose(int64_t row) {
    row_ = base_;
    growth_ = 1;
    if (lengths_ == nullptr || lengths_[row] <= args_.long_after) return;
    if (long_ != nullptr) {
      row_ = long_;
    } else {
      growth_ = args_.ntk_factor * lengths_[row] / static_cast<double>(args_.long_after) - args_.ntk_factor + 1;
    }
  }
  double operator[](int64_t i) const {
    return growth_ == 1 ? row_[i] : row_[i] * std::pow(growth_, exponent_ * static_cast<double>(i));
  }

 private:
  const RotaryTableArgs& args_;
  const int32_t* lengths_;
  const double *base_, *long_, *row_ = nullptr;
  double exponent_, growth_ = 1;
};

}  // namespace

void rotary_table(const Context& context, const RotaryTableArgs& args) {
  const Plane cosine = plane(args.cos), sine = plane(args.sin);
  const int32_t* positions = static_cast<const int32_t*>(args.positions.data);
  constexpr int64_t kRows = 16;
  parallel(*context.executor, ceil_div(cosine.rows, kRows), [&](int64_t task, int32_t) {
    const int64_t end = smaller((task + 1) * kRows, cosine.rows);
    Frequencies frequency(args);
    for (int64_t t = task * kRows; t < end; ++t) {
      frequency.choose(t);
      for (int64_t i = 0; i < cosine.columns; ++i) {
        const double angle = positions[t] * frequency[i];
        cosine.data[t * cosine.stride + i] = static_cast<float>(args.scale * std::cos(angle));
        sine.data[t * sine.stride + i] = static_cast<float>(args.scale * std::sin(angle));
      }
    }
  });
}

void rotary(const Context& context, const RotaryArgs& args) {
  const Plane x = plane(args.x), cosine = plane(args.cos), sine = plane(args.sin);
  const int64_t half = cosine.columns, size = x.columns / args.heads;
  for_rows(context, x, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const float* ct = cosine.data + t * cosine.stride;
      const float* st = sine.data + t * sine.stride;
      for (int64_t h = 0; h < args.heads; ++h) {
        float* low = x.data + t * x.stride + h * size;
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

#include "kernels/reference.h"

#include <cmath>

#include "kernels/level.h"

namespace inlaid::kernels::reference {

void cross_entropy(const Context&, const CrossEntropyArgs& args) {
  with_type(args.logits.dtype, [&]<typename T>(T) {
    const auto logits = rows<T>(args.logits);
    const int32_t* targets = args.targets.as<int32_t>();
    T* loss = args.loss.as<T>();
    for (int64_t r = 0; r < logits.rows; ++r) {
      T* x = logits[r];
      const double cap = args.soft_cap;
      for (int64_t c = 0; cap != 0 && c < logits.columns; ++c) x[c] = static_cast<T>(cap * std::tanh(x[c] / cap));
      int64_t best = 0;
      for (int64_t c = 1; c < logits.columns; ++c) {
        if (x[c] > x[best]) best = c;
      }
      const double largest = x[best];
      double sum = 0;
      for (int64_t c = 0; c < logits.columns; ++c) sum += std::exp(x[c] - largest);
      loss[r] = static_cast<T>(largest + std::log(sum) - x[targets[r]]);
      if (args.correct) args.correct.as<int32_t>()[r] = best == targets[r] ? 1 : 0;
      if (!args.gradient) continue;
      const double scale = args.gradient_scale * (args.row_scale ? static_cast<double>(args.row_scale.as<T>()[r]) : 1.0);
      for (int64_t c = 0; c < logits.columns; ++c) {
        const double p = std::exp(x[c] - largest) / sum;
        const double inner = cap == 0 ? 1 : 1 - (x[c] / cap) * (x[c] / cap);
        x[c] = static_cast<T>(scale * (p - (c == targets[r] ? 1 : 0)) * inner);
      }
    }
  });
}

void soft_cap(const Context&, const SoftCapArgs& args) {
  with_type(args.x.dtype, [&]<typename T>(T) {
    const auto x = rows<T>(args.x);
    for (int64_t r = 0; r < x.rows; ++r) {
      for (int64_t c = 0; c < x.columns; ++c) x[r][c] = static_cast<T>(args.cap * std::tanh(x[r][c] / args.cap));
    }
  });
}

void soft_cap_backward(const Context&, const SoftCapBackwardArgs& args) {
  with_type(args.x.dtype, [&]<typename T>(T) {
    const auto x = rows<T>(args.x), dy = rows<T>(args.dy);
    for (int64_t r = 0; r < x.rows; ++r) {
      for (int64_t c = 0; c < x.columns; ++c) {
        const double t = std::tanh(x[r][c] / args.cap);
        x[r][c] = static_cast<T>(dy[r][c] * (1 - t * t));
      }
    }
  });
}

}  // namespace inlaid::kernels::reference

#include "kernels/reference.h"

#include <cmath>

#include "kernels/level.h"

namespace inlaid::kernels::reference {
namespace {

template <typename Args>
double factor_at(const Args& args, int64_t column) {
  return weight_at(args.weight, 0, column) + args.weight_offset;
}

}  // namespace

void rms_norm_forward(const Context&, const RmsNormForwardArgs& args) {
  with_type(args.x.dtype, [&]<typename T>(T) {
    const auto x = rows<T>(args.x), y = rows<T>(args.y);
    T* rstd = args.rstd.as<T>();
    for (int64_t t = 0; t < x.rows; ++t) {
      double sum = 0;
      for (int64_t c = 0; c < x.columns; ++c) sum += double{x[t][c]} * x[t][c];
      const double r = 1 / std::sqrt(sum / static_cast<double>(x.columns) + args.eps);
      for (int64_t c = 0; c < x.columns; ++c)
        y[t][c] = static_cast<T>(x[t][c] * r * factor_at(args, c));
      rstd[t] = static_cast<T>(r);
    }
  });
}

void rms_norm_backward_input(const Context&, const RmsNormBackwardInputArgs& args) {
  with_type(args.x.dtype, [&]<typename T>(T) {
    const auto x = rows<T>(args.x), dy = rows<T>(args.dy), dx = rows<T>(args.dx);
    const T* rstd = args.rstd.as<T>();
    for (int64_t t = 0; t < x.rows; ++t) {
      const double r = rstd[t];
      double dot = 0;
      for (int64_t c = 0; c < x.columns; ++c)
        dot += double{dy[t][c]} * factor_at(args, c) * x[t][c];
      const double shift = r * r * dot / static_cast<double>(x.columns);
      for (int64_t c = 0; c < x.columns; ++c) {
        const double g = r * (dy[t][c] * factor_at(args, c) - x[t][c] * shift);
        dx[t][c] = static_cast<T>(args.accumulate ? dx[t][c] + g : g);
      }
    }
  });
}

void rms_norm_backward_weight(const Context&, const RmsNormBackwardWeightArgs& args) {
  with_type(args.x.dtype, [&]<typename T>(T) {
    const auto x = rows<T>(args.x), dy = rows<T>(args.dy);
    const T* rstd = args.rstd.as<T>();
    T* dweight = args.dweight.as<T>();
    for (int64_t c = 0; c < x.columns; ++c) {
      double sum = 0;
      for (int64_t t = 0; t < x.rows; ++t) sum += double{dy[t][c]} * x[t][c] * rstd[t];
      dweight[c] = static_cast<T>(dweight[c] + sum);
    }
  });
}

}  // namespace inlaid::kernels::reference

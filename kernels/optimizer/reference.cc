#include "kernels/reference.h"

#include <cmath>

#include "kernels/level.h"

namespace inlaid::kernels::reference {

size_t sum_squares_workspace(const SumSquaresArgs&, int32_t) {
  return 0;
}

void sum_squares(const Context&, const SumSquaresArgs& args) {
  with_type(args.x.dtype, [&]<typename T>(T) {
    const auto x = rows<T>(args.x);
    double sum = 0;
    for (int64_t i = 0; i < x.columns; ++i) sum += double{x[0][i]} * x[0][i];
    args.out.as<double>()[0] = sum;
  });
}

void adamw(const Context&, const AdamWArgs& args) {
  with_type(args.parameter.dtype, [&]<typename T>(T) {
    const auto parameter = rows<T>(args.parameter), gradient = rows<T>(args.gradient);
    const auto first = rows<T>(args.m), second = rows<T>(args.v);
    const double step = static_cast<double>(args.step);
    const double correction1 = 1 - std::pow(args.beta1, step), correction2 = 1 - std::pow(args.beta2, step);
    for (int64_t i = 0; i < parameter.columns; ++i) {
      const double g = args.grad_scale * gradient[0][i];
      const double m = args.beta1 * first[0][i] + (1 - args.beta1) * g;
      const double v = args.beta2 * second[0][i] + (1 - args.beta2) * g * g;
      const double p = parameter[0][i];
      const double update = args.lr * (m / correction1) / (std::sqrt(v / correction2) + args.eps);
      parameter[0][i] = static_cast<T>(p * (1 - args.lr * args.weight_decay) - update);
      first[0][i] = static_cast<T>(m);
      second[0][i] = static_cast<T>(v);
      gradient[0][i] = 0;
    }
  });
}

}  // namespace inlaid::kernels::reference

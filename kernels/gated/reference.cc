#include "kernels/reference.h"

#include <cmath>

#include "kernels/level.h"

namespace inlaid::kernels::reference {
namespace {

struct Value {
  double act, derivative;
};

Value activate(Activation kind, double x) {
  switch (kind) {
    case Activation::silu: {
      const double s = 1 / (1 + std::exp(-x));
      return {x * s, s * (1 + x * (1 - s))};
    }
    case Activation::gelu: {
      const double cumulative = 0.5 * std::erfc(-x * 0.70710678118654752440);
      return {x * cumulative, cumulative + x * std::exp(-0.5 * x * x) * 0.39894228040143267794};
    }
    case Activation::gelu_tanh: {
      const double a = 0.79788456080286535588, b = 0.044715;  // sqrt(2 / pi)
      const double th = std::tanh(a * (x + b * x * x * x));
      return {0.5 * x * (1 + th), 0.5 * (1 + th) + 0.5 * x * (1 - th * th) * a * (1 + 3 * b * x * x)};
    }
    case Activation::relu:
      break;
  }
  // NaN fails the comparison with 0 and so stays NaN.
  return {x <= 0 ? 0 : x, x <= 0 ? 0.0 : 1.0};
}

}  // namespace

void gated_forward(const Context&, const GatedForwardArgs& args) {
  with_type(args.gate.dtype, [&]<typename T>(T) {
    const auto gate = rows<T>(args.gate), up = rows<T>(args.up), y = rows<T>(args.y);
    for (int64_t t = 0; t < gate.rows; ++t) {
      for (int64_t c = 0; c < gate.columns; ++c) {
        y[t][c] = static_cast<T>(activate(args.activation, gate[t][c]).act * up[t][c]);
      }
    }
  });
}

void gated_backward(const Context&, const GatedBackwardArgs& args) {
  with_type(args.gate.dtype, [&]<typename T>(T) {
    const auto gate = rows<T>(args.gate), up = rows<T>(args.up), dy = rows<T>(args.dy);
    const auto dgate = rows<T>(args.dgate), dup = rows<T>(args.dup);
    for (int64_t t = 0; t < gate.rows; ++t) {
      for (int64_t c = 0; c < gate.columns; ++c) {
        const Value value = activate(args.activation, gate[t][c]);
        const double u = up[t][c], d = dy[t][c];
        dgate[t][c] = static_cast<T>(d * u * value.derivative);
        dup[t][c] = static_cast<T>(d * value.act);
      }
    }
  });
}

}  // namespace inlaid::kernels::reference

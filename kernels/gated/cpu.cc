// Gated activations of a feed-forward block: y = act(gate) * up (SwiGLU and kin, arXiv 2002.05202), and their
// gradient.
//
// Cost: one exponential per element; memory bound from two threads on. The gradient recomputes the
// activation, so only gate and up are kept between forward and backward. Numerics: silu and the tanh form of
// gelu go through the logistic function (0.5 (1 + tanh u) = sigmoid(2u)), which does not cancel for negative
// arguments; the erf form through the tail of the normal distribution (simd/math.h). Tested by gated_test.cc.
#include "kernels/level.h"
#include "kernels/plane.h"
#include "kernels/simd/math.h"

namespace inlaid::kernels::INLAID_LEVEL {
namespace {

// act(x) and, unless it is not wanted, act'(x).
template <Activation kKind>
INLAID_INLINE V activate(V x, V* derivative) {
  if constexpr (kKind == Activation::silu) {
    const V s = sigmoid(x);
    if (derivative) *derivative = s * fma(x, 1.0f - s, broadcast(1.0f));
    return x * s;
  } else if constexpr (kKind == Activation::gelu) {
    V cumulative, density;
    normal(x, cumulative, density);
    if (derivative) *derivative = fma(x, density, cumulative);
    return x * cumulative;
  } else if constexpr (kKind == Activation::gelu_tanh) {
    constexpr float a = 1.59576912160573071f, b = 0.044715f;  // 2 sqrt(2 / pi)
    const V s = sigmoid(x * a * fma(x * x, broadcast(b), broadcast(1.0f)));
    if (derivative) {
      const V z =
          max(broadcast(-30.0f), min(broadcast(30.0f), x));  // its square stays finite; beyond, s is 0 or 1
      const V slope = fma(z * z, broadcast(3.0f * a * b), broadcast(a));
      *derivative = s * fma(z * (1.0f - s), slope, broadcast(1.0f));
    }
    return x * s;
  } else {
    // NaN fails the comparison with 0 and so stays NaN.
    if (derivative) *derivative = x <= 0.0f ? V{} : broadcast(1.0f);
    return x <= 0.0f ? V{} : x;
  }
}

template <Activation kKind>
void forward(const Context& context, const GatedForwardArgs& args) {
  const Plane gate = plane(args.gate), up = plane(args.up), y = plane(args.y);
  for_blocks(context, gate, [&](int64_t r0, int64_t r1, int64_t c0, int64_t c1) {
    for (int64_t r = r0; r < r1; ++r) {
      along(c0, c1, [&](int64_t c, auto lanes) {
        const V act = activate<kKind>(load_lanes(gate.data + r * gate.stride + c, lanes), nullptr);
        store_lanes(y.data + r * y.stride + c, act * load_lanes(up.data + r * up.stride + c, lanes), lanes);
      });
    }
  });
}

template <Activation kKind>
void backward(const Context& context, const GatedBackwardArgs& args) {
  const Plane dy = plane(args.dy), gate = plane(args.gate), up = plane(args.up);
  const Plane dgate = plane(args.dgate), dup = plane(args.dup);
  for_blocks(context, gate, [&](int64_t r0, int64_t r1, int64_t c0, int64_t c1) {
    for (int64_t r = r0; r < r1; ++r) {
      along(c0, c1, [&](int64_t c, auto lanes) {
        // Everything is read before anything is written: outputs may share the storage of inputs.
        const V d = load_lanes(dy.data + r * dy.stride + c, lanes);
        const V u = load_lanes(up.data + r * up.stride + c, lanes);
        V derivative;
        const V act = activate<kKind>(load_lanes(gate.data + r * gate.stride + c, lanes), &derivative);
        store_lanes(dgate.data + r * dgate.stride + c, d * u * derivative, lanes);
        store_lanes(dup.data + r * dup.stride + c, d * act, lanes);
      });
    }
  });
}

}  // namespace

void gated_forward(const Context& context, const GatedForwardArgs& args) {
  switch (args.activation) {
    case Activation::silu:
      return forward<Activation::silu>(context, args);
    case Activation::gelu:
      return forward<Activation::gelu>(context, args);
    case Activation::gelu_tanh:
      return forward<Activation::gelu_tanh>(context, args);
    case Activation::relu:
      return forward<Activation::relu>(context, args);
  }
}

void gated_backward(const Context& context, const GatedBackwardArgs& args) {
  switch (args.activation) {
    case Activation::silu:
      return backward<Activation::silu>(context, args);
    case Activation::gelu:
      return backward<Activation::gelu>(context, args);
    case Activation::gelu_tanh:
      return backward<Activation::gelu_tanh>(context, args);
    case Activation::relu:
      return backward<Activation::relu>(context, args);
  }
}

}  // namespace inlaid::kernels::INLAID_LEVEL

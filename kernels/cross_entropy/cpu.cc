// Softmax cross-entropy over rows of logits and its gradient, in place.
//
// Idea: one pass finds the largest logit and its first place, a second replaces the logits by exp(x -
// largest) and sums them, a third scales them to the gradient. A row of 49152 logits (192 KiB) stays in the
// second-level cache between passes; without the gradient the second pass writes nothing and the third is
// left out. With a soft cap a pass before them puts the capped logits in the place of the logits. The
// derivative of the cap is made of these, so the second pass writes nothing and the third takes the
// exponentials again. Numerics: exponentials in f32, summed in f32 over kBlock columns and in f64 over blocks, so that
// the log-sum-exp has no more error than a few roundings even for a large vocabulary. The gradient of the
// target, p - 1, is formed in f64. Logits of -inf have probability 0; a NaN anywhere makes the loss and the
// whole gradient row NaN. Tested by cross_entropy_test.cc.
#include <cmath>

#include "kernels/level.h"
#include "kernels/plane.h"
#include "kernels/simd/math.h"

namespace inlaid::kernels::INLAID_LEVEL {
namespace {

constexpr int64_t kBlock = 1024;

float largest_of(const float* x, int64_t n) {
  const V lowest = broadcast(-__builtin_inff());
  V best[4] = {lowest, lowest, lowest, lowest};
  int64_t c = 0;
  for (; c + 4 * kLanes <= n; c += 4 * kLanes) {
    for (int i = 0; i < 4; ++i) best[i] = max(load(x + c + i * kLanes), best[i]);
  }
  for (; c + kLanes <= n; c += kLanes) best[0] = max(load(x + c), best[0]);
  float result = reduce_max(max(max(best[0], best[1]), max(best[2], best[3])));
  for (; c < n; ++c) result = x[c] > result ? x[c] : result;
  return result;
}

// Sum of exp(x - largest); the exponentials replace x if kKeep.
template <bool kKeep>
double sum_exp(float* x, int64_t n, float largest) {
  const V shift = broadcast(largest);
  double total = 0;
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t end = smaller(begin + kBlock, n);
    V sum[2] = {};
    int64_t c = begin;
    for (; c + 2 * kLanes <= end; c += 2 * kLanes) {
      for (int i = 0; i < 2; ++i) {
        const V e = exp(load(x + c + i * kLanes) - shift);
        if (kKeep) store(x + c + i * kLanes, e);
        sum[i] += e;
      }
    }
    along(c, end, [&](int64_t i, auto lanes) {
      const V e = exp(load_lanes(x + i, lanes) - shift);
      if (kKeep) store_lanes(x + i, e, lanes);
      float valid[kLanes] = {};
      store_lanes(valid, e, lanes);
      sum[0] += load(valid);
    });
    total += double{reduce_add(sum[0] + sum[1])};
  }
  return total;
}

void cap_row(float* x, int64_t n, double cap) {
  const float factor = static_cast<float>(cap), inverse = static_cast<float>(1 / cap);
  along(0, n, [&](int64_t c, auto lanes) {
    store_lanes(x + c, tanh(load_lanes(x + c, lanes) * inverse) * factor, lanes);
  });
}

// x holds exponentials and becomes factor * x.
void scale_row(float* x, int64_t n, double factor) {
  const V f = broadcast(static_cast<float>(factor));
  along(0, n, [&](int64_t c, auto lanes) { store_lanes(x + c, load_lanes(x + c, lanes) * f, lanes); });
}

// x holds capped logits and becomes factor * exp(x - largest) * d cap(z) / d z, the latter 1 - (x / cap)^2.
void differentiate_capped(float* x, int64_t n, float largest, double factor, double cap) {
  const V f = broadcast(static_cast<float>(factor)), shift = broadcast(largest);
  const float inverse = static_cast<float>(1 / cap);
  along(0, n, [&](int64_t c, auto lanes) {
    const V z = load_lanes(x + c, lanes), t = z * inverse;
    store_lanes(x + c, exp(z - shift) * f * (1.0f - t * t), lanes);
  });
}

// x holds logits and becomes dy * d cap(x) / d x.
void cap_row_backward(float* x, const float* dy, int64_t n, double cap) {
  const float inverse = static_cast<float>(1 / cap);
  along(0, n, [&](int64_t c, auto lanes) {
    const V t = tanh(load_lanes(x + c, lanes) * inverse);
    store_lanes(x + c, load_lanes(dy + c, lanes) * (1.0f - t * t), lanes);
  });
}

// True if no column before `target` is as large and none after it is larger.
bool first_largest(const float* x, int64_t target, float largest) {
  if (!(x[target] >= largest)) return false;
  for (int64_t c = 0; c < target; ++c) {
    if (x[c] == largest) return false;
  }
  return true;
}

}  // namespace

void cross_entropy(const Context& context, const CrossEntropyArgs& args) {
  const Plane logits = plane(args.logits);
  const int32_t* targets = static_cast<const int32_t*>(args.targets.data);
  float* loss = static_cast<float*>(args.loss.data);
  int32_t* correct = static_cast<int32_t*>(args.correct.data);
  const float* row_scale = static_cast<const float*>(args.row_scale.data);
  parallel(*context.executor, logits.rows, [&](int64_t r, int32_t) {
    float* x = logits.data + r * logits.stride;
    const int64_t n = logits.columns;
    const int64_t target = targets[r];
    const bool capped = args.soft_cap != 0;
    if (capped) cap_row(x, n, args.soft_cap);
    const float largest = largest_of(x, n);
    const double target_logit = x[target];
    if (correct) correct[r] = first_largest(x, target, largest) ? 1 : 0;
    const double sum = args.gradient && !capped ? sum_exp<true>(x, n, largest) : sum_exp<false>(x, n, largest);
    loss[r] = static_cast<float>(double{largest} + std::log(sum) - target_logit);
    if (!args.gradient) return;
    const double row_gradient = row_scale ? args.gradient_scale * double{row_scale[r]} : args.gradient_scale;
    const double scale = row_gradient / sum;
    if (capped) {
      const double t = target_logit / args.soft_cap;
      const double probability = std::exp(target_logit - double{largest}) / sum;
      differentiate_capped(x, n, largest, scale, args.soft_cap);
      x[target] = static_cast<float>(row_gradient * (probability - 1) * (1 - t * t));
      return;
    }
    const double target_gradient = double{x[target]} * scale - row_gradient;
    scale_row(x, n, scale);
    x[target] = static_cast<float>(target_gradient);
  });
}

void soft_cap(const Context& context, const SoftCapArgs& args) {
  const Plane x = plane(args.x);
  parallel(*context.executor, x.rows, [&](int64_t r, int32_t) { cap_row(x.data + r * x.stride, x.columns, args.cap); });
}

void soft_cap_backward(const Context& context, const SoftCapBackwardArgs& args) {
  const Plane x = plane(args.x), dy = plane(args.dy);
  parallel(*context.executor, x.rows, [&](int64_t r, int32_t) {
    cap_row_backward(x.data + r * x.stride, dy.data + r * dy.stride, x.columns, args.cap);
  });
}

}  // namespace inlaid::kernels::INLAID_LEVEL

// The optimizer's passes over the flat arenas: the norm of the gradient, and AdamW.
//
// Cost: memory bound. AdamW reads and writes parameter, gradient and both moments once, 32 bytes per
// parameter, and leaves the gradient zero, which saves a pass before the next accumulation. Numerics: the
// norm sums squares in f64, in blocks of kBlock values whose sums are then added in ascending order: the same
// bits for any number of threads. In AdamW, decay and step are added before they meet the parameter, which is
// rounded once; so a decay far below the parameter's precision, lr * weight_decay ~ 1e-8, is not rounded to
// nothing or to twice its size on its way. Tested by optimizer_test.cc.
#include <cmath>

#include "kernels/level.h"
#include "kernels/plane.h"

namespace inlaid::kernels::INLAID_LEVEL {
namespace {

constexpr int64_t kBlock = 65536;

typedef double D __attribute__((vector_size(kVectorBytes)));
typedef float Half __attribute__((vector_size(kVectorBytes / 2)));

double sum_of_squares(const float* x, int64_t n) {
  constexpr int kStep = kLanes / 2;
  D sum[4] = {};
  int64_t i = 0;
  for (; i + 4 * kStep <= n; i += 4 * kStep) {
    for (int k = 0; k < 4; ++k) {
      Half h;
      __builtin_memcpy(&h, x + i + k * kStep, sizeof h);
      const D d = __builtin_convertvector(h, D);
      sum[k] += d * d;
    }
  }
  const D all = (sum[0] + sum[1]) + (sum[2] + sum[3]);
  double total = 0;
  for (int k = 0; k < kStep; ++k) total += all[k];
  for (; i < n; ++i) total += double{x[i]} * double{x[i]};
  return total;
}

}  // namespace

size_t sum_squares_workspace(const SumSquaresArgs& args, int32_t) {
  return static_cast<size_t>(ceil_div(args.x.shape[0], kBlock)) * sizeof(double);
}

void sum_squares(const Context& context, const SumSquaresArgs& args) {
  const float* x = static_cast<const float*>(args.x.data);
  const int64_t n = args.x.shape[0];
  const int64_t blocks = ceil_div(n, kBlock);
  double* sums = reinterpret_cast<double*>(context.workspace);
  parallel(*context.executor, blocks, [&](int64_t block, int32_t) {
    sums[block] = sum_of_squares(x + block * kBlock, smaller(kBlock, n - block * kBlock));
  });
  double total = 0;
  for (int64_t block = 0; block < blocks; ++block) total += sums[block];
  *static_cast<double*>(args.out.data) = total;
}

void adamw(const Context& context, const AdamWArgs& args) {
  const Plane parameter = plane(args.parameter);
  float* gradient = static_cast<float*>(args.gradient.data);
  float* first = static_cast<float*>(args.m.data);
  float* second = static_cast<float*>(args.v.data);
  const double step = static_cast<double>(args.step);
  const double correction1 = 1 - std::pow(args.beta1, step), correction2 = 1 - std::pow(args.beta2, step);
  const V beta1 = broadcast(static_cast<float>(args.beta1)),
          rest1 = broadcast(static_cast<float>(1 - args.beta1));
  const V beta2 = broadcast(static_cast<float>(args.beta2)),
          rest2 = broadcast(static_cast<float>(1 - args.beta2));
  const V grad_scale = broadcast(static_cast<float>(args.grad_scale));
  const V rate = broadcast(static_cast<float>(args.lr / correction1));
  const V root_scale = broadcast(static_cast<float>(1 / std::sqrt(correction2)));
  const V eps = broadcast(static_cast<float>(args.eps));
  const V decay = broadcast(static_cast<float>(args.lr * args.weight_decay));
  for_blocks(context, parameter, [&](int64_t, int64_t, int64_t begin, int64_t end) {
    along(begin, end, [&](int64_t i, auto lanes) {
      const V g = load_lanes(gradient + i, lanes) * grad_scale;
      const V m = fma(beta1, load_lanes(first + i, lanes), rest1 * g);
      const V v = fma(beta2, load_lanes(second + i, lanes), rest2 * g * g);
      const V p = load_lanes(parameter.data + i, lanes);
      const V update = rate * m / fma(sqrt(v), root_scale, eps);
      store_lanes(parameter.data + i, p - fma(p, decay, update), lanes);
      store_lanes(first + i, m, lanes);
      store_lanes(second + i, v, lanes);
      store_lanes(gradient + i, V{}, lanes);
    });
  });
}

}  // namespace inlaid::kernels::INLAID_LEVEL

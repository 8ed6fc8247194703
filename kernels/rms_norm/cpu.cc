// RMS normalisation, forward and backward.
//
// Cost: memory bound. A task takes a few rows that fit the first-level cache; the weight is decoded once per
// task and chunk of columns, so a quantised or half-precision weight costs nothing noticeable. Numerics: row
// sums in f32, four partial vectors and a tree of lanes; the root in f64. The weight gradient sums blocks of
// kRowBlock rows and then the blocks, in ascending order, each column on its own: bits depend on shapes only.
// Tested by rms_norm_test.cc.
#include <cmath>  // std::sqrt(double)

#include "kernels/level.h"
#include "kernels/plane.h"
#include "kernels/weight_chunk.h"

namespace inlaid::kernels::INLAID_LEVEL {
namespace {

float sum_of_squares(const float* x, int64_t n) {
  V sum[4] = {};
  int64_t c = 0;
  for (; c + 4 * kLanes <= n; c += 4 * kLanes) {
    for (int i = 0; i < 4; ++i) {
      const V v = load(x + c + i * kLanes);
      sum[i] = fma(v, v, sum[i]);
    }
  }
  along(c, n, [&](int64_t i, auto lanes) {
    const V v = load_lanes(x + i, lanes);
    sum[0] = fma(v, v, sum[0]);
  });
  return reduce_add((sum[0] + sum[1]) + (sum[2] + sum[3]));
}

// sum + the vectors of a * w * x over n columns.
V add_products(V sum, const float* a, const float* w, const float* x, int64_t n) {
  V other{};
  int64_t c = 0;
  for (; c + 2 * kLanes <= n; c += 2 * kLanes) {
    sum = fma(load(a + c) * load(w + c), load(x + c), sum);
    other = fma(load(a + c + kLanes) * load(w + c + kLanes), load(x + c + kLanes), other);
  }
  along(c, n, [&](int64_t i, auto lanes) {
    sum = fma(load_lanes(a + i, lanes) * load_lanes(w + i, lanes), load_lanes(x + i, lanes), sum);
  });
  return sum + other;
}

// The weights [column, column + n) plus their offset.
template <typename Args>
const float* factors(const Args& args, int64_t column, int64_t n, float (&scratch)[kWeightChunk]) {
  const float* w = weight_chunk(args.weight, column, n, scratch);
  if (args.weight_offset == 0) return w;
  along(0, n, [&](int64_t i, auto lanes) {
    store_lanes(scratch + i, load_lanes(w + i, lanes) + static_cast<float>(args.weight_offset), lanes);
  });
  return scratch;
}

constexpr int64_t kRowBlock = 64;  // rows whose weight gradients are summed before they join the total
constexpr int64_t kMaxTaskRows = 64;

// for_rows with at most kMaxTaskRows rows a task.
template <typename Fn>
void for_some_rows(const Context& context, const Plane& p, const Fn& fn) {
  const int64_t rows = smaller(kMaxTaskRows, larger(1, 8192 / larger(1, p.columns)));
  parallel(*context.executor, ceil_div(p.rows, rows),
           [&](int64_t task, int32_t) { fn(task * rows, smaller((task + 1) * rows, p.rows)); });
}

}  // namespace

void rms_norm_forward(const Context& context, const RmsNormForwardArgs& args) {
  const Plane x = plane(args.x), y = plane(args.y);
  float* rstd = static_cast<float*>(args.rstd.data);
  for_some_rows(context, x, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const double mean =
          double{sum_of_squares(x.data + t * x.stride, x.columns)} / static_cast<double>(x.columns);
      rstd[t] = static_cast<float>(1 / std::sqrt(mean + args.eps));
    }
    float scratch[kWeightChunk];
    for (int64_t c = 0; c < x.columns; c += kWeightChunk) {
      const int64_t n = smaller(kWeightChunk, x.columns - c);
      const float* w = factors(args, c, n, scratch);
      for (int64_t t = begin; t < end; ++t) {
        const float* xt = x.data + t * x.stride + c;
        float* yt = y.data + t * y.stride + c;
        const V r = broadcast(rstd[t]);
        along(0, n, [&](int64_t i, auto lanes) {
          store_lanes(yt + i, load_lanes(xt + i, lanes) * r * load_lanes(w + i, lanes), lanes);
        });
      }
    }
  });
}

void rms_norm_backward_input(const Context& context, const RmsNormBackwardInputArgs& args) {
  const Plane x = plane(args.x), dy = plane(args.dy), dx = plane(args.dx);
  const float* rstd = static_cast<const float*>(args.rstd.data);
  for_some_rows(context, x, [&](int64_t begin, int64_t end) {
    float scratch[kWeightChunk];
    V dot[kMaxTaskRows] = {};
    for (int64_t c = 0; c < x.columns; c += kWeightChunk) {
      const int64_t n = smaller(kWeightChunk, x.columns - c);
      const float* w = factors(args, c, n, scratch);
      for (int64_t t = begin; t < end; ++t) {
        dot[t - begin] =
            add_products(dot[t - begin], dy.data + t * dy.stride + c, w, x.data + t * x.stride + c, n);
      }
    }
    float shift[kMaxTaskRows];
    for (int64_t t = begin; t < end; ++t) {
      const double r = rstd[t];
      shift[t - begin] =
          static_cast<float>(r * r * r * double{reduce_add(dot[t - begin])} / static_cast<double>(x.columns));
    }
    for (int64_t c = 0; c < x.columns; c += kWeightChunk) {
      const int64_t n = smaller(kWeightChunk, x.columns - c);
      const float* w = factors(args, c, n, scratch);
      for (int64_t t = begin; t < end; ++t) {
        const float* xt = x.data + t * x.stride + c;
        const float* dyt = dy.data + t * dy.stride + c;
        float* dxt = dx.data + t * dx.stride + c;
        const V r = broadcast(rstd[t]), s = broadcast(-shift[t - begin]);
        along(0, n, [&](int64_t i, auto lanes) {
          V g = fma(load_lanes(xt + i, lanes), s, load_lanes(dyt + i, lanes) * load_lanes(w + i, lanes) * r);
          if (args.accumulate) g += load_lanes(dxt + i, lanes);
          store_lanes(dxt + i, g, lanes);
        });
      }
    }
  });
}

void rms_norm_backward_weight(const Context& context, const RmsNormBackwardWeightArgs& args) {
  const Plane x = plane(args.x), dy = plane(args.dy);
  const float* rstd = static_cast<const float*>(args.rstd.data);
  float* dweight = static_cast<float*>(args.dweight.data);
  constexpr int64_t kColumns = 32;  // two cache lines: every line of x and dy is read by one task
  parallel(*context.executor, ceil_div(x.columns, kColumns), [&](int64_t task, int32_t) {
    along(task * kColumns, smaller((task + 1) * kColumns, x.columns), [&](int64_t c, auto lanes) {
      V total{};
      for (int64_t t0 = 0; t0 < x.rows; t0 += kRowBlock) {
        const int64_t t1 = smaller(t0 + kRowBlock, x.rows);
        V sum{};
        for (int64_t t = t0; t < t1; ++t) {
          const V product =
              load_lanes(dy.data + t * dy.stride + c, lanes) * load_lanes(x.data + t * x.stride + c, lanes);
          sum = fma(product, broadcast(rstd[t]), sum);
        }
        total += sum;
      }
      store_lanes(dweight + c, load_lanes(dweight + c, lanes) + total, lanes);
    });
  });
}

}  // namespace inlaid::kernels::INLAID_LEVEL

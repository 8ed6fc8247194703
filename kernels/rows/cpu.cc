// Moving and adding rows: gather, scatter, add, column sums. All memory bound.
//
// Numerics of sum_rows: each column on its own; blocks of 64 rows in ascending order, then the blocks, in
// f32. Tested by rows_test.cc.
#include <cstring>

#include "kernels/level.h"
#include "kernels/plane.h"

namespace inlaid::kernels::INLAID_LEVEL {

void gather_rows(const Context& context, const GatherRowsArgs& args) {
  const Plane x = plane(args.x), y = plane(args.y);
  const int32_t* index = static_cast<const int32_t*>(args.index.data);
  for_rows(context, y, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      std::memcpy(y.data + r * y.stride, x.data + index[r] * x.stride,
                  static_cast<size_t>(y.columns) * sizeof(float));
    }
  });
}

void scatter_rows(const Context& context, const ScatterRowsArgs& args) {
  const Plane x = plane(args.x), y = plane(args.y);
  const int32_t* index = static_cast<const int32_t*>(args.index.data);
  const size_t bytes = static_cast<size_t>(y.columns) * sizeof(float);
  for_rows(context, y, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) std::memset(y.data + t * y.stride, 0, bytes);
  });
  for_rows(context, x, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r)
      std::memcpy(y.data + index[r] * y.stride, x.data + r * x.stride, bytes);
  });
}

void add(const Context& context, const AddArgs& args) {
  const Plane a = plane(args.a), b = plane(args.b), y = plane(args.y);
  for_blocks(context, y, [&](int64_t r0, int64_t r1, int64_t c0, int64_t c1) {
    for (int64_t r = r0; r < r1; ++r) {
      along(c0, c1, [&](int64_t c, auto lanes) {
        const V sum =
            load_lanes(a.data + r * a.stride + c, lanes) + load_lanes(b.data + r * b.stride + c, lanes);
        store_lanes(y.data + r * y.stride + c, sum, lanes);
      });
    }
  });
}

void sum_rows(const Context& context, const SumRowsArgs& args) {
  const Plane x = plane(args.x);
  float* y = static_cast<float*>(args.y.data);
  constexpr int64_t kColumns = 32;  // two cache lines
  constexpr int64_t kRowBlock = 64;
  parallel(*context.executor, ceil_div(x.columns, kColumns), [&](int64_t task, int32_t) {
    along(task * kColumns, smaller((task + 1) * kColumns, x.columns), [&](int64_t c, auto lanes) {
      V total{};
      for (int64_t t0 = 0; t0 < x.rows; t0 += kRowBlock) {
        const int64_t t1 = smaller(t0 + kRowBlock, x.rows);
        V sum{};
        for (int64_t t = t0; t < t1; ++t) sum += load_lanes(x.data + t * x.stride + c, lanes);
        total += sum;
      }
      store_lanes(y + c, load_lanes(y + c, lanes) + total, lanes);
    });
  });
}

}  // namespace inlaid::kernels::INLAID_LEVEL

// A view of f32 values as rows and columns, and the cut of such a plane into tasks. For files compiled once
// per level.
#ifndef INLAID_KERNELS_PLANE_H_
#define INLAID_KERNELS_PLANE_H_

#include "kernels/kernels.h"
#include "kernels/simd/simd.h"

namespace inlaid::kernels::INLAID_LEVEL {

INLAID_INLINE int64_t smaller(int64_t a, int64_t b) {
  return a < b ? a : b;
}
INLAID_INLINE int64_t larger(int64_t a, int64_t b) {
  return a > b ? a : b;
}
INLAID_INLINE int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

struct Plane {
  float* data;
  int64_t rows, columns, stride;
};

// The last dimension is the columns; a flat view is one row. More than two dimensions must be evenly spaced.
INLAID_INLINE Plane plane(const TensorView& view) {
  Plane p{static_cast<float*>(view.data), 1, 1, 0};
  if (view.rank > 0) p.columns = view.shape[view.rank - 1];
  for (int i = 0; i + 1 < view.rank; ++i) p.rows *= view.shape[i];
  p.stride = view.rank > 1 ? view.stride[view.rank - 2] : p.columns;
  return p;
}

// Calls fn(first row, end row, first column, end column) for blocks of about 16 K elements, in parallel. For
// kernels whose elements do not depend on each other.
template <typename Fn>
INLAID_INLINE void for_blocks(const Context& context, const Plane& p, const Fn& fn) {
  constexpr int64_t kElements = 16384;
  if (p.rows == 0 || p.columns == 0) return;
  const int64_t columns = smaller(p.columns, kElements);
  const int64_t rows = larger(1, kElements / columns);
  const int64_t across = ceil_div(p.columns, columns);
  parallel(*context.executor, ceil_div(p.rows, rows) * across, [&](int64_t task, int32_t) {
    const int64_t r = task / across * rows;
    const int64_t c = task % across * columns;
    fn(r, smaller(r + rows, p.rows), c, smaller(c + columns, p.columns));
  });
}

// The same for kernels that need whole rows: fn(first row, end row).
template <typename Fn>
INLAID_INLINE void for_rows(const Context& context, const Plane& p, const Fn& fn) {
  constexpr int64_t kElements = 16384;
  const int64_t rows = larger(1, kElements / larger(1, p.columns));
  parallel(*context.executor, ceil_div(p.rows, rows),
           [&](int64_t task, int32_t) { fn(task * rows, smaller((task + 1) * rows, p.rows)); });
}

// How many lanes of a vector count: all (known when compiled), or the first n.
struct Whole {};
INLAID_INLINE V load_lanes(const float* p, Whole) {
  return load(p);
}
INLAID_INLINE V load_lanes(const float* p, int64_t n) {
  return load_first(p, n);
}
INLAID_INLINE void store_lanes(float* p, V x, Whole) {
  store(p, x);
}
INLAID_INLINE void store_lanes(float* p, V x, int64_t n) {
  store_first(p, x, n);
}

// Calls fn(column, lanes) along [begin, end): whole vectors first, then one with fewer lanes.
template <typename Fn>
INLAID_INLINE void along(int64_t begin, int64_t end, const Fn& fn) {
  int64_t c = begin;
  for (; c + kLanes <= end; c += kLanes) fn(c, Whole{});
  if (c < end) fn(c, end - c);
}

}  // namespace inlaid::kernels::INLAID_LEVEL

#endif  // INLAID_KERNELS_PLANE_H_

// Copies of panels that need no intrinsics. Everything has internal linkage: each level compiles its own copy
// for its own instruction set.
#ifndef INLAID_KERNELS_GEMM_MICRO_PACK_H_
#define INLAID_KERNELS_GEMM_MICRO_PACK_H_

#include <cstdint>

#include "kernels/gemm/micro_kernel.h"

namespace inlaid::kernels {
namespace {

constexpr int64_t kRowsAhead =
    12;  // of a source whose rows lie on different pages, where no hardware prefetcher follows

INLAID_ALWAYS_INLINE void ask_for(const float* p, int64_t floats) {
  for (int64_t i = 0; i < floats; i += 16) __builtin_prefetch(p + i, 0, 3);
}

// dst[k * width + i] = src[k * src_row + i], i < columns; zeros up to width. A copy of constant size becomes
// vector moves.
template <int width>
void pack_panel(const float* src, int64_t src_row, int32_t columns, int64_t depth, float* dst) {
  if (columns == width) {
    for (int64_t k = 0; k < depth; ++k) {
      ask_for(src + (k + kRowsAhead) * src_row, width);
      __builtin_memcpy(dst + k * width, src + k * src_row, width * sizeof(float));
    }
    return;
  }
  for (int64_t k = 0; k < depth; ++k) {
    for (int i = 0; i < width; ++i) dst[k * width + i] = i < columns ? src[k * src_row + i] : 0.0f;
  }
}

// The same for a row of panels, a few rows of src at a time, so that they stay in the first cache while each
// panel takes its part and writes whole cache lines.
template <int width>
void pack_panels(const float* src, int64_t src_row, int64_t columns, int64_t depth, float* dst,
                 int64_t panel) {
  constexpr int64_t kRows = 16;
  const int64_t whole = columns / width;
  for (int64_t k0 = 0; k0 < depth; k0 += kRows) {
    const int64_t rows = depth - k0 < kRows ? depth - k0 : kRows;
    for (int64_t k = k0; k < k0 + rows; ++k) ask_for(src + (k + kRows) * src_row, columns);
    for (int64_t p = 0; p < whole; ++p) {
      const float* from = src + k0 * src_row + p * width;
      float* to = dst + p * panel + k0 * width;
      for (int64_t k = 0; k < rows; ++k)
        __builtin_memcpy(to + k * width, from + k * src_row, width * sizeof(float));
    }
  }
  const auto left = static_cast<int32_t>(columns - whole * width);
  if (left > 0) pack_panel<width>(src + whole * width, src_row, left, depth, dst + whole * panel);
}

}  // namespace
}  // namespace inlaid::kernels

#endif  // INLAID_KERNELS_GEMM_MICRO_PACK_H_

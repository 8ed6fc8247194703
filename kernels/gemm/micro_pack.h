// Copies of panels that need no intrinsics. Everything has internal linkage: each level compiles its own copy for its own
// instruction set.
#ifndef INLAID_KERNELS_GEMM_MICRO_PACK_H_
#define INLAID_KERNELS_GEMM_MICRO_PACK_H_

#include <cstdint>

namespace inlaid::kernels {
namespace {

// dst[k * width + i] = src[k * src_row + i], i < columns; zeros up to width. A copy of constant size becomes vector moves.
template <int width>
void pack_panel(const float* src, int64_t src_row, int32_t columns, int64_t depth, float* dst) {
  if (columns == width) {
    for (int64_t k = 0; k < depth; ++k) __builtin_memcpy(dst + k * width, src + k * src_row, width * sizeof(float));
    return;
  }
  for (int64_t k = 0; k < depth; ++k) {
    for (int i = 0; i < width; ++i) dst[k * width + i] = i < columns ? src[k * src_row + i] : 0.0f;
  }
}

// The same for a row of panels, k outermost, so that every row of src is read once from its beginning to its end.
template <int width>
void pack_panels(const float* src, int64_t src_row, int64_t columns, int64_t depth, float* dst, int64_t panel) {
  const int64_t whole = columns / width;
  for (int64_t k = 0; k < depth; ++k) {
    const float* from = src + k * src_row;
    float* to = dst + k * width;
    for (int64_t p = 0; p < whole; ++p) __builtin_memcpy(to + p * panel, from + p * width, width * sizeof(float));
  }
  const auto left = static_cast<int32_t>(columns - whole * width);
  if (left > 0) pack_panel<width>(src + whole * width, src_row, left, depth, dst + whole * panel);
}

}  // namespace
}  // namespace inlaid::kernels

#endif  // INLAID_KERNELS_GEMM_MICRO_PACK_H_

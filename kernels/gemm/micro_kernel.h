// What a level brings to the matrix product: a register tile and two ways to copy a panel. Plain types only,
// so that a source compiled for a wider instruction set includes nothing that the baseline also compiles.
//
// The register tile: `tile_rows` x `tile_columns` accumulators stay in registers for a whole block of k; each
// step loads one row of the B panel, broadcasts one element of A per row and does one fused multiply-add per
// accumulator. The tile is as large as the registers allow, because a step of r x c vectors needs r + c loads
// for r * c multiply-adds:
//   AVX-512  8 x 48 (24 of 32 registers)    AVX2  6 x 16 (12 of 16)    portable  4 x 8
#ifndef INLAID_KERNELS_GEMM_MICRO_KERNEL_H_
#define INLAID_KERNELS_GEMM_MICRO_KERNEL_H_

#include <cstdint>

// Before a loop over accumulators: unrolled completely, else they would live in memory.
#if defined(__clang__)
#define INLAID_UNROLL _Pragma("clang loop unroll(full)")
#else
#define INLAID_UNROLL _Pragma("GCC unroll 16")
#endif

// For helpers that pass vectors in arrays: a call would send them through memory.
#define INLAID_ALWAYS_INLINE inline __attribute__((always_inline))

namespace inlaid::kernels {

// c[r][j] = alpha * sum_k a[r * a_row + k * a_step] * b[k * b_step + j]  (+ c[r][j] if add) (+ bias[j] if
// bias). Element (r, j) must not depend on `rows` and `columns`. b may be read up to the next multiple of the
// vector length.
struct GemmTile {
  int64_t depth;
  const float* a;
  int64_t a_row, a_step;
  const float* b;
  int64_t b_step;
  float* c;
  int64_t c_row;
  int32_t rows, columns;
  float alpha;
  const float* bias;
  bool add;
  bool ahead;  // stream only: ask for the rows of B that follow, which need not exist
};

constexpr int32_t kStreamRows = 4, kStreamColumns = 16;

struct GemmMicroKernels {
  int32_t tile_rows, tile_columns;
  // 1 <= rows <= tile_rows, 1 <= columns <= tile_columns.
  void (*tile)(const GemmTile& tile);
  // The same sum where b[j * b_step + k] is a transposed B as it lies: rows <= kStreamRows, columns <=
  // kStreamColumns, a_step == 1. The same bits as tile. nullptr where a level has none.
  void (*stream)(const GemmTile& tile);
  // Eight columns of a panel: dst[k * tile_columns + i] = src[i * src_row + k] for i < rows, zeros for rows
  // <= i < 8. Touches the same places from `ahead` on, where the next rows lie, without needing them to
  // exist; nullptr: does not.
  void (*pack_transposed)(const float* src, int64_t src_row, int32_t rows, int64_t depth, float* dst,
                          const float* ahead);
  // dst[k * tile_columns + j] = src[k * src_row + j]; zeros up to tile_columns.
  void (*pack_columns)(const float* src, int64_t src_row, int32_t columns, int64_t depth, float* dst);
  // Rows of src cut into panels of tile_rows, `panel` apart, zeros in what is left of the last one:
  // dst[p * panel + k * tile_rows + i] = src[k * src_row + p * tile_rows + i].
  void (*pack_rows)(const float* src, int64_t src_row, int64_t columns, int64_t depth, float* dst,
                    int64_t panel);
};

namespace portable {
extern const GemmMicroKernels kGemmMicroKernels;
}
namespace avx2 {
extern const GemmMicroKernels kGemmMicroKernels;
}
namespace avx512 {
extern const GemmMicroKernels kGemmMicroKernels;
}

}  // namespace inlaid::kernels

#endif  // INLAID_KERNELS_GEMM_MICRO_KERNEL_H_

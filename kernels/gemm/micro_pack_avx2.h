// Transposing copy with 256-bit registers, for the two levels that have them. Internal linkage, as in
// micro_pack.h.
#ifndef INLAID_KERNELS_GEMM_MICRO_PACK_AVX2_H_
#define INLAID_KERNELS_GEMM_MICRO_PACK_AVX2_H_

#include <immintrin.h>

#include <cstdint>

#include "kernels/gemm/micro_kernel.h"

namespace inlaid::kernels {
namespace {

// r[k] of the result holds element k of each of the eight rows.
INLAID_ALWAYS_INLINE void transpose8(__m256 (&r)[8]) {
  const __m256 a0 = _mm256_unpacklo_ps(r[0], r[1]), a1 = _mm256_unpackhi_ps(r[0], r[1]);
  const __m256 a2 = _mm256_unpacklo_ps(r[2], r[3]), a3 = _mm256_unpackhi_ps(r[2], r[3]);
  const __m256 a4 = _mm256_unpacklo_ps(r[4], r[5]), a5 = _mm256_unpackhi_ps(r[4], r[5]);
  const __m256 a6 = _mm256_unpacklo_ps(r[6], r[7]), a7 = _mm256_unpackhi_ps(r[6], r[7]);
  const __m256 b0 = _mm256_shuffle_ps(a0, a2, 0x44), b1 = _mm256_shuffle_ps(a0, a2, 0xee);
  const __m256 b2 = _mm256_shuffle_ps(a1, a3, 0x44), b3 = _mm256_shuffle_ps(a1, a3, 0xee);
  const __m256 b4 = _mm256_shuffle_ps(a4, a6, 0x44), b5 = _mm256_shuffle_ps(a4, a6, 0xee);
  const __m256 b6 = _mm256_shuffle_ps(a5, a7, 0x44), b7 = _mm256_shuffle_ps(a5, a7, 0xee);
  r[0] = _mm256_permute2f128_ps(b0, b4, 0x20);
  r[1] = _mm256_permute2f128_ps(b1, b5, 0x20);
  r[2] = _mm256_permute2f128_ps(b2, b6, 0x20);
  r[3] = _mm256_permute2f128_ps(b3, b7, 0x20);
  r[4] = _mm256_permute2f128_ps(b0, b4, 0x31);
  r[5] = _mm256_permute2f128_ps(b1, b5, 0x31);
  r[6] = _mm256_permute2f128_ps(b2, b6, 0x31);
  r[7] = _mm256_permute2f128_ps(b3, b7, 0x31);
}

// See GemmMicroKernels::pack_transposed. Asking for the next rows while these are shuffled lets memory work
// all the time.
template <int width>
void pack_transposed(const float* src, int64_t src_row, int32_t rows, int64_t depth, float* dst,
                     const float* ahead) {
  int64_t k = 0;
  for (; k + 8 <= depth; k += 8) {
    if (ahead && k % 16 == 0) {
      for (int i = 0; i < 8; ++i)
        _mm_prefetch(reinterpret_cast<const char*>(ahead + i * src_row + k), _MM_HINT_T0);
    }
    __m256 r[8];
    for (int i = 0; i < 8; ++i)
      r[i] = i < rows ? _mm256_loadu_ps(src + i * src_row + k) : _mm256_setzero_ps();
    transpose8(r);
    for (int i = 0; i < 8; ++i) _mm256_storeu_ps(dst + (k + i) * width, r[i]);
  }
  for (; k < depth; ++k) {
    for (int i = 0; i < 8; ++i) dst[k * width + i] = i < rows ? src[i * src_row + k] : 0.0f;
  }
}

}  // namespace
}  // namespace inlaid::kernels

#endif  // INLAID_KERNELS_GEMM_MICRO_PACK_AVX2_H_

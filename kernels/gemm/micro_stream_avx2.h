// Up to four rows times a transposed B (decoding), without a packed panel. Internal linkage, as in
// micro_pack.h.
//
// With one row a weight is used once, so writing it to a panel and reading it back would cost more than the
// arithmetic. Rows of B are transposed in registers, eight by eight, and multiplied at once: the lanes are
// columns of C and the chain over k is that of the tile, so the bits are the same. Two groups of eight
// columns alternate to hide the latency of the chain. Measured on Zen 4, one thread: 40 GB/s of f32 weights
// from cache, against 29 through a panel; from memory as fast as it reads.
#ifndef INLAID_KERNELS_GEMM_MICRO_STREAM_AVX2_H_
#define INLAID_KERNELS_GEMM_MICRO_STREAM_AVX2_H_

#include "kernels/gemm/micro_kernel.h"
#include "kernels/gemm/micro_pack_avx2.h"

namespace inlaid::kernels {
namespace {

// The first `columns` lanes.
__m256i first_lanes(int columns) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(columns), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

// Writes one vector of a finished row. A masked store is slow on some processors, so only an edge takes it.
INLAID_ALWAYS_INLINE void finish_row(const GemmTile& t, __m256 sum, int64_t row, int column) {
  float* const out = t.c + row * t.c_row + column;
  const int left = t.columns - column;
  __m256 value = _mm256_mul_ps(_mm256_set1_ps(t.alpha), sum);
  if (left >= 8) {
    if (t.add) value = _mm256_add_ps(value, _mm256_loadu_ps(out));
    if (t.bias) value = _mm256_add_ps(value, _mm256_loadu_ps(t.bias + column));
    _mm256_storeu_ps(out, value);
    return;
  }
  const __m256i mask = first_lanes(left);
  if (t.add) value = _mm256_add_ps(value, _mm256_maskload_ps(out, mask));
  if (t.bias) value = _mm256_add_ps(value, _mm256_maskload_ps(t.bias + column, mask));
  _mm256_maskstore_ps(out, mask, value);
}

// Eight steps of k for eight columns: eight rows of B from `b` on, of which `present` exist.
template <int rows, bool whole>
INLAID_ALWAYS_INLINE void stream_step(const float* a, int64_t a_row, const float* b, int64_t b_row,
                                      int present, __m256 (&sum)[rows]) {
  __m256 r[8];
  INLAID_UNROLL
  for (int i = 0; i < 8; ++i)
    r[i] = whole || i < present ? _mm256_loadu_ps(b + i * b_row) : _mm256_setzero_ps();
  transpose8(r);
  INLAID_UNROLL
  for (int k = 0; k < 8; ++k) {
    INLAID_UNROLL
    for (int m = 0; m < rows; ++m)
      sum[m] = _mm256_fmadd_ps(_mm256_broadcast_ss(a + m * a_row + k), r[k], sum[m]);
  }
}

// One step of k.
template <int rows>
INLAID_ALWAYS_INLINE void stream_last(const float* a, int64_t a_row, const float* b, int64_t b_row,
                                      int present, __m256 (&sum)[rows]) {
  float column[8] = {};
  for (int i = 0; i < present; ++i) column[i] = b[i * b_row];
  const __m256 r = _mm256_loadu_ps(column);
  INLAID_UNROLL
  for (int m = 0; m < rows; ++m) sum[m] = _mm256_fmadd_ps(_mm256_broadcast_ss(a + m * a_row), r, sum[m]);
}

template <int rows, bool whole>
void stream_of(const GemmTile& t) {
  const float* a = t.a;
  const float* b = t.b;
  const int64_t a_row = t.a_row, b_row = t.b_step;
  const int present = t.columns < 8 ? t.columns : 8, second = t.columns - present;
  __m256 sum0[rows], sum1[rows];
  INLAID_UNROLL
  for (int m = 0; m < rows; ++m) sum0[m] = sum1[m] = _mm256_setzero_ps();
  int64_t k = t.depth;
  for (; k >= 8; k -= 8, a += 8, b += 8) {
    if (k % 16 == 0 && t.ahead) {
      for (int i = 0; i < 16; ++i)
        _mm_prefetch(reinterpret_cast<const char*>(b + (16 + i) * b_row), _MM_HINT_T0);
    }
    stream_step<rows, whole>(a, a_row, b, b_row, present, sum0);
    stream_step<rows, whole>(a, a_row, b + 8 * b_row, b_row, second, sum1);
  }
  for (; k > 0; --k, ++a, ++b) {
    stream_last<rows>(a, a_row, b, b_row, present, sum0);
    stream_last<rows>(a, a_row, b + 8 * b_row, b_row, second, sum1);
  }
  INLAID_UNROLL
  for (int m = 0; m < rows; ++m) {
    finish_row(t, sum0[m], m, 0);
    if (second > 0) finish_row(t, sum1[m], m, 8);
  }
}

template <int rows>
void stream_rows(const GemmTile& t) {
  return t.columns == kStreamColumns ? stream_of<rows, true>(t) : stream_of<rows, false>(t);
}

// See GemmMicroKernels::stream.
inline void stream(const GemmTile& t) {
  switch (t.rows) {
    case 1:
      return stream_rows<1>(t);
    case 2:
      return stream_rows<2>(t);
    case 3:
      return stream_rows<3>(t);
    default:
      return stream_rows<4>(t);
  }
}

}  // namespace
}  // namespace inlaid::kernels

#endif  // INLAID_KERNELS_GEMM_MICRO_STREAM_AVX2_H_

// One vector type of the width that the file is compiled for, so that a kernel is written once and compiled
// at every level.
//
// A file that includes this is compiled several times with INLAID_LEVEL = portable, avx2 or avx512 (see
// CMakeLists.txt) and the matching compiler flags. V is a GCC vector, so + - * / and comparisons are plain
// operators; a comparison gives an I of 0 and -1, and `mask ? a : b` chooses lane by lane. Everything is
// static and forced inline, inside the level's namespace: no symbol compiled for a newer processor can be
// picked by the linker for an older one (kernels/level_symbols_test.cmake checks it).
//
// Tested by simd_test.cc and by every kernel's test.
#ifndef INLAID_KERNELS_SIMD_SIMD_H_
#define INLAID_KERNELS_SIMD_SIMD_H_

#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define INLAID_INLINE static inline __attribute__((always_inline))

namespace inlaid::kernels::INLAID_LEVEL {

#if defined(__AVX512F__)
constexpr int kLanes = 16;
#elif defined(__AVX2__)
constexpr int kLanes = 8;
#else
constexpr int kLanes = 4;
#endif
constexpr int kVectorBytes = kLanes * 4;

typedef float V __attribute__((vector_size(kVectorBytes)));
typedef int32_t I __attribute__((vector_size(kVectorBytes)));
typedef uint32_t U __attribute__((vector_size(kVectorBytes)));
typedef uint64_t U64 __attribute__((vector_size(kVectorBytes)));
typedef float VUnaligned __attribute__((vector_size(kVectorBytes), aligned(4), may_alias));
typedef int32_t IUnaligned __attribute__((vector_size(kVectorBytes), aligned(4), may_alias));

#if defined(__AVX512F__)
// All lanes. The forms without a mask make g++ 12 warn of an uninitialised value inside its own header.
constexpr __mmask16 kAll = 0xFFFF;
#endif

INLAID_INLINE V broadcast(float x) {
  return x - V{};
}
INLAID_INLINE I broadcast_int(int32_t x) {
  return x - I{};
}
INLAID_INLINE V load(const float* p) {
  return *reinterpret_cast<const VUnaligned*>(p);
}
INLAID_INLINE void store(float* p, V x) {
  *reinterpret_cast<VUnaligned*>(p) = x;
}

// 0, 1, 2, ...
INLAID_INLINE I lane_index() {
  I x{};
  for (int i = 0; i < kLanes; ++i) x[i] = i;
  return x;
}

// The first n lanes, 0 < n <= kLanes; the others read as 0 and are not written. No byte outside is touched.
INLAID_INLINE V load_first(const float* p, int64_t n) {
#if defined(__AVX512F__)
  return _mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << n) - 1), p);
#elif defined(__AVX2__)
  return _mm256_maskload_ps(p,
                            reinterpret_cast<__m256i>(lane_index() < broadcast_int(static_cast<int32_t>(n))));
#else
  V x{};
  for (int i = 0; i < n; ++i) x[i] = p[i];
  return x;
#endif
}
INLAID_INLINE void store_first(float* p, V x, int64_t n) {
#if defined(__AVX512F__)
  _mm512_mask_storeu_ps(p, static_cast<__mmask16>((1u << n) - 1), x);
#elif defined(__AVX2__)
  _mm256_maskstore_ps(p, reinterpret_cast<__m256i>(lane_index() < broadcast_int(static_cast<int32_t>(n))), x);
#else
  for (int i = 0; i < n; ++i) p[i] = x[i];
#endif
}

// a * b + c: one rounding where the level has the instruction, two where it has not.
INLAID_INLINE V fma(V a, V b, V c) {
#if defined(__AVX512F__)
  return _mm512_fmadd_ps(a, b, c);
#elif defined(__AVX2__)
  return _mm256_fmadd_ps(a, b, c);
#elif defined(__FP_FAST_FMAF)
  V r;
  for (int i = 0; i < kLanes; ++i) r[i] = __builtin_fmaf(a[i], b[i], c[i]);
  return r;
#else
  return a * b + c;
#endif
}

// a > b ? a : b, hence b where either is NaN.
INLAID_INLINE V max(V a, V b) {
#if defined(__AVX512F__)
  return _mm512_maskz_max_ps(kAll, a, b);
#elif defined(__AVX2__)
  return _mm256_max_ps(a, b);
#else
  return a > b ? a : b;
#endif
}
// a < b ? a : b, hence b where either is NaN.
INLAID_INLINE V min(V a, V b) {
#if defined(__AVX512F__)
  return _mm512_maskz_min_ps(kAll, a, b);
#elif defined(__AVX2__)
  return _mm256_min_ps(a, b);
#else
  return a < b ? a : b;
#endif
}

INLAID_INLINE V sqrt(V a) {
#if defined(__AVX512F__)
  return _mm512_maskz_sqrt_ps(kAll, a);
#elif defined(__AVX2__)
  return _mm256_sqrt_ps(a);
#else
  V r;
  for (int i = 0; i < kLanes; ++i) r[i] = __builtin_sqrtf(a[i]);
  return r;
#endif
}

// Sum of the lanes, halves first.
INLAID_INLINE float reduce_add(V x) {
  float lanes[kLanes];
  store(lanes, x);
#pragma GCC unroll 4
  for (int half = kLanes / 2; half > 0; half /= 2) {
#pragma GCC unroll 8
    for (int i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  }
  return lanes[0];
}
// Largest lane, ignoring NaN unless lane 0 is one.
INLAID_INLINE float reduce_max(V x) {
  float best = x[0];
#pragma GCC unroll 16
  for (int i = 1; i < kLanes; ++i) best = x[i] > best ? x[i] : best;
  return best;
}

// Swaps the off-diagonal S x S corners of each 2S x 2S square of lanes in the row pair (a, b): one step of a
// transposition.
template <int S>
INLAID_INLINE void exchange(V a, V b, V& low, V& high) {
  I take_low{}, take_high{};
  for (int j = 0; j < kLanes; ++j) {
    take_low[j] = (j & S) ? kLanes + (j ^ S) : j;
    take_high[j] = (j & S) ? kLanes + j : (j ^ S);
  }
  low = __builtin_shuffle(a, b, take_low);
  high = __builtin_shuffle(a, b, take_high);
}

template <int S>
INLAID_INLINE void transpose_step(V (&rows)[kLanes]) {
  if constexpr (S < kLanes) {
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; ++i) {
      if ((i & S) == 0) exchange<S>(rows[i], rows[i + S], rows[i], rows[i + S]);
    }
    transpose_step<2 * S>(rows);
  }
}
// rows[i][j] becomes rows[j][i].
INLAID_INLINE void transpose_square(V (&rows)[kLanes]) {
  transpose_step<1>(rows);
}

template <int S>
INLAID_INLINE void sum_step(V (&rows)[kLanes]) {
  if constexpr (S < kLanes) {
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; i += 2 * S) {
      V low, high;
      exchange<S>(rows[i], rows[i + S], low, high);
      rows[i] = low + high;
    }
    sum_step<2 * S>(rows);
  }
}
// Lane i of the result is the sum of the lanes of rows[i]: kLanes horizontal sums for three instructions
// each.
INLAID_INLINE V sum_each(V (&rows)[kLanes]) {
  sum_step<1>(rows);
  return rows[0];
}

}  // namespace inlaid::kernels::INLAID_LEVEL

#endif  // INLAID_KERNELS_SIMD_SIMD_H_

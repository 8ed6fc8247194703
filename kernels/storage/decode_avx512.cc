// Compiled for AVX-512: only code with internal linkage and intrinsics here (see decode_avx2.cc).
//
// A 4-bit block has only 16 values. They are computed once, in one register, as one product (and one sum),
// each rounded as the format says; a permutation then looks up 16 nibbles at a time.
#include <immintrin.h>

#include "kernels/storage/groups_avx2.h"
#include "kernels/storage/storage.h"

namespace inlaid::kernels::avx512 {
namespace {

// 32 nibbles through the table: low nibbles are the first 16 values, high nibbles the last 16. The
// permutation reads only the low four bits of its indices.
void look_up(const uint8_t* nibbles, __m512 table, float* dst) {
  const __m512i packed = _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(nibbles)));
  _mm512_storeu_ps(dst, _mm512_permutexvar_ps(packed, table));
  _mm512_storeu_ps(dst + 16, _mm512_permutexvar_ps(_mm512_srli_epi32(packed, 4), table));
}

void decode_q4_0(const uint8_t* src, int64_t count, float* dst) {
  const __m512 levels = _mm512_setr_ps(-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7);
  for (; count > 0; count -= 32, src += 18, dst += 32) {
    look_up(src + 2, _mm512_mul_ps(_mm512_set1_ps(half_at(src)), levels), dst);
  }
}

void decode_q4_1(const uint8_t* src, int64_t count, float* dst) {
  const __m512 levels = _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  for (; count > 0; count -= 32, src += 20, dst += 32) {
    const __m512 products = _mm512_mul_ps(_mm512_set1_ps(half_at(src)), levels);
    look_up(src + 4, _mm512_add_ps(products, _mm512_set1_ps(half_at(src + 2))), dst);
  }
}

void decode_q8_0(const uint8_t* src, int64_t count, float* dst) {
  for (; count > 0; count -= 32, src += 34, dst += 32) {
    const __m512 d = _mm512_set1_ps(half_at(src));
    for (int j = 0; j < 32; j += 16) {
      const __m128i q = _mm_loadu_si128(reinterpret_cast<const __m128i*>(src + 2 + j));
      _mm512_storeu_ps(dst + j, _mm512_mul_ps(d, _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(q))));
    }
  }
}

__m512 widen_i8(__m128i bytes) {
  return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes));
}

struct Store {
  template <int kStep>
  static void scaled(__m256i q, const float* scales, float* dst) {
    const __m512 low = widen_i8(_mm256_castsi256_si128(q)), high = widen_i8(_mm256_extracti128_si256(q, 1));
    _mm512_storeu_ps(dst, _mm512_mul_ps(_mm512_set1_ps(scales[0]), low));
    _mm512_storeu_ps(dst + 16, _mm512_mul_ps(_mm512_set1_ps(scales[kStep]), high));
  }
  template <int kStep>
  static void scaled_less(__m256i q, const float* scales, const float* minima, float* dst) {
    const __m512 low = widen_i8(_mm256_castsi256_si128(q)), high = widen_i8(_mm256_extracti128_si256(q, 1));
    const __m512 a = _mm512_set1_ps(minima[0]), b = _mm512_set1_ps(minima[kStep]);
    _mm512_storeu_ps(dst, _mm512_sub_ps(_mm512_mul_ps(_mm512_set1_ps(scales[0]), low), a));
    _mm512_storeu_ps(dst + 16, _mm512_sub_ps(_mm512_mul_ps(_mm512_set1_ps(scales[kStep]), high), b));
  }
};

}  // namespace

void to_f32(DType type, const void* src, int64_t count, float* dst) {
  const auto* bytes = static_cast<const uint8_t*>(src);
  switch (type) {
    case DType::q4_0:
      decode_q4_0(bytes, count, dst);
      break;
    case DType::q4_1:
      decode_q4_1(bytes, count, dst);
      break;
    case DType::q8_0:
      decode_q8_0(bytes, count, dst);
      break;
    default:
      if (!decode_groups<Store>(type, bytes, 0, count, dst)) avx2::to_f32(type, src, count, dst);
      break;
  }
}

void to_f32_part(DType type, const void* row, int64_t begin, int64_t count, float* dst) {
  const auto* bytes = static_cast<const uint8_t*>(row);
  if (decode_groups<Store>(type, bytes, begin, count, dst)) return;
  to_f32(type, bytes + dtype_bytes(type, begin), count, dst);
}

}  // namespace inlaid::kernels::avx512

// Compiled for AVX2: only code with internal linkage and intrinsics here, so that nothing compiled for this
// instruction set can be merged with a function of the baseline.
#include <immintrin.h>

#include "kernels/storage/groups_avx2.h"
#include "kernels/storage/storage.h"

namespace inlaid::kernels::avx2 {
namespace {

// Eight unsigned (or signed) bytes as f32.
__m256 widen_u8(__m128i bytes) {
  return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes));
}
__m256 widen_i8(__m128i bytes) {
  return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes));
}

void decode_bf16(const uint8_t* src, int64_t count, float* dst) {
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m128i h = _mm_loadu_si128(reinterpret_cast<const __m128i*>(src + 2 * i));
    _mm256_storeu_ps(dst + i, _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16)));
  }
  for (; i < count; ++i) {
    const int bits = static_cast<int>(static_cast<uint32_t>(src[2 * i]) << 16 |
                                      static_cast<uint32_t>(src[2 * i + 1]) << 24);
    _mm_store_ss(dst + i, _mm_castsi128_ps(_mm_cvtsi32_si128(bits)));
  }
}

void decode_f16(const uint8_t* src, int64_t count, float* dst) {
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m128i h = _mm_loadu_si128(reinterpret_cast<const __m128i*>(src + 2 * i));
    _mm256_storeu_ps(dst + i, _mm256_cvtph_ps(h));
  }
  for (; i < count; ++i) dst[i] = half_at(src + 2 * i);
}

// Low nibbles are the first 16 values, high nibbles the last 16.
void split_nibbles(const uint8_t* src, __m128i* low, __m128i* high) {
  const __m128i packed = _mm_loadu_si128(reinterpret_cast<const __m128i*>(src));
  const __m128i mask = _mm_set1_epi8(15);
  *low = _mm_and_si128(packed, mask);
  *high = _mm_and_si128(_mm_srli_epi16(packed, 4), mask);
}

void decode_q4_0(const uint8_t* src, int64_t count, float* dst) {
  const __m128i eight = _mm_set1_epi8(8);
  for (; count > 0; count -= 32, src += 18, dst += 32) {
    const __m256 d = _mm256_set1_ps(half_at(src));
    __m128i low, high;
    split_nibbles(src + 2, &low, &high);
    low = _mm_sub_epi8(low, eight);
    high = _mm_sub_epi8(high, eight);
    _mm256_storeu_ps(dst, _mm256_mul_ps(d, widen_i8(low)));
    _mm256_storeu_ps(dst + 8, _mm256_mul_ps(d, widen_i8(_mm_srli_si128(low, 8))));
    _mm256_storeu_ps(dst + 16, _mm256_mul_ps(d, widen_i8(high)));
    _mm256_storeu_ps(dst + 24, _mm256_mul_ps(d, widen_i8(_mm_srli_si128(high, 8))));
  }
}

void decode_q4_1(const uint8_t* src, int64_t count, float* dst) {
  for (; count > 0; count -= 32, src += 20, dst += 32) {
    const __m256 d = _mm256_set1_ps(half_at(src));
    const __m256 m = _mm256_set1_ps(half_at(src + 2));
    __m128i low, high;
    split_nibbles(src + 4, &low, &high);
    _mm256_storeu_ps(dst, _mm256_add_ps(_mm256_mul_ps(d, widen_u8(low)), m));
    _mm256_storeu_ps(dst + 8, _mm256_add_ps(_mm256_mul_ps(d, widen_u8(_mm_srli_si128(low, 8))), m));
    _mm256_storeu_ps(dst + 16, _mm256_add_ps(_mm256_mul_ps(d, widen_u8(high)), m));
    _mm256_storeu_ps(dst + 24, _mm256_add_ps(_mm256_mul_ps(d, widen_u8(_mm_srli_si128(high, 8))), m));
  }
}

void decode_q8_0(const uint8_t* src, int64_t count, float* dst) {
  for (; count > 0; count -= 32, src += 34, dst += 32) {
    const __m256 d = _mm256_set1_ps(half_at(src));
    for (int j = 0; j < 32; j += 8) {
      const __m128i q = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(src + 2 + j));
      _mm256_storeu_ps(dst + j, _mm256_mul_ps(d, widen_i8(q)));
    }
  }
}

struct Store {
  template <int kStep>
  static void scaled(__m256i q, const float* scales, float* dst) {
    const __m128i low = _mm256_castsi256_si128(q), high = _mm256_extracti128_si256(q, 1);
    const __m256 first = _mm256_set1_ps(scales[0]), last = _mm256_set1_ps(scales[kStep]);
    _mm256_storeu_ps(dst, _mm256_mul_ps(first, widen_i8(low)));
    _mm256_storeu_ps(dst + 8, _mm256_mul_ps(first, widen_i8(_mm_srli_si128(low, 8))));
    _mm256_storeu_ps(dst + 16, _mm256_mul_ps(last, widen_i8(high)));
    _mm256_storeu_ps(dst + 24, _mm256_mul_ps(last, widen_i8(_mm_srli_si128(high, 8))));
  }
  template <int kStep>
  static void scaled_less(__m256i q, const float* scales, const float* minima, float* dst) {
    const __m128i low = _mm256_castsi256_si128(q), high = _mm256_extracti128_si256(q, 1);
    const __m256 first = _mm256_set1_ps(scales[0]), last = _mm256_set1_ps(scales[kStep]);
    const __m256 a = _mm256_set1_ps(minima[0]), b = _mm256_set1_ps(minima[kStep]);
    _mm256_storeu_ps(dst, _mm256_sub_ps(_mm256_mul_ps(first, widen_i8(low)), a));
    _mm256_storeu_ps(dst + 8, _mm256_sub_ps(_mm256_mul_ps(first, widen_i8(_mm_srli_si128(low, 8))), a));
    _mm256_storeu_ps(dst + 16, _mm256_sub_ps(_mm256_mul_ps(last, widen_i8(high)), b));
    _mm256_storeu_ps(dst + 24, _mm256_sub_ps(_mm256_mul_ps(last, widen_i8(_mm_srli_si128(high, 8))), b));
  }
};

}  // namespace

void to_f32(DType type, const void* src, int64_t count, float* dst) {
  const auto* bytes = static_cast<const uint8_t*>(src);
  switch (type) {
    case DType::bf16:
      decode_bf16(bytes, count, dst);
      break;
    case DType::f16:
      decode_f16(bytes, count, dst);
      break;
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
      if (!decode_groups<Store>(type, bytes, 0, count, dst)) portable::to_f32(type, src, count, dst);
      break;
  }
}

void to_f32_part(DType type, const void* row, int64_t begin, int64_t count, float* dst) {
  const auto* bytes = static_cast<const uint8_t*>(row);
  if (decode_groups<Store>(type, bytes, begin, count, dst)) return;
  to_f32(type, bytes + dtype_bytes(type, begin), count, dst);
}

}  // namespace inlaid::kernels::avx2

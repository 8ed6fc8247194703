// Decoding of K-quants and of five-bit blocks by vectors, for the two levels that have 256-bit integers: 32
// integers of a group come together as signed bytes. A level brings Store, which widens and writes them:
//   scaled<step>(q, scales, dst)               dst = scale * q
//   scaled_less<step>(q, scales, minima, dst)  dst = scale * q - minimum
// with scales[0] and minima[0] for the first 16 values, scales[step] and minima[step] for the last 16.
// Internal linkage throughout.
#ifndef INLAID_KERNELS_STORAGE_GROUPS_AVX2_H_
#define INLAID_KERNELS_STORAGE_GROUPS_AVX2_H_

#include <immintrin.h>

#include <cstring>

#include "kernels/storage/storage.h"
#include "kernels/storage/super_block.h"

namespace inlaid::kernels {
namespace {

#define INLAID_DECODE_INLINE inline __attribute__((always_inline))

INLAID_DECODE_INLINE float half_at(const uint8_t* p) {
  return _cvtsh_ss(static_cast<unsigned short>(p[0] | p[1] << 8));
}
INLAID_DECODE_INLINE uint32_t word_at(const uint8_t* p) {
  uint32_t w;
  std::memcpy(&w, p, sizeof w);
  return w;
}
INLAID_DECODE_INLINE __m256i bytes_at(const uint8_t* p) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}

// factors * d, eight at a time.
INLAID_DECODE_INLINE void scale8(float d, __m256i factors, float* dst) {
  _mm256_storeu_ps(dst, _mm256_mul_ps(_mm256_set1_ps(d), _mm256_cvtepi32_ps(factors)));
}
INLAID_DECODE_INLINE void scale16(float d, __m128i signed_bytes, float* dst) {
  scale8(d, _mm256_cvtepi8_epi32(signed_bytes), dst);
  scale8(d, _mm256_cvtepi8_epi32(_mm_srli_si128(signed_bytes, 8)), dst + 8);
}

// The 32 values of a run moved down by `shift` bits; only the low 8 - shift bits of each byte are its own.
INLAID_DECODE_INLINE __m256i shifted(__m256i run, int shift) {
  return _mm256_srl_epi16(run, _mm_cvtsi32_si128(shift));
}
// `value` in the bytes where `run` has bit g set, else 0.
INLAID_DECODE_INLINE __m256i where_bit(__m256i run, int g, int value) {
  const __m256i bit = _mm256_set1_epi8(static_cast<char>(1 << g));
  return _mm256_and_si256(_mm256_cmpeq_epi8(_mm256_and_si256(run, bit), bit),
                          _mm256_set1_epi8(static_cast<char>(value)));
}

// The eight scales and minima of q4_k and q5_k; see six_bits.h for the packing.
INLAID_DECODE_INLINE void scales_and_minima(const uint8_t* block, const uint8_t* packed, float* scales,
                                            float* minima) {
  const uint32_t a = word_at(packed), b = word_at(packed + 4), c = word_at(packed + 8);
  const uint32_t six = 0x3f3f3f3f, four = 0x0f0f0f0f, two = 0x30303030;
  const uint32_t high_scales = (c & four) | (a >> 2 & two), high_minima = (c >> 4 & four) | (b >> 2 & two);
  const auto pair = [](uint32_t low, uint32_t high) {
    return _mm256_cvtepu8_epi32(
        _mm_cvtsi64_si128(static_cast<int64_t>(uint64_t{high} << 32 | uint64_t{low})));
  };
  scale8(half_at(block), pair(a & six, high_scales), scales);
  scale8(half_at(block + 2), pair(b & six, high_minima), minima);
}

template <typename Store>
INLAID_DECODE_INLINE void groups_q2_k(const uint8_t* block, int first, int end, float* dst) {
  alignas(32) float scales[16], minima[16];
  const __m128i packed = _mm_loadu_si128(reinterpret_cast<const __m128i*>(block + Q2K::kScales));
  const __m128i four = _mm_set1_epi8(15);
  scale16(half_at(block + Q2K::kScale), _mm_and_si128(packed, four), scales);
  scale16(half_at(block + Q2K::kMinimum), _mm_and_si128(_mm_srli_epi16(packed, 4), four), minima);
  for (int g = first; g < end; ++g, dst += kGroup) {
    const __m256i q = _mm256_and_si256(shifted(bytes_at(block + Q2K::kLow + g / 4 * 32), g % 4 * 2),
                                       _mm256_set1_epi8(3));
    Store::template scaled_less<1>(q, scales + 2 * g, minima + 2 * g, dst);
  }
}

template <typename Store>
INLAID_DECODE_INLINE void groups_q3_k(const uint8_t* block, int first, int end, float* dst) {
  alignas(32) float scales[16];
  const uint32_t a = word_at(block + Q3K::kScales), b = word_at(block + Q3K::kScales + 4);
  const uint32_t c = word_at(block + Q3K::kScales + 8);
  const uint32_t four = 0x0f0f0f0f, two = 0x30303030;
  const __m128i six = _mm_set_epi32(
      static_cast<int>((b >> 4 & four) | (c >> 2 & two)), static_cast<int>((a >> 4 & four) | (c & two)),
      static_cast<int>((b & four) | (c << 2 & two)), static_cast<int>((a & four) | (c << 4 & two)));
  scale16(half_at(block + Q3K::kScale), _mm_sub_epi8(six, _mm_set1_epi8(32)), scales);
  const __m256i high = bytes_at(block + Q3K::kHigh);
  for (int g = first; g < end; ++g, dst += kGroup) {
    const __m256i low = _mm256_and_si256(shifted(bytes_at(block + Q3K::kLow + g / 4 * 32), g % 4 * 2),
                                         _mm256_set1_epi8(3));
    const __m256i q = _mm256_sub_epi8(_mm256_add_epi8(low, where_bit(high, g, 4)), _mm256_set1_epi8(4));
    Store::template scaled<1>(q, scales + 2 * g, dst);
  }
}

template <typename Store>
INLAID_DECODE_INLINE void groups_q4_k(const uint8_t* block, int first, int end, float* dst) {
  alignas(32) float scales[8], minima[8];
  scales_and_minima(block, block + Q4K::kScales, scales, minima);
  for (int g = first; g < end; ++g, dst += kGroup) {
    const __m256i q = _mm256_and_si256(shifted(bytes_at(block + Q4K::kLow + g / 2 * 32), g % 2 * 4),
                                       _mm256_set1_epi8(15));
    Store::template scaled_less<0>(q, scales + g, minima + g, dst);
  }
}

template <typename Store>
INLAID_DECODE_INLINE void groups_q5_k(const uint8_t* block, int first, int end, float* dst) {
  alignas(32) float scales[8], minima[8];
  scales_and_minima(block, block + Q5K::kScales, scales, minima);
  const __m256i high = bytes_at(block + Q5K::kHigh);
  for (int g = first; g < end; ++g, dst += kGroup) {
    const __m256i low = _mm256_and_si256(shifted(bytes_at(block + Q5K::kLow + g / 2 * 32), g % 2 * 4),
                                         _mm256_set1_epi8(15));
    const __m256i q = _mm256_add_epi8(low, where_bit(high, g, 16));
    Store::template scaled_less<0>(q, scales + g, minima + g, dst);
  }
}

template <typename Store>
INLAID_DECODE_INLINE void groups_q6_k(const uint8_t* block, int first, int end, float* dst) {
  alignas(32) float scales[16];
  scale16(half_at(block + Q6K::kScale),
          _mm_loadu_si128(reinterpret_cast<const __m128i*>(block + Q6K::kScales)), scales);
  for (int g = first; g < end; ++g, dst += kGroup) {
    const __m256i low = bytes_at(block + Q6K::kLow + g / 4 * 64 + g % 2 * 32);
    const __m256i high = bytes_at(block + Q6K::kHigh + g / 4 * 32);
    const __m256i top = _mm256_and_si256(shifted(high, g % 4 * 2), _mm256_set1_epi8(3));
    const __m256i q = _mm256_or_si256(_mm256_and_si256(shifted(low, g % 4 / 2 * 4), _mm256_set1_epi8(15)),
                                      _mm256_slli_epi16(top, 4));
    Store::template scaled<1>(_mm256_sub_epi8(q, _mm256_set1_epi8(32)), scales + 2 * g, dst);
  }
}

// 32 values of five bits: nibbles, low ones first, and a bit each.
INLAID_DECODE_INLINE __m256i five_bits(const uint8_t* bits, const uint8_t* nibbles) {
  const __m128i packed = _mm_loadu_si128(reinterpret_cast<const __m128i*>(nibbles));
  const __m256i both = _mm256_set_m128i(_mm_srli_epi16(packed, 4), packed);
  const __m256i low = _mm256_and_si256(both, _mm256_set1_epi8(15));
  // Byte j looks at bit j % 8 of byte j / 8.
  const __m256i spread =
      _mm256_shuffle_epi8(_mm256_set1_epi32(static_cast<int>(word_at(bits))),
                          _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303));
  const __m256i bit = _mm256_set1_epi64x(static_cast<int64_t>(0x8040201008040201));
  const __m256i set = _mm256_cmpeq_epi8(_mm256_and_si256(spread, bit), bit);
  return _mm256_or_si256(low, _mm256_and_si256(set, _mm256_set1_epi8(16)));
}

template <typename Store>
INLAID_DECODE_INLINE void decode_q5_0(const uint8_t* src, int64_t count, float* dst) {
  for (; count > 0; count -= 32, src += 22, dst += 32) {
    const float d = half_at(src);
    const __m256i q = _mm256_sub_epi8(five_bits(src + 2, src + 6), _mm256_set1_epi8(16));
    Store::template scaled<0>(q, &d, dst);
  }
}

template <typename Store>
INLAID_DECODE_INLINE void decode_q5_1(const uint8_t* src, int64_t count, float* dst) {
  for (; count > 0; count -= 32, src += 24, dst += 32) {
    const float d = half_at(src), minimum = -half_at(src + 2);
    Store::template scaled_less<0>(five_bits(src + 4, src + 8), &d, &minimum, dst);
  }
}

// True if `type` is one of these, and then decoded.
template <typename Store>
INLAID_DECODE_INLINE bool decode_groups(DType type, const uint8_t* row, int64_t begin, int64_t count,
                                        float* dst) {
  switch (type) {
    case DType::q5_0:
      decode_q5_0<Store>(row + begin / 32 * 22, count, dst);
      return true;
    case DType::q5_1:
      decode_q5_1<Store>(row + begin / 32 * 24, count, dst);
      return true;
    case DType::q2_k:
      walk_row(row, Q2K::kBytes, begin, count, dst, groups_q2_k<Store>);
      return true;
    case DType::q3_k:
      walk_row(row, Q3K::kBytes, begin, count, dst, groups_q3_k<Store>);
      return true;
    case DType::q4_k:
      walk_row(row, Q4K::kBytes, begin, count, dst, groups_q4_k<Store>);
      return true;
    case DType::q5_k:
      walk_row(row, Q5K::kBytes, begin, count, dst, groups_q5_k<Store>);
      return true;
    case DType::q6_k:
      walk_row(row, Q6K::kBytes, begin, count, dst, groups_q6_k<Store>);
      return true;
    default:
      return false;
  }
}

}  // namespace
}  // namespace inlaid::kernels

#endif  // INLAID_KERNELS_STORAGE_GROUPS_AVX2_H_

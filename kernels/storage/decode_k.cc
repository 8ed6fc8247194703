// K-quants, portable: plain loops over 32 values that a compiler turns into vector code. See super_block.h.
#include <cstring>

#include "kernels/storage/half.h"
#include "kernels/storage/six_bits.h"
#include "kernels/storage/storage.h"
#include "kernels/storage/super_block.h"

namespace inlaid::kernels::portable {
namespace {

float half_at(const uint8_t* p) {
  uint16_t h;
  std::memcpy(&h, p, sizeof h);
  return f16_to_f32(h);
}

void groups_q2_k(const uint8_t* block, int first, int end, float* dst) {
  const float d = half_at(block + Q2K::kScale), dmin = half_at(block + Q2K::kMinimum);
  for (int g = first; g < end; ++g, dst += kGroup) {
    const uint8_t* low = block + Q2K::kLow + g / 4 * 32;
    const int shift = g % 4 * 2;
    for (int half = 0; half < 2; ++half) {
      const uint8_t s = block[Q2K::kScales + 2 * g + half];
      const float scale = d * static_cast<float>(s & 15), minimum = dmin * static_cast<float>(s >> 4);
      for (int j = 16 * half; j < 16 * half + 16; ++j) {
        dst[j] = scale * static_cast<float>(low[j] >> shift & 3) - minimum;
      }
    }
  }
}

void groups_q3_k(const uint8_t* block, int first, int end, float* dst) {
  const float d = half_at(block + Q3K::kScale);
  for (int g = first; g < end; ++g, dst += kGroup) {
    const uint8_t *low = block + Q3K::kLow + g / 4 * 32, *high = block + Q3K::kHigh;
    const int shift = g % 4 * 2;
    for (int half = 0; half < 2; ++half) {
      const float scale = d * static_cast<float>(signed_scale(block + Q3K::kScales, 2 * g + half));
      for (int j = 16 * half; j < 16 * half + 16; ++j) {
        dst[j] = scale * static_cast<float>((low[j] >> shift & 3) + (high[j] >> g & 1) * 4 - 4);
      }
    }
  }
}

void groups_q4_k(const uint8_t* block, int first, int end, float* dst) {
  const float d = half_at(block + Q4K::kScale), dmin = half_at(block + Q4K::kMinimum);
  for (int g = first; g < end; ++g, dst += kGroup) {
    const ScaleAndMinimum s = scale_and_minimum(block + Q4K::kScales, g);
    const float scale = d * static_cast<float>(s.scale), minimum = dmin * static_cast<float>(s.minimum);
    const uint8_t* low = block + Q4K::kLow + g / 2 * 32;
    const int shift = g % 2 * 4;
    for (int j = 0; j < kGroup; ++j) dst[j] = scale * static_cast<float>(low[j] >> shift & 15) - minimum;
  }
}

void groups_q5_k(const uint8_t* block, int first, int end, float* dst) {
  const float d = half_at(block + Q5K::kScale), dmin = half_at(block + Q5K::kMinimum);
  for (int g = first; g < end; ++g, dst += kGroup) {
    const ScaleAndMinimum s = scale_and_minimum(block + Q5K::kScales, g);
    const float scale = d * static_cast<float>(s.scale), minimum = dmin * static_cast<float>(s.minimum);
    const uint8_t *low = block + Q5K::kLow + g / 2 * 32, *high = block + Q5K::kHigh;
    const int shift = g % 2 * 4;
    for (int j = 0; j < kGroup; ++j) {
      dst[j] = scale * static_cast<float>((low[j] >> shift & 15) + (high[j] >> g & 1) * 16) - minimum;
    }
  }
}

void groups_q6_k(const uint8_t* block, int first, int end, float* dst) {
  const float d = half_at(block + Q6K::kScale);
  for (int g = first; g < end; ++g, dst += kGroup) {
    const uint8_t* low = block + Q6K::kLow + g / 4 * 64 + g % 2 * 32;
    const uint8_t* high = block + Q6K::kHigh + g / 4 * 32;
    const int low_shift = g % 4 / 2 * 4, high_shift = g % 4 * 2;
    for (int half = 0; half < 2; ++half) {
      const float scale = d * static_cast<float>(static_cast<int8_t>(block[Q6K::kScales + 2 * g + half]));
      for (int j = 16 * half; j < 16 * half + 16; ++j) {
        const int q = (low[j] >> low_shift & 15) + (high[j] >> high_shift & 3) * 16;
        dst[j] = scale * static_cast<float>(q - 32);
      }
    }
  }
}

}  // namespace

void to_f32_part(DType type, const void* row, int64_t begin, int64_t count, float* dst) {
  const auto* bytes = static_cast<const uint8_t*>(row);
  switch (type) {
    case DType::q2_k:
      walk_row(bytes, Q2K::kBytes, begin, count, dst, groups_q2_k);
      break;
    case DType::q3_k:
      walk_row(bytes, Q3K::kBytes, begin, count, dst, groups_q3_k);
      break;
    case DType::q4_k:
      walk_row(bytes, Q4K::kBytes, begin, count, dst, groups_q4_k);
      break;
    case DType::q5_k:
      walk_row(bytes, Q5K::kBytes, begin, count, dst, groups_q5_k);
      break;
    case DType::q6_k:
      walk_row(bytes, Q6K::kBytes, begin, count, dst, groups_q6_k);
      break;
    default:
      to_f32(type, bytes + dtype_bytes(type, begin), count, dst);
      break;
  }
}

}  // namespace inlaid::kernels::portable

#include <cstring>

#include "kernels/storage/half.h"
#include "kernels/storage/storage.h"

namespace inlaid::kernels::portable {
namespace {

uint16_t load16(const uint8_t* p) {
  uint16_t v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

uint32_t load32(const uint8_t* p) {
  uint32_t v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

template <float (*widen)(uint16_t)>
void decode_half(const uint8_t* src, int64_t count, float* dst) {
  for (int64_t i = 0; i < count; ++i) dst[i] = widen(load16(src + 2 * i));
}

void decode_q4_0(const uint8_t* src, int64_t count, float* dst) {
  for (; count > 0; count -= 32, src += 18, dst += 32) {
    const float d = f16_to_f32(load16(src));
    for (int j = 0; j < 16; ++j) {
      dst[j] = d * static_cast<float>((src[2 + j] & 15) - 8);
      dst[j + 16] = d * static_cast<float>((src[2 + j] >> 4) - 8);
    }
  }
}

void decode_q4_1(const uint8_t* src, int64_t count, float* dst) {
  for (; count > 0; count -= 32, src += 20, dst += 32) {
    const float d = f16_to_f32(load16(src));
    const float m = f16_to_f32(load16(src + 2));
    for (int j = 0; j < 16; ++j) {
      dst[j] = d * static_cast<float>(src[4 + j] & 15) + m;
      dst[j + 16] = d * static_cast<float>(src[4 + j] >> 4) + m;
    }
  }
}

void decode_q8_0(const uint8_t* src, int64_t count, float* dst) {
  for (; count > 0; count -= 32, src += 34, dst += 32) {
    const float d = f16_to_f32(load16(src));
    for (int j = 0; j < 32; ++j) dst[j] = d * static_cast<float>(static_cast<int8_t>(src[2 + j]));
  }
}

// The fifth bits of values j and j + 16, on top of their nibbles.
int five_low(uint32_t high, const uint8_t* q, int j) {
  return (q[j] & 15) | static_cast<int>((high >> j & 1) << 4);
}
int five_high(uint32_t high, const uint8_t* q, int j) {
  return q[j] >> 4 | static_cast<int>((high >> (j + 16) & 1) << 4);
}

void decode_q5_0(const uint8_t* src, int64_t count, float* dst) {
  for (; count > 0; count -= 32, src += 22, dst += 32) {
    const float d = f16_to_f32(load16(src));
    const uint32_t high = load32(src + 2);
    for (int j = 0; j < 16; ++j) {
      dst[j] = d * static_cast<float>(five_low(high, src + 6, j) - 16);
      dst[j + 16] = d * static_cast<float>(five_high(high, src + 6, j) - 16);
    }
  }
}

void decode_q5_1(const uint8_t* src, int64_t count, float* dst) {
  for (; count > 0; count -= 32, src += 24, dst += 32) {
    const float d = f16_to_f32(load16(src));
    const float m = f16_to_f32(load16(src + 2));
    const uint32_t high = load32(src + 4);
    for (int j = 0; j < 16; ++j) {
      dst[j] = d * static_cast<float>(five_low(high, src + 8, j)) + m;
      dst[j + 16] = d * static_cast<float>(five_high(high, src + 8, j)) + m;
    }
  }
}

}  // namespace

void to_f32(DType type, const void* src, int64_t count, float* dst) {
  const auto* bytes = static_cast<const uint8_t*>(src);
  switch (type) {
    case DType::f32:
      std::memcpy(dst, src, static_cast<size_t>(count) * sizeof(float));
      break;
    case DType::bf16:
      decode_half<bf16_to_f32>(bytes, count, dst);
      break;
    case DType::f16:
      decode_half<f16_to_f32>(bytes, count, dst);
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
    case DType::q5_0:
      decode_q5_0(bytes, count, dst);
      break;
    case DType::q5_1:
      decode_q5_1(bytes, count, dst);
      break;
    case DType::q2_k:
    case DType::q3_k:
    case DType::q4_k:
    case DType::q5_k:
    case DType::q6_k:
      to_f32_part(type, src, 0, count, dst);
      break;
    default:
      break;  // no storage type
  }
}

}  // namespace inlaid::kernels::portable

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/storage/encode_q4_k.h"
#include "kernels/storage/half.h"
#include "kernels/storage/storage.h"

namespace inlaid::kernels {
namespace {

void store16(uint8_t* p, uint16_t v) {
  std::memcpy(p, &v, sizeof v);
}

// Truncation to 0 .. most; a NaN gives 0, so that no conversion is undefined.
uint8_t truncated(float x, float most) {
  if (!(x > 0)) return 0;
  return static_cast<uint8_t>(std::min(x, most));
}
uint8_t nibble(float x) {
  return truncated(x, 15.0f);
}

int8_t rounded_byte(float x) {
  if (std::isnan(x)) return 0;
  return static_cast<int8_t>(std::round(std::clamp(x, -127.0f, 127.0f)));
}

// A scale for the block, or NaN where no scale can express a value.
float scale_or_nan(const float* x, float d) {
  for (int j = 0; j < 32; ++j) {
    if (!std::isfinite(x[j])) return std::numeric_limits<float>::quiet_NaN();
  }
  return d;
}

float inverse(float d) {
  return d != 0 ? 1.0f / d : 0.0f;
}

// The value of largest magnitude, the first of several.
float largest(const float* x) {
  float value = 0;
  for (int j = 0; j < 32; ++j) {
    if (std::fabs(x[j]) > std::fabs(value)) value = x[j];
  }
  return value;
}

void encode_q4_0(const float* x, uint8_t* out) {
  const float d = scale_or_nan(x, largest(x) / -8);
  const float id = inverse(d);
  store16(out, f32_to_f16(d));
  for (int j = 0; j < 16; ++j) {
    const uint8_t low = nibble(x[j] * id + 8.5f);
    const uint8_t high = nibble(x[j + 16] * id + 8.5f);
    out[2 + j] = static_cast<uint8_t>(low | high << 4);
  }
}

void encode_q5_0(const float* x, uint8_t* out) {
  const float d = scale_or_nan(x, largest(x) / -16);
  const float id = inverse(d);
  store16(out, f32_to_f16(d));
  uint32_t high_bits = 0;
  for (int j = 0; j < 16; ++j) {
    const uint8_t low = truncated(x[j] * id + 16.5f, 31.0f);
    const uint8_t high = truncated(x[j + 16] * id + 16.5f, 31.0f);
    out[6 + j] = static_cast<uint8_t>((low & 15) | (high & 15) << 4);
    high_bits |= uint32_t{low} >> 4 << j | uint32_t{high} >> 4 << (j + 16);
  }
  std::memcpy(out + 2, &high_bits, sizeof high_bits);
}

void encode_q4_1(const float* x, uint8_t* out) {
  float low_value = x[0], high_value = x[0];
  for (int j = 1; j < 32; ++j) {
    low_value = std::min(low_value, x[j]);
    high_value = std::max(high_value, x[j]);
  }
  const float d = scale_or_nan(x, (high_value - low_value) / 15);
  const float id = inverse(d);
  store16(out, f32_to_f16(d));
  store16(out + 2, f32_to_f16(low_value));
  for (int j = 0; j < 16; ++j) {
    const uint8_t low = nibble((x[j] - low_value) * id + 0.5f);
    const uint8_t high = nibble((x[j + 16] - low_value) * id + 0.5f);
    out[4 + j] = static_cast<uint8_t>(low | high << 4);
  }
}

void encode_q8_0(const float* x, uint8_t* out) {
  float amax = 0;
  for (int j = 0; j < 32; ++j) amax = std::max(amax, std::fabs(x[j]));
  const float d = scale_or_nan(x, amax / 127);
  const float id = inverse(d);
  store16(out, f32_to_f16(d));
  for (int j = 0; j < 32; ++j) out[2 + j] = static_cast<uint8_t>(rounded_byte(x[j] * id));
}

template <void (*block)(const float*, uint8_t*)>
void encode_blocks(DType type, const float* src, int64_t count, uint8_t* dst) {
  const DTypeInfo& info = dtype_info(type);
  for (; count > 0; count -= info.block, src += info.block, dst += info.bytes) block(src, dst);
}

}  // namespace

void from_f32(DType type, const float* src, int64_t count, void* dst) {
  if (count == 0) return;  // then the pointers may be null
  auto* bytes = static_cast<uint8_t*>(dst);
  switch (type) {
    case DType::f32:
      std::memcpy(dst, src, static_cast<size_t>(count) * sizeof(float));
      break;
    case DType::bf16:
      for (int64_t i = 0; i < count; ++i) store16(bytes + 2 * i, f32_to_bf16(src[i]));
      break;
    case DType::f16:
      for (int64_t i = 0; i < count; ++i) store16(bytes + 2 * i, f32_to_f16(src[i]));
      break;
    case DType::q4_0:
      encode_blocks<encode_q4_0>(type, src, count, bytes);
      break;
    case DType::q4_1:
      encode_blocks<encode_q4_1>(type, src, count, bytes);
      break;
    case DType::q8_0:
      encode_blocks<encode_q8_0>(type, src, count, bytes);
      break;
    case DType::q5_0:
      encode_blocks<encode_q5_0>(type, src, count, bytes);
      break;
    case DType::q4_k:
      encode_blocks<encode_q4_k>(type, src, count, bytes);
      break;
    default:
      break;  // not an encoded type
  }
}

}  // namespace inlaid::kernels

// The two 16-bit float formats as pure functions of bits, in both directions.
//
// bf16 is the upper half of an f32. f16 (IEEE 754 binary16) has 5 exponent bits (bias 15) and 10 fraction
// bits; below 2^-14 it is subnormal, a multiple of 2^-24. Numerics: widening is exact. Narrowing rounds to
// nearest, ties to even; values that round past the largest finite one become infinite; a NaN stays a NaN
// (its quiet bit is set, the upper payload bits and the sign are kept), as VCVTPS2PH does. storage_test.cc
// checks every 16-bit pattern and, for every pair of neighbours, their midpoint and its two f32 neighbours.
#ifndef INLAID_KERNELS_STORAGE_HALF_H_
#define INLAID_KERNELS_STORAGE_HALF_H_

#include <bit>
#include <cstdint>

namespace inlaid::kernels {

constexpr float bf16_to_f32(uint16_t h) {
  return std::bit_cast<float>(uint32_t{h} << 16);
}

constexpr uint16_t f32_to_bf16(float x) {
  const uint32_t u = std::bit_cast<uint32_t>(x);
  if ((u & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>(u >> 16 | 0x40u);
  return static_cast<uint16_t>((u + 0x7fffu + (u >> 16 & 1u)) >> 16);
}

constexpr float f16_to_f32(uint16_t h) {
  const uint32_t sign = uint32_t{h} >> 15 << 31;
  const uint32_t magnitude = h & 0x7fffu;
  if (magnitude >= 0x7c00u) {  // infinity, or a NaN made quiet
    const uint32_t quiet = magnitude > 0x7c00u ? 0x400000u : 0u;
    return std::bit_cast<float>(sign | 0x7f800000u | (magnitude & 0x3ffu) << 13 | quiet);
  }
  if (magnitude < 0x400u) {  // subnormal: an integer times 2^-24, exact in f32
    const float value = static_cast<float>(magnitude) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(value));
  }
  return std::bit_cast<float>(sign | ((magnitude << 13) + (uint32_t{127 - 15} << 23)));
}

constexpr uint16_t f32_to_f16(float x) {
  const uint32_t u = std::bit_cast<uint32_t>(x);
  const uint32_t sign = u >> 16 & 0x8000u;
  const uint32_t magnitude = u & 0x7fffffffu;
  uint32_t h;
  if (magnitude > 0x7f800000u) {
    h = 0x7e00u | (magnitude >> 13 & 0x1ffu);
  } else if (magnitude >= 0x477ff000u) {  // half way past 65504, and above
    h = 0x7c00u;
  } else if (magnitude < 0x38800000u) {  // below 2^-14
    // Adding 0.5 leaves a number whose last fraction bit is worth 2^-24, so the addition itself rounds
    // correctly.
    h = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - std::bit_cast<uint32_t>(0.5f);
  } else {
    h = (magnitude - (uint32_t{127 - 15} << 23) + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
  }
  return static_cast<uint16_t>(sign | h);
}

}  // namespace inlaid::kernels

#endif  // INLAID_KERNELS_STORAGE_HALF_H_

// The oracle of convert: one value at a time, straight from the definition of the formats, also to and from
// f64.
#include <cstring>

#include "kernels/storage/half.h"
#include "kernels/storage/six_bits.h"
#include "kernels/storage/storage.h"
#include "kernels/storage/super_block.h"

namespace inlaid::kernels::reference {
namespace {

float half_at(const uint8_t* p) {
  return f16_to_f32(static_cast<uint16_t>(p[0] | p[1] << 8));
}

// The `bits` bits of value j where runs of 32 bytes hold several groups of 32 values, from the low bits up.
int packed(const uint8_t* p, int bits, int j) {
  const int groups = 8 / bits, g = j / 32;
  return p[g / groups * 32 + j % 32] >> (g % groups * bits) & ((1 << bits) - 1);
}

// The low four bits of value j of q6_k: groups 0 and 2, 1 and 3, 4 and 6, 5 and 7 share runs.
int low_of_q6_k(const uint8_t* p, int j) {
  const int g = j / 32;
  return p[(g / 4 * 2 + g % 2) * 32 + j % 32] >> (g % 4 / 2 * 4) & 15;
}

// Value j of a block of 256: (d * scale) * q - dmin * minimum.
float k_quant(DType type, const uint8_t* b, int j) {
  const auto scaled = [](const uint8_t* d, int factor) { return half_at(d) * static_cast<float>(factor); };
  switch (type) {
    case DType::q2_k: {
      const uint8_t s = b[Q2K::kScales + j / 16];
      return scaled(b + Q2K::kScale, s & 15) * static_cast<float>(packed(b + Q2K::kLow, 2, j)) -
             scaled(b + Q2K::kMinimum, s >> 4);
    }
    case DType::q3_k: {
      const int q = packed(b + Q3K::kLow, 2, j) - (packed(b + Q3K::kHigh, 1, j) ? 0 : 4);
      return scaled(b + Q3K::kScale, signed_scale(b + Q3K::kScales, j / 16)) * static_cast<float>(q);
    }
    case DType::q4_k: {
      const ScaleAndMinimum s = scale_and_minimum(b + Q4K::kScales, j / 32);
      return scaled(b + Q4K::kScale, s.scale) * static_cast<float>(packed(b + Q4K::kLow, 4, j)) -
             scaled(b + Q4K::kMinimum, s.minimum);
    }
    case DType::q5_k: {
      const ScaleAndMinimum s = scale_and_minimum(b + Q5K::kScales, j / 32);
      const int q = packed(b + Q5K::kLow, 4, j) | packed(b + Q5K::kHigh, 1, j) << 4;
      return scaled(b + Q5K::kScale, s.scale) * static_cast<float>(q) - scaled(b + Q5K::kMinimum, s.minimum);
    }
    default: {
      const int q = (low_of_q6_k(b + Q6K::kLow, j) | packed(b + Q6K::kHigh, 2, j) << 4) - 32;
      return scaled(b + Q6K::kScale, static_cast<int8_t>(b[Q6K::kScales + j / 16])) * static_cast<float>(q);
    }
  }
}

// Value `index` of a row that starts at `row`.
double value(DType type, const uint8_t* row, int64_t index) {
  const DTypeInfo& info = dtype_info(type);
  const uint8_t* block = row + index / info.block * info.bytes;
  const int j = static_cast<int>(index % info.block);
  const auto nibble = [j](const uint8_t* q) { return j < 16 ? q[j] & 15 : q[j - 16] >> 4; };
  const auto bit = [j](const uint8_t* p) { return p[j / 8] >> (j % 8) & 1; };
  switch (type) {
    case DType::f64: {
      double v;
      std::memcpy(&v, block, sizeof v);
      return v;
    }
    case DType::f32: {
      float v;
      std::memcpy(&v, block, sizeof v);
      return v;
    }
    case DType::bf16:
      return bf16_to_f32(static_cast<uint16_t>(block[0] | block[1] << 8));
    case DType::f16:
      return half_at(block);
    case DType::q4_0:
      return half_at(block) * static_cast<float>(nibble(block + 2) - 8);
    case DType::q4_1:
      return half_at(block) * static_cast<float>(nibble(block + 4)) + half_at(block + 2);
    case DType::q8_0:
      return half_at(block) * static_cast<float>(static_cast<int8_t>(block[2 + j]));
    case DType::q5_0:
      return half_at(block) * static_cast<float>((nibble(block + 6) | bit(block + 2) << 4) - 16);
    case DType::q5_1:
      return half_at(block) * static_cast<float>(nibble(block + 8) | bit(block + 4) << 4) +
             half_at(block + 2);
    case DType::q2_k:
    case DType::q3_k:
    case DType::q4_k:
    case DType::q5_k:
    case DType::q6_k:
      return k_quant(type, block, j);
    default:
      return 0;
  }
}

}  // namespace

void convert(const Context&, const ConvertArgs& args) {
  const TensorView& src = args.src;
  const TensorView& dst = args.dst;
  const bool matrix = src.rank == 2;
  const int64_t rows = matrix ? src.shape[0] : 1;
  const int64_t columns = matrix ? src.shape[1] : src.elements();
  const int64_t block = dtype_info(dst.dtype).block;
  for (int64_t r = 0; r < rows; ++r) {
    const uint8_t* in = src.as<const uint8_t>() + (matrix ? dtype_bytes(src.dtype, r * src.stride[0]) : 0);
    uint8_t* out = dst.as<uint8_t>() + (matrix ? dtype_bytes(dst.dtype, r * dst.stride[0]) : 0);
    for (int64_t c = 0; c < columns; c += block) {
      uint8_t* place = out + dtype_bytes(dst.dtype, c);
      if (dst.dtype == DType::f64) {
        const double v = value(src.dtype, in, c);
        std::memcpy(place, &v, sizeof v);
        continue;
      }
      float values[kSuperBlock];
      for (int64_t j = 0; j < block; ++j) values[j] = static_cast<float>(value(src.dtype, in, c + j));
      from_f32(dst.dtype, values, block, place);
    }
  }
}

}  // namespace inlaid::kernels::reference

// The oracle of convert: one value at a time, straight from the definition of the formats, also to and from
// f64.
#include <cstring>

#include "kernels/storage/half.h"
#include "kernels/storage/storage.h"

namespace inlaid::kernels::reference {
namespace {

float half_at(const uint8_t* p) {
  return f16_to_f32(static_cast<uint16_t>(p[0] | p[1] << 8));
}

// Value `index` of a row that starts at `row`.
double value(DType type, const uint8_t* row, int64_t index) {
  const DTypeInfo& info = dtype_info(type);
  const uint8_t* block = row + index / info.block * info.bytes;
  const int j = static_cast<int>(index % info.block);
  const auto nibble = [j](const uint8_t* q) { return j < 16 ? q[j] & 15 : q[j - 16] >> 4; };
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
      float values[32];
      for (int64_t j = 0; j < block; ++j) values[j] = static_cast<float>(value(src.dtype, in, c + j));
      from_f32(dst.dtype, values, block, place);
    }
  }
}

}  // namespace inlaid::kernels::reference

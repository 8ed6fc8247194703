#include "sdk/formats/encode.h"

#include <algorithm>
#include <cmath>

#include "kernels/storage/storage.h"
#include "sdk/base/error.h"

namespace inlaid::formats {
namespace {

constexpr int64_t kPiece = int64_t{1} << 18;  // values

// Largest magnitude that rounds to a finite value of the type, or of the scale of its blocks.
float largest(DType type) {
  switch (type) {
    case DType::f16:
      return 65519.996f;
    case DType::q8_0:
      return 65519.996f * 127.0f;
    case DType::q4_0:
      return 65519.996f * 8.0f;
    case DType::q5_0:
      return 65519.996f * 16.0f;
    case DType::q4_k:  // the fitted scale and minimum of a group may go beyond its values
      return 1e6f;
    case DType::bf16:
      return 3.3961e38f;
    default:
      return 3.4028235e38f;
  }
}

void check_range(const ExportTensor& tensor, DType dtype, std::span<const float> values) {
  const float limit = largest(dtype);
  for (float value : values) {
    if (!(std::fabs(value) <= limit)) {
      fail(Code::kOutOfRange, "tensor '", tensor.name, "' holds the value ", value, ", which ",
           dtype_name(dtype), " cannot store");
    }
  }
}

}  // namespace

void encode_tensor(const ExportTensor& tensor, DType dtype, const std::function<int64_t(int64_t)>& row_of,
                   const std::function<void(std::span<const std::byte>)>& sink) {
  const int64_t count = element_count(tensor.shape);
  byte_count(dtype, tensor.shape);  // refuses rows that are no multiple of a block
  if (count == 0) return;
  std::vector<float> values(static_cast<size_t>(count));
  tensor.values(values);
  check_range(tensor, dtype, values);

  const int64_t row = row_of ? count / tensor.shape[0] : count;
  const int64_t rows = count / row;
  const int64_t step = std::min(row, kPiece);  // both are multiples of a block where there are blocks
  std::vector<std::byte> bytes(static_cast<size_t>(kernels::dtype_bytes(dtype, std::max(step, kPiece))));
  size_t filled = 0;
  for (int64_t r = 0; r < rows; ++r) {
    const float* from = values.data() + (row_of ? row_of(r) : r) * row;
    for (int64_t at = 0; at < row; at += step) {
      const int64_t n = std::min(step, row - at);
      const size_t size = static_cast<size_t>(kernels::dtype_bytes(dtype, n));
      if (filled + size > bytes.size()) {
        sink(std::span(bytes).first(filled));
        filled = 0;
      }
      kernels::from_f32(dtype, from + at, n, bytes.data() + filled);
      filled += size;
    }
  }
  sink(std::span(bytes).first(filled));
}

}  // namespace inlaid::formats

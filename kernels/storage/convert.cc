// The convert kernel of the CPU levels: cuts both tensors into pieces of whole blocks and lets threads
// convert them. A piece between two stored types, or with f64 on one side, goes through f32 on the stack.
#include <algorithm>
#include <cstring>

#include "kernels/storage/storage.h"

namespace inlaid::kernels {
namespace {

constexpr int64_t kPiece = 1024;          // values through the stack at a time, a multiple of every block
constexpr int64_t kTaskValues = 1 << 16;  // values in a task

void load(DecodeRow decode, DType type, const std::byte* src, int64_t count, float* dst) {
  if (type != DType::f64) return decode(type, src, count, dst);
  const auto* values = reinterpret_cast<const double*>(src);
  for (int64_t i = 0; i < count; ++i) dst[i] = static_cast<float>(values[i]);
}

void store(DType type, const float* src, int64_t count, std::byte* dst) {
  if (type != DType::f64) return from_f32(type, src, count, dst);
  auto* values = reinterpret_cast<double*>(dst);
  for (int64_t i = 0; i < count; ++i) values[i] = static_cast<double>(src[i]);
}

void convert_run(DecodeRow decode, DType from, const std::byte* src, DType to, std::byte* dst,
                 int64_t count) {
  if (from == to) {
    std::memcpy(dst, src, static_cast<size_t>(dtype_bytes(from, count)));
  } else if (to == DType::f32) {
    load(decode, from, src, count, reinterpret_cast<float*>(dst));
  } else if (from == DType::f32) {
    store(to, reinterpret_cast<const float*>(src), count, dst);
  } else {
    float values[kPiece];
    for (int64_t i = 0; i < count; i += kPiece) {
      const int64_t n = std::min(kPiece, count - i);
      load(decode, from, src + dtype_bytes(from, i), n, values);
      store(to, values, n, dst + dtype_bytes(to, i));
    }
  }
}

void convert_tensor(const Context& context, const ConvertArgs& args, DecodeRow decode) {
  const TensorView& src = args.src;
  const TensorView& dst = args.dst;
  int64_t rows = src.rank == 2 ? src.shape[0] : 1;
  int64_t columns = src.rank == 2 ? src.shape[1] : src.elements();
  int64_t src_stride = src.rank == 2 ? src.stride[0] : columns;
  int64_t dst_stride = dst.rank == 2 ? dst.stride[0] : columns;
  if (src_stride == columns && dst_stride == columns) {
    columns *= rows;
    src_stride = dst_stride = columns;
    rows = 1;
  }
  const int64_t runs = (columns + kTaskValues - 1) / kTaskValues;
  parallel(*context.executor, rows * runs, [&](int64_t task, int32_t) {
    const int64_t row = task / runs;
    const int64_t begin = task % runs * kTaskValues;
    const int64_t count = std::min(kTaskValues, columns - begin);
    convert_run(decode, src.dtype,
                src.as<const std::byte>() + dtype_bytes(src.dtype, row * src_stride + begin), dst.dtype,
                dst.as<std::byte>() + dtype_bytes(dst.dtype, row * dst_stride + begin), count);
  });
}

}  // namespace

namespace portable {
void convert(const Context& context, const ConvertArgs& args) {
  convert_tensor(context, args, to_f32);
}
}  // namespace portable

#if defined(__x86_64__)
namespace avx2 {
void convert(const Context& context, const ConvertArgs& args) {
  convert_tensor(context, args, to_f32);
}
}  // namespace avx2
namespace avx512 {
void convert(const Context& context, const ConvertArgs& args) {
  convert_tensor(context, args, to_f32);
}
}  // namespace avx512
#endif

}  // namespace inlaid::kernels

#include "sdk/tensor/tensor.h"

#include "sdk/base/error.h"

namespace inlaid {

int64_t element_count(const Shape& shape) {
  int64_t n = 1;
  for (int64_t size : shape) {
    if (size < 0 || __builtin_mul_overflow(n, size, &n)) {
      fail(Code::kInvalidArgument, "shape ", shape_text(shape), " is negative or too large");
    }
  }
  return n;
}

int64_t byte_count(DType type, const Shape& shape) {
  const kernels::DTypeInfo& info = kernels::dtype_info(type);
  const int64_t n = element_count(shape);
  if (info.block > 1 && (shape.empty() || shape.back() % info.block != 0)) {
    fail(Code::kInvalidArgument, "shape ", shape_text(shape), " cannot be held as ", info.name,
         ": the last size must be a multiple of ", info.block);
  }
  int64_t bytes = 0;
  if (__builtin_mul_overflow(n / info.block, int64_t{info.bytes}, &bytes)) {
    fail(Code::kInvalidArgument, "shape ", shape_text(shape), " is too large");
  }
  return bytes;
}

std::string shape_text(const Shape& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

const char* dtype_name(DType type) { return kernels::dtype_info(type).name; }

DType parse_dtype(const std::string& name) {
  std::string known;
  for (int i = 0; i < kernels::kDTypes; ++i) {
    const auto type = static_cast<DType>(i);
    if (name == dtype_name(type)) return type;
    known += (i ? ", " : "") + std::string(dtype_name(type));
  }
  fail(Code::kInvalidArgument, "unknown element type '", name, "'; known are ", known);
}

Tensor::Tensor(MemoryAccount& account, Category category, DType type, Shape shape, bool zero)
    : dtype_(type), shape_(std::move(shape)) {
  auto block = std::make_shared<Block>(account.allocate(category, static_cast<uint64_t>(bytes()), zero));
  data_ = block->data();
  owner_ = std::move(block);
}

Tensor::Tensor(std::shared_ptr<const void> owner, void* data, DType type, Shape shape)
    : owner_(std::move(owner)), data_(data), dtype_(type), shape_(std::move(shape)) {}

TensorView Tensor::view() const {
  TensorView v;
  v.data = data_;
  v.dtype = dtype_;
  v.rank = static_cast<int32_t>(shape_.size());
  int64_t stride = 1;
  for (int i = v.rank - 1; i >= 0; --i) {
    v.shape[i] = shape_[i];
    v.stride[i] = stride;
    stride *= shape_[i];
  }
  return v;
}

}  // namespace inlaid

// A tensor on the host: shared storage, element type, shape; contiguous and row-major.
#ifndef INLAID_SDK_TENSOR_TENSOR_H_
#define INLAID_SDK_TENSOR_TENSOR_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "kernels/kernels.h"
#include "sdk/base/memory.h"

namespace inlaid {

using kernels::DType;
using kernels::TensorView;

// Up to kMaxRank sizes.
using Shape = std::vector<int64_t>;
int64_t element_count(const Shape& shape);       // throws kInvalidArgument on overflow or a negative size
int64_t byte_count(DType type, const Shape& shape);  // throws if the last size is no multiple of the type's block
std::string shape_text(const Shape& shape);      // "[2, 3]"
DType parse_dtype(const std::string& name);      // "f32", "bf16", ...; kInvalidArgument lists the names
const char* dtype_name(DType type);

class Tensor {
 public:
  Tensor() = default;
  // Owns `bytes` taken from `account`.
  Tensor(MemoryAccount& account, Category category, DType type, Shape shape, bool zero);
  // A window into storage that `owner` keeps alive.
  Tensor(std::shared_ptr<const void> owner, void* data, DType type, Shape shape);

  explicit operator bool() const { return data_ != nullptr; }
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  int64_t elements() const { return element_count(shape_); }
  int64_t bytes() const { return byte_count(dtype_, shape_); }
  void* data() const { return data_; }
  template <typename T>
  T* as() const { return static_cast<T*>(data_); }
  TensorView view() const;

 private:
  std::shared_ptr<const void> owner_;
  void* data_ = nullptr;
  DType dtype_ = DType::f32;
  Shape shape_;
};

}  // namespace inlaid

#endif  // INLAID_SDK_TENSOR_TENSOR_H_

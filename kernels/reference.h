// What the reference kernels share: views as typed rows, stored weights as f64, and the choice of float or
// double by dtype. Reference kernels are plain loops in one thread that sum in f64, so their f32 results are
// right to the last rounding or so.
#ifndef INLAID_KERNELS_REFERENCE_H_
#define INLAID_KERNELS_REFERENCE_H_

#include "kernels/kernels.h"
#include "kernels/storage/storage.h"

namespace inlaid::kernels::reference {

template <typename T>
struct Rows {
  T* data;
  int64_t rows, columns, stride;

  T* operator[](int64_t r) const { return data + r * stride; }
};

// The last dimension is the columns; a flat view is one row.
template <typename T>
Rows<T> rows(const TensorView& view) {
  Rows<T> p{static_cast<T*>(view.data), 1, 1, 0};
  if (view.rank > 0) p.columns = view.shape[view.rank - 1];
  for (int i = 0; i + 1 < view.rank; ++i) p.rows *= view.shape[i];
  p.stride = view.rank > 1 ? view.stride[view.rank - 2] : p.columns;
  return p;
}

// Element (row, column) of a weight of any storage type or f64.
inline double weight_at(const TensorView& view, int64_t row, int64_t column) {
  const int64_t index = (view.rank > 1 ? row * view.stride[view.rank - 2] : 0) + column;
  if (view.dtype == DType::f64) return static_cast<const double*>(view.data)[index];
  const DTypeInfo& info = dtype_info(view.dtype);
  float block[256];
  const std::byte* src = static_cast<const std::byte*>(view.data) + index / info.block * info.bytes;
  portable::to_f32(view.dtype, src, info.block, block);
  return block[index % info.block];
}

// Calls fn(T{}) with T = double or float.
template <typename Fn>
void with_type(DType type, const Fn& fn) {
  if (type == DType::f64) {
    fn(double{});
  } else {
    fn(float{});
  }
}

}  // namespace inlaid::kernels::reference

#endif  // INLAID_KERNELS_REFERENCE_H_

// Walking over the rows of the output head in chunks, so that never more than a chunk of logits exists.
#ifndef INLAID_SDK_OPS_CHUNKS_H_
#define INLAID_SDK_OPS_CHUNKS_H_

#include <cstddef>
#include <cstdint>

#include "sdk/tensor/tensor.h"

namespace inlaid::ops {

// Rows of logits at a time. All ops of the head cut alike: a product's bits depend on its shapes.
constexpr int64_t kChunkRows = 256;

// Rows [begin, begin + count) of a view, which may have no memory (planning).
inline TensorView rows(TensorView view, int64_t begin, int64_t count) {
  if (view.data != nullptr) {
    view.data = view.as<std::byte>() + begin * view.stride[0] * kernels::dtype_bytes(view.dtype, 1);
  }
  view.shape[0] = count;
  return view;
}

}  // namespace inlaid::ops

#endif  // INLAID_SDK_OPS_CHUNKS_H_

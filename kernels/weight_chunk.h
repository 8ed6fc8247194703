// A stored weight vector, read as f32 some columns at a time. For files compiled once per level.
#ifndef INLAID_KERNELS_WEIGHT_CHUNK_H_
#define INLAID_KERNELS_WEIGHT_CHUNK_H_

#include "kernels/simd/simd.h"
#include "kernels/storage/storage.h"

namespace inlaid::kernels::INLAID_LEVEL {

// Columns decoded at once; a multiple of every block size.
constexpr int64_t kWeightChunk = 512;

// The weights [column, column + count) as f32: in place if they are stored so, else decoded into `scratch`.
INLAID_INLINE const float* weight_chunk(const TensorView& weight, int64_t column, int64_t count,
                                        float (&scratch)[kWeightChunk]) {
  if (weight.dtype == DType::f32) return static_cast<const float*>(weight.data) + column;
  const std::byte* src = static_cast<const std::byte*>(weight.data) + dtype_bytes(weight.dtype, column);
  to_f32(weight.dtype, src, count, scratch);
  return scratch;
}

}  // namespace inlaid::kernels::INLAID_LEVEL

#endif  // INLAID_KERNELS_WEIGHT_CHUNK_H_

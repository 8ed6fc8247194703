// From the f32 values of a tensor that is exported to the bytes of its stored type, piece by piece.
// Cost: memory for the f32 values of one tensor and a piece of 1 MiB.
#ifndef INLAID_SDK_FORMATS_ENCODE_H_
#define INLAID_SDK_FORMATS_ENCODE_H_

#include <functional>
#include <span>

#include "sdk/formats/weight_source.h"

namespace inlaid::formats {

// Asks `tensor` for its values and hands the encoded bytes to `sink` in order. With `row_of`, row r of the
// output is row row_of(r) of the values (rows = first dimension). kOutOfRange naming the tensor for a value
// that is not finite or that the type cannot hold: a file with infinities in it would load everywhere and
// work nowhere.
void encode_tensor(const ExportTensor& tensor, DType dtype, const std::function<int64_t(int64_t)>& row_of,
                   const std::function<void(std::span<const std::byte>)>& sink);

}  // namespace inlaid::formats

#endif  // INLAID_SDK_FORMATS_ENCODE_H_

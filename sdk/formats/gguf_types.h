// The element types of GGUF: which can be read, which can be written, and what an export makes of a shape that a
// type does not fit.
//
// Read: F32, F16, BF16, the blocks of 32 (Q4_0, Q4_1, Q5_0, Q5_1, Q8_0) and the K-quants (Q2_K to Q6_K). The others are
// refused by name: Q8_1 and Q8_K hold activations, IQ*, TQ*, MXFP4 and NVFP4 need tables or searches of their own.
// Written: what gguf_export_types() lists. Tests: gguf_test.cc, gguf_export_test.cc, golden_test.cc.
#ifndef INLAID_SDK_FORMATS_GGUF_TYPES_H_
#define INLAID_SDK_FORMATS_GGUF_TYPES_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "sdk/tensor/tensor.h"

namespace inlaid::formats {

// The element type of a ggml type id, or nothing for one that is not supported; and the id of a type that can
// be stored.
std::optional<DType> dtype_of_ggml(uint32_t id);
uint32_t ggml_of_dtype(DType type);

// "Q4_K", or nullptr for an id that no version up to now has given out.
const char* ggml_name(uint32_t id);
// "F32, F16, ...": all that can be read.
std::string readable_ggml_names();

// general.file_type of a file most of which has this type.
int64_t gguf_file_type(DType type);

// Types that an export can ask for: f32, bf16, f16, q8_0, q4_0, q4_k.
std::span<const DType> gguf_export_types();
// The type in which an export that asks for `wanted` holds a tensor of this shape: f32 for vectors (norms, biases), as
// readers expect; `wanted` otherwise, but for q4_k, whose blocks of 256 many rows do not divide into. Such a tensor is held
// as q5_0 (blocks of 32), and as f16 if that does not fit either: what llama.cpp's quantiser does. Rows that do not fit q8_0
// or q4_0 have no such fallback there and are refused when they are written.
DType gguf_export_type(DType wanted, const Shape& shape);

}  // namespace inlaid::formats

#endif  // INLAID_SDK_FORMATS_GGUF_TYPES_H_

// Conversion between the formats in which a weight may be stored and the compute type.
//
// Problem: a frozen weight lies in memory as f32, bf16, f16 or in blocks of 32 quantised values (ggml's q4_0,
// q4_1, q8_0; layouts in kernels.h), and every kernel that reads it wants f32. Files are written in all of
// them. Idea: one row function per direction. Decoding a block is one product, for q4_1 also one sum, each
// rounded to f32 and never fused, so that every level gives the bits that ggml gives. Encoding follows ggml's
// reference quantiser (quantize_row_q*_ref), without fused operations:
//   q8_0: d = amax / 127                  q = round half away from zero (x / d)
//   q4_0: d = (value of largest |x|) / -8 q = min(15, trunc(x / d + 8.5))
//   q4_1: d = (max - min) / 15, m = min   q = min(15, trunc((x - m) / d + 0.5))
// where x / d is x * (1 / d) in f32, and d and m are rounded to f16 only when they are written.
// Cost: a fraction of a cycle a value with vectors: bound by memory for whole tensors, small beside the
// products when a GEMM packs. Numerics: see above; a block with a value that is not finite gets NaN as its
// scale. Source: ggml, src/ggml-quants.c. Tests: storage_test.cc, with the blocks that the PyPI package gguf
// writes as golden file.
#ifndef INLAID_KERNELS_STORAGE_STORAGE_H_
#define INLAID_KERNELS_STORAGE_STORAGE_H_

#include <cstdint>

#include "kernels/kernels.h"

namespace inlaid::kernels {

// Decodes `count` consecutive values (a multiple of the block) of a storage type.
using DecodeRow = void (*)(DType type, const void* src, int64_t count, float* dst);

// f32 to a storage type; `count` is a multiple of the block. The same at every level.
void from_f32(DType type, const float* src, int64_t count, void* dst);

namespace reference {
void convert(const Context& context, const ConvertArgs& args);
}
namespace portable {
void to_f32(DType type, const void* src, int64_t count, float* dst);
void convert(const Context& context, const ConvertArgs& args);
}  // namespace portable
namespace avx2 {
void to_f32(DType type, const void* src, int64_t count, float* dst);
void convert(const Context& context, const ConvertArgs& args);
}  // namespace avx2
namespace avx512 {
void to_f32(DType type, const void* src, int64_t count, float* dst);
void convert(const Context& context, const ConvertArgs& args);
}  // namespace avx512

}  // namespace inlaid::kernels

#endif  // INLAID_KERNELS_STORAGE_STORAGE_H_

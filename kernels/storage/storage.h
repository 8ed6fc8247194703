// Conversion between the formats in which a weight may be stored and the compute type.
//
// Problem: a frozen weight lies in memory as f32, bf16, f16 or in blocks of 32 or 256 quantised values (ggml's
// q4_0 to q8_0 and its K-quants; layouts in kernels.h and super_block.h), and every kernel that reads it wants
// f32. Files are written in most of them. Idea: one row function per direction. Decoding a value is one
// product, for types with a minimum also one sum, each rounded to f32 and never fused, so that every level
// gives the bits that ggml gives. Encoding follows ggml's reference quantiser (quantize_row_*_ref), without
// fused operations:
//   q8_0: d = amax / 127                   q = round half away from zero (x / d)
//   q4_0: d = (value of largest |x|) / -8  q = min(15, trunc(x / d + 8.5))
//   q5_0: d = (value of largest |x|) / -16 q = min(31, trunc(x / d + 16.5))
//   q4_1: d = (max - min) / 15, m = min    q = min(15, trunc((x - m) / d + 0.5))
//   q4_k: a search, see encode_q4_k.h
// where x / d is x * (1 / d) in f32, and d and m are rounded to f16 only when they are written.
// Cost: decoding takes a fraction of a cycle a value with vectors: bound by memory for whole tensors, small
// beside the products when a GEMM packs. Zen 4, one thread, GB/s of f32 written to the cache:
//             q4_0 q4_1 q8_0 q5_0 q5_1 q2_k q3_k q4_k q5_k q6_k
//   portable    10    7   32    5    5   14    8   17   17   11
//   AVX2        50   44   61   42   34   34   37   38   37   38
//   AVX-512     69   60   68   45   37   36   41   45   40   47
// Encoding takes ten to twenty cycles a value, q4_k two hundred. Numerics: see above; a block with a value that is not
// finite gets NaN as its scale. Source: ggml, src/ggml-quants.c. Tests: storage_test.cc, with blocks that the
// PyPI package gguf and ggml itself wrote as golden files.
#ifndef INLAID_KERNELS_STORAGE_STORAGE_H_
#define INLAID_KERNELS_STORAGE_STORAGE_H_

#include <cstdint>

#include "kernels/kernels.h"

namespace inlaid::kernels {

// Decodes `count` consecutive values (a multiple of the block) of a storage type.
using DecodeRow = void (*)(DType type, const void* src, int64_t count, float* dst);

// Decodes the values [begin, begin + count) of a row: multiples of decode_unit(type), not of whole blocks.
using DecodePart = void (*)(DType type, const void* row, int64_t begin, int64_t count, float* dst);
inline int64_t decode_unit(DType type) {
  const int64_t block = dtype_info(type).block;
  return block > 32 ? 32 : block;
}

// f32 to a type for which encoded_type() is true; `count` is a multiple of the block. The same at every level.
void from_f32(DType type, const float* src, int64_t count, void* dst);

namespace reference {
void convert(const Context& context, const ConvertArgs& args);
}
namespace portable {
void to_f32(DType type, const void* src, int64_t count, float* dst);
void to_f32_part(DType type, const void* row, int64_t begin, int64_t count, float* dst);
void convert(const Context& context, const ConvertArgs& args);
}  // namespace portable
namespace avx2 {
void to_f32(DType type, const void* src, int64_t count, float* dst);
void to_f32_part(DType type, const void* row, int64_t begin, int64_t count, float* dst);
void convert(const Context& context, const ConvertArgs& args);
}  // namespace avx2
namespace avx512 {
void to_f32(DType type, const void* src, int64_t count, float* dst);
void to_f32_part(DType type, const void* row, int64_t begin, int64_t count, float* dst);
void convert(const Context& context, const ConvertArgs& args);
}  // namespace avx512

}  // namespace inlaid::kernels

#endif  // INLAID_KERNELS_STORAGE_STORAGE_H_

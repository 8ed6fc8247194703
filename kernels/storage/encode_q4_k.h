// Encoding of q4_k: 256 values as eight groups of 32, each value = (d * scale) * q - (dmin * minimum), with q of
// four bits.
//
// Problem: scale and minimum of a group that suit its largest and smallest value are rarely those with the
// least error. Idea, ggml's quantize_row_q4_K_ref: try 21 scales per group, from 14 to 16 steps between the
// minimum so far and the largest value; for each, round the values to steps q, then take scale and minimum from
// the weighted least squares fit of x to q,
//   scale   = (W Sqx - Sx Sq) / (W Sqq - Sq^2)
//   minimum = (Sqq Sx - Sq Sqx) / (W Sqq - Sq^2)
//   W = sum w, Sx = sum w x, Sq = sum w q, Sqq = sum w q^2, Sqx = sum w q x
// and keep it if the weighted squared error is less than the best so far. The weights w = rms + |x| favour
// large values. A minimum above 0 becomes 0 (the format subtracts it), with the fit through the origin,
// Sqx / Sqq. The eight scales and minima are then rounded to six bits of the largest of each, and the values
// once more to the steps that these give.
//
// Numerics: to nearest, ties to even, by adding 1.5 * 2^23, as ggml does, also where that wraps around; every
// product and sum is one f32 operation, sums in ascending order of the values. So the bytes are those of ggml
// compiled without contraction of products and sums; with it (the default of GCC for C where the processor has
// fused multiply-adds), some of ggml's own bytes differ between builds.
//
// Cost: 21 searches of 2 passes, the eight groups side by side in vectors: 20 million values a second on one
// thread of a Zen 4, where group after group gives 14. Test: storage_test.cc, against ggml's bytes
// (tests/golden/storage).
#ifndef INLAID_KERNELS_STORAGE_ENCODE_Q4_K_H_
#define INLAID_KERNELS_STORAGE_ENCODE_Q4_K_H_

#include <cstdint>

namespace inlaid::kernels {

// 256 values to 144 bytes.
void encode_q4_k(const float* x, uint8_t* block);

}  // namespace inlaid::kernels

#endif  // INLAID_KERNELS_STORAGE_ENCODE_Q4_K_H_

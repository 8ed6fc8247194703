// The blocked matrix product, the same for every level.
//
// Idea, for C [M,N] and sums over K, innermost first:
// - tile: micro_kernel.h. C is read and written once per block of k.
// - panel: op(B)[block of k, tile_columns], packed (and decoded) by the thread that is about to use it,
//   8 to 72 KiB. Packing costs about a third of a cycle an element, paid back over the rows.
// - strip: the panels of up to 192 columns. They stay in the second cache while the rows of the task
//   pass once, so A is read from further away once a strip.
// - A: read where it lies when its rows are contiguous in k. A transposed A (the gradient dy of a weight
//   gradient) would touch a new page at every step of k, so all threads first copy it into row panels.
// - task: one or more strips x a range of rows, handed out dynamically. A task owns its part of C.
// - chunk: rows of A x blocks of k, at most 8 MiB of A, so that all strips find A in a shared cache and the
//   workspace of a transposed A is bounded. Chunks run one after another, blocks of k in ascending order.
//
// Up to four rows (decoding) with a transposed B skip the panel: B is transposed in registers and multiplied
// at once, with the same chain over k (micro_stream_avx2.h). So a row has the same bits at any number of
// rows; the time is that of reading B.
//
// Cost: 2 M N K flops. On Zen 4 (AVX-512, one thread, other programs running) 87 to 96 % of the multiply-add
// peak for the NT and NN products of a 576-wide model, 84 to 89 % for TN, 79 to 86 % where operands stream
// from memory (gemm_bench.cc).
#ifndef INLAID_KERNELS_GEMM_BLOCKED_H_
#define INLAID_KERNELS_GEMM_BLOCKED_H_

#include "kernels/gemm/micro_kernel.h"
#include "kernels/kernels.h"
#include "kernels/storage/storage.h"

namespace inlaid::kernels {

struct GemmLevel {
  const GemmMicroKernels& micro;
  DecodePart decode;
};

size_t blocked_gemm_workspace(const GemmArgs& args, int32_t threads, const GemmLevel& level);
void blocked_gemm(const Context& context, const GemmArgs& args, const GemmLevel& level);

}  // namespace inlaid::kernels

#endif  // INLAID_KERNELS_GEMM_BLOCKED_H_

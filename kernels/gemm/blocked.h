// The blocked matrix product, the same for every level.
//
// Idea, for C [M,N] and sums over K, innermost first:
//   tile    micro_kernel.h; C is read and written once per block of k.
//   panel   op(B)[block of k, tile_columns], packed (and decoded) by the thread that is about to use it, 8 to 72 KiB: it stays
//           in the first two cache levels while the tiles of all rows of the task pass. Packing costs about a third of a
//           cycle an element and is paid back over the rows.
//   A       read where it lies when its rows are contiguous in k. A transposed A (the gradient dy of a weight gradient) would
//           touch a new page at every step of k, so all threads first copy it into row panels in the workspace.
//   task    one or more panels x a range of rows, handed out dynamically; a task owns its part of C.
//   chunk   rows of A x blocks of k, at most 8 MiB of A, so that all panels find A in a shared cache and the workspace of a
//           transposed A is bounded. Chunks run one after another, blocks of k in ascending order.
// With few rows (decoding) the same path streams B: each panel is packed into cache, used and forgotten, while the next one
// is prefetched. So a row has the same bits at any number of rows; the time is that of reading B.
// Cost: 2 M N K flops at 90 to 98 % of the multiply-add peak when M, N and K are in the hundreds.
#ifndef INLAID_KERNELS_GEMM_BLOCKED_H_
#define INLAID_KERNELS_GEMM_BLOCKED_H_

#include "kernels/gemm/micro_kernel.h"
#include "kernels/kernels.h"
#include "kernels/storage/storage.h"

namespace inlaid::kernels {

struct GemmLevel {
  const GemmMicroKernels& micro;
  DecodeRow decode;
};

size_t blocked_gemm_workspace(const GemmArgs& args, int32_t threads, const GemmLevel& level);
void blocked_gemm(const Context& context, const GemmArgs& args, const GemmLevel& level);

}  // namespace inlaid::kernels

#endif  // INLAID_KERNELS_GEMM_BLOCKED_H_

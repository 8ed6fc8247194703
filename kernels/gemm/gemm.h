// Matrix product C = alpha op(A) op(B) (+ C) (+ bias): the entry points of each level. Arguments: GemmArgs in
// kernels.h.
//
// Problem: nine tenths of a training step are products of activations [T, in] with weights [out, in], in the
// three forms of a linear layer (NT forward, NN input gradient, TN weight gradient); weights may be
// quantised. Idea: a register tile of rows x columns of C is summed by a micro-kernel over a block of k,
// while a narrow packed panel of B stays in cache and A streams past it. How the blocks are cut: blocked.h.
// Numerics: f32. An element of C is one chain of multiply-adds (fused where the level has them) over each
// block of k, and the blocks are added to C in ascending order; alpha multiplies a block's sum before it is
// added. Cutting into blocks of k depends on k alone, and nothing else changes the order. So a row has the
// same bits for any number of threads, any number of rows in the call (also one row, as in decoding) and
// whether B is stored or already f32. Levels differ in rounding. Padding never reaches a result: a NaN or
// infinity in an operand reaches exactly the elements that it should. Tests: gemm_test.cc. Speed:
// gemm_bench.cc.
#ifndef INLAID_KERNELS_GEMM_GEMM_H_
#define INLAID_KERNELS_GEMM_GEMM_H_

#include "kernels/kernels.h"

namespace inlaid::kernels {

// Plain loops, f32 or f64, summed in f64.
namespace reference {
size_t gemm_workspace(const GemmArgs& args, int32_t threads);
void gemm(const Context& context, const GemmArgs& args);
}  // namespace reference

namespace portable {
size_t gemm_workspace(const GemmArgs& args, int32_t threads);
void gemm(const Context& context, const GemmArgs& args);
}  // namespace portable

namespace avx2 {
size_t gemm_workspace(const GemmArgs& args, int32_t threads);
void gemm(const Context& context, const GemmArgs& args);
}  // namespace avx2

namespace avx512 {
size_t gemm_workspace(const GemmArgs& args, int32_t threads);
void gemm(const Context& context, const GemmArgs& args);
}  // namespace avx512

}  // namespace inlaid::kernels

#endif  // INLAID_KERNELS_GEMM_GEMM_H_

// The blocked product with the micro-kernels of each level.
#include "kernels/gemm/blocked.h"
#include "kernels/gemm/gemm.h"

namespace inlaid::kernels {

namespace portable {
size_t gemm_workspace(const GemmArgs& args, int32_t threads) {
  return blocked_gemm_workspace(args, threads, {kGemmMicroKernels, to_f32_part});
}
void gemm(const Context& context, const GemmArgs& args) {
  blocked_gemm(context, args, {kGemmMicroKernels, to_f32_part});
}
}  // namespace portable

#if defined(__x86_64__)
namespace avx2 {
size_t gemm_workspace(const GemmArgs& args, int32_t threads) {
  return blocked_gemm_workspace(args, threads, {kGemmMicroKernels, to_f32_part});
}
void gemm(const Context& context, const GemmArgs& args) {
  blocked_gemm(context, args, {kGemmMicroKernels, to_f32_part});
}
}  // namespace avx2

namespace avx512 {
size_t gemm_workspace(const GemmArgs& args, int32_t threads) {
  return blocked_gemm_workspace(args, threads, {kGemmMicroKernels, to_f32_part});
}
void gemm(const Context& context, const GemmArgs& args) {
  blocked_gemm(context, args, {kGemmMicroKernels, to_f32_part});
}
}  // namespace avx512
#endif

}  // namespace inlaid::kernels

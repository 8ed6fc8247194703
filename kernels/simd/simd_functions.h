// The vector functions as array functions, for simd_test.cc; compiled once per level.
#ifndef INLAID_KERNELS_SIMD_SIMD_FUNCTIONS_H_
#define INLAID_KERNELS_SIMD_SIMD_FUNCTIONS_H_

#include <cstdint>

namespace inlaid::kernels {

// Arrays of n values. `square` is lanes x lanes; sums[i] is the sum of row i.
struct SimdFunctions {
  int64_t lanes;
  void (*exp)(const float* x, float* y, int64_t n);
  void (*log)(const float* x, float* y, int64_t n);
  void (*tanh)(const float* x, float* y, int64_t n);
  void (*sigmoid)(const float* x, float* y, int64_t n);
  void (*cumulative)(const float* x, float* y, int64_t n);
  void (*transpose)(float* square);
  void (*sum_each)(const float* square, float* sums);
  float (*reduce_add)(const float* lanes);
  float (*reduce_max)(const float* lanes);
  void (*copy_first)(const float* x, float* y, int64_t n);
};

namespace portable {
SimdFunctions simd_functions();
}
namespace avx2 {
SimdFunctions simd_functions();
}
namespace avx512 {
SimdFunctions simd_functions();
}

}  // namespace inlaid::kernels

#endif  // INLAID_KERNELS_SIMD_SIMD_FUNCTIONS_H_

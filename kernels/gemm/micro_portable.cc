// Plain C++ for any processor: a tile of 4 rows x 8 columns as eight vectors of four floats, a type that GCC
// and Clang map to whatever registers the target has. Multiply, then add, each rounded, because the baseline
// of x86-64 has no fused one.
#include <cstring>

#include "kernels/gemm/micro_kernel.h"
#include "kernels/gemm/micro_pack.h"

namespace inlaid::kernels::portable {
namespace {

constexpr int kRows = 4;
constexpr int kColumns = 8;

typedef float Vector __attribute__((vector_size(16)));

inline Vector load(const float* p) {
  Vector v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

template <int rows>
void tile_of(const GemmTile& t) {
  const float* a = t.a;
  const float* b = t.b;
  Vector left[rows], right[rows];
  INLAID_UNROLL
  for (int r = 0; r < rows; ++r) left[r] = right[r] = Vector{};
  for (int64_t k = t.depth; k > 0; --k) {
    const Vector b0 = load(b), b1 = load(b + 4);
    INLAID_UNROLL
    for (int r = 0; r < rows; ++r) {
      const float x = a[r * t.a_row];
      const Vector av = {x, x, x, x};
      left[r] += av * b0;
      right[r] += av * b1;
    }
    a += t.a_step;
    b += t.b_step;
  }
  for (int r = 0; r < rows; ++r) {
    float sum[kColumns];
    std::memcpy(sum, &left[r], sizeof left[r]);
    std::memcpy(sum + 4, &right[r], sizeof right[r]);
    float* const out = t.c + r * t.c_row;
    for (int j = 0; j < t.columns; ++j) {
      float value = t.alpha * sum[j];
      if (t.add) value += out[j];
      if (t.bias) value += t.bias[j];
      out[j] = value;
    }
  }
}

void tile(const GemmTile& t) {
  switch (t.rows) {
    case 1:
      return tile_of<1>(t);
    case 2:
      return tile_of<2>(t);
    case 3:
      return tile_of<3>(t);
    default:
      return tile_of<4>(t);
  }
}

void pack_transposed(const float* src, int64_t src_row, int32_t rows, int64_t depth, float* dst,
                     const float*) {
  for (int64_t k = 0; k < depth; ++k) {
    for (int i = 0; i < kColumns; ++i) dst[k * kColumns + i] = i < rows ? src[i * src_row + k] : 0.0f;
  }
}

}  // namespace

extern const GemmMicroKernels kGemmMicroKernels = {
    kRows, kColumns, tile, nullptr, pack_transposed, pack_panel<kColumns>, pack_panels<kRows>,
};

}  // namespace inlaid::kernels::portable

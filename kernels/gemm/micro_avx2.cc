// AVX2 with FMA: a tile of 6 rows x 16 columns. 12 accumulators, 2 vectors of B and 2 broadcasts fill the 16
// registers.
#include <immintrin.h>

#include "kernels/gemm/micro_kernel.h"
#include "kernels/gemm/micro_pack.h"
#include "kernels/gemm/micro_pack_avx2.h"
#include "kernels/gemm/micro_stream_avx2.h"

namespace inlaid::kernels::avx2 {
namespace {

constexpr int kRows = 6;
constexpr int kVectors = 2;
constexpr int kColumns = 8 * kVectors;

template <int rows, int vectors>
void tile_of(const GemmTile& t) {
  const float* a = t.a;
  const float* b = t.b;
  const int64_t a_row = t.a_row, a_step = t.a_step, b_step = t.b_step;

  __m256 sum[rows][vectors];
  INLAID_UNROLL
  for (int r = 0; r < rows; ++r) {
    _mm_prefetch(reinterpret_cast<const char*>(t.c + r * t.c_row), _MM_HINT_T0);
    INLAID_UNROLL
    for (int v = 0; v < vectors; ++v) sum[r][v] = _mm256_setzero_ps();
  }
  for (int64_t k = t.depth; k > 0; --k) {
    __m256 bv[vectors];
    INLAID_UNROLL
    for (int v = 0; v < vectors; ++v) bv[v] = _mm256_loadu_ps(b + 8 * v);
    INLAID_UNROLL
    for (int r = 0; r < rows; ++r) {
      const __m256 av = _mm256_broadcast_ss(a + r * a_row);
      INLAID_UNROLL
      for (int v = 0; v < vectors; ++v) sum[r][v] = _mm256_fmadd_ps(av, bv[v], sum[r][v]);
    }
    a += a_step;
    b += b_step;
  }
  INLAID_UNROLL
  for (int r = 0; r < rows; ++r) {
    INLAID_UNROLL
    for (int v = 0; v < vectors; ++v) finish_row(t, sum[r][v], r, 8 * v);
  }
}

using TileFn = void (*)(const GemmTile&);
constexpr TileFn kTiles[kRows][kVectors] = {
    {tile_of<1, 1>, tile_of<1, 2>}, {tile_of<2, 1>, tile_of<2, 2>}, {tile_of<3, 1>, tile_of<3, 2>},
    {tile_of<4, 1>, tile_of<4, 2>}, {tile_of<5, 1>, tile_of<5, 2>}, {tile_of<6, 1>, tile_of<6, 2>},
};

void tile(const GemmTile& t) {
  kTiles[t.rows - 1][(t.columns - 1) / 8](t);
}

}  // namespace

extern const GemmMicroKernels kGemmMicroKernels = {
    kRows, kColumns, tile, stream, pack_transposed<kColumns>, pack_panel<kColumns>, pack_panels<kRows>,
};

}  // namespace inlaid::kernels::avx2

// AVX-512: a tile of 8 rows x 48 columns. 24 accumulators, 3 vectors of B and the broadcast element of A fill
// 28 of the 32 registers; 24 multiply-adds a step hide their latency of 4 and need 11 loads. 48 divides the
// widths of common models (192, 576, 768, 1536, 3072, 49152), so their edges cost nothing. Measured on Zen 4
// (one 512-bit multiply-add a cycle), loop alone: 93 to 98 % of the peak from packed or plain A.
#include <immintrin.h>

#include "kernels/gemm/micro_kernel.h"
#include "kernels/gemm/micro_pack.h"
#include "kernels/gemm/micro_pack_avx2.h"
#include "kernels/gemm/micro_stream_avx2.h"

namespace inlaid::kernels::avx512 {
namespace {

constexpr int kRows = 8;
constexpr int kVectors = 3;
constexpr int kColumns = 16 * kVectors;

template <int rows, int vectors>
void tile_of(const GemmTile& t) {
  const float* a = t.a;
  const float* b = t.b;
  const int64_t a_row = t.a_row, a_step = t.a_step, b_step = t.b_step, c_row = t.c_row;
  float* const c = t.c;

  __m512 sum[rows][vectors];
  INLAID_UNROLL
  for (int r = 0; r < rows; ++r) {
    INLAID_UNROLL
    for (int v = 0; v < vectors; ++v) {
      sum[r][v] = _mm512_setzero_ps();
      _mm_prefetch(reinterpret_cast<const char*>(c + r * c_row + 16 * v), _MM_HINT_T0);
    }
  }
  for (int64_t k = t.depth; k > 0; --k) {
    __m512 bv[vectors];
    INLAID_UNROLL
    for (int v = 0; v < vectors; ++v) bv[v] = _mm512_loadu_ps(b + 16 * v);
    INLAID_UNROLL
    for (int r = 0; r < rows; ++r) {
      const __m512 av = _mm512_set1_ps(a[r * a_row]);
      INLAID_UNROLL
      for (int v = 0; v < vectors; ++v) sum[r][v] = _mm512_fmadd_ps(av, bv[v], sum[r][v]);
    }
    a += a_step;
    b += b_step;
  }

  const __m512 alpha = _mm512_set1_ps(t.alpha);
  const auto last = static_cast<__mmask16>(0xffffu >> (16 * vectors - t.columns));
  INLAID_UNROLL
  for (int v = 0; v < vectors; ++v) {
    const __mmask16 mask = v + 1 < vectors ? static_cast<__mmask16>(0xffff) : last;
    const __m512 bias = t.bias ? _mm512_maskz_loadu_ps(mask, t.bias + 16 * v) : _mm512_setzero_ps();
    INLAID_UNROLL
    for (int r = 0; r < rows; ++r) {
      float* const out = c + r * c_row + 16 * v;
      __m512 value = _mm512_mul_ps(alpha, sum[r][v]);
      if (t.add) value = _mm512_add_ps(value, _mm512_maskz_loadu_ps(mask, out));
      if (t.bias) value = _mm512_add_ps(value, bias);
      _mm512_mask_storeu_ps(out, mask, value);
    }
  }
}

using TileFn = void (*)(const GemmTile&);
constexpr TileFn kTiles[kRows][kVectors] = {
    {tile_of<1, 1>, tile_of<1, 2>, tile_of<1, 3>}, {tile_of<2, 1>, tile_of<2, 2>, tile_of<2, 3>},
    {tile_of<3, 1>, tile_of<3, 2>, tile_of<3, 3>}, {tile_of<4, 1>, tile_of<4, 2>, tile_of<4, 3>},
    {tile_of<5, 1>, tile_of<5, 2>, tile_of<5, 3>}, {tile_of<6, 1>, tile_of<6, 2>, tile_of<6, 3>},
    {tile_of<7, 1>, tile_of<7, 2>, tile_of<7, 3>}, {tile_of<8, 1>, tile_of<8, 2>, tile_of<8, 3>},
};

void tile(const GemmTile& t) {
  kTiles[t.rows - 1][(t.columns - 1) / 16](t);
}

}  // namespace

extern const GemmMicroKernels kGemmMicroKernels = {
    kRows, kColumns, tile, stream, pack_transposed<kColumns>, pack_panel<kColumns>, pack_panels<kRows>,
};

}  // namespace inlaid::kernels::avx512

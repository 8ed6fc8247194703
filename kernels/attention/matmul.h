// The small matrix product inside attention: C[m, n] (=, = scale C +, +=) A[m, depth] B[depth, n], all
// operands in the first or second cache level. For files compiled once per level.
//
// Columns are whole vectors of B and C (only the last may be partial), elements of A are broadcast, and an M
// x N tile of C stays in registers while depth runs. A has any two strides, so it may be a matrix or its
// transpose as it lies in memory. Cost on AVX-512: 24 accumulators for 11 loads, close to one fused
// multiply-add per cycle. Numerics: one accumulator per element, depth ascending. So an element's bits do not
// depend on where it lies in a tile.
#ifndef INLAID_KERNELS_ATTENTION_MATMUL_H_
#define INLAID_KERNELS_ATTENTION_MATMUL_H_

#include "kernels/plane.h"
#include "kernels/simd/simd.h"

namespace inlaid::kernels::INLAID_LEVEL {
namespace {

struct Matrix {
  float* data;
  int64_t stride;  // between rows
};
struct LeftMatrix {
  const float* data;
  int64_t row, depth;  // strides
};

// What C holds at the start of the sum: nothing, C with column c multiplied by scale[c], or C.
enum class Start { zero, scaled, add };

// Widest tile in vectors, and rows of a tile that is `vectors` wide: as many accumulators as the registers
// hold.
constexpr int kWidest = kLanes == 16 ? 4 : 3;
constexpr int tile_rows(int vectors) {
  if (kLanes == 16) return vectors == 4 ? 6 : 8;
  return vectors == 3 ? 4 : vectors == 2 ? 6 : 8;
}

template <int M, int N, Start kStart, typename Last>
__attribute__((noinline)) void tile(LeftMatrix a, Matrix b, int64_t depth, Matrix c, const V* scale,
                                    Last last) {
  V sum[M][N];
#pragma GCC unroll 8
  for (int i = 0; i < M; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < N; ++j) {
      const float* from = c.data + i * c.stride + j * kLanes;
      if constexpr (kStart == Start::zero) {
        sum[i][j] = V{};
      } else {
        sum[i][j] = j + 1 < N ? load(from) : load_lanes(from, last);
        if constexpr (kStart == Start::scaled) sum[i][j] *= scale[j];
      }
    }
  }
  for (int64_t d = 0; d < depth; ++d) {
    V right[N];
#pragma GCC unroll 4
    for (int j = 0; j < N; ++j) {
      right[j] = j + 1 < N ? load(b.data + j * kLanes) : load_lanes(b.data + j * kLanes, last);
    }
#pragma GCC unroll 8
    for (int i = 0; i < M; ++i) {
      const V left = broadcast(a.data[i * a.row]);
#pragma GCC unroll 4
      for (int j = 0; j < N; ++j) sum[i][j] = fma(left, right[j], sum[i][j]);
    }
    a.data += a.depth;
    b.data += b.stride;
  }
#pragma GCC unroll 8
  for (int i = 0; i < M; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < N; ++j) {
      float* to = c.data + i * c.stride + j * kLanes;
      if (j + 1 < N) {
        store(to, sum[i][j]);
      } else {
        store_lanes(to, sum[i][j], last);
      }
    }
  }
}

template <int N, Start kStart, typename Last>
INLAID_INLINE void panel(int64_t m, LeftMatrix a, Matrix b, int64_t depth, Matrix c, const V* scale,
                         Last last) {
  constexpr int kRows = tile_rows(N);
  int64_t i = 0;
  const auto rows = [&](auto count) __attribute__((always_inline)) {
    constexpr int M = decltype(count)::value;
    for (; i + M <= m; i += M) {
      tile<M, N, kStart>({a.data + i * a.row, a.row, a.depth}, b, depth, {c.data + i * c.stride, c.stride},
                         scale, last);
    }
  };
  rows(std::integral_constant<int, kRows>{});
  rows(std::integral_constant<int, 2>{});
  rows(std::integral_constant<int, 1>{});
}

template <Start kStart, typename Last>
INLAID_INLINE void panel_of(int64_t width, int64_t m, LeftMatrix a, Matrix b, int64_t depth, Matrix c,
                            const V* scale, Last last) {
  switch (width) {
    case 1:
      return panel<1, kStart>(m, a, b, depth, c, scale, last);
    case 2:
      return panel<2, kStart>(m, a, b, depth, c, scale, last);
    case 3:
      return panel<3, kStart>(m, a, b, depth, c, scale, last);
    default:
      if constexpr (kWidest == 4) return panel<4, kStart>(m, a, b, depth, c, scale, last);
  }
}

// n columns; scale holds one vector per vector of columns and is read only by Start::scaled.
template <Start kStart>
void matmul(int64_t m, int64_t n, int64_t depth, LeftMatrix a, Matrix b, Matrix c, const V* scale = nullptr) {
  int64_t vectors = ceil_div(n, kLanes);
  while (vectors > 0) {
    const int64_t width = vectors >= 2 * kWidest ? kWidest : vectors > kWidest ? (vectors + 1) / 2 : vectors;
    if (width < vectors || n % kLanes == 0) {
      panel_of<kStart>(width, m, a, b, depth, c, scale, Whole{});
    } else {
      panel_of<kStart>(width, m, a, b, depth, c, scale, n % kLanes);
    }
    vectors -= width;
    b.data += width * kLanes;
    c.data += width * kLanes;
    scale += scale ? width : 0;
  }
}

// to[c][r] = from[r][c] for r < rows, c < columns.
void transpose(int64_t rows, int64_t columns, const float* from, int64_t from_stride, float* to,
               int64_t to_stride) {
  const int64_t whole_rows = rows - rows % kLanes, whole_columns = columns - columns % kLanes;
  for (int64_t r = 0; r < whole_rows; r += kLanes) {
    for (int64_t c = 0; c < whole_columns; c += kLanes) {
      V square[kLanes];
#pragma GCC unroll 16
      for (int i = 0; i < kLanes; ++i) square[i] = load(from + (r + i) * from_stride + c);
      transpose_square(square);
#pragma GCC unroll 16
      for (int i = 0; i < kLanes; ++i) store(to + (c + i) * to_stride + r, square[i]);
    }
  }
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t first = r < whole_rows ? whole_columns : 0;
    for (int64_t c = first; c < columns; ++c) to[c * to_stride + r] = from[r * from_stride + c];
  }
}

}  // namespace
}  // namespace inlaid::kernels::INLAID_LEVEL

#endif  // INLAID_KERNELS_ATTENTION_MATMUL_H_

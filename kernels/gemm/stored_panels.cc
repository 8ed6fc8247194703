#include "kernels/gemm/stored_panels.h"

#include <algorithm>

namespace inlaid::kernels {
namespace {

constexpr int64_t kGroup = 8;        // rows decoded together before they are transposed
constexpr int64_t kWidestRow = 256;  // tile_columns plus a part of a unit on either side
constexpr int64_t kCacheLine = 64;

}  // namespace

int64_t StoredPanels::scratch_floats(int64_t depth) {
  return std::max(kGroup * depth, kWidestRow);
}

void StoredPanels::pack(int64_t j0, int32_t columns, int64_t k0, int64_t depth, float* dst,
                        float* scratch) const {
  if (transposed_) {
    pack_transposed(j0, columns, k0, depth, dst, scratch);
  } else {
    pack_columns(j0, columns, k0, depth, dst, scratch);
  }
}

void StoredPanels::pack_transposed(int64_t j0, int32_t columns, int64_t k0, int64_t depth, float* dst,
                                   float* scratch) const {
  // Whole groups of eight rows; those past the last column are packed as zeros.
  for (int64_t i = 0; i < micro_.tile_columns; i += kGroup) {
    const auto rows = static_cast<int32_t>(std::clamp<int64_t>(columns - i, 0, kGroup));
    if (b_.dtype == DType::f32) {
      const float* src = plain_at(j0 + i, k0);
      micro_.pack_transposed(src, b_.stride[0], rows, depth, dst + i, src + kGroup * b_.stride[0]);
      continue;
    }
    prefetch_rows(j0 + i + kGroup, j0 + i + 2 * kGroup, k0, depth);
    for (int64_t r = 0; r < rows; ++r) decode_(b_.dtype, row(j0 + i + r), k0, depth, scratch + r * depth);
    micro_.pack_transposed(scratch, depth, rows, depth, dst + i, nullptr);
  }
}

void StoredPanels::pack_columns(int64_t j0, int32_t columns, int64_t k0, int64_t depth, float* dst,
                                float* scratch) const {
  if (b_.dtype == DType::f32) {
    micro_.pack_columns(plain_at(k0, j0), b_.stride[0], columns, depth, dst);
    return;
  }
  // A panel may begin or end inside a unit: decode the units that it touches.
  const int64_t begin = j0 / unit_ * unit_;
  const int64_t count = (j0 + columns + unit_ - 1) / unit_ * unit_ - begin;
  for (int64_t k = 0; k < depth; ++k) {
    decode_(b_.dtype, row(k0 + k), begin, count, scratch);
    micro_.pack_columns(scratch + (j0 - begin), 0, columns, 1, dst + k * micro_.tile_columns);
  }
}

void StoredPanels::rows(int64_t j0, int32_t columns, int64_t k0, float* scratch, GemmTile& tile) const {
  tile.ahead = b_.dtype == DType::f32;
  if (tile.ahead) {
    tile.b = plain_at(j0, k0);
    tile.b_step = b_.stride[0];
    return;
  }
  prefetch_rows(j0 + kStreamColumns, j0 + 2 * kStreamColumns, k0, tile.depth);
  for (int64_t r = 0; r < columns; ++r)
    decode_(b_.dtype, row(j0 + r), k0, tile.depth, scratch + r * tile.depth);
  tile.b = scratch;
  tile.b_step = tile.depth;
}

void StoredPanels::prefetch_rows(int64_t begin, int64_t end, int64_t column, int64_t columns) const {
  const int64_t first = column / block_, last = (column + columns + block_ - 1) / block_;
  const int64_t bytes = (last - first) * block_bytes_;
  const std::byte* p = row(begin) + first * block_bytes_;
  for (; begin < end; ++begin, p += pitch_) {
    for (int64_t i = 0; i < bytes; i += kCacheLine) __builtin_prefetch(p + i, 0, 2);
  }
}

void StoredPanels::prefetch(int64_t j0, int64_t columns, int64_t k0, int64_t depth, int64_t part,
                            int64_t parts) const {
  if (transposed_) {
    prefetch_rows(j0 + part * columns / parts, j0 + (part + 1) * columns / parts, k0, depth);
  } else {
    prefetch_rows(k0 + part * depth / parts, k0 + (part + 1) * depth / parts, j0, columns);
  }
}

const float* StoredPanels::plain(int64_t j0, int64_t k0) const {
  if (transposed_ || b_.dtype != DType::f32) return nullptr;
  return plain_at(k0, j0);
}

}  // namespace inlaid::kernels

// The right operand of a product, cut into packed panels: hides its storage type and its transposition.
#ifndef INLAID_KERNELS_GEMM_STORED_PANELS_H_
#define INLAID_KERNELS_GEMM_STORED_PANELS_H_

#include "kernels/gemm/micro_kernel.h"
#include "kernels/kernels.h"
#include "kernels/storage/storage.h"

namespace inlaid::kernels {

class StoredPanels {
 public:
  StoredPanels(const GemmArgs& args, const GemmMicroKernels& micro, DecodePart decode)
      : b_(args.b),
        transposed_(args.transpose_b),
        micro_(micro),
        decode_(decode),
        unit_(decode_unit(b_.dtype)),
        block_(dtype_info(b_.dtype).block),
        block_bytes_(dtype_info(b_.dtype).bytes),
        pitch_(dtype_bytes(b_.dtype, b_.stride[0])) {}

  // Floats of scratch that pack() needs for blocks of `depth`.
  static int64_t scratch_floats(int64_t depth);

  // dst[k * tile_columns + j] = op(B)[k0 + k, j0 + j] as f32. k0 is a multiple of 32.
  void pack(int64_t j0, int32_t columns, int64_t k0, int64_t depth, float* dst, float* scratch) const;

  // Sets tile.b and tile.b_step to `columns` rows of a transposed B, for tile.depth values from k0 on,
  // decoded into scratch (kStreamColumns * depth floats) if need be.
  void rows(int64_t j0, int32_t columns, int64_t k0, float* scratch, GemmTile& tile) const;

  // Asks for one of `parts` shares of the same block ahead of time.
  void prefetch(int64_t j0, int64_t columns, int64_t k0, int64_t depth, int64_t part, int64_t parts) const;

  // Where op(B)[k0, j0] lies if its rows can be read without packing, else nullptr.
  const float* plain(int64_t j0, int64_t k0) const;
  int64_t plain_step() const { return b_.stride[0]; }

 private:
  void pack_transposed(int64_t j0, int32_t columns, int64_t k0, int64_t depth, float* dst,
                       float* scratch) const;
  void pack_columns(int64_t j0, int32_t columns, int64_t k0, int64_t depth, float* dst, float* scratch) const;
  // Asks for columns of rows [begin, end) of B; rows need not exist.
  void prefetch_rows(int64_t begin, int64_t end, int64_t column, int64_t columns) const;
  const std::byte* row(int64_t index) const { return b_.as<const std::byte>() + index * pitch_; }
  // Address of B[index, column] of a B in f32.
  const float* plain_at(int64_t index, int64_t column) const {
    return reinterpret_cast<const float*>(row(index)) + column;
  }

  const TensorView& b_;
  bool transposed_;
  const GemmMicroKernels& micro_;
  DecodePart decode_;
  int64_t unit_;  // columns at which decoding may begin and end
  int64_t block_, block_bytes_;
  int64_t pitch_;  // bytes from one row to the next
};

}  // namespace inlaid::kernels

#endif  // INLAID_KERNELS_GEMM_STORED_PANELS_H_

// How a matrix product is cut: numbers only. What may depend on the number of threads never decides the order
// of a sum.
#ifndef INLAID_KERNELS_GEMM_BLOCKING_H_
#define INLAID_KERNELS_GEMM_BLOCKING_H_

#include <algorithm>
#include <cstdint>

#include "kernels/gemm/micro_kernel.h"
#include "kernels/gemm/stored_panels.h"
#include "kernels/kernels.h"

namespace inlaid::kernels {

constexpr int64_t divide_up(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}
constexpr int64_t round_up(int64_t a, int64_t b) {
  return divide_up(a, b) * b;
}

// Blocks of k, and chunks of A: a function of the shape only.
struct Blocking {
  static constexpr int64_t kMaxDepth = 384;         // bounds a panel, and the length of a chain of roundings
  static constexpr int64_t kDepthUnit = 32;         // a block of k begins where decoding of any type can begin
  static constexpr int64_t kChunkFloats = 2 << 20;  // of A: 8 MiB
  static constexpr int64_t kChunkRows = 1024;       // preferred: pays for packing B again for the next chunk

  int64_t m, n, k;
  int64_t depth, blocks;             // of k; the last block may be shallower
  int64_t chunk_rows, chunk_blocks;  // of A

  Blocking(const GemmArgs& args, const GemmMicroKernels& micro)
      : m(args.c.shape[0]), n(args.c.shape[1]), k(args.a.shape[args.transpose_a ? 0 : 1]) {
    const int64_t least_blocks = std::max<int64_t>(divide_up(k, kMaxDepth), 1);
    depth = round_up(std::max<int64_t>(divide_up(k, least_blocks), 1), kDepthUnit);
    blocks = std::max<int64_t>(divide_up(k, depth), 1);
    const int64_t rows = std::clamp<int64_t>(m, 1, kChunkRows);
    chunk_blocks = std::clamp<int64_t>(kChunkFloats / (depth * rows), 1, blocks);
    const int64_t most_rows = kChunkFloats / (depth * chunk_blocks) / micro.tile_rows * micro.tile_rows;
    chunk_rows = std::min(most_rows, round_up(std::max<int64_t>(m, 1), micro.tile_rows));
  }
  int64_t depth_at(int64_t block) const { return std::min(depth, k - block * depth); }
};

// How a chunk is handed out: strips of `strip_panels` panels of B x ranges of `task_rows` rows.
struct Tasks {
  static constexpr int64_t kStripColumns = 192;  // its panels fill a third of a second cache of 1 MiB
  static constexpr int64_t kTaskRows = 128;      // at least, when rows are split: each split packs B again
  static constexpr int64_t kTasksPerThread = 6;  // wanted, for balance when a thread is held up
  static constexpr int64_t kMostTasksPerThread = 32;  // more only cost
  static constexpr int64_t kFewTiles = 2;  // tiles of rows up to which a packed panel is hardly used again

  int64_t strip_panels, strips;
  int64_t row_tasks, task_rows;
  int64_t column_tasks;  // each some strips

  static int64_t most_panels(int64_t n, const GemmMicroKernels& micro) {
    return std::clamp<int64_t>(divide_up(n, micro.tile_columns), 1, kStripColumns / micro.tile_columns);
  }

  Tasks(int64_t rows, int64_t n, int64_t threads, const GemmMicroKernels& micro) {
    const int64_t panels = divide_up(n, micro.tile_columns);
    const bool few = rows <= kFewTiles * micro.tile_rows;
    strip_panels =
        few ? 1 : std::clamp<int64_t>(2 * panels / (kTasksPerThread * threads), 1, most_panels(n, micro));
    strips = divide_up(panels, strip_panels);
    const int64_t most_splits = std::max<int64_t>(rows / kTaskRows, 1);
    const int64_t splits = std::clamp<int64_t>(divide_up(kTasksPerThread * threads, strips), 1, most_splits);
    task_rows = round_up(divide_up(rows, splits), micro.tile_rows);
    row_tasks = divide_up(rows, task_rows);
    column_tasks = std::min(strips, kMostTasksPerThread * threads);
  }
};

// The workspace, in floats: row panels of a transposed A, then for each thread the packed panels of a strip
// and scratch to decode stored weights.
struct GemmWorkspace {
  int64_t a_floats, panel_floats, strip_floats, thread_floats;

  GemmWorkspace(const GemmArgs& args, const Blocking& blocking, const GemmMicroKernels& micro)
      : a_floats(args.transpose_a ? blocking.chunk_rows * blocking.chunk_blocks * blocking.depth : 0),
        panel_floats(blocking.depth * micro.tile_columns),
        strip_floats(panel_floats * Tasks::most_panels(blocking.n, micro)),
        thread_floats(strip_floats + StoredPanels::scratch_floats(blocking.depth)) {}
  size_t bytes(int32_t threads) const {
    return static_cast<size_t>(a_floats + threads * thread_floats) * sizeof(float);
  }
};

}  // namespace inlaid::kernels

#endif  // INLAID_KERNELS_GEMM_BLOCKING_H_

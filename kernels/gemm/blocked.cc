#include "kernels/gemm/blocked.h"

#include <algorithm>

#include "kernels/gemm/stored_panels.h"

namespace inlaid::kernels {
namespace {

constexpr int64_t kMaxDepth = 384;              // of a block of k: bounds the panel, and the length of a chain of roundings
constexpr int64_t kDepthUnit = 32;              // a block of k begins at a block of a quantised type
constexpr int64_t kChunkFloats = 2 << 20;       // of A
constexpr int64_t kChunkRows = 1024;            // preferred: enough to pay for packing B again for the next chunk
constexpr int64_t kTaskRows = 128;              // at least, when rows are split: each split packs B again
constexpr int64_t kTasksPerThread = 8;          // wanted, for balance when a thread is held up
constexpr int64_t kMostTasksPerThread = 32;     // more only cost
constexpr int64_t kPlainRows = 2;               // tiles of rows up to which packing B costs more than it saves
constexpr int64_t kPackPanels = 16;             // row panels of A copied by a task

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t round_up(int64_t a, int64_t b) { return divide_up(a, b) * b; }

// How a product is cut: a function of its shape only.
struct Blocking {
  int64_t m, n, k;
  int64_t depth, blocks;             // of k; the last block may be shallower
  int64_t chunk_rows, chunk_blocks;  // of A

  Blocking(const GemmArgs& args, const GemmMicroKernels& micro)
      : m(args.c.shape[0]), n(args.c.shape[1]), k(args.a.shape[args.transpose_a ? 0 : 1]) {
    depth = round_up(std::max<int64_t>(divide_up(k, std::max<int64_t>(divide_up(k, kMaxDepth), 1)), 1), kDepthUnit);
    blocks = std::max<int64_t>(divide_up(k, depth), 1);
    const int64_t rows = std::clamp<int64_t>(m, 1, kChunkRows);
    chunk_blocks = std::clamp<int64_t>(kChunkFloats / (depth * rows), 1, blocks);
    const int64_t most_rows = kChunkFloats / (depth * chunk_blocks) / micro.tile_rows * micro.tile_rows;
    chunk_rows = std::min(most_rows, round_up(std::max<int64_t>(m, 1), micro.tile_rows));
  }
  int64_t depth_at(int64_t block) const { return std::min(depth, k - block * depth); }
};

// The workspace: row panels of a transposed A, then a packed panel of B and decoding scratch for each thread.
struct Workspace {
  int64_t a_floats, panel_floats, thread_floats;

  Workspace(const GemmArgs& args, const Blocking& blocking, const GemmMicroKernels& micro)
      : a_floats(args.transpose_a ? blocking.chunk_rows * blocking.chunk_blocks * blocking.depth : 0),
        panel_floats(blocking.depth * micro.tile_columns),
        thread_floats(panel_floats + StoredPanels::scratch_floats(blocking.depth)) {}
  size_t bytes(int32_t threads) const {
    return static_cast<size_t>(a_floats + threads * thread_floats) * sizeof(float);
  }
};

// One product in progress.
class BlockedGemm {
 public:
  BlockedGemm(const Context& context, const GemmArgs& args, const GemmLevel& level)
      : context_(context),
        args_(args),
        micro_(level.micro),
        blocking_(args, level.micro),
        workspace_(args, blocking_, level.micro),
        b_(args, level.micro, level.decode) {}

  void run() {
    if (blocking_.m == 0 || blocking_.n == 0) return;
    for (row0_ = 0; row0_ < blocking_.m; row0_ += blocking_.chunk_rows) {
      rows_ = std::min(blocking_.chunk_rows, blocking_.m - row0_);
      for (block0_ = 0; block0_ < blocking_.blocks; block0_ += blocking_.chunk_blocks) {
        block_end_ = std::min(block0_ + blocking_.chunk_blocks, blocking_.blocks);
        if (args_.transpose_a) pack_a();
        multiply();
      }
    }
  }

 private:
  float* packed_a(int64_t block) const {
    return reinterpret_cast<float*>(context_.workspace) + (block - block0_) * blocking_.chunk_rows * blocking_.depth;
  }

  // Copies the chunk of A into row panels, `tile_rows * depth` apart.
  void pack_a() {
    const int64_t group_rows = kPackPanels * micro_.tile_rows;
    const int64_t groups = divide_up(rows_, group_rows);
    parallel(*context_.executor, groups * (block_end_ - block0_), [&](int64_t task, int32_t) {
      const int64_t block = block0_ + task / groups;
      const int64_t row = task % groups * group_rows;
      const float* src = args_.a.as<const float>() + block * blocking_.depth * args_.a.stride[0] + row0_ + row;
      micro_.pack_rows(src, args_.a.stride[0], std::min(group_rows, rows_ - row), blocking_.depth_at(block),
                       packed_a(block) + row * blocking_.depth, micro_.tile_rows * blocking_.depth);
    });
  }

  // Hands out panels x ranges of rows of the chunk.
  void multiply() {
    const int64_t threads = context_.executor->threads;
    const int64_t panels = divide_up(blocking_.n, micro_.tile_columns);
    const int64_t most_splits = std::max<int64_t>(rows_ / kTaskRows, 1);
    const int64_t splits = std::clamp<int64_t>(divide_up(kTasksPerThread * threads, panels), 1, most_splits);
    const int64_t split_rows = round_up(divide_up(rows_, splits), micro_.tile_rows);
    const int64_t row_tasks = divide_up(rows_, split_rows);
    const int64_t column_tasks = std::min(panels, kMostTasksPerThread * threads);
    parallel(*context_.executor, row_tasks * column_tasks, [&](int64_t task, int32_t thread) {
      const int64_t column = task / row_tasks;
      const int64_t row = task % row_tasks * split_rows;
      multiply_panels(column * panels / column_tasks, (column + 1) * panels / column_tasks, row,
                      std::min(row + split_rows, rows_), thread);
    });
  }

  bool streams(int64_t rows) const {
    return micro_.stream && rows <= kStreamRows && args_.transpose_b && !args_.transpose_a;
  }

  void multiply_panels(int64_t panel, int64_t panel_end, int64_t row, int64_t row_end, int32_t thread) {
    float* const packed =
        reinterpret_cast<float*>(context_.workspace) + workspace_.a_floats + thread * workspace_.thread_floats;
    if (streams(row_end - row)) {
      for (; panel < panel_end; ++panel) stream_panel(row, row_end, panel, packed);
      return;
    }
    while (panel < panel_end) {
      const int64_t column = panel++ * micro_.tile_columns;
      for (int64_t block = block0_; block < block_end_; ++block) {
        const bool last = block + 1 == block_end_;
        const int64_t next_column = last ? panel * micro_.tile_columns : column;
        multiply_rows(row, row_end, column, block, packed, last && panel == panel_end ? -1 : next_column,
                      last ? block0_ : block + 1);
      }
    }
  }

  // What is the same for all tiles of a block of k and a panel.
  GemmTile tile_at(int64_t column, int64_t block) const {
    GemmTile tile{};
    tile.depth = blocking_.depth_at(block);
    tile.columns = columns_at(column);
    tile.alpha = static_cast<float>(args_.alpha);
    tile.add = args_.accumulate || block > 0;
    tile.bias = args_.bias && block == 0 ? args_.bias.as<const float>() + column : nullptr;
    tile.c_row = args_.c.stride[0];
    tile.c = args_.c.as<float>() + row0_ * tile.c_row + column;
    return tile;
  }

  // Few rows and a transposed B: its rows are used as they lie, or as they were decoded, a few at a time from beginning to end.
  void stream_panel(int64_t row, int64_t row_end, int64_t panel, float* scratch) {
    const int64_t begin = panel * micro_.tile_columns, end = begin + columns_at(begin);
    for (int64_t column = begin; column < end; column += kStreamColumns) {
      for (int64_t block = block0_; block < block_end_; ++block) {
        GemmTile tile = tile_at(column, block);
        tile.rows = static_cast<int32_t>(row_end - row);
        tile.columns = static_cast<int32_t>(std::min<int64_t>(kStreamColumns, end - column));
        tile.c += row * tile.c_row;
        set_a(row, block, tile);
        b_.rows(column, tile.columns, block * blocking_.depth, scratch, tile);
        micro_.stream(tile);
      }
    }
  }

  // Adds one block of k to one panel of C. Asks for the next panel of B on the way (next_column < 0: there is none).
  void multiply_rows(int64_t row, int64_t row_end, int64_t column, int64_t block, float* packed, int64_t next_column,
                     int64_t next_block) {
    const int64_t k0 = block * blocking_.depth;
    GemmTile tile = tile_at(column, block);
    const bool few_rows = row_end - row <= kPlainRows * micro_.tile_rows;
    tile.b = few_rows && tile.columns == micro_.tile_columns ? b_.plain(column, k0) : nullptr;
    tile.b_step = b_.plain_step();
    if (tile.b == nullptr) {
      b_.pack(column, tile.columns, k0, tile.depth, packed, packed + workspace_.panel_floats);
      tile.b = packed;
      tile.b_step = micro_.tile_columns;
    }
    const int64_t tiles = divide_up(row_end - row, micro_.tile_rows);
    tile.c += row * tile.c_row;
    for (int64_t t = 0; t < tiles; ++t, row += micro_.tile_rows) {
      if (next_column >= 0 && tiles > kPlainRows) {
        b_.prefetch(next_column, columns_at(next_column), next_block * blocking_.depth, blocking_.depth_at(next_block), t,
                    tiles);
      }
      set_a(row, block, tile);
      tile.rows = static_cast<int32_t>(std::min<int64_t>(micro_.tile_rows, row_end - row));
      micro_.tile(tile);
      tile.c += micro_.tile_rows * tile.c_row;
    }
  }

  void set_a(int64_t row, int64_t block, GemmTile& tile) const {
    if (args_.transpose_a) {
      tile.a = packed_a(block) + row * blocking_.depth;
      tile.a_row = 1;
      tile.a_step = micro_.tile_rows;
    } else {
      tile.a_row = args_.a.stride[0];
      tile.a = args_.a.as<const float>() + (row0_ + row) * tile.a_row + block * blocking_.depth;
      tile.a_step = 1;
    }
  }

  int32_t columns_at(int64_t column) const {
    return static_cast<int32_t>(std::min<int64_t>(micro_.tile_columns, blocking_.n - column));
  }

  const Context& context_;
  const GemmArgs& args_;
  const GemmMicroKernels& micro_;
  const Blocking blocking_;
  const Workspace workspace_;
  const StoredPanels b_;
  int64_t row0_ = 0, rows_ = 0;             // the chunk: rows of C
  int64_t block0_ = 0, block_end_ = 0;      // and blocks of k
};

}  // namespace

size_t blocked_gemm_workspace(const GemmArgs& args, int32_t threads, const GemmLevel& level) {
  return Workspace(args, Blocking(args, level.micro), level.micro).bytes(threads);
}

void blocked_gemm(const Context& context, const GemmArgs& args, const GemmLevel& level) {
  BlockedGemm(context, args, level).run();
}

}  // namespace inlaid::kernels

#include "kernels/gemm/blocked.h"

#include <algorithm>

#include "kernels/gemm/blocking.h"
#include "kernels/gemm/stored_panels.h"

namespace inlaid::kernels {
namespace {

constexpr int64_t kPackPanels = 16;             // row panels of A copied by a task
constexpr int64_t kFirstCacheFloats = 6 << 10;  // of a panel that stays in the first cache
constexpr int64_t kBlockTiles = 16;       // tiles of rows of A that pass such a panel, from the second cache
constexpr int64_t kMostStripPanels = 24;  // Tasks::kStripColumns over the narrowest tile

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
  // A block of k of some neighbouring panels of B.
  struct Strip {
    int64_t column, column_end;
    int64_t block;
  };

  float* packed_a(int64_t block) const {
    return reinterpret_cast<float*>(context_.workspace) +
           (block - block0_) * blocking_.chunk_rows * blocking_.depth;
  }

  // Copies the chunk of A into row panels, `tile_rows * depth` apart.
  void pack_a() {
    const int64_t group_rows = kPackPanels * micro_.tile_rows;
    const int64_t groups = divide_up(rows_, group_rows);
    parallel(*context_.executor, groups * (block_end_ - block0_), [&](int64_t task, int32_t) {
      const int64_t block = block0_ + task / groups;
      const int64_t row = task % groups * group_rows;
      const float* src =
          args_.a.as<const float>() + block * blocking_.depth * args_.a.stride[0] + row0_ + row;
      micro_.pack_rows(src, args_.a.stride[0], std::min(group_rows, rows_ - row), blocking_.depth_at(block),
                       packed_a(block) + row * blocking_.depth, micro_.tile_rows * blocking_.depth);
    });
  }

  void multiply() {
    const Tasks tasks(rows_, blocking_.n, context_.executor->threads, micro_);
    const int64_t strip_columns = tasks.strip_panels * micro_.tile_columns;
    parallel(*context_.executor, tasks.row_tasks * tasks.column_tasks, [&](int64_t task, int32_t thread) {
      const int64_t column = task / tasks.row_tasks;
      const int64_t row = task % tasks.row_tasks * tasks.task_rows;
      const int64_t row_end = std::min(row + tasks.task_rows, rows_);
      const int64_t begin = column * tasks.strips / tasks.column_tasks * strip_columns;
      const int64_t end =
          std::min((column + 1) * tasks.strips / tasks.column_tasks * strip_columns, blocking_.n);
      float* const packed = reinterpret_cast<float*>(context_.workspace) + workspace_.a_floats +
                            thread * workspace_.thread_floats;
      if (micro_.stream && row_end - row <= kStreamRows && args_.transpose_b && !args_.transpose_a) {
        stream(row, row_end, begin, end, packed);
      } else {
        multiply_strips(row, row_end, begin, end, strip_columns, packed);
      }
    });
  }

  // Few rows and a transposed B: its rows are used as they lie, or as they were decoded, a few at a time from
  // beginning to end.
  void stream(int64_t row, int64_t row_end, int64_t column, int64_t column_end, float* scratch) {
    for (; column < column_end; column += kStreamColumns) {
      for (int64_t block = block0_; block < block_end_; ++block) {
        GemmTile tile = tile_at(row, column, block);
        tile.rows = static_cast<int32_t>(row_end - row);
        tile.columns = static_cast<int32_t>(std::min<int64_t>(kStreamColumns, column_end - column));
        b_.rows(column, tile.columns, block * blocking_.depth, scratch, tile);
        micro_.stream(tile);
      }
    }
  }

  void multiply_strips(int64_t row, int64_t row_end, int64_t column, int64_t column_end,
                       int64_t strip_columns, float* packed) {
    Strip strip{column, std::min(column + strip_columns, column_end), block0_};
    while (strip.column < column_end) {
      Strip next = strip;
      if (++next.block == block_end_) {
        next = {strip.column_end, std::min(strip.column_end + strip_columns, column_end), block0_};
      }
      multiply_strip(row, row_end, strip, next, packed);
      strip = next;
    }
  }

  // Adds one block of k to the part of C that a strip covers. Asks for the next strip of B on the way, if it
  // is not empty.
  void multiply_strip(int64_t row, int64_t row_end, const Strip& strip, const Strip& next, float* packed) {
    GemmTile tiles[kMostStripPanels];
    const int64_t row_tiles = divide_up(row_end - row, micro_.tile_rows);
    int64_t panels = 0;
    for (int64_t column = strip.column; column < strip.column_end; column += micro_.tile_columns, ++panels) {
      tiles[panels] = tile_at(row, column, strip.block);
      set_b(column, strip.block, row_tiles, packed + panels * workspace_.panel_floats, packed, tiles[panels]);
    }

    // A panel that fits the first cache stays there for some rows; a larger one comes from the second cache
    // in any case, and then the rows of A should be the ones that stay.
    const int64_t step = workspace_.panel_floats <= kFirstCacheFloats ? kBlockTiles : 1;
    const int64_t parts =
        next.column < next.column_end && row_tiles > Tasks::kFewTiles ? row_tiles * panels : 0;
    int64_t part = 0;
    for (int64_t t0 = 0; t0 < row_tiles; t0 += step) {
      for (int64_t p = 0; p < panels; ++p) {
        for (int64_t t = t0; t < std::min(t0 + step, row_tiles); ++t, ++part) {
          if (part < parts) prefetch(next, part, parts);
          micro_.tile(tiles[p]);
          advance(row_end - row - (t + 1) * micro_.tile_rows, tiles[p]);
        }
      }
    }
  }

  void prefetch(const Strip& strip, int64_t part, int64_t parts) const {
    b_.prefetch(strip.column, strip.column_end - strip.column, strip.block * blocking_.depth,
                blocking_.depth_at(strip.block), part, parts);
  }

  // The first tile of a task's rows, without its B.
  GemmTile tile_at(int64_t row, int64_t column, int64_t block) const {
    GemmTile tile{};
    tile.depth = blocking_.depth_at(block);
    if (args_.transpose_a) {
      tile.a = packed_a(block) + row * blocking_.depth;
      tile.a_row = 1;
      tile.a_step = micro_.tile_rows;
    } else {
      tile.a_row = args_.a.stride[0];
      tile.a_step = 1;
      tile.a = args_.a.as<const float>() + (row0_ + row) * tile.a_row + block * blocking_.depth;
    }
    tile.c_row = args_.c.stride[0];
    tile.c = args_.c.as<float>() + (row0_ + row) * tile.c_row + column;
    tile.rows = static_cast<int32_t>(std::min<int64_t>(micro_.tile_rows, rows_ - row));
    tile.columns = static_cast<int32_t>(std::min<int64_t>(micro_.tile_columns, blocking_.n - column));
    tile.alpha = static_cast<float>(args_.alpha);
    tile.bias = args_.bias && block == 0 ? args_.bias.as<const float>() + column : nullptr;
    tile.add = args_.accumulate || block > 0;
    return tile;
  }

  // Moves a tile to the next rows, of which `left` are left.
  void advance(int64_t left, GemmTile& tile) const {
    tile.rows = static_cast<int32_t>(std::min<int64_t>(micro_.tile_rows, left));
    tile.a += args_.transpose_a ? micro_.tile_rows * blocking_.depth : micro_.tile_rows * tile.a_row;
    tile.c += micro_.tile_rows * tile.c_row;
  }

  // Gives a tile its panel: B itself if it is used about once and lies right, else a packed copy.
  void set_b(int64_t column, int64_t block, int64_t row_tiles, float* panel, float* strip,
             GemmTile& tile) const {
    const int64_t k0 = block * blocking_.depth;
    tile.b =
        row_tiles <= Tasks::kFewTiles && tile.columns == micro_.tile_columns ? b_.plain(column, k0) : nullptr;
    tile.b_step = b_.plain_step();
    if (tile.b != nullptr) return;
    b_.pack(column, tile.columns, k0, tile.depth, panel, strip + workspace_.strip_floats);
    tile.b = panel;
    tile.b_step = micro_.tile_columns;
  }

  const Context& context_;
  const GemmArgs& args_;
  const GemmMicroKernels& micro_;
  const Blocking blocking_;
  const GemmWorkspace workspace_;
  const StoredPanels b_;
  int64_t row0_ = 0, rows_ = 0;         // the chunk: rows of C
  int64_t block0_ = 0, block_end_ = 0;  // and blocks of k
};

}  // namespace

size_t blocked_gemm_workspace(const GemmArgs& args, int32_t threads, const GemmLevel& level) {
  return GemmWorkspace(args, Blocking(args, level.micro), level.micro).bytes(threads);
}

void blocked_gemm(const Context& context, const GemmArgs& args, const GemmLevel& level) {
  BlockedGemm(context, args, level).run();
}

}  // namespace inlaid::kernels

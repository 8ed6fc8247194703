// Attention backward, after FlashAttention-2 (arXiv 2307.08691): scores are computed again from q, k and the
// log-sum-exp.
//
// With S = scale Q K^T, P = exp(S - lse), delta[t] = dout[t] . out[t] (as matrices of one head):
//     dV = P^T dO     dP = dO V^T     dS = scale P (dP - delta)     dQ = dS K     dK = dS^T Q
// With a soft cap c, S = c T, T = tanh(scale Q K^T / c), and dS has the factor 1 - T^2 more.
// Tiles hold P and dS as [key, query], vectors along the queries, as in forward.cc; the five products read q,
// k, v and dout as they lie in memory, and only q and dout also transposed, once per block of queries.
//
// Who owns which sum. dQ belongs to a block of queries, dK and dV to keys of a *key head*, so one walk over
// all tiles cannot be cut freely among threads. A pair (document, key head) is either one task that walks all
// its tiles once (5 products a tile), or it is cut into tasks per block of queries for dQ (3 products) and
// tasks per group of keys for dK and dV (4 products). Pairs are cut only where there would be too few tasks
// for the threads. Both ways add the same tiles in the same order (head, block of queries, block of keys
// ascending), so the bits do not depend on the choice or on the number of threads.
//
// Blocks of keys that no query of a block sees, beyond the diagonal or before the window, are skipped.
//
// Cost: 10 * D flops per (query, key seen), 14 * D where pairs are cut. Numerics: f32, fused multiply-adds.
// Tested by attention_test.cc.
#include "kernels/attention/documents.h"
#include "kernels/attention/matmul.h"
#include "kernels/level.h"
#include "kernels/simd/math.h"

namespace inlaid::kernels::INLAID_LEVEL {
namespace {

constexpr int64_t kKeyGroup = 4 * kBlockK;  // keys of a task for dK and dV

struct Workspace {
  Documents docs;
  // Tasks of the documents before, [documents + 1] each; see the top of the file.
  int64_t* whole;       // pairs in one task: the first key heads of a document
  int64_t* by_queries;  // of the other key heads: blocks of queries x heads
  int64_t* by_keys;     // groups of keys x key heads
  float* tiles;         // per thread
  int64_t tile_floats;
  size_t bytes;
};

Workspace carve(const AttentionBackwardArgs& args, int32_t threads, std::byte* base) {
  Carver carver{base};
  Workspace w;
  const int64_t count = args.cu_q.shape[0];
  w.docs = documents(args.cu_q, args.cu_k);
  w.whole = carver.take<int64_t>(count);
  w.by_queries = carver.take<int64_t>(count);
  w.by_keys = carver.take<int64_t>(count);
  w.tile_floats = (3 * args.head_size + 2 * kBlockK) * kBlockQ;
  w.tiles = carver.take<float>(w.tile_floats * threads);
  w.bytes = carver.used;
  return w;
}

// The rows of one document.
struct Document {
  int64_t queries, keys, query_row, key_row;
};
INLAID_INLINE Document document_at(const Documents& docs, int64_t i) {
  return {queries(docs, i), keys(docs, i), docs.cu_q[i], docs.cu_k[i]};
}

// One head's block of queries, made ready for tiles.
class QueryBlock {
 public:
  QueryBlock(const AttentionBackwardArgs& args, const Document& document, int64_t head, int64_t block,
             float* tiles)
      : args_(args), size_(args.head_size), head_(head) {
    const int64_t first = block * kBlockQ;
    count_ = smaller(kBlockQ, document.queries - first);
    vectors_ = ceil_div(count_, kLanes);
    diagonal_ = document.keys - document.queries + first;
    window_ = window_of(args.window, document.keys);
    row_ = document.query_row + first;
    key_row_ = document.key_row;
    column_ = head * size_;
    key_column_ = head / (args.heads / args.kv_heads) * size_;
    query_t_ = tiles;
    dout_t_ = query_t_ + size_ * kBlockQ;
    dquery_t_ = dout_t_ + size_ * kBlockQ;
    p_ = dquery_t_ + size_ * kBlockQ;
    ds_ = p_ + kBlockK * kBlockQ;
  }

  // Keys that some query of the block sees, from the block that begin() is the first of on.
  int64_t begin() const { return first_key(diagonal_, window_) / kBlockK * kBlockK; }
  int64_t seen() const { return larger(0, diagonal_ + count_); }

  void read() {
    const Plane q = plane(args_.q), dout = plane(args_.dout), out = plane(args_.out), lse = plane(args_.lse);
    if (count_ % kLanes != 0) {
      for (int64_t i = 0; i < 2 * size_ * kBlockQ; i += kLanes) store(query_t_ + i, V{});
    }
    transpose(count_, size_, at(q, row_, column_), q.stride, query_t_, kBlockQ);
    transpose(count_, size_, at(dout, row_, column_), dout.stride, dout_t_, kBlockQ);
    // Lanes past the end: probability exp(0 - inf) = 0.
    for (int64_t j = 0; j < kBlockQ; ++j) {
      lse_[j] = __builtin_inff();
      delta_[j] = 0;
    }
    for (int64_t j = 0; j < count_; ++j) {
      lse_[j] = lse.data[head_ * lse.stride + row_ + j];
      const float* a = at(dout, row_ + j, column_);
      const float* b = at(out, row_ + j, column_);
      V sum{};
      along(0, size_, [&](int64_t c, auto lanes) {
        sum = fma(load_lanes(a + c, lanes), load_lanes(b + c, lanes), sum);
      });
      delta_[j] = reduce_add(sum);
    }
  }

  void clear_dquery() {
    for (int64_t i = 0; i < size_ * kBlockQ; i += kLanes) store(dquery_t_ + i, V{});
  }
  void write_dquery() {
    const Plane dq = plane(args_.dq);
    transpose(size_, count_, dquery_t_, kBlockQ, at(dq, row_, column_), dq.stride);
  }

  // Adds what the keys of the document from k0 on, one block of them, contribute to the gradients wanted.
  template <bool kQueries, bool kKeys>
  void add_tile(int64_t k0) {
    const Plane q = plane(args_.q), k = plane(args_.k), v = plane(args_.v), dout = plane(args_.dout);
    const Plane dk = plane(args_.dk), dv = plane(args_.dv);
    const int64_t n = smaller(kBlockK, seen() - k0), lanes = vectors_ * kLanes;
    const float* key = at(k, key_row_ + k0, key_column_);
    matmul<Start::zero>(n, lanes, size_, {key, k.stride, 1}, {query_t_, kBlockQ}, {p_, kBlockQ});
    matmul<Start::zero>(n, lanes, size_, {at(v, key_row_ + k0, key_column_), v.stride, 1}, {dout_t_, kBlockQ},
                        {ds_, kBlockQ});
    const Mask mask{k0 - diagonal_, window_};
    if (args_.soft_cap == 0) {
      differentiate_softmax<false>(n, mask);
    } else {
      differentiate_softmax<true>(n, mask);
    }
    if constexpr (kKeys) {
      // The first queries see none of these keys, and with a window the last ones neither.
      const int64_t first = larger(0, mask.from);
      const int64_t last = window_ == 0 ? count_ : smaller(count_, mask.from + n - 1 + window_);
      matmul<Start::add>(n, size_, last - first, {p_ + first, kBlockQ, 1},
                         {at(dout, row_ + first, column_), dout.stride},
                         {at(dv, key_row_ + k0, key_column_), dv.stride});
      matmul<Start::add>(n, size_, last - first, {ds_ + first, kBlockQ, 1},
                         {at(q, row_ + first, column_), q.stride},
                         {at(dk, key_row_ + k0, key_column_), dk.stride});
    }
    if constexpr (kQueries) {
      matmul<Start::add>(size_, lanes, n, {key, 1, k.stride}, {ds_, kBlockQ}, {dquery_t_, kBlockQ});
    }
  }

 private:
  static float* at(const Plane& p, int64_t row, int64_t column) { return p.data + row * p.stride + column; }

  // Products become P, dP becomes dS.
  template <bool kCapped>
  void differentiate_softmax(int64_t n, const Mask& mask) {
    const V scale = broadcast(static_cast<float>(args_.scale));
    const float cap = static_cast<float>(args_.soft_cap);
    const float inner = kCapped ? static_cast<float>(args_.scale / args_.soft_cap) : 0;
    for (int64_t v = 0; v < vectors_; ++v) {
      const V lse = load(lse_ + v * kLanes), delta = load(delta_ + v * kLanes);
      const I lane = lane_index() + static_cast<int32_t>(v * kLanes);
      const bool masked = !mask.all(v, n);
      for (int64_t i = 0; i < n; ++i) {
        float* p_at = p_ + i * kBlockQ + v * kLanes;
        float* ds_at = ds_ + i * kBlockQ + v * kLanes;
        V p, ds;
        if constexpr (kCapped) {
          const V t = tanh(load(p_at) * inner);
          p = exp(t * cap - lse);
          ds = p * (load(ds_at) - delta) * scale * (1.0f - t * t);
        } else {
          p = exp(load(p_at) * scale - lse);
          ds = p * (load(ds_at) - delta) * scale;
        }
        if (masked) {
          const I sees = mask.sees(lane, i);
          p = sees ? p : V{};
          ds = sees ? ds : V{};
        }
        store(p_at, p);
        store(ds_at, ds);
      }
    }
  }

  const AttentionBackwardArgs& args_;
  int64_t size_, head_, count_, vectors_, diagonal_, window_, row_, key_row_, column_, key_column_;
  float *query_t_, *dout_t_, *dquery_t_;  // [size][kBlockQ]
  float *p_, *ds_;                        // [kBlockK][kBlockQ]
  float lse_[kBlockQ], delta_[kBlockQ];
};

void clear_keys(const AttentionBackwardArgs& args, const Document& document, int64_t key_head, int64_t begin,
                int64_t end) {
  const Plane gradients[] = {plane(args.dk), plane(args.dv)};
  for (const Plane& p : gradients) {
    for (int64_t r = document.key_row + begin; r < document.key_row + end; ++r) {
      float* row = p.data + r * p.stride + key_head * args.head_size;
      along(0, args.head_size, [&](int64_t c, auto lanes) { store_lanes(row + c, V{}, lanes); });
    }
  }
}

void whole_pair(const AttentionBackwardArgs& args, const Document& document, int64_t key_head, float* tiles) {
  const int64_t group = args.heads / args.kv_heads;
  clear_keys(args, document, key_head, 0, document.keys);
  for (int64_t h = key_head * group; h < (key_head + 1) * group; ++h) {
    for (int64_t b = 0; b < ceil_div(document.queries, kBlockQ); ++b) {
      QueryBlock block(args, document, h, b, tiles);
      block.read();
      block.clear_dquery();
      for (int64_t k0 = block.begin(); k0 < block.seen(); k0 += kBlockK) block.add_tile<true, true>(k0);
      block.write_dquery();
    }
  }
}

void query_gradient(const AttentionBackwardArgs& args, const Document& document, int64_t head, int64_t b,
                    float* tiles) {
  QueryBlock block(args, document, head, b, tiles);
  block.read();
  block.clear_dquery();
  for (int64_t k0 = block.begin(); k0 < block.seen(); k0 += kBlockK) block.add_tile<true, false>(k0);
  block.write_dquery();
}

void key_gradients(const AttentionBackwardArgs& args, const Document& document, int64_t key_head,
                   int64_t key_group, float* tiles) {
  const int64_t group = args.heads / args.kv_heads;
  const int64_t begin = key_group * kKeyGroup, end = smaller(begin + kKeyGroup, document.keys);
  clear_keys(args, document, key_head, begin, end);
  // The blocks before do not reach these keys yet.
  const int64_t first = larger(0, begin - (document.keys - document.queries)) / kBlockQ;
  for (int64_t h = key_head * group; h < (key_head + 1) * group; ++h) {
    for (int64_t b = first; b < ceil_div(document.queries, kBlockQ); ++b) {
      QueryBlock block(args, document, h, b, tiles);
      if (block.seen() <= begin) continue;
      if (block.begin() >= end) break;
      block.read();
      for (int64_t k0 = larger(begin, block.begin()); k0 < smaller(end, block.seen()); k0 += kBlockK)
        block.add_tile<false, true>(k0);
    }
  }
}

// Decides which pairs are cut. Pairs are taken whole while each is at most the share of one thread in what is
// left.
void plan_tasks(const AttentionBackwardArgs& args, int32_t threads, const Workspace& w) {
  const auto pair_cost = [&](int64_t i) {
    const int64_t window = window_of(args.window, keys(w.docs, i));
    const int64_t seen = window == 0 ? keys(w.docs, i) : smaller(keys(w.docs, i), window + kBlockQ + kBlockK);
    return static_cast<double>(queries(w.docs, i)) * static_cast<double>(seen);
  };
  double left = 0;
  for (int64_t i = 0; i < w.docs.count; ++i) left += pair_cost(i) * static_cast<double>(args.kv_heads);
  w.whole[0] = w.by_queries[0] = w.by_keys[0] = 0;
  for (int64_t i = 0; i < w.docs.count; ++i) {
    const Document d = document_at(w.docs, i);
    const double pair = pair_cost(i);
    int64_t whole = 0;
    for (int64_t g = 0; g < args.kv_heads; ++g, left -= pair) {
      if (whole == g && pair * threads <= left) ++whole;
    }
    const int64_t cut = args.kv_heads - whole;
    w.whole[i + 1] = w.whole[i] + whole;
    w.by_queries[i + 1] = w.by_queries[i] + cut * (args.heads / args.kv_heads) * ceil_div(d.queries, kBlockQ);
    w.by_keys[i + 1] = w.by_keys[i] + cut * ceil_div(d.keys, kKeyGroup);
  }
}

}  // namespace

size_t attention_backward_workspace(const AttentionBackwardArgs& args, int32_t threads) {
  return carve(args, threads, nullptr).bytes;
}

void attention_backward(const Context& context, const AttentionBackwardArgs& args) {
  const int32_t threads = context.executor->threads;
  const Workspace w = carve(args, threads, context.workspace);
  const Documents& docs = w.docs;
  clear_outside(context, plane(args.dq), docs.cu_q[0], docs.cu_q[docs.count]);
  clear_outside(context, plane(args.dk), docs.cu_k[0], docs.cu_k[docs.count]);
  clear_outside(context, plane(args.dv), docs.cu_k[0], docs.cu_k[docs.count]);
  plan_tasks(args, threads, w);
  const int64_t whole = w.whole[docs.count], by_keys = w.by_keys[docs.count],
                by_queries = w.by_queries[docs.count];
  const int64_t group = args.heads / args.kv_heads;
  // Long tasks first.
  parallel(*context.executor, whole + by_keys + by_queries, [&](int64_t task, int32_t thread) {
    float* tiles = w.tiles + thread * w.tile_floats;
    if (task < whole) {
      const int64_t i = document_of(w.whole, docs.count, task);
      return whole_pair(args, document_at(docs, i), task - w.whole[i], tiles);
    }
    task -= whole;
    const auto first_cut = [&](int64_t i) { return w.whole[i + 1] - w.whole[i]; };
    if (task < by_keys) {
      const int64_t i = document_of(w.by_keys, docs.count, task);
      const Document d = document_at(docs, i);
      const int64_t index = task - w.by_keys[i], groups = ceil_div(d.keys, kKeyGroup);
      return key_gradients(args, d, first_cut(i) + index / groups, index % groups, tiles);
    }
    task -= by_keys;
    const int64_t i = document_of(w.by_queries, docs.count, task);
    const Document d = document_at(docs, i);
    const int64_t index = task - w.by_queries[i], blocks = ceil_div(d.queries, kBlockQ);
    query_gradient(args, d, first_cut(i) * group + index / blocks, blocks - 1 - index % blocks, tiles);
  });
}

}  // namespace inlaid::kernels::INLAID_LEVEL

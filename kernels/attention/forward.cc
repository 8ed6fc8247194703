// Attention forward, after FlashAttention-2 (arXiv 2307.08691): scores exist one tile at a time.
//
// Idea. A task takes a block of 48 queries of one head of one document and walks over the keys it sees, 64 at
// a time, keeping per query the running maximum m, the running sum l of exp(score - m), and the unnormalised
// output. Vectors run along the *queries*: the block of queries is transposed once, then
//     S^T[key, query]   = K Q^T        K as it lies in memory, elements broadcast
//     O^T[feature, query] = alpha O^T + V^T P^T      V as it lies in memory
// so keys and values are never copied or transposed (also not for grouped heads, which read the same rows),
// and maximum, sum and rescaling are plain vector operations per lane. Blocks of keys that no query of the
// block sees, beyond the diagonal or before the window, are skipped: with a window the cost is linear in the length.
// A soft cap is applied to a tile of scores where it is scaled.
//
// Cost: 4 * D * (pairs of query and key seen) flops; a tile works on ~70 KiB. Measured at D = 64 and 1024 tokens:
// 74 % of the peak of AVX-512 on one core of Zen 4; half of it at 128 tokens, where the diagonal blocks, of which
// half is masked, are most of the work. Numerics: f32; each query's sums run over its keys in ascending order, in
// blocks counted from the start of the document: bits do not depend on threads or on what else is packed.
// Tested by attention_test.cc. Few queries: few_queries.h.
#include "kernels/attention/documents.h"
#include "kernels/attention/few_queries.h"
#include "kernels/attention/matmul.h"
#include "kernels/level.h"
#include "kernels/simd/math.h"

namespace inlaid::kernels::INLAID_LEVEL {
namespace {

struct Workspace {
  FewQueries few;
  int64_t* blocks;  // [documents + 1] blocks of queries in the documents before; documents of few queries
                    // have none
  float* tiles;     // per thread
  int64_t tile_floats;
  size_t bytes;
};

Workspace carve(const AttentionForwardArgs& args, int32_t threads, std::byte* base) {
  Carver carver{base};
  Workspace w;
  const int64_t count = args.cu_q.shape[0];
  w.few.documents = documents(args.cu_q, args.cu_k);
  w.few.chunks = carver.take<int64_t>(count);
  w.few.parts = carver.take<int64_t>(count);
  w.few.partial = carver.take<float>(most_parts(args.k.shape[0]) * args.heads * (args.head_size + 2));
  w.blocks = carver.take<int64_t>(count);
  w.tile_floats = (2 * args.head_size + kBlockK) * kBlockQ;
  w.tiles = carver.take<float>(w.tile_floats * threads);
  w.bytes = carver.used;
  return w;
}

// Running maximum and sum of a block's queries.
struct Running {
  V largest[kQueryVectors], sum[kQueryVectors], rescale[kQueryVectors];
};

// Products of one vector of queries with n keys become scores; returns the larger of `best` and the largest.
template <bool kCapped>
V scale_scores(float* column, int64_t n, float scale, float cap, const Mask& mask, int64_t v, V best) {
  const I lane = lane_index() + static_cast<int32_t>(v * kLanes);
  const bool masked = !mask.all(v, n);
  const float inner = kCapped ? scale / cap : scale;
  for (int64_t i = 0; i < n; ++i) {
    V s = load(column + i * kBlockQ) * inner;
    if constexpr (kCapped) s = tanh(s) * cap;
    if (masked) s = mask.sees(lane, i) ? s : broadcast(-__builtin_inff());
    store(column + i * kBlockQ, s);
    best = max(s, best);
  }
  return best;
}

// Products with n keys become exp(score - maximum).
void softmax_tile(float* scores, int64_t n, int64_t vectors, const Mask& mask, float scale, float cap, Running& run) {
  for (int64_t v = 0; v < vectors; ++v) {
    float* column = scores + v * kLanes;
    const V best = cap == 0 ? scale_scores<false>(column, n, scale, cap, mask, v, run.largest[v])
                            : scale_scores<true>(column, n, scale, cap, mask, v, run.largest[v]);
    // A query that has seen no key yet has maximum -inf; any other shift gives it exponentials of 0.
    const V shift = best == broadcast(-__builtin_inff()) ? V{} : best;
    V sum[2] = {};
    int64_t i = 0;
    for (; i + 2 <= n; i += 2) {
      for (int u = 0; u < 2; ++u) {
        const V p = exp(load(column + (i + u) * kBlockQ) - shift);
        store(column + (i + u) * kBlockQ, p);
        sum[u] += p;
      }
    }
    if (i < n) {
      const V p = exp(load(column + i * kBlockQ) - shift);
      store(column + i * kBlockQ, p);
      sum[0] += p;
    }
    run.rescale[v] = exp(run.largest[v] - shift);
    run.sum[v] = fma(run.sum[v], run.rescale[v], sum[0] + sum[1]);
    run.largest[v] = best;
  }
}

void attend_block(const AttentionForwardArgs& args, const Documents& docs, int64_t document, int64_t head,
                  int64_t block, float* tiles) {
  const Plane q = plane(args.q), k = plane(args.k), v = plane(args.v), out = plane(args.out),
              lse = plane(args.lse);
  const int64_t size = args.head_size, key_head = head / (args.heads / args.kv_heads);
  const int64_t first = block * kBlockQ;
  const int64_t n = smaller(kBlockQ, queries(docs, document) - first), vectors = ceil_div(n, kLanes);
  // Query j of the block sees keys .. diagonal + j.
  const int64_t diagonal = keys(docs, document) - queries(docs, document) + first;
  const int64_t seen = larger(0, diagonal + n), window = window_of(args.window, keys(docs, document));
  const int64_t row = docs.cu_q[document] + first;
  const float* key = k.data + docs.cu_k[document] * k.stride + key_head * size;
  const float* value = v.data + docs.cu_k[document] * v.stride + key_head * size;

  float* queries_t = tiles;                   // [size][kBlockQ]
  float* out_t = queries_t + size * kBlockQ;  // [size][kBlockQ]
  float* scores = out_t + size * kBlockQ;     // [kBlockK][kBlockQ]
  for (int64_t i = 0; i < size * kBlockQ; i += kLanes) store(out_t + i, V{});
  if (n % kLanes != 0) {
    for (int64_t i = 0; i < size * kBlockQ; i += kLanes) store(queries_t + i, V{});
  }
  transpose(n, size, q.data + row * q.stride + head * size, q.stride, queries_t, kBlockQ);

  Running run;
  for (int64_t i = 0; i < vectors; ++i) {
    run.largest[i] = broadcast(-__builtin_inff());
    run.sum[i] = V{};
  }
  const int64_t lanes = vectors * kLanes;
  for (int64_t k0 = first_key(diagonal, window) / kBlockK * kBlockK; k0 < seen; k0 += kBlockK) {
    const int64_t m = smaller(kBlockK, seen - k0);
    matmul<Start::zero>(m, lanes, size, {key + k0 * k.stride, k.stride, 1}, {queries_t, kBlockQ},
                        {scores, kBlockQ});
    softmax_tile(scores, m, vectors, {k0 - diagonal, window}, static_cast<float>(args.scale),
                 static_cast<float>(args.soft_cap), run);
    matmul<Start::scaled>(size, lanes, m, {value + k0 * v.stride, 1, v.stride}, {scores, kBlockQ},
                          {out_t, kBlockQ}, run.rescale);
  }

  for (int64_t i = 0; i < vectors; ++i) {
    // Queries before the first key see nothing: output 0, log-sum-exp -inf.
    const I sees =
        lane_index() + static_cast<int32_t>(i * kLanes) >= broadcast_int(static_cast<int32_t>(-diagonal));
    const V factor = sees ? 1.0f / run.sum[i] : V{};
    for (int64_t d = 0; d < size; ++d) {
      float* x = out_t + d * kBlockQ + i * kLanes;
      store(x, load(x) * factor);
    }
    const V total = run.largest[i] + log(run.sum[i]);
    float* to = lse.data + head * lse.stride + row + i * kLanes;
    const int64_t rest = n - i * kLanes;
    if (rest >= kLanes) {
      store(to, total);
    } else {
      store_first(to, total, rest);
    }
  }
  transpose(size, n, out_t, kBlockQ, out.data + row * out.stride + head * size, out.stride);
}

}  // namespace

size_t attention_forward_workspace(const AttentionForwardArgs& args, int32_t threads) {
  return carve(args, threads, nullptr).bytes;
}

void attention_forward(const Context& context, const AttentionForwardArgs& args) {
  const Workspace w = carve(args, context.executor->threads, context.workspace);
  const Documents& docs = w.few.documents;
  const Plane lse = plane(args.lse);
  const int64_t begin = docs.cu_q[0], end = docs.cu_q[docs.count];
  clear_outside(context, plane(args.out), begin, end);
  for (int64_t h = 0; h < args.heads; ++h) {
    for (int64_t t = 0; t < begin; ++t) lse.data[h * lse.stride + t] = 0;
    for (int64_t t = end; t < lse.columns; ++t) lse.data[h * lse.stride + t] = 0;
  }

  count_chunks(w.few, args.window);
  w.blocks[0] = 0;
  for (int64_t i = 0; i < docs.count; ++i) {
    const int64_t n = queries(docs, i);
    w.blocks[i + 1] = w.blocks[i] + (n > kFewQueries ? ceil_div(n, kBlockQ) : 0);
  }
  const int64_t few_tasks = w.few.chunks[docs.count] * args.kv_heads;
  const int64_t block_tasks = w.blocks[docs.count] * args.heads;
  parallel(*context.executor, few_tasks + block_tasks, [&](int64_t task, int32_t thread) {
    if (task < few_tasks) return attend_chunk(args, w.few, task);
    // From the end: the blocks that see most keys come first, so that threads finish together.
    const int64_t index = w.blocks[docs.count] - 1 - (task - few_tasks) / args.heads;
    const int64_t document = document_of(w.blocks, docs.count, index);
    attend_block(args, docs, document, (task - few_tasks) % args.heads, index - w.blocks[document],
                 w.tiles + thread * w.tile_floats);
  });
  combine_chunks(context, args, w.few);
}

}  // namespace inlaid::kernels::INLAID_LEVEL

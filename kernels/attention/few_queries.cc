#include "kernels/attention/few_queries.h"

#include <cmath>

#include "kernels/level.h"
#include "kernels/simd/math.h"

namespace inlaid::kernels::INLAID_LEVEL {
namespace {

// scores[i] of q and k_i for i < n, and -inf up to the end of the last vector. Returns the largest.
float scores_of(const AttentionForwardArgs& args, const float* q, const float* k, int64_t stride, int64_t n,
                float* scores) {
  const int64_t size = args.head_size;
  const float cap = static_cast<float>(args.soft_cap);
  const float scale = static_cast<float>(cap == 0 ? args.scale : args.scale / args.soft_cap);
  V best = broadcast(-__builtin_inff());
  for (int64_t i = 0; i < n; i += kLanes) {
    const float* row[kLanes];
    for (int r = 0; r < kLanes; ++r) row[r] = k + smaller(i + r, n - 1) * stride;
    V sum[kLanes] = {};
    along(0, size, [&](int64_t c, auto lanes) {
      const V left = load_lanes(q + c, lanes);
#pragma GCC unroll 16
      for (int r = 0; r < kLanes; ++r) sum[r] = fma(left, load_lanes(row[r] + c, lanes), sum[r]);
    });
    V s = sum_each(sum) * scale;
    if (cap != 0) s = tanh(s) * cap;
    s = lane_index() < broadcast_int(static_cast<int32_t>(smaller(n - i, kLanes)))
            ? s
            : broadcast(-__builtin_inff());
    best = max(s, best);
    store(scores + i, s);
  }
  return reduce_max(best);
}

// out[c] = sum of p[i] v_i[c], i ascending.
void weigh_values(const float* p, const float* v, int64_t stride, int64_t n, int64_t size, float* out) {
  int64_t c = 0;
  for (; c + 4 * kLanes <= size; c += 4 * kLanes) {
    V sum[4] = {};
    for (int64_t i = 0; i < n; ++i) {
      const V weight = broadcast(p[i]);
      for (int j = 0; j < 4; ++j) sum[j] = fma(weight, load(v + i * stride + c + j * kLanes), sum[j]);
    }
    for (int j = 0; j < 4; ++j) store(out + c + j * kLanes, sum[j]);
  }
  along(c, size, [&](int64_t first, auto lanes) {
    V sum{};
    for (int64_t i = 0; i < n; ++i)
      sum = fma(broadcast(p[i]), load_lanes(v + i * stride + first, lanes), sum);
    store_lanes(out + first, sum, lanes);
  });
}

void scale_row(float* x, int64_t n, float factor) {
  along(0, n, [&](int64_t c, auto lanes) { store_lanes(x + c, load_lanes(x + c, lanes) * factor, lanes); });
}

// The chunk of the document in which the first key lies that one of its queries sees.
int64_t first_chunk(const Documents& docs, int64_t document, int64_t window) {
  const int64_t n = keys(docs, document);
  return first_key(larger(0, n - queries(docs, document)), window_of(window, n)) / kChunkK;
}

int64_t chunks_of(const FewQueries& few, int64_t document) {
  return few.chunks[document + 1] - few.chunks[document];
}

float* part(const AttentionForwardArgs& args, const FewQueries& few, int64_t document, int64_t query,
            int64_t chunk, int64_t head) {
  const int64_t index = few.parts[document] + query * chunks_of(few, document) + chunk;
  return few.partial + (index * args.heads + head) * (args.head_size + 2);
}

}  // namespace

void count_chunks(const FewQueries& few, int64_t window) {
  few.chunks[0] = few.parts[0] = 0;
  for (int64_t i = 0; i < few.documents.count; ++i) {
    const int64_t q = queries(few.documents, i);
    // A document without keys still has a chunk, which writes its zeros.
    const int64_t all = ceil_div(keys(few.documents, i), kChunkK) - first_chunk(few.documents, i, window);
    const int64_t chunks = q == 0 || q > kFewQueries ? 0 : larger(1, all);
    few.chunks[i + 1] = few.chunks[i] + chunks;
    few.parts[i + 1] = few.parts[i] + (chunks > 1 ? q * chunks : 0);
  }
}

void attend_chunk(const AttentionForwardArgs& args, const FewQueries& few, int64_t task) {
  const Documents& docs = few.documents;
  const Plane q = plane(args.q), k = plane(args.k), v = plane(args.v), out = plane(args.out),
              lse = plane(args.lse);
  const int64_t key_head = task % args.kv_heads, group = args.heads / args.kv_heads, size = args.head_size;
  const int64_t document = document_of(few.chunks, docs.count, task / args.kv_heads);
  const int64_t chunk = task / args.kv_heads - few.chunks[document];
  const int64_t window = window_of(args.window, keys(docs, document));
  const int64_t begin = (first_chunk(docs, document, args.window) + chunk) * kChunkK;
  const int64_t in_chunk = smaller(kChunkK, keys(docs, document) - begin);
  for (int64_t j = 0; j < queries(docs, document); ++j) {
    const int64_t row = docs.cu_q[document] + j;
    // Of the chunk, the query sees keys [first, first + n).
    const int64_t last = keys(docs, document) - queries(docs, document) + j;
    const int64_t first = larger(0, first_key(last, window) - begin);
    const int64_t n = larger(0, smaller(in_chunk, last + 1 - begin) - first);
    const int64_t key_row = docs.cu_k[document] + begin + first;
    const float* key = k.data + key_row * k.stride + key_head * size;
    const float* value = v.data + key_row * v.stride + key_head * size;
    for (int64_t h = key_head * group; h < (key_head + 1) * group; ++h) {
      float p[kChunkK + kLanes];
      const float largest = scores_of(args, q.data + row * q.stride + h * size, key, k.stride, n, p);
      const V shift = broadcast(n == 0 ? 0.0f : largest);
      V sum{};
      for (int64_t i = 0; i < n; i += kLanes) {
        const V e = exp(load(p + i) - shift);
        store(p + i, e);
        sum += e;
      }
      const float total = reduce_add(sum);
      if (chunks_of(few, document) > 1) {
        float* to = part(args, few, document, j, chunk, h);
        weigh_values(p, value, v.stride, n, size, to);
        to[size] = largest;
        to[size + 1] = total;
      } else {
        float* to = out.data + row * out.stride + h * size;
        weigh_values(p, value, v.stride, n, size, to);
        scale_row(to, size, n == 0 ? 0.0f : 1.0f / total);
        lse.data[h * lse.stride + row] = largest + std::log(total);
      }
    }
  }
}

void combine_chunks(const Context& context, const AttentionForwardArgs& args, const FewQueries& few) {
  const Documents& docs = few.documents;
  if (few.parts[docs.count] == 0) return;
  const Plane out = plane(args.out), lse = plane(args.lse);
  const int64_t size = args.head_size;
  parallel(*context.executor, docs.count * args.heads, [&](int64_t task, int32_t) {
    const int64_t document = task / args.heads, h = task % args.heads, chunks = chunks_of(few, document);
    if (chunks < 2) return;
    for (int64_t j = 0; j < queries(docs, document); ++j) {
      const int64_t row = docs.cu_q[document] + j;
      float largest = -__builtin_inff();
      for (int64_t i = 0; i < chunks; ++i) {
        const float m = part(args, few, document, j, i, h)[size];
        largest = m > largest ? m : largest;
      }
      float* to = out.data + row * out.stride + h * size;
      along(0, size, [&](int64_t c, auto lanes) { store_lanes(to + c, V{}, lanes); });
      float total = 0;
      for (int64_t i = 0; i < chunks; ++i) {
        const float* from = part(args, few, document, j, i, h);
        // A chunk of which the query sees no key has sum 0 and output 0.
        const float weight = from[size + 1] == 0 ? 0.0f : std::exp(from[size] - largest);
        total += weight * from[size + 1];
        along(0, size, [&](int64_t c, auto lanes) {
          store_lanes(to + c, fma(load_lanes(from + c, lanes), broadcast(weight), load_lanes(to + c, lanes)),
                      lanes);
        });
      }
      const bool none = keys(docs, document) - queries(docs, document) + j + 1 <= 0;
      scale_row(to, size, none ? 0.0f : 1.0f / total);
      lse.data[h * lse.stride + row] = largest + std::log(total);
    }
  });
}

}  // namespace inlaid::kernels::INLAID_LEVEL

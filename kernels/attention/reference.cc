// Attention as the formula says, one row at a time. Scores are computed again where they are needed: nothing
// is stored.
#include "kernels/reference.h"

#include <cmath>

#include "kernels/level.h"

namespace inlaid::kernels::reference {
namespace {

template <typename T>
double dot(const T* a, const T* b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += double{a[i]} * b[i];
  return sum;
}

template <typename T>
void clear(const Rows<T>& x) {
  for (int64_t t = 0; t < x.rows; ++t) {
    for (int64_t c = 0; c < x.columns; ++c) x[t][c] = 0;
  }
}

// Score of a scaled product, and its derivative.
template <typename Args>
double capped(const Args& args, double product) {
  return args.soft_cap == 0 ? product : args.soft_cap * std::tanh(product / args.soft_cap);
}
template <typename Args>
double capped_derivative(const Args& args, double score) {
  return args.soft_cap == 0 ? 1 : 1 - (score / args.soft_cap) * (score / args.soft_cap);
}

// Calls fn(head, query row, column of the head, column of its key head, first key row seen, keys seen) for every
// head and query.
template <typename Args, typename Fn>
void for_queries(const Args& args, const Fn& fn) {
  const int32_t* cu_q = args.cu_q.template as<int32_t>();
  const int32_t* cu_k = args.cu_k.template as<int32_t>();
  for (int64_t h = 0; h < args.heads; ++h) {
    const int64_t key_head = h / (args.heads / args.kv_heads);
    for (int64_t i = 0; i + 1 < args.cu_q.shape[0]; ++i) {
      const int64_t queries = cu_q[i + 1] - cu_q[i], keys = cu_k[i + 1] - cu_k[i];
      for (int64_t j = 0; j < queries; ++j) {
        const int64_t end = keys - queries + j + 1;
        const int64_t begin = args.window == 0 || end < args.window ? 0 : end - args.window;
        fn(h, cu_q[i] + j, h * args.head_size, key_head * args.head_size, cu_k[i] + begin, end < 0 ? 0 : end - begin);
      }
    }
  }
}

}  // namespace

size_t attention_forward_workspace(const AttentionForwardArgs&, int32_t) {
  return 0;
}
size_t attention_backward_workspace(const AttentionBackwardArgs&, int32_t) {
  return 0;
}

void attention_forward(const Context&, const AttentionForwardArgs& args) {
  with_type(args.q.dtype, [&]<typename T>(T) {
    const auto q = rows<T>(args.q), k = rows<T>(args.k), v = rows<T>(args.v), out = rows<T>(args.out);
    const auto lse = rows<T>(args.lse);
    const int64_t size = args.head_size;
    clear(out);
    clear(lse);
    for_queries(args, [&](int64_t h, int64_t t, int64_t qc, int64_t kc, int64_t first, int64_t seen) {
      double largest = -INFINITY;
      for (int64_t s = first; s < first + seen; ++s) {
        const double score = capped(args, args.scale * dot(q[t] + qc, k[s] + kc, size));
        if (!(score <= largest)) largest = score;
      }
      double sum = 0;
      for (int64_t s = first; s < first + seen; ++s) {
        sum += std::exp(capped(args, args.scale * dot(q[t] + qc, k[s] + kc, size)) - largest);
      }
      lse[h][t] = static_cast<T>(seen == 0 ? -INFINITY : largest + std::log(sum));
      constexpr int64_t kColumns = 64;
      for (int64_t c0 = 0; c0 < size; c0 += kColumns) {
        const int64_t n = size - c0 < kColumns ? size - c0 : kColumns;
        double total[kColumns] = {};
        for (int64_t s = first; s < first + seen; ++s) {
          const double p = std::exp(capped(args, args.scale * dot(q[t] + qc, k[s] + kc, size)) - largest) / sum;
          for (int64_t c = 0; c < n; ++c) total[c] += p * v[s][kc + c0 + c];
        }
        for (int64_t c = 0; c < n; ++c) out[t][qc + c0 + c] = static_cast<T>(total[c]);
      }
    });
  });
}

void attention_backward(const Context&, const AttentionBackwardArgs& args) {
  with_type(args.q.dtype, [&]<typename T>(T) {
    const auto q = rows<T>(args.q), k = rows<T>(args.k), v = rows<T>(args.v), out = rows<T>(args.out);
    const auto lse = rows<T>(args.lse), dout = rows<T>(args.dout);
    const auto dq = rows<T>(args.dq), dk = rows<T>(args.dk), dv = rows<T>(args.dv);
    const int64_t size = args.head_size;
    clear(dq);
    clear(dk);
    clear(dv);
    for_queries(args, [&](int64_t h, int64_t t, int64_t qc, int64_t kc, int64_t first, int64_t seen) {
      const double delta = dot(dout[t] + qc, out[t] + qc, size);
      for (int64_t s = first; s < first + seen; ++s) {
        const double score = capped(args, args.scale * dot(q[t] + qc, k[s] + kc, size));
        const double p = std::exp(score - lse[h][t]);
        const double ds =
            args.scale * p * (dot(dout[t] + qc, v[s] + kc, size) - delta) * capped_derivative(args, score);
        for (int64_t c = 0; c < size; ++c) {
          dq[t][qc + c] += static_cast<T>(ds * k[s][kc + c]);
          dk[s][kc + c] += static_cast<T>(ds * q[t][qc + c]);
          dv[s][kc + c] += static_cast<T>(p * dout[t][qc + c]);
        }
      }
    });
  });
}

}  // namespace inlaid::kernels::reference

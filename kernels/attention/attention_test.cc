// Attention against a plain T x T implementation in f64, finite differences, and its promises about bits.
#include "kernels/testing.h"

namespace inlaid::kernels::testing {
namespace {

struct Shape {
  std::vector<int> queries, keys;
  int64_t heads, kv_heads, size;
  int64_t spare = 0;  // rows that belong to no document
  double spread = 1;  // standard deviation of q
  int64_t window = 0;
  double soft_cap = 0;
};

std::vector<int32_t> ends(const std::vector<int>& lengths) {
  std::vector<int32_t> result{0};
  for (int n : lengths) result.push_back(result.back() + n);
  return result;
}

// Inputs and outputs of both passes.
template <typename T>
struct Problem {
  explicit Problem(const Shape& s, int64_t gap = 0)
      : shape(s),
        cu_q(ends(s.queries)),
        cu_k(ends(s.keys)),
        tq(cu_q.back() + s.spare),
        tk(cu_k.back() + s.spare),
        q(tq, s.heads * s.size, gap),
        k(tk, s.kv_heads * s.size, gap),
        v(tk, s.kv_heads * s.size, gap),
        out(tq, s.heads * s.size, gap),
        lse(s.heads, tq, gap),
        dout(tq, s.heads * s.size, gap),
        dq(tq, s.heads * s.size, gap),
        dk(tk, s.kv_heads * s.size, gap),
        dv(tk, s.kv_heads * s.size, gap) {
    std::mt19937 random(5);
    q.fill(random, s.spread);
    k.fill(random);
    v.fill(random);
    dout.fill(random);
    for (Matrix<T>* x : {&out, &lse, &dq, &dk, &dv}) x->fill(random);
  }

  AttentionForwardArgs forward_args() const {
    AttentionForwardArgs args;
    args.q = q.view(), args.k = k.view(), args.v = v.view(), args.out = out.view(), args.lse = lse.view();
    args.cu_q = view1(const_cast<int32_t*>(cu_q.data()), DType::i32, static_cast<int64_t>(cu_q.size()));
    args.cu_k = view1(const_cast<int32_t*>(cu_k.data()), DType::i32, static_cast<int64_t>(cu_k.size()));
    args.heads = shape.heads, args.kv_heads = shape.kv_heads, args.head_size = shape.size;
    args.scale = 1 / std::sqrt(static_cast<double>(shape.size));
    args.window = shape.window;
    args.soft_cap = shape.soft_cap;
    return args;
  }
  AttentionBackwardArgs backward_args() const {
    const AttentionForwardArgs f = forward_args();
    return {dout.view(), f.q,    f.k,    f.v,     f.out,      f.lse,       dq.view(), dk.view(),
            dv.view(),   f.cu_q, f.cu_k, f.heads, f.kv_heads, f.head_size, f.scale,   f.window,  f.soft_cap};
  }
  void run_forward(const KernelTable& table, const Executor& executor) {
    const AttentionForwardArgs args = forward_args();
    table.attention_forward(Call(executor, table.attention_forward_workspace(args, executor.threads)), args);
  }
  void run_backward(const KernelTable& table, const Executor& executor) {
    const AttentionBackwardArgs args = backward_args();
    table.attention_backward(Call(executor, table.attention_backward_workspace(args, executor.threads)),
                             args);
  }
  void run(const KernelTable& table, const Executor& executor) {
    run_forward(table, executor);
    run_backward(table, executor);
  }

  Shape shape;
  std::vector<int32_t> cu_q, cu_k;
  int64_t tq, tk;
  Matrix<T> q, k, v, out, lse, dout, dq, dk, dv;
};

// The formulas with whole matrices of scores.
void naive(Problem<double>& p) {
  const Shape& s = p.shape;
  const double scale = 1 / std::sqrt(static_cast<double>(s.size));
  for (Matrix<double>* x : {&p.out, &p.lse, &p.dq, &p.dk, &p.dv})
    *x = Matrix<double>(x->rows(), x->columns());
  for (size_t i = 0; i + 1 < p.cu_q.size(); ++i) {
    const int64_t q0 = p.cu_q[i], k0 = p.cu_k[i], nq = p.cu_q[i + 1] - q0, nk = p.cu_k[i + 1] - k0;
    for (int64_t h = 0; h < s.heads; ++h) {
      const int64_t qc = h * s.size, kc = h / (s.heads / s.kv_heads) * s.size;
      for (int64_t j = 0; j < nq; ++j) {
        std::vector<double> probability(static_cast<size_t>(nk), 0.0), score(static_cast<size_t>(nk), -INFINITY);
        std::vector<double> slope(static_cast<size_t>(nk), 1.0);  // of the soft cap
        const int64_t seen = std::max<int64_t>(0, nk - nq + j + 1);
        double largest = -INFINITY, sum = 0, delta = 0;
        for (int64_t t = 0; t < seen; ++t) {
          if (s.window > 0 && t <= nk - nq + j - s.window) continue;  // transformers' masking_utils
          double dot = 0;
          for (int64_t c = 0; c < s.size; ++c) dot += p.q[q0 + j][qc + c] * p.k[k0 + t][kc + c];
          double value = scale * dot;
          if (s.soft_cap > 0) {
            slope[static_cast<size_t>(t)] = std::pow(std::cosh(value / s.soft_cap), -2);
            value = s.soft_cap * std::tanh(value / s.soft_cap);
          }
          score[static_cast<size_t>(t)] = value;
          largest = std::max(largest, value);
        }
        for (int64_t t = 0; t < seen; ++t) sum += std::exp(score[static_cast<size_t>(t)] - largest);
        p.lse[h][q0 + j] = seen == 0 ? -INFINITY : largest + std::log(sum);
        for (int64_t t = 0; t < seen; ++t) {
          probability[static_cast<size_t>(t)] = std::exp(score[static_cast<size_t>(t)] - largest) / sum;
          for (int64_t c = 0; c < s.size; ++c) {
            p.out[q0 + j][qc + c] += probability[static_cast<size_t>(t)] * p.v[k0 + t][kc + c];
          }
        }
        for (int64_t c = 0; c < s.size; ++c) delta += p.out[q0 + j][qc + c] * p.dout[q0 + j][qc + c];
        for (int64_t t = 0; t < seen; ++t) {
          const double w = probability[static_cast<size_t>(t)];
          double dp = 0;
          for (int64_t c = 0; c < s.size; ++c) dp += p.dout[q0 + j][qc + c] * p.v[k0 + t][kc + c];
          for (int64_t c = 0; c < s.size; ++c) {
            p.dv[k0 + t][kc + c] += w * p.dout[q0 + j][qc + c];
            p.dk[k0 + t][kc + c] += scale * w * (dp - delta) * slope[static_cast<size_t>(t)] * p.q[q0 + j][qc + c];
            p.dq[q0 + j][qc + c] += scale * w * (dp - delta) * slope[static_cast<size_t>(t)] * p.k[k0 + t][kc + c];
          }
        }
      }
    }
  }
}

const std::vector<Shape>& shapes() {
  static const std::vector<Shape> all = {
      {{1}, {1}, 1, 1, 64},
      {{130}, {130}, 3, 1, 64},
      {{7, 0, 48, 1, 97}, {7, 0, 48, 1, 97}, 4, 2, 64, 5},
      {{50}, {50}, 2, 2, 16},
      {{65, 49}, {65, 49}, 2, 1, 80},
      {{70}, {70}, 2, 1, 5},  // a head size that fills no vector
      {{33}, {33}, 1, 1, 71},
      {{40, 3}, {100, 90}, 4, 4, 32, 2},              // more keys than queries
      {{1, 1, 2, 4}, {300, 17, 700, 600}, 6, 2, 64},  // decoding, with chunks
      {{2, 4}, {520, 257}, 2, 1, 13},
      {{60, 4, 3}, {20, 1, 0}, 2, 1, 16},  // queries that see nothing
      {{100}, {100}, 2, 1, 64, 0, 40},     // probabilities of nearly one key
      {{130, 20}, {130, 20}, 3, 1, 64, 2, 1, 2},  // windows: of the query and one key,
      {{300}, {300}, 2, 2, 16, 0, 1, 5},
      {{9}, {9}, 1, 1, 16, 0, 1, 1},  // of the query alone,
      {{200, 0, 300}, {200, 0, 300}, 2, 1, 32, 0, 1, 65},  // of a block and one more,
      {{130}, {130}, 1, 1, 64, 0, 1, 130},                 // of everything
      {{130}, {130}, 1, 1, 64, 0, 1, 129},                 // and of all but one,
      {{60, 3, 40}, {400, 300, 41}, 4, 2, 13, 3, 1, 37},   // of more keys than queries,
      {{1, 1, 2, 4}, {300, 17, 700, 600}, 6, 2, 64, 0, 1, 3},
      {{4, 4, 1}, {520, 514, 900}, 2, 1, 13, 0, 1, 257},  // decoding, in chunks and across their ends,
      {{60, 4, 3}, {20, 1, 0}, 2, 1, 16, 0, 1, 7},        // and of queries that see nothing
      {{130, 3}, {130, 700}, 4, 2, 64, 0, 3, 0, 2.5},     // soft caps, alone
      {{100, 1}, {100, 300}, 2, 1, 80, 1, 20, 40, 30},    // and with a window
  };
  return all;
}

TEST(AttentionTest, ReferenceEqualsPlainFormulas) {
  for (size_t i = 0; i < shapes().size(); ++i) {
    SCOPED_TRACE(i);
    Problem<double> got(shapes()[i], 3), want(shapes()[i]);
    got.run(reference_kernels(), serial_executor());
    naive(want);
    expect_close(got.out, want.out, 1e-12, "out");
    expect_close(got.lse, want.lse, 1e-12, "lse");
    expect_close(got.dq, want.dq, 1e-11, "dq");
    expect_close(got.dk, want.dk, 1e-11, "dk");
    expect_close(got.dv, want.dv, 1e-11, "dv");
  }
}

TEST(AttentionTest, CpuEqualsPlainFormulas) {
  for (const KernelTable* table : cpu_tables()) {
    for (size_t i = 0; i < shapes().size(); ++i) {
      SCOPED_TRACE(std::string(table->name) + ", shape " + std::to_string(i));
      Problem<float> got(shapes()[i], 3);
      Problem<double> want(shapes()[i]);
      got.run(*table, serial_executor());
      naive(want);
      // Large scores are rounded to f32 before the exponential: their error is a relative one of the
      // probability.
      const double tolerance = 2e-6 * std::max(1.0, shapes()[i].spread / 2);
      expect_close(got.out, want.out, tolerance, "out");
      expect_close(got.lse, want.lse, 1e-6, "lse");
      expect_close(got.dq, want.dq, tolerance, "dq");
      expect_close(got.dk, want.dk, tolerance, "dk");
      expect_close(got.dv, want.dv, tolerance, "dv");
      for (const Matrix<float>* x : {&got.out, &got.lse, &got.dq, &got.dk, &got.dv})
        x->expect_gaps_untouched();
    }
  }
}

TEST(AttentionTest, GradientsEqualFiniteDifferences) {
  for (const auto& [window, cap] : std::vector<std::pair<int64_t, double>>{{0, 0}, {3, 0}, {0, 0.8}, {2, 1.5}}) {
    Problem<double> p({{5, 0, 3}, {5, 0, 7}, 4, 2, 6, 0, 1, window, cap});
    p.run(reference_kernels(), serial_executor());
    const auto loss = [&] {
      p.run_forward(reference_kernels(), serial_executor());
      return inner(p.out, p.dout);
    };
    expect_gradient(p.q, p.dq, loss, "dq");
    expect_gradient(p.k, p.dk, loss, "dk");
    expect_gradient(p.v, p.dv, loss, "dv");
  }
}

// What lies before the window is not read at all: that is what makes the cost linear.
TEST(AttentionTest, KeysBeforeTheWindowAreSkipped) {
  for (const KernelTable* table : cpu_tables()) {
    for (int last : {1, 3, 100}) {
      Problem<float> whole({{last}, {900}, 2, 1, 32, 0, 1, 50});
      // The window of the first query begins at 900 - last - 49; blocks of 64 and chunks of 256 keys begin at most
      // 255 before.
      const int64_t unread = (900 - last - 49) / 256 * 256;
      for (int64_t t = 0; t < unread; ++t) {
        for (int64_t c = 0; c < 32; ++c) whole.k[t][c] = whole.v[t][c] = NAN;
      }
      whole.run(*table, serial_executor());
      for (const Matrix<float>* x : {&whole.out, &whole.dq, &whole.dk, &whole.dv}) {
        for (int64_t r = 0; r < x->rows(); ++r) EXPECT_TRUE(std::isfinite((*x)[r][5])) << table->name << " " << r;
      }
    }
  }
}

TEST(AttentionTest, BitsDoNotDependOnThreads) {
  // One document whose pairs are cut among threads, and several that are not.
  const std::vector<Shape> some = {{{500}, {500}, 6, 3, 32},
                                   {{90, 3, 200, 1}, {90, 3, 200, 900}, 4, 2, 48, 3},
                                   {{700, 30}, {700, 30}, 4, 2, 32, 0, 1, 90, 3}};
  for (const KernelTable* table : cpu_tables()) {
    for (const Shape& shape : some) {
      Problem<float> want(shape);
      want.run(*table, serial_executor());
      with_threads([&](const Executor& executor) {
        Problem<float> got(shape);
        got.run(*table, executor);
        EXPECT_TRUE(got.out.same_bits(want.out) && got.lse.same_bits(want.lse)) << table->name;
        EXPECT_TRUE(got.dq.same_bits(want.dq)) << table->name;
        EXPECT_TRUE(got.dk.same_bits(want.dk) && got.dv.same_bits(want.dv)) << table->name;
      });
    }
  }
}

// Copies rows [from, from + n) of a packed problem into a problem of their own.
void copy_rows(const Matrix<float>& packed, int64_t from, Matrix<float>& alone) {
  for (int64_t r = 0; r < alone.rows(); ++r) std::copy_n(packed[from + r], alone.columns(), alone[r]);
}
bool same_rows(const Matrix<float>& packed, int64_t from, const Matrix<float>& alone) {
  for (int64_t r = 0; r < alone.rows(); ++r) {
    if (std::memcmp(packed[from + r], alone[r], static_cast<size_t>(alone.columns()) * sizeof(float)) != 0)
      return false;
  }
  return true;
}

TEST(AttentionTest, PackedDocumentsHaveTheBitsOfSingleOnes) {
  for (int64_t window : {0, 33}) {
    for (const KernelTable* table : cpu_tables()) {
      const Shape shape{{70, 1, 0, 131, 4, 20}, {70, 1, 0, 131, 400, 90}, 4, 2, 64, 0, 1, window};
      Problem<float> packed(shape);
      packed.run(*table, serial_executor());
      for (size_t i = 0; i < shape.queries.size(); ++i) {
        SCOPED_TRACE(std::string(table->name) + ", document " + std::to_string(i));
        Problem<float> alone(
            {{shape.queries[i]}, {shape.keys[i]}, shape.heads, shape.kv_heads, shape.size, 0, 1, window});
        copy_rows(packed.q, packed.cu_q[i], alone.q);
        copy_rows(packed.dout, packed.cu_q[i], alone.dout);
        copy_rows(packed.k, packed.cu_k[i], alone.k);
        copy_rows(packed.v, packed.cu_k[i], alone.v);
        alone.run(*table, serial_executor());
        EXPECT_TRUE(same_rows(packed.out, packed.cu_q[i], alone.out));
        EXPECT_TRUE(same_rows(packed.dq, packed.cu_q[i], alone.dq));
        EXPECT_TRUE(same_rows(packed.dk, packed.cu_k[i], alone.dk));
        EXPECT_TRUE(same_rows(packed.dv, packed.cu_k[i], alone.dv));
      }
    }
  }
}

TEST(AttentionTest, CachedQueriesEqualTheWholeSequence) {
  for (int64_t window : {0, 40, 270}) {
    for (const KernelTable* table : cpu_tables()) {
      const double cap = window == 40 ? 2 : 0;
      Problem<float> whole({{301}, {301}, 4, 2, 64, 0, 1, window, cap});
      whole.run_forward(*table, serial_executor());
      for (int last : {1, 3, 5, 60}) {
        Problem<float> cached({{last}, {301}, 4, 2, 64, 0, 1, window, cap});
        copy_rows(whole.q, 301 - last, cached.q);
        copy_rows(whole.k, 0, cached.k);
        copy_rows(whole.v, 0, cached.v);
        cached.run_forward(*table, serial_executor());
        Matrix<float> tail(last, whole.out.columns());
        copy_rows(whole.out, 301 - last, tail);
        expect_close(cached.out, tail.as<double>(), 1e-6, table->name);
      }
    }
  }
}

TEST(AttentionTest, ScoresFarBelowOthersAreZeroAndNanSpreads) {
  for (const KernelTable* table : cpu_tables()) {
    // Key 0 has a score of +-2e4 for every query: the rest vanishes, or it does.
    for (float sign : {1.0f, -1.0f}) {
      Problem<float> got({{80}, {80}, 1, 1, 16});
      for (int64_t t = 0; t < got.tq; ++t) got.q[t][0] = 300.0f;
      got.k[0][0] = sign * 300.0f;
      got.run(*table, serial_executor());
      Problem<double> want(got.shape);
      want.q = got.q.as<double>(), want.k = got.k.as<double>();
      naive(want);
      // Scores of order 1e4 in the other keys are rounded to 1e-3.
      expect_close(got.out, want.out, 2e-3, table->name);
      for (const Matrix<float>* x : {&got.dq, &got.dk, &got.dv}) {
        for (int64_t r = 0; r < x->rows(); ++r) EXPECT_TRUE(std::isfinite((*x)[r][3]));
      }
    }
    Problem<float> bad({{80}, {80}, 1, 1, 16});
    bad.k[50][7] = NAN;
    bad.run(*table, serial_executor());
    EXPECT_TRUE(std::isfinite(bad.out[49][0]));
    for (int64_t t = 50; t < 80; ++t) EXPECT_TRUE(std::isnan(bad.out[t][0])) << table->name << " row " << t;
    EXPECT_TRUE(std::isnan(bad.dv[0][0]) && std::isnan(bad.dq[60][0]));
  }
}

}  // namespace
}  // namespace inlaid::kernels::testing

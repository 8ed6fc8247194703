// Speed of the kernels beside the matrix product, at every level of this processor.
//
//   kernels_bench [threads]
//
// Prints one line per kernel and level: time, and flops or bytes per second. The flops of attention count the
// pairs of query and key that the causal mask leaves, 4 D per pair forward and 10 D backward.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "kernels/gemm/test_threads.h"
#include "kernels/kernels.h"

namespace inlaid::kernels {
namespace {

struct Bench {
  const KernelTable* table;
  const Executor* executor;

  // The best of several runs, in seconds.
  template <typename Fn>
  double seconds(const Fn& fn) const {
    double best = 1e30, total = 0;
    for (int i = 0; i < 200 && (i < 5 || total < 0.4); ++i) {
      const auto start = std::chrono::steady_clock::now();
      fn();
      const double s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      best = s < best ? s : best;
      total += s;
    }
    return best;
  }
  void print(const char* what, double s, double amount, const char* unit) const {
    std::printf("%-9s %-44s %9.3f ms %8.1f %s\n", table->name, what, s * 1e3, amount / s * 1e-9, unit);
  }
};

std::vector<float> noise(int64_t n) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> x(static_cast<size_t>(n));
  for (float& v : x) v = normal(random);
  return x;
}

void attention(const Bench& bench, const char* name, std::vector<int> lengths, int queries_each) {
  const int64_t heads = 9, kv_heads = 3, size = 64;
  std::vector<int32_t> cu_q{0}, cu_k{0};
  double pairs = 0;
  for (int n : lengths) {
    const int q = queries_each > 0 ? queries_each : n;
    cu_q.push_back(cu_q.back() + q);
    cu_k.push_back(cu_k.back() + n);
    pairs += static_cast<double>(q) * (n - q) + 0.5 * q * (q + 1.0);
  }
  const int64_t tq = cu_q.back(), tk = cu_k.back(), documents = static_cast<int64_t>(lengths.size());
  std::vector<float> q = noise(tq * heads * size), dout = q, out = q, dq = q;
  std::vector<float> k = noise(tk * kv_heads * size), v = k, dk = k, dv = k,
                     lse(static_cast<size_t>(heads * tq));
  AttentionForwardArgs f;
  f.q = view2(q.data(), DType::f32, tq, heads * size),
  f.out = view2(out.data(), DType::f32, tq, heads * size);
  f.k = view2(k.data(), DType::f32, tk, kv_heads * size),
  f.v = view2(v.data(), DType::f32, tk, kv_heads * size);
  f.lse = view2(lse.data(), DType::f32, heads, tq);
  f.cu_q = view1(cu_q.data(), DType::i32, documents + 1),
  f.cu_k = view1(cu_k.data(), DType::i32, documents + 1);
  f.heads = heads, f.kv_heads = kv_heads, f.head_size = size, f.scale = 0.125;
  AttentionBackwardArgs b{view2(dout.data(), DType::f32, tq, heads * size),
                          f.q,
                          f.k,
                          f.v,
                          f.out,
                          f.lse,
                          view2(dq.data(), DType::f32, tq, heads * size),
                          view2(dk.data(), DType::f32, tk, kv_heads * size),
                          view2(dv.data(), DType::f32, tk, kv_heads * size),
                          f.cu_q,
                          f.cu_k,
                          heads,
                          kv_heads,
                          size,
                          f.scale};
  const size_t bytes = std::max(bench.table->attention_forward_workspace(f, bench.executor->threads),
                                bench.table->attention_backward_workspace(b, bench.executor->threads));
  std::vector<std::byte> memory(bytes + 64);
  std::byte* aligned = memory.data() + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64) % 64;
  const Context context{bench.executor, aligned, bytes};
  char label[96];
  std::snprintf(label, sizeof label, "attention forward %s", name);
  bench.print(label, bench.seconds([&] { bench.table->attention_forward(context, f); }),
              pairs * static_cast<double>(4 * heads * size), "GF/s");
  if (queries_each > 0) return;
  std::snprintf(label, sizeof label, "attention backward %s", name);
  bench.print(label, bench.seconds([&] { bench.table->attention_backward(context, b); }),
              pairs * static_cast<double>(10 * heads * size), "GF/s");
}

void rows(const Bench& bench) {
  const int64_t t = 1024, h = 576, f = 1536;
  const Context context{bench.executor, nullptr, 0};
  std::vector<float> x = noise(t * f), y = x, z = x, u = x, w = x, weight(static_cast<size_t>(h), 1.0f),
                     rstd(static_cast<size_t>(t));
  const auto wide = [&](std::vector<float>& data) { return view2(data.data(), DType::f32, t, f); };
  const auto narrow = [&](std::vector<float>& data) { return view2(data.data(), DType::f32, t, h); };
  const TensorView weight_view = view1(weight.data(), DType::f32, h),
                   rstd_view = view1(rstd.data(), DType::f32, t);
  const double narrow_bytes = 4.0 * t * h, wide_bytes = 4.0 * t * f;

  const RmsNormForwardArgs nf{narrow(x), weight_view, narrow(y), rstd_view, 1e-5};
  bench.print("rms_norm forward 1024 x 576",
              bench.seconds([&] { bench.table->rms_norm_forward(context, nf); }), 2 * narrow_bytes, "GB/s");
  const RmsNormBackwardInputArgs nb{narrow(y), narrow(x), weight_view, rstd_view, narrow(z), false};
  bench.print("rms_norm backward input",
              bench.seconds([&] { bench.table->rms_norm_backward_input(context, nb); }), 3 * narrow_bytes,
              "GB/s");
  const RmsNormBackwardWeightArgs nw{narrow(y), narrow(x), rstd_view, weight_view};
  bench.print("rms_norm backward weight",
              bench.seconds([&] { bench.table->rms_norm_backward_weight(context, nw); }), 2 * narrow_bytes,
              "GB/s");
  const GatedForwardArgs gf{wide(x), wide(y), wide(z), Activation::silu};
  bench.print("gated forward 1024 x 1536, silu",
              bench.seconds([&] { bench.table->gated_forward(context, gf); }), 3 * wide_bytes, "GB/s");
  const GatedBackwardArgs gb{wide(z), wide(x), wide(y), wide(u), wide(w), Activation::silu};
  bench.print("gated backward", bench.seconds([&] { bench.table->gated_backward(context, gb); }),
              5 * wide_bytes, "GB/s");

  std::vector<int64_t> keys(static_cast<size_t>(t), 3);
  std::vector<int32_t> positions(static_cast<size_t>(t), 7);
  const DropoutArgs d{
      narrow(x), narrow(z), view1(keys.data(), DType::i64, t), view1(positions.data(), DType::i32, t), 5,
      0.1,       false};
  bench.print("dropout 1024 x 576", bench.seconds([&] { bench.table->dropout(context, d); }),
              2 * narrow_bytes, "GB/s");

  std::vector<int32_t> wide_positions(static_cast<size_t>(t));
  for (int64_t i = 0; i < t; ++i) wide_positions[static_cast<size_t>(i)] = static_cast<int32_t>(i);
  std::vector<double> inv_freq(32, 0.01);
  std::vector<float> cosine(static_cast<size_t>(t * 32)), sine = cosine;
  const RotaryTableArgs rt{view1(wide_positions.data(), DType::i32, t),
                           view1(inv_freq.data(), DType::f64, 32), view2(cosine.data(), DType::f32, t, 32),
                           view2(sine.data(), DType::f32, t, 32), 1.0};
  bench.print("rotary table 1024 x 32", bench.seconds([&] { bench.table->rotary_table(context, rt); }),
              8.0 * t * 32, "GB/s");
  const RotaryArgs r{narrow(x), rt.cos, rt.sin, 9, false};
  bench.print("rotary 1024 x 576", bench.seconds([&] { bench.table->rotary(context, r); }), 2 * narrow_bytes,
              "GB/s");
}

void cross_entropy(const Bench& bench) {
  const int64_t r = 128, v = 49152;
  std::vector<float> logits = noise(r * v), loss(static_cast<size_t>(r));
  std::vector<int32_t> targets(static_cast<size_t>(r), 77), correct = targets;
  CrossEntropyArgs args{view2(logits.data(), DType::f32, r, v),
                        view1(targets.data(), DType::i32, r),
                        view1(loss.data(), DType::f32, r),
                        view1(correct.data(), DType::i32, r),
                        true,
                        1.0};
  const Context context{bench.executor, nullptr, 0};
  const double bytes = 4.0 * static_cast<double>(r * v);
  bench.print("cross_entropy with gradient 128 x 49152",
              bench.seconds([&] { bench.table->cross_entropy(context, args); }), 2 * bytes, "GB/s");
  args.gradient = false;
  bench.print("cross_entropy loss only", bench.seconds([&] { bench.table->cross_entropy(context, args); }),
              bytes, "GB/s");
}

void optimizer(const Bench& bench) {
  const int64_t n = 16 << 20;
  std::vector<float> p = noise(n), g = p, m = p, v(static_cast<size_t>(n), 1.0f);
  double out = 0;
  std::vector<double> workspace(static_cast<size_t>(n / 65536 + 1));
  const Context context{bench.executor, reinterpret_cast<std::byte*>(workspace.data()), workspace.size() * 8};
  const auto flat = [&](std::vector<float>& x) { return view1(x.data(), DType::f32, n); };
  const AdamWArgs args{flat(p), flat(g), flat(m), flat(v), 1e-3, 0.9, 0.999, 1e-8, 0.01, 1, 10};
  bench.print("adamw 16 M parameters", bench.seconds([&] { bench.table->adamw(context, args); }), 32.0 * n,
              "GB/s");
  const SumSquaresArgs squares{flat(p), view1(&out, DType::f64, 1)};
  bench.print("sum_squares 16 M", bench.seconds([&] { bench.table->sum_squares(context, squares); }), 4.0 * n,
              "GB/s");
}

void run(int32_t threads) {
  TestThreads pool(threads);
  for (int level = 0; level <= static_cast<int>(cpu_level()); ++level) {
    const Bench bench{&cpu_kernels(static_cast<CpuLevel>(level)), &pool.executor()};
    attention(bench, "1 x 1024", {1024}, 0);
    attention(bench, "1 x 4096", {4096}, 0);
    attention(bench, "8 x 128", std::vector<int>(8, 128), 0);
    attention(bench, "1 query, 1024 keys", {1024}, 1);
    rows(bench);
    cross_entropy(bench);
    optimizer(bench);
  }
}

}  // namespace
}  // namespace inlaid::kernels

int main(int argc, char** argv) {
  inlaid::kernels::run(argc > 1 ? std::atoi(argv[1]) : 1);
}

// Every level against the reference, and the promises of gemm.h bit for bit.
#include "kernels/gemm/gemm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <thread>
#include <vector>

#include "kernels/gemm/test_threads.h"
#include "kernels/storage/storage.h"

namespace inlaid::kernels {
namespace {

constexpr float kUntouched = 12345.0f;

struct Level {
  const char* name;
  size_t (*workspace)(const GemmArgs&, int32_t);
  void (*gemm)(const Context&, const GemmArgs&);
};

std::vector<Level> levels() {
  std::vector<Level> list = {{"portable", portable::gemm_workspace, portable::gemm}};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c")) {
    list.push_back({"avx2", avx2::gemm_workspace, avx2::gemm});
  }
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")) {
    list.push_back({"avx512", avx512::gemm_workspace, avx512::gemm});
  }
#endif
  return list;
}

struct Problem {
  int64_t m, n, k;
  bool transpose_a = false, transpose_b = false, accumulate = false, bias = false;
  double alpha = 1;
  DType type = DType::f32;
  int64_t gap = 0;  // elements between the end of a row and the next row, in whole blocks for B
  bool integers = false;
};

// The operands of one product, deterministic in the problem.
struct Operands {
  explicit Operands(const Problem& p) : problem(p) {
    std::mt19937 rng(static_cast<uint32_t>(p.m * 31 + p.n * 7 + p.k));
    const auto fill = [&](std::vector<float>& v, int64_t n) {
      std::uniform_real_distribution<float> real(-1, 1);
      std::uniform_int_distribution<int> integer(-4, 4);
      v.resize(static_cast<size_t>(n));
      for (float& x : v) x = p.integers ? static_cast<float>(integer(rng)) : real(rng);
    };
    const int64_t a_rows = p.transpose_a ? p.k : p.m, a_columns = p.transpose_a ? p.m : p.k;
    const int64_t b_rows = p.transpose_b ? p.n : p.k, b_columns = p.transpose_b ? p.k : p.n;
    const int64_t b_stride = b_columns + p.gap * dtype_info(p.type).block;
    fill(a, a_rows * (a_columns + p.gap));
    std::vector<float> b_values;
    fill(b_values, b_rows * b_stride);
    b.resize(static_cast<size_t>(dtype_bytes(p.type, b_rows * b_stride)));
    if (encoded_type(p.type)) {
      from_f32(p.type, b_values.data(), b_rows * b_stride, b.data());
    } else {
      for (char& byte : b) byte = static_cast<char>(rng() & 0x33);  // no scale is infinite
    }
    fill(bias, p.n);
    fill(c, p.m * (p.n + p.gap));
    for (int64_t i = 0; i < p.m; ++i) {
      for (int64_t j = p.n; j < p.n + p.gap; ++j) c[static_cast<size_t>(i * (p.n + p.gap) + j)] = kUntouched;
      // What is not accumulated into must not be read either.
      for (int64_t j = 0; j < p.n && !p.accumulate; ++j)
        c[static_cast<size_t>(i * (p.n + p.gap) + j)] = std::nanf("");
    }
    args.a = view2(a.data(), DType::f32, a_rows, a_columns);
    args.a.stride[0] += p.gap;
    args.b = view2(b.data(), p.type, b_rows, b_columns);
    args.b.stride[0] = b_stride;
    args.c = view2(nullptr, DType::f32, p.m, p.n);
    args.c.stride[0] += p.gap;
    if (p.bias) args.bias = view1(bias.data(), DType::f32, p.n);
    args.transpose_a = p.transpose_a;
    args.transpose_b = p.transpose_b;
    args.accumulate = p.accumulate;
    args.alpha = p.alpha;
  }
  Operands(const Operands&) = delete;

  // C after the product at a level. The workspace has exactly the size that was asked for.
  std::vector<float> run(const Level& level, const Executor& executor = serial_executor()) const {
    std::vector<float> out = c;
    GemmArgs g = args;
    g.c.data = out.data();
    const size_t bytes = level.workspace(g, executor.threads);
    const size_t guard = 64;
    std::vector<float> memory((bytes + 64 + guard) / sizeof(float), std::nanf(""));
    auto address = reinterpret_cast<uintptr_t>(memory.data());
    address = (address + 63) / 64 * 64;
    auto* const workspace = reinterpret_cast<std::byte*>(address);
    std::vector<std::byte> after(workspace + bytes,
                                 reinterpret_cast<std::byte*>(memory.data() + memory.size()));
    level.gemm({&executor, workspace, bytes}, g);
    EXPECT_EQ(std::memcmp(workspace + bytes, after.data(), after.size()), 0) << "wrote past its workspace";
    return out;
  }

  // The reference result in f64, and the sum of absolute products that bounds the error of any order of
  // summation.
  std::vector<double> reference_result(std::vector<double>* magnitude) const {
    const auto product = [&](bool absolute) {
      std::vector<double> a64(a.size()), b64, c64(c.begin(), c.end());
      for (size_t i = 0; i < a.size(); ++i) a64[i] = absolute ? std::fabs(a[i]) : a[i];
      GemmArgs g = args;
      const int64_t b_elements = args.b.shape[0] * args.b.stride[0];
      b64.resize(static_cast<size_t>(b_elements));
      reference::convert(Context{}, {view1(const_cast<char*>(b.data()), problem.type, b_elements),
                                     view1(b64.data(), DType::f64, b_elements)});
      if (absolute) {
        for (double& x : b64) x = std::fabs(x);
        for (double& x : c64) x = std::fabs(x);
        g.alpha = std::fabs(g.alpha);
        g.bias = TensorView{};
      }
      g.a.data = a64.data();
      g.a.dtype = DType::f64;
      g.b.data = b64.data();
      g.b.dtype = DType::f64;
      g.c.data = c64.data();
      g.c.dtype = DType::f64;
      std::vector<double> workspace(reference::gemm_workspace(g, 1) / sizeof(double));
      reference::gemm(
          {&serial_executor(), reinterpret_cast<std::byte*>(workspace.data()), workspace.size() * 8}, g);
      return c64;
    };
    *magnitude = product(true);
    return product(false);
  }

  Problem problem;
  std::vector<float> a, c, bias;
  std::vector<char> b;
  GemmArgs args;
};

std::string describe(const Problem& p) {
  return std::to_string(p.m) + "x" + std::to_string(p.n) + "x" + std::to_string(p.k) +
         (p.transpose_a ? " T" : " N") + (p.transpose_b ? "T " : "N ") + dtype_info(p.type).name +
         (p.accumulate ? " +=" : "") + (p.bias ? " bias" : "") + " gap " + std::to_string(p.gap);
}

void check_against_reference(const Problem& p) {
  const Operands o(p);
  std::vector<double> magnitude;
  const std::vector<double> expected = o.reference_result(&magnitude);
  for (const Level& level : levels()) {
    const std::vector<float> actual = o.run(level);
    for (int64_t i = 0; i < p.m; ++i) {
      for (int64_t j = 0; j < p.n + p.gap; ++j) {
        const auto at = static_cast<size_t>(i * (p.n + p.gap) + j);
        if (j >= p.n) {
          ASSERT_EQ(actual[at], kUntouched) << level.name << " " << describe(p) << " wrote between rows";
          continue;
        }
        const double bound =
            (magnitude[at] + std::fabs(expected[at])) * static_cast<double>(p.k + 4) * 0x1p-24;
        ASSERT_LE(std::fabs(actual[at] - expected[at]), bound)
            << level.name << " " << describe(p) << " at " << i << "," << j << " " << actual[at] << " "
            << expected[at];
      }
    }
  }
}

// Odd sizes around the tiles of every level, all transpositions, types, strides, alpha, bias, accumulation.
TEST(Gemm, AgreesWithTheReference) {
  const int64_t sizes[] = {1,  2,  3,  4,  5,  6,  7,  8,  9,  11, 13, 15, 16, 17,
                           23, 31, 32, 33, 37, 47, 48, 49, 53, 59, 64, 67, 70};
  const DType types[] = {DType::f32,  DType::bf16, DType::f16,  DType::q4_0, DType::q4_1, DType::q8_0, DType::q5_0,
                         DType::q5_1, DType::q2_k, DType::q3_k, DType::q4_k, DType::q5_k, DType::q6_k};
  std::mt19937 rng(3);
  const auto pick = [&](const auto& list) { return list[rng() % std::size(list)]; };
  for (int i = 0; i < 780; ++i) {
    Problem p{pick(sizes), pick(sizes), pick(sizes)};
    p.transpose_a = i & 1;
    p.transpose_b = i & 2;
    p.accumulate = i & 4;
    p.bias = i & 8;
    p.alpha = i % 3 == 0 ? -0.5 : 1.0;
    p.gap = i % 5 < 2 ? 0 : i % 5;
    p.type = types[i % 13];
    const int64_t block = dtype_info(p.type).block;
    int64_t& stored = p.transpose_b ? p.k : p.n;
    stored = (stored + block - 1) / block * block;
    check_against_reference(p);
    if (HasFatalFailure()) return;
  }
}

// Several blocks of k, several panels, chunks of A cut in rows and in k (chunks hold two million elements).
TEST(Gemm, AgreesWithTheReferenceWhenCut) {
  for (bool ta : {false, true}) {
    for (bool tb : {false, true}) {
      check_against_reference(
          {.m = 37, .n = 101, .k = 1000, .transpose_a = ta, .transpose_b = tb, .bias = true});
      check_against_reference(
          {.m = 300, .n = 9, .k = 385, .transpose_a = ta, .transpose_b = tb, .accumulate = true});
      check_against_reference(
          {.m = 150, .n = 5, .k = 20001, .transpose_a = ta, .transpose_b = tb, .alpha = 3});
      check_against_reference(
          {.m = 6007, .n = 3, .k = 769, .transpose_a = ta, .transpose_b = tb, .accumulate = true});
    }
  }
  check_against_reference({.m = 65, .n = 96, .k = 800, .transpose_b = true, .type = DType::q4_1});
  check_against_reference({.m = 65, .n = 160, .k = 801, .type = DType::q8_0});
  // Blocks of 256 across the cuts, which are at multiples of 32.
  check_against_reference({.m = 65, .n = 96, .k = 1024, .transpose_b = true, .type = DType::q4_k});
  check_against_reference({.m = 65, .n = 512, .k = 801, .type = DType::q3_k});
  check_against_reference({.m = 3, .n = 40, .k = 2048, .transpose_b = true, .type = DType::q6_k});
}

TEST(Gemm, EmptyShapes) {
  for (const Level& level : levels()) {
    EXPECT_TRUE(Operands({.m = 0, .n = 5, .k = 3}).run(level).empty());
    EXPECT_TRUE(Operands({.m = 4, .n = 0, .k = 3, .transpose_a = true}).run(level).empty());
    for (bool ta : {false, true}) {
      const Operands o({.m = 5, .n = 50, .k = 0, .transpose_a = ta, .bias = true});
      const std::vector<float> c = o.run(level);
      for (size_t i = 0; i < c.size(); ++i) ASSERT_EQ(c[i], o.bias[i % 50]) << level.name;
      const Operands kept({.m = 5, .n = 50, .k = 0, .transpose_a = ta, .accumulate = true});
      ASSERT_EQ(kept.run(level), kept.c) << level.name;
    }
  }
}

TEST(Gemm, SameBitsForAnyNumberOfThreads) {
  for (const Problem& p : {Problem{.m = 301, .n = 500, .k = 401, .transpose_b = true},
                           Problem{.m = 301, .n = 77, .k = 900, .transpose_a = true, .accumulate = true},
                           Problem{.m = 1, .n = 700, .k = 576, .transpose_b = true, .type = DType::q4_1},
                           Problem{.m = 1, .n = 700, .k = 768, .transpose_b = true, .type = DType::q5_k},
                           Problem{.m = 513, .n = 64, .k = 100, .type = DType::q8_0}}) {
    const Operands o(p);
    for (const Level& level : levels()) {
      const std::vector<float> expected = o.run(level);
      for (int32_t count : {2, 3, 7}) {
        TestThreads threads(count);
        const std::vector<float> actual = o.run(level, threads.executor());
        ASSERT_EQ(std::memcmp(actual.data(), expected.data(), expected.size() * 4), 0)
            << level.name << " " << describe(p) << " " << count << " threads";
      }
    }
  }
}

// Rows computed together, a few at a time (as in decoding) or in an odd number.
TEST(Gemm, SameBitsForAnyNumberOfRows) {
  for (bool tb : {true, false}) {
    const Problem p{.m = 200, .n = 101, .k = 1000, .transpose_b = tb, .bias = true};
    const Operands o(p);
    for (const Level& level : levels()) {
      const std::vector<float> all = o.run(level);
      for (int64_t rows : {1, 2, 4, 5, 8, 16, 17, 37, 150}) {
        for (int64_t first : {0, 3, 50}) {
          std::vector<float> c(static_cast<size_t>(rows * p.n), std::nanf(""));
          GemmArgs g = o.args;
          g.a.data = const_cast<float*>(o.a.data()) + first * p.k;
          g.a.shape[0] = g.c.shape[0] = rows;
          g.c.data = c.data();
          std::vector<float> workspace(level.workspace(g, 1) / sizeof(float));
          level.gemm(
              {&serial_executor(), reinterpret_cast<std::byte*>(workspace.data()), workspace.size() * 4}, g);
          ASSERT_EQ(std::memcmp(c.data(), all.data() + first * p.n, c.size() * 4), 0)
              << level.name << " " << rows << " rows from " << first;
        }
      }
    }
  }
}

// Transposition and storage change how operands are read, never the result.
TEST(Gemm, SameBitsForAnyLayoutOfTheOperands) {
  for (DType type : {DType::f32, DType::bf16, DType::q4_1, DType::q2_k, DType::q4_k}) {
    const Problem p{.m = 61, .n = 96, .k = dtype_info(type).block > 32 ? 1024 : 416, .transpose_b = true, .type = type};
    const Operands o(p);
    std::vector<float> b(static_cast<size_t>(p.n * p.k)), b_transposed(b.size()), a_transposed(o.a.size());
    portable::to_f32(type, o.b.data(), p.n * p.k, b.data());
    for (int64_t j = 0; j < p.n; ++j) {
      for (int64_t x = 0; x < p.k; ++x) b_transposed[x * p.n + j] = b[j * p.k + x];
    }
    for (int64_t i = 0; i < p.m; ++i) {
      for (int64_t x = 0; x < p.k; ++x) a_transposed[x * p.m + i] = o.a[i * p.k + x];
    }
    for (const Level& level : levels()) {
      const std::vector<float> expected = o.run(level);
      for (bool ta : {false, true}) {
        for (bool tb : {false, true}) {
          Operands other({.m = p.m, .n = p.n, .k = p.k, .transpose_a = ta, .transpose_b = tb});
          other.args.a.data = ta ? a_transposed.data() : const_cast<float*>(o.a.data());
          other.args.b.data = tb ? b.data() : b_transposed.data();
          ASSERT_EQ(other.run(level), expected) << level.name << " " << describe(other.problem);
        }
      }
    }
  }
}

TEST(Gemm, NotANumberStaysInItsRowOrColumn) {
  const float nan = std::nanf(""), inf = std::numeric_limits<float>::infinity();
  for (bool ta : {false, true}) {
    for (bool tb : {false, true}) {
      const Problem p{.m = 29, .n = 53, .k = 19, .transpose_a = ta, .transpose_b = tb};
      for (const Level& level : levels()) {
        Operands o(p);
        const std::vector<float> clean = o.run(level);
        o.a[ta ? 18 * 29 + 28 : 28 * 19 + 18] = nan;                                   // the last row
        reinterpret_cast<float*>(o.b.data())[tb ? 52 * 19 + 18 : 18 * 53 + 52] = inf;  // the last column
        const std::vector<float> c = o.run(level);
        for (int64_t i = 0; i < p.m; ++i) {
          for (int64_t j = 0; j < p.n; ++j) {
            const float x = c[static_cast<size_t>(i * p.n + j)];
            if (i == 28) {
              ASSERT_TRUE(std::isnan(x)) << level.name << i << " " << j;
            } else if (j == 52) {
              ASSERT_TRUE(std::isinf(x)) << level.name << i << " " << j;
            } else {
              ASSERT_EQ(x, clean[static_cast<size_t>(i * p.n + j)]) << level.name << i << " " << j;
            }
          }
        }
      }
    }
  }
}

// Small integers have exact products and sums, so any mixing of callers shows.
TEST(Gemm, ConcurrentCallersGetTheirOwnExactResults) {
  const Level level = levels().back();
  std::vector<std::thread> callers;
  std::vector<int> wrong(64, 0);
  for (int i = 0; i < 64; ++i) {
    callers.emplace_back([&, i] {
      const Operands o({.m = 20 + i,
                        .n = 60 + i % 9,
                        .k = 400 + i,
                        .transpose_a = i % 2 == 1,
                        .transpose_b = i % 3 == 0,
                        .accumulate = i % 5 == 0,
                        .integers = true});
      std::vector<double> magnitude;
      const std::vector<double> expected = o.reference_result(&magnitude);
      for (int repeat = 0; repeat < 4; ++repeat) {
        const std::vector<float> c = o.run(level);
        for (size_t at = 0; at < c.size(); ++at) wrong[static_cast<size_t>(i)] += c[at] != expected[at];
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  for (int i = 0; i < 64; ++i) EXPECT_EQ(wrong[static_cast<size_t>(i)], 0) << "caller " << i;
}

// The oracle itself: a product done by hand, in f32 and f64, through a stored B.
TEST(GemmReference, ByHand) {
  std::vector<float> a = {1, 2, 3, 4, 5, 6};
  std::vector<double> b = {1, 0, -1, 2, 1, 0}, c = {10, 10, 10, 10}, bias = {0.5, -0.5};
  GemmArgs g;
  g.a = view2(a.data(), DType::f32, 2, 3);
  g.b = view2(b.data(), DType::f64, 3, 2);
  g.c = view2(c.data(), DType::f64, 2, 2);
  g.bias = view1(bias.data(), DType::f64, 2);
  g.alpha = 2;
  g.accumulate = true;
  std::vector<double> workspace(reference::gemm_workspace(g, 1) / sizeof(double));
  const Context context{&serial_executor(), reinterpret_cast<std::byte*>(workspace.data()),
                        workspace.size() * 8};
  reference::gemm(context, g);
  EXPECT_EQ(c, (std::vector<double>{2 * 2 + 10.5, 2 * 4 + 9.5, 2 * 5 + 10.5, 2 * 10 + 9.5}));

  std::vector<uint16_t> stored = {0x3f80, 0x4000};  // bf16 1, 2
  std::vector<float> out(6);
  g = GemmArgs{};
  g.a = view2(a.data(), DType::f32, 2, 3);
  g.b = view2(stored.data(), DType::bf16, 2, 1);
  g.c = view2(out.data(), DType::f32, 3, 1);
  g.transpose_a = true;
  reference::gemm(context, g);
  EXPECT_EQ(out, (std::vector<float>{9, 12, 15, 0, 0, 0}));
}

}  // namespace
}  // namespace inlaid::kernels

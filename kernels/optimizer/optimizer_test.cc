#include "kernels/testing.h"

namespace inlaid::kernels::testing {
namespace {

TEST(SumSquaresTest, EqualsReferenceWithTheSameBitsForAnyThreads) {
  for (const KernelTable* table : cpu_tables()) {
    for (int64_t n : {1, 77, 65536, 200001}) {
      std::mt19937 random(4);
      Matrix<float> x(1, n);
      x.fill(random);
      x[0][0] = 1e25f;  // its square is no f32
      x[0][n / 2] = 1e25f;
      double want = 0, first = 0;
      for (int64_t i = 0; i < n; ++i) want += double{x[0][i]} * x[0][i];
      with_threads([&](const Executor& executor) {
        double got = 0, reference = 0;
        const SumSquaresArgs args{x.flat(), view1(&got, DType::f64, 1)};
        table->sum_squares(Call(executor, table->sum_squares_workspace(args, executor.threads)), args);
        reference_kernels().sum_squares(serial(), {x.flat(), view1(&reference, DType::f64, 1)});
        EXPECT_NEAR(reference / want, 1, 1e-13);
        EXPECT_NEAR(got / want, 1, 1e-13) << table->name << " " << n;
        if (first == 0) first = got;
        EXPECT_EQ(got, first);
      });
    }
  }
}

template <typename T>
struct Problem {
  explicit Problem(int64_t n) : parameter(1, n), m(1, n), v(1, n) {
    std::mt19937 random(4);
    parameter.fill(random);
  }
  // One step on the gradient of that step.
  void step(const KernelTable& table, const Executor& executor, int64_t t, double weight_decay) {
    std::mt19937 random(static_cast<unsigned>(t));
    gradient = Matrix<T>(1, parameter.columns());
    gradient.fill(random, 4);
    table.adamw(Call(executor), {parameter.flat(), gradient.flat(), m.flat(), v.flat(), 1e-2, 0.9, 0.99, 1e-8,
                                 weight_decay, 0.25, t});
  }
  Matrix<T> parameter, m, v, gradient{1, 1};
};

// The formula of the paper, written out for one parameter.
TEST(AdamWTest, ReferenceIsTheFormula) {
  Problem<double> p(5);
  double w = p.parameter[0][3], m = 0, v = 0;
  for (int64_t t = 1; t <= 4; ++t) {
    std::mt19937 random(static_cast<unsigned>(t));
    Matrix<double> gradient(1, 5);
    gradient.fill(random, 4);
    const double g = 0.25 * gradient[0][3];
    m = 0.9 * m + 0.1 * g;
    v = 0.99 * v + 0.01 * g * g;
    w -= 1e-2 * 0.1 * w;
    w -= 1e-2 * (m / (1 - std::pow(0.9, t))) / (std::sqrt(v / (1 - std::pow(0.99, t))) + 1e-8);
    p.step(reference_kernels(), serial_executor(), t, 0.1);
    EXPECT_NEAR(p.parameter[0][3], w, 1e-14);
    EXPECT_EQ(p.gradient[0][3], 0);
  }
}

TEST(AdamWTest, CpuEqualsReference) {
  for (const KernelTable* table : cpu_tables()) {
    for (int64_t n : {1, 31, 40003}) {
      Problem<float> got(n);
      Problem<double> want(n);
      for (int64_t t = 1; t <= 3; ++t) {
        got.step(*table, serial_executor(), t, 0.1);
        want.step(reference_kernels(), serial_executor(), t, 0.1);
      }
      expect_close(got.parameter, want.parameter, 2e-7, "parameter");
      expect_close(got.m, want.m, 3e-7, "m");
      expect_close(got.v, want.v, 3e-7, "v");
      EXPECT_TRUE(got.gradient.same_bits(Matrix<float>(1, n)));
    }
  }
}

TEST(AdamWTest, TinyDecayIsNotLost) {
  // lr * weight_decay = 3e-8 is below half a unit in the last place of 1 - 3e-8, but many steps must still
  // add up.
  for (const KernelTable* table : cpu_tables()) {
    Matrix<float> p(1, 16), g(1, 16), m(1, 16), v(1, 16);
    for (int64_t i = 0; i < 16; ++i) p[0][i] = 1.99f;
    for (int64_t t = 1; t <= 100; ++t) {
      table->adamw(serial(), {p.flat(), g.flat(), m.flat(), v.flat(), 1e-6, 0.9, 0.999, 1e-8, 0.07, 1, t});
    }
    EXPECT_LT(p[0][5], 1.99f);
    EXPECT_GT(p[0][5], 1.99f - 100 * 1.2e-7f);
  }
}

TEST(AdamWTest, BitsDoNotDependOnThreads) {
  for (const KernelTable* table : cpu_tables()) {
    Problem<float> want(100001);
    want.step(*table, serial_executor(), 1, 0.1);
    with_threads([&](const Executor& executor) {
      Problem<float> got(100001);
      got.step(*table, executor, 1, 0.1);
      EXPECT_TRUE(got.parameter.same_bits(want.parameter) && got.m.same_bits(want.m) &&
                  got.v.same_bits(want.v));
    });
  }
}

}  // namespace
}  // namespace inlaid::kernels::testing

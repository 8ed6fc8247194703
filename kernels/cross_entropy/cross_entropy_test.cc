#include "kernels/testing.h"

namespace inlaid::kernels::testing {
namespace {

template <typename T>
struct Problem {
  Problem(int64_t rows, int64_t columns, int64_t gap, double spread = 3)
      : logits(rows, columns, gap), loss(1, rows), targets(1, rows), correct(1, rows) {
    std::mt19937 random(9);
    logits.fill(random, spread);
    for (int64_t r = 0; r < rows; ++r) targets[0][r] = static_cast<int32_t>((r * 31 + 5) % columns);
  }
  void run(const KernelTable& table, const Executor& executor, bool gradient, double scale = 1, double cap = 0) {
    table.cross_entropy(Call(executor),
                        {logits.view(), targets.flat(), loss.flat(), correct.flat(), gradient, scale, cap});
  }
  Matrix<T> logits, loss;
  Matrix<int32_t> targets, correct;
};

TEST(CrossEntropyTest, CpuEqualsReference) {
  for (const KernelTable* table : cpu_tables()) {
    for (int64_t columns : {1, 2, 17, 1000, 5003}) {
      for (bool gradient : {false, true}) {
        SCOPED_TRACE(std::string(table->name) + " columns " + std::to_string(columns));
        Problem<float> got(7, columns, 3);
        Problem<double> want(7, columns, 0);
        // Ties: the first largest counts.
        got.logits[1][got.targets[0][1]] = 50, want.logits[1][want.targets[0][1]] = 50;
        got.logits[2][0] = got.logits[2][columns - 1] = 60,
        want.logits[2][0] = want.logits[2][columns - 1] = 60;
        got.targets[0][2] = want.targets[0][2] = static_cast<int32_t>(columns - 1);
        got.run(*table, serial_executor(), gradient, 8);
        want.run(reference_kernels(), serial_executor(), gradient, 8);
        expect_close(got.loss, want.loss, 3e-7, "loss");
        expect_close(got.logits, want.logits, 3e-7, gradient ? "gradient" : "logits are left alone");
        EXPECT_TRUE(got.correct.same_bits(want.correct));
        EXPECT_EQ(got.correct[0][1], 1);
        EXPECT_EQ(got.correct[0][2], columns == 1 ? 1 : 0);
        got.logits.expect_gaps_untouched();
      }
    }
  }
}

TEST(CrossEntropyTest, GradientEqualsFiniteDifferences) {
  for (double cap : {0.0, 1.5}) {
    Problem<double> p(3, 7, 0, 1), g(3, 7, 0, 1);
    g.run(reference_kernels(), serial_executor(), true, 2.5, cap);
    const auto loss = [&] {
      Problem<double> copy = p;  // a cap replaces the logits
      copy.run(reference_kernels(), serial_executor(), false, 1, cap);
      return 2.5 * (copy.loss[0][0] + copy.loss[0][1] + copy.loss[0][2]);
    };
    expect_gradient(p.logits, g.logits, loss, "logits");
  }
}

TEST(CrossEntropyTest, SoftCapIsThatOfTheFormulas) {
  for (const KernelTable* table : cpu_tables()) {
    for (int64_t columns : {2, 17, 5003}) {
      for (bool gradient : {false, true}) {
        SCOPED_TRACE(std::string(table->name) + " columns " + std::to_string(columns));
        Problem<float> got(7, columns, 3, 6);
        Problem<double> want(7, columns, 0, 6), capped(7, columns, 0, 6);
        got.run(*table, serial_executor(), gradient, 8, 5);
        want.run(reference_kernels(), serial_executor(), gradient, 8, 5);
        expect_close(got.loss, want.loss, 3e-7, "loss");
        expect_close(got.logits, want.logits, 5e-7, gradient ? "gradient" : "logits are capped");
        EXPECT_TRUE(got.correct.same_bits(want.correct));
        got.logits.expect_gaps_untouched();
        // The loss is the plain one of capped logits.
        for (int64_t r = 0; r < 7; ++r) {
          for (int64_t c = 0; c < columns; ++c) capped.logits[r][c] = 5 * std::tanh(capped.logits[r][c] / 5);
        }
        capped.run(reference_kernels(), serial_executor(), false);
        for (int64_t r = 0; r < 7; ++r) EXPECT_NEAR(want.loss[0][r], capped.loss[0][r], 1e-12);
      }
    }
    Problem<float> alone(7, 1003, 2, 6);
    Problem<double> exact(7, 1003, 0, 6);
    table->soft_cap(serial(), {alone.logits.view(), 5});
    for (int64_t r = 0; r < 7; ++r) {
      for (int64_t c = 0; c < 1003; ++c) exact.logits[r][c] = 5 * std::tanh(exact.logits[r][c] / 5);
    }
    expect_close(alone.logits, exact.logits, 2e-7, "capped");
    alone.logits.expect_gaps_untouched();
  }
}

TEST(CrossEntropyTest, RowScaleMultipliesTheGradientOfItsRow) {
  for (const KernelTable* table : cpu_tables()) {
    for (double cap : {0.0, 5.0}) {
      Problem<float> plain(7, 1003, 2), got(7, 1003, 2), ones(7, 1003, 2);
      Problem<double> want(7, 1003, 0);
      Matrix<float> scale(1, 7), one(1, 7);
      Matrix<double> exact(1, 7);
      for (int64_t r = 0; r < 7; ++r) {
        exact[0][r] = scale[0][r] = static_cast<float>(r) * 0.75f - 2;
        one[0][r] = 1;
      }
      const auto run = [cap](const KernelTable& kernels, auto& p, const TensorView& row_scale) {
        kernels.cross_entropy(serial(), {p.logits.view(), p.targets.flat(), p.loss.flat(), p.correct.flat(), true, 8, cap, row_scale});
      };
      run(*table, got, scale.flat());
      run(reference_kernels(), want, exact.flat());
      expect_close(got.logits, want.logits, 5e-7, "gradient");
      expect_close(got.loss, want.loss, 3e-7, "the loss is not scaled");
      plain.run(*table, serial_executor(), true, 8, cap);
      run(*table, ones, one.flat());
      EXPECT_TRUE(ones.logits.same_bits(plain.logits));
      for (int64_t c = 0; c < 1003; ++c) {
        EXPECT_NEAR(got.logits[5][c], plain.logits[5][c] * scale[0][5], 1e-6) << c;
      }
    }
  }
}

TEST(CrossEntropyTest, SoftCapBackwardIsTheDerivativeOfSoftCap) {
  for (const KernelTable* table : cpu_tables()) {
    Matrix<float> x(5, 1003, 2), dy(5, 1003, 1);
    std::mt19937 random(4);
    x.fill(random, 6);
    dy.fill(random, 2);
    Matrix<double> want(5, 1003, 0);
    for (int64_t r = 0; r < 5; ++r) {
      for (int64_t c = 0; c < 1003; ++c) want[r][c] = dy[r][c] * std::pow(std::cosh(x[r][c] / 5.0), -2);
    }
    Matrix<double> reference_x(5, 1003, 0), reference_dy(5, 1003, 0);
    for (int64_t r = 0; r < 5; ++r) {
      for (int64_t c = 0; c < 1003; ++c) reference_x[r][c] = x[r][c], reference_dy[r][c] = dy[r][c];
    }
    reference_kernels().soft_cap_backward(serial(), {reference_x.view(), reference_dy.view(), 5});
    table->soft_cap_backward(serial(), {x.view(), dy.view(), 5});
    expect_close(x, want, 5e-7, "cpu");
    for (int64_t r = 0; r < 5; ++r) {
      for (int64_t c = 0; c < 1003; ++c) ASSERT_NEAR(reference_x[r][c], want[r][c], 1e-12);
    }
    x.expect_gaps_untouched();
  }
}

TEST(CrossEntropyTest, ExtremeLogits) {
  for (const KernelTable* table : cpu_tables()) {
    for (int64_t columns : {40, 41}) {
      Problem<float> p(5, columns, 0);
      for (int64_t c = 0; c < columns; ++c) p.logits[0][c] = c == 3 ? 0 : -INFINITY;  // masked vocabulary
      p.targets[0][0] = 3;
      p.logits[1][p.targets[0][1]] = -INFINITY;  // an impossible target
      p.logits[2][columns - 1] = NAN;
      for (int64_t c = 0; c < columns; ++c) p.logits[3][c] += 3e38f * (c % 2 == 0 ? -1.0f : 1.0f) / 10;
      for (int64_t c = 0; c < columns; ++c) p.logits[4][c] = -1e4f;
      p.run(*table, serial_executor(), true);
      EXPECT_EQ(p.loss[0][0], 0);
      EXPECT_EQ(p.correct[0][0], 1);
      for (int64_t c = 0; c < columns; ++c) {
        EXPECT_EQ(p.logits[0][c], 0);
        EXPECT_TRUE(std::isnan(p.logits[2][c])) << c;
        EXPECT_FALSE(std::isnan(p.logits[3][c]));
      }
      EXPECT_EQ(p.loss[0][1], INFINITY);
      EXPECT_EQ(p.logits[1][p.targets[0][1]], -1);
      EXPECT_TRUE(std::isnan(p.loss[0][2]));
      EXPECT_NEAR(p.loss[0][4], std::log(static_cast<double>(columns)), 1e-6);
    }
  }
}

TEST(CrossEntropyTest, BitsDoNotDependOnThreads) {
  for (const KernelTable* table : cpu_tables()) {
    Problem<float> want(20, 999, 0);
    want.run(*table, serial_executor(), true, 0.5);
    with_threads([&](const Executor& executor) {
      Problem<float> got(20, 999, 0);
      got.run(*table, executor, true, 0.5);
      EXPECT_TRUE(got.logits.same_bits(want.logits) && got.loss.same_bits(want.loss));
    });
  }
}

}  // namespace
}  // namespace inlaid::kernels::testing

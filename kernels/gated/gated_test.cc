#include "kernels/testing.h"

namespace inlaid::kernels::testing {
namespace {

const Activation kActivations[] = {Activation::silu, Activation::gelu, Activation::gelu_tanh,
                                   Activation::relu};

template <typename T>
struct Problem {
  Problem(int64_t rows, int64_t columns, int64_t gap, double spread = 1)
      : gate(rows, columns, gap),
        up(rows, columns, gap),
        y(rows, columns, gap),
        dy(rows, columns, gap),
        dgate(rows, columns, gap),
        dup(rows, columns, gap) {
    std::mt19937 random(3);
    gate.fill(random, spread), up.fill(random), dy.fill(random);
  }
  void run(const KernelTable& table, const Executor& executor, Activation activation) {
    table.gated_forward(Call(executor), {gate.view(), up.view(), y.view(), activation});
    table.gated_backward(Call(executor),
                         {dy.view(), gate.view(), up.view(), dgate.view(), dup.view(), activation});
  }
  Matrix<T> gate, up, y, dy, dgate, dup;
};

TEST(GatedTest, CpuEqualsReference) {
  for (const KernelTable* table : cpu_tables()) {
    for (Activation activation : kActivations) {
      for (double spread : {1.0, 6.0}) {
        for (int64_t columns : {1, 15, 64, 131}) {
          SCOPED_TRACE(std::string(table->name) + " activation " +
                       std::to_string(static_cast<int>(activation)));
          Problem<float> got(37, columns, 3, spread);
          Problem<double> want(37, columns, 0, spread);
          got.run(*table, serial_executor(), activation);
          want.run(reference_kernels(), serial_executor(), activation);
          expect_close(got.y, want.y, 3e-7, "y");
          expect_close(got.dgate, want.dgate, 5e-7, "dgate");
          expect_close(got.dup, want.dup, 3e-7, "dup");
          got.dgate.expect_gaps_untouched();
        }
      }
    }
  }
}

// Each value on its own, where a careless formula cancels or overflows.
TEST(GatedTest, KeepsRelativePrecisionInTheTails) {
  for (const KernelTable* table : cpu_tables()) {
    for (Activation activation : kActivations) {
      for (float x : {-200.0f, -90.0f, -12.0f, -5.0f, -1.0f, -1e-6f, 0.0f, 1e-6f, 2.0f, 9.0f, 90.0f, 1e20f,
                      -1e20f, NAN}) {
        Problem<float> got(1, 1, 0);
        Problem<double> want(1, 1, 0);
        got.gate[0][0] = x, want.gate[0][0] = x;
        got.run(*table, serial_executor(), activation);
        want.run(reference_kernels(), serial_executor(), activation);
        const std::string what = std::string(table->name) + " x " + std::to_string(x);
        if (std::isnan(x)) {
          EXPECT_TRUE(std::isnan(got.y[0][0])) << what;
          continue;
        }
        // An exponent of n is rounded to n * 2^-24.
        const double tolerance = 3e-7 * std::max(3.0, std::min(90.0, static_cast<double>(x) * x / 2));
        EXPECT_NEAR(got.y[0][0], want.y[0][0], tolerance * std::abs(want.y[0][0]) + 1e-36) << what;
        EXPECT_NEAR(got.dgate[0][0], want.dgate[0][0], 3e-6 * std::abs(want.dgate[0][0]) + 1e-7) << what;
      }
    }
  }
}

TEST(GatedTest, GradientsEqualFiniteDifferences) {
  for (Activation activation : kActivations) {
    Problem<double> p(3, 7, 0, 2);
    p.run(reference_kernels(), serial_executor(), activation);
    const Matrix<double> dgate = p.dgate, dup = p.dup;
    const auto loss = [&] {
      p.run(reference_kernels(), serial_executor(), activation);
      return inner(p.y, p.dy);
    };
    expect_gradient(p.gate, dgate, loss, "dgate");
    expect_gradient(p.up, dup, loss, "dup");
  }
}

TEST(GatedTest, InPlaceAndThreadsGiveTheSameBits) {
  for (const KernelTable* table : cpu_tables()) {
    Problem<float> want(200, 333, 0);
    want.run(*table, serial_executor(), Activation::silu);
    with_threads([&](const Executor& executor) {
      Problem<float> got(200, 333, 0);
      table->gated_backward(Call(executor), {got.dy.view(), got.gate.view(), got.up.view(), got.gate.view(),
                                             got.up.view(), Activation::silu});
      EXPECT_TRUE(got.gate.same_bits(want.dgate) && got.up.same_bits(want.dup));
    });
  }
}

}  // namespace
}  // namespace inlaid::kernels::testing

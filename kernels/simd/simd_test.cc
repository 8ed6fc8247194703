#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "kernels/kernels.h"
#include "kernels/simd/simd_functions.h"

namespace inlaid::kernels {
namespace {

std::vector<SimdFunctions> levels() {
  std::vector<SimdFunctions> all{portable::simd_functions()};
#if defined(__x86_64__)
  if (cpu_level() >= CpuLevel::avx2) all.push_back(avx2::simd_functions());
  if (cpu_level() >= CpuLevel::avx512) all.push_back(avx512::simd_functions());
#endif
  return all;
}

using Function = void (*)(const float*, float*, int64_t);

// Largest error of f over x, in units of the last place of the exact result.
double worst_ulps(Function f, const std::vector<float>& x, double (*exact)(double)) {
  std::vector<float> y(x.size());
  f(x.data(), y.data(), static_cast<int64_t>(x.size()));
  double worst = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double want = exact(x[i]);
    const float nearest = std::abs(static_cast<float>(want));
    const double ulp = static_cast<double>(std::nextafter(nearest, INFINITY)) - nearest;
    worst = std::max(worst, std::abs(y[i] - want) / ulp);
  }
  return worst;
}

std::vector<float> range(double from, double to, int n) {
  std::vector<float> x;
  for (int i = 0; i < n; ++i) x.push_back(static_cast<float>(from + (to - from) * i / (n - 1)));
  return x;
}

float at(Function f, float x) {
  float y;
  f(&x, &y, 1);
  return y;
}

TEST(SimdTest, Exponential) {
  for (const SimdFunctions& level : levels()) {
    EXPECT_LE(worst_ulps(level.exp, range(-87.3, 88.72, 100003), std::exp), 2) << level.lanes;
    EXPECT_LE(worst_ulps(level.exp, range(-1, 1, 10007), std::exp), 2) << level.lanes;
    EXPECT_EQ(at(level.exp, 0), 1);
    EXPECT_EQ(at(level.exp, -0.0f), 1);
    EXPECT_EQ(at(level.exp, -INFINITY), 0);
    EXPECT_EQ(at(level.exp, -1e30f), 0);
    EXPECT_EQ(at(level.exp, -88), 0);
    EXPECT_EQ(at(level.exp, 88.8f), INFINITY);
    EXPECT_EQ(at(level.exp, 1e30f), INFINITY);
    EXPECT_EQ(at(level.exp, INFINITY), INFINITY);
    EXPECT_TRUE(std::isnan(at(level.exp, NAN)));
    EXPECT_TRUE(std::isnan(at(level.exp, -NAN)));
  }
}

TEST(SimdTest, Logarithm) {
  for (const SimdFunctions& level : levels()) {
    EXPECT_LE(worst_ulps(level.log, range(1.0001, 3, 10007), std::log), 2) << level.lanes;
    EXPECT_LE(worst_ulps(level.log, range(0.01, 0.999, 10007), std::log), 2) << level.lanes;
    EXPECT_LE(worst_ulps(level.log, range(3, 1e6, 10007), std::log), 2) << level.lanes;
    EXPECT_LE(worst_ulps(level.log, {1.2e-38f, 3e38f, 1e-20f}, std::log), 2) << level.lanes;
    EXPECT_EQ(at(level.log, 1), 0);
    EXPECT_EQ(at(level.log, 0), -INFINITY);
    EXPECT_EQ(at(level.log, INFINITY), INFINITY);
    EXPECT_TRUE(std::isnan(at(level.log, NAN)));
  }
}

TEST(SimdTest, HyperbolicTangent) {
  for (const SimdFunctions& level : levels()) {
    EXPECT_LE(worst_ulps(level.tanh, range(-12, 12, 100003), std::tanh), 2) << level.lanes;
    EXPECT_LE(worst_ulps(level.tanh, range(-0.7, 0.7, 10008), std::tanh), 2) << level.lanes;
    EXPECT_LE(worst_ulps(level.tanh, range(1e-6, 1e-3, 1001), std::tanh), 1) << level.lanes;
    EXPECT_EQ(at(level.tanh, 0), 0);
    EXPECT_EQ(at(level.tanh, INFINITY), 1);
    EXPECT_EQ(at(level.tanh, -INFINITY), -1);
    EXPECT_TRUE(std::isnan(at(level.tanh, NAN)));
  }
}

TEST(SimdTest, SigmoidAndNormal) {
  for (const SimdFunctions& level : levels()) {
    EXPECT_LE(
        worst_ulps(level.sigmoid, range(-80, 80, 10007), [](double x) { return 1 / (1 + std::exp(-x)); }), 4);
    EXPECT_EQ(at(level.sigmoid, -INFINITY), 0);
    EXPECT_EQ(at(level.sigmoid, INFINITY), 1);
    EXPECT_TRUE(std::isnan(at(level.sigmoid, NAN)));
    const auto cumulative = [](double x) { return 0.5 * std::erfc(-x * std::sqrt(0.5)); };
    EXPECT_LE(worst_ulps(level.cumulative, range(-1, 10, 10007), cumulative), 6);
    EXPECT_LE(worst_ulps(level.cumulative, range(-5, -1, 10007), cumulative),
              25);  // x^2 / 2 is rounded before exp
    EXPECT_EQ(at(level.cumulative, -40), 0);
    EXPECT_TRUE(std::isnan(at(level.cumulative, NAN)));
  }
}

TEST(SimdTest, LanesInOrder) {
  for (const SimdFunctions& level : levels()) {
    const int64_t n = level.lanes;
    std::vector<float> square(static_cast<size_t>(n * n)), sums(static_cast<size_t>(n));
    for (size_t i = 0; i < square.size(); ++i) square[i] = static_cast<float>(i);
    level.sum_each(square.data(), sums.data());
    for (int64_t r = 0; r < n; ++r) {
      EXPECT_EQ(sums[static_cast<size_t>(r)], static_cast<float>(r * n * n + n * (n - 1) / 2));
      EXPECT_EQ(level.reduce_add(&square[static_cast<size_t>(r * n)]), sums[static_cast<size_t>(r)]);
      EXPECT_EQ(level.reduce_max(&square[static_cast<size_t>(r * n)]), static_cast<float>(r * n + n - 1));
    }
    level.transpose(square.data());
    for (int64_t r = 0; r < n; ++r) {
      for (int64_t c = 0; c < n; ++c)
        EXPECT_EQ(square[static_cast<size_t>(r * n + c)], static_cast<float>(c * n + r));
    }
    for (int64_t count = 1; count <= n; ++count) {
      std::vector<float> to(static_cast<size_t>(n + 1), -1.0f);
      level.copy_first(square.data(), to.data(), count);
      for (int64_t i = 0; i <= n; ++i) {
        EXPECT_EQ(to[static_cast<size_t>(i)], i < count ? square[static_cast<size_t>(i)] : -1.0f);
      }
    }
  }
}

}  // namespace
}  // namespace inlaid::kernels

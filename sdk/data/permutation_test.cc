#include "sdk/data/permutation.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace inlaid::data {
namespace {

std::vector<int64_t> order(uint64_t seed, int64_t epoch, int64_t n) {
  const Permutation permutation(seed, epoch, n);
  std::vector<int64_t> out;
  for (int64_t i = 0; i < n; ++i) out.push_back(permutation(i));
  return out;
}

TEST(Permutation, IsABijection) {
  for (int64_t n = 1; n <= 200; ++n) {
    for (int64_t epoch = 0; epoch < 3; ++epoch) {
      const std::vector<int64_t> o = order(7, epoch, n);
      const std::set<int64_t> values(o.begin(), o.end());
      ASSERT_EQ(static_cast<int64_t>(values.size()), n);
      ASSERT_EQ(*values.begin(), 0);
      ASSERT_EQ(*values.rbegin(), n - 1);
    }
  }
}

TEST(Permutation, DependsOnSeedAndEpoch) {
  std::set<std::vector<int64_t>> seen;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    for (int64_t epoch = 0; epoch < 10; ++epoch) seen.insert(order(seed, epoch, 50));
  }
  EXPECT_EQ(seen.size(), 100u);
  EXPECT_EQ(order(3, 4, 50), order(3, 4, 50));
  EXPECT_NE(order(3, 4, 50), order(3, 4 + (int64_t{1} << 32), 50));
}

// Every value comes to every position about equally often: within 5 standard deviations of the binomial.
TEST(Permutation, IsCloseToUniform) {
  for (const int64_t n : {2, 3, 5, 16, 17}) {
    constexpr int64_t kEpochs = 4000;
    std::vector<int64_t> counts(static_cast<size_t>(n * n), 0);
    for (int64_t epoch = 0; epoch < kEpochs; ++epoch) {
      const std::vector<int64_t> o = order(1, epoch, n);
      for (int64_t i = 0; i < n; ++i) ++counts[static_cast<size_t>(i * n + o[static_cast<size_t>(i)])];
    }
    const double expected = static_cast<double>(kEpochs) / static_cast<double>(n);
    const double variance = expected * (1 - 1.0 / static_cast<double>(n));
    for (const int64_t count : counts) {
      const double off = static_cast<double>(count) - expected;
      EXPECT_LT(off * off, 25 * variance) << "n = " << n;
    }
  }
}

TEST(Permutation, ReachesLargeSets) {
  for (const int64_t n : {(int64_t{1} << 32) + 1, (int64_t{1} << 61) + 12345}) {
    const Permutation permutation(5, 2, n);
    std::set<int64_t> seen;
    for (int64_t i = 0; i < 1000; ++i) {
      const int64_t value = permutation(n - 1 - i);
      ASSERT_GE(value, 0);
      ASSERT_LT(value, n);
      seen.insert(value);
    }
    EXPECT_EQ(seen.size(), 1000u);
  }
}

}  // namespace
}  // namespace inlaid::data

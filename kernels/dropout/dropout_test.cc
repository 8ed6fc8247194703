#include "kernels/philox.h"
#include "kernels/testing.h"

namespace inlaid::kernels::testing {
namespace {

// Known answers of Philox4x32-10 (Random123, kat_vectors).
TEST(PhiloxTest, KnownAnswers) {
  EXPECT_EQ(Philox::generate(0, {0, 0, 0, 0}),
            (Philox::Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox::generate(0xffffffffffffffff, {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}),
            (Philox::Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox::generate(0x299f31d0a4093822, {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}),
            (Philox::Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

template <typename T>
struct Problem {
  Problem(int64_t rows, int64_t columns, int64_t gap)
      : x(rows, columns, gap), y(rows, columns, gap), row_keys(1, rows), positions(1, rows) {
    std::mt19937 random(2);
    x.fill(random), y.fill(random);
    for (int64_t t = 0; t < rows; ++t) {
      row_keys[0][t] = (int64_t{1} << 40) * (t / 3) + 12345;
      positions[0][t] = static_cast<int32_t>(t % 3);
    }
  }
  void run(const KernelTable& table, const Executor& executor, double p, bool accumulate) {
    table.dropout(Call(executor),
                  {x.view(), y.view(), row_keys.flat(), positions.flat(), 0x123456789abcdef0, p, accumulate});
  }
  Matrix<T> x, y;
  Matrix<int64_t> row_keys;
  Matrix<int32_t> positions;
};

TEST(DropoutTest, MaskIsPhiloxOfSamplePositionAndColumn) {
  std::vector<const KernelTable*> tables = cpu_tables();
  tables.push_back(&reference_kernels());
  for (const KernelTable* table : tables) {
    for (int64_t columns : {1, 4, 30, 129}) {
      for (bool accumulate : {false, true}) {
        Problem<float> p(11, columns, 3);
        const Matrix<float> before = p.y;
        p.run(*table, serial_executor(), 0.3, accumulate);
        for (int64_t t = 0; t < 11; ++t) {
          for (int64_t c = 0; c < columns; ++c) {
            const uint64_t sample = static_cast<uint64_t>(p.row_keys[0][t]);
            const uint32_t word = Philox::generate(
                0x123456789abcdef0, {static_cast<uint32_t>(c / 4), static_cast<uint32_t>(p.positions[0][t]),
                                     static_cast<uint32_t>(sample),
                                     static_cast<uint32_t>(sample >> 32)})[static_cast<size_t>(c % 4)];
            const double kept = word < 0.3 * 4294967296.0 ? 0 : p.x[t][c] / 0.7;
            EXPECT_NEAR(p.y[t][c], kept + (accumulate ? before[t][c] : 0), 1e-6)
                << table->name << " " << t << ", " << c;
          }
        }
        p.y.expect_gaps_untouched();
      }
    }
  }
}

TEST(DropoutTest, NothingEverythingAndTheShareBetween) {
  for (const KernelTable* table : cpu_tables()) {
    Problem<float> p(100, 500, 0);
    p.run(*table, serial_executor(), 0, false);
    EXPECT_TRUE(p.y.same_bits(p.x));
    p.run(*table, serial_executor(), 1, false);
    EXPECT_TRUE(p.y.same_bits(Matrix<float>(100, 500)));
    p.run(*table, serial_executor(), 0.1, false);
    int dropped = 0;
    for (int64_t t = 0; t < 100; ++t) dropped += static_cast<int>(std::count(p.y[t], p.y[t] + 500, 0.0f));
    EXPECT_NEAR(dropped, 5000, 5 * std::sqrt(50000 * 0.1 * 0.9));
  }
}

TEST(DropoutTest, InPlaceAndThreadsGiveTheSameBits) {
  for (const KernelTable* table : cpu_tables()) {
    Problem<float> want(200, 301, 0);
    want.run(*table, serial_executor(), 0.25, false);
    with_threads([&](const Executor& executor) {
      Problem<float> got(200, 301, 0);
      got.y = got.x;
      table->dropout(Call(executor), {got.y.view(), got.y.view(), got.row_keys.flat(), got.positions.flat(),
                                      0x123456789abcdef0, 0.25, false});
      EXPECT_TRUE(got.y.same_bits(want.y));
    });
  }
}

}  // namespace
}  // namespace inlaid::kernels::testing

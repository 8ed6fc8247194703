#include "kernels/testing.h"

namespace inlaid::kernels::testing {
namespace {

template <typename T>
struct Tables {
  Tables(const std::vector<int32_t>& positions, int64_t half, double scale, const KernelTable& table)
      : cosine(static_cast<int64_t>(positions.size()), half, 1), sine(cosine) {
    Matrix<double> inv_freq(1, half);
    for (int64_t i = 0; i < half; ++i)
      inv_freq[0][i] = std::pow(10000.0, -static_cast<double>(i) / static_cast<double>(half));
    const Matrix<int32_t> at(positions);
    table.rotary_table(serial(), {at.flat(), inv_freq.flat(), cosine.view(), sine.view(), scale});
  }
  Matrix<T> cosine, sine;
};

TEST(RotaryTest, TableIsTheClosedForm) {
  const std::vector<int32_t> positions{0, 1, 5, 8191, 1000003};
  for (const KernelTable* table : cpu_tables()) {
    const Tables<float> got(positions, 5, 1.5, *table);
    for (int64_t t = 0; t < 5; ++t) {
      for (int64_t i = 0; i < 5; ++i) {
        const double angle =
            positions[static_cast<size_t>(t)] * std::pow(10000.0, -static_cast<double>(i) / 5);
        EXPECT_NEAR(got.cosine[t][i], 1.5 * std::cos(angle), 1e-6) << t << ", " << i;
        EXPECT_NEAR(got.sine[t][i], 1.5 * std::sin(angle), 1e-6) << t << ", " << i;
      }
    }
    got.cosine.expect_gaps_untouched();
  }
}

// Rows of packed documents of lengths 3, 20 and 9: those of the second one, longer than 8 and than 12, turn by other
// frequencies, whatever lies beside them.
TEST(RotaryTest, LengthOfTheDocumentChoosesFrequencies) {
  const std::vector<int32_t> positions{0, 2, 0, 19, 7, 8}, lengths{3, 3, 20, 20, 9, 9};
  const int64_t half = 5;
  Matrix<double> plain(1, half), longer(1, half);
  for (int64_t i = 0; i < half; ++i) {
    plain[0][i] = std::pow(100.0, -static_cast<double>(i) / half);
    longer[0][i] = plain[0][i] / (2 + static_cast<double>(i));
  }
  const Matrix<int32_t> at(positions), of(lengths);
  std::vector<const KernelTable*> tables = cpu_tables();
  tables.push_back(&reference_kernels());
  for (const KernelTable* table : tables) {
    for (bool dynamic : {false, true}) {
      Matrix<float> cosine(6, half, 1), sine(6, half, 1);
      RotaryTableArgs args{at.flat(), plain.flat(), cosine.view(), sine.view(), 1.25};
      args.lengths = of.flat();
      args.long_after = dynamic ? 9 : 8;
      args.ntk_factor = 3;
      if (!dynamic) args.long_inv_freq = longer.flat();
      table->rotary_table(serial(), args);
      for (int64_t t = 0; t < 6; ++t) {
        const auto row = static_cast<size_t>(t);
        for (int64_t i = 0; i < half; ++i) {
          double frequency = plain[0][i];
          if (lengths[row] > args.long_after && dynamic) {
            // The published form: another base.
            const double base = 100 * std::pow(3.0 * lengths[row] / 9 - 2, 2 * half / (2.0 * half - 2));
            frequency = std::pow(base, -static_cast<double>(i) / half);
          } else if (lengths[row] > args.long_after) {
            frequency = longer[0][i];
          }
          EXPECT_NEAR(cosine[t][i], 1.25 * std::cos(positions[row] * frequency), 1e-6) << table->name << t << i;
          EXPECT_NEAR(sine[t][i], 1.25 * std::sin(positions[row] * frequency), 1e-6) << table->name << t << i;
        }
      }
      cosine.expect_gaps_untouched();
    }
  }
}

TEST(RotaryTest, ColumnsBeyondTheRotatedOnesStay) {
  const std::vector<int32_t> positions{0, 3, 77};
  std::vector<const KernelTable*> tables = cpu_tables();
  tables.push_back(&reference_kernels());
  for (const KernelTable* table : tables) {
    const int64_t half = 5, size = 16;
    const Tables<float> turn(positions, half, 1, *table);
    std::mt19937 random(1);
    Matrix<float> x(3, 2 * size, 2);
    const Matrix<float> before = x.fill(random);
    table->rotary(serial(), {x.view(), turn.cosine.view(), turn.sine.view(), 2, false});
    for (int64_t t = 0; t < 3; ++t) {
      for (int64_t h = 0; h < 2; ++h) {
        for (int64_t i = 0; i < half; ++i) {
          const double c = turn.cosine[t][i], s = turn.sine[t][i];
          const int64_t place = h * size + i;
          EXPECT_NEAR(x[t][place], before[t][place] * c - before[t][place + half] * s, 1e-6) << table->name;
        }
        for (int64_t c = 2 * half; c < size; ++c) EXPECT_EQ(x[t][h * size + c], before[t][h * size + c]);
      }
    }
    x.expect_gaps_untouched();
  }
}

// Feature pairs as complex numbers: (a + i b) e^{i angle}.
TEST(RotaryTest, TurnsHalfSplitPairs) {
  const std::vector<int32_t> positions{0, 3, 77, 500, 2};
  std::vector<const KernelTable*> tables = cpu_tables();
  tables.push_back(&reference_kernels());
  for (const KernelTable* table : tables) {
    for (int64_t half : {1, 5, 8, 32, 37}) {
      const Tables<float> turn(positions, half, 1, *table);
      std::mt19937 random(1);
      Matrix<float> x(5, 3 * 2 * half, 2);
      const Matrix<float> before = x.fill(random);
      table->rotary(serial(), {x.view(), turn.cosine.view(), turn.sine.view(), 3, false});
      for (int64_t t = 0; t < 5; ++t) {
        for (int64_t h = 0; h < 3; ++h) {
          for (int64_t i = 0; i < half; ++i) {
            const double c = turn.cosine[t][i], s = turn.sine[t][i];
            const int64_t at = h * 2 * half + i;
            const double a = before[t][at], b = before[t][at + half];
            EXPECT_NEAR(x[t][at], a * c - b * s, 1e-6) << table->name;
            EXPECT_NEAR(x[t][at + half], b * c + a * s, 1e-6) << table->name;
          }
        }
      }
      x.expect_gaps_untouched();
      // The inverse is the transpose, and turns back.
      table->rotary(serial(), {x.view(), turn.cosine.view(), turn.sine.view(), 3, true});
      expect_close(x, before.as<double>(), 3e-7, table->name);
    }
  }
}

TEST(RotaryTest, BitsDoNotDependOnThreads) {
  std::vector<int32_t> positions(333);
  for (size_t i = 0; i < positions.size(); ++i) positions[i] = static_cast<int32_t>(i * 7);
  for (const KernelTable* table : cpu_tables()) {
    const Tables<float> turn(positions, 20, 1, *table);
    std::mt19937 random(1);
    Matrix<float> x(333, 120);
    x.fill(random);
    Matrix<float> want = x;
    table->rotary(serial(), {want.view(), turn.cosine.view(), turn.sine.view(), 3, false});
    with_threads([&](const Executor& executor) {
      Matrix<float> got = x;
      table->rotary(Call(executor), {got.view(), turn.cosine.view(), turn.sine.view(), 3, false});
      EXPECT_TRUE(got.same_bits(want));
    });
  }
}

}  // namespace
}  // namespace inlaid::kernels::testing

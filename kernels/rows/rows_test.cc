#include "kernels/testing.h"

namespace inlaid::kernels::testing {
namespace {

Matrix<float> noise(int64_t rows, int64_t columns, int64_t gap = 0) {
  std::mt19937 random(static_cast<unsigned>(rows * 100 + columns));
  return Matrix<float>(rows, columns, gap).fill(random);
}

std::vector<const KernelTable*> all_tables() {
  std::vector<const KernelTable*> tables = cpu_tables();
  tables.push_back(&reference_kernels());
  return tables;
}

TEST(RowsTest, GatherAndScatterMoveRows) {
  const Matrix<int32_t> index(std::vector<int32_t>{4, 0, 7, 2});
  for (const KernelTable* table : all_tables()) {
    for (int64_t columns : {1, 13, 64, 20000}) {
      with_threads([&](const Executor& executor) {
        const Matrix<float> x = noise(9, columns, 1);
        Matrix<float> picked(4, columns, 2), back = noise(9, columns, 3);
        table->gather_rows(Call(executor), {x.view(), index.flat(), picked.view()});
        table->scatter_rows(Call(executor), {picked.view(), index.flat(), back.view()});
        for (int64_t c = 0; c < columns; ++c) {
          for (int64_t r = 0; r < 4; ++r) ASSERT_EQ(picked[r][c], x[index[0][r]][c]);
          for (int64_t r : {4, 0, 7, 2}) ASSERT_EQ(back[r][c], x[r][c]);
          for (int64_t r : {1, 3, 5, 6, 8}) ASSERT_EQ(back[r][c], 0);
        }
        picked.expect_gaps_untouched();
        back.expect_gaps_untouched();
      });
    }
  }
}

TEST(RowsTest, AddsInPlaceAndElsewhere) {
  for (const KernelTable* table : all_tables()) {
    for (int64_t columns : {1, 31, 40000}) {
      const Matrix<float> a = noise(5, columns, 1), b = noise(5, columns + 1).as<float>();
      Matrix<float> y(5, columns, 2), in_place = a;
      TensorView right = b.view();
      right.shape[1] = columns;
      table->add(serial(), {a.view(), right, y.view()});
      table->add(serial(), {in_place.view(), right, in_place.view()});
      for (int64_t r = 0; r < 5; ++r) {
        for (int64_t c = 0; c < columns; ++c) ASSERT_EQ(y[r][c], a[r][c] + b[r][c]);
        for (int64_t c = 0; c < columns; ++c) ASSERT_EQ(in_place[r][c], y[r][c]);
      }
      y.expect_gaps_untouched();
    }
    // Flat views.
    const Matrix<float> a = noise(1, 77);
    Matrix<float> y(1, 77);
    table->add(serial(), {a.flat(), a.flat(), y.flat()});
    EXPECT_EQ(y[0][76], 2 * a[0][76]);
  }
}

TEST(RowsTest, SumsColumnsInAFixedOrder) {
  for (const KernelTable* table : cpu_tables()) {
    for (int64_t rows : {1, 64, 200}) {
      for (int64_t columns : {1, 31, 32, 100}) {
        const Matrix<float> x = noise(rows, columns, 1), start = noise(1, columns);
        Matrix<double> want = start.as<double>();
        reference_kernels().sum_rows(serial(), {x.as<double>().view(), want.flat()});
        double first = start[0][0];
        for (int64_t r = 0; r < rows; ++r) first += x[r][0];
        EXPECT_NEAR(want[0][0], first, 1e-12 * static_cast<double>(rows));
        Matrix<float> one = start;
        table->sum_rows(serial(), {x.view(), one.flat()});
        expect_close(one, want, 3e-8 * static_cast<double>(rows) + 3e-7,
                     table->name);  // sums of terms of order 1
        with_threads([&](const Executor& executor) {
          Matrix<float> got = start;
          const SumRowsArgs args{x.view(), got.flat()};
          table->sum_rows(Call(executor, table->sum_rows_workspace(args, executor.threads)), args);
          EXPECT_TRUE(got.same_bits(one));
        });
      }
    }
  }
}

}  // namespace
}  // namespace inlaid::kernels::testing

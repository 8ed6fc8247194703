#include "kernels/storage/storage.h"
#include "kernels/testing.h"

namespace inlaid::kernels::testing {
namespace {

std::vector<int32_t> some_ids(int64_t n, int32_t vocabulary) {
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < n; ++i)
    ids.push_back(static_cast<int32_t>(i % 3 == 0 ? 2 : (i * i + 7) % vocabulary));
  return ids;
}

TEST(EmbeddingTest, LooksUpStoredRows) {
  const int64_t v = 19, h = 96;
  std::mt19937 random(1);
  Matrix<float> weight(v, h);
  weight.fill(random);
  const Matrix<int32_t> ids(some_ids(31, 19));
  for (const KernelTable* table : cpu_tables()) {
    for (DType type : {DType::f32, DType::bf16, DType::f16, DType::q8_0, DType::q4_0, DType::q4_1}) {
      std::vector<std::byte> bytes(static_cast<size_t>(dtype_bytes(type, v * h)));
      from_f32(type, weight[0], v * h, bytes.data());
      Matrix<float> got(31, h, 5);
      Matrix<double> want(31, h);
      table->embedding_forward(serial(), {ids.flat(), view2(bytes.data(), type, v, h), got.view()});
      reference_kernels().embedding_forward(serial(),
                                            {ids.flat(), view2(bytes.data(), type, v, h), want.view()});
      expect_close(got, want, 0, dtype_info(type).name);
      got.expect_gaps_untouched();
      if (type == DType::f32) {
        EXPECT_EQ(want[4][3], weight[ids[0][4]][3]);
      }
    }
  }
}

TEST(EmbeddingTest, ScaleIsAFactorOfRowsAndGradient) {
  const int64_t v = 19, h = 33;
  std::mt19937 random(1);
  Matrix<float> weight(v, h), dy(31, h, 2);
  weight.fill(random);
  dy.fill(random);
  const Matrix<int32_t> ids(some_ids(31, 19));
  for (const KernelTable* table : cpu_tables()) {
    Matrix<float> y(31, h, 5), gradient(v, h);
    Matrix<double> want(v, h);
    table->embedding_forward(serial(), {ids.flat(), weight.view(), y.view(), 3.0});
    for (int64_t t = 0; t < 31; ++t) EXPECT_EQ(y[t][32], 3 * weight[ids[0][t]][32]);
    y.expect_gaps_untouched();
    const EmbeddingBackwardArgs args{ids.flat(), dy.view(), gradient.view(), 3.0};
    table->embedding_backward(serial(table->embedding_backward_workspace(args, 1)), args);
    for (int64_t t = 0; t < 31; ++t) {
      for (int64_t c = 0; c < h; ++c) want[ids[0][t]][c] += 3.0 * dy[t][c];
    }
    expect_close(gradient, want, 3e-7, table->name);
  }
}

TEST(EmbeddingTest, GradientAddsRowsInOrder) {
  for (int64_t h : {1, 33, 576}) {
    std::mt19937 random(1);
    Matrix<float> dy(333, h, 2), start(40, h);
    dy.fill(random);
    start.fill(random);
    const Matrix<int32_t> ids(some_ids(333, 40));
    Matrix<float> want = start;
    reference_kernels().embedding_backward(serial(), {ids.flat(), dy.view(), want.view()});
    // What the order of sums means, spelled out for one row.
    float first = start[2][0];
    for (int64_t t = 0; t < 333; ++t) first += ids[0][t] == 2 ? dy[t][0] : 0;
    EXPECT_EQ(want[2][0], first);
    for (const KernelTable* table : cpu_tables()) {
      with_threads([&](const Executor& executor) {
        Matrix<float> got = start;
        const EmbeddingBackwardArgs args{ids.flat(), dy.view(), got.view()};
        table->embedding_backward(Call(executor, table->embedding_backward_workspace(args, executor.threads)),
                                  args);
        EXPECT_TRUE(got.same_bits(want)) << table->name;
      });
    }
  }
}

}  // namespace
}  // namespace inlaid::kernels::testing

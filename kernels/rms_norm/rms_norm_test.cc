#include "kernels/storage/storage.h"
#include "kernels/testing.h"

namespace inlaid::kernels::testing {
namespace {

struct Shape {
  int64_t rows, columns;
};
const Shape kShapes[] = {{1, 1}, {3, 7}, {70, 64}, {5, 576}, {130, 33}, {2, 1100}};

template <typename T>
struct Problem {
  Problem(Shape s, int64_t gap)
      : x(s.rows, s.columns, gap),
        y(s.rows, s.columns, gap),
        dy(s.rows, s.columns, gap),
        dx(s.rows, s.columns, gap),
        weight(1, s.columns),
        dweight(1, s.columns),
        rstd(1, s.rows) {
    std::mt19937 random(3);
    x.fill(random), dy.fill(random), dx.fill(random), weight.fill(random), dweight.fill(random);
  }
  TensorView weight_view() const { return stored.data ? stored : weight.flat(); }
  void forward(const KernelTable& table, const Executor& executor) {
    table.rms_norm_forward(Call(executor), {x.view(), weight_view(), y.view(), rstd.flat(), 1e-5, offset});
  }
  void backward(const KernelTable& table, const Executor& executor, bool accumulate) {
    table.rms_norm_backward_input(Call(executor),
                                  {dy.view(), x.view(), weight_view(), rstd.flat(), dx.view(), accumulate, offset});
    const RmsNormBackwardWeightArgs args{dy.view(), x.view(), rstd.flat(), dweight.flat()};
    table.rms_norm_backward_weight(
        Call(executor, table.rms_norm_backward_weight_workspace(args, executor.threads)), args);
  }

  Matrix<T> x, y, dy, dx, weight, dweight, rstd;
  TensorView stored;
  double offset = 0;  // of the weights
};

// Forward and backward of one problem with a table, and with the reference.
void run_both(const KernelTable& table, bool accumulate, Problem<float>* got, Problem<double>* want) {
  got->forward(table, serial_executor());
  want->forward(reference_kernels(), serial_executor());
  got->backward(table, serial_executor(), accumulate);
  want->backward(reference_kernels(), serial_executor(), accumulate);
}

TEST(RmsNormTest, CpuEqualsReference) {
  for (const KernelTable* table : cpu_tables()) {
    for (const Shape& shape : kShapes) {
      for (bool accumulate : {false, true}) {
        SCOPED_TRACE(std::string(table->name) + " " + std::to_string(shape.rows) + " x " +
                     std::to_string(shape.columns));
        Problem<float> got(shape, 3);
        Problem<double> want(shape, 0);
        run_both(*table, accumulate, &got, &want);
        expect_close(got.y, want.y, 3e-7, "y");
        expect_close(got.rstd, want.rstd, 3e-7, "rstd");
        expect_close(got.dx, want.dx, 5e-7, "dx");
        expect_close(got.dweight, want.dweight, 5e-7, "dweight");
        got.y.expect_gaps_untouched();
        got.dx.expect_gaps_untouched();
      }
    }
  }
}

// An offset is the same as weights that are larger by it.
TEST(RmsNormTest, OffsetOfTheWeights) {
  const Shape shape{6, 1088};
  for (const KernelTable* table : cpu_tables()) {
    for (DType type : {DType::f32, DType::bf16}) {
      Problem<float> got(shape, 0);
      Problem<double> want(shape, 0);
      std::vector<std::byte> bytes(static_cast<size_t>(dtype_bytes(type, shape.columns)));
      from_f32(type, got.weight[0], shape.columns, bytes.data());
      got.stored = view1(bytes.data(), type, shape.columns);
      got.offset = 1;
      for (int64_t c = 0; c < shape.columns; ++c) {
        float value;
        portable::to_f32(type, bytes.data() + c * dtype_bytes(type, 1), 1, &value);
        want.weight[0][c] = 1 + double{value};
      }
      run_both(*table, false, &got, &want);
      expect_close(got.y, want.y, 3e-7, dtype_info(type).name);
      expect_close(got.dx, want.dx, 5e-7, dtype_info(type).name);
      expect_close(got.dweight, want.dweight, 5e-7, dtype_info(type).name);
    }
  }
}

TEST(RmsNormTest, ReadsStoredWeights) {
  const Shape shape{6, 1088};
  for (const KernelTable* table : cpu_tables()) {
    for (DType type : {DType::bf16, DType::f16, DType::q8_0, DType::q4_1}) {
      Problem<float> got(shape, 0);
      Problem<double> want(shape, 0);
      std::vector<std::byte> bytes(static_cast<size_t>(dtype_bytes(type, shape.columns)));
      from_f32(type, got.weight[0], shape.columns, bytes.data());
      got.stored = want.stored = view1(bytes.data(), type, shape.columns);
      run_both(*table, false, &got, &want);
      expect_close(got.y, want.y, 3e-7, dtype_info(type).name);
      expect_close(got.dx, want.dx, 5e-7, dtype_info(type).name);
    }
  }
}

TEST(RmsNormTest, GradientsEqualFiniteDifferences) {
  Problem<double> p({3, 5}, 0);
  p.offset = 0.7;
  p.dweight = Matrix<double>(1, 5);
  p.forward(reference_kernels(), serial_executor());
  p.backward(reference_kernels(), serial_executor(), false);
  const auto loss = [&] {
    p.forward(reference_kernels(), serial_executor());
    return inner(p.y, p.dy);
  };
  expect_gradient(p.x, p.dx, loss, "dx");
  expect_gradient(p.weight, p.dweight, loss, "dweight");
}

TEST(RmsNormTest, BitsDoNotDependOnThreadsOrOtherRows) {
  for (const KernelTable* table : cpu_tables()) {
    Problem<float> want({150, 300}, 0);
    want.forward(*table, serial_executor());
    want.backward(*table, serial_executor(), true);
    with_threads([&](const Executor& executor) {
      Problem<float> got({150, 300}, 0);
      got.forward(*table, executor);
      got.backward(*table, executor, true);
      EXPECT_TRUE(got.y.same_bits(want.y) && got.dx.same_bits(want.dx) &&
                  got.dweight.same_bits(want.dweight));
    });
    Problem<float> alone({1, 300}, 0);
    std::copy_n(want.x[149], 300, alone.x[0]);
    alone.weight = want.weight;
    alone.forward(*table, serial_executor());
    EXPECT_EQ(std::memcmp(alone.y[0], want.y[149], 300 * sizeof(float)), 0);
  }
}

}  // namespace
}  // namespace inlaid::kernels::testing

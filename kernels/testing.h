// What the kernels' tests share: matrices with rows further apart than their length, the tables to test, a
// context with threads and workspace, comparison.
#ifndef INLAID_KERNELS_TESTING_H_
#define INLAID_KERNELS_TESTING_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <new>
#include <random>
#include <string>
#include <vector>

#include "kernels/gemm/test_threads.h"
#include "kernels/kernels.h"

namespace inlaid::kernels::testing {

template <typename T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, double>) return DType::f64;
  if constexpr (std::is_same_v<T, float>) return DType::f32;
  if constexpr (std::is_same_v<T, int64_t>) return DType::i64;
  if constexpr (std::is_same_v<T, int32_t>) return DType::i32;
}

// Rows x columns with `gap` elements between rows, which hold a sentinel that check() looks for again.
template <typename T>
class Matrix {
 public:
  Matrix(int64_t rows, int64_t columns, int64_t gap = 0)
      : rows_(rows),
        columns_(columns),
        stride_(columns + gap),
        data_(static_cast<size_t>(rows * stride_), kSentinel) {
    for (int64_t r = 0; r < rows; ++r) std::fill_n((*this)[r], columns, T{});
  }
  explicit Matrix(const std::vector<T>& values) : Matrix(1, static_cast<int64_t>(values.size())) {
    data_ = values;
  }

  int64_t rows() const { return rows_; }
  int64_t columns() const { return columns_; }
  T* operator[](int64_t r) { return data_.data() + r * stride_; }
  const T* operator[](int64_t r) const { return data_.data() + r * stride_; }

  Matrix& fill(std::mt19937& random, double scale = 1) {
    std::normal_distribution<double> normal;
    for (int64_t r = 0; r < rows_; ++r) {
      for (int64_t c = 0; c < columns_; ++c)
        (*this)[r][c] = static_cast<T>(static_cast<float>(scale * normal(random)));
    }
    return *this;
  }
  template <typename U>
  Matrix<U> as() const {
    Matrix<U> copy(rows_, columns_);
    for (int64_t r = 0; r < rows_; ++r) {
      for (int64_t c = 0; c < columns_; ++c) copy[r][c] = static_cast<U>((*this)[r][c]);
    }
    return copy;
  }
  TensorView view() const {
    TensorView v = view2(const_cast<T*>(data_.data()), dtype_of<T>(), rows_, columns_);
    v.stride[0] = stride_;
    return v;
  }
  TensorView flat() const { return view1(const_cast<T*>(data_.data()), dtype_of<T>(), rows_ * stride_); }
  void expect_gaps_untouched() const {
    for (int64_t r = 0; r < rows_; ++r) {
      for (int64_t c = columns_; c < stride_; ++c)
        EXPECT_EQ((*this)[r][c], kSentinel) << "row " << r << " was overrun";
    }
  }
  bool same_bits(const Matrix& other) const {
    return data_.size() == other.data_.size() &&
           std::memcmp(data_.data(), other.data_.data(), data_.size() * sizeof(T)) == 0;
  }

 private:
  static constexpr T kSentinel = static_cast<T>(-77);
  int64_t rows_, columns_, stride_;
  std::vector<T> data_;
};

// Relative L2 distance of what was computed from what is right; values are of order 1, so a norm below 1
// counts as 1. Infinite and NaN values must be equal.
template <typename T>
void expect_close(const Matrix<T>& got, const Matrix<double>& want, double tolerance,
                  const std::string& what = "") {
  ASSERT_EQ(got.rows(), want.rows());
  ASSERT_EQ(got.columns(), want.columns());
  double difference = 0, norm = 0;
  for (int64_t r = 0; r < got.rows(); ++r) {
    for (int64_t c = 0; c < got.columns(); ++c) {
      const double g = got[r][c], w = want[r][c];
      if (std::isinf(w) || std::isnan(w)) {
        EXPECT_TRUE(std::isnan(w) ? std::isnan(g) : g == w)
            << what << " at " << r << ", " << c << ": " << g << " for " << w;
        continue;
      }
      difference += (g - w) * (g - w);
      norm += w * w;
    }
  }
  EXPECT_LE(std::sqrt(difference), tolerance * std::max(1.0, std::sqrt(norm))) << what;
}

// The CPU tables that this processor can run.
inline std::vector<const KernelTable*> cpu_tables() {
  std::vector<const KernelTable*> tables;
  for (int level = 0; level <= static_cast<int>(cpu_level()); ++level) {
    tables.push_back(&cpu_kernels(static_cast<CpuLevel>(level)));
  }
  return tables;
}

// A context whose workspace holds rubbish, ends exactly where asked for, and is checked for overruns when it
// goes.
class Call {
 public:
  explicit Call(const Executor& executor, size_t workspace = 0) : bytes_(workspace) {
    memory_ = static_cast<std::byte*>(::operator new (bytes_ + kGuard, std::align_val_t{64}));
    std::memset(memory_, 0xFF, bytes_);  // NaN as f32
    std::memset(memory_ + bytes_, 0x5A, kGuard);
    context_ = {&executor, memory_, bytes_};
  }
  ~Call() {
    for (size_t i = 0; i < kGuard; ++i)
      EXPECT_EQ(memory_[bytes_ + i], std::byte{0x5A}) << "workspace was overrun";
    ::operator delete (memory_, std::align_val_t{64});
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  operator const Context&() const { return context_; }

 private:
  static constexpr size_t kGuard = 256;
  size_t bytes_;
  std::byte* memory_;
  Context context_;
};

inline Call serial(size_t workspace = 0) {
  return Call(serial_executor(), workspace);
}

// Calls check(executor) with 1, 2, 3 and 7 threads.
template <typename Fn>
void with_threads(const Fn& check) {
  for (int32_t threads : {1, 2, 3, 7}) {
    SCOPED_TRACE("threads: " + std::to_string(threads));
    TestThreads pool(threads);
    check(pool.executor());
  }
}

// Central difference of loss() in *x.
template <typename Fn>
double numeric_derivative(double* x, const Fn& loss) {
  const double kept = *x, h = 1e-5;
  *x = kept + h;
  const double above = loss();
  *x = kept - h;
  const double below = loss();
  *x = kept;
  return (above - below) / (2 * h);
}

// Expects gradient[r][c] to be d loss / d x[r][c] at every element.
template <typename Fn>
void expect_gradient(Matrix<double>& x, const Matrix<double>& gradient, const Fn& loss,
                     const std::string& what) {
  for (int64_t r = 0; r < x.rows(); ++r) {
    for (int64_t c = 0; c < x.columns(); ++c) {
      const double numeric = numeric_derivative(&x[r][c], loss);
      EXPECT_NEAR(gradient[r][c], numeric, 1e-7 * (1 + std::abs(numeric)))
          << what << " at " << r << ", " << c;
    }
  }
}

// Sum of a * b.
inline double inner(const Matrix<double>& a, const Matrix<double>& b) {
  double sum = 0;
  for (int64_t r = 0; r < a.rows(); ++r) {
    for (int64_t c = 0; c < a.columns(); ++c) sum += a[r][c] * b[r][c];
  }
  return sum;
}

}  // namespace inlaid::kernels::testing

#endif  // INLAID_KERNELS_TESTING_H_

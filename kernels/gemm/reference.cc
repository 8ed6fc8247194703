// The oracle of the matrix product, summed in f64. A task owns a few rows of C; it reads a stored B through
// the reference conversion, one row of B at a time. The workspace of a thread is that row and the sums of the
// task.
#include <algorithm>

#include "kernels/gemm/gemm.h"
#include "kernels/storage/storage.h"

namespace inlaid::kernels::reference {
namespace {

constexpr int64_t kTaskRows = 16;

double element(const TensorView& t, int64_t i) {
  return t.dtype == DType::f64 ? t.as<const double>()[i] : static_cast<double>(t.as<const float>()[i]);
}

// Row `row` of B as f64.
void decode(const TensorView& b, int64_t row, double* out) {
  TensorView src = b;
  src.data = b.as<std::byte>() + dtype_bytes(b.dtype, row * b.stride[0]);
  src.rank = 1;
  src.shape[0] = b.shape[1];
  src.stride[0] = 1;
  convert(Context{}, {src, view1(out, DType::f64, b.shape[1])});
}

void store(const GemmArgs& args, int64_t i, int64_t j, double sum) {
  const int64_t at = i * args.c.stride[0] + j;
  double value = args.alpha * sum;
  if (args.accumulate) value += element(args.c, at);
  if (args.bias) value += element(args.bias, j);
  if (args.c.dtype == DType::f64) {
    args.c.as<double>()[at] = value;
  } else {
    args.c.as<float>()[at] = static_cast<float>(value);
  }
}

}  // namespace

size_t gemm_workspace(const GemmArgs& args, int32_t threads) {
  return static_cast<size_t>(threads) * static_cast<size_t>(args.b.shape[1] + kTaskRows * args.c.shape[1]) *
         sizeof(double);
}

void gemm(const Context& context, const GemmArgs& args) {
  const int64_t m = args.c.shape[0], n = args.c.shape[1], width = args.b.shape[1];
  const auto a = [&](int64_t i, int64_t p) {
    return element(args.a, args.transpose_a ? p * args.a.stride[0] + i : i * args.a.stride[0] + p);
  };
  parallel(*context.executor, (m + kTaskRows - 1) / kTaskRows, [&](int64_t task, int32_t thread) {
    double* const row = reinterpret_cast<double*>(context.workspace) + thread * (width + kTaskRows * n);
    double* const sums = row + width;
    const int64_t begin = task * kTaskRows, end = std::min(begin + kTaskRows, m);
    std::fill(sums, sums + kTaskRows * n, 0.0);
    for (int64_t r = 0; r < args.b.shape[0]; ++r) {
      decode(args.b, r, row);
      for (int64_t i = begin; i < end; ++i) {
        double* const sum = sums + (i - begin) * n;
        if (args.transpose_b) {
          for (int64_t p = 0; p < width; ++p) sum[r] += a(i, p) * row[p];
        } else {
          const double factor = a(i, r);
          for (int64_t j = 0; j < n; ++j) sum[j] += factor * row[j];
        }
      }
    }
    for (int64_t i = begin; i < end; ++i) {
      for (int64_t j = 0; j < n; ++j) store(args, i, j, sums[(i - begin) * n + j]);
    }
  });
}

}  // namespace inlaid::kernels::reference

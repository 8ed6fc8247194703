#include "kernels/reference.h"

#include "kernels/level.h"

namespace inlaid::kernels::reference {

void gather_rows(const Context&, const GatherRowsArgs& args) {
  with_type(args.x.dtype, [&]<typename T>(T) {
    const auto x = rows<T>(args.x), y = rows<T>(args.y);
    const int32_t* index = args.index.as<int32_t>();
    for (int64_t r = 0; r < y.rows; ++r) {
      for (int64_t c = 0; c < y.columns; ++c) y[r][c] = x[index[r]][c];
    }
  });
}

void scatter_rows(const Context&, const ScatterRowsArgs& args) {
  with_type(args.x.dtype, [&]<typename T>(T) {
    const auto x = rows<T>(args.x), y = rows<T>(args.y);
    const int32_t* index = args.index.as<int32_t>();
    for (int64_t t = 0; t < y.rows; ++t) {
      for (int64_t c = 0; c < y.columns; ++c) y[t][c] = 0;
    }
    for (int64_t r = 0; r < x.rows; ++r) {
      for (int64_t c = 0; c < x.columns; ++c) y[index[r]][c] = x[r][c];
    }
  });
}

void add(const Context&, const AddArgs& args) {
  with_type(args.y.dtype, [&]<typename T>(T) {
    const auto a = rows<T>(args.a), b = rows<T>(args.b), y = rows<T>(args.y);
    for (int64_t t = 0; t < y.rows; ++t) {
      for (int64_t c = 0; c < y.columns; ++c) y[t][c] = a[t][c] + b[t][c];
    }
  });
}

void sum_rows(const Context&, const SumRowsArgs& args) {
  with_type(args.x.dtype, [&]<typename T>(T) {
    const auto x = rows<T>(args.x);
    T* y = args.y.as<T>();
    for (int64_t c = 0; c < x.columns; ++c) {
      double sum = 0;
      for (int64_t t = 0; t < x.rows; ++t) sum += x[t][c];
      y[c] = static_cast<T>(y[c] + sum);
    }
  });
}

}  // namespace inlaid::kernels::reference

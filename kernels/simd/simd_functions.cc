#include "kernels/simd/simd_functions.h"

#include "kernels/plane.h"
#include "kernels/simd/math.h"

namespace inlaid::kernels::INLAID_LEVEL {
namespace {

template <V (*kFunction)(V)>
void map(const float* x, float* y, int64_t n) {
  along(0, n, [&](int64_t i, auto lanes) { store_lanes(y + i, kFunction(load_lanes(x + i, lanes)), lanes); });
}

V cumulative_only(V x) {
  V cumulative, density;
  normal(x, cumulative, density);
  return cumulative;
}
V exp_of(V x) {
  return exp(x);
}
V log_of(V x) {
  return log(x);
}
V tanh_of(V x) {
  return tanh(x);
}
V sigmoid_of(V x) {
  return sigmoid(x);
}

void read_rows(const float* square, V (&rows)[kLanes]) {
  for (int i = 0; i < kLanes; ++i) rows[i] = load(square + i * kLanes);
}
void transpose_of(float* square) {
  V rows[kLanes];
  read_rows(square, rows);
  transpose_square(rows);
  for (int i = 0; i < kLanes; ++i) store(square + i * kLanes, rows[i]);
}
void sum_each_of(const float* square, float* sums) {
  V rows[kLanes];
  read_rows(square, rows);
  store(sums, sum_each(rows));
}
float reduce_add_of(const float* lanes) {
  return reduce_add(load(lanes));
}
float reduce_max_of(const float* lanes) {
  return reduce_max(load(lanes));
}
void copy_first(const float* x, float* y, int64_t n) {
  store_first(y, load_first(x, n), n);
}

}  // namespace

SimdFunctions simd_functions() {
  return {kLanes,          map<exp_of>,  map<log_of>, map<tanh_of>,  map<sigmoid_of>,
          map<cumulative_only>, transpose_of, sum_each_of, reduce_add_of, reduce_max_of, copy_first};
}

}  // namespace inlaid::kernels::INLAID_LEVEL

// Embedding lookup and its gradient.
//
// Problem of the gradient: the same token occurs in many rows, and its gradient rows must be added in one
// order, whatever the number of threads. Idea: a task owns the vocabulary rows whose id leaves a certain
// remainder, and a range of columns; it walks over all tokens and adds those that it owns, in ascending
// order. Walking over ids costs a few thousand comparisons a task. Tested by embedding_test.cc.
#include "kernels/level.h"
#include "kernels/plane.h"
#include "kernels/storage/storage.h"

namespace inlaid::kernels::INLAID_LEVEL {

void embedding_forward(const Context& context, const EmbeddingForwardArgs& args) {
  const Plane y = plane(args.y);
  const int32_t* ids = static_cast<const int32_t*>(args.ids.data);
  const int64_t row_bytes = dtype_bytes(args.weight.dtype, args.weight.stride[0]);
  for_rows(context, y, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const std::byte* row = static_cast<const std::byte*>(args.weight.data) + ids[t] * row_bytes;
      float* to = y.data + t * y.stride;
      to_f32(args.weight.dtype, row, y.columns, to);
      if (args.scale == 1.0) continue;
      along(0, y.columns, [&](int64_t c, auto lanes) {
        store_lanes(to + c, load_lanes(to + c, lanes) * static_cast<float>(args.scale), lanes);
      });
    }
  });
}

void embedding_backward(const Context& context, const EmbeddingBackwardArgs& args) {
  const Plane dy = plane(args.dy), dweight = plane(args.dweight);
  const int32_t* ids = static_cast<const int32_t*>(args.ids.data);
  constexpr int64_t kColumns = 256, kRemainders = 16;
  const V scale = broadcast(static_cast<float>(args.scale));
  parallel(*context.executor, ceil_div(dy.columns, kColumns) * kRemainders, [&](int64_t task, int32_t) {
    const int64_t begin = task / kRemainders * kColumns;
    const int64_t end = smaller(begin + kColumns, dy.columns);
    for (int64_t t = 0; t < dy.rows; ++t) {
      if (ids[t] % kRemainders != task % kRemainders) continue;
      const float* from = dy.data + t * dy.stride;
      float* to = dweight.data + ids[t] * dweight.stride;
      along(begin, end, [&](int64_t c, auto lanes) {
        store_lanes(to + c, fma(load_lanes(from + c, lanes), scale, load_lanes(to + c, lanes)), lanes);
      });
    }
  });
}

}  // namespace inlaid::kernels::INLAID_LEVEL

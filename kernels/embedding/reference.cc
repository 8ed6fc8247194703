#include "kernels/reference.h"

#include "kernels/level.h"

namespace inlaid::kernels::reference {

void embedding_forward(const Context&, const EmbeddingForwardArgs& args) {
  with_type(args.y.dtype, [&]<typename T>(T) {
    const auto y = rows<T>(args.y);
    const int32_t* ids = args.ids.as<int32_t>();
    for (int64_t t = 0; t < y.rows; ++t) {
      for (int64_t c = 0; c < y.columns; ++c) y[t][c] = static_cast<T>(args.scale * weight_at(args.weight, ids[t], c));
    }
  });
}

void embedding_backward(const Context&, const EmbeddingBackwardArgs& args) {
  with_type(args.dy.dtype, [&]<typename T>(T) {
    const auto dy = rows<T>(args.dy), dweight = rows<T>(args.dweight);
    const int32_t* ids = args.ids.as<int32_t>();
    for (int64_t t = 0; t < dy.rows; ++t) {
      for (int64_t c = 0; c < dy.columns; ++c) dweight[ids[t]][c] += static_cast<T>(args.scale * dy[t][c]);
    }
  });
}

}  // namespace inlaid::kernels::reference

#include "kernels/attention/documents.h"

#include <cstring>

namespace inlaid::kernels::INLAID_LEVEL {

int64_t document_of(const int64_t* begin, int64_t count, int64_t task) {
  int64_t low = 0, high = count;  // begin[low] <= task < begin[high]
  while (high - low > 1) {
    const int64_t middle = (low + high) / 2;
    (begin[middle] <= task ? low : high) = middle;
  }
  return low;
}

void clear_outside(const Context& context, const Plane& x, int64_t begin, int64_t end) {
  if (begin == 0 && end == x.rows) return;
  for_rows(context, x, [&](int64_t first, int64_t last) {
    for (int64_t r = first; r < last; ++r) {
      if (r < begin || r >= end)
        std::memset(x.data + r * x.stride, 0, static_cast<size_t>(x.columns) * sizeof(float));
    }
  });
}

}  // namespace inlaid::kernels::INLAID_LEVEL

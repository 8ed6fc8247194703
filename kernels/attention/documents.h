// What forward and backward attention share: the documents of a batch, block sizes, the layout of the
// workspace.
//
// A block of queries and a block of keys begin at fixed distances from the first row of their document. So
// the sums of a row are cut the same way whatever is packed beside its document, and their bits are the same.
#ifndef INLAID_KERNELS_ATTENTION_DOCUMENTS_H_
#define INLAID_KERNELS_ATTENTION_DOCUMENTS_H_

#include "kernels/plane.h"

namespace inlaid::kernels::INLAID_LEVEL {

constexpr int64_t kBlockQ = 48;  // queries of a block: 3, 6 or 12 vectors
constexpr int64_t kBlockK = 64;  // keys of a block
constexpr int64_t kQueryVectors = kBlockQ / kLanes;

// Documents with at most this many queries (decoding) take the path of few_queries.cc, forward.
constexpr int64_t kFewQueries = 4;

struct Documents {
  const int32_t* cu_q;
  const int32_t* cu_k;
  int64_t count;
};
INLAID_INLINE Documents documents(const TensorView& cu_q, const TensorView& cu_k) {
  return {static_cast<const int32_t*>(cu_q.data), static_cast<const int32_t*>(cu_k.data), cu_q.shape[0] - 1};
}
INLAID_INLINE int64_t queries(const Documents& d, int64_t i) {
  return d.cu_q[i + 1] - d.cu_q[i];
}
INLAID_INLINE int64_t keys(const Documents& d, int64_t i) {
  return d.cu_k[i + 1] - d.cu_k[i];
}

// The document whose tasks [begin[i], begin[i + 1]) hold the task.
int64_t document_of(const int64_t* begin, int64_t count, int64_t task);

// Zeroes the rows of x outside [begin, end), in parallel.
void clear_outside(const Context& context, const Plane& x, int64_t begin, int64_t end);

// Hands out aligned pieces of the workspace; with a null base it only counts.
struct Carver {
  std::byte* base;
  size_t used = 0;

  template <typename T>
  T* take(int64_t count) {
    T* piece = base ? reinterpret_cast<T*>(base + used) : nullptr;
    used += (static_cast<size_t>(count) * sizeof(T) + 63) / 64 * 64;
    return piece;
  }
};

}  // namespace inlaid::kernels::INLAID_LEVEL

#endif  // INLAID_KERNELS_ATTENTION_DOCUMENTS_H_

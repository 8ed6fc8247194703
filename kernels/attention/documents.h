// What forward and backward attention share: the documents of a batch, block sizes, which keys a query sees, the
// layout of the workspace.
//
// A block of queries and a block of keys begin at fixed distances from the first row of their document. So
// the sums of a row are cut the same way whatever is packed beside its document, and their bits are the same.
#ifndef INLAID_KERNELS_ATTENTION_DOCUMENTS_H_
#define INLAID_KERNELS_ATTENTION_DOCUMENTS_H_

#include "kernels/plane.h"
#include "kernels/simd/simd.h"

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

// The window of a document: 0 where it has so few keys that it sees all of them.
INLAID_INLINE int64_t window_of(int64_t window, int64_t keys) {
  return window < keys ? window : 0;
}
// The first key that is seen through a window by the query whose last key is `last`.
INLAID_INLINE int64_t first_key(int64_t last, int64_t window) {
  return window == 0 ? 0 : larger(0, last + 1 - window);
}

// Which keys of a tile [key, query] are seen: key i by query lanes from `from` + i on, with a window by the next
// `window` lanes only.
struct Mask {
  int64_t from, window;

  // True if every lane of vector v sees all of n keys.
  bool all(int64_t v, int64_t n) const {
    const int64_t lane = v * kLanes;
    return from + n - 1 <= lane && (window == 0 || lane + kLanes <= from + window);
  }
  __attribute__((always_inline)) I sees(I lane, int64_t i) const {
    const I first = broadcast_int(static_cast<int32_t>(from + i));
    if (window == 0) return lane >= first;
    return (lane >= first) & (lane < first + static_cast<int32_t>(window));
  }
};

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

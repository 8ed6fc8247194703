// A system allocator that counts what is out and can refuse the n-th request: leaks and out-of-memory paths
// in tests.
#ifndef INLAID_SDK_BASE_TESTING_COUNTING_ALLOCATOR_H_
#define INLAID_SDK_BASE_TESTING_COUNTING_ALLOCATOR_H_

#include <atomic>
#include <cstdint>

#include "sdk/base/memory.h"

namespace inlaid::testing {

// Requests are numbered from 0, granted or not. Memory comes filled with 0xa5, so that whoever relies on
// zeros without asking for them is found; release() checks the size. Thread-safe.
class CountingAllocator : public SystemAllocator {
 public:
  void* allocate(uint64_t bytes, uint64_t align) override;
  void release(void* memory, uint64_t bytes) override;

  // Request `n` gets nothing; -1 = none is refused.
  void fail_at(int64_t n) { fail_at_ = n; }

  int64_t requests() const { return requests_; }
  int64_t live_blocks() const { return live_blocks_; }
  uint64_t live_bytes() const { return live_bytes_; }
  uint64_t wrong_releases() const {
    return wrong_releases_;
  }  // releases whose size differs from the request's

 private:
  std::atomic<int64_t> fail_at_{-1};
  std::atomic<int64_t> requests_{0};
  std::atomic<int64_t> live_blocks_{0};
  std::atomic<uint64_t> live_bytes_{0};
  std::atomic<uint64_t> wrong_releases_{0};
};

}  // namespace inlaid::testing

#endif  // INLAID_SDK_BASE_TESTING_COUNTING_ALLOCATOR_H_

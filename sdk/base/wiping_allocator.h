// An allocator that fills memory with zeros before it goes back to another one, so that no weights, gradients or samples are
// left in memory that somebody else is given next. Every arena of a runtime passes here (MemoryAccount): what a host asks for
// by zero_memory. Cost: one more pass over the bytes, when they are released.
// Tests: quota_file_system_test.cc, tests/faults/quota_test.cc.
#ifndef INLAID_SDK_BASE_WIPING_ALLOCATOR_H_
#define INLAID_SDK_BASE_WIPING_ALLOCATOR_H_

#include <string.h>  // for explicit_bzero, which no compiler may leave out

#include <memory>
#include <utility>

#include "sdk/base/memory.h"

namespace inlaid {

class WipingAllocator final : public SystemAllocator {
 public:
  // base null = the C library's.
  explicit WipingAllocator(std::shared_ptr<SystemAllocator> base) : base_(std::move(base)) {}
  void* allocate(uint64_t bytes, uint64_t align) override { return base().allocate(bytes, align); }
  void release(void* memory, uint64_t bytes) override {
    explicit_bzero(memory, bytes);
    base().release(memory, bytes);
  }

 private:
  SystemAllocator& base() { return base_ != nullptr ? *base_ : default_allocator(); }
  std::shared_ptr<SystemAllocator> base_;
};

}  // namespace inlaid

#endif  // INLAID_SDK_BASE_WIPING_ALLOCATOR_H_

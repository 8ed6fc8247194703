#include "sdk/base/testing/counting_allocator.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace inlaid::testing {
namespace {

// The size stands before the memory, in a header that keeps the alignment.
uint64_t header_bytes(uint64_t align) {
  return std::max<uint64_t>(align, 2 * sizeof(uint64_t));
}

}  // namespace

void* CountingAllocator::allocate(uint64_t bytes, uint64_t align) {
  if (requests_.fetch_add(1) == fail_at_.load()) return nullptr;
  const uint64_t header = header_bytes(align);
  const uint64_t total = (header + bytes + align - 1) / align * align;
  auto* base = static_cast<std::byte*>(std::aligned_alloc(align, total));
  if (base == nullptr) return nullptr;
  std::byte* memory = base + header;
  const uint64_t facts[2] = {bytes, header};
  std::memcpy(memory - sizeof(facts), facts, sizeof(facts));
  std::memset(memory, 0xa5, bytes);
  live_blocks_.fetch_add(1);
  live_bytes_.fetch_add(bytes);
  return memory;
}

void CountingAllocator::release(void* memory, uint64_t bytes) {
  uint64_t facts[2];
  std::memcpy(facts, static_cast<std::byte*>(memory) - sizeof(facts), sizeof(facts));
  if (facts[0] != bytes) wrong_releases_.fetch_add(1);
  live_blocks_.fetch_sub(1);
  live_bytes_.fetch_sub(facts[0]);
  std::free(static_cast<std::byte*>(memory) - facts[1]);
}

}  // namespace inlaid::testing

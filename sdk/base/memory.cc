#include "sdk/base/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "sdk/base/error.h"
#include "sdk/base/json.h"

namespace inlaid {
namespace {

constexpr uint64_t kAlign = 64;  // one cache line, one AVX-512 register

uint64_t rounded(uint64_t bytes) {
  return (bytes + kAlign - 1) / kAlign * kAlign;
}

constexpr uint64_t kLargePage = uint64_t{2} << 20;
constexpr uint64_t kLargeRegion = uint64_t{32} << 20;  // the rounding to whole large pages is then small

class DefaultAllocator : public SystemAllocator {
 public:
  constexpr ~DefaultAllocator() override {}
  void* allocate(uint64_t bytes, uint64_t align) override {
    if (bytes < kLargeRegion) return std::aligned_alloc(align, bytes);
    // Arenas are streamed from end to end: on pages of 2 MiB that costs far fewer address translations. The system may
    // ignore the advice.
    const uint64_t whole = (bytes + kLargePage - 1) / kLargePage * kLargePage;
    void* memory = std::aligned_alloc(kLargePage, whole);
    if (memory != nullptr) madvise(memory, whole, MADV_HUGEPAGE);
    return memory;
  }
  void release(void* memory, uint64_t) override { std::free(memory); }
};

// Stateless and constant: it lies in read-only memory and needs no construction at load.
constexpr DefaultAllocator kDefault{};

[[noreturn]] void exhausted(const std::string& account, Category category, uint64_t bytes, uint64_t in_use,
                            uint64_t limit) {
  const Json details = {{"account", account},
                        {"category", category_name(category)},
                        {"requested", bytes},
                        {"in_use", in_use},
                        {"limit", limit}};
  std::string why =
      limit == 0 ? "and the system has no memory left" : "of a limit of " + std::to_string(limit) + " bytes";
  throw Error(Code::kResourceExhausted,
              "memory account '" + account + "': " + std::to_string(bytes) + " bytes of " +
                  category_name(category) + " requested, " + std::to_string(in_use) + " bytes in use, " + why,
              details.dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace

const char* category_name(Category category) {
  switch (category) {
    case Category::kWeights:
      return "weights";
    case Category::kGradients:
      return "gradients";
    case Category::kOptimizer:
      return "optimizer";
    case Category::kActivations:
      return "activations";
    case Category::kWorkspace:
      return "workspace";
    case Category::kCommunication:
      return "communication";
    case Category::kData:
      return "data";
  }
  return "unknown";
}

SystemAllocator& default_allocator() {
  return const_cast<DefaultAllocator&>(kDefault);
}

Block::Block(Block&& other) noexcept
    : account_(std::move(other.account_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      category_(other.category_) {}

Block& Block::operator=(Block&& other) noexcept {
  if (this == &other) return *this;
  Block old(std::move(*this));  // gives the bytes back when it goes
  account_ = std::move(other.account_);
  data_ = std::exchange(other.data_, nullptr);
  size_ = std::exchange(other.size_, 0);
  category_ = other.category_;
  return *this;
}

Block::~Block() {
  if (data_ == nullptr) return;
  account_->allocator_.release(data_, rounded(size_));
  account_->refund(category_, size_);
}

MemoryAccount::MemoryAccount(std::shared_ptr<MemoryAccount> parent, std::string name, uint64_t limit,
                             SystemAllocator& allocator)
    : parent_(std::move(parent)), name_(std::move(name)), limit_(limit), allocator_(allocator) {}

std::shared_ptr<MemoryAccount> MemoryAccount::root(std::string name, uint64_t limit, SystemAllocator& allocator,
                                                   std::shared_ptr<void> keep) {
  std::shared_ptr<MemoryAccount> account(new MemoryAccount(nullptr, std::move(name), limit, allocator));
  account->keep_ = std::move(keep);
  return account;
}

std::shared_ptr<MemoryAccount> MemoryAccount::child(std::shared_ptr<MemoryAccount> parent, std::string name,
                                                    uint64_t limit) {
  INLAID_CHECK(parent != nullptr);
  SystemAllocator& allocator = parent->allocator_;
  return std::shared_ptr<MemoryAccount>(
      new MemoryAccount(std::move(parent), std::move(name), limit, allocator));
}

Block MemoryAccount::allocate(Category category, uint64_t bytes, bool zero) {
  Block block;
  if (bytes == 0) return block;
  charge(category, bytes);
  void* memory = allocator_.allocate(rounded(bytes), kAlign);
  if (memory == nullptr) {
    refund(category, bytes);
    exhausted(name_, category, bytes, usage().current_total, 0);
  }
  record_peak(category);
  if (zero) std::memset(memory, 0, bytes);
  block.account_ = shared_from_this();
  block.data_ = static_cast<std::byte*>(memory);
  block.size_ = bytes;
  block.category_ = category;
  return block;
}

MemoryAccount::Usage MemoryAccount::usage() const {
  std::lock_guard lock(mutex_);
  return usage_;
}

// Checks every limit before any count changes. Locks are taken from the leaf to the root, always in this
// order.
void MemoryAccount::charge(Category category, uint64_t bytes) {
  // So that rounding up for the allocator cannot overflow; no system has half of the address space.
  constexpr uint64_t kLargest = std::numeric_limits<uint64_t>::max() / 2;
  std::vector<std::unique_lock<std::mutex>> locks;
  for (MemoryAccount* account = this; account != nullptr; account = account->parent_.get()) {
    locks.emplace_back(account->mutex_);
    const uint64_t limit = account->limit_ != 0 ? std::min(account->limit_, kLargest) : kLargest;
    const uint64_t in_use = account->usage_.current_total;
    if (bytes > limit || in_use > limit - bytes)
      exhausted(account->name_, category, bytes, in_use, account->limit_);
  }
  for (MemoryAccount* account = this; account != nullptr; account = account->parent_.get()) {
    account->usage_.current[static_cast<size_t>(category)] += bytes;
    account->usage_.current_total += bytes;
  }
}

// Peaks rise only after the system gave the memory, so that a failed request leaves no trace.
void MemoryAccount::record_peak(Category category) {
  const size_t c = static_cast<size_t>(category);
  for (MemoryAccount* account = this; account != nullptr; account = account->parent_.get()) {
    std::lock_guard lock(account->mutex_);
    Usage& usage = account->usage_;
    usage.peak[c] = std::max(usage.peak[c], usage.current[c]);
    usage.peak_total = std::max(usage.peak_total, usage.current_total);
  }
}

void MemoryAccount::refund(Category category, uint64_t bytes) noexcept {
  for (MemoryAccount* account = this; account != nullptr; account = account->parent_.get()) {
    std::lock_guard lock(account->mutex_);
    account->usage_.current[static_cast<size_t>(category)] -= bytes;
    account->usage_.current_total -= bytes;
  }
}

}  // namespace inlaid

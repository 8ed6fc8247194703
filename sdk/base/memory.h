// Memory that is planned and counted. Every large buffer of the engine comes from a Block taken from a
// MemoryAccount under a named category; accounts form a tree (runtime -> model, trainer, ...), a limit may
// sit on any of them, and peaks per category are metrics of every run.
#ifndef INLAID_SDK_BASE_MEMORY_H_
#define INLAID_SDK_BASE_MEMORY_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

namespace inlaid {

enum class Category : int {
  kWeights = 0,    // parameters, trainable or frozen
  kGradients,      // gradient arena
  kOptimizer,      // moments and other optimizer state
  kActivations,    // planned activation region, key/value caches
  kWorkspace,      // scratch of kernels
  kCommunication,  // staging of collectives
  kData,           // tokenised samples, micro-batches, tokenizer tables
};
constexpr int kCategories = 7;
const char* category_name(Category category);  // "weights", "gradients", ...

// Where bytes come from. The default is the C library; a host may supply its own.
class SystemAllocator {
 public:
  virtual ~SystemAllocator() = default;
  // Returns zeroed or unzeroed memory aligned to `align` (a power of two), or nullptr when there is none.
  virtual void* allocate(uint64_t bytes, uint64_t align) = 0;
  virtual void release(void* memory, uint64_t bytes) = 0;
};
SystemAllocator& default_allocator();  // stateless; aligned_alloc and free

class MemoryAccount;

// One owned, 64-byte aligned range of bytes, zero-filled on request; returns its bytes to its account when it
// dies.
class Block {
 public:
  Block() = default;
  Block(Block&& other) noexcept;
  Block& operator=(Block&& other) noexcept;
  ~Block();
  std::byte* data() const { return data_; }
  uint64_t size() const { return size_; }
  explicit operator bool() const { return data_ != nullptr; }

 private:
  friend class MemoryAccount;
  std::shared_ptr<MemoryAccount> account_;
  std::byte* data_ = nullptr;
  uint64_t size_ = 0;
  Category category_ = Category::kWeights;
};

// Counts bytes per category, now and at the peak, for itself and all its ancestors. Thread-safe.
class MemoryAccount : public std::enable_shared_from_this<MemoryAccount> {
 public:
  struct Usage {
    std::array<uint64_t, kCategories> current{};
    std::array<uint64_t, kCategories> peak{};
    uint64_t current_total = 0;
    uint64_t peak_total = 0;  // peak of the sum, not the sum of peaks
  };

  // A root account. limit 0 = none. `allocator` must outlive every block; `keep` is held as long as any block or account of the
  // tree lives, and may own the allocator.
  static std::shared_ptr<MemoryAccount> root(std::string name, uint64_t limit, SystemAllocator& allocator,
                                             std::shared_ptr<void> keep = nullptr);
  // A child that counts into `parent` as well.
  static std::shared_ptr<MemoryAccount> child(std::shared_ptr<MemoryAccount> parent, std::string name,
                                              uint64_t limit = 0);

  // Takes `bytes` (0 gives an empty block). Throws kResourceExhausted, before anything is taken, naming the
  // account, the category, what was asked, what is in use and the limit, or that the system has no memory.
  Block allocate(Category category, uint64_t bytes, bool zero);
  Usage usage() const;
  uint64_t limit() const { return limit_; }
  const std::string& name() const { return name_; }

 private:
  friend class Block;
  MemoryAccount(std::shared_ptr<MemoryAccount> parent, std::string name, uint64_t limit,
                SystemAllocator& allocator);
  void charge(Category category, uint64_t bytes);
  void record_peak(Category category);
  void refund(Category category, uint64_t bytes) noexcept;

  std::shared_ptr<MemoryAccount> parent_;
  std::shared_ptr<void> keep_;
  std::string name_;
  uint64_t limit_;
  SystemAllocator& allocator_;
  mutable std::mutex mutex_;
  Usage usage_;
};

}  // namespace inlaid

#endif  // INLAID_SDK_BASE_MEMORY_H_

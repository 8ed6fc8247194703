// Tokens and targets of all samples in flat memory, counted under the category `data`.
//
// Sizes are not known before the last row is tokenised. One growing array would need twice its size while it
// is moved, so samples go into segments that never move: 64 KiB first, then twice as long up to 4 MiB, longer
// only for a longer sample. The index is cut the same way. The layout is a function of the sequence of sample
// lengths alone: memory and its peak are equal whether samples come from files or from the token cache.
#ifndef INLAID_SDK_DATA_SAMPLE_STORE_H_
#define INLAID_SDK_DATA_SAMPLE_STORE_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "sdk/base/memory.h"
#include "sdk/data/dataset.h"

namespace inlaid::data {

class SampleStore {
 public:
  explicit SampleStore(std::shared_ptr<MemoryAccount> account) : account_(std::move(account)) {}
  // kResourceExhausted when the account's limit is reached; tokens and targets have equal lengths.
  void append(int64_t row, std::span<const int32_t> tokens, std::span<const int32_t> targets);
  int64_t size() const { return size_; }
  Sample at(int64_t index) const;
  int64_t longest() const { return longest_; }
  int64_t shortest() const { return shortest_; }

 private:
  struct Entry {
    int64_t row;
    const int32_t* tokens;  // followed by the targets
    int64_t length;
  };
  static constexpr int64_t kEntriesPerBlock = 2048;

  std::shared_ptr<MemoryAccount> account_;
  std::vector<Block> segments_, index_;
  uint64_t used_ = 0;  // bytes of the last segment
  int64_t size_ = 0, longest_ = 0, shortest_ = 0;
};

}  // namespace inlaid::data

#endif  // INLAID_SDK_DATA_SAMPLE_STORE_H_

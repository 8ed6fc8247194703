#include "sdk/data/sample_store.h"

#include <algorithm>  // for copy, max, min

#include "sdk/base/error.h"

namespace inlaid::data {
namespace {

constexpr uint64_t kFirstSegment = uint64_t{64} << 10;
constexpr uint64_t kLargestSegment = uint64_t{4} << 20;

}  // namespace

void SampleStore::append(int64_t row, std::span<const int32_t> tokens, std::span<const int32_t> targets) {
  INLAID_CHECK(!tokens.empty() && tokens.size() == targets.size());
  const uint64_t bytes = 2 * tokens.size() * sizeof(int32_t);
  if (segments_.empty() || segments_.back().size() - used_ < bytes) {
    const uint64_t doubled =
        segments_.empty() ? kFirstSegment : std::min(2 * segments_.back().size(), kLargestSegment);
    segments_.push_back(account_->allocate(Category::kData, std::max(doubled, bytes), /*zero=*/false));
    used_ = 0;
  }
  if (size_ % kEntriesPerBlock == 0) {
    index_.push_back(account_->allocate(Category::kData, kEntriesPerBlock * sizeof(Entry), /*zero=*/false));
  }
  int32_t* memory = reinterpret_cast<int32_t*>(segments_.back().data() + used_);
  std::copy(targets.begin(), targets.end(), std::copy(tokens.begin(), tokens.end(), memory));
  used_ += bytes;
  const int64_t length = static_cast<int64_t>(tokens.size());
  reinterpret_cast<Entry*>(index_.back().data())[size_ % kEntriesPerBlock] = {row, memory, length};
  shortest_ = size_ == 0 ? length : std::min(shortest_, length);
  longest_ = std::max(longest_, length);
  ++size_;
}

Sample SampleStore::at(int64_t index) const {
  const Block& block = index_[static_cast<size_t>(index / kEntriesPerBlock)];
  const Entry& entry = reinterpret_cast<const Entry*>(block.data())[index % kEntriesPerBlock];
  const size_t length = static_cast<size_t>(entry.length);
  return {entry.row, {entry.tokens, length}, {entry.tokens + length, length}};
}

}  // namespace inlaid::data

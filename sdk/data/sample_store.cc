#include "sdk/data/sample_store.h"

#include <algorithm>  // for copy, max, min

#include "sdk/base/error.h"
#include "sdk/data/token_record.h"

namespace inlaid::data {
namespace {

constexpr uint64_t kFirstSegment = uint64_t{64} << 10;
constexpr uint64_t kLargestSegment = uint64_t{4} << 20;

}  // namespace

void SampleStore::append(int64_t row, std::span<const int32_t> tokens, std::span<const int32_t> targets) {
  INLAID_CHECK(!tokens.empty() && tokens.size() == targets.size());
  const uint64_t bytes = 2 * tokens.size() * sizeof(int32_t);
  if (resident_ && (segments_.empty() || segments_.back().size() - used_ < bytes)) {
    const uint64_t doubled =
        segments_.empty() ? kFirstSegment : std::min(2 * segments_.back().size(), kLargestSegment);
    const uint64_t segment = std::max(doubled, bytes);
    if (resident_bytes_ > 0 && segment_bytes_ + segment > resident_bytes_) {
      leave_memory();
    } else {
      segments_.push_back(account_->allocate(Category::kData, segment, /*zero=*/false));
      segment_bytes_ += segment;
      used_ = 0;
    }
  }
  if (size_ % kEntriesPerBlock == 0) {
    index_.push_back(account_->allocate(Category::kData, kEntriesPerBlock * sizeof(Entry), /*zero=*/false));
  }
  const int64_t length = static_cast<int64_t>(tokens.size());
  shortest_ = size_ == 0 ? length : std::min(shortest_, length);
  longest_ = std::max(longest_, length);
  Entry& added = entry(size_++);
  added.row = row;
  added.length = length;
  if (resident_) {
    int32_t* memory = reinterpret_cast<int32_t*>(segments_.back().data() + used_);
    std::copy(targets.begin(), targets.end(), std::copy(tokens.begin(), tokens.end(), memory));
    added.tokens = memory;
    used_ += bytes;
  } else {
    added.offset = file_bytes_;
    file_bytes_ += record_bytes(tokens.size());
  }
}

void SampleStore::leave_memory() {
  resident_ = false;
  segments_.clear();
  file_bytes_ = kTokenCacheHeadBytes;
  for (int64_t i = 0; i < size_; ++i) {
    entry(i).offset = file_bytes_;
    file_bytes_ += record_bytes(static_cast<uint64_t>(entry(i).length));
  }
}

const SampleStore::Entry& SampleStore::entry(int64_t index) const {
  const Block& block = index_[static_cast<size_t>(index / kEntriesPerBlock)];
  return reinterpret_cast<const Entry*>(block.data())[index % kEntriesPerBlock];
}

Sample SampleStore::at(int64_t index) const {
  const Entry& found = entry(index);
  if (!resident_) {
    if (file_ == nullptr) fail(Code::kFailedPrecondition, "the samples were counted only: they are neither in memory nor in a file");
    return read_record(*file_, found.offset, found.row, found.length);
  }
  const int32_t* targets = found.tokens + found.length;
  return {found.row, {found.tokens, targets}, {targets, targets + found.length}};
}

}  // namespace inlaid::data

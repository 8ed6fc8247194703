// Tokens and targets of all samples: in memory, counted under the category `data`, or, when they are too many for that, in the
// token cache file, from which they are read one by one.
//
// In memory: sizes are not known before the last row is tokenised. One growing array would need twice its size while it
// is moved, so samples go into segments that never move: 64 KiB first, then twice as long up to 4 MiB, longer
// only for a longer sample. The index is cut the same way.
// In the file: once the segments would take more than `resident_bytes` they are given back, and only the index stays (24 bytes
// a sample), which from then on tells the places in the file. A sample costs one positioned read (the system's page cache keeps
// what is read often).
// The layout is a function of the sequence of sample lengths and of resident_bytes alone: memory and its peak are equal whether
// samples come from the sources or from the token cache. Tests: token_cache_test.cc, dataset_test.cc.
#ifndef INLAID_SDK_DATA_SAMPLE_STORE_H_
#define INLAID_SDK_DATA_SAMPLE_STORE_H_

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "sdk/base/file_system.h"
#include "sdk/base/memory.h"
#include "sdk/data/dataset.h"

namespace inlaid::data {

class SampleStore {
 public:
  // resident_bytes: what the segments may take; 0 = as much as the account's limit allows.
  explicit SampleStore(std::shared_ptr<MemoryAccount> account, uint64_t resident_bytes = 0)
      : account_(std::move(account)), resident_bytes_(resident_bytes) {}
  // kResourceExhausted when the account's limit is reached; tokens and targets have equal lengths.
  void append(int64_t row, std::span<const int32_t> tokens, std::span<const int32_t> targets);
  // False once the samples are too many: then a file must be attached before at() is called.
  bool resident() const { return resident_; }
  // The token cache file that holds the appended samples in order.
  void attach(std::unique_ptr<ReadableFile> file) { file_ = std::move(file); }

  int64_t size() const { return size_; }
  int64_t row(int64_t index) const { return entry(index).row; }
  int64_t length(int64_t index) const { return entry(index).length; }
  // kDataLoss when the file is not what it was any more; kFailedPrecondition without a file where one is needed.
  Sample at(int64_t index) const;
  int64_t longest() const { return longest_; }
  int64_t shortest() const { return shortest_; }

 private:
  struct Entry {
    int64_t row;
    union {
      const int32_t* tokens;  // resident: the tokens, followed by the targets
      uint64_t offset;        // else: of the record in the file
    };
    int64_t length;
  };
  static constexpr int64_t kEntriesPerBlock = 2048;

  const Entry& entry(int64_t index) const;
  Entry& entry(int64_t index) { return const_cast<Entry&>(std::as_const(*this).entry(index)); }
  void leave_memory();

  std::shared_ptr<MemoryAccount> account_;
  uint64_t resident_bytes_;
  std::vector<Block> segments_, index_;
  uint64_t used_ = 0;           // bytes of the last segment
  uint64_t segment_bytes_ = 0;  // of all segments
  uint64_t file_bytes_ = 0;     // where the next record begins, when not resident
  bool resident_ = true;
  std::unique_ptr<ReadableFile> file_;
  int64_t size_ = 0, longest_ = 0, shortest_ = 0;
};

}  // namespace inlaid::data

#endif  // INLAID_SDK_DATA_SAMPLE_STORE_H_

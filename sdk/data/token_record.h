// One sample as it lies in a token cache file: what the cache writes and reads in order, and a store whose samples are not in
// memory reads one by one.
//
// Layout, little-endian:  i64 row · u64 length · i32 tokens[length] · i32 targets[length] · u32 CRC-32C of all before. The
// checksum is one of the record, so that a sample that is read in the middle of training is known to be whole.
#ifndef INLAID_SDK_DATA_TOKEN_RECORD_H_
#define INLAID_SDK_DATA_TOKEN_RECORD_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sdk/base/file_system.h"
#include "sdk/data/dataset.h"

namespace inlaid::data {

// Where the first record of a file begins, see token_cache.h.
constexpr uint64_t kTokenCacheHeadBytes = 8 + 64;
constexpr uint64_t kRecordHeadBytes = 2 * sizeof(int64_t);

constexpr uint64_t record_bytes(uint64_t length) {
  return kRecordHeadBytes + 2 * length * sizeof(int32_t) + sizeof(uint32_t);
}

// Appends the record to `out`.
void put_record(int64_t row, std::span<const int32_t> tokens, std::span<const int32_t> targets, std::vector<std::byte>* out);
// The sample of a whole record; false if its checksum differs. The length was checked against the size by the caller.
bool take_record(std::span<const std::byte> record, Sample* out);
// Reads the record at `offset`, which must be that of this row and length; kDataLoss naming file and row if it is not, or not
// any more.
Sample read_record(const ReadableFile& file, uint64_t offset, int64_t row, int64_t length);

}  // namespace inlaid::data

#endif  // INLAID_SDK_DATA_TOKEN_RECORD_H_

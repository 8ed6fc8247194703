// Shards: safetensors files with the tensors of a save, in pieces of about `shard_bytes`.
#ifndef INLAID_SDK_CHECKPOINT_SHARD_H_
#define INLAID_SDK_CHECKPOINT_SHARD_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "inlaid/checkpoint/v1/index.pb.h"
#include "sdk/base/file_system.h"
#include "sdk/checkpoint/checkpoint.h"

namespace inlaid::checkpoint {

// Writes `records` into state-* files of `folder`, streaming (one block in memory, nothing gathered), each file synced, and
// returns the index, whose records are sorted by name and role. The offsets in the index are those that were found when the
// headers were read back. kCancelled between two blocks when *cancel is set.
v1::Index write_shards(FileSystem& fs, const std::string& folder, uint32_t rank, const std::vector<Record>& records,
                       const std::atomic<bool>* cancel, uint64_t shard_bytes);

// Where the tensors of a shard lie and how they are described, from its own header.
struct ShardHeader {
  struct Tensor {
    std::string key;
    DType dtype;
    Shape shape;
    uint64_t offset, bytes;
  };
  std::vector<Tensor> tensors;  // by key
  uint64_t file_bytes = 0, header_bytes = 0;
  uint32_t header_crc = 0;
};
// kDataLoss naming the file for anything that is no safetensors file.
ShardHeader read_shard_header(FileSystem& fs, const std::string& path);

// Throws kCancelled when the flag is there and set.
void check_cancelled(const std::atomic<bool>* cancel);

}  // namespace inlaid::checkpoint

#endif  // INLAID_SDK_CHECKPOINT_SHARD_H_

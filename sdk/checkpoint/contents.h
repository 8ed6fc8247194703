// A checkpoint's metadata, read and checked: what reader, verify and the JSON rendering have in common. The bytes of tensors
// and extra files are not touched here; their sizes are.
#ifndef INLAID_SDK_CHECKPOINT_CONTENTS_H_
#define INLAID_SDK_CHECKPOINT_CONTENTS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "inlaid/checkpoint/v1/index.pb.h"
#include "inlaid/checkpoint/v1/manifest.pb.h"
#include "sdk/base/file_system.h"
#include "sdk/checkpoint/checkpoint.h"

namespace inlaid::checkpoint {

struct ShardInfo {
  std::string file;  // plain name
  uint64_t bytes = 0, header_bytes = 0;
  uint32_t header_crc = 0;
};

struct Entry {
  Record record;      // data == nullptr
  size_t shard = 0;   // into Contents::shards
  std::string key;    // in the shard
  uint64_t offset = 0, bytes = 0;
  uint32_t crc = 0;
};

struct Contents {
  std::string folder;
  std::string manifest_bytes;
  v1::Manifest manifest;
  std::vector<v1::Index> indexes;  // by position of the writer
  std::vector<ShardInfo> shards;   // of all writers
  std::vector<Entry> entries;      // by name, then role

  // Place of an entry for messages: "FOLDER/state-00000-00000.safetensors: tensor 'NAME' (weight)".
  std::string where(const Entry& entry) const;
};

// Reads manifest and index files. Afterwards: texts and counts are within their caps; every index has the size and digest
// that the manifest promises; no (name, role) twice; each record's bytes are what its type and shape need; records fill each
// shard from its header to its end without gap or overlap. kNotFound when there is no checkpoint at `folder`,
// kFailedPrecondition for one that needs a newer reader, kDataLoss otherwise, naming file and tensor.
Contents load_contents(FileSystem& fs, const std::string& folder);

// Checks one index against the rules above and adds its shards and records. (index_check.cc)
void add_index(const v1::Index& index, const std::string& path, Contents* contents);

// Compares sizes of all shards and extra files with what is promised and hands every difference, as a sentence that names the
// file, to `report`.
void check_sizes(FileSystem& fs, const Contents& contents, const std::function<void(const std::string&)>& report);

}  // namespace inlaid::checkpoint

#endif  // INLAID_SDK_CHECKPOINT_CONTENTS_H_

#include "sdk/checkpoint/shard.h"

#include <algorithm>
#include <span>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "sdk/base/error.h"
#include "sdk/base/hash.h"
#include "sdk/checkpoint/format.h"
#include "sdk/formats/safetensors.h"

namespace inlaid::checkpoint {
namespace {

using Group = std::vector<const Record*>;

uint64_t record_bytes(const Record& record) { return static_cast<uint64_t>(byte_count(record.dtype, record.shape)); }

// Consecutive records, a new group wherever the next record would go beyond `shard_bytes`. No tensor is ever split.
std::vector<Group> cut(const Group& records, uint64_t shard_bytes) {
  std::vector<Group> groups;
  uint64_t filled = 0;
  for (const Record* record : records) {
    const uint64_t bytes = record_bytes(*record);
    if (groups.empty() || groups.back().size() >= kMaxTensorsPerShard || filled > shard_bytes ||
        bytes > shard_bytes - filled) {
      if (groups.empty() || !groups.back().empty()) groups.emplace_back();
      filled = 0;
    }
    groups.back().push_back(record);
    filled += bytes;
  }
  return groups;
}

// Writes the bytes of one tensor in blocks and returns their checksum.
uint32_t write_tensor(formats::SafetensorsWriter* writer, const Record& record, const std::atomic<bool>* cancel) {
  std::span<const std::byte> rest(static_cast<const std::byte*>(record.data), record_bytes(record));
  uint32_t crc = 0;
  check_cancelled(cancel);
  while (!rest.empty()) {
    const std::span<const std::byte> block = rest.first(std::min(rest.size(), kBlockBytes));
    writer->write(block);
    crc = crc32c(crc, block);
    rest = rest.subspan(block.size());
    check_cancelled(cancel);
  }
  return crc;
}

void describe(const Record& record, v1::TensorRecord* out) {
  out->set_name(record.name);
  out->set_role(role_to_proto(record.role));
  for (int64_t size : record.shape) {
    out->add_shape(size);
    out->mutable_box()->add_offset(0);
    out->mutable_box()->add_size(size);
  }
  out->mutable_range()->set_begin(0);
  out->mutable_range()->set_end(element_count(record.shape));
  out->mutable_encoding()->set_dtype(dtype_to_proto(record.dtype));
  out->mutable_encoding()->set_block(static_cast<uint32_t>(kernels::dtype_info(record.dtype).block));
  out->set_merge(v1::MERGE_RULE_CONCATENATE);
  out->set_key(shard_key(record.name, record.role));
  out->set_bytes(record_bytes(record));
}

void write_shard(FileSystem& fs, const std::string& folder, const std::string& file, const Group& group,
                 const std::atomic<bool>* cancel, v1::Index* index) {
  const std::string path = join_path(folder, file);
  std::vector<formats::StoredTensor> table;
  for (const Record* record : group) {
    formats::StoredTensor tensor{shard_key(record->name, record->role), record->dtype, {}, path};
    stored_form(record->dtype, record->shape, &tensor.dtype, &tensor.shape);
    table.push_back(std::move(tensor));
  }
  std::vector<uint32_t> crc(group.size());
  formats::SafetensorsWriter writer(fs, path, table);
  for (size_t i : writer.order()) crc[i] = write_tensor(&writer, *group[i], cancel);
  writer.finish();

  const ShardHeader header = read_shard_header(fs, path);
  std::unordered_map<std::string, uint64_t> offsets;
  for (const ShardHeader::Tensor& tensor : header.tensors) offsets.emplace(tensor.key, tensor.offset);
  const uint32_t number = static_cast<uint32_t>(index->shards_size());
  v1::Shard* shard = index->add_shards();
  shard->set_file(file);
  shard->set_bytes(header.file_bytes);
  shard->set_header_bytes(header.header_bytes);
  shard->set_header_crc32c(header.header_crc);
  for (size_t i = 0; i < group.size(); ++i) {
    v1::TensorRecord* record = index->add_records();
    describe(*group[i], record);
    record->set_shard(number);
    record->set_offset(offsets.at(record->key()));
    record->set_crc32c(crc[i]);
  }
}

}  // namespace

void check_cancelled(const std::atomic<bool>* cancel) {
  if (cancel != nullptr && cancel->load(std::memory_order_relaxed)) {
    fail(Code::kCancelled, "saving the checkpoint was cancelled; nothing of it was kept");
  }
}

v1::Index write_shards(FileSystem& fs, const std::string& folder, uint32_t rank, const std::vector<Record>& records,
                       const std::atomic<bool>* cancel, uint64_t shard_bytes) {
  Group sorted;
  for (const Record& record : records) sorted.push_back(&record);
  std::sort(sorted.begin(), sorted.end(), [](const Record* a, const Record* b) {
    return std::tie(a->name, a->role) < std::tie(b->name, b->role);
  });
  v1::Index index;
  index.set_format_version(kFormatVersion);
  index.set_rank(rank);
  for (const Group& group : cut(sorted, shard_bytes)) {
    write_shard(fs, folder, shard_file_name(rank, static_cast<uint32_t>(index.shards_size())), group, cancel, &index);
  }
  return index;
}

ShardHeader read_shard_header(FileSystem& fs, const std::string& path) {
  const std::unique_ptr<ReadableFile> file = open_part(fs, path);
  ShardHeader header;
  header.file_bytes = file->size();
  std::byte prefix[8];
  if (header.file_bytes < sizeof prefix) fail(Code::kDataLoss, path, ": too short for a safetensors file");
  file->read_at(0, prefix);
  uint64_t length = 0;
  for (size_t i = 0; i < sizeof prefix; ++i) length |= static_cast<uint64_t>(prefix[i]) << (8 * i);
  if (length > formats::kMaxSafetensorsHeader || length > header.file_bytes - sizeof prefix) {
    fail(Code::kDataLoss, path, ": a header of ", length, " bytes cannot be in a file of ", header.file_bytes, " bytes");
  }
  header.header_bytes = sizeof prefix + length;
  std::string text(length, '\0');
  const std::span<std::byte> bytes = std::as_writable_bytes(std::span(text.data(), text.size()));
  file->read_at(sizeof prefix, bytes);
  header.header_crc = crc32c(crc32c(0, prefix), bytes);
  for (formats::SafetensorsEntry& entry :
       formats::parse_safetensors_header(text, header.header_bytes, header.file_bytes, path).entries) {
    header.tensors.push_back({std::move(entry.tensor.name), entry.tensor.dtype, std::move(entry.tensor.shape),
                              entry.begin, entry.end - entry.begin});
  }
  return header;
}

}  // namespace inlaid::checkpoint

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sdk/base/error.h"
#include "sdk/checkpoint/contents.h"
#include "sdk/checkpoint/format.h"
#include "sdk/formats/safetensors.h"

namespace inlaid::checkpoint {
namespace {

Shape checked_shape(const v1::TensorRecord& record, const std::string& what) {
  if (record.shape_size() > kernels::kMaxRank) {
    fail(Code::kDataLoss, what, " has ", record.shape_size(), " dimensions; at most ", kernels::kMaxRank, " are possible");
  }
  return Shape(record.shape().begin(), record.shape().end());
}

// What a reader of version 1 cannot put together, or cannot know.
void check_supported(const v1::TensorRecord& record, const Shape& shape, int64_t elements, const std::string& what) {
  const auto refuse = [&](const char* reason) {
    fail(Code::kFailedPrecondition, what, " ", reason, ", which this version does not read. Use a newer release");
  };
  if (record.merge() == v1::MERGE_RULE_UNSPECIFIED) fail(Code::kDataLoss, what, " has no merge rule");
  if (record.merge() != v1::MERGE_RULE_CONCATENATE && record.merge() != v1::MERGE_RULE_REPLICATED) {
    refuse("is to be merged from several copies");
  }
  if (record.encoding().companions_size() > 0) refuse("needs companion tensors to be decoded");
  if (record.has_box()) {
    const v1::Box& box = record.box();
    const bool whole = std::equal(box.size().begin(), box.size().end(), shape.begin(), shape.end()) &&
                       static_cast<size_t>(box.offset_size()) == shape.size() &&
                       std::all_of(box.offset().begin(), box.offset().end(), [](int64_t o) { return o == 0; });
    if (!whole) refuse("is a part of a tensor that was split over several writers");
  }
  if (record.has_range() && (record.range().begin() != 0 || record.range().end() != elements)) {
    refuse("is a range of a tensor that was split over several writers");
  }
}

Entry checked_entry(const v1::TensorRecord& record, const std::string& path) {
  const std::string what = path + ": tensor '" + record.name() + "'";
  if (record.name().empty() || record.name().size() > kMaxNameBytes || record.key().empty() ||
      record.key().size() > 2 * kMaxNameBytes) {
    fail(Code::kDataLoss, what, ": name and key must have 1 to ", kMaxNameBytes, " bytes");
  }
  Entry entry;
  entry.record.name = record.name();
  const std::optional<Role> role = role_from_proto(record.role());
  const std::optional<DType> dtype = dtype_from_proto(record.encoding().dtype());
  if (record.role() == v1::ROLE_UNSPECIFIED || record.encoding().dtype() == v1::DATA_TYPE_UNSPECIFIED) {
    fail(Code::kDataLoss, what, " has no role or no element type");
  }
  if (!role || !dtype) {
    fail(Code::kFailedPrecondition, what, " has role ", record.role(), " and element type ", record.encoding().dtype(),
         ", of which this version knows at most one. Use a newer release");
  }
  entry.record.role = *role;
  entry.record.dtype = *dtype;
  entry.record.shape = checked_shape(record, what);
  int64_t elements = 0, bytes = 0;
  try {
    elements = element_count(entry.record.shape);
    bytes = byte_count(*dtype, entry.record.shape);
  } catch (const Error& error) {
    fail(Code::kDataLoss, what, ": ", error.message());
  }
  if (record.encoding().block() != static_cast<uint32_t>(kernels::dtype_info(*dtype).block)) {
    fail(Code::kDataLoss, what, ": ", dtype_name(*dtype), " has blocks of ", kernels::dtype_info(*dtype).block,
         " elements, not ", record.encoding().block());
  }
  check_supported(record, entry.record.shape, elements, what);
  if (record.bytes() != static_cast<uint64_t>(bytes)) {
    fail(Code::kDataLoss, what, ": ", dtype_name(*dtype), " of shape ", shape_text(entry.record.shape), " needs ", bytes,
         " bytes, the index says ", record.bytes());
  }
  entry.key = record.key();
  entry.offset = record.offset();
  entry.bytes = record.bytes();
  entry.crc = record.crc32c();
  return entry;
}

// Records of one shard must follow each other from the end of its header to the end of the file.
void check_tiling(std::vector<const Entry*> entries, const ShardInfo& shard, const std::string& path) {
  std::sort(entries.begin(), entries.end(), [](const Entry* a, const Entry* b) {
    return a->offset != b->offset ? a->offset < b->offset : a->bytes < b->bytes;
  });
  uint64_t position = shard.header_bytes;
  for (const Entry* entry : entries) {
    if (entry->offset != position || entry->bytes > shard.bytes - position) {
      fail(Code::kDataLoss, path, ": tensor '", entry->record.name, "' lies at bytes ", entry->offset, " + ", entry->bytes,
           " of '", shard.file, "', where byte ", position, " of ", shard.bytes, " is next");
    }
    position += entry->bytes;  // cannot overflow: at most shard.bytes
  }
  if (position != shard.bytes) {
    fail(Code::kDataLoss, path, ": the last ", shard.bytes - position, " bytes of '", shard.file, "' belong to no tensor");
  }
}

}  // namespace

void add_index(const v1::Index& index, const std::string& path, Contents* contents) {
  if (index.format_version() == 0) fail(Code::kDataLoss, path, ": format_version must be at least 1");
  const size_t first_shard = contents->shards.size(), first_entry = contents->entries.size();
  for (const v1::Shard& shard : index.shards()) {
    if (!is_plain_file_name(shard.file())) fail(Code::kDataLoss, path, ": '", shard.file(), "' is no plain file name");
    if (shard.header_bytes() < 8 || shard.header_bytes() > shard.bytes() ||
        shard.header_bytes() > formats::kMaxSafetensorsHeader + 8) {
      fail(Code::kDataLoss, path, ": '", shard.file(), "' cannot have a header of ", shard.header_bytes(), " in ",
           shard.bytes(), " bytes");
    }
    contents->shards.push_back({shard.file(), shard.bytes(), shard.header_bytes(), shard.header_crc32c()});
  }
  for (const v1::TensorRecord& record : index.records()) {
    Entry entry = checked_entry(record, path);
    if (record.shard() >= static_cast<uint32_t>(index.shards_size())) {
      fail(Code::kDataLoss, path, ": tensor '", record.name(), "' lies in shard ", record.shard(), " of ",
           index.shards_size());
    }
    entry.shard = first_shard + record.shard();
    contents->entries.push_back(std::move(entry));
  }
  std::vector<std::vector<const Entry*>> by_shard(contents->shards.size() - first_shard);
  for (size_t i = first_entry; i < contents->entries.size(); ++i) {
    by_shard[contents->entries[i].shard - first_shard].push_back(&contents->entries[i]);
  }
  for (size_t i = 0; i < by_shard.size(); ++i) check_tiling(std::move(by_shard[i]), contents->shards[first_shard + i], path);
}

}  // namespace inlaid::checkpoint

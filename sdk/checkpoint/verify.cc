// Verification reads every byte of a checkpoint: each byte is covered by the manifest's own checksum, the digest of an index
// or an extra file, the checksum of a shard's header, or that of a tensor. Memory: one block.
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sdk/base/error.h"
#include "sdk/base/hash.h"
#include "sdk/checkpoint/checkpoint.h"
#include "sdk/checkpoint/contents.h"
#include "sdk/checkpoint/format.h"
#include "sdk/checkpoint/shard.h"

namespace inlaid::checkpoint {
namespace {

class Verification {
 public:
  Verification(FileSystem& fs, const Contents& contents, std::vector<std::string>* problems)
      : fs_(fs), contents_(contents), problems_(*problems) {}

  void run() {
    check_sizes(fs_, contents_, [&](const std::string& problem) { problems_.push_back(problem); });
    for (const v1::ExtraFile& file : contents_.manifest.extra_files()) check_extra(file);
    for (size_t shard = 0; shard < contents_.shards.size(); ++shard) {
      const std::string path = join_path(contents_.folder, contents_.shards[shard].file);
      if (fs_.exists(path) && !fs_.is_folder(path)) check_header(shard, path);
    }
    for (const Entry& entry : contents_.entries) check_tensor(entry);
  }

 private:
  void check_extra(const v1::ExtraFile& file) {
    const std::string path = join_path(contents_.folder, file.name());
    if (!fs_.exists(path) || fs_.is_folder(path)) return;  // reported by check_sizes
    if (sha256_file(fs_, path) != file.sha256()) problems_.push_back(path + ": the digest is not the one in the manifest");
  }

  // The header of a shard says the same as the index, byte for byte.
  void check_header(size_t shard, const std::string& path) {
    const ShardInfo& promised = contents_.shards[shard];
    try {
      const ShardHeader header = read_shard_header(fs_, path);
      if (header.header_bytes != promised.header_bytes || header.header_crc != promised.header_crc) {
        fail(Code::kDataLoss, path, ": the header's checksum does not match the index; the file is damaged");
      }
      std::map<std::string, const ShardHeader::Tensor*> tensors;
      for (const ShardHeader::Tensor& tensor : header.tensors) tensors.emplace(tensor.key, &tensor);
      for (const Entry& entry : contents_.entries) {
        if (entry.shard == shard) check_description(entry, tensors);
      }
    } catch (const Error& error) {
      problems_.push_back(error.message());
    }
  }

  void check_description(const Entry& entry, const std::map<std::string, const ShardHeader::Tensor*>& tensors) const {
    const auto found = tensors.find(entry.key);
    DType dtype;
    Shape shape;
    stored_form(entry.record.dtype, entry.record.shape, &dtype, &shape);
    if (found == tensors.end() || found->second->offset != entry.offset || found->second->bytes != entry.bytes ||
        found->second->dtype != dtype || found->second->shape != shape) {
      fail(Code::kDataLoss, contents_.where(entry), ": the header of the file describes another tensor than the index");
    }
  }

  void check_tensor(const Entry& entry) {
    const std::string path = join_path(contents_.folder, contents_.shards[entry.shard].file);
    if (!fs_.exists(path) || fs_.is_folder(path)) return;  // reported by check_sizes
    try {
      if (checksum_range(*fs_.open(path), entry.offset, entry.bytes) != entry.crc) {
        problems_.push_back(contents_.where(entry) + ": the checksum does not match the bytes");
      }
    } catch (const Error& error) {
      problems_.push_back(contents_.where(entry) + ": " + error.message());
    }
  }

  FileSystem& fs_;
  const Contents& contents_;
  std::vector<std::string>& problems_;
};

}  // namespace

Json verify(FileSystem& fs, const std::string& folder) {
  if (!fs.is_folder(folder)) fail(Code::kNotFound, folder, ": there is no checkpoint folder of this name");
  std::vector<std::string> problems;
  uint64_t tensors = 0, bytes = 0;
  try {
    const Contents contents = load_contents(fs, folder);
    tensors = contents.entries.size();
    for (const Entry& entry : contents.entries) bytes += entry.bytes;
    Verification(fs, contents, &problems).run();
  } catch (const Error& error) {
    problems.push_back(error.message());
  }
  Json report = Json::object();
  report["ok"] = problems.empty();
  report["tensors"] = tensors;
  report["bytes"] = bytes;
  report["problems"] = problems;
  return report;
}

}  // namespace inlaid::checkpoint

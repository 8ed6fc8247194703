#include <algorithm>
#include <tuple>
#include <utility>

#include "sdk/base/error.h"
#include "sdk/base/hash.h"
#include "sdk/checkpoint/checkpoint.h"
#include "sdk/checkpoint/contents.h"
#include "sdk/checkpoint/format.h"
#include "sdk/checkpoint/render.h"

namespace inlaid::checkpoint {
namespace {

Info info_of(const v1::Manifest& manifest) {
  Info info;
  info.step = manifest.step();
  info.epoch = manifest.cursor().epoch();
  info.index = manifest.cursor().index();
  info.config_json = manifest.config_json();
  info.model_config_json = manifest.model_config_json();
  info.base_path = manifest.base().path();
  info.base_identity = manifest.base().identity();
  info.dataset_identity = manifest.identities().dataset();
  info.tokenizer_sha256 = manifest.identities().tokenizer_sha256();
  info.template_sha256 = manifest.identities().template_sha256();
  info.state_json = manifest.trainer_state().data();
  if (manifest.adapters_size() > 0) info.adapter_config_json = manifest.adapters(0).config_json();
  return info;
}

// Immutable after construction; files are opened per read, so that a checkpoint of many shards holds no descriptors.
class FolderReader : public Reader {
 public:
  FolderReader(FileSystem& fs, Contents contents) : fs_(fs), contents_(std::move(contents)) {
    const std::string path = join_path(contents_.folder, kManifestFile);
    const v1::Manifest& manifest = contents_.manifest;
    if (manifest.adapters_size() > 1) {
      fail(Code::kFailedPrecondition, path, ": the checkpoint holds ", manifest.adapters_size(),
           " adapters, this version reads one. Use a newer release");
    }
    if (!manifest.trainer_state().data().empty() && manifest.trainer_state().codec() != "json") {
      fail(Code::kFailedPrecondition, path, ": the trainer's state is written as '", manifest.trainer_state().codec(),
           "', this version reads json. Use a newer release");
    }
    info_ = info_of(manifest);
    for (const v1::ExtraFile& file : manifest.extra_files()) info_.extra_files.emplace_back(file.name(), read_extra(file));
    records_.reserve(contents_.entries.size());
    for (const Entry& entry : contents_.entries) records_.push_back(entry.record);
  }

  const Info& info() const override { return info_; }
  const std::vector<Record>& records() const override { return records_; }
  std::string manifest_bytes() const override { return contents_.manifest_bytes; }
  std::string manifest_json() const override { return render(contents_); }

  void read(const std::string& name, Role role, std::span<std::byte> out) const override {
    const auto found = std::lower_bound(
        contents_.entries.begin(), contents_.entries.end(), std::tie(name, role),
        [](const Entry& entry, const auto& key) { return std::tie(entry.record.name, entry.record.role) < key; });
    if (found == contents_.entries.end() || found->record.name != name || found->record.role != role) {
      fail(Code::kNotFound, contents_.folder, ": the checkpoint has no tensor '", name, "' (", role_name(role), ")");
    }
    const std::string what = contents_.where(*found);
    if (out.size() != found->bytes) {
      fail(Code::kInvalidArgument, what, " has ", found->bytes, " bytes, room is for ", out.size());
    }
    try {
      open_part(fs_, join_path(contents_.folder, contents_.shards[found->shard].file))->read_at(found->offset, out);
    } catch (const Error& error) {
      fail(error.code(), what, ": ", error.message());
    }
    if (crc32c(0, out) != found->crc) {
      fail(Code::kDataLoss, what, ": the checksum does not match the bytes; the file is damaged");
    }
  }

 private:
  std::string read_extra(const v1::ExtraFile& file) const {
    const std::string path = join_path(contents_.folder, file.name());
    std::string bytes = read_text(fs_, path, file.bytes());
    if (sha256_hex(bytes) != file.sha256()) {
      fail(Code::kDataLoss, path, ": the digest is not the one in the manifest; the file is damaged");
    }
    return bytes;
  }

  FileSystem& fs_;
  Contents contents_;
  Info info_;
  std::vector<Record> records_;
};

}  // namespace

std::unique_ptr<Reader> Reader::open(FileSystem& fs, const std::string& folder) {
  Contents contents = load_contents(fs, folder);
  check_sizes(fs, contents, [](const std::string& problem) { fail(Code::kDataLoss, problem); });
  return std::make_unique<FolderReader>(fs, std::move(contents));
}

}  // namespace inlaid::checkpoint

// Saving: everything under FOLDER.tmp, every file synced, the temporary folder synced, what was written read back, and only
// then the rename to FOLDER, made durable by a sync of the parent. At any cut the disk holds the old state or the new one;
// what an interrupted save leaves behind is the temporary folder, which the next save or prune removes.
//
// Cost: one pass over the bytes for file and checksum. Memory: one block beyond the caller's tensors, plus the index.
// Tests: crash_test.cc (cut at every operation, fault at every operation, kill -9), checkpoint_test.cc.
#include <algorithm>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "sdk/base/clock.h"
#include "sdk/base/error.h"
#include "sdk/base/hash.h"
#include "sdk/checkpoint/checkpoint.h"
#include "sdk/checkpoint/contents.h"
#include "sdk/checkpoint/format.h"
#include "sdk/checkpoint/manifest_file.h"
#include "sdk/checkpoint/shard.h"

namespace inlaid::checkpoint {
namespace {

void check_input(const Info& info, const std::vector<Record>& records) {
  std::set<std::string> keys;
  for (const Record& record : records) {
    const std::string what = "tensor '" + record.name + "' (" + role_name(record.role) + ") of the checkpoint";
    role_to_proto(record.role);
    if (record.name.empty() || record.name.size() > kMaxNameBytes) {
      fail(Code::kInvalidArgument, what, ": a name has 1 to ", kMaxNameBytes, " bytes");
    }
    if (record.shape.size() > static_cast<size_t>(kernels::kMaxRank)) {
      fail(Code::kInvalidArgument, what, " has ", record.shape.size(), " dimensions, at most ", kernels::kMaxRank,
           " are possible");
    }
    if (byte_count(record.dtype, record.shape) > 0 && record.data == nullptr) {
      fail(Code::kInvalidArgument, what, " has no data");
    }
    if (!keys.insert(shard_key(record.name, record.role)).second) fail(Code::kInvalidArgument, what, " is given twice");
  }
  std::set<std::string> names;
  for (const auto& [name, bytes] : info.extra_files) {
    if (!is_plain_file_name(name) || is_reserved_file_name(name) || !names.insert(name).second) {
      fail(Code::kInvalidArgument, "extra file '", name,
           "' of the checkpoint needs a plain name of its own, none of the checkpoint's (manifest.pb, index-*, state-*)");
    }
    if (bytes.size() > kMaxExtraFileBytes) {
      fail(Code::kInvalidArgument, "extra file '", name, "' has ", bytes.size(), " bytes, over the limit of ",
           kMaxExtraFileBytes);
    }
  }
  if (names.size() > static_cast<size_t>(kMaxExtraFiles)) {
    fail(Code::kInvalidArgument, names.size(), " extra files of the checkpoint are more than ", kMaxExtraFiles);
  }
}

void write_file(FileSystem& fs, const std::string& path, std::string_view bytes) {
  const std::unique_ptr<WritableFile> file = fs.create(path);
  file->write(std::as_bytes(std::span(bytes.data(), bytes.size())));
  file->sync();
  file->close();
}

v1::Manifest describe(const Info& info) {
  v1::Manifest manifest;
  manifest.set_format_version(kFormatVersion);
  manifest.set_min_reader_version(1);
  manifest.set_producer("inlaid " INLAID_VERSION);
  manifest.set_created_unix_ms(unix_ms_now());
  manifest.set_step(info.step);
  manifest.mutable_cursor()->set_epoch(info.epoch);
  manifest.mutable_cursor()->set_index(info.index);
  manifest.mutable_trainer_state()->set_codec("json");
  manifest.mutable_trainer_state()->set_data(info.state_json);
  v1::Mesh* mesh = manifest.mutable_mesh();
  mesh->set_world(1);
  mesh->set_pipeline(1);
  mesh->set_data(1);
  mesh->set_context(1);
  mesh->set_expert(1);
  mesh->set_tensor(1);
  manifest.set_config_json(info.config_json);
  manifest.set_model_config_json(info.model_config_json);
  if (!info.base_path.empty() || !info.base_identity.empty()) {
    manifest.mutable_base()->set_path(info.base_path);
    manifest.mutable_base()->set_identity(info.base_identity);
  }
  if (!info.adapter_config_json.empty()) {
    v1::Adapter* adapter = manifest.add_adapters();
    adapter->set_name("default");
    adapter->set_config_json(info.adapter_config_json);
  }
  manifest.mutable_identities()->set_dataset(info.dataset_identity);
  manifest.mutable_identities()->set_tokenizer_sha256(info.tokenizer_sha256);
  manifest.mutable_identities()->set_template_sha256(info.template_sha256);
  return manifest;
}

void write_extra_files(FileSystem& fs, const std::string& folder, const Info& info, const std::atomic<bool>* cancel,
                       v1::Manifest* manifest) {
  std::vector<std::pair<std::string, std::string>> files = info.extra_files;
  std::sort(files.begin(), files.end());
  for (const auto& [name, bytes] : files) {
    if (bytes.empty()) continue;
    check_cancelled(cancel);
    write_file(fs, join_path(folder, name), bytes);
    v1::ExtraFile* file = manifest->add_extra_files();
    file->set_name(name);
    file->set_bytes(bytes.size());
    file->set_sha256(sha256_hex(bytes));
  }
}

void write_index(FileSystem& fs, const std::string& folder, const v1::Index& index, v1::Manifest* manifest) {
  const std::string file = index_file_name(index.rank());
  std::string bytes;
  if (index.ByteSizeLong() > kMaxIndexBytes || !index.SerializeToString(&bytes)) {
    fail(Code::kInvalidArgument, "the index of ", index.records_size(), " tensors would exceed ", kMaxIndexBytes, " bytes");
  }
  write_file(fs, join_path(folder, file), bytes);
  v1::Writer* writer = manifest->add_writers();
  writer->set_rank(index.rank());
  writer->set_index_file(file);
  writer->set_index_bytes(bytes.size());
  writer->set_index_sha256(sha256_hex(bytes));
  writer->set_records(static_cast<uint64_t>(index.records_size()));
}

// All files of the checkpoint, the manifest last, durable under the temporary name.
void write_all(FileSystem& fs, const std::string& folder, const Info& info, const std::vector<Record>& records,
               const std::atomic<bool>* cancel, uint64_t shard_bytes) {
  v1::Manifest manifest = describe(info);
  write_index(fs, folder, write_shards(fs, folder, 0, records, cancel, shard_bytes), &manifest);
  write_extra_files(fs, folder, info, cancel, &manifest);
  check_cancelled(cancel);
  write_file(fs, join_path(folder, kManifestFile), seal_manifest(std::move(manifest)));
  fs.sync_folder(folder);
}

// What is going to be promised must be there: a writer that lost a file is found now, not at the next restore.
void read_back(FileSystem& fs, const std::string& folder) {
  check_sizes(fs, load_contents(fs, folder), [](const std::string& problem) { fail(Code::kDataLoss, problem); });
}

}  // namespace

void save(FileSystem& fs, const std::string& folder, const Info& info, const std::vector<Record>& records,
          const std::atomic<bool>* cancel, uint64_t shard_bytes) {
  check_input(info, records);
  const std::string parent = parent_path(folder), name = base_name(folder);
  const std::string target = join_path(parent, name), temporary = target + kTemporarySuffix;
  if (!is_plain_file_name(name)) fail(Code::kInvalidArgument, folder, ": '", name, "' is no plain folder name");
  if (fs.exists(target)) fail(Code::kAlreadyExists, target, ": a checkpoint or something else of this name is there");
  check_cancelled(cancel);
  fs.remove_all(temporary);
  bool renamed = false;
  try {
    fs.make_folders(temporary);
    write_all(fs, temporary, info, records, cancel, shard_bytes);
    read_back(fs, temporary);
    check_cancelled(cancel);
    fs.rename(temporary, target);
    renamed = true;
    fs.sync_folder(parent);
  } catch (...) {
    // A failed save leaves nothing, so that it can be tried again. A folder that has its final name loses it first: at no
    // time is there a final name with half a checkpoint behind it.
    try {
      if (renamed) {
        fs.rename(target, temporary);
        fs.sync_folder(parent);
      }
      fs.remove_all(temporary);
    } catch (const Error&) {
      // The first error is the one to report; the next save or prune removes what is left.
    }
    throw;
  }
}

}  // namespace inlaid::checkpoint

#include "sdk/checkpoint/contents.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "sdk/base/error.h"
#include "sdk/base/hash.h"
#include "sdk/checkpoint/format.h"
#include "sdk/checkpoint/manifest_file.h"

namespace inlaid::checkpoint {
namespace {

// The whole file, which must have exactly `bytes`.
std::string read_part(FileSystem& fs, const std::string& path, uint64_t bytes) {
  const uint64_t size = open_part(fs, path)->size();
  if (size != bytes) {
    fail(Code::kDataLoss, path, ": the file has ", size, " bytes, the manifest promises ", bytes);
  }
  return read_text(fs, path, bytes);
}

std::string read_manifest(FileSystem& fs, const std::string& folder) {
  if (!fs.is_folder(folder)) fail(Code::kNotFound, folder, ": there is no checkpoint folder of this name");
  const std::string path = join_path(folder, kManifestFile);
  if (!fs.exists(path) || fs.is_folder(path)) {
    fail(Code::kNotFound, path, ": the folder has no manifest, so it is no checkpoint");
  }
  const uint64_t size = fs.open(path)->size();
  if (size > kMaxManifestBytes) {
    fail(Code::kDataLoss, path, ": a manifest of ", size, " bytes is over the limit of ", kMaxManifestBytes);
  }
  return read_text(fs, path, size);
}

void check_names(const Contents& contents) {
  const std::string path = join_path(contents.folder, kManifestFile);
  std::set<std::string> files = {kManifestFile};
  for (const v1::Writer& writer : contents.manifest.writers()) files.insert(writer.index_file());
  for (const v1::ExtraFile& file : contents.manifest.extra_files()) files.insert(file.name());
  for (const ShardInfo& shard : contents.shards) {
    if (!files.insert(shard.file).second) fail(Code::kDataLoss, path, ": the file '", shard.file, "' is named twice");
  }
  for (size_t i = 1; i < contents.entries.size(); ++i) {
    const Record& a = contents.entries[i - 1].record;
    const Record& b = contents.entries[i].record;
    if (a.name == b.name && a.role == b.role) {
      fail(Code::kDataLoss, contents.where(contents.entries[i]), " is recorded twice");
    }
  }
}

}  // namespace

std::string Contents::where(const Entry& entry) const {
  return join_path(folder, shards[entry.shard].file) + ": tensor '" + entry.record.name + "' (" +
         role_name(entry.record.role) + ")";
}

Contents load_contents(FileSystem& fs, const std::string& folder) {
  Contents contents;
  contents.folder = folder;
  contents.manifest_bytes = read_manifest(fs, folder);
  contents.manifest = parse_manifest(contents.manifest_bytes, join_path(folder, kManifestFile));
  for (const v1::Writer& writer : contents.manifest.writers()) {
    const std::string path = join_path(folder, writer.index_file());
    const std::string bytes = read_part(fs, path, writer.index_bytes());
    if (sha256_hex(bytes) != writer.index_sha256()) {
      fail(Code::kDataLoss, path, ": the digest of the index is not the one in the manifest; the file is damaged");
    }
    v1::Index index = parse_index(bytes, path);
    if (index.rank() != writer.rank() || static_cast<uint64_t>(index.records_size()) != writer.records()) {
      fail(Code::kDataLoss, path, ": the index of writer ", index.rank(), " with ", index.records_size(),
           " records is not the one of the manifest: writer ", writer.rank(), " with ", writer.records());
    }
    add_index(index, path, &contents);
    contents.indexes.push_back(std::move(index));
  }
  std::sort(contents.entries.begin(), contents.entries.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.record.name, a.record.role) < std::tie(b.record.name, b.record.role);
  });
  check_names(contents);
  return contents;
}

void check_sizes(FileSystem& fs, const Contents& contents, const std::function<void(const std::string&)>& report) {
  const auto check = [&](const std::string& name, uint64_t bytes) {
    const std::string path = join_path(contents.folder, name);
    try {
      const uint64_t size = open_part(fs, path)->size();
      if (size != bytes) {
        report(path + ": the file has " + std::to_string(size) + " bytes, the checkpoint promises " +
               std::to_string(bytes));
      }
    } catch (const Error& error) {
      if (error.code() != Code::kDataLoss) throw;
      report(error.message());
    }
  };
  for (const ShardInfo& shard : contents.shards) check(shard.file, shard.bytes);
  for (const v1::ExtraFile& file : contents.manifest.extra_files()) check(file.name(), file.bytes());
}

}  // namespace inlaid::checkpoint

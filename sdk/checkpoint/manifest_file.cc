#include "sdk/checkpoint/manifest_file.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <algorithm>
#include <set>
#include <span>

#include "sdk/base/error.h"
#include "sdk/base/hash.h"
#include "sdk/checkpoint/format.h"

namespace inlaid::checkpoint {
namespace {

constexpr size_t kSealBytes = 5;
constexpr char kSealTag = (v1::Manifest::kCrc32CFieldNumber << 3) | 5;  // wire type 5: four bytes

uint32_t checksum(std::string_view bytes) { return crc32c(0, std::as_bytes(std::span(bytes.data(), bytes.size()))); }

// An entry of two bytes becomes an object of some hundred: a file made of empty entries would take gigabytes. Real entries
// (a record with name, key, shape, type) have over 32 bytes; a few short fields are always fine.
bool plausible_density(std::string_view bytes) {
  google::protobuf::io::CodedInputStream stream(reinterpret_cast<const uint8_t*>(bytes.data()),
                                                static_cast<int>(bytes.size()));
  constexpr size_t kFreeFields = 65536, kBytesPerField = 32;
  size_t fields = 0;
  while (const uint32_t tag = stream.ReadTag()) {
    if (!google::protobuf::internal::WireFormatLite::SkipField(&stream, tag)) return false;
    if (++fields > kFreeFields && fields * kBytesPerField > bytes.size()) return false;
  }
  return true;
}

bool parse_message(std::string_view bytes, google::protobuf::MessageLite* message) {
  if (!plausible_density(bytes)) return false;
  google::protobuf::io::CodedInputStream stream(reinterpret_cast<const uint8_t*>(bytes.data()),
                                                static_cast<int>(bytes.size()));
  stream.SetRecursionLimit(kMaxMessageDepth);
  return message->ParseFromCodedStream(&stream) && stream.ConsumedEntireMessage();
}

void check_seal(std::string_view bytes, const std::string& path) {
  if (bytes.size() < kSealBytes || bytes[bytes.size() - kSealBytes] != kSealTag) {
    fail(Code::kDataLoss, path, ": the manifest does not end with its checksum; the file is cut short or damaged");
  }
  uint32_t stored = 0;
  for (size_t i = 0; i < 4; ++i) {
    stored |= static_cast<uint32_t>(static_cast<unsigned char>(bytes[bytes.size() - 4 + i])) << (8 * i);
  }
  if (stored != checksum(bytes.substr(0, bytes.size() - kSealBytes))) {
    fail(Code::kDataLoss, path, ": the manifest's checksum does not match its bytes; the file is damaged");
  }
}

bool is_sha256(std::string_view text) {
  return text.size() == 64 && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

// Plain, and not named before.
void check_file_name(const std::string& name, const std::string& path, std::set<std::string>* names) {
  if (!is_plain_file_name(name)) fail(Code::kDataLoss, path, ": '", name, "' is no plain file name");
  if (!names->insert(name).second) fail(Code::kDataLoss, path, ": the file '", name, "' is named twice");
}

void check_manifest(const v1::Manifest& manifest, const std::string& path) {
  if (manifest.format_version() == 0 || manifest.min_reader_version() == 0) {
    fail(Code::kDataLoss, path, ": format_version and min_reader_version must be at least 1");
  }
  if (manifest.step() < 0 || manifest.cursor().epoch() < 0 || manifest.cursor().index() < 0) {
    fail(Code::kDataLoss, path, ": step, epoch and index must not be negative");
  }
  if (manifest.writers_size() < 1 || manifest.writers_size() > kMaxWriters ||
      manifest.extra_files_size() > kMaxExtraFiles || manifest.adapters_size() > kMaxAdapters) {
    fail(Code::kDataLoss, path, ": ", manifest.writers_size(), " writers, ", manifest.extra_files_size(), " files and ",
         manifest.adapters_size(), " adapters; allowed are 1 to ", kMaxWriters, ", at most ", kMaxExtraFiles,
         " and at most ", kMaxAdapters);
  }
  std::set<std::string> names = {kManifestFile};
  uint64_t records = 0;
  for (const v1::Writer& writer : manifest.writers()) {
    check_file_name(writer.index_file(), path, &names);
    if (writer.index_bytes() > kMaxIndexBytes || writer.records() > kMaxRecords || !is_sha256(writer.index_sha256())) {
      fail(Code::kDataLoss, path, ": the entry of '", writer.index_file(), "' has an impossible size, count or digest");
    }
    records += writer.records();
  }
  if (records > kMaxRecords) {
    fail(Code::kDataLoss, path, ": ", records, " records are more than the ", kMaxRecords, " that are allowed");
  }
  for (const v1::ExtraFile& file : manifest.extra_files()) {
    check_file_name(file.name(), path, &names);
    if (file.bytes() > kMaxExtraFileBytes || !is_sha256(file.sha256())) {
      fail(Code::kDataLoss, path, ": the entry of '", file.name(), "' has an impossible size or digest");
    }
  }
  for (int i = 1; i < manifest.metadata_size(); ++i) {
    if (manifest.metadata(i - 1).key() >= manifest.metadata(i).key()) {
      fail(Code::kDataLoss, path, ": metadata key '", manifest.metadata(i).key(), "' is out of order or given twice");
    }
  }
}

}  // namespace

std::string seal_manifest(v1::Manifest manifest) {
  manifest.clear_crc32c();
  std::string bytes;
  if (manifest.ByteSizeLong() + kSealBytes > kMaxManifestBytes || !manifest.SerializeToString(&bytes)) {
    fail(Code::kInvalidArgument, "the manifest of a checkpoint would exceed ", kMaxManifestBytes,
         " bytes; its texts (configuration, model configuration, state) are too long");
  }
  const uint32_t crc = checksum(bytes);
  bytes += kSealTag;
  for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(crc >> shift);
  // protobuf serialises text that is not UTF-8, but does not read it.
  if (v1::Manifest again; !parse_message(bytes, &again)) {
    fail(Code::kInvalidArgument, "a text of the checkpoint's manifest (configuration, path, name) is not UTF-8");
  }
  return bytes;
}

v1::Manifest parse_manifest(std::string_view bytes, const std::string& path) {
  v1::Manifest manifest;
  if (bytes.size() > kMaxManifestBytes || !parse_message(bytes, &manifest)) {
    fail(Code::kDataLoss, path, ": this is no manifest of a checkpoint, or it is damaged");
  }
  // Before the checksum: a newer format may have another one.
  if (manifest.min_reader_version() > kReaderVersion) {
    fail(Code::kFailedPrecondition, path, ": the checkpoint (written by ", manifest.producer(), ") needs a reader of version ",
         manifest.min_reader_version(), "; this one has version ", kReaderVersion, ". Use a newer release");
  }
  check_seal(bytes, path);
  check_manifest(manifest, path);
  return manifest;
}

v1::Index parse_index(std::string_view bytes, const std::string& path) {
  v1::Index index;
  if (bytes.size() > kMaxIndexBytes || !parse_message(bytes, &index)) {
    fail(Code::kDataLoss, path, ": this is no index of a checkpoint, or it is damaged");
  }
  return index;
}

}  // namespace inlaid::checkpoint

// Constants and small rules of checkpoint format 1: names of files, caps on what a reader accepts, and the mapping between
// the engine's types and the enums of index.proto, which are append-only and never equal to the engine's by accident.
//
// A checkpoint comes from outside: every count and size below is checked before anything is allocated for it.
#ifndef INLAID_SDK_CHECKPOINT_FORMAT_H_
#define INLAID_SDK_CHECKPOINT_FORMAT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "inlaid/checkpoint/v1/index.pb.h"
#include "sdk/base/file_system.h"
#include "sdk/checkpoint/checkpoint.h"

namespace inlaid::checkpoint {

constexpr uint32_t kFormatVersion = 1;
constexpr uint32_t kReaderVersion = 1;  // a manifest with a higher min_reader_version is refused

constexpr char kTemporarySuffix[] = ".tmp";

constexpr uint64_t kMaxManifestBytes = uint64_t{64} << 20;
constexpr uint64_t kMaxIndexBytes = uint64_t{64} << 20;
constexpr uint64_t kMaxExtraFileBytes = uint64_t{256} << 20;
constexpr int kMaxMessageDepth = 16;
constexpr int kMaxWriters = 65536;
constexpr int kMaxExtraFiles = 1024;
constexpr int kMaxAdapters = 1024;
constexpr uint64_t kMaxRecords = uint64_t{4} << 20;  // all writers together
constexpr size_t kMaxNameBytes = 4096;
constexpr size_t kMaxFileNameBytes = 255;
constexpr size_t kMaxTensorsPerShard = 65536;  // keeps a shard's header far below the format's 100 MB

// Bytes that are read or written between two looks at a cancel flag, and held in memory at a time.
constexpr size_t kBlockBytes = size_t{4} << 20;

std::string index_file_name(uint32_t rank);                   // "index-00000.pb"
std::string shard_file_name(uint32_t rank, uint32_t number);  // "state-00000-00000.safetensors"

// A name that stays inside its folder on any system: not empty, no separator, no leading dot, printable.
bool is_plain_file_name(std::string_view name);
// Names that a checkpoint uses itself.
bool is_reserved_file_name(std::string_view name);

// nullopt for a value that this version does not know, UNSPECIFIED included.
std::optional<Role> role_from_proto(v1::Role role);
v1::Role role_to_proto(Role role);
const char* role_name(Role role);  // "weight", "moment_1", "moment_2"
std::optional<DType> dtype_from_proto(v1::DataType type);
v1::DataType dtype_to_proto(DType type);

// Name of a record's tensor in its shard: weights under their own names, so that other tools find them; moments with the
// role behind it.
std::string shard_key(const std::string& name, Role role);
// How a shard holds a tensor: as itself, or for block-quantised types as bytes with the last dimension in bytes.
void stored_form(DType dtype, const Shape& shape, DType* stored_dtype, Shape* stored_shape);

// CRC-32C of a range of a file, read in blocks. Throws as read_at does.
uint32_t checksum_range(const ReadableFile& file, uint64_t offset, uint64_t bytes);

// Opens a file that the checkpoint names; a missing one is kDataLoss, because then the checkpoint is damaged.
std::unique_ptr<ReadableFile> open_part(FileSystem& fs, const std::string& path);

}  // namespace inlaid::checkpoint

#endif  // INLAID_SDK_CHECKPOINT_FORMAT_H_

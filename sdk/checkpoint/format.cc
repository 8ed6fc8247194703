#include "sdk/checkpoint/format.h"

#include <algorithm>
#include <cstdio>
#include <span>
#include <vector>

#include "sdk/base/error.h"
#include "sdk/base/hash.h"

namespace inlaid::checkpoint {
namespace {

struct TypePair {
  DType dtype;
  v1::DataType proto;
};
constexpr TypePair kTypes[] = {
    {DType::f64, v1::DATA_TYPE_F64},   {DType::f32, v1::DATA_TYPE_F32},   {DType::bf16, v1::DATA_TYPE_BF16},
    {DType::f16, v1::DATA_TYPE_F16},   {DType::i64, v1::DATA_TYPE_I64},   {DType::i32, v1::DATA_TYPE_I32},
    {DType::u8, v1::DATA_TYPE_U8},     {DType::q4_0, v1::DATA_TYPE_Q4_0}, {DType::q4_1, v1::DATA_TYPE_Q4_1},
    {DType::q8_0, v1::DATA_TYPE_Q8_0}, {DType::q5_0, v1::DATA_TYPE_Q5_0}, {DType::q5_1, v1::DATA_TYPE_Q5_1},
    {DType::q2_k, v1::DATA_TYPE_Q2_K}, {DType::q3_k, v1::DATA_TYPE_Q3_K}, {DType::q4_k, v1::DATA_TYPE_Q4_K},
    {DType::q5_k, v1::DATA_TYPE_Q5_K}, {DType::q6_k, v1::DATA_TYPE_Q6_K},
};

std::string numbered(const char* format, uint32_t a, uint32_t b = 0) {
  char text[64];
  std::snprintf(text, sizeof text, format, a, b);
  return text;
}

}  // namespace

std::string index_file_name(uint32_t rank) { return numbered("index-%05u.pb", rank); }

std::string shard_file_name(uint32_t rank, uint32_t number) {
  return numbered("state-%05u-%05u.safetensors", rank, number);
}

bool is_plain_file_name(std::string_view name) {
  if (name.empty() || name.size() > kMaxFileNameBytes || name.front() == '.') return false;
  return std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return c >= 0x20 && c != 0x7f && c != '/' && c != '\\' && c != ':';
  });
}

bool is_reserved_file_name(std::string_view name) {
  return name == kManifestFile || name.starts_with("index-") || name.starts_with("state-");
}

std::optional<Role> role_from_proto(v1::Role role) {
  switch (role) {
    case v1::ROLE_WEIGHT: return Role::kWeight;
    case v1::ROLE_MOMENT_1: return Role::kMoment1;
    case v1::ROLE_MOMENT_2: return Role::kMoment2;
    default: return std::nullopt;
  }
}

v1::Role role_to_proto(Role role) {
  switch (role) {
    case Role::kWeight: return v1::ROLE_WEIGHT;
    case Role::kMoment1: return v1::ROLE_MOMENT_1;
    case Role::kMoment2: return v1::ROLE_MOMENT_2;
  }
  fail(Code::kInvalidArgument, "role ", static_cast<int32_t>(role), " of a record is none of weight (1), first (2) and second (3) moment");
}

const char* role_name(Role role) {
  switch (role) {
    case Role::kWeight: return "weight";
    case Role::kMoment1: return "moment_1";
    case Role::kMoment2: return "moment_2";
  }
  return "unknown";
}

std::optional<DType> dtype_from_proto(v1::DataType type) {
  for (const TypePair& pair : kTypes) {
    if (pair.proto == type) return pair.dtype;
  }
  return std::nullopt;
}

v1::DataType dtype_to_proto(DType type) {
  for (const TypePair& pair : kTypes) {
    if (pair.dtype == type) return pair.proto;
  }
  fail(Code::kInvalidArgument, "element type ", static_cast<int32_t>(type), " has no place in a checkpoint");
}

std::string shard_key(const std::string& name, Role role) {
  return role == Role::kWeight ? name : name + "@" + role_name(role);
}

void stored_form(DType dtype, const Shape& shape, DType* stored_dtype, Shape* stored_shape) {
  *stored_dtype = dtype;
  *stored_shape = shape;
  const kernels::DTypeInfo& info = kernels::dtype_info(dtype);
  if (info.block == 1) return;
  *stored_dtype = DType::u8;
  stored_shape->back() = stored_shape->back() / info.block * info.bytes;
}

uint32_t checksum_range(const ReadableFile& file, uint64_t offset, uint64_t bytes) {
  std::vector<std::byte> block(std::min<uint64_t>(bytes, kBlockBytes));
  uint32_t crc = 0;
  while (bytes > 0) {
    const std::span<std::byte> piece(block.data(), std::min<uint64_t>(bytes, block.size()));
    file.read_at(offset, piece);
    crc = crc32c(crc, piece);
    offset += piece.size();
    bytes -= piece.size();
  }
  return crc;
}

std::unique_ptr<ReadableFile> open_part(FileSystem& fs, const std::string& path) {
  if (!fs.exists(path)) fail(Code::kDataLoss, path, ": the file is missing, though the checkpoint names it");
  if (fs.is_folder(path)) fail(Code::kDataLoss, path, ": a folder stands where the checkpoint has a file");
  return fs.open(path);
}

}  // namespace inlaid::checkpoint

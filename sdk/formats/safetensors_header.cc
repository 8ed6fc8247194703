#include <algorithm>
#include <optional>

#include "sdk/base/error.h"
#include "sdk/base/json.h"
#include "sdk/formats/safetensors.h"

namespace inlaid::formats {
namespace {

DType parse_type(const std::string& name, const std::string& what) {
  if (name == "F64") return DType::f64;
  if (name == "F32") return DType::f32;
  if (name == "F16") return DType::f16;
  if (name == "BF16") return DType::bf16;
  if (name == "I64") return DType::i64;
  if (name == "I32") return DType::i32;
  if (name == "U8" || name == "BOOL") return DType::u8;
  fail(Code::kUnimplemented, what, ": element type '", name,
       "' is not supported; supported are F64, F32, F16, BF16, I64, I32, U8, BOOL");
}

uint64_t unsigned_value(const Json& value, const std::string& what) {
  if (!value.is_number_integer() || (!value.is_number_unsigned() && value.get<int64_t>() < 0)) {
    fail(Code::kDataLoss, what, " must be an integer of at least 0");
  }
  return value.get<uint64_t>();
}

SafetensorsEntry parse_entry(const std::string& name, const Json& json, uint64_t data_begin,
                             uint64_t data_size, const std::string& path) {
  const std::string what = path + ": tensor '" + name + "'";
  if (!json.is_object()) fail(Code::kDataLoss, what, " must be described by an object");
  const auto dtype = json.find("dtype"), shape = json.find("shape"), offsets = json.find("data_offsets");
  if (dtype == json.end() || !dtype->is_string() || shape == json.end() || !shape->is_array() ||
      offsets == json.end() || !offsets->is_array() || offsets->size() != 2 || json.size() != 3) {
    fail(Code::kDataLoss, what,
         " needs exactly the keys dtype (text), shape (list) and data_offsets (two integers)");
  }
  SafetensorsEntry entry;
  entry.tensor.name = name;
  entry.tensor.file = path;
  entry.tensor.dtype = parse_type(dtype->get<std::string>(), what);
  if (shape->size() > static_cast<size_t>(kernels::kMaxRank)) {
    fail(Code::kUnimplemented, what, " has ", shape->size(), " dimensions; at most ", kernels::kMaxRank,
         " are supported");
  }
  for (const Json& size : *shape) {
    const uint64_t n = unsigned_value(size, what + ": a size of its shape");
    if (n > static_cast<uint64_t>(INT64_MAX)) fail(Code::kDataLoss, what, ": size ", n, " is too large");
    entry.tensor.shape.push_back(static_cast<int64_t>(n));
  }
  const uint64_t begin = unsigned_value((*offsets)[0], what + ": data_offsets[0]");
  const uint64_t end = unsigned_value((*offsets)[1], what + ": data_offsets[1]");
  if (begin > end || end > data_size) {
    fail(Code::kDataLoss, what, ": data_offsets [", begin, ", ", end, "] do not lie inside the ", data_size,
         " bytes of data; the file is cut short or damaged");
  }
  std::optional<int64_t> bytes;
  try {
    bytes = byte_count(entry.tensor.dtype, entry.tensor.shape);
  } catch (const Error& error) {
    fail(Code::kDataLoss, what, ": ", error.message());
  }
  if (static_cast<uint64_t>(*bytes) != end - begin) {
    fail(Code::kDataLoss, what, ": type and shape ", shape_text(entry.tensor.shape), " need ", *bytes,
         " bytes, data_offsets span ", end - begin);
  }
  entry.begin = data_begin + begin;
  entry.end = data_begin + end;
  return entry;
}

// Tensors, put into the order of their offsets, must follow each other without hole or overlap and fill the
// data exactly.
void check_contiguous(const std::vector<SafetensorsEntry>& entries, uint64_t data_begin, uint64_t file_size,
                      const std::string& path) {
  std::vector<const SafetensorsEntry*> by_offset;
  by_offset.reserve(entries.size());
  for (const SafetensorsEntry& entry : entries) by_offset.push_back(&entry);
  std::sort(by_offset.begin(), by_offset.end(), [](const auto* a, const auto* b) {
    return a->begin != b->begin ? a->begin < b->begin : a->end < b->end;
  });
  uint64_t position = data_begin;
  for (const SafetensorsEntry* entry : by_offset) {
    if (entry->begin != position) {
      fail(Code::kDataLoss, path, ": tensor '", entry->tensor.name, "' ",
           entry->begin < position ? "overlaps the tensor before it" : "leaves a hole before it",
           "; offsets must be contiguous");
    }
    position = entry->end;
  }
  if (position != file_size) {
    fail(Code::kDataLoss, path, ": ", file_size - position,
         " bytes after the last tensor belong to no tensor");
  }
}

}  // namespace

SafetensorsHeader parse_safetensors_header(std::string_view text, uint64_t data_begin, uint64_t file_size,
                                           const std::string& path) {
  Json json;
  try {
    json = parse_json(text, path + " (header)");
  } catch (const Error& error) {
    fail(Code::kDataLoss, error.message());
  }
  if (!json.is_object()) fail(Code::kDataLoss, path, ": the header must be a JSON object");
  SafetensorsHeader header;
  for (const auto& [name, value] : json.items()) {
    if (name == "__metadata__") {
      if (!value.is_object()) fail(Code::kDataLoss, path, ": __metadata__ must be an object of texts");
      for (const auto& [key, entry] : value.items()) {
        if (!entry.is_string()) fail(Code::kDataLoss, path, ": __metadata__ key '", key, "' must be a text");
        header.metadata.emplace_back(key, entry.get<std::string>());
      }
      continue;
    }
    header.entries.push_back(parse_entry(name, value, data_begin, file_size - data_begin, path));
  }
  std::sort(header.entries.begin(), header.entries.end(),
            [](const auto& a, const auto& b) { return a.tensor.name < b.tensor.name; });
  check_contiguous(header.entries, data_begin, file_size, path);
  return header;
}

}  // namespace inlaid::formats

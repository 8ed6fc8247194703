#include "sdk/formats/gguf_file.h"

#include <algorithm>
#include <set>

#include "sdk/base/error.h"
#include "sdk/formats/gguf_types.h"

namespace inlaid::formats {
namespace {

constexpr uint64_t kMaxAlignment = uint64_t{1} << 20;
constexpr uint32_t kMaxDimensions = 4;

[[noreturn]] void refuse_type(const GgufFile& file, const std::string& tensor, uint32_t id) {
  const char* name = ggml_name(id);
  if (name == nullptr) {
    fail(Code::kDataLoss, file.path(), ": tensor '", tensor, "' has unknown type ", id,
         "; the file is damaged or newer");
  }
  fail(Code::kUnimplemented, file.path(), ": tensor '", tensor, "' has type ", name,
       ", which is not supported; supported are ", readable_ggml_names());
}

[[noreturn]] void wrong_type(const GgufFile& file, std::string_view key, const char* wanted,
                             const GgufValue& value) {
  fail(Code::kDataLoss, file.path(), ": metadata key '", key, "' must be ", wanted, ", it is ",
       value.array ? "an array of " : "", gguf_type_name(value.type));
}

[[noreturn]] void missing(const GgufFile& file, std::string_view key) {
  fail(Code::kDataLoss, file.path(), ": metadata key '", key, "' is missing");
}

}  // namespace

GgufFile::GgufFile(FileSystem& fs, const std::string& path) : file_(fs.open(path)) {
  GgufCursor cursor(*file_);
  if (cursor.number<uint32_t>() != kGgufMagic)
    fail(Code::kDataLoss, path, ": is no GGUF file (it does not begin with 'GGUF')");
  const uint32_t version = cursor.number<uint32_t>();
  if (version != 0 && version % 65536 == 0)
    fail(Code::kUnimplemented, path, ": big-endian GGUF files are not supported");
  if (version != 2 && version != kGgufVersion) {
    fail(Code::kUnimplemented, path, ": GGUF version ", version, " is not supported; supported are 2 and 3");
  }
  // Name and at least one dimension: 8 + 4 + 8 + 4 + 8 bytes; key, type and value: 8 + 4 + 1.
  const uint64_t tensors = cursor.count(32, "the tensor table");
  const uint64_t keys = cursor.count(13, "the metadata");
  for (uint64_t i = 0; i < keys; ++i) {
    std::string key = cursor.text();
    GgufValue value = cursor.value();
    if (key.empty()) fail(Code::kDataLoss, path, ": a metadata key is empty");
    const auto [place, fresh] = metadata_.emplace(std::move(key), std::move(value));
    if (!fresh) fail(Code::kDataLoss, path, ": metadata key '", place->first, "' appears twice");
  }
  read_table(cursor, tensors);
}

void GgufFile::read_table(GgufCursor& cursor, uint64_t count) {
  const int64_t alignment = optional_integer("general.alignment").value_or(kGgufAlignment);
  if (alignment < 1 || static_cast<uint64_t>(alignment) > kMaxAlignment ||
      (alignment & (alignment - 1)) != 0) {
    fail(Code::kDataLoss, path(), ": general.alignment is ", alignment,
         ", it must be a power of two of at most ", kMaxAlignment);
  }
  std::set<std::string> names;
  for (uint64_t i = 0; i < count; ++i) {
    GgufTensor tensor;
    tensor.name = cursor.text();
    if (!names.insert(tensor.name).second) {
      fail(Code::kDataLoss, path(), ": tensor '", tensor.name, "' appears twice");
    }
    const uint32_t dimensions = cursor.number<uint32_t>();
    if (dimensions < 1 || dimensions > kMaxDimensions) {
      fail(Code::kDataLoss, path(), ": tensor '", tensor.name, "' has ", dimensions, " dimensions, not 1 to ",
           kMaxDimensions);
    }
    for (uint32_t d = 0; d < dimensions; ++d) {
      const uint64_t size = cursor.number<uint64_t>();
      if (size == 0 || size > static_cast<uint64_t>(INT64_MAX)) {
        fail(Code::kDataLoss, path(), ": tensor '", tensor.name, "' has size ", size);
      }
      tensor.shape.insert(tensor.shape.begin(), static_cast<int64_t>(size));
    }
    const uint32_t type = cursor.number<uint32_t>();
    const auto dtype = dtype_of_ggml(type);
    if (!dtype) refuse_type(*this, tensor.name, type);
    tensor.dtype = *dtype;
    tensor.offset = cursor.number<uint64_t>();
    if (tensor.offset % static_cast<uint64_t>(alignment) != 0) {
      fail(Code::kDataLoss, path(), ": tensor '", tensor.name, "': offset ", tensor.offset,
           " is no multiple of the alignment ", alignment);
    }
    tensors_.push_back(std::move(tensor));
  }
  const uint64_t mask = static_cast<uint64_t>(alignment) - 1;
  check_layout((cursor.position() + mask) & ~mask);
}

// Turns offsets into file positions; tensors must lie inside the file and must not overlap.
void GgufFile::check_layout(uint64_t data_begin) {
  const uint64_t size = file_->size();
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  for (GgufTensor& tensor : tensors_) {
    int64_t bytes = 0;
    try {
      bytes = byte_count(tensor.dtype, tensor.shape);
    } catch (const Error& error) {
      fail(Code::kDataLoss, path(), ": tensor '", tensor.name, "': ", error.message());
    }
    if (data_begin > size || tensor.offset > size - data_begin ||
        static_cast<uint64_t>(bytes) > size - data_begin - tensor.offset) {
      fail(Code::kDataLoss, path(), ": tensor '", tensor.name, "' (", bytes, " bytes at offset ",
           tensor.offset, " of the data at byte ", data_begin, ") goes past the end of the file at byte ",
           size, "; the file is cut short or damaged");
    }
    tensor.offset += data_begin;
    ranges.emplace_back(tensor.offset, tensor.offset + static_cast<uint64_t>(bytes));
  }
  std::sort(ranges.begin(), ranges.end());
  for (size_t i = 1; i < ranges.size(); ++i) {
    if (ranges[i].first < ranges[i - 1].second) {
      fail(Code::kDataLoss, path(), ": two tensors overlap at byte ", ranges[i].first);
    }
  }
}

const GgufTensor* GgufFile::find_tensor(std::string_view name) const {
  for (const GgufTensor& tensor : tensors_) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

const GgufValue* GgufFile::find(std::string_view key) const {
  const auto found = metadata_.find(key);
  return found == metadata_.end() ? nullptr : &found->second;
}

std::optional<int64_t> GgufFile::optional_integer(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return {};
  if (const auto* number = std::get_if<int64_t>(&value->data)) return *number;
  const auto* number = std::get_if<uint64_t>(&value->data);
  if (number == nullptr || *number > static_cast<uint64_t>(INT64_MAX))
    wrong_type(*this, key, "an integer below 2^63", *value);
  return static_cast<int64_t>(*number);
}

std::optional<double> GgufFile::optional_number(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return {};
  if (const auto* number = std::get_if<double>(&value->data)) return *number;
  return static_cast<double>(*optional_integer(key));
}

std::optional<bool> GgufFile::optional_flag(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return {};
  const auto* flag = std::get_if<bool>(&value->data);
  if (flag == nullptr) wrong_type(*this, key, "a boolean", *value);
  return *flag;
}

std::optional<std::string> GgufFile::optional_text(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return {};
  const auto* text = std::get_if<std::string>(&value->data);
  if (text == nullptr) wrong_type(*this, key, "a string", *value);
  return *text;
}

int64_t GgufFile::integer(std::string_view key) const {
  if (const auto value = optional_integer(key)) return *value;
  missing(*this, key);
}

double GgufFile::number(std::string_view key) const {
  if (const auto value = optional_number(key)) return *value;
  missing(*this, key);
}

std::string GgufFile::text(std::string_view key) const {
  if (auto value = optional_text(key)) return std::move(*value);
  missing(*this, key);
}

const std::vector<std::string>& GgufFile::texts(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) missing(*this, key);
  const auto* list = std::get_if<std::vector<std::string>>(&value->data);
  if (list == nullptr) wrong_type(*this, key, "an array of strings", *value);
  return *list;
}

std::vector<int64_t> GgufFile::integers(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) missing(*this, key);
  if (const auto* list = std::get_if<std::vector<int64_t>>(&value->data)) return *list;
  const auto* list = std::get_if<std::vector<uint64_t>>(&value->data);
  if (list == nullptr) wrong_type(*this, key, "an array of integers", *value);
  std::vector<int64_t> out;
  for (uint64_t number : *list) {
    if (number > static_cast<uint64_t>(INT64_MAX))
      wrong_type(*this, key, "an array of integers below 2^63", *value);
    out.push_back(static_cast<int64_t>(number));
  }
  return out;
}

}  // namespace inlaid::formats

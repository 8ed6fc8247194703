#include "sdk/formats/safetensors.h"

#include <bit>
#include <cstring>

#include "sdk/base/error.h"

namespace inlaid::formats {

static_assert(std::endian::native == std::endian::little, "model files are little-endian");

SafetensorsFile::SafetensorsFile(FileSystem& fs, const std::string& path) : file_(fs.open(path)) {
  const uint64_t size = file_->size();
  if (size < 8) fail(Code::kDataLoss, path, ": ", size, " bytes are too few for a safetensors file");
  uint64_t length = 0;
  file_->read_at(0, std::as_writable_bytes(std::span(&length, 1)));
  if (length > kMaxSafetensorsHeader || length > size - 8) {
    fail(Code::kDataLoss, path, ": header length ", length, " is over the limit of ", kMaxSafetensorsHeader,
         " bytes or over the file's ", size, " bytes; this is no safetensors file, or it is cut short");
  }
  std::string text(length, '\0');
  file_->read_at(8, std::as_writable_bytes(std::span(text.data(), text.size())));
  SafetensorsHeader header = parse_safetensors_header(text, 8 + length, size, path);
  metadata_ = std::move(header.metadata);
  for (SafetensorsEntry& entry : header.entries) {
    tensors_.push_back(std::move(entry.tensor));
    begin_.push_back(entry.begin);
  }
}

void SafetensorsFile::read(size_t index, std::span<std::byte> out) const {
  const StoredTensor& tensor = tensors_.at(index);
  INLAID_CHECK(out.size() == static_cast<uint64_t>(byte_count(tensor.dtype, tensor.shape)));
  file_->read_at(begin_[index], out);
}

std::unique_ptr<WeightSource> open_safetensors(FileSystem& fs, const std::string& path) {
  return std::make_unique<SafetensorsFile>(fs, path);
}

}  // namespace inlaid::formats

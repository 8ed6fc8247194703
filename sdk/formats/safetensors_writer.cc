#include <algorithm>
#include <numeric>
#include <set>

#include "sdk/base/error.h"
#include "sdk/base/json.h"
#include "sdk/formats/safetensors.h"

namespace inlaid::formats {
namespace {

const char* type_text(const StoredTensor& tensor) {
  switch (tensor.dtype) {
    case DType::f64:
      return "F64";
    case DType::f32:
      return "F32";
    case DType::f16:
      return "F16";
    case DType::bf16:
      return "BF16";
    case DType::i64:
      return "I64";
    case DType::i32:
      return "I32";
    case DType::u8:
      return "U8";
    default:
      break;
  }
  fail(Code::kInvalidArgument, "tensor '", tensor.name, "': a safetensors file cannot hold ",
       dtype_name(tensor.dtype), "; use f32, f16 or bf16");
}

std::string quoted(const std::string& text) {
  return to_text(Json(text));
}

}  // namespace

SafetensorsWriter::SafetensorsWriter(FileSystem& fs, const std::string& path,
                                     const std::vector<StoredTensor>& tensors,
                                     const std::vector<std::pair<std::string, std::string>>& metadata)
    : path_(path), order_(tensors.size()) {
  std::iota(order_.begin(), order_.end(), size_t{0});
  std::stable_sort(order_.begin(), order_.end(), [&](size_t a, size_t b) {
    return kernels::dtype_info(tensors[a].dtype).bytes > kernels::dtype_info(tensors[b].dtype).bytes;
  });

  std::string header = "{";
  if (!metadata.empty()) {
    header += "\"__metadata__\":{";
    for (size_t i = 0; i < metadata.size(); ++i) {
      if (i > 0) header += ',';
      header += quoted(metadata[i].first);
      header += ':';
      header += quoted(metadata[i].second);
    }
    header += "}";
  }
  std::set<std::string> names;
  for (size_t index : order_) {
    const StoredTensor& tensor = tensors[index];
    if (tensor.name == "__metadata__" || !names.insert(tensor.name).second) {
      fail(Code::kInvalidArgument, path, ": tensor name '", tensor.name, "' is given twice or reserved");
    }
    const uint64_t begin = left_;
    left_ += static_cast<uint64_t>(byte_count(tensor.dtype, tensor.shape));
    if (header.size() > 1) header += ",";
    header += quoted(tensor.name) + ":{\"dtype\":\"" + type_text(tensor) + "\",\"shape\":[";
    for (size_t i = 0; i < tensor.shape.size(); ++i) {
      if (i > 0) header += ',';
      header += std::to_string(tensor.shape[i]);
    }
    header += "],\"data_offsets\":[" + std::to_string(begin) + "," + std::to_string(left_) + "]}";
  }
  header += "}";
  header.resize((header.size() + 7) / 8 * 8,
                ' ');  // data starts aligned; the format allows spaces at the end
  if (header.size() > kMaxSafetensorsHeader) {
    fail(Code::kInvalidArgument, path, ": ", tensors.size(), " tensors need a header over ",
         kMaxSafetensorsHeader, " bytes; write several files");
  }
  file_ = fs.create(path);
  const uint64_t length = header.size();
  file_->write(std::as_bytes(std::span(&length, 1)));
  file_->write(std::as_bytes(std::span(header.data(), header.size())));
}

void SafetensorsWriter::write(std::span<const std::byte> bytes) {
  INLAID_CHECK(bytes.size() <= left_);
  file_->write(bytes);
  left_ -= bytes.size();
}

void SafetensorsWriter::finish() {
  INLAID_CHECK(left_ == 0);
  file_->sync();
  file_->close();
}

}  // namespace inlaid::formats

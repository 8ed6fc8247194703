// The GGUF container, version 3 (and 2, which has the same layout): magic "GGUF", u32 version, u64 number of
// tensors, u64 number of metadata keys, the keys with their values, the tensor table (name, u32 dimensions,
// u64 sizes with the fastest-varying first, u32 type, u64 offset into the data section), padding to
// general.alignment (default 32), data.
//
// Everything is checked before it is used: counts against the bytes left, products for overflow, offsets for
// alignment, overlap and the end of the file. Damage is kDataLoss; a version, byte order or tensor type that
// is not supported is kUnimplemented by name. What the numbers mean for a model is none of this file's
// business (gguf_config.h and others).
//
// Tests: gguf_test.cc (round trip, malformed input), golden_test.cc (files of PyPI gguf).
#ifndef INLAID_SDK_FORMATS_GGUF_FILE_H_
#define INLAID_SDK_FORMATS_GGUF_FILE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sdk/base/file_system.h"
#include "sdk/formats/gguf_value.h"
#include "sdk/tensor/tensor.h"

namespace inlaid::formats {

constexpr uint32_t kGgufMagic = 0x46554747;  // "GGUF"
constexpr uint32_t kGgufVersion = 3;
constexpr uint64_t kGgufAlignment = 32;

struct GgufTensor {
  std::string name;
  DType dtype;
  Shape shape;      // row-major: the reverse of what the file lists
  uint64_t offset;  // from the start of the file
};

class GgufFile {
 public:
  GgufFile(FileSystem& fs, const std::string& path);

  const std::string& path() const { return file_->path(); }
  const ReadableFile& file() const { return *file_; }
  const std::vector<GgufTensor>& tensors() const { return tensors_; }  // in the order of the file
  const GgufTensor* find_tensor(std::string_view name) const;

  // Typed access to metadata. A key that is there with another type is kDataLoss; missing is nothing, or for
  // the plain forms kDataLoss naming the key. Integers of every width and sign are accepted as integer.
  const GgufValue* find(std::string_view key) const;
  std::optional<int64_t> optional_integer(std::string_view key) const;
  std::optional<double> optional_number(std::string_view key) const;  // f32, f64 or an integer
  std::optional<bool> optional_flag(std::string_view key) const;
  std::optional<std::string> optional_text(std::string_view key) const;
  int64_t integer(std::string_view key) const;
  double number(std::string_view key) const;
  std::string text(std::string_view key) const;
  const std::vector<std::string>& texts(std::string_view key) const;
  std::vector<int64_t> integers(std::string_view key) const;

  const std::map<std::string, GgufValue, std::less<>>& metadata() const { return metadata_; }

 private:
  void read_table(GgufCursor& cursor, uint64_t count);
  void check_layout(uint64_t data_begin);
  std::unique_ptr<ReadableFile> file_;
  std::map<std::string, GgufValue, std::less<>> metadata_;
  std::vector<GgufTensor> tensors_;
};

}  // namespace inlaid::formats

#endif  // INLAID_SDK_FORMATS_GGUF_FILE_H_

// The safetensors file format: 8 bytes little-endian header length, a JSON header
//   {"__metadata__": {text: text}, NAME: {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]},
//   ...}
// then the tensors' bytes; offsets count from the end of the header.
//
// Reading is strict, since the file comes from outside: header at most 100 MB and inside the file, offsets
// contiguous from 0 to the end of the file in some order of the tensors (no hole, no overlap, nothing left
// over), size of each range equal to what type and shape say, no name twice. Anything else is kDataLoss
// naming file and tensor. Element types that the engine has no name for (I8, I16, F8_*) are kUnimplemented by
// name; BOOL is read as u8.
//
// Writing streams: the table is known first, values come tensor by tensor, so that memory is needed for a
// piece of one.
//
// Tests: safetensors_test.cc (round trip, malformed input), golden_test.cc (files of the safetensors
// library).
#ifndef INLAID_SDK_FORMATS_SAFETENSORS_H_
#define INLAID_SDK_FORMATS_SAFETENSORS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sdk/base/file_system.h"
#include "sdk/formats/weight_source.h"

namespace inlaid::formats {

constexpr uint64_t kMaxSafetensorsHeader = 100'000'000;

struct SafetensorsEntry {
  StoredTensor tensor;
  uint64_t begin, end;  // of its bytes, from the start of the file
};
struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;                      // sorted by name
  std::vector<std::pair<std::string, std::string>> metadata;  // as written
};

// Parses the header text (without the length) of a file whose tensor bytes are [data_begin, file_size).
SafetensorsHeader parse_safetensors_header(std::string_view text, uint64_t data_begin, uint64_t file_size,
                                           const std::string& path);

// One open file. Immutable; reads may come from several threads.
class SafetensorsFile : public WeightSource {
 public:
  SafetensorsFile(FileSystem& fs, const std::string& path);
  const std::vector<StoredTensor>& tensors() const override { return tensors_; }
  void read(size_t index, std::span<std::byte> out) const override;
  const std::vector<std::pair<std::string, std::string>>& metadata() const { return metadata_; }

 private:
  std::unique_ptr<ReadableFile> file_;
  std::vector<StoredTensor> tensors_;
  std::vector<uint64_t> begin_;
  std::vector<std::pair<std::string, std::string>> metadata_;
};

// Writes one file: table first, then write() the bytes of the tensors in the order of order(). The file is
// complete, and on the disk, after finish(). Without finish() what is there is no safetensors file.
class SafetensorsWriter {
 public:
  // `tensors` need names, types and shapes. kInvalidArgument for a name given twice or a type that the format
  // lacks.
  SafetensorsWriter(FileSystem& fs, const std::string& path, const std::vector<StoredTensor>& tensors,
                    const std::vector<std::pair<std::string, std::string>>& metadata = {{"format", "pt"}});
  // Indices into `tensors` in the order in which their bytes are to be written: wide types first, so that
  // every tensor is aligned to its element size, then as given.
  const std::vector<size_t>& order() const { return order_; }
  void write(std::span<const std::byte> bytes);
  void finish();

 private:
  std::unique_ptr<WritableFile> file_;
  std::string path_;
  std::vector<size_t> order_;
  uint64_t left_ = 0;
};

}  // namespace inlaid::formats

#endif  // INLAID_SDK_FORMATS_SAFETENSORS_H_

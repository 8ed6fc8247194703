#include "sdk/formats/identity.h"

#include <algorithm>

#include "sdk/base/hash.h"

namespace inlaid::formats {

std::string weights_identity(FileSystem& fs, const Json& config, const std::vector<StoredTensor>& tensors,
                             std::vector<std::string> files) {
  Sha256 hash;
  hash.update("inlaid weights identity 1\n");
  hash.update(to_text(config));
  for (const StoredTensor& tensor : tensors) {
    hash.update("\n" + tensor.name + " " + dtype_name(tensor.dtype) + " " + shape_text(tensor.shape));
  }
  std::sort(files.begin(), files.end());
  std::vector<std::byte> buffer;
  for (const std::string& path : files) {
    const auto file = fs.open(path);
    const uint64_t size = file->size();
    hash.update("\nfile of " + std::to_string(size) + " bytes\n");
    const uint64_t piece = std::min(size, uint64_t{1} << 20);
    buffer.resize(piece);
    file->read_at(0, buffer);
    hash.update(buffer);
    file->read_at(size - piece, buffer);
    hash.update(buffer);
  }
  return hash.hex();
}

}  // namespace inlaid::formats

#include "sdk/formats/gguf_source.h"

#include <algorithm>
#include <cstring>

#include "sdk/base/error.h"

namespace inlaid::formats {

GgufSource::GgufSource(std::unique_ptr<GgufFile> file, const LlamaGeometry& geometry)
    : file_(std::move(file)) {
  struct Found {
    StoredTensor tensor;
    Place place;
  };
  std::vector<Found> found;
  for (const GgufTensor& stored : file_->tensors()) {
    if (stored.name == "rope_freqs.weight") continue;  // became rope_scaling in the configuration
    const auto name = hugging_face_name(stored.name);
    Found entry{{name ? name->name : stored.name, stored.dtype, stored.shape, file_->path()},
                {stored.offset, 0}};
    if (name && geometry.rows_of(name->rows) != RowOrder::kSame) {
      const int64_t rows = geometry.heads_of(name->rows) * geometry.head_size;
      if (stored.shape[0] != rows) {
        fail(Code::kDataLoss, file_->path(), ": tensor '", stored.name, "' has ", stored.shape[0],
             " rows, the metadata says ", geometry.heads_of(name->rows), " heads of ", geometry.head_size);
      }
      entry.place.head_size = geometry.head_size;
    }
    found.push_back(std::move(entry));
  }
  std::sort(found.begin(), found.end(),
            [](const Found& a, const Found& b) { return a.tensor.name < b.tensor.name; });
  for (Found& entry : found) {
    if (!tensors_.empty() && tensors_.back().name == entry.tensor.name) {
      fail(Code::kDataLoss, file_->path(), ": tensor '", entry.tensor.name, "' appears under two names");
    }
    tensors_.push_back(std::move(entry.tensor));
    places_.push_back(entry.place);
  }
}

void GgufSource::read(size_t index, std::span<std::byte> out) const {
  const StoredTensor& tensor = tensors_.at(index);
  const Place& place = places_[index];
  INLAID_CHECK(out.size() == static_cast<uint64_t>(byte_count(tensor.dtype, tensor.shape)));
  if (place.head_size == 0) {
    file_->file().read_at(place.offset, out);
    return;
  }
  // Head by head through a buffer of one head.
  const size_t row_bytes = out.size() / static_cast<size_t>(tensor.shape[0]);
  const size_t head_bytes = row_bytes * static_cast<size_t>(place.head_size);
  std::vector<std::byte> head(head_bytes);
  for (size_t begin = 0; begin < out.size(); begin += head_bytes) {
    file_->file().read_at(place.offset + begin, head);
    for (int64_t row = 0; row < place.head_size; ++row) {
      const size_t to = static_cast<size_t>(half_split_row(row, place.head_size));
      std::memcpy(out.data() + begin + to * row_bytes, head.data() + static_cast<size_t>(row) * row_bytes,
                  row_bytes);
    }
  }
}

}  // namespace inlaid::formats

// The tensors of a llama-like GGUF file under Hugging Face names, with the rows of q and k in half-split
// order (llama_names.h). A tensor that the table of names does not know keeps its own name, so that whoever
// loads the model can say that it is left over.
#ifndef INLAID_SDK_FORMATS_GGUF_SOURCE_H_
#define INLAID_SDK_FORMATS_GGUF_SOURCE_H_

#include <memory>
#include <vector>

#include "sdk/formats/gguf_file.h"
#include "sdk/formats/llama_geometry.h"
#include "sdk/formats/weight_source.h"

namespace inlaid::formats {

class GgufSource : public WeightSource {
 public:
  // kDataLoss if a tensor that is to be reordered does not have the shape that `geometry` says.
  GgufSource(std::unique_ptr<GgufFile> file, const LlamaGeometry& geometry);
  const std::vector<StoredTensor>& tensors() const override { return tensors_; }
  void read(size_t index, std::span<std::byte> out) const override;

 private:
  struct Place {
    uint64_t offset;
    int64_t head_size;  // 0: rows as they lie
  };
  std::unique_ptr<GgufFile> file_;
  std::vector<StoredTensor> tensors_;
  std::vector<Place> places_;
};

}  // namespace inlaid::formats

#endif  // INLAID_SDK_FORMATS_GGUF_SOURCE_H_

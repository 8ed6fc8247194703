// A set of stored tensors under Hugging Face names and orientation, whatever file they come from.
#ifndef INLAID_SDK_FORMATS_WEIGHT_SOURCE_H_
#define INLAID_SDK_FORMATS_WEIGHT_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sdk/base/file_system.h"
#include "sdk/base/json.h"
#include "sdk/formats/certificate_place.h"
#include "sdk/tensor/tensor.h"

namespace inlaid::formats {

struct StoredTensor {
  std::string name;    // "model.layers.0.self_attn.q_proj.weight"
  DType dtype;         // as stored
  Shape shape;         // row-major, [out, in] for linear weights
  std::string file;    // for messages
};

class WeightSource {
 public:
  virtual ~WeightSource() = default;
  virtual const std::vector<StoredTensor>& tensors() const = 0;  // sorted by name
  // Fills `out` (exactly byte_count bytes) with tensors()[index] as stored. kDataLoss for damage. Safe from several threads.
  virtual void read(size_t index, std::span<std::byte> out) const = 0;
};

// Everything that a model folder or file holds, in Hugging Face form.
struct ModelFiles {
  std::string path;
  Json config;                 // as config.json would say it ("model_type": "llama", ...)
  Json generation_config;      // object; {} when absent
  std::string tokenizer_json;  // "" when there is none
  Json tokenizer_config;       // as tokenizer_config.json: special tokens and their ids, add_bos_token, ...; {} when absent
  std::string chat_template;   // "" when there is none
  std::unique_ptr<WeightSource> weights;
  // sha256 over names, types, shapes and bytes is too slow at load; this identity is sha256 over config text, sorted tensor
  // table and file sizes plus the first and last 1 MiB of every weight file.
  std::string identity;
};

// Opens a Hugging Face folder (config.json + model.safetensors or index + shards) or a GGUF file. kNotFound, kDataLoss,
// kUnimplemented for a tensor type or architecture that is not supported, by name.
// Without `tokenizer` its tokenizer.json is neither read nor made, so that a tokenizer which is not supported is no
// obstacle to a model for which another file is given.
ModelFiles open_model(FileSystem& fs, const std::string& path, bool tokenizer = true);

// One tensor to be written: values are produced on demand, so that an export needs memory for one tensor only.
struct ExportTensor {
  std::string name;  // Hugging Face name
  Shape shape;
  DType dtype;       // how it shall be stored: f32, f16, bf16; in GGUF also blocks (encoded_type())
  std::function<void(std::span<float> values)> values;
};

constexpr uint64_t kShardBytes = uint64_t{5} << 30;

// config.json, generation_config.json, model.safetensors (sharded with an index above `shard_bytes`), tokenizer.json,
// tokenizer_config.json, chat_template.jinja; written into a temporary folder, synced, renamed. `files` supplies config,
// tokenizer and template; its weights are not read.
void write_hugging_face(FileSystem& fs, const std::string& folder, const ModelFiles& files,
                        const std::vector<ExportTensor>& tensors, uint64_t shard_bytes = kShardBytes,
                        const Certify& certify = nullptr);

// One GGUF v3 file with architecture metadata, tokenizer and template; q and k rows permuted back to interleaved order.
void write_gguf(FileSystem& fs, const std::string& path, const ModelFiles& files, const std::vector<ExportTensor>& tensors,
                const Certify& certify = nullptr);

// PEFT adapter folder: adapter_config.json + adapter_model.safetensors, keys "base_model.model." + module + suffix.
struct PeftAdapter {
  Json config;                       // adapter_config.json
  std::vector<StoredTensor> tensors; // names as in the file
  std::unique_ptr<WeightSource> weights;
};
PeftAdapter open_peft(FileSystem& fs, const std::string& folder);
void write_peft(FileSystem& fs, const std::string& folder, const Json& config, const std::vector<ExportTensor>& tensors,
                const Certify& certify = nullptr);

// One safetensors file, for checkpoints and the above.
std::unique_ptr<WeightSource> open_safetensors(FileSystem& fs, const std::string& path);

}  // namespace inlaid::formats

#endif  // INLAID_SDK_FORMATS_WEIGHT_SOURCE_H_

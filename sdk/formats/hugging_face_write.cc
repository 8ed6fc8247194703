#include <algorithm>
#include <map>

#include "sdk/base/error.h"
#include "sdk/formats/encode.h"
#include "sdk/formats/fused.h"
#include "sdk/formats/hugging_face.h"
#include "sdk/formats/llama_geometry.h"
#include "sdk/formats/safetensors.h"
#include "sdk/formats/staged.h"
#include "sdk/formats/tokenizer_config.h"

namespace inlaid::formats {
namespace {

uint64_t stored_bytes(const ExportTensor& tensor) {
  return static_cast<uint64_t>(byte_count(tensor.dtype, tensor.shape));
}

// Names of torch, as config.json spells them.
const char* torch_name(DType type) {
  switch (type) {
    case DType::f32:
      return "float32";
    case DType::f16:
      return "float16";
    case DType::bf16:
      return "bfloat16";
    default:
      break;
  }
  fail(Code::kInvalidArgument, "a Hugging Face folder is written as f32, f16 or bf16, not as ",
       dtype_name(type));
}

// The configuration as it is true of the folder: type of the weights (the one with most bytes), no
// quantisation, rotary keys that every version of transformers reads.
Json exported_config(Json config, const std::vector<ExportTensor>& tensors) {
  std::map<DType, uint64_t> bytes;
  for (const ExportTensor& tensor : tensors) {
    torch_name(tensor.dtype);
    bytes[tensor.dtype] += stored_bytes(tensor);
  }
  config = with_rope_of_version_4(std::move(config));
  config.erase("quantization_config");
  config.erase("dtype");
  const auto most = std::max_element(bytes.begin(), bytes.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most != bytes.end()) config["torch_dtype"] = torch_name(most->first);
  return config;
}

// Ends (one past the last tensor) of the shards, filled in order up to `shard_bytes` each.
std::vector<size_t> cut(const std::vector<ExportTensor>& tensors, uint64_t shard_bytes) {
  std::vector<size_t> ends;
  uint64_t filled = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const uint64_t bytes = stored_bytes(tensors[i]);
    if (filled > 0 && bytes > shard_bytes - std::min(shard_bytes, filled)) {
      ends.push_back(i);
      filled = 0;
    }
    filled += bytes;
  }
  ends.push_back(tensors.size());
  return ends;
}

std::string shard_name(size_t shard, size_t shards) {
  const auto digits = [](size_t n) {
    std::string text = std::to_string(n);
    return std::string(text.size() < 5 ? 5 - text.size() : 0, '0') + text;
  };
  return "model-" + digits(shard + 1) + "-of-" + digits(shards) + ".safetensors";
}

void write_shards(FileSystem& fs, StagedOutput& output, const std::vector<ExportTensor>& tensors,
                  const std::vector<size_t>& ends) {
  Json index = Json::object();
  uint64_t total = 0;
  for (const ExportTensor& tensor : tensors) total += stored_bytes(tensor);
  index["metadata"]["total_size"] = total;
  std::vector<Json::object_t::value_type>& map =
      (index["weight_map"] = Json::object()).get_ref<Json::object_t&>();
  size_t begin = 0;
  for (size_t shard = 0; shard < ends.size(); ++shard) {
    const std::string name = shard_name(shard, ends.size());
    const auto part = std::span(tensors).subspan(begin, ends[shard] - begin);
    write_safetensors(fs, join_path(output.path(), name), part);
    for (const ExportTensor& tensor : part) map.emplace_back(tensor.name, name);
    begin = ends[shard];
  }
  output.write_text("model.safetensors.index.json", pretty_text(index));
}

void check_names(const std::vector<ExportTensor>& tensors) {
  std::map<std::string_view, int> seen;
  for (const ExportTensor& tensor : tensors) {
    if (++seen[tensor.name] > 1) fail(Code::kInvalidArgument, "tensor '", tensor.name, "' is given twice");
  }
}

}  // namespace

void write_safetensors(FileSystem& fs, const std::string& path, std::span<const ExportTensor> tensors) {
  std::vector<StoredTensor> table;
  for (const ExportTensor& tensor : tensors) table.push_back({tensor.name, tensor.dtype, tensor.shape, path});
  SafetensorsWriter writer(fs, path, table);
  for (size_t index : writer.order()) {
    encode_tensor(tensors[index], tensors[index].dtype, {},
                  [&](std::span<const std::byte> bytes) { writer.write(bytes); });
  }
  writer.finish();
}

void write_hugging_face(FileSystem& fs, const std::string& folder, const ModelFiles& files,
                        const std::vector<ExportTensor>& parts, uint64_t shard_bytes, const Certify& certify) {
  check_names(parts);
  const std::vector<ExportTensor> tensors = join_fused(parts, files.config);
  const Json config = exported_config(files.config, tensors);
  StagedOutput output(fs, folder, StagedOutput::Kind::kFolder);
  output.write_text("config.json", pretty_text(config));
  if (!files.generation_config.empty())
    output.write_text("generation_config.json", pretty_text(files.generation_config));
  if (!files.tokenizer_json.empty()) output.write_text("tokenizer.json", files.tokenizer_json);
  if (!files.tokenizer_config.empty()) {
    output.write_text("tokenizer_config.json",
                      pretty_text(without_chat_template(files.tokenizer_config, files.chat_template)));
  }
  if (!files.chat_template.empty()) output.write_text("chat_template.jinja", files.chat_template);
  const std::vector<size_t> ends = cut(tensors, shard_bytes);
  if (ends.size() == 1) {
    write_safetensors(fs, join_path(output.path(), "model.safetensors"), tensors);
  } else {
    write_shards(fs, output, tensors, ends);
  }
  if (certify) output.write_text(kCertificateFile, certify(output.path()));
  output.commit();
}

}  // namespace inlaid::formats

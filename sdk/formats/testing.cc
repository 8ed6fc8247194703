#include "sdk/formats/testing.h"

#include <cmath>

#include "kernels/storage/storage.h"
#include "sdk/formats/llama_geometry.h"

namespace inlaid::formats {

size_t index_of(const WeightSource& source, const std::string& name) {
  for (size_t i = 0; i < source.tensors().size(); ++i) {
    if (source.tensors()[i].name == name) return i;
  }
  ADD_FAILURE() << "no tensor " << name;
  return 0;
}

std::vector<std::byte> bytes_of(const WeightSource& source, const std::string& name) {
  const size_t index = index_of(source, name);
  const StoredTensor& tensor = source.tensors()[index];
  std::vector<std::byte> out(static_cast<size_t>(byte_count(tensor.dtype, tensor.shape)));
  source.read(index, out);
  return out;
}

std::vector<float> values_of(const WeightSource& source, const std::string& name) {
  const StoredTensor& tensor = source.tensors()[index_of(source, name)];
  const std::vector<std::byte> bytes = bytes_of(source, name);
  std::vector<float> out(static_cast<size_t>(element_count(tensor.shape)));
  kernels::portable::to_f32(tensor.dtype, bytes.data(), static_cast<int64_t>(out.size()), out.data());
  return out;
}

void write_text(FileSystem& fs, const std::string& path, const std::string& text) {
  fs.make_folders(parent_path(path));
  const auto file = fs.create(path);
  file->write(std::as_bytes(std::span(text.data(), text.size())));
  file->close();
}

void copy_into(FileSystem& to, const std::string& target, FileSystem& from, const std::string& source) {
  if (!from.is_folder(source)) return write_text(to, target, read_text(from, source));
  for (const std::string& name : from.list(source))
    copy_into(to, join_path(target, name), from, join_path(source, name));
}

std::vector<ExportTensor> exports_of(const WeightSource& source, DType dtype) {
  std::vector<ExportTensor> out;
  for (const StoredTensor& tensor : source.tensors()) {
    out.push_back({tensor.name, tensor.shape, dtype, [&source, name = tensor.name](std::span<float> values) {
                     const std::vector<float> all = values_of(source, name);
                     std::copy(all.begin(), all.end(), values.begin());
                   }});
  }
  return out;
}

Json tiny_config() {
  return parse_json(
      R"({"architectures":["LlamaForCausalLM"],"model_type":"llama","vocab_size":12,"hidden_size":32,
      "intermediate_size":64,"num_hidden_layers":1,"num_attention_heads":2,"num_key_value_heads":1,"head_dim":8,
      "hidden_act":"silu","max_position_embeddings":64,"rms_norm_eps":1e-5,"rope_theta":10000.0,"rope_scaling":null,
      "attention_bias":true,"mlp_bias":false,"tie_word_embeddings":true,"bos_token_id":0,"eos_token_id":[1,2]})",
      "tiny_config");
}

std::vector<ExportTensor> tiny_tensors(const Json& config, DType dtype) {
  const LlamaGeometry geometry = parse_llama_geometry(config, "tiny_config");
  std::vector<ExportTensor> out;
  for (const std::string& name : llama_tensor_names(geometry.parts)) {
    const double seed = static_cast<double>(out.size());
    // Under tiny_config(), o_proj has 16 columns, which no block of 32 fits into.
    const bool blocks = geometry.shape_of(name).back() % kernels::dtype_info(dtype).block == 0;
    out.push_back(
        {name, geometry.shape_of(name), blocks ? dtype : DType::f16, [seed](std::span<float> values) {
           for (size_t i = 0; i < values.size(); ++i) {
             values[i] = static_cast<float>(std::sin(seed + 0.37 * static_cast<double>(i)));
           }
         }});
  }
  return out;
}

std::string tiny_tokenizer() {
  return R"({"version":"1.0","truncation":null,"padding":null,"added_tokens":[{"id":0,"content":"<s>","single_word":false,)"
         R"("lstrip":false,"rstrip":false,"normalized":false,"special":true},{"id":9,"content":"<tool>","single_word":false,)"
         R"("lstrip":false,"rstrip":false,"normalized":false,"special":false}],"normalizer":null,"pre_tokenizer":)"
         R"({"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":true},"post_processor":null,)"
         R"("decoder":{"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true,"use_regex":true},"model":)"
         R"({"type":"BPE","dropout":null,"unk_token":null,"continuing_subword_prefix":null,"end_of_word_suffix":null,)"
         R"("fuse_unk":false,"byte_fallback":false,"ignore_merges":false,"vocab":{"<s>":0,"a":1,"b":2,"c":3,"ab":4,)"
         R"("abc":5,"Ġ":6,"Ġab":7,"Ċ":8,"<tool>":9},"merges":["a b","ab c","Ġ ab"]}})";
}

ModelFiles tiny_model() {
  ModelFiles out;
  out.path = "tiny";
  out.config = tiny_config();
  out.generation_config = Json{{"bos_token_id", 0}, {"eos_token_id", {1, 2}}};
  out.tokenizer_json = tiny_tokenizer();
  out.tokenizer_config = Json{{"bos_token", "<s>"}, {"eos_token", "a"}, {"pad_token", "<s>"}};
  out.chat_template = "{{ messages[0].content }}";
  return out;
}

Outcome outcome_of(const std::function<void()>& fn) {
  try {
    fn();
  } catch (const Error& error) {
    return {error.code(), error.message()};
  }
  return {};
}

}  // namespace inlaid::formats

// GGUF files of whole models: configuration, tensors, tokenizer, there and back.
#include <algorithm>
#include <cmath>

#include "sdk/base/testing/memory_file_system.h"
#include "sdk/formats/gguf_config.h"
#include "sdk/formats/gguf_file.h"
#include "sdk/formats/gguf_types.h"
#include "sdk/formats/llama_names.h"
#include "sdk/formats/testing.h"

namespace inlaid::formats {
namespace {

using testing::MemoryFileSystem;

ModelFiles written_and_read(FileSystem& fs, const ModelFiles& model, DType dtype) {
  fs.remove_all("/m.gguf");
  write_gguf(fs, "/m.gguf", model, tiny_tensors(model.config, dtype));
  return open_model(fs, "/m.gguf");
}

TEST(GgufModel, ConfigurationRoundTrip) {
  MemoryFileSystem fs;
  ModelFiles model = tiny_model();
  for (const char* scaling :
       {"null", R"({"rope_type":"linear","factor":2.5})",
        R"({"rope_type":"llama3","factor":8.0,"low_freq_factor":1.0,"high_freq_factor":4.0,
                                  "original_max_position_embeddings":64})"}) {
    for (bool flag : {false, true}) {
      model.config["rope_scaling"] = parse_json(scaling, "scaling");
      model.config["attention_bias"] = flag;
      model.config["mlp_bias"] = !flag;
      model.config["tie_word_embeddings"] = flag;
      const ModelFiles read = written_and_read(fs, model, DType::f32);
      for (const auto& [key, value] : model.config.items()) {
        if (key == "eos_token_id") continue;  // a list: in generation_config.json
        EXPECT_EQ(read.config[key], value) << key << " " << scaling;
      }
      EXPECT_EQ(read.generation_config["eos_token_id"], (Json{1, 2}));
      for (const ExportTensor& tensor : tiny_tensors(model.config, DType::f32)) {
        std::vector<float> wanted(static_cast<size_t>(element_count(tensor.shape)));
        tensor.values(wanted);
        EXPECT_EQ(values_of(*read.weights, tensor.name), wanted) << tensor.name;
      }
    }
  }
}

// qwen2 and qwen3: their own keys and tensors, and rows of q and k as they are.
TEST(GgufModel, QwenRoundTrip) {
  MemoryFileSystem fs;
  for (const char* type : {"qwen2", "qwen3"}) {
    ModelFiles model = tiny_model();
    model.config["model_type"] = type;
    model.config["architectures"] = {std::string(type) == "qwen2" ? "Qwen2ForCausalLM" : "Qwen3ForCausalLM"};
    model.config.erase("mlp_bias");
    model.config.erase("attention_bias");
    if (std::string(type) == "qwen3") model.config["attention_bias"] = false;
    model.config["rope_scaling"] = parse_json(
        R"({"rope_type":"yarn","factor":4.0,"original_max_position_embeddings":16,"beta_fast":16.0})", "s");
    const ModelFiles read = written_and_read(fs, model, DType::f32);
    for (const auto& [key, value] : model.config.items()) {
      if (key == "eos_token_id") continue;
      EXPECT_EQ(read.config[key], value) << key;
    }
    const std::vector<ExportTensor> tensors = tiny_tensors(model.config, DType::f32);
    EXPECT_EQ(read.weights->tensors().size(), tensors.size());
    for (const ExportTensor& tensor : tensors) {
      std::vector<float> wanted(static_cast<size_t>(element_count(tensor.shape)));
      tensor.values(wanted);
      EXPECT_EQ(values_of(*read.weights, tensor.name), wanted) << tensor.name;
    }
    const GgufFile file(fs, "/m.gguf");
    EXPECT_EQ(file.text("general.architecture"), type);
    EXPECT_EQ(file.number(std::string(type) + ".rope.scaling.yarn_beta_fast"), 16);
    EXPECT_EQ(file.find_tensor("blk.0.attn_k_norm.weight") != nullptr, std::string(type) == "qwen3");
    // Row 1 of a head is row 1 of the half-split order.
    std::vector<float> raw(static_cast<size_t>(element_count(file.find_tensor("blk.0.attn_q.weight")->shape)));
    file.file().read_at(file.find_tensor("blk.0.attn_q.weight")->offset, std::as_writable_bytes(std::span(raw)));
    EXPECT_EQ(raw, values_of(*read.weights, "model.layers.0.self_attn.q_proj.weight"));
    model.config["use_sliding_window"] = true;
    EXPECT_FAILS(Code::kUnimplemented, "sliding window", write_gguf(fs, "/w.gguf", model, tensors));
  }
}

TEST(GgufModel, StoredTypesAndRowOrder) {
  MemoryFileSystem fs;
  const ModelFiles model = tiny_model();
  for (DType dtype : {DType::f32, DType::f16, DType::bf16, DType::q8_0, DType::q4_0, DType::q5_0}) {
    const ModelFiles read = written_and_read(fs, model, dtype);
    const auto& tensors = read.weights->tensors();
    const std::string q = "model.layers.0.self_attn.q_proj.weight", norm = "model.norm.weight";
    EXPECT_EQ(tensors[index_of(*read.weights, q)].dtype, dtype);
    EXPECT_EQ(tensors[index_of(*read.weights, norm)].dtype, DType::f32);  // vectors stay f32
    EXPECT_EQ(tensors[index_of(*read.weights, "model.layers.0.self_attn.q_proj.bias")].dtype, DType::f32);
    // In the file itself, row 1 of a head of 8 is row 4 of the half-split order, of weights and of biases.
    const GgufFile file(fs, "/m.gguf");
    const GgufTensor& stored = *file.find_tensor("blk.0.attn_q.weight");
    const size_t row = static_cast<size_t>(byte_count(dtype, {32}));
    std::vector<std::byte> raw(16 * row);
    file.file().read_at(stored.offset, raw);
    const std::vector<std::byte> half_split = bytes_of(*read.weights, q);
    for (size_t r = 0; r < 16; ++r) {
      const size_t from = static_cast<size_t>(half_split_row(static_cast<int64_t>(r), 8));
      EXPECT_TRUE(std::equal(raw.begin() + static_cast<long>(r * row),
                             raw.begin() + static_cast<long>((r + 1) * row),
                             half_split.begin() + static_cast<long>(from * row)))
          << r;
    }
    std::vector<float> bias(16);
    file.file().read_at(file.find_tensor("blk.0.attn_q.bias")->offset,
                        std::as_writable_bytes(std::span(bias)));
    EXPECT_EQ(bias[1], values_of(*read.weights, "model.layers.0.self_attn.q_proj.bias")[4]);
  }
}

TEST(GgufModel, IdentityFollowsContent) {
  MemoryFileSystem fs;
  ModelFiles model = tiny_model();
  const std::string first = written_and_read(fs, model, DType::f32).identity;
  EXPECT_EQ(first.size(), 64u);
  EXPECT_EQ(written_and_read(fs, model, DType::f32).identity, first);
  EXPECT_NE(written_and_read(fs, model, DType::f16).identity, first);
  model.config["rope_theta"] = 20000.0;
  EXPECT_NE(written_and_read(fs, model, DType::f32).identity, first);
}

TEST(GgufModel, WriterRefusesWhatDoesNotFit) {
  MemoryFileSystem fs;
  const ModelFiles model = tiny_model();
  const auto refused = [&](const ModelFiles& files, std::vector<ExportTensor> tensors, Code code,
                           const char* text) {
    EXPECT_FAILS(code, text, write_gguf(fs, "/bad.gguf", files, tensors));
    EXPECT_EQ(fs.list("/"), std::vector<std::string>{}) << text;
  };
  const auto changed = [](const char* key, Json value) {
    ModelFiles files = tiny_model();
    files.config[key] = std::move(value);
    return files;
  };
  auto tensors = tiny_tensors(model.config, DType::f32);
  refused(changed("model_type", "gpt2"), tensors, Code::kUnimplemented, "gpt2");
  for (const char* type : {"phi3", "gemma2"}) refused(changed("model_type", type), tensors, Code::kUnimplemented, type);
  refused(changed("model_type", "mistral"), tensors, Code::kUnimplemented, "sliding window");  // of 4096, by default
  refused(changed("sliding_window", 8), tensors, Code::kUnimplemented, "sliding window");
  refused(changed("hidden_act", "gelu"), tensors, Code::kUnimplemented, "hidden_act");
  refused(changed("rope_scaling", parse_json(R"({"rope_type":"dynamic","factor":8.0})", "s")), tensors,
          Code::kUnimplemented, "dynamic");
  refused(changed("tie_word_embeddings", false), tensors, Code::kInvalidArgument,
          "'lm_head.weight' of the model is missing");
  refused(changed("intermediate_size", 96), tensors, Code::kInvalidArgument, "shape [64, 32]");
  refused(changed("attention_bias", false), tensors, Code::kInvalidArgument, "not part of the model");
  auto twice = tensors;
  twice.push_back(tensors[0]);
  refused(model, twice, Code::kInvalidArgument, "given twice");
  auto infinite = tensors;
  infinite[0].values = [](std::span<float> values) { std::fill(values.begin(), values.end(), INFINITY); };
  refused(model, infinite, Code::kOutOfRange, infinite[0].name.c_str());
  auto large = tensors;
  large[0].dtype = DType::f16;
  large[0].values = [](std::span<float> values) { std::fill(values.begin(), values.end(), 65520.0f); };
  refused(model, large, Code::kOutOfRange, "f16 cannot store");
  auto narrow = tensors;
  for (ExportTensor& tensor : narrow) tensor.dtype = DType::q8_0;
  refused(model, narrow, Code::kInvalidArgument, "o_proj.weight");  // 16 columns
  refused(changed("rope_scaling", parse_json(R"({"rope_type":"llama3","factor":8.0,"low_freq_factor":2.0,
      "high_freq_factor":4.0,"original_max_position_embeddings":64})",
                                             "s")),
          tensors, Code::kUnimplemented, "low_freq_factor 2");
}

// A GGUF file of the tiny model with one metadata key set to something else, or removed.
void with_metadata(FileSystem& fs, const std::string& key, const GgufValue* value) {
  fs.remove_all("/m.gguf");
  const ModelFiles model = tiny_model();
  write_gguf(fs, "/m.gguf", model, tiny_tensors(model.config, DType::f32));
  const GgufFile file(fs, "/m.gguf");
  auto metadata = file.metadata();
  metadata.erase(key);
  if (value != nullptr) metadata.emplace(key, *value);
  std::string out;
  append_number(out, kGgufMagic);
  append_number(out, kGgufVersion);
  append_number(out, uint64_t{file.tensors().size()});
  append_number(out, uint64_t{metadata.size()});
  for (const auto& [name, entry] : metadata) {
    append_text(out, name);
    append_value(out, entry);
  }
  std::string data;
  for (const GgufTensor& tensor : file.tensors()) {
    append_text(out, tensor.name);
    append_number(out, static_cast<uint32_t>(tensor.shape.size()));
    for (size_t d = tensor.shape.size(); d-- > 0;) append_number(out, static_cast<uint64_t>(tensor.shape[d]));
    append_number(out, ggml_of_dtype(tensor.dtype));
    append_number(out, uint64_t{data.size()});
    std::string bytes(static_cast<size_t>(byte_count(tensor.dtype, tensor.shape)), '\0');
    file.file().read_at(tensor.offset, std::as_writable_bytes(std::span(bytes)));
    data += bytes;
    data.resize((data.size() + 31) / 32 * 32, '\0');
  }
  out.resize((out.size() + 31) / 32 * 32, '\0');
  write_text(fs, "/changed.gguf", out + data);
}

TEST(GgufModel, MetadataThatChangesTheComputationIsRefusedByName) {
  MemoryFileSystem fs;
  with_metadata(fs, "unrelated", nullptr);
  EXPECT_NO_THROW(open_model(fs, "/changed.gguf"));
  const auto refused = [&](const std::string& key, const GgufValue& value, Code code,
                           const std::string& text) {
    with_metadata(fs, key, &value);
    EXPECT_FAILS(code, text, open_model(fs, "/changed.gguf"));
  };
  refused("general.architecture", gguf_string("qwen2moe"), Code::kUnimplemented, "'qwen2moe'");
  refused("llama.expert_count", gguf_u32(8), Code::kUnimplemented, "experts");
  refused("llama.attention.sliding_window", gguf_u32(4096), Code::kUnimplemented,
          "llama.attention.sliding_window");
  refused("llama.rope.dimension_count", gguf_u32(4), Code::kUnimplemented, "partial rotation");
  refused("llama.rope.scaling.type", gguf_string("longrope"), Code::kUnimplemented, "longrope");
  refused("llama.rope.scaling.type", gguf_string("yarn"), Code::kDataLoss, "llama.rope.scaling.factor");
  refused("llama.rope.scaling.attn_factor", gguf_f32(2), Code::kUnimplemented, "attn_factor");
  refused("llama.attention.value_length", gguf_u32(16), Code::kUnimplemented, "value_length");
  refused("llama.attention.causal", gguf_bool(false), Code::kUnimplemented, "causal");
  refused("llama.vocab_size", gguf_u32(13), Code::kDataLoss, "12 rows");
  refused("llama.attention.head_count", gguf_u32(4), Code::kDataLoss, "heads");
  refused("llama.attention.head_count", gguf_u32(0), Code::kDataLoss, "num_attention_heads");
  refused("llama.attention.head_count_kv", gguf_i32s({1, 2}), Code::kUnimplemented, "layer to layer");
  refused("tokenizer.ggml.model", gguf_string("rwkv"), Code::kUnimplemented, "'rwkv'");
  refused("tokenizer.ggml.pre", gguf_string("kimi-k2"), Code::kUnimplemented,
          "'kimi-k2' is not supported (its files list no merges); give the model's tokenizer.json");
  refused("tokenizer.ggml.bos_token_id", gguf_u32(99), Code::kDataLoss, "99");
  refused("tokenizer.ggml.merges", gguf_strings({"a b", "a  b"}), Code::kDataLoss, "merge 1");
  refused("tokenizer.ggml.merges", gguf_strings({"a c"}), Code::kDataLoss, "merge 0");
  refused("tokenizer.ggml.token_type", gguf_i32s({1, 1}), Code::kDataLoss, "2 entries");
  refused("tokenizer.ggml.tokens", gguf_strings(std::vector<std::string>(12, "x")), Code::kDataLoss,
          "same text");
  refused("tokenizer.ggml.tokens",
          gguf_strings({"\xff", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"}), Code::kDataLoss,
          "not UTF-8");
  with_metadata(fs, "tokenizer.ggml.pre", nullptr);
  EXPECT_FAILS(Code::kUnimplemented, "tokenizer.ggml.pre is missing", open_model(fs, "/changed.gguf"));
  with_metadata(fs, "llama.block_count", nullptr);
  EXPECT_FAILS(Code::kDataLoss, "llama.block_count", open_model(fs, "/changed.gguf"));
}

// Damage anywhere in the header of a whole model gives an Error or a model that can be read, never anything
// else.
TEST(GgufModel, BitFlipsAreErrorsOrHarmless) {
  MemoryFileSystem fs;
  const ModelFiles model = tiny_model();
  write_gguf(fs, "/m.gguf", model, tiny_tensors(model.config, DType::q8_0));
  const std::string whole = read_text(fs, "/m.gguf");
  uint64_t header = whole.size();
  const GgufFile file(fs, "/m.gguf");
  for (const GgufTensor& tensor : file.tensors()) header = std::min(header, tensor.offset);
  int refused = 0;
  for (uint64_t bit = 0; bit < 8 * header;
       bit += 3) {  // 3 and 8 have no common factor: every bit of a byte has its turn
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    write_text(fs, "/flip", damaged);
    const Outcome outcome = outcome_of([&] {
      const ModelFiles files = open_model(fs, "/flip");
      for (const StoredTensor& tensor : files.weights->tensors()) bytes_of(*files.weights, tensor.name);
    });
    if (outcome.code == Code::kOk) continue;
    ++refused;
    EXPECT_TRUE(outcome.code == Code::kDataLoss || outcome.code == Code::kUnimplemented) << outcome.message;
  }
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace inlaid::formats

// Against files that other people's libraries wrote (tests/golden/formats/make_golden.py).
#include <cmath>
#include <cstring>

#include "sdk/base/testing/memory_file_system.h"
#include "sdk/formats/gguf_file.h"
#include "sdk/formats/safetensors.h"
#include "sdk/formats/testing.h"

namespace inlaid::formats {
namespace {

FileSystem& disk() {
  return posix_file_system();
}

template <typename T>
std::vector<T> raw(const WeightSource& source, const std::string& name) {
  const std::vector<std::byte> bytes = bytes_of(source, name);
  std::vector<T> out(bytes.size() / sizeof(T));
  std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

TEST(Golden, SafetensorsTypes) {
  const SafetensorsFile file(disk(), golden("types.safetensors"));
  const auto tensor = [&](const char* name) { return file.tensors()[index_of(file, name)]; };
  EXPECT_EQ(file.tensors().size(), 10u);
  const auto f64 = raw<double>(file, "f64");
  for (size_t i = 0; i < 6; ++i) EXPECT_EQ(f64.at(i), 0.25 * static_cast<double>(i) - 2.0);
  for (const char* name : {"f32", "f16", "bf16"}) {
    const auto values = values_of(file, name);
    for (size_t i = 0; i < values.size(); ++i)
      EXPECT_EQ(values[i], 0.25f * static_cast<float>(i) - 2.0f) << name;
  }
  EXPECT_EQ(tensor("f32").shape, (Shape{3, 4}));
  EXPECT_EQ(tensor("f16").dtype, DType::f16);
  EXPECT_EQ(tensor("bf16").dtype, DType::bf16);
  EXPECT_EQ(raw<int64_t>(file, "i64"), (std::vector<int64_t>{-2, -1, 0, 1}));
  EXPECT_EQ(raw<int32_t>(file, "i32"), (std::vector<int32_t>{-1, 0, 1}));
  EXPECT_EQ(raw<uint8_t>(file, "u8"), (std::vector<uint8_t>{0, 1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(raw<uint8_t>(file, "bool"), (std::vector<uint8_t>{1, 0, 1}));
  EXPECT_EQ(tensor("scalar").shape, Shape{});
  EXPECT_EQ(values_of(file, "scalar"), std::vector<float>{1.5f});
  EXPECT_EQ(tensor("empty").shape, (Shape{0, 4}));
  bool found = false;
  for (const auto& [key, value] : file.metadata()) found |= key == "note" && value == "naïve";
  EXPECT_TRUE(found);
}

TEST(Golden, HuggingFaceFolderInShards) {
  const ModelFiles files = open_model(disk(), golden("hf"));
  const auto single = open_safetensors(disk(), golden("hf_single.safetensors"));
  EXPECT_EQ(files.config["model_type"], "llama");
  EXPECT_EQ(files.config["rope_parameters"]["factor"], 2.0);
  EXPECT_EQ(files.generation_config["eos_token_id"], 2);
  EXPECT_EQ(files.tokenizer_config["eos_token"], "<|im_end|>");
  EXPECT_NE(files.chat_template.find("<|im_start|>"), std::string::npos);
  EXPECT_NE(files.tokenizer_json.find("individual_digits"), std::string::npos);
  ASSERT_EQ(files.weights->tensors().size(), single->tensors().size());
  for (const StoredTensor& tensor : single->tensors()) {
    EXPECT_EQ(files.weights->tensors()[index_of(*files.weights, tensor.name)].shape, tensor.shape);
    EXPECT_EQ(bytes_of(*files.weights, tensor.name), bytes_of(*single, tensor.name)) << tensor.name;
  }
}

// Every tensor of a GGUF, dequantised and un-permuted, has the very bits of the gguf package; all of `types` occur.
void expect_dequantised(const char* gguf, const char* f32, std::initializer_list<DType> types) {
  const ModelFiles files = open_model(disk(), golden(gguf));
  const auto expected = open_safetensors(disk(), golden(f32));
  ASSERT_EQ(files.weights->tensors().size(), expected->tensors().size());
  std::vector<int> seen(kernels::kDTypes);
  for (const StoredTensor& tensor : expected->tensors()) {
    const StoredTensor& stored = files.weights->tensors()[index_of(*files.weights, tensor.name)];
    EXPECT_EQ(stored.shape, tensor.shape) << tensor.name;
    ++seen[static_cast<size_t>(stored.dtype)];
    EXPECT_EQ(values_of(*files.weights, tensor.name), values_of(*expected, tensor.name)) << tensor.name;
  }
  for (DType type : types) EXPECT_GT(seen[static_cast<size_t>(type)], 0) << dtype_name(type);
}

TEST(Golden, GgufTensors) {
  expect_dequantised("tiny.gguf", "tiny_f32.safetensors",
                     {DType::f32, DType::f16, DType::bf16, DType::q4_0, DType::q4_1, DType::q8_0});
}

// Rows of Q and K are reordered as whole rows of blocks.
TEST(Golden, GgufKQuants) {
  expect_dequantised("k_quants.gguf", "k_quants_f32.safetensors",
                     {DType::q2_k, DType::q3_k, DType::q4_k, DType::q5_k, DType::q6_k, DType::q5_0, DType::q5_1});
}

TEST(Golden, GgufConfigurationAndTokenizer) {
  const ModelFiles files = open_model(disk(), golden("tiny.gguf"));
  const Json expected =
      parse_json(R"({"architectures":["LlamaForCausalLM"],"model_type":"llama","vocab_size":320,
      "hidden_size":64,"intermediate_size":96,"num_hidden_layers":2,"num_attention_heads":4,"num_key_value_heads":2,
      "head_dim":16,"hidden_act":"silu","max_position_embeddings":128,"rms_norm_eps":1e-5,"rope_theta":50000.0,
      "rope_scaling":{"rope_type":"linear","factor":2.0},"attention_bias":false,"mlp_bias":false,
      "tie_word_embeddings":false,"bos_token_id":1,"eos_token_id":2,"pad_token_id":0})",
                 "expected");
  EXPECT_EQ(files.config, expected);
  EXPECT_EQ(files.tokenizer_config["unk_token"], "<|endoftext|>");
  // The same tokenizer as the folder that transformers saved, merges being written in either of two ways.
  const ModelFiles folder = open_model(disk(), golden("hf"));
  Json ours = parse_json(files.tokenizer_json, "gguf"), theirs = parse_json(folder.tokenizer_json, "folder");
  for (Json& merge : theirs["model"]["merges"])
    merge = merge[0].get<std::string>() + " " + merge[1].get<std::string>();
  EXPECT_EQ(theirs["post_processor"]["special_tokens"],
            Json::object());  // transformers writes one that adds nothing
  theirs["post_processor"] = nullptr;
  EXPECT_EQ(ours, theirs);
  EXPECT_EQ(files.chat_template, folder.chat_template);
}

TEST(Golden, GgufMetadataOfEveryType) {
  const GgufFile file(disk(), golden("metadata.gguf"));
  EXPECT_EQ(file.integer("a.u8"), 200);
  EXPECT_EQ(file.integer("a.i8"), -100);
  EXPECT_EQ(file.integer("a.u16"), 60000);
  EXPECT_EQ(file.integer("a.i16"), -30000);
  EXPECT_EQ(file.integer("a.u32"), 4000000000);
  EXPECT_EQ(file.integer("a.i32"), -2000000000);
  EXPECT_EQ(std::get<uint64_t>(file.find("a.u64")->data), 10000000000000000000u);
  EXPECT_FAILS(Code::kDataLoss, "a.u64", file.integer("a.u64"));
  EXPECT_EQ(file.integer("a.i64"), -9000000000000000000);
  EXPECT_EQ(file.number("a.f32"), static_cast<double>(0.1f));
  EXPECT_EQ(file.number("a.f64"), 0.1);
  EXPECT_EQ(file.optional_flag("a.bool"), true);
  EXPECT_EQ(file.text("a.string"), "naïve 東京");
  EXPECT_EQ(file.integers("a.i32s"), (std::vector<int64_t>{1, -2, 3}));
  EXPECT_EQ(std::get<std::vector<double>>(file.find("a.f32s")->data), (std::vector<double>{0.5, -1.5}));
  EXPECT_EQ(std::get<std::vector<bool>>(file.find("a.bools")->data), (std::vector<bool>{true, false}));
  EXPECT_EQ(file.texts("a.strings"), (std::vector<std::string>{"", "x", "Ġ"}));
}

TEST(Golden, PeftAdapter) {
  const PeftAdapter adapter = open_peft(disk(), golden("adapter"));
  EXPECT_EQ(adapter.config["r"], 4);
  ASSERT_EQ(adapter.tensors.size(), 8u);  // 2 layers, q and v, A and B
  const std::string q = "base_model.model.model.layers.1.self_attn.q_proj.lora_";
  EXPECT_EQ(adapter.tensors[index_of(*adapter.weights, q + "A.weight")].shape, (Shape{4, 64}));
  EXPECT_EQ(adapter.tensors[index_of(*adapter.weights, q + "B.weight")].shape, (Shape{64, 4}));
  // Written again it says the same.
  testing::MemoryFileSystem fs;
  write_peft(fs, "/a", adapter.config, exports_of(*adapter.weights, DType::f32));
  const PeftAdapter again = open_peft(fs, "/a");
  EXPECT_EQ(again.config, adapter.config);
  for (const StoredTensor& tensor : adapter.tensors) {
    EXPECT_EQ(bytes_of(*again.weights, tensor.name), bytes_of(*adapter.weights, tensor.name)) << tensor.name;
  }
}

// Golden GGUF -> Hugging Face folder -> GGUF: the values stay, bit for bit, in f32; the tokenizer too.
TEST(Golden, ThroughAllFormats) {
  testing::MemoryFileSystem fs;
  const ModelFiles first = open_model(disk(), golden("tiny.gguf"));
  write_hugging_face(fs, "/hf", first, exports_of(*first.weights, DType::f32), 100'000);
  const ModelFiles second = open_model(fs, "/hf");
  write_gguf(fs, "/m.gguf", second, exports_of(*second.weights, DType::f32));
  const ModelFiles third = open_model(fs, "/m.gguf");
  for (const StoredTensor& tensor : first.weights->tensors()) {
    EXPECT_EQ(values_of(*third.weights, tensor.name), values_of(*first.weights, tensor.name)) << tensor.name;
  }
  EXPECT_EQ(third.config, first.config);
  EXPECT_EQ(third.tokenizer_json, first.tokenizer_json);
  EXPECT_EQ(third.tokenizer_config, first.tokenizer_config);
  EXPECT_EQ(third.generation_config, first.generation_config);
  EXPECT_EQ(third.chat_template, first.chat_template);
}

}  // namespace
}  // namespace inlaid::formats

#include "sdk/formats/hugging_face.h"

#include "sdk/base/testing/memory_file_system.h"
#include "sdk/formats/testing.h"

namespace inlaid::formats {
namespace {

using testing::MemoryFileSystem;

void write_tiny(FileSystem& fs, const std::string& folder, uint64_t shard_bytes) {
  const ModelFiles model = tiny_model();
  write_hugging_face(fs, folder, model, tiny_tensors(model.config, DType::bf16), shard_bytes);
}

TEST(HuggingFace, RoundTripInOneFileAndInShards) {
  for (uint64_t shard_bytes : {uint64_t{1} << 30, uint64_t{5000}, uint64_t{1}}) {
    MemoryFileSystem fs;
    write_tiny(fs, "/deep/down/m", shard_bytes);
    EXPECT_EQ(fs.exists("/deep/down/m/model.safetensors"), shard_bytes > 5000);
    EXPECT_EQ(fs.exists("/deep/down/m/model-00002-of-00015.safetensors"), shard_bytes == 1);
    EXPECT_EQ(fs.list("/deep/down"), std::vector<std::string>{"m"});  // no temporary
    const ModelFiles model = tiny_model();
    const ModelFiles read = open_model(fs, "/deep/down/m");
    Json config = model.config;
    config["torch_dtype"] = "bfloat16";
    EXPECT_EQ(read.config, config);
    EXPECT_EQ(read.generation_config, model.generation_config);
    EXPECT_EQ(read.tokenizer_json, model.tokenizer_json);
    EXPECT_EQ(read.tokenizer_config, model.tokenizer_config);
    EXPECT_EQ(read.chat_template, model.chat_template);
    const auto tensors = tiny_tensors(model.config, DType::bf16);
    ASSERT_EQ(read.weights->tensors().size(), tensors.size());
    for (const ExportTensor& tensor : tensors) {
      const StoredTensor& stored = read.weights->tensors()[index_of(*read.weights, tensor.name)];
      EXPECT_EQ(stored.shape, tensor.shape);
      EXPECT_EQ(stored.dtype, DType::bf16);
      std::vector<float> wanted(static_cast<size_t>(element_count(tensor.shape)));
      tensor.values(wanted);
      const std::vector<float> got = values_of(*read.weights, tensor.name);
      for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], wanted[i], 1.0 / 256) << tensor.name;
    }
  }
}

TEST(HuggingFace, ExportedConfigIsTrueOfTheFolder) {
  MemoryFileSystem fs;
  ModelFiles model = tiny_model();
  const auto tensors = tiny_tensors(model.config, DType::f32);
  model.config["dtype"] = "bfloat16";
  model.config["quantization_config"] = Json{{"bits", 4}};
  model.config.erase("rope_theta");
  model.config.erase("rope_scaling");
  model.config["rope_parameters"] = Json{{"rope_type", "default"}, {"rope_theta", 77.0}};
  write_hugging_face(fs, "/m", model, tensors);
  const Json config = open_model(fs, "/m").config;
  EXPECT_EQ(config["torch_dtype"], "float32");
  EXPECT_EQ(config["rope_theta"], 77.0);
  for (const char* key : {"dtype", "quantization_config", "rope_parameters"})
    EXPECT_FALSE(config.contains(key)) << key;
}

TEST(HuggingFace, NothingIsOverwritten) {
  MemoryFileSystem fs;
  fs.make_folders("/m");
  write_tiny(fs, "/m", 1 << 20);  // an empty folder may be there
  EXPECT_FAILS(Code::kAlreadyExists, "/m already exists", write_tiny(fs, "/m", 1 << 20));
  write_text(fs, "/f", "x");
  EXPECT_FAILS(Code::kAlreadyExists, "/f already exists", write_tiny(fs, "/f", 1 << 20));
  const ModelFiles model = tiny_model();
  EXPECT_FAILS(Code::kAlreadyExists, "/f already exists",
               write_gguf(fs, "/f", model, tiny_tensors(model.config, DType::f32)));
  EXPECT_EQ(fs.list("/"), (std::vector<std::string>{"f", "m"}));
}

TEST(HuggingFace, MissingPieces) {
  MemoryFileSystem fs;
  EXPECT_FAILS(Code::kNotFound, "/none", open_model(fs, "/none"));
  fs.make_folders("/m");
  EXPECT_FAILS(Code::kNotFound, "config.json", open_model(fs, "/m"));
  write_text(fs, "/m/config.json", "{}");
  EXPECT_FAILS(Code::kNotFound, "model.safetensors", open_model(fs, "/m"));
  write_text(fs, "/m/pytorch_model.bin", "");
  EXPECT_FAILS(Code::kUnimplemented, "pickle", open_model(fs, "/m"));
  write_text(fs, "/m/config.json", "[]");
  EXPECT_FAILS(Code::kInvalidArgument, "object", open_model(fs, "/m"));
  write_text(fs, "/m/config.json", "{\"a\":1,}");
  EXPECT_FAILS(Code::kInvalidArgument, "/m/config.json", open_model(fs, "/m"));
}

TEST(HuggingFace, HostileIndex) {
  MemoryFileSystem fs;
  write_tiny(fs, "/m", 5000);
  const std::string path = "/m/model.safetensors.index.json";
  const Json index = parse_json(read_text(fs, path), path);
  const auto refused = [&](const Json& changed, const std::string& text) {
    write_text(fs, path, to_text(changed));
    EXPECT_FAILS(Code::kDataLoss, text, open_model(fs, "/m"));
  };
  for (const char* name : {"/etc/passwd", "../m/model-00001-of-00003.safetensors", "..", ".", "", "a\\b"}) {
    Json changed = index;
    changed["weight_map"]["model.norm.weight"] = name;
    refused(changed, "no plain file name");
  }
  Json changed = index;
  changed["weight_map"]["model.norm.weight"] = 3;
  refused(changed, "'model.norm.weight' must be a text");
  changed["weight_map"] = Json::array();
  refused(changed, "weight_map");
  changed = index;
  changed["weight_map"]["model.ghost.weight"] = index["weight_map"]["model.norm.weight"];
  refused(changed, "'model.ghost.weight' is missing");
  changed = index;
  changed["weight_map"]["model.norm.weight"] = index["weight_map"]["model.embed_tokens.weight"];
  refused(changed, "'model.norm.weight' is missing");

  // A shard that points at itself through the index, or is not there at all.
  changed = index;
  changed["weight_map"]["model.norm.weight"] = "model.safetensors.index.json";
  refused(changed, "header");
  changed["weight_map"]["model.norm.weight"] = "gone.safetensors";
  write_text(fs, path, to_text(changed));
  EXPECT_FAILS(Code::kNotFound, "gone.safetensors", open_model(fs, "/m"));

  // A tensor in two shards.
  const std::string first = index["weight_map"]["model.embed_tokens.weight"];
  copy_into(fs, "/m/copy.safetensors", fs, "/m/" + first);
  changed = index;
  changed["weight_map"]["model.embed_tokens.weight"] = "copy.safetensors";
  refused(changed, "is also in");
}

TEST(HuggingFace, TensorsBeyondTheIndexAreListed) {
  MemoryFileSystem fs;
  write_tiny(fs, "/m", 5000);
  const std::string path = "/m/model.safetensors.index.json";
  Json index = parse_json(read_text(fs, path), path);
  index["weight_map"].erase("model.norm.weight");
  write_text(fs, path, to_text(index));
  const ModelFiles read = open_model(fs, "/m");
  index_of(*read.weights, "model.norm.weight");
}

TEST(HuggingFace, SpecialTokensInAllTheirForms) {
  MemoryFileSystem fs;
  write_tiny(fs, "/m", 1 << 20);
  write_text(fs, "/m/tokenizer_config.json",
             R"({"add_bos_token":true,"bos_token":{"content":"<s>","lstrip":false},
      "eos_token":"</s>","pad_token":null})");
  write_text(fs, "/m/special_tokens_map.json",
             R"({"eos_token":"other","pad_token":{"content":"<pad>"},"unk_token":"<unk>"})");
  const Json config = open_model(fs, "/m").tokenizer_config;
  EXPECT_EQ(config["bos_token"], "<s>");
  EXPECT_EQ(config["eos_token"], "</s>");
  EXPECT_EQ(config["pad_token"], "<pad>");
  EXPECT_EQ(config["unk_token"], "<unk>");
  EXPECT_EQ(config["add_bos_token"], true);
}

TEST(HuggingFace, ChatTemplatesInAllTheirForms) {
  MemoryFileSystem fs;
  write_tiny(fs, "/m", 1 << 20);
  fs.remove_all("/m/chat_template.jinja");
  const auto opened = [&](const std::string& config) {
    write_text(fs, "/m/tokenizer_config.json", config);
    return open_model(fs, "/m");
  };
  EXPECT_EQ(opened("{}").chat_template, "");
  EXPECT_EQ(opened(R"({"chat_template":"T"})").chat_template, "T");
  const ModelFiles several =
      opened(R"({"chat_template":[{"name":"tool_use","template":"U"},{"name":"default","template":"D"}]})");
  EXPECT_EQ(several.chat_template, "D");
  EXPECT_EQ(opened(R"({"chat_template":[{"name":"tool_use","template":"U"}]})").chat_template, "U");
  write_text(fs, "/m/chat_template.jinja", "J\n");
  EXPECT_EQ(opened(R"({"chat_template":"T"})").chat_template, "J\n");

  // Written back: one truth in chat_template.jinja, further named templates kept.
  write_hugging_face(fs, "/n", several, tiny_tensors(tiny_config(), DType::f32));
  const Json config = read_json_object(fs, "/n/tokenizer_config.json", true);
  EXPECT_EQ(config["chat_template"][0]["template"], "U");
  EXPECT_EQ(read_text(fs, "/n/chat_template.jinja"), "D");
  const ModelFiles single = opened(R"({"chat_template":"T"})");
  write_hugging_face(fs, "/o", single, tiny_tensors(tiny_config(), DType::f32));
  EXPECT_FALSE(read_json_object(fs, "/o/tokenizer_config.json", false).contains("chat_template"));
}

TEST(HuggingFace, WriterRefusesTypesAndNames) {
  MemoryFileSystem fs;
  const ModelFiles model = tiny_model();
  auto tensors = tiny_tensors(model.config, DType::q8_0);
  EXPECT_FAILS(Code::kInvalidArgument, "q8_0", write_hugging_face(fs, "/m", model, tensors));
  tensors = tiny_tensors(model.config, DType::f32);
  tensors.push_back(tensors[0]);
  EXPECT_FAILS(Code::kInvalidArgument, "given twice", write_hugging_face(fs, "/m", model, tensors, 1));
  EXPECT_FALSE(fs.exists("/m"));
}

}  // namespace
}  // namespace inlaid::formats

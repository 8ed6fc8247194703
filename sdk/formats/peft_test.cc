#include "sdk/base/testing/memory_file_system.h"
#include "sdk/formats/testing.h"

namespace inlaid::formats {
namespace {

using testing::MemoryFileSystem;

const char* kA = "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight";

std::vector<ExportTensor> one(const std::string& name) {
  return {{name, {2, 4}, DType::f32, [](std::span<float> values) {
             for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) - 2;
           }}};
}

TEST(Peft, RoundTrip) {
  MemoryFileSystem fs;
  const Json config =
      parse_json(R"({"peft_type":"LORA","r":2,"lora_alpha":4,"target_modules":["q_proj"]})", "c");
  write_peft(fs, "/a", config, one(kA));
  const PeftAdapter read = open_peft(fs, "/a");
  EXPECT_EQ(read.config, config);
  ASSERT_EQ(read.tensors.size(), 1u);
  EXPECT_EQ(read.tensors[0].name, kA);
  EXPECT_EQ(values_of(*read.weights, kA), (std::vector<float>{-2, -1, 0, 1, 2, 3, 4, 5}));
  EXPECT_FAILS(Code::kAlreadyExists, "/a", write_peft(fs, "/a", config, one(kA)));
}

TEST(Peft, Refusals) {
  MemoryFileSystem fs;
  const Json config{{"peft_type", "LORA"}};
  EXPECT_FAILS(Code::kUnimplemented, "IA3", write_peft(fs, "/a", Json{{"peft_type", "IA3"}}, one(kA)));
  EXPECT_FAILS(Code::kInvalidArgument, "peft_type", write_peft(fs, "/a", Json::object(), one(kA)));
  EXPECT_FAILS(Code::kInvalidArgument, "base_model.model.",
               write_peft(fs, "/a", config, one("model.norm.weight")));
  EXPECT_FAILS(Code::kNotFound, "/a", open_peft(fs, "/a"));
  fs.make_folders("/a");
  EXPECT_FAILS(Code::kNotFound, "adapter_config.json", open_peft(fs, "/a"));
  write_text(fs, "/a/adapter_config.json", R"({"peft_type":"LORA"})");
  EXPECT_FAILS(Code::kNotFound, "adapter_model.safetensors", open_peft(fs, "/a"));
  write_text(fs, "/a/adapter_model.bin", "");
  EXPECT_FAILS(Code::kUnimplemented, "pickle", open_peft(fs, "/a"));
  fs.remove_all("/a");
  write_peft(fs, "/a", config, one(kA));
  write_text(fs, "/a/adapter_config.json", R"({"peft_type":"PROMPT_TUNING"})");
  EXPECT_FAILS(Code::kUnimplemented, "PROMPT_TUNING", open_peft(fs, "/a"));
}

}  // namespace
}  // namespace inlaid::formats

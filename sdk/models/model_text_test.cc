// The tokenizer and template that model.tokenizer names instead of the model's own.
#include <gtest/gtest.h>

#include "sdk/base/error.h"
#include "sdk/base/json.h"
#include "sdk/base/testing/memory_file_system.h"
#include "sdk/models/model.h"

namespace inlaid::models {
namespace {

const std::string kGolden = std::string(INLAID_SOURCE_DIR) + "/tests/golden/formats/tokenizers/llama/";

Json config() {
  return {{"model_type", "llama"},         {"vocab_size", 64},          {"hidden_size", 16},
          {"intermediate_size", 16},       {"num_hidden_layers", 1},    {"num_attention_heads", 2},
          {"num_key_value_heads", 1},      {"max_position_embeddings", 64}};
}

class ModelText : public ::testing::Test {
 protected:
  void put(const std::string& path, std::string_view bytes) {
    fs_.make_folders(parent_path(path));
    const auto file = fs_.create(path);
    file->write(std::as_bytes(std::span(bytes.data(), bytes.size())));
    file->close();
  }
  std::shared_ptr<Model> open(const std::string& tokenizer) {
    LoadOptions options;
    options.tokenizer = tokenizer;
    return Model::create_outline(runtime_, config(), options);
  }

  inlaid::testing::MemoryFileSystem fs_;
  std::shared_ptr<Runtime> runtime_ = std::make_shared<Runtime>(1, 0, nullptr, fs_, Log(), kernels::cpu_kernels(kernels::cpu_level()));
};

TEST_F(ModelText, FolderWithTokenizerModelOnly) {
  put("t/tokenizer.model", read_text(posix_file_system(), kGolden + "tokenizer.model"));
  put("t/tokenizer_config.json", read_text(posix_file_system(), kGolden + "tokenizer_config.json"));
  const std::shared_ptr<Model> model = open("t");
  const auto bos = model->tokenizer()->token_to_id("<s>");
  ASSERT_TRUE(bos.has_value());
  EXPECT_EQ(model->tokenizer()->encode("a text", true).ids.at(0), *bos);  // add_bos_token of tokenizer_config.json
  EXPECT_EQ(model->stop_tokens(), std::vector<std::string>{"</s>"});
  EXPECT_EQ(model->chat_template(), nullptr);

  put("t/tokenizer_config.json", R"({"eos_token": {"content": "</s>"}, "chat_template": "{{ messages[0].content }}"})");
  EXPECT_NE(open("t")->chat_template(), nullptr);
  EXPECT_EQ(open("t")->stop_tokens(), std::vector<std::string>{"</s>"});
  put("t/chat_template.jinja", "x");
  EXPECT_EQ(open("t")->chat_template()->source(), "x");
}

TEST_F(ModelText, NothingToRead) {
  put("empty/tokenizer_config.json", "{}");
  try {
    open("empty");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kNotFound);
    EXPECT_NE(error.message().find("empty: there is neither a tokenizer.json nor a tokenizer.model"), std::string::npos);
  }
}

}  // namespace
}  // namespace inlaid::models

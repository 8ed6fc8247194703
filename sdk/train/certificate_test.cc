// A certificate is of the written files: whatever is wrong with them shows in it.
#include "sdk/train/certificate.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "sdk/base/error.h"
#include "sdk/train/testing/rig.h"

namespace inlaid::train {
namespace {

const std::string kText = INLAID_SOURCE_DIR "/tests/golden/text/";

// A random model with the tokenizer and template of the text tests.
std::shared_ptr<models::Model> make_model(uint64_t seed) {
  Json config = tiny_config();
  config["vocab_size"] = 600;
  models::LoadOptions options;
  options.tokenizer = kText + "tokenizers/byte_bpe.json";
  options.chat_template = read_text(posix_file_system(), kText + "templates/chatml.jinja");
  return models::Model::create(make_runtime(1), config, seed, options);
}

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kInternal);
    return e.message();
  }
  return "no error";
}

void replace_in(const std::string& path, const std::string& from, const std::string& to) {
  std::string text = read_text(posix_file_system(), path);
  const size_t at = text.find(from);
  ASSERT_NE(at, std::string::npos) << path << " has no " << from;
  text.replace(at, from.size(), to);
  std::ofstream(path) << text;
}

TEST(Certificate, OfAnExactExport) {
  const auto model = make_model(1);
  TemporaryFolder folder;
  models::export_hugging_face(*model, nullptr, folder / "exact", DType::f32);
  const Json exact = certify_model(*model, nullptr, folder / "exact", nullptr);
  EXPECT_EQ(exact["logits"]["max_abs_difference"], 0.0);
  EXPECT_EQ(exact["logits"]["same_top_token"], exact["logits"]["tokens"]);
  EXPECT_GT(exact["logits"]["max_abs"], 0.0);
  EXPECT_GE(exact["tokenizer"]["texts"], 10);
  EXPECT_GE(exact["chat_template"]["conversations"], 2);
  models::export_gguf(*model, nullptr, folder / "f16.gguf", DType::f16);
  const Json half = certify_model(*model, nullptr, folder / "f16.gguf", nullptr);
  EXPECT_GT(half["logits"]["max_abs_difference"], 0.0);
  EXPECT_LT(half["logits"]["max_abs_difference"], 0.01);
}

TEST(Certificate, OtherWeightsShow) {
  const auto model = make_model(1);
  TemporaryFolder folder;
  models::export_gguf(*make_model(2), nullptr, folder / "other.gguf", DType::f32);
  const Json other = certify_model(*model, nullptr, folder / "other.gguf", nullptr);
  EXPECT_GT(other["logits"]["max_abs_difference"].get<double>(), 0.1 * other["logits"]["max_abs"].get<double>());
  EXPECT_LT(other["logits"]["same_top_token"], other["logits"]["tokens"]);
}

TEST(Certificate, AnotherTokenizerOrTemplateIsAnError) {
  const auto model = make_model(1);
  TemporaryFolder folder;
  models::export_hugging_face(*model, nullptr, folder / "m", DType::f32);
  replace_in(folder / "m/chat_template.jinja", "im_start", "im_begin");
  EXPECT_NE(message_of([&] { certify_model(*model, nullptr, folder / "m", nullptr); }).find("chat template renders"),
            std::string::npos);
  std::filesystem::remove(folder / "m/chat_template.jinja");
  EXPECT_NE(message_of([&] { certify_model(*model, nullptr, folder / "m", nullptr); }).find("lost the chat template"),
            std::string::npos);
  models::export_hugging_face(*model, nullptr, folder / "n", DType::f32);
  replace_in(folder / "n/tokenizer.json", "\"add_prefix_space\":", "\"add_prefix_space\":true,\"was\":");
  EXPECT_NE(message_of([&] { certify_model(*model, nullptr, folder / "n", nullptr); }).find("tokenizer gives other ids for"),
            std::string::npos);
}

TEST(Certificate, NotFiniteIsAnError) {
  const auto model = make_model(1);
  TemporaryFolder folder;
  Tensor& norm = model->parameters().find("model.norm.weight")->value;
  std::fill_n(norm.as<float>(), norm.elements(), 3e38f);
  models::export_gguf(*model, nullptr, folder / "m.gguf", DType::f32);
  EXPECT_NE(message_of([&] { certify_model(*model, nullptr, folder / "m.gguf", nullptr); }).find("not finite"), std::string::npos);
}

TEST(Certificate, LiesInsideTheExport) {
  const auto model = make_model(1);
  TemporaryFolder folder;
  FileSystem& files = posix_file_system();
  const formats::Certify certify = [&](const std::string& path) {
    return to_text(certify_model(*model, nullptr, path, nullptr));
  };
  models::export_hugging_face(*model, nullptr, folder / "m", DType::f32, certify);
  models::export_gguf(*model, nullptr, folder / "m.gguf", DType::f32, certify);
  models::export_gguf(*model, nullptr, folder / "plain.gguf", DType::f32);
  for (const char* name : {"m", "m.gguf"}) {
    EXPECT_EQ(read_certificate(files, folder / name)["logits"]["max_abs_difference"], 0.0) << name;
    EXPECT_EQ(certify_model(*model, nullptr, folder / name, nullptr), read_certificate(files, folder / name)) << name;
  }
  EXPECT_THROW(read_certificate(files, folder / "plain.gguf"), Error);
  // Nothing but the exports is left, and a failing certificate leaves nothing at all.
  EXPECT_THROW(models::export_gguf(*model, nullptr, folder / "bad.gguf", DType::f32,
                                   [](const std::string&) -> std::string { fail(Code::kInternal, "no"); }),
               Error);
  EXPECT_EQ(files.list(folder.path()), (std::vector<std::string>{"m", "m.gguf", "plain.gguf"}));
}

}  // namespace
}  // namespace inlaid::train

// Parity with PyTorch on real weights and on small random models of every option: the oracle is PyTorch in f64, and our error
// against it is at most twice that of PyTorch's own f32 (tests/golden/model/make_golden.py).
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <set>

#include "sdk/base/error.h"
#include "sdk/train/logits.h"
#include "sdk/train/testing/golden_file.h"
#include "sdk/train/testing/rig.h"

namespace inlaid::train {
namespace {

const std::string kGolden = INLAID_SOURCE_DIR "/tests/golden/model/";
const std::vector<int32_t> kText = {2703, 2002, 359, 10793, 338, 2330, 281, 260, 3426, 30, 1069, 12720, 1512,
                                    28, 1928, 3687, 288, 2330, 1805, 28, 284, 2645, 601, 351, 4788, 30};

void expect_losses(const std::vector<double>& ours, const std::map<std::string, std::vector<double>>& golden,
                   const std::string& kind) {
  const std::vector<double>& oracle = golden.at(kind + ".losses");
  const std::vector<double>& torch = golden.at(kind + ".losses.f32");
  double our_error = 0, torch_error = 0;
  for (size_t i = 0; i < oracle.size(); ++i) {
    our_error = std::max(our_error, std::abs(ours[i] - oracle[i]) / oracle[i]);
    torch_error = std::max(torch_error, std::abs(torch[i] - oracle[i]) / oracle[i]);
  }
  std::printf("%s: losses %.9f %.9f ... %.9f; largest relative error %.2e, PyTorch f32 %.2e\n", kind.c_str(), ours[0], ours[1],
              ours.back(), our_error, torch_error);
  EXPECT_LE(our_error, 2 * torch_error);
}

std::vector<double> train_losses(Trainer& trainer, const data::MicroBatch& batch) {
  std::vector<double> losses;
  for (int i = 0; i < 20; ++i) {
    const LossSums sums = trainer.accumulate(batch, nullptr);
    losses.push_back(sums.loss / static_cast<double>(sums.target_tokens));
    trainer.apply();
  }
  return losses;
}

TEST(SmolLM2Parity, LogitsAndEveryGradient) {
  const auto golden = read_golden(kGolden + "smollm2.safetensors");
  const auto model = models::Model::load(make_runtime(2), smollm2_path(), {});
  const data::MicroBatch batch = make_batch({kText});
  const std::vector<float> logits = all_logits(*model, nullptr, batch);
  std::vector<double> samples;
  const int64_t vocabulary = model->config().vocab_size;
  for (int64_t row = 0; row < batch.rows(); ++row) {
    const std::vector<double> some = sampled(logits.data() + row * vocabulary, vocabulary);
    samples.insert(samples.end(), some.begin(), some.end());
  }
  const double error = relative_error(samples, golden.at("logits"));
  std::printf("logits: relative error %.2e, PyTorch f32 %.2e\n", error, golden.at("logits.f32_error")[0]);
  EXPECT_LE(error, 2 * golden.at("logits.f32_error")[0]);

  const auto trainer = Trainer::create(model, nullptr, make_config({}), {batch.rows(), 1});
  const LossSums sums = trainer->accumulate(batch, nullptr);
  EXPECT_NEAR(sums.loss / 25, golden.at("loss")[0], 1e-5);
  int compared = 0;
  double worst = 0;
  for (const auto& [name, gradient] : trainer->gradients()) {
    std::vector<double> ours = sampled(gradient.as<float>(), gradient.elements());
    for (double& value : ours) value /= 25;  // un-normalised sums over 25 targets
    const double ratio = relative_error(ours, golden.at("gradient/" + name)) / golden.at("f32_error/" + name)[0];
    worst = std::max(worst, ratio);
    EXPECT_LE(ratio, 2) << name;
    ++compared;
  }
  std::printf("gradients: worst ratio to PyTorch f32's error %.2f over %d tensors\n", worst, compared);
  EXPECT_EQ(compared, 272);
}

TEST(SmolLM2Parity, TwentyStepsOfFullFineTuning) {
  const auto golden = read_golden(kGolden + "smollm2.safetensors");
  const auto model = models::Model::load(make_runtime(2), smollm2_path(), {});
  const data::MicroBatch batch = make_batch({kText});
  const auto trainer = Trainer::create(model, nullptr, make_config({{"optim.learning_rate", "1e-5"}}), {batch.rows(), 1});
  expect_losses(train_losses(*trainer, batch), golden, "full");
}

TEST(SmolLM2Parity, TwentyStepsOfLora) {
  const auto golden = read_golden(kGolden + "smollm2.safetensors");
  const auto model = models::Model::load(make_runtime(2), smollm2_path(), {});
  nn::AdapterConfig config;
  config.r = 8;
  config.lora_alpha = 16;
  config.target_modules = "all-linear";
  const auto adapter = models::Adapter::create(model, config, 1);
  for (const auto& parameter : adapter->parameters().all()) {
    const std::string& name = parameter->spec.name;
    if (name.find(".lora_A.") == std::string::npos) continue;
    int offset = 0;
    for (char c : name) offset += static_cast<unsigned char>(c);
    for (int64_t i = 0; i < parameter->value.elements(); ++i) {
      parameter->value.as<float>()[i] = static_cast<float>(std::sin(0.37 * static_cast<double>(i) + offset % 97) /
                                                           std::sqrt(static_cast<double>(parameter->spec.shape[1])));
    }
  }
  const data::MicroBatch batch = make_batch({kText});
  const auto trainer = Trainer::create(
      model, adapter, make_config({{"optim.learning_rate", "1e-3"}, {"adapter.peft_type", "\"LORA\""}}), {batch.rows(), 1});
  expect_losses(train_losses(*trainer, batch), golden, "lora");
}

class TinyParity : public testing::TestWithParam<std::string> {};

const std::vector<int32_t> kTinyText = {3, 17, 5, 39, 8, 8, 21, 0, 12, 30, 4};
constexpr int64_t kShort = 5;

std::shared_ptr<models::Model> tiny_model(const std::string& name) {
  TemporaryFolder copy;  // without the golden file, which is no part of the model
  for (const auto& entry : std::filesystem::directory_iterator(kGolden + "tiny/" + name)) {
    if (entry.path().filename() != "golden.safetensors") {
      std::filesystem::copy(entry.path(), copy.path() + "/" + entry.path().filename().string());
    }
  }
  return models::Model::load(make_runtime(1), copy.path(), {});
}

// PyTorch's own error is now and then lucky; no f32 result is asked for more than this.
double allowed(const std::map<std::string, std::vector<double>>& golden, const std::string& name) {
  return 2 * std::max(golden.at("f32_error/" + name)[0], 1.5e-7);
}

TEST_P(TinyParity, LogitsLossAndGradients) {
  const auto golden = read_golden(kGolden + "tiny/" + GetParam() + "/golden.safetensors");
  const auto model = tiny_model(GetParam());
  const data::MicroBatch batch = make_batch({kTinyText});
  const std::vector<float> logits = all_logits(*model, nullptr, batch);
  EXPECT_LT(relative_error({logits.begin(), logits.end()}, golden.at("logits")), allowed(golden, "logits"));
  const auto trainer = Trainer::create(model, nullptr, make_config({}), {batch.rows(), 1});
  const LossSums sums = trainer->accumulate(batch, nullptr);
  EXPECT_NEAR(sums.loss / 10, golden.at("loss")[0], 1e-6 * golden.at("loss")[0]);
  // Gradients of a few hundred values have errors that chance decides: the bound is on their mean square over the tensors.
  size_t compared = 0;
  double ours = 0, torch = 0;
  for (const auto& [name, gradient] : trainer->gradients()) {
    std::vector<double> values(gradient.as<float>(), gradient.as<float>() + gradient.elements());
    for (double& value : values) value /= 10;
    const double error = relative_error(values, golden.at("gradient/" + name));
    EXPECT_LT(error, 3e-6) << name;
    ours += error * error;
    torch += std::pow(golden.at("f32_error/gradient/" + name)[0], 2);
    ++compared;
  }
  EXPECT_LE(std::sqrt(ours), 2 * std::sqrt(torch));
  EXPECT_EQ(compared, model->parameters().all().size());
}

// A short text, a long one and the short one again in the same rows: each as transformers has it alone.
TEST_P(TinyParity, PackedTextsAreThoseAlone) {
  const auto golden = read_golden(kGolden + "tiny/" + GetParam() + "/golden.safetensors");
  const auto model = tiny_model(GetParam());
  const std::vector<int32_t> beginning(kTinyText.begin(), kTinyText.begin() + kShort);
  const std::vector<float> packed = all_logits(*model, nullptr, make_batch({beginning, kTinyText, beginning}));
  const auto rows = [&](size_t begin, size_t count) {
    const size_t width = static_cast<size_t>(model->config().vocab_size);
    const auto at = packed.begin() + static_cast<std::ptrdiff_t>(begin * width);
    return std::vector<double>(at, at + static_cast<std::ptrdiff_t>(count * width));
  };
  EXPECT_LT(relative_error(rows(0, kShort), golden.at("short_logits")), allowed(golden, "short_logits"));
  EXPECT_LT(relative_error(rows(kShort, kTinyText.size()), golden.at("logits")), allowed(golden, "logits"));
  EXPECT_LT(relative_error(rows(kShort + kTinyText.size(), kShort), golden.at("short_logits")),
            allowed(golden, "short_logits"));
}

// What is exported as a Hugging Face folder is the same model again.
TEST_P(TinyParity, ExportAndImport) {
  const auto golden = read_golden(kGolden + "tiny/" + GetParam() + "/golden.safetensors");
  TemporaryFolder folder;
  models::export_hugging_face(*tiny_model(GetParam()), nullptr, folder / "exported", DType::f32);
  const auto again = models::Model::load(make_runtime(1), folder / "exported", {});
  const std::vector<float> logits = all_logits(*again, nullptr, make_batch({kTinyText}));
  EXPECT_LT(relative_error({logits.begin(), logits.end()}, golden.at("logits")), allowed(golden, "logits"));
  // The tensors are those that transformers wrote.
  std::set<std::string> names, wanted;
  for (const auto& entry : std::filesystem::directory_iterator(kGolden + "tiny/" + GetParam())) {
    const std::string file = entry.path().filename().string();
    if (!file.starts_with("model") || !file.ends_with(".safetensors")) continue;
    const auto stored = formats::open_safetensors(posix_file_system(), entry.path());
    for (const auto& tensor : stored->tensors()) wanted.insert(tensor.name);
  }
  const auto exported = formats::open_safetensors(posix_file_system(), folder / "exported/model.safetensors");
  for (const auto& tensor : exported->tensors()) names.insert(tensor.name);
  EXPECT_EQ(names, wanted);
}

INSTANTIATE_TEST_SUITE_P(Options, TinyParity,
                         testing::Values("plain", "tied", "biases", "multi_head", "one_key_value_head", "head_dim",
                                         "rope_linear", "rope_llama3", "rope_dynamic", "rope_yarn", "rope_yarn_scaled",
                                         "rope_yarn_factor", "rope_longrope", "gelu", "mistral", "qwen2", "qwen2_window",
                                         "qwen2_layer_types", "qwen3", "qwen3_window", "phi3", "phi3_plain", "gemma2",
                                         "gemma2_uncapped"),
                         [](const auto& info) { return info.param; });

// Every attribute of every configuration class, changed: the logits follow transformers', or the key is refused by name.
TEST(ConfigurationFlips, MatchOrAreRefused) {
  const std::string path = kGolden + "flips.json";
  const Json flips = parse_json(read_text(posix_file_system(), path), path);
  const std::vector<int32_t> ids = flips["ids"].get<std::vector<int32_t>>();
  int matched = 0, refused = 0;
  for (const Json& flip : flips["cases"]) {
    const std::string attribute = flip["attribute"].get<std::string>();
    const std::string name = flip["model"].get<std::string>(), base = kGolden + "tiny/" + name;
    SCOPED_TRACE(name + ": " + attribute + " = " + to_text(flip["value"]));
    TemporaryFolder folder;
    std::filesystem::copy(base + "/model.safetensors", folder / "model.safetensors");
    Json config = parse_json(read_text(posix_file_system(), base + "/config.json"), "config.json");
    config[attribute] = flip["value"];
    write_atomically(posix_file_system(), folder / "config.json", to_text(config));
    try {
      const auto model = models::Model::load(make_runtime(1), folder.path(), {});
      ASSERT_TRUE(flip.contains("logits")) << attribute << " is accepted here, transformers says: " << flip["error"];
      const data::MicroBatch batch = make_batch({ids});
      const std::vector<float> logits = all_logits(*model, nullptr, batch);
      const std::vector<double> last(logits.end() - model->config().vocab_size, logits.end());
      EXPECT_LT(relative_error(last, flip["logits"].get<std::vector<double>>()), 2e-6);
      ++matched;
    } catch (const Error& e) {
      EXPECT_NE(e.message().find(attribute), std::string::npos) << e.message();
      ++refused;
    }
  }
  EXPECT_GE(matched, 80);
  EXPECT_GE(refused, 15);
}

}  // namespace
}  // namespace inlaid::train

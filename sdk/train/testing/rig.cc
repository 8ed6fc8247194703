#include "sdk/train/testing/rig.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "sdk/base/error.h"

namespace inlaid::train {

std::shared_ptr<Runtime> make_runtime(int threads, uint64_t memory_limit) {
  return std::make_shared<Runtime>(threads, memory_limit, nullptr, posix_file_system(), Log(),
                                   kernels::cpu_kernels(kernels::cpu_level()));
}

std::string smollm2_path() {
  const char* folder = std::getenv("INLAID_TEST_DATA");
  if (folder == nullptr) fail(Code::kNotFound, "INLAID_TEST_DATA does not name the folder of the test model; use tests/run");
  return join_path(folder, "SmolLM2-135M-Instruct.Q4_1.gguf");
}

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "inlaid-test-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) fail(Code::kUnavailable, "no temporary folder");
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() { std::filesystem::remove_all(path_); }

config::Config make_config(const std::vector<std::pair<std::string, std::string>>& changes) {
  // Every key at once, so that rules between keys see the final configuration.
  Json json = Json::object();
  const auto put = [&](const std::string& key, const Json& value) {
    const size_t dot = key.find('.');
    if (dot == std::string::npos) {
      json[key] = value;
    } else {
      json[key.substr(0, dot)][key.substr(dot + 1)] = value;
    }
  };
  put("model.path", "unused");
  put("train.max_steps", 20);
  put("optim.lr_scheduler_type", "constant");
  put("optim.max_grad_norm", 0);
  for (const auto& [key, value] : changes) put(key, parse_json(value, key));
  if (json["model"].contains("config")) json["model"].erase("path");
  return config::Config::parse(to_text(json));
}

Json tiny_config() {
  return {{"model_type", "llama"},     {"vocab_size", 64},         {"hidden_size", 32},
          {"intermediate_size", 48},   {"num_hidden_layers", 2},   {"num_attention_heads", 4},
          {"num_key_value_heads", 2},  {"rms_norm_eps", 1e-5},     {"initializer_range", 0.1},
          {"max_position_embeddings", 512}};
}

data::MicroBatch make_batch(const std::vector<std::vector<int32_t>>& documents) {
  data::MicroBatch batch;
  batch.cu_seqlens = {0};
  int64_t key = 0;
  for (const std::vector<int32_t>& document : documents) {
    for (size_t i = 0; i < document.size(); ++i) {
      batch.tokens.push_back(document[i]);
      batch.targets.push_back(i + 1 < document.size() ? document[i + 1] : data::kIgnore);
      batch.positions.push_back(static_cast<int32_t>(i));
      batch.row_keys.push_back(key + document.front());  // the same document has the same key wherever it stands
    }
    batch.cu_seqlens.push_back(static_cast<int32_t>(batch.tokens.size()));
  }
  batch.target_tokens = static_cast<int64_t>(batch.tokens.size() - documents.size());
  return batch;
}

std::vector<int32_t> make_document(int seed, int64_t length, int32_t vocabulary) {
  std::vector<int32_t> ids;
  uint64_t state = static_cast<uint64_t>(seed) * 2654435761u + 12345;
  for (int64_t i = 0; i < length; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    ids.push_back(static_cast<int32_t>((state >> 33) % static_cast<uint64_t>(vocabulary)));
  }
  return ids;
}

std::vector<float> trained_values(const Trainer& trainer) {
  std::vector<float> values;
  const nn::ParameterSet& parameters =
      trainer.adapter() != nullptr ? trainer.adapter()->parameters() : trainer.model()->parameters();
  for (const auto& parameter : parameters.all()) {
    const float* data = parameter->value.as<float>();
    values.insert(values.end(), data, data + parameter->value.elements());
  }
  return values;
}

}  // namespace inlaid::train

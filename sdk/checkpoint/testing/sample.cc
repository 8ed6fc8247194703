#include "sdk/checkpoint/testing/sample.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace inlaid::checkpoint::testing {

std::byte sample_byte(int64_t step, size_t number, size_t i) {
  return static_cast<std::byte>((31 * static_cast<uint64_t>(step) + 17 * number + 7 * i + i / 256) % 251);
}

Sample::Sample(int64_t step) {
  info_.step = step;
  info_.epoch = step / 10;
  info_.index = step % 10 * 8;
  info_.config_json = R"({"train":{"steps":100},"text":"größer → 更大"})";
  info_.model_config_json = R"({"model_type":"llama","hidden_size":4})";
  info_.base_path = "/models/base";
  info_.base_identity = std::string(64, 'b');
  info_.dataset_identity = std::string(64, 'd');
  info_.tokenizer_sha256 = std::string(64, 'c');
  info_.template_sha256 = std::string(64, 'e');
  info_.state_json = R"({"losses":[2.5,2.25],"tokens":)" + std::to_string(1000 * step) + "}";
  info_.adapter_config_json = R"({"peft_type":"LORA","r":4})";
  info_.extra_files = {{"tokenizer.json", R"({"version":"1.0","step":)" + std::to_string(step) + "}"},
                       {"chat_template.jinja", "{{ messages }}"},
                       {"empty.txt", ""}};
  for (Role role : {Role::kWeight, Role::kMoment1, Role::kMoment2}) {
    add("model.layers.0.self_attn.q_proj.lora_A.weight", role, DType::f32, {4, 6});
    add("model.layers.0.self_attn.q_proj.lora_B.weight", role, DType::f32, {6, 4});
  }
  add("model.embed_tokens.weight", Role::kWeight, DType::bf16, {5, 3});
  add("model.layers.0.mlp.down_proj.weight", Role::kWeight, DType::q4_1, {2, 64});
  add("scale", Role::kWeight, DType::f64, {});
}

void Sample::add(const std::string& name, Role role, DType dtype, Shape shape) {
  std::vector<std::byte> bytes(static_cast<size_t>(byte_count(dtype, shape)));
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = sample_byte(info_.step, data_.size(), i);
  data_.push_back(std::move(bytes));
  records_.push_back({name, role, dtype, std::move(shape), data_.back().data()});
}

std::string difference_from_sample(FileSystem& fs, const std::string& folder, int64_t step) {
  const Sample sample(step);
  const std::unique_ptr<Reader> reader = Reader::open(fs, folder);
  Info want = sample.info();
  std::erase_if(want.extra_files, [](const auto& file) { return file.second.empty(); });
  std::sort(want.extra_files.begin(), want.extra_files.end());
  const auto all = [](const Info& info) {
    return std::tie(info.step, info.epoch, info.index, info.config_json, info.model_config_json, info.base_path,
                    info.base_identity, info.dataset_identity, info.tokenizer_sha256, info.template_sha256,
                    info.state_json, info.adapter_config_json, info.extra_files);
  };
  if (all(reader->info()) != all(want)) return "the info differs";
  if (reader->records().size() != sample.records().size()) return "the number of records differs";
  for (const Record& record : sample.records()) {
    const auto found = std::find_if(reader->records().begin(), reader->records().end(), [&](const Record& other) {
      return other.name == record.name && other.role == record.role;
    });
    if (found == reader->records().end()) return record.name + " is missing";
    if (found->dtype != record.dtype || found->shape != record.shape) return record.name + " has another type or shape";
    std::vector<std::byte> bytes(static_cast<size_t>(byte_count(record.dtype, record.shape)));
    reader->read(record.name, record.role, bytes);
    if (!std::equal(bytes.begin(), bytes.end(), static_cast<const std::byte*>(record.data))) {
      return record.name + " has other bytes";
    }
  }
  return "";
}

}  // namespace inlaid::checkpoint::testing

// Saving and restoring a trainer: which state there is, and what must be the same for training to go on bit for bit.
#include "sdk/base/error.h"
#include "sdk/base/hash.h"
#include "sdk/train/trainer.h"

namespace inlaid::train {
namespace {

using checkpoint::Role;

void require_same(const std::string& folder, const char* what, const std::string& saved, const std::string& now) {
  if (saved == now) return;
  fail(Code::kFailedPrecondition, folder, ": ", what, " changed since the checkpoint was written (", 
       saved.empty() ? "none" : saved.substr(0, 16), " then, ", now.empty() ? "none" : now.substr(0, 16), " now)");
}

std::string hash_or_empty(const std::string& text) { return text.empty() ? text : sha256_hex(text); }

}  // namespace

checkpoint::Info Trainer::info() const {
  const formats::ModelFiles& files = model_->files();
  checkpoint::Info info;
  info.step = steps_done_;
  info.epoch = cursor_.epoch;
  info.index = cursor_.index;
  info.config_json = config_.to_json();
  info.model_config_json = to_text(files.config);
  info.base_path = files.path;
  info.base_identity = files.identity;
  info.dataset_identity = dataset_ == nullptr ? "" : dataset_->identity();
  info.tokenizer_sha256 = hash_or_empty(files.tokenizer_json);
  info.template_sha256 = hash_or_empty(files.chat_template);
  if (adapter_ != nullptr) {
    info.adapter_config_json = to_text(adapter_->config().to_peft());
  } else {
    info.extra_files = {{"tokenizer.json", files.tokenizer_json}, {"chat_template.jinja", files.chat_template}};
  }
  return info;
}

std::vector<checkpoint::Record> Trainer::records() const {
  std::vector<checkpoint::Record> records;
  for (const Trained& trained : trained_) {
    const nn::Parameter& parameter = *trained.parameter;
    records.push_back({parameter.spec.name, Role::kWeight, DType::f32, parameter.spec.shape, trained.value.data});
    records.push_back({parameter.spec.name, Role::kMoment1, DType::f32, parameter.spec.shape, trained.m.data});
    records.push_back({parameter.spec.name, Role::kMoment2, DType::f32, parameter.spec.shape, trained.v.data});
  }
  return records;
}

void Trainer::save(const std::string& folder, const std::string& state, const std::atomic<bool>* cancel) const {
  if (pending_micro_batches_ != 0) {
    fail(Code::kFailedPrecondition, "micro-batches were accumulated; apply them before saving");
  }
  checkpoint::Info info = this->info();
  Json trainer_state;
  trainer_state["live"] = live_;
  trainer_state["run"] = state;
  info.state_json = to_text(trainer_state);
  const std::vector<checkpoint::Record> state_records = records();
  // Before the first byte: a disk limit that does not hold the tensors does not hold the checkpoint.
  uint64_t bytes = 0;
  for (const checkpoint::Record& record : state_records) bytes += static_cast<uint64_t>(byte_count(record.dtype, record.shape));
  runtime_->files.require_room(folder, bytes);
  checkpoint::save(runtime_->files, folder, info, state_records, cancel);
}

std::string Trainer::restore(const std::string& folder) {
  const std::unique_ptr<checkpoint::Reader> reader = checkpoint::Reader::open(runtime_->files, folder);
  const checkpoint::Info& saved = reader->info();
  const checkpoint::Info now = info();
  require_same(folder, "the base model", saved.base_identity, now.base_identity);
  require_same(folder, "the model configuration", saved.model_config_json, now.model_config_json);
  require_same(folder, "the tokenizer", saved.tokenizer_sha256, now.tokenizer_sha256);
  require_same(folder, "the chat template", saved.template_sha256, now.template_sha256);
  require_same(folder, "the adapter configuration", saved.adapter_config_json, now.adapter_config_json);
  if (!saved.dataset_identity.empty() && dataset_ != nullptr) {
    require_same(folder, "the training data", saved.dataset_identity, now.dataset_identity);
  }

  const std::string what = folder + ": state of the trainer";
  const Json trainer_state = parse_json(saved.state_json, what);
  config::Config config = config_;
  const Json& live = at(trainer_state, "live", what);
  for (const auto& [key, value] : live.items()) change(&config, key, to_text(value));
  const std::string run_state = string_at(trainer_state, "run", what);

  // Everything is compared before anything is changed.
  const std::vector<checkpoint::Record> wanted = records();
  if (reader->records().size() != wanted.size()) {
    fail(Code::kFailedPrecondition, folder, " has ", reader->records().size(), " tensors of state, this trainer has ",
         wanted.size(), ": other parameters train here");
  }
  for (const checkpoint::Record& record : wanted) {
    bool found = false;
    for (const checkpoint::Record& stored : reader->records()) {
      if (stored.name != record.name || stored.role != record.role) continue;
      found = true;
      if (stored.shape != record.shape || stored.dtype != record.dtype) {
        fail(Code::kFailedPrecondition, folder, ": tensor ", record.name, " is ", dtype_name(stored.dtype), " ",
             shape_text(stored.shape), " in the checkpoint, ", dtype_name(record.dtype), " ", shape_text(record.shape), " here");
      }
      break;
    }
    if (!found) fail(Code::kFailedPrecondition, folder, " has no state of ", record.name, ", which trains here");
  }
  for (const checkpoint::Record& record : wanted) {
    const auto bytes = static_cast<size_t>(byte_count(record.dtype, record.shape));
    reader->read(record.name, record.role, {static_cast<std::byte*>(const_cast<void*>(record.data)), bytes});
  }
  drop_gradients();
  ++weights_version_;
  steps_done_ = saved.step;
  cursor_ = {saved.epoch, saved.index};
  for (const auto& [key, value] : live.items()) set(key, to_text(value));
  return run_state;
}

}  // namespace inlaid::train

// The trainer and its data: how many steps there are, where in the data it stands.
#include <algorithm>
#include <array>
#include <cmath>

#include "sdk/base/error.h"
#include "sdk/train/trainer.h"

namespace inlaid::train {

void Trainer::set_train_data(std::shared_ptr<const data::Dataset> dataset) {
  data::BatchOptions options;
  options.seed = static_cast<uint64_t>(config_.integer("train.seed"));
  options.shuffle = config_.flag("data.shuffle");
  options.micro_batch_tokens = programs_.capacity.tokens;
  options.micro_batch_size = config_.optional_integer("train.micro_batch_size").value_or(0);
  auto batcher = std::make_unique<data::Batcher>(dataset, options);
  if (batcher->row_capacity() > programs_.capacity.tokens || batcher->document_capacity() > programs_.capacity.documents) {
    fail(Code::kInvalidArgument, "micro-batches of this data can have ", batcher->row_capacity(), " tokens in ",
         batcher->document_capacity(), " documents, the trainer was made for ", programs_.capacity.tokens, " in ",
         programs_.capacity.documents);
  }
  dataset_ = std::move(dataset);
  batcher_ = std::move(batcher);
  plan_steps();
}

void Trainer::plan_steps() {
  total_steps_ = config_.optional_integer("train.max_steps");
  if (!total_steps_ && batcher_ != nullptr) {
    const int64_t accumulation = config_.integer("train.gradient_accumulation_steps");
    const auto steps = [&](int64_t epoch) { return (batcher_->micro_batches(epoch) + accumulation - 1) / accumulation; };
    const double epochs = config_.number("train.num_train_epochs");
    const auto whole = static_cast<int64_t>(std::floor(epochs));
    int64_t total = 0;
    for (int64_t epoch = 0; epoch < whole; ++epoch) total += steps(epoch);
    const double rest = epochs - static_cast<double>(whole);
    if (rest > 0) total += static_cast<int64_t>(std::ceil(rest * static_cast<double>(steps(whole))));
    total_steps_ = total;
  }
  schedule_.reset();
  if (total_steps_) schedule_.emplace(config_, *total_steps_);
}

void Trainer::change(config::Config* config, const std::string& key, const std::string& json) {
  static constexpr std::array<std::string_view, 3> kLive = {"optim.learning_rate", "optim.weight_decay", "optim.max_grad_norm"};
  if (std::find(kLive.begin(), kLive.end(), key) == kLive.end()) {
    config::Config(*config).set(key, json);  // an unknown key is named as such
    fail(Code::kFailedPrecondition, "'", key,
         "' cannot be changed while a job trains; optim.learning_rate, optim.weight_decay and optim.max_grad_norm can");
  }
  config->set(key, json);
}

void Trainer::set(const std::string& key, const std::string& json) {
  config::Config config = config_;
  change(&config, key, json);
  // The schedule depends on the configuration; it is made before anything is changed, for it may refuse.
  std::optional<optim::LearningRateSchedule> schedule;
  if (total_steps_) schedule.emplace(config, *total_steps_);
  live_[key] = config.value(key);
  config_ = std::move(config);
  schedule_ = schedule;
}

double Trainer::epochs_done() const {
  if (batcher_ == nullptr) return 0;
  return static_cast<double>(cursor_.epoch) + static_cast<double>(cursor_.index) / static_cast<double>(batcher_->size());
}

}  // namespace inlaid::train

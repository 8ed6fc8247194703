// The trainer and its data: how many steps there are, where in the data it stands.
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

double Trainer::epochs_done() const {
  if (dataset_ == nullptr || dataset_->size() == 0) return 0;
  return static_cast<double>(cursor_.epoch) + static_cast<double>(cursor_.index) / static_cast<double>(dataset_->size());
}

}  // namespace inlaid::train

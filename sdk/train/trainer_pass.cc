// The trainer's side of a pass for a host with a loss of its own: programs, gradients, normaliser.
#include <cmath>
#include <utility>

#include "sdk/base/error.h"
#include "sdk/train/pass.h"
#include "sdk/train/trainer.h"

namespace inlaid::train {

std::unique_ptr<Pass> Trainer::forward(const data::MicroBatch& batch, const OutputSet& outputs, const std::atomic<bool>* cancel) {
  INLAID_CHECK(!trained_.empty());  // the configuration refuses an empty model.trainable, and a pattern that matches nothing
  if (pass_program_ == nullptr) {
    pass_program_ = std::make_shared<const autograd::Program>(record_pass_program(
        *runtime_, model_->config(), *modules_, programs_.capacity, true, programs_.recompute));
  }
  if (pass_program_->workspace_bytes > workspace_.size()) {
    Block larger = memory_->allocate(Category::kWorkspace, pass_program_->workspace_bytes, false);
    workspace_ = std::move(larger);
  }
  auto pass = std::make_unique<Pass>(memory_, pass_program_, programs_.capacity, bind(*pass_program_), weights_version_);
  Device device = this->device();
  pass->forward(batch, model_->config().vocab_size, outputs, device, cancel);
  return pass;
}

void Trainer::backward(Pass& pass, double count, const std::atomic<bool>* cancel) {
  pass.check_backward();
  if (!(count >= 0) || !std::isfinite(count)) {
    fail(Code::kInvalidArgument, "count = ", count, " must be 0 or what the sum of gradients is to be divided by");
  }
  if (pass.weights_version() != weights_version_) {
    fail(Code::kFailedPrecondition, "the weights have changed since the forward pass; go backward before the optimizer step");
  }
  Device device = this->device();
  try {
    pass.backward(device, cancel);
  } catch (...) {
    drop_gradients();
    throw;
  }
  pending_.tokens += pass.rows();
  pending_.documents += pass.documents();
  pending_count_ += count;
  ++pending_micro_batches_;
}

}  // namespace inlaid::train

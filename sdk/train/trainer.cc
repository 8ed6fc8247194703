#include "sdk/train/trainer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "sdk/base/error.h"
#include "sdk/tensor/device.h"
#include "sdk/train/evaluate.h"

namespace inlaid::train {
namespace {

kernels::TensorView flat(void* data, int64_t elements) { return kernels::view1(data, DType::f32, elements); }

}  // namespace

void LossSums::add(const LossSums& other) {
  loss += other.loss;
  correct += other.correct;
  target_tokens += other.target_tokens;
  tokens += other.tokens;
  documents += other.documents;
}

std::shared_ptr<Trainer> Trainer::create(std::shared_ptr<models::Model> model, std::shared_ptr<models::Adapter> adapter,
                                         const config::Config& config, const autograd::Capacity& capacity) {
  if (adapter != nullptr && adapter->base() != model) {
    fail(Code::kInvalidArgument, "the adapter belongs to another model");
  }
  std::shared_ptr<Trainer> trainer(new Trainer());
  trainer->runtime_ = model->runtime();
  trainer->model_ = std::move(model);
  trainer->adapter_ = std::move(adapter);
  trainer->config_ = config;
  trainer->memory_ = MemoryAccount::child(trainer->runtime_->memory, "trainer");
  models::Adapter* low_rank = trainer->adapter_.get();
  trainer->trainable_ = trainable_names(trainer->model_->parameters(), config, low_rank != nullptr);
  trainer->modules_ = std::make_unique<nn::Modules>(
      trainer->model_->parameters(), low_rank ? &low_rank->parameters() : nullptr, low_rank ? &low_rank->layout() : nullptr,
      trainer->trainable_, static_cast<uint64_t>(config.integer("train.seed")));

  trainer->programs_ = record_programs(*trainer->runtime_, trainer->model_->config(), *trainer->modules_, capacity,
                                       config.text("model.recompute"),
                                       trainer->runtime_->memory->usage().current_total);
  trainer->allocate();
  trainer->plan_steps();
  return trainer;
}

void Trainer::allocate() {
  gradients_ = memory_->allocate(Category::kGradients, programs_.gradient_bytes, true);
  optimizer_ = memory_->allocate(Category::kOptimizer, programs_.optimizer_bytes, true);
  activations_ = memory_->allocate(Category::kActivations, programs_.activation_bytes(), false);
  workspace_ = memory_->allocate(Category::kWorkspace, programs_.workspace_bytes(), false);
  batch_ = std::make_unique<BatchBuffers>(*memory_, programs_.capacity);

  uint64_t offset = 0;
  for (const autograd::ParameterUse& use : programs_.train.parameters) {
    if (!use.trainable) continue;
    nn::Parameter* parameter = adapter_ != nullptr ? adapter_->parameters().find(use.name) : nullptr;
    if (parameter == nullptr) parameter = model_->parameters().find(use.name);
    const int64_t elements = element_count(use.shape);
    Trained trained;
    trained.parameter = parameter;
    trained.value = flat(parameter->value.data(), elements);
    trained.gradient = flat(gradients_.data() + offset, elements);
    trained.m = flat(optimizer_.data() + 2 * offset, elements);
    const uint64_t bytes = (static_cast<uint64_t>(elements) * sizeof(float) + 63) / 64 * 64;
    trained.v = flat(optimizer_.data() + 2 * offset + bytes, elements);
    trained.decays = optim::decays(use.name, use.shape);
    offset += bytes;
    trained_.push_back(trained);
  }
  train_binding_ = bind(programs_.train);
  evaluate_binding_ = bind(programs_.evaluate);
}

autograd::Binding Trainer::bind(const autograd::Program& program) const {
  autograd::Binding binding;
  binding.activations = activations_.data();
  batch_->bind(binding);
  for (const autograd::ParameterUse& use : program.parameters) {
    binding.parameters.push_back(modules_->parameter(use.name).value.data());
    void* gradient = nullptr;
    if (use.trainable) {
      for (const Trained& trained : trained_) {
        if (trained.parameter->spec.name == use.name) gradient = trained.gradient.data;
      }
    }
    binding.gradients.push_back(gradient);
  }
  return binding;
}

Device Trainer::device() const {
  return Device::cpu(runtime_->kernels, runtime_->pool.executor(), workspace_.data(), workspace_.size());
}

LossSums Trainer::accumulate(const data::MicroBatch& batch, const std::atomic<bool>* cancel) {
  const autograd::Extents extents = batch_->load(batch, model_->config().vocab_size);
  Device device = this->device();
  autograd::Replay replay(programs_.train, device, train_binding_, extents, cancel);
  LossSums sums;
  try {
    replay.forward();
    sums = read_loss(programs_.train, activations_.data(), extents);
    replay.backward();
  } catch (...) {
    drop_gradients();
    throw;
  }
  pending_.add(sums);
  pending_count_ += static_cast<double>(sums.target_tokens);
  ++pending_micro_batches_;
  return sums;
}

void Trainer::drop_gradients() {
  std::memset(gradients_.data(), 0, gradients_.size());
  pending_ = LossSums();
  pending_count_ = 0;
  pending_micro_batches_ = 0;
}

double Trainer::squared_norm(const TensorView& gradient) const {
  double sum = 0;
  Device device = this->device();
  device.sum_squares({gradient, kernels::view1(&sum, DType::f64, 1)});
  return sum;
}

void Trainer::check_finite(double norm) const {
  if (std::isfinite(norm)) return;
  for (const Trained& trained : trained_) {
    if (!std::isfinite(squared_norm(trained.gradient))) {
      const double loss = pending_.target_tokens > 0 ? pending_.loss / static_cast<double>(pending_.target_tokens) : 0;
      fail(Code::kFailedPrecondition, "step ", steps_done_ + 1, ": the gradient of ", trained.parameter->spec.name,
           " is not finite (loss ", loss, "); nothing was changed; a lower optim.learning_rate usually helps");
    }
  }
  fail(Code::kFailedPrecondition, "step ", steps_done_ + 1, ": the norm of the gradient is not finite; nothing was changed");
}

StepResult Trainer::apply() {
  if (pending_micro_batches_ == 0) {
    fail(Code::kFailedPrecondition, "nothing was accumulated since the last optimizer step");
  }
  if (!schedule_) {
    fail(Code::kFailedPrecondition, "the schedule has no length: set train.max_steps or attach training data");
  }
  double squares = 0;
  for (const Trained& trained : trained_) squares += squared_norm(trained.gradient);
  const double scale = pending_count_ > 0 ? 1.0 / pending_count_ : 1.0;
  const double norm = std::sqrt(squares) * scale;
  try {
    check_finite(norm);
  } catch (...) {
    drop_gradients();
    throw;
  }

  // torch.nn.utils.clip_grad_norm_: the coefficient is max_norm / (norm + 1e-6), at most 1.
  const double max_norm = config_.number("optim.max_grad_norm");
  const double clip = max_norm > 0 ? std::min(1.0, max_norm / (norm + 1e-6)) : 1.0;
  kernels::AdamWArgs args;
  args.lr = config_.number("optim.learning_rate") * schedule_->multiplier(steps_done_);
  args.beta1 = config_.number("optim.adam_beta1");
  args.beta2 = config_.number("optim.adam_beta2");
  args.eps = config_.number("optim.adam_epsilon");
  args.grad_scale = scale * clip;
  args.step = steps_done_ + 1;
  Device device = this->device();
  for (const Trained& trained : trained_) {
    args.parameter = trained.value;
    args.gradient = trained.gradient;
    args.m = trained.m;
    args.v = trained.v;
    args.weight_decay = trained.decays ? config_.number("optim.weight_decay") : 0.0;
    device.adamw(args);
  }

  ++weights_version_;
  StepResult result;
  result.step = ++steps_done_;
  result.sums = pending_;
  result.micro_batches = pending_micro_batches_;
  result.grad_norm = norm;
  result.learning_rate = args.lr;
  result.epoch = epochs_done();
  pending_ = LossSums();
  pending_count_ = 0;
  pending_micro_batches_ = 0;
  return result;
}

StepResult Trainer::step(const std::atomic<bool>* cancel) {
  if (batcher_ == nullptr) fail(Code::kFailedPrecondition, "no training data is attached");
  if (pending_micro_batches_ != 0) {
    fail(Code::kFailedPrecondition, "micro-batches were accumulated by hand; apply them first");
  }
  if (steps_done_ >= *total_steps_) fail(Code::kOutOfRange, "all ", *total_steps_, " steps are done");
  const int64_t micro_batches = config_.integer("train.gradient_accumulation_steps");
  data::Cursor cursor = cursor_;
  for (int64_t i = 0; i < micro_batches; ++i) {
    const data::MicroBatch batch = batcher_->next(cursor);
    accumulate(batch, cancel);
    cursor = batch.next;
    if (batch.ends_epoch) break;
  }
  const data::Cursor before = std::exchange(cursor_, cursor);
  try {
    return apply();
  } catch (...) {
    cursor_ = before;
    throw;
  }
}

LossSums Trainer::evaluate(const data::Dataset& dataset, const std::atomic<bool>* cancel) {
  if (pending_micro_batches_ != 0) {
    fail(Code::kFailedPrecondition, "micro-batches were accumulated; apply them before evaluating");
  }
  Device device = this->device();
  return evaluate_batches(dataset, programs_.capacity.tokens, [&](const data::MicroBatch& batch) {
    const autograd::Extents extents = batch_->load(batch, model_->config().vocab_size);
    autograd::Replay(programs_.evaluate, device, evaluate_binding_, extents, cancel).forward();
    return read_loss(programs_.evaluate, activations_.data(), extents);
  });
}

std::vector<std::pair<std::string, TensorView>> Trainer::gradients() const {
  std::vector<std::pair<std::string, TensorView>> result;
  for (const Trained& trained : trained_) {
    TensorView view = trained.parameter->value.view();
    view.data = trained.gradient.data;
    result.emplace_back(trained.parameter->spec.name, view);
  }
  return result;
}

}  // namespace inlaid::train

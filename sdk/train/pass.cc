#include "sdk/train/pass.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "sdk/base/error.h"
#include "sdk/models/decoder.h"
#include "sdk/train/evaluate.h"

namespace inlaid::train {
namespace {

constexpr std::array<const char*, kOutputs> kNames = {"log_probs", "logits", "hidden_states"};

}  // namespace

const char* output_name(Output output) { return kNames[static_cast<size_t>(output)]; }

Output parse_output(const std::string& name) {
  const auto found = std::find(kNames.begin(), kNames.end(), name);
  if (found == kNames.end()) {
    fail(Code::kInvalidArgument, "output '", name, "' is none of log_probs, logits, hidden_states");
  }
  return static_cast<Output>(found - kNames.begin());
}

autograd::Program record_pass_program(const Runtime& runtime, const models::DecoderConfig& model, const nn::Modules& modules,
                                      const autograd::Capacity& capacity, bool training, bool recompute) {
  autograd::Recorder recorder(capacity, DType::f32, training);
  const autograd::ValueId hidden = models::record_decoder(recorder, model, modules, {recompute, 0});
  const autograd::ValueId loss = ops::open_head(recorder, hidden, models::head_weight(recorder, model, modules));
  return recorder.finish({loss, hidden}, runtime.kernels, runtime.pool.threads());
}

Pass::Pass(std::shared_ptr<MemoryAccount> memory, std::shared_ptr<const autograd::Program> program,
           const autograd::Capacity& capacity, autograd::Binding binding, int64_t weights_version)
    : memory_(std::move(memory)),
      program_(std::move(program)),
      binding_(std::move(binding)),
      weights_version_(weights_version) {
  batch_.emplace(*memory_, capacity);
  activations_ = memory_->allocate(Category::kActivations, program_->activation_bytes, false);
  binding_.activations = activations_.data();
  batch_->bind(binding_);
  binding_.host.assign(ops::kHostSlots, nullptr);
}

void Pass::forward(const data::MicroBatch& batch, int64_t vocabulary, const OutputSet& outputs, Device& device,
                   const std::atomic<bool>* cancel) {
  const auto asked = [&](Output output) { return outputs[static_cast<size_t>(output)]; };
  const auto make = [&](Output output, Shape shape) -> Tensor& {
    return outputs_[static_cast<size_t>(output)] =
               Tensor(*memory_, Category::kActivations, DType::f32, std::move(shape), output == Output::log_probs);
  };
  extents_ = batch_->load(batch, vocabulary, asked(Output::log_probs));
  for (int64_t row = 0; row < extents_.tokens; ++row) {
    if (batch.targets[static_cast<size_t>(row)] != data::kIgnore) target_rows_.push_back(row);
  }
  if (!asked(Output::log_probs)) extents_.targets = 0;
  if (asked(Output::logits)) {
    binding_.host[ops::kLogitsOut] = make(Output::logits, {extents_.tokens, vocabulary}).data();
  }
  autograd::Replay replay(*program_, device, binding_, extents_, cancel);
  replay.forward();
  if (asked(Output::log_probs)) {
    const auto* loss = replay.view(program_->outputs[0]).as<float>();
    auto* log_probs = make(Output::log_probs, {extents_.tokens}).as<float>();
    for (size_t i = 0; i < target_rows_.size(); ++i) log_probs[target_rows_[i]] = -loss[i];
  }
  if (asked(Output::hidden_states)) {
    const TensorView hidden = replay.view(program_->outputs[1]);
    const Tensor& copy = make(Output::hidden_states, {hidden.shape[0], hidden.shape[1]});
    std::memcpy(copy.data(), hidden.data, static_cast<size_t>(copy.bytes()));
  }
  if (program_->backward.empty()) {
    activations_ = Block();
    batch_.reset();
  }
}

const Tensor& Pass::requested(Output output) const {
  const Tensor& tensor = this->output(output);
  if (!tensor) fail(Code::kNotFound, "the pass has no output '", output_name(output), "': forward was not asked for it");
  return tensor;
}

void Pass::set_gradient(Output output, Tensor gradient) {
  const Tensor& value = requested(output);
  if (spent_) fail(Code::kFailedPrecondition, "this pass has been backward already");
  if (gradient.dtype() != value.dtype() || gradient.shape() != value.shape()) {
    fail(Code::kInvalidArgument, "the gradient of ", output_name(output), " must be f32 ", shape_text(value.shape()), ", it is ",
         dtype_name(gradient.dtype()), " ", shape_text(gradient.shape()));
  }
  gradients_[static_cast<size_t>(output)] = std::move(gradient);
}

void Pass::copy_gradient(Output output, const void* values) {
  const Tensor& value = requested(output);
  Tensor copy(*memory_, Category::kActivations, DType::f32, value.shape(), false);
  std::memcpy(copy.data(), values, static_cast<size_t>(copy.bytes()));
  set_gradient(output, std::move(copy));
}

void Pass::check_backward() const {
  if (spent_) fail(Code::kFailedPrecondition, "this pass has been backward already; each backward pass needs a forward pass");
  if (program_->backward.empty()) {
    fail(Code::kFailedPrecondition, "this pass was computed without gradients; a trainer's forward computes one with them");
  }
  if (std::none_of(gradients_.begin(), gradients_.end(), [](const Tensor& gradient) { return bool(gradient); })) {
    fail(Code::kFailedPrecondition, "no output of this pass was given a gradient");
  }
}

void Pass::backward(Device& device, const std::atomic<bool>* cancel) {
  check_backward();
  Block loss_gradient;
  const auto finish = [&] {
    spent_ = true;
    activations_ = Block();
    batch_.reset();
    gradients_ = {};
  };
  try {
    seed(&loss_gradient);
    autograd::Replay(*program_, device, binding_, extents_, cancel).backward();
  } catch (...) {
    finish();
    throw;
  }
  finish();
}

// Lends the gradients to the program. The loss of a target row is -log p.
void Pass::seed(Block* loss_gradient) {
  const auto gradient = [&](Output output) -> const Tensor& { return gradients_[static_cast<size_t>(output)]; };
  binding_.host[ops::kLogitsOut] = nullptr;
  binding_.host[ops::kLogitsGradient] = gradient(Output::logits).data();
  binding_.host[ops::kHiddenGradient] = gradient(Output::hidden_states).data();
  if (!gradient(Output::log_probs)) return;
  *loss_gradient = memory_->allocate(Category::kActivations, target_rows_.size() * sizeof(float), false);
  auto* values = reinterpret_cast<float*>(loss_gradient->data());
  const auto* given = gradient(Output::log_probs).as<float>();
  for (size_t i = 0; i < target_rows_.size(); ++i) values[i] = -given[target_rows_[i]];
  binding_.host[ops::kLossGradient] = values;
}

std::unique_ptr<Pass> forward(const models::Model& model, const models::Adapter* adapter,
                              const data::MicroBatch& batch, const OutputSet& outputs, const std::atomic<bool>* cancel) {
  if (adapter != nullptr && adapter->base().get() != &model) fail(Code::kInvalidArgument, "the adapter belongs to another model");
  const std::set<std::string> trainable;
  const nn::Modules modules(model.parameters(), adapter ? &adapter->parameters() : nullptr,
                            adapter ? &adapter->layout() : nullptr, trainable, 0);
  const Runtime& runtime = *model.runtime();
  const autograd::Capacity capacity{std::max<int64_t>(batch.rows(), 1),
                                    std::max<int64_t>(static_cast<int64_t>(batch.cu_seqlens.size()), 1)};
  const auto program = std::make_shared<const autograd::Program>(
      record_pass_program(runtime, model.config(), modules, capacity, false, false));
  const std::shared_ptr<MemoryAccount> memory = MemoryAccount::child(runtime.memory, "forward");
  const Block workspace = memory->allocate(Category::kWorkspace, program->workspace_bytes, false);
  auto pass = std::make_unique<Pass>(memory, program, capacity, bind_frozen(*program, modules));
  Device device = Device::cpu(runtime.kernels, model.runtime()->pool.executor(), workspace.data(), workspace.size());
  pass->forward(batch, model.config().vocab_size, outputs, device, cancel);
  return pass;
}

}  // namespace inlaid::train

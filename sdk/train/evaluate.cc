#include "sdk/train/evaluate.h"

#include <algorithm>

namespace inlaid::train {

autograd::Binding bind_frozen(const autograd::Program& program, const nn::Modules& modules) {
  autograd::Binding binding;
  for (const autograd::ParameterUse& use : program.parameters) {
    binding.parameters.push_back(modules.parameter(use.name).value.data());
    binding.gradients.push_back(nullptr);
  }
  return binding;
}

LossSums read_loss(const autograd::Program& program, const std::byte* activations, const autograd::Extents& extents) {
  const auto output = [&](size_t i) {
    return activations + program.offset[static_cast<size_t>(program.root(program.outputs[i]))];
  };
  const auto* loss = reinterpret_cast<const float*>(output(0));
  const auto* correct = reinterpret_cast<const int32_t*>(output(1));
  LossSums sums;
  for (int64_t i = 0; i < extents.targets; ++i) {
    sums.loss += static_cast<double>(loss[i]);
    sums.correct += correct[i];
  }
  sums.target_tokens = extents.targets;
  sums.tokens = extents.tokens;
  sums.documents = extents.documents;
  return sums;
}

LossSums evaluate(const models::Model& model, const models::Adapter* adapter, const data::Dataset& dataset,
                  const std::atomic<bool>* cancel, int64_t most_tokens) {
  constexpr int64_t kRows = 1024;
  const std::set<std::string> trainable;
  const nn::Modules modules(model.parameters(), adapter ? &adapter->parameters() : nullptr,
                            adapter ? &adapter->layout() : nullptr, trainable, 0);
  const Runtime& runtime = *model.runtime();
  autograd::Capacity capacity;
  capacity.tokens = std::max(kRows, dataset.longest());
  capacity.documents = capacity.tokens;
  const autograd::Program program = record_loss_program(runtime, model.config(), modules, capacity, false, false);

  const std::shared_ptr<MemoryAccount> memory = MemoryAccount::child(runtime.memory, "evaluation");
  const Block activations = memory->allocate(Category::kActivations, program.activation_bytes, false);
  const Block workspace = memory->allocate(Category::kWorkspace, program.workspace_bytes, false);
  BatchBuffers buffers(*memory, capacity);
  autograd::Binding binding = bind_frozen(program, modules);
  binding.activations = activations.data();
  buffers.bind(binding);
  Device device = Device::cpu(runtime.kernels, model.runtime()->pool.executor(), workspace.data(), workspace.size());
  return evaluate_batches(dataset, capacity.tokens, [&](const data::MicroBatch& batch) {
    const autograd::Extents extents = buffers.load(batch, model.config().vocab_size);
    autograd::Replay(program, device, binding, extents, cancel).forward();
    return read_loss(program, activations.data(), extents);
  }, most_tokens);
}

}  // namespace inlaid::train

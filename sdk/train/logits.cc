#include "sdk/train/logits.h"

#include <algorithm>

#include "sdk/autograd/recorder.h"
#include "sdk/autograd/replay.h"
#include "sdk/models/decoder.h"
#include "sdk/ops/ops.h"
#include "sdk/train/batch_buffers.h"

namespace inlaid::train {

std::vector<float> all_logits(const models::Model& model, const models::Adapter* adapter, const data::MicroBatch& batch) {
  const std::set<std::string> trainable;
  const nn::Modules modules(model.parameters(), adapter ? &adapter->parameters() : nullptr,
                            adapter ? &adapter->layout() : nullptr, trainable, 0);
  const autograd::Capacity capacity{batch.rows(), static_cast<int64_t>(batch.cu_seqlens.size())};
  autograd::Recorder recorder(capacity, DType::f32, false);
  const autograd::ValueId hidden = models::record_decoder(recorder, model.config(), modules, {});
  const autograd::ValueId logits =
      ops::target_logits(recorder, hidden, models::head_weight(recorder, model.config(), modules));
  const Runtime& runtime = *model.runtime();
  const autograd::Program program = recorder.finish({logits}, runtime.kernels, runtime.pool.threads());
  const std::shared_ptr<MemoryAccount> memory = MemoryAccount::child(runtime.memory, "logits");
  const Block activations = memory->allocate(Category::kActivations, program.activation_bytes, false);
  const Block workspace = memory->allocate(Category::kWorkspace, program.workspace_bytes, false);
  BatchBuffers buffers(*memory, capacity);
  data::MicroBatch every = batch;  // every row is a target row
  std::fill(every.targets.begin(), every.targets.end(), 0);
  const autograd::Extents extents = buffers.load(every, model.config().vocab_size);
  autograd::Binding binding;
  binding.activations = activations.data();
  buffers.bind(binding);
  for (const autograd::ParameterUse& use : program.parameters) {
    binding.parameters.push_back(modules.parameter(use.name).value.data());
    binding.gradients.push_back(nullptr);
  }
  Device device = Device::cpu(runtime.kernels, model.runtime()->pool.executor(), workspace.data(), workspace.size());
  autograd::Replay(program, device, binding, extents, nullptr).forward();
  const auto* values = reinterpret_cast<const float*>(activations.data() + program.offset[static_cast<size_t>(logits)]);
  return {values, values + batch.rows() * model.config().vocab_size};
}

}  // namespace inlaid::train

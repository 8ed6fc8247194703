#include <algorithm>

#include "sdk/base/error.h"
#include "sdk/nn/pattern.h"
#include "sdk/train/evaluate.h"
#include "sdk/train/trainer.h"

namespace inlaid::train {
namespace {

constexpr uint64_t kAlign = 64;

uint64_t padded(uint64_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

}  // namespace

autograd::Program record_loss_program(const Runtime& runtime, const models::DecoderConfig& model, const nn::Modules& modules,
                                      const autograd::Capacity& capacity, bool training, bool recompute) {
  autograd::Recorder recorder(capacity, DType::f32, training);
  const models::DecoderOptions options{recompute, 0};
  const autograd::ValueId hidden = models::record_decoder(recorder, model, modules, options);
  const ops::Loss loss =
      ops::linear_cross_entropy(recorder, hidden, models::head_weight(recorder, model, modules), 1.0);
  return recorder.finish({loss.loss, loss.correct}, runtime.kernels, runtime.pool.threads());
}

uint64_t Programs::activation_bytes() const { return std::max(train.activation_bytes, evaluate.activation_bytes); }
uint64_t Programs::workspace_bytes() const { return padded(std::max(train.workspace_bytes, evaluate.workspace_bytes)); }
uint64_t Programs::total_bytes() const {
  return gradient_bytes + optimizer_bytes + activation_bytes() + workspace_bytes() + data_bytes();
}
uint64_t Programs::data_bytes() const { return BatchBuffers::bytes(capacity); }

std::set<std::string> trainable_names(const nn::ParameterSet& base, const config::Config& config, bool adapter) {
  std::set<std::string> names;
  if (adapter) return names;
  const Json& patterns = config.value("model.trainable");
  if (!patterns.is_array()) {
    for (const auto& parameter : base.all()) names.insert(parameter->spec.name);
  } else {
    for (const Json& entry : patterns) {
      const std::string text = entry.get<std::string>();
      const nn::Pattern pattern(text, "model.trainable");
      bool found = false;
      for (const auto& parameter : base.all()) {
        if (!pattern.is_inside(parameter->spec.name)) continue;
        names.insert(parameter->spec.name);
        found = true;
      }
      if (!found) fail(Code::kInvalidArgument, "model.trainable: '", text, "' matches no parameter");
    }
  }
  for (const std::string& name : names) {
    const DType held = base.find(name)->value.dtype();
    if (held != DType::f32) {
      fail(Code::kInvalidArgument, "parameter ", name, " would train but is held as ", dtype_name(held),
           "; set model.weights_dtype to f32, freeze it with model.trainable, or train an adapter");
    }
  }
  return names;
}

Programs record_programs(const Runtime& runtime, const models::DecoderConfig& model, const nn::Modules& modules,
                         const autograd::Capacity& capacity, const std::string& recompute, uint64_t in_use) {
  Programs programs;
  programs.capacity = capacity;
  programs.recompute = recompute == "full";
  programs.train = record_loss_program(runtime, model, modules, capacity, true, programs.recompute);
  programs.evaluate = record_loss_program(runtime, model, modules, capacity, false, false);
  for (const autograd::ParameterUse& use : programs.train.parameters) {
    if (!use.trainable) continue;
    const uint64_t bytes = padded(static_cast<uint64_t>(byte_count(DType::f32, use.shape)));
    programs.gradient_bytes += bytes;
    programs.optimizer_bytes += 2 * bytes;
  }
  const uint64_t limit = runtime.memory->limit();
  if (recompute == "auto" && limit > 0 && in_use + programs.total_bytes() > limit) {
    return record_programs(runtime, model, modules, capacity, "full", in_use);
  }
  return programs;
}

}  // namespace inlaid::train

#include "sdk/nn/modules.h"

#include "sdk/base/error.h"
#include "sdk/tensor/random.h"

namespace inlaid::nn {

using autograd::kNone;
using autograd::Recorder;
using autograd::ValueId;

const Parameter& Modules::parameter(const std::string& name) const {
  const Parameter* found = adapter_ != nullptr ? adapter_->find(name) : nullptr;
  if (found == nullptr) found = base_.find(name);
  if (found == nullptr) fail(Code::kInternal, "no parameter '", name, "'");
  return *found;
}

autograd::ParameterUse Modules::use(const std::string& name) const {
  const Parameter& found = parameter(name);
  const bool trains =
      adapter_ != nullptr ? adapter_->find(name) != nullptr : trainable_.contains(name);
  return {name, found.spec.shape, found.value.dtype(), trains};
}

bool Modules::has(const std::string& name) const {
  return (adapter_ != nullptr && adapter_->find(name) != nullptr) || base_.find(name) != nullptr;
}

const Lora* Modules::lora(const std::string& module) const {
  if (layout_ == nullptr) return nullptr;
  const auto found = layout_->modules.find(module);
  return found == layout_->modules.end() ? nullptr : &found->second;
}

ValueId parameter(Recorder& recorder, const Modules& modules, const std::string& name) {
  return recorder.parameter(modules.use(name));
}

ValueId linear(Recorder& recorder, const Modules& modules, const std::string& module, ValueId x) {
  const std::string bias = module + ".bias";
  const ValueId y = ops::linear(recorder, x, parameter(recorder, modules, module + ".weight"),
                                modules.has(bias) ? parameter(recorder, modules, bias) : kNone);
  const Lora* lora = modules.lora(module);
  if (lora == nullptr) return y;
  const ValueId u = ops::lora_down(recorder, x, parameter(recorder, modules, lora->a), lora->dropout,
                                   random_key(modules.seed(), module + ".lora_dropout"));
  return ops::lora_up(recorder, y, u, parameter(recorder, modules, lora->b), lora->scale);
}

}  // namespace inlaid::nn

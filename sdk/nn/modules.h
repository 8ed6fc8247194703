// What a model records against: parameters and low-rank adapters by name, without knowing who holds them.
#ifndef INLAID_SDK_NN_MODULES_H_
#define INLAID_SDK_NN_MODULES_H_

#include <set>
#include <string>

#include "sdk/autograd/recorder.h"
#include "sdk/nn/adapter.h"
#include "sdk/nn/parameter.h"
#include "sdk/ops/ops.h"

namespace inlaid::nn {

// A base, and optionally an adapter whose parameters come before the base's of the same name (modules_to_save). With an adapter
// its parameters train and the base is frozen; without one, the base's parameters in `trainable` train. All arguments must
// outlive this object.
class Modules {
 public:
  Modules(const ParameterSet& base, const ParameterSet* adapter, const AdapterLayout* layout,
          const std::set<std::string>& trainable, uint64_t seed)
      : base_(base), adapter_(adapter), layout_(layout), trainable_(trainable), seed_(seed) {}

  // kInternal for a name that neither has.
  const Parameter& parameter(const std::string& name) const;
  autograd::ParameterUse use(const std::string& name) const;
  bool has(const std::string& name) const;
  const Lora* lora(const std::string& module) const;
  uint64_t seed() const { return seed_; }

 private:
  const ParameterSet& base_;
  const ParameterSet* adapter_;
  const AdapterLayout* layout_;
  const std::set<std::string>& trainable_;
  uint64_t seed_;
};

// The value of module + ".weight" and the like.
autograd::ValueId parameter(autograd::Recorder& recorder, const Modules& modules, const std::string& name);

// y = x W^T (+ bias if the module has one) (+ its low-rank update if it has an adapter).
autograd::ValueId linear(autograd::Recorder& recorder, const Modules& modules, const std::string& module,
                         autograd::ValueId x);

}  // namespace inlaid::nn

#endif  // INLAID_SDK_NN_MODULES_H_

#include "sdk/nn/parameter.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sdk/base/error.h"
#include "sdk/tensor/random.h"

namespace inlaid::nn {

void initialise(const ParameterSpec& spec, uint64_t seed, std::span<float> values) {
  const uint64_t key = random_key(seed, spec.name);
  switch (spec.init.kind) {
    case Init::Kind::zeros: std::fill(values.begin(), values.end(), 0.0f); break;
    case Init::Kind::ones: std::fill(values.begin(), values.end(), 1.0f); break;
    case Init::Kind::normal: fill_normal(key, 0.0, spec.init.deviation, values); break;
    case Init::Kind::kaiming_uniform: {
      // With a = sqrt(5), as PEFT initialises LoRA A: bound = sqrt(6 / ((1 + a^2) fan_in)) = 1 / sqrt(fan_in).
      const double bound = 1.0 / std::sqrt(static_cast<double>(spec.shape.back()));
      fill_uniform(key, -bound, bound, values);
      break;
    }
  }
}

Parameter& ParameterSet::add(Parameter parameter) {
  const std::string name = parameter.spec.name;
  INLAID_CHECK(!by_name_.contains(name));
  parameters_.push_back(std::make_unique<Parameter>(std::move(parameter)));
  by_name_[name] = parameters_.back().get();
  return *parameters_.back();
}

Parameter* ParameterSet::find(const std::string& name) {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

const Parameter* ParameterSet::find(const std::string& name) const {
  return const_cast<ParameterSet*>(this)->find(name);
}

}  // namespace inlaid::nn

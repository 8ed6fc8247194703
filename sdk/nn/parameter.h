// Parameters: what a model declares, and what a job holds of it.
#ifndef INLAID_SDK_NN_PARAMETER_H_
#define INLAID_SDK_NN_PARAMETER_H_

#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "sdk/tensor/tensor.h"

namespace inlaid::nn {

// Rule for initial values; random ones are a pure function of (seed, logical name).
struct Init {
  enum class Kind { zeros, ones, normal, kaiming_uniform } kind = Kind::zeros;
  double deviation = 0;  // normal
};

// What a module declares: a layout-free logical name (the Hugging Face name), the full shape, an init rule.
struct ParameterSpec {
  std::string name;
  Shape shape;
  Init init;
};

struct Parameter {
  ParameterSpec spec;
  Tensor value;  // f32 when it trains, any storage type when it is frozen
};

// Fills value (f32) by the spec's rule.
void initialise(const ParameterSpec& spec, uint64_t seed, std::span<float> values);

// Parameters in declaration order, found by name.
class ParameterSet {
 public:
  Parameter& add(Parameter parameter);
  Parameter* find(const std::string& name);
  const Parameter* find(const std::string& name) const;
  std::vector<std::unique_ptr<Parameter>>& all() { return parameters_; }
  const std::vector<std::unique_ptr<Parameter>>& all() const { return parameters_; }

 private:
  std::vector<std::unique_ptr<Parameter>> parameters_;
  std::unordered_map<std::string, Parameter*> by_name_;
};

}  // namespace inlaid::nn

#endif  // INLAID_SDK_NN_PARAMETER_H_

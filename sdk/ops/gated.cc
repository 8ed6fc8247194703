#include "sdk/autograd/replay.h"
#include "sdk/ops/gradient_scratch.h"
#include "sdk/ops/ops.h"

namespace inlaid::ops {
namespace {

using autograd::Extent;
using autograd::Input;
using autograd::Node;
using autograd::Op;
using autograd::Phase;
using autograd::Replay;

class Gated final : public Op {
 public:
  explicit Gated(kernels::Activation activation) : activation_(activation) {}
  enum : size_t { kGate, kUp };
  const char* name() const override { return "gated"; }

  void forward(const Node& node, Replay& replay) const override {
    replay.device().gated_forward({replay.view(node.inputs[kGate]), replay.view(node.inputs[kUp]),
                                   replay.view(node.outputs[0]), activation_});
  }
  void backward_input(const Node& node, Replay& replay) const override {
    replay.device().gated_backward({replay.view(node.output_gradients[0]), replay.view(node.inputs[kGate]),
                                    replay.view(node.inputs[kUp]), gradient_or_scratch(node, replay, kGate),
                                    gradient_or_scratch(node, replay, kUp), activation_});
  }
  std::vector<ValueId> saved(const Node& node, Phase) const override {
    return {node.inputs[kGate], node.inputs[kUp]};
  }

 private:
  kernels::Activation activation_;
};

class Embedding final : public Op {
 public:
  explicit Embedding(double scale) : scale_(scale) {}
  enum : size_t { kTokens, kWeight };
  const char* name() const override { return "embedding"; }

  void forward(const Node& node, Replay& replay) const override {
    replay.device().embedding_forward(
        {replay.view(node.inputs[kTokens]), replay.view(node.inputs[kWeight]), replay.view(node.outputs[0]), scale_});
  }
  void backward_weight(const Node& node, Replay& replay) const override {
    replay.device().embedding_backward({replay.view(node.inputs[kTokens]), replay.view(node.output_gradients[0]),
                                        replay.parameter_gradient(node.inputs[kWeight]), scale_});
  }
  std::vector<ValueId> saved(const Node&, Phase) const override { return {}; }

 private:
  double scale_;
};

}  // namespace

ValueId gated(Recorder& recorder, ValueId gate, ValueId up, kernels::Activation activation) {
  const ValueId y = recorder.activation(Extent::tokens, recorder.value(gate).shape[1]);
  add_gradient_scratch(recorder, {gate, up});
  recorder.append(std::make_shared<Gated>(activation), {gate, up}, {y});
  return y;
}

ValueId embedding(Recorder& recorder, ValueId weight, double scale) {
  const ValueId y = recorder.activation(Extent::tokens, recorder.value(weight).shape[1]);
  recorder.append(std::make_shared<Embedding>(scale), {recorder.input(Input::tokens), weight}, {y});
  return y;
}

}  // namespace inlaid::ops

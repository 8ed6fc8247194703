#include "sdk/autograd/replay.h"
#include "sdk/ops/ops.h"

namespace inlaid::ops {
namespace {

using autograd::Extent;
using autograd::Node;
using autograd::Op;
using autograd::Phase;
using autograd::Replay;

class RmsNorm final : public Op {
 public:
  explicit RmsNorm(double eps) : eps_(eps) {}
  enum : size_t { kX, kWeight };
  enum : size_t { kY, kRstd };
  const char* name() const override { return "rms_norm"; }

  void forward(const Node& node, Replay& replay) const override {
    kernels::RmsNormForwardArgs args;
    args.x = replay.view(node.inputs[kX]);
    args.weight = replay.view(node.inputs[kWeight]);
    args.y = replay.view(node.outputs[kY]);
    args.rstd = replay.view(node.outputs[kRstd]);
    args.eps = eps_;
    replay.device().rms_norm_forward(args);
  }

  void backward_input(const Node& node, Replay& replay) const override {
    kernels::RmsNormBackwardInputArgs args;
    args.dy = replay.view(node.output_gradients[kY]);
    args.x = replay.view(node.inputs[kX]);
    args.weight = replay.view(node.inputs[kWeight]);
    args.rstd = replay.view(node.outputs[kRstd]);
    args.dx = replay.view(node.input_gradients[kX]);
    args.accumulate = node.accumulate[kX];
    replay.device().rms_norm_backward_input(args);
  }

  void backward_weight(const Node& node, Replay& replay) const override {
    kernels::RmsNormBackwardWeightArgs args;
    args.dy = replay.view(node.output_gradients[kY]);
    args.x = replay.view(node.inputs[kX]);
    args.rstd = replay.view(node.outputs[kRstd]);
    args.dweight = replay.parameter_gradient(node.inputs[kWeight]);
    replay.device().rms_norm_backward_weight(args);
  }

  std::vector<ValueId> saved(const Node& node, Phase) const override {
    return {node.inputs[kX], node.outputs[kRstd]};
  }

 private:
  double eps_;
};

class Add final : public Op {
 public:
  const char* name() const override { return "add"; }

  void forward(const Node& node, Replay& replay) const override {
    replay.device().add({replay.view(node.inputs[0]), replay.view(node.inputs[1]), replay.view(node.outputs[0])});
  }

  std::vector<ValueId> saved(const Node&, Phase) const override { return {}; }
  bool passes_gradient(size_t) const override { return true; }
};

}  // namespace

ValueId rms_norm(Recorder& recorder, ValueId x, ValueId weight, double eps) {
  const ValueId y = recorder.activation(Extent::tokens, recorder.value(x).shape[1]);
  const ValueId rstd = recorder.activation(Extent::tokens, 0);
  recorder.append(std::make_shared<RmsNorm>(eps), {x, weight}, {y, rstd});
  return y;
}

ValueId add(Recorder& recorder, ValueId a, ValueId b) {
  const ValueId y = recorder.activation(Extent::tokens, recorder.value(a).shape[1]);
  recorder.append(std::make_shared<Add>(), {a, b}, {y});
  return y;
}

}  // namespace inlaid::ops

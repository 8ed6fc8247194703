#include "sdk/autograd/replay.h"
#include "sdk/base/error.h"
#include "sdk/ops/ops.h"

namespace inlaid::ops {
namespace {

using autograd::Extent;
using autograd::Node;
using autograd::Op;
using autograd::Phase;
using autograd::Replay;

// A row of x holds x columns / weight columns pieces that are normalised on their own, usually one; to the kernels each is a
// row.
class RmsNorm final : public Op {
 public:
  RmsNorm(double eps, double weight_offset) : eps_(eps), weight_offset_(weight_offset) {}
  enum : size_t { kX, kWeight };
  enum : size_t { kY, kRstd };
  const char* name() const override { return "rms_norm"; }

  void forward(const Node& node, Replay& replay) const override {
    kernels::RmsNormForwardArgs args;
    args.weight = replay.view(node.inputs[kWeight]);
    const int64_t width = args.weight.shape[0];
    args.x = pieces(replay.view(node.inputs[kX]), width);
    args.y = pieces(replay.view(node.outputs[kY]), width);
    args.rstd = flat(replay.view(node.outputs[kRstd]));
    args.eps = eps_;
    args.weight_offset = weight_offset_;
    replay.device().rms_norm_forward(args);
  }

  void backward_input(const Node& node, Replay& replay) const override {
    kernels::RmsNormBackwardInputArgs args;
    args.weight = replay.view(node.inputs[kWeight]);
    const int64_t width = args.weight.shape[0];
    args.dy = pieces(replay.view(node.output_gradients[kY]), width);
    args.x = pieces(replay.view(node.inputs[kX]), width);
    args.rstd = flat(replay.view(node.outputs[kRstd]));
    args.dx = pieces(replay.view(node.input_gradients[kX]), width);
    args.accumulate = node.accumulate[kX];
    args.weight_offset = weight_offset_;
    replay.device().rms_norm_backward_input(args);
  }

  void backward_weight(const Node& node, Replay& replay) const override {
    kernels::RmsNormBackwardWeightArgs args;
    args.dweight = replay.parameter_gradient(node.inputs[kWeight]);
    const int64_t width = args.dweight.shape[0];
    args.dy = pieces(replay.view(node.output_gradients[kY]), width);
    args.x = pieces(replay.view(node.inputs[kX]), width);
    args.rstd = flat(replay.view(node.outputs[kRstd]));
    replay.device().rms_norm_backward_weight(args);
  }

  std::vector<ValueId> saved(const Node& node, Phase) const override {
    return {node.inputs[kX], node.outputs[kRstd]};
  }

 private:
  static TensorView pieces(TensorView view, int64_t width) {
    return kernels::view2(view.data, view.dtype, view.shape[0] * (view.shape[1] / width), width);
  }
  static TensorView flat(const TensorView& view) { return kernels::view1(view.data, view.dtype, view.elements()); }

  double eps_, weight_offset_;
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

ValueId rms_norm(Recorder& recorder, ValueId x, ValueId weight, double eps, double weight_offset) {
  const int64_t columns = recorder.value(x).shape[1], width = recorder.value(weight).shape[0];
  INLAID_CHECK(columns % width == 0);
  const ValueId y = recorder.activation(Extent::tokens, columns);
  const ValueId rstd = recorder.activation(Extent::tokens, columns / width);
  recorder.append(std::make_shared<RmsNorm>(eps, weight_offset), {x, weight}, {y, rstd});
  return y;
}

ValueId add(Recorder& recorder, ValueId a, ValueId b) {
  const ValueId y = recorder.activation(Extent::tokens, recorder.value(a).shape[1]);
  recorder.append(std::make_shared<Add>(), {a, b}, {y});
  return y;
}

}  // namespace inlaid::ops

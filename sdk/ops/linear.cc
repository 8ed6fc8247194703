#include "sdk/autograd/replay.h"
#include "sdk/ops/ops.h"

namespace inlaid::ops {
namespace {

using autograd::Extent;
using autograd::kNone;
using autograd::Node;
using autograd::Op;
using autograd::Phase;
using autograd::Replay;

class Linear final : public Op {
 public:
  enum : size_t { kX, kWeight, kBias };
  const char* name() const override { return "linear"; }

  void forward(const Node& node, Replay& replay) const override {
    kernels::GemmArgs args;
    args.a = replay.view(node.inputs[kX]);
    args.b = replay.view(node.inputs[kWeight]);
    args.bias = replay.optional(node.inputs[kBias]);
    args.c = replay.view(node.outputs[0]);
    args.transpose_b = true;
    replay.device().gemm(args);
  }

  void backward_input(const Node& node, Replay& replay) const override {
    kernels::GemmArgs args;
    args.a = replay.view(node.output_gradients[0]);
    args.b = replay.view(node.inputs[kWeight]);
    args.c = replay.view(node.input_gradients[kX]);
    args.accumulate = node.accumulate[kX];
    replay.device().gemm(args);
  }

  void backward_weight(const Node& node, Replay& replay) const override {
    const TensorView dy = replay.view(node.output_gradients[0]);
    if (replay.trainable(node.inputs[kWeight])) {
      kernels::GemmArgs args;
      args.a = dy;
      args.b = replay.view(node.inputs[kX]);
      args.c = replay.parameter_gradient(node.inputs[kWeight]);
      args.transpose_a = true;
      args.accumulate = true;
      replay.device().gemm(args);
    }
    if (replay.trainable(node.inputs[kBias])) {
      replay.device().sum_rows({dy, replay.parameter_gradient(node.inputs[kBias])});
    }
  }

  std::vector<ValueId> saved(const Node& node, Phase half) const override {
    if (half == Phase::backward_weight && node.inputs[kX] != kNone) return {node.inputs[kX]};
    return {};
  }
};

// u = dropout(x) a^T. The dropped x exists only in scratch; its mask is drawn again in the backward pass.
class LoraDown final : public Op {
 public:
  LoraDown(double dropout, uint64_t key) : dropout_(dropout), key_(key) {}
  enum : size_t { kX, kA, kRowKeys, kPositions };
  const char* name() const override { return "lora_down"; }

  void forward(const Node& node, Replay& replay) const override {
    kernels::GemmArgs args;
    args.a = dropped(node, replay, Phase::forward);
    args.b = replay.view(node.inputs[kA]);
    args.c = replay.view(node.outputs[0]);
    args.transpose_b = true;
    replay.device().gemm(args);
  }

  // dx += mask(du a) / (1 - p).
  void backward_input(const Node& node, Replay& replay) const override {
    const TensorView dx = replay.view(node.input_gradients[kX]);
    kernels::GemmArgs args;
    args.a = replay.view(node.output_gradients[0]);
    args.b = replay.view(node.inputs[kA]);
    if (dropout_ == 0) {
      args.c = dx;
      args.accumulate = node.accumulate[kX];
      replay.device().gemm(args);
      return;
    }
    args.c = replay.view(node.scratch[static_cast<size_t>(Phase::backward_input)][0]);
    replay.device().gemm(args);
    mask(node, replay, args.c, dx, node.accumulate[kX]);
  }

  // da += du^T dropout(x).
  void backward_weight(const Node& node, Replay& replay) const override {
    kernels::GemmArgs args;
    args.a = replay.view(node.output_gradients[0]);
    args.b = dropped(node, replay, Phase::backward_weight);
    args.c = replay.parameter_gradient(node.inputs[kA]);
    args.transpose_a = true;
    args.accumulate = true;
    replay.device().gemm(args);
  }

  std::vector<ValueId> saved(const Node& node, Phase half) const override {
    if (half == Phase::backward_weight) return {node.inputs[kX]};
    return {};
  }

 private:
  TensorView dropped(const Node& node, Replay& replay, Phase phase) const {
    const TensorView x = replay.view(node.inputs[kX]);
    if (dropout_ == 0) return x;
    const TensorView y = replay.view(node.scratch[static_cast<size_t>(phase)][0]);
    mask(node, replay, x, y, false);
    return y;
  }

  void mask(const Node& node, Replay& replay, const TensorView& x, const TensorView& y, bool accumulate) const {
    kernels::DropoutArgs args;
    args.x = x;
    args.y = y;
    args.row_keys = replay.view(node.inputs[kRowKeys]);
    args.positions = replay.view(node.inputs[kPositions]);
    args.key = key_;
    args.p = dropout_;
    args.accumulate = accumulate;
    replay.device().dropout(args);
  }

  double dropout_;
  uint64_t key_;
};

// y += scale * u b^T, in place.
class LoraUp final : public Op {
 public:
  explicit LoraUp(double scale) : scale_(scale) {}
  enum : size_t { kY, kU, kB };
  const char* name() const override { return "lora_up"; }

  void forward(const Node& node, Replay& replay) const override {
    kernels::GemmArgs args;
    args.a = replay.view(node.inputs[kU]);
    args.b = replay.view(node.inputs[kB]);
    args.c = replay.view(node.outputs[0]);
    args.transpose_b = true;
    args.accumulate = true;
    args.alpha = scale_;
    replay.device().gemm(args);
  }

  // du = scale * dy b.
  void backward_input(const Node& node, Replay& replay) const override {
    if (node.input_gradients[kU] == kNone) return;
    kernels::GemmArgs args;
    args.a = replay.view(node.output_gradients[0]);
    args.b = replay.view(node.inputs[kB]);
    args.c = replay.view(node.input_gradients[kU]);
    args.accumulate = node.accumulate[kU];
    args.alpha = scale_;
    replay.device().gemm(args);
  }

  // db += scale * dy^T u.
  void backward_weight(const Node& node, Replay& replay) const override {
    kernels::GemmArgs args;
    args.a = replay.view(node.output_gradients[0]);
    args.b = replay.view(node.inputs[kU]);
    args.c = replay.parameter_gradient(node.inputs[kB]);
    args.transpose_a = true;
    args.accumulate = true;
    args.alpha = scale_;
    replay.device().gemm(args);
  }

  std::vector<ValueId> saved(const Node& node, Phase half) const override {
    if (half == Phase::backward_weight) return {node.inputs[kU]};
    return {};
  }

  bool passes_gradient(size_t input) const override { return input == kY; }

 private:
  double scale_;
};

}  // namespace

ValueId linear(Recorder& recorder, ValueId x, ValueId weight, ValueId bias) {
  const ValueId y = recorder.activation(Extent::tokens, recorder.value(weight).shape[0]);
  recorder.append(std::make_shared<Linear>(), {x, weight, bias}, {y});
  return y;
}

ValueId lora_down(Recorder& recorder, ValueId x, ValueId a, double dropout, uint64_t key) {
  const double p = recorder.training() ? dropout : 0.0;
  const int64_t width = recorder.value(x).shape[1];
  std::vector<ValueId> inputs = {x, a, kNone, kNone};
  if (p > 0) {
    inputs[LoraDown::kRowKeys] = recorder.input(autograd::Input::row_keys);
    inputs[LoraDown::kPositions] = recorder.input(autograd::Input::positions);
    for (Phase phase : {Phase::forward, Phase::backward_input, Phase::backward_weight}) {
      recorder.scratch(phase, Extent::tokens, width);
    }
  }
  const ValueId u = recorder.activation(Extent::tokens, recorder.value(a).shape[0]);
  recorder.append(std::make_shared<LoraDown>(p, key), std::move(inputs), {u});
  return u;
}

ValueId lora_up(Recorder& recorder, ValueId y, ValueId u, ValueId b, double scale) {
  const ValueId out = recorder.in_place(y);
  recorder.append(std::make_shared<LoraUp>(scale), {y, u, b}, {out});
  return out;
}

}  // namespace inlaid::ops

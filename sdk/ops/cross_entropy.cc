// Cross-entropy fused with the linear head.
//
// Problem: logits of all tokens are T x V floats (1,024 x 49,152 = 192 MiB), and their gradient as much again. Only rows with a
// target matter, and a row's loss and gradient depend on that row alone. So the rows with a target are gathered, and for one
// chunk of rows at a time: logits = x W^T; loss and gradient of the logits in place; dx = dlogits W; dW += dlogits^T x.
// Memory: one chunk of logits and three [T,H] buffers. Cost: the three products of the head, nothing twice.
#include <algorithm>

#include "sdk/autograd/replay.h"
#include "sdk/ops/chunks.h"
#include "sdk/ops/ops.h"

namespace inlaid::ops {
namespace {

using autograd::Extent;
using autograd::Input;
using autograd::kNone;
using autograd::Node;
using autograd::Op;
using autograd::Phase;
using autograd::Replay;

class LinearCrossEntropy final : public Op {
 public:
  LinearCrossEntropy(bool training, double gradient_scale, double soft_cap)
      : training_(training), gradient_scale_(gradient_scale), soft_cap_(soft_cap) {}
  enum : size_t { kX, kWeight, kTargets, kRows };
  enum : size_t { kLoss, kCorrect, kGradient };
  enum : size_t { kGathered, kLogits, kCompactGradient };
  const char* name() const override { return "linear_cross_entropy"; }

  void forward(const Node& node, Replay& replay) const override {
    const std::vector<ValueId>& scratch = node.scratch[static_cast<size_t>(Phase::forward)];
    const TensorView index = replay.view(node.inputs[kRows]);
    const TensorView weight = replay.view(node.inputs[kWeight]);
    const TensorView x = replay.view(scratch[kGathered]);
    const TensorView targets = replay.view(node.inputs[kTargets]);
    const TensorView loss = replay.view(node.outputs[kLoss]);
    const TensorView correct = replay.view(node.outputs[kCorrect]);
    const bool input_gradient = node.outputs.size() > kGradient;
    const bool weight_gradient = training_ && replay.trainable(node.inputs[kWeight]);
    replay.device().gather_rows({replay.view(node.inputs[kX]), index, x});

    for (int64_t begin = 0; begin < x.shape[0]; begin += kChunkRows) {
      replay.check_cancel();
      const int64_t count = std::min(kChunkRows, x.shape[0] - begin);
      const TensorView logits = rows(replay.view(scratch[kLogits]), 0, count);
      kernels::GemmArgs head;
      head.a = rows(x, begin, count);
      head.b = weight;
      head.c = logits;
      head.transpose_b = true;
      replay.device().gemm(head);

      kernels::CrossEntropyArgs loss_args;
      loss_args.logits = logits;
      loss_args.targets = rows(targets, begin, count);
      loss_args.loss = rows(loss, begin, count);
      loss_args.correct = rows(correct, begin, count);
      loss_args.gradient = input_gradient || weight_gradient;
      loss_args.gradient_scale = gradient_scale_;
      loss_args.soft_cap = soft_cap_;
      replay.device().cross_entropy(loss_args);

      if (input_gradient) {
        kernels::GemmArgs args;
        args.a = logits;
        args.b = weight;
        args.c = rows(replay.view(scratch[kCompactGradient]), begin, count);
        replay.device().gemm(args);
      }
      if (weight_gradient) {
        kernels::GemmArgs args;
        args.a = logits;
        args.b = head.a;
        args.c = replay.parameter_gradient(node.inputs[kWeight]);
        args.transpose_a = true;
        args.accumulate = true;
        replay.device().gemm(args);
      }
    }
    if (input_gradient) {
      replay.device().scatter_rows({replay.view(scratch[kCompactGradient]), index, replay.view(node.outputs[kGradient])});
    }
  }

  std::vector<ValueId> saved(const Node&, Phase) const override { return {}; }
  int32_t gradient_output(size_t input) const override {
    return training_ && input == kX ? static_cast<int32_t>(kGradient) : kNone;
  }

 private:
  bool training_;
  double gradient_scale_, soft_cap_;
};

class TargetLogits final : public Op {
 public:
  explicit TargetLogits(double soft_cap) : soft_cap_(soft_cap) {}
  enum : size_t { kX, kWeight, kRows };
  const char* name() const override { return "target_logits"; }
  void forward(const Node& node, Replay& replay) const override {
    const TensorView gathered = replay.view(node.scratch[static_cast<size_t>(Phase::forward)][0]);
    replay.device().gather_rows({replay.view(node.inputs[kX]), replay.view(node.inputs[kRows]), gathered});
    kernels::GemmArgs args;
    args.a = gathered;
    args.b = replay.view(node.inputs[kWeight]);
    args.c = replay.view(node.outputs[0]);
    args.transpose_b = true;
    replay.device().gemm(args);
    if (soft_cap_ != 0) replay.device().soft_cap({args.c, soft_cap_});
  }
  std::vector<ValueId> saved(const Node&, Phase) const override { return {}; }

 private:
  double soft_cap_;
};

}  // namespace

Loss linear_cross_entropy(Recorder& recorder, ValueId x, const Head& head, double gradient_scale) {
  const int64_t width = recorder.value(x).shape[1];
  const int64_t vocabulary = recorder.value(head.weight).shape[0];
  const int64_t chunk = std::min(kChunkRows, recorder.capacity().tokens);
  recorder.scratch(Phase::forward, Extent::targets, width);
  recorder.fixed_scratch(Phase::forward, {chunk, vocabulary});
  const Loss loss{recorder.activation(Extent::targets, 0), recorder.integer_activation(Extent::targets)};
  std::vector<ValueId> outputs = {loss.loss, loss.correct};
  if (recorder.training() && recorder.value(x).requires_grad) {
    recorder.scratch(Phase::forward, Extent::targets, width);
    outputs.push_back(recorder.activation(Extent::tokens, width));
  }
  recorder.append(std::make_shared<LinearCrossEntropy>(recorder.training(), gradient_scale, head.soft_cap),
                  {x, head.weight, recorder.input(Input::target_ids), recorder.input(Input::target_rows)}, std::move(outputs));
  return loss;
}

ValueId target_logits(Recorder& recorder, ValueId x, const Head& head) {
  recorder.scratch(Phase::forward, Extent::targets, recorder.value(x).shape[1]);
  const ValueId logits = recorder.activation(Extent::targets, recorder.value(head.weight).shape[0]);
  recorder.append(std::make_shared<TargetLogits>(head.soft_cap), {x, head.weight, recorder.input(Input::target_rows)}, {logits});
  return logits;
}

}  // namespace inlaid::ops

// The output head for a caller whose loss the engine does not know.
//
// Problem: a caller wants log-probabilities, logits or hidden states, computes some loss of them, and comes back, perhaps much
// later, with the gradient of that loss. Of the log-probabilities all logits are needed for a moment only; keeping them
// (T x V floats) from forward to backward is what makes losses of one's own expensive.
// Idea: forward walks over the rows with a target in chunks, as cross_entropy.cc does, and keeps nothing but x. Backward
// computes a chunk of logits once more and turns it into its gradient in place:
//   from d loss [targets]:  dz = dloss * (softmax(y) - onehot(target)) * cap'(z)     y = cap(z), z = x W^T
//   from d logits [T,V]:    dz = dy * cap'(z)            (without a cap dz = dy, and nothing is computed again)
// and then dx += dz W, dW += dz^T x; from d hidden: dx += d hidden.
// Cost: one product of the head more than with the engine's own loss, one chunk of logits, three [T,H] buffers. Numerics: with
// dloss = 1 everywhere the gradients are those of linear_cross_entropy bit for bit. Tested by sdk/ops/open_head_test.cc against
// finite differences, by sdk/train/pass_test.cc against the trainer's own loss.
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

class OpenHead final : public Op {
 public:
  explicit OpenHead(double soft_cap) : soft_cap_(soft_cap) {}
  enum : size_t { kX, kWeight, kTargets, kRows, kHost };                 // kHost + HostSlot
  enum : size_t { kLoss };
  enum : size_t { kGathered, kLogits, kCompactGradient, kLossAgain };    // scratch; the last two of the backward pass only
  const char* name() const override { return "open_head"; }
  bool seeded() const override { return true; }

  void forward(const Node& node, Replay& replay) const override {
    if (replay.extents().targets > 0) loss(node, replay);
    if (replay.present(host(node, kLogitsOut))) logits(node, replay);
  }

  // One walk over the chunks serves both halves: a chunk of logits is computed once.
  void backward_input(const Node& node, Replay& replay) const override { backward(node, replay, Phase::backward_input); }
  void backward_weight(const Node& node, Replay& replay) const override {
    if (node.input_gradients[kX] == kNone) backward(node, replay, Phase::backward_weight);
  }

  std::vector<ValueId> saved(const Node& node, Phase) const override { return {node.inputs[kX]}; }

 private:
  static ValueId host(const Node& node, HostSlot slot) { return node.inputs[kHost + static_cast<size_t>(slot)]; }
  static TensorView scratch(const Node& node, const Replay& replay, Phase phase, size_t which) {
    return replay.view(node.scratch[static_cast<size_t>(phase)][which]);
  }

  // z = x W^T.
  static void product(Replay& replay, const TensorView& x, const TensorView& weight, const TensorView& z) {
    kernels::GemmArgs args;
    args.a = x;
    args.b = weight;
    args.c = z;
    args.transpose_b = true;
    replay.device().gemm(args);
  }

  void loss(const Node& node, Replay& replay) const {
    const TensorView x = scratch(node, replay, Phase::forward, kGathered);
    replay.device().gather_rows({replay.view(node.inputs[kX]), replay.view(node.inputs[kRows]), x});
    each_chunk(node, replay, Phase::forward, x, replay.view(node.outputs[kLoss]), false);
  }

  // Losses of the gathered rows x, and with `gradient` what `use` does with a chunk of dz.
  template <typename Use>
  void each_chunk(const Node& node, Replay& replay, Phase phase, const TensorView& x, const TensorView& losses, bool gradient,
                  Use&& use) const {
    for (int64_t begin = 0; begin < x.shape[0]; begin += kChunkRows) {
      replay.check_cancel();
      const int64_t count = std::min(kChunkRows, x.shape[0] - begin);
      kernels::CrossEntropyArgs args;
      args.logits = rows(scratch(node, replay, phase, kLogits), 0, count);
      product(replay, rows(x, begin, count), replay.view(node.inputs[kWeight]), args.logits);
      args.targets = rows(replay.view(node.inputs[kTargets]), begin, count);
      args.loss = rows(losses, begin, count);
      args.gradient = gradient;
      args.soft_cap = soft_cap_;
      if (gradient) args.row_scale = rows(replay.view(host(node, kLossGradient)), begin, count);
      replay.device().cross_entropy(args);
      use(begin, count, args.logits);
    }
  }
  void each_chunk(const Node& node, Replay& replay, Phase phase, const TensorView& x, const TensorView& losses,
                  bool gradient) const {
    each_chunk(node, replay, phase, x, losses, gradient, [](int64_t, int64_t, const TensorView&) {});
  }

  void logits(const Node& node, Replay& replay) const {
    const TensorView out = replay.view(host(node, kLogitsOut));
    product(replay, replay.view(node.inputs[kX]), replay.view(node.inputs[kWeight]), out);
    if (soft_cap_ != 0) replay.device().soft_cap({out, soft_cap_});
  }

  void backward(const Node& node, Replay& replay, Phase phase) const {
    const bool input = phase == Phase::backward_input;
    const TensorView dx = input ? replay.view(node.input_gradients[kX]) : TensorView{};
    const bool from_loss = replay.extents().targets > 0 && replay.present(host(node, kLossGradient));
    if (from_loss) loss_backward(node, replay, phase);
    if (input) {
      // Scattering zeroes the rows without a target, or with nothing to scatter all of them.
      const TensorView compact = scratch(node, replay, phase, kCompactGradient), index = replay.view(node.inputs[kRows]);
      const int64_t count = from_loss ? compact.shape[0] : 0;
      replay.device().scatter_rows({rows(compact, 0, count), rows(index, 0, count), dx});
    }
    if (replay.present(host(node, kLogitsGradient))) logits_backward(node, replay, phase);
    if (input && replay.present(host(node, kHiddenGradient))) {
      replay.device().add({dx, replay.view(host(node, kHiddenGradient)), dx});
    }
  }

  void loss_backward(const Node& node, Replay& replay, Phase phase) const {
    const TensorView x = scratch(node, replay, phase, kGathered);
    replay.device().gather_rows({replay.view(node.inputs[kX]), replay.view(node.inputs[kRows]), x});
    each_chunk(node, replay, phase, x, scratch(node, replay, phase, kLossAgain), true,
               [&](int64_t begin, int64_t count, const TensorView& dz) {
                 if (phase == Phase::backward_input) {
                   input_product(node, replay, dz, rows(scratch(node, replay, phase, kCompactGradient), begin, count), false);
                 }
                 weight_product(node, replay, dz, rows(x, begin, count));
               });
  }

  void logits_backward(const Node& node, Replay& replay, Phase phase) const {
    const TensorView x = replay.view(node.inputs[kX]), dy = replay.view(host(node, kLogitsGradient));
    for (int64_t begin = 0; begin < x.shape[0]; begin += kChunkRows) {
      replay.check_cancel();
      const int64_t count = std::min(kChunkRows, x.shape[0] - begin);
      const TensorView part = rows(x, begin, count);
      TensorView dz = rows(dy, begin, count);
      if (soft_cap_ != 0) {
        const TensorView z = rows(scratch(node, replay, phase, kLogits), 0, count);
        product(replay, part, replay.view(node.inputs[kWeight]), z);
        replay.device().soft_cap_backward({z, dz, soft_cap_});
        dz = z;
      }
      if (phase == Phase::backward_input) {
        input_product(node, replay, dz, rows(replay.view(node.input_gradients[kX]), begin, count), true);
      }
      weight_product(node, replay, dz, part);
    }
  }

  static void input_product(const Node& node, Replay& replay, const TensorView& dz, const TensorView& dx, bool accumulate) {
    kernels::GemmArgs args;
    args.a = dz;
    args.b = replay.view(node.inputs[kWeight]);
    args.c = dx;
    args.accumulate = accumulate;
    replay.device().gemm(args);
  }

  static void weight_product(const Node& node, Replay& replay, const TensorView& dz, const TensorView& x) {
    if (!replay.trainable(node.inputs[kWeight])) return;
    kernels::GemmArgs args;
    args.a = dz;
    args.b = x;
    args.c = replay.parameter_gradient(node.inputs[kWeight]);
    args.transpose_a = true;
    args.accumulate = true;
    replay.device().gemm(args);
  }

  double soft_cap_;
};

}  // namespace

ValueId open_head(Recorder& recorder, ValueId x, const Head& head) {
  const int64_t width = recorder.value(x).shape[1];
  const int64_t vocabulary = recorder.value(head.weight).shape[0];
  const int64_t chunk = std::min(kChunkRows, recorder.capacity().tokens);
  const auto add_scratch = [&](Phase phase) {
    recorder.scratch(phase, Extent::targets, width);
    recorder.fixed_scratch(phase, {chunk, vocabulary});
    if (phase == Phase::forward) return;
    recorder.scratch(phase, Extent::targets, width);
    recorder.scratch(phase, Extent::targets, 0);
  };
  add_scratch(Phase::forward);
  if (recorder.training()) add_scratch(recorder.value(x).requires_grad ? Phase::backward_input : Phase::backward_weight);
  const ValueId loss = recorder.activation(Extent::targets, 0);
  std::vector<ValueId> inputs = {x, head.weight, recorder.input(Input::target_ids), recorder.input(Input::target_rows)};
  inputs.push_back(recorder.host(kLogitsOut, Extent::tokens, vocabulary));
  inputs.push_back(recorder.host(kLossGradient, Extent::targets, 0));
  inputs.push_back(recorder.host(kLogitsGradient, Extent::tokens, vocabulary));
  inputs.push_back(recorder.host(kHiddenGradient, Extent::tokens, width));
  recorder.append(std::make_shared<OpenHead>(head.soft_cap), std::move(inputs), {loss});
  return loss;
}

}  // namespace inlaid::ops

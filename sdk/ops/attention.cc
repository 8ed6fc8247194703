#include "sdk/autograd/replay.h"
#include "sdk/ops/gradient_scratch.h"
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

class MakeRotaryTable final : public Op {
 public:
  MakeRotaryTable(double scale, int64_t long_after, double ntk_factor)
      : scale_(scale), long_after_(long_after), ntk_factor_(ntk_factor) {}
  enum : size_t { kPositions, kInvFreq, kLengths, kLongInvFreq };
  const char* name() const override { return "rotary_table"; }

  void forward(const Node& node, Replay& replay) const override {
    kernels::RotaryTableArgs args;
    args.positions = replay.view(node.inputs[kPositions]);
    args.inv_freq = replay.view(node.inputs[kInvFreq]);
    args.cos = replay.view(node.outputs[0]);
    args.sin = replay.view(node.outputs[1]);
    args.scale = scale_;
    args.lengths = replay.optional(node.inputs[kLengths]);
    args.long_inv_freq = replay.optional(node.inputs[kLongInvFreq]);
    args.long_after = long_after_;
    args.ntk_factor = ntk_factor_;
    replay.device().rotary_table(args);
  }
  std::vector<ValueId> saved(const Node&, Phase) const override { return {}; }

 private:
  double scale_;
  int64_t long_after_;
  double ntk_factor_;
};

// Rotates in place; the gradient is the rotation by the opposite angle, in place on the gradient that passes through.
class Rotary final : public Op {
 public:
  explicit Rotary(int64_t heads) : heads_(heads) {}
  enum : size_t { kX, kCos, kSin };
  const char* name() const override { return "rotary"; }

  void forward(const Node& node, Replay& replay) const override {
    rotate(node, replay, node.outputs[0], false);
  }
  void backward_input(const Node& node, Replay& replay) const override {
    rotate(node, replay, node.input_gradients[kX], true);
  }
  std::vector<ValueId> saved(const Node& node, Phase) const override {
    return {node.inputs[kCos], node.inputs[kSin]};
  }
  bool passes_gradient(size_t input) const override { return input == kX; }

 private:
  void rotate(const Node& node, Replay& replay, ValueId x, bool inverse) const {
    replay.device().rotary(
        {replay.view(x), replay.view(node.inputs[kCos]), replay.view(node.inputs[kSin]), heads_, inverse});
  }
  int64_t heads_;
};

template <typename Args>
void set_shape(Args& args, const AttentionShape& shape) {
  args.heads = shape.heads;
  args.kv_heads = shape.kv_heads;
  args.head_size = shape.head_size;
  args.scale = shape.scale;
  args.window = shape.window;
  args.soft_cap = shape.soft_cap;
}

class Attention final : public Op {
 public:
  explicit Attention(const AttentionShape& shape) : shape_(shape) {}
  enum : size_t { kQ, kK, kV, kCu };
  enum : size_t { kOut, kLse };
  const char* name() const override { return "attention"; }

  void forward(const Node& node, Replay& replay) const override {
    kernels::AttentionForwardArgs args;
    args.q = replay.view(node.inputs[kQ]);
    args.k = replay.view(node.inputs[kK]);
    args.v = replay.view(node.inputs[kV]);
    args.out = replay.view(node.outputs[kOut]);
    args.lse = replay.view(node.outputs[kLse]);
    args.cu_q = args.cu_k = replay.view(node.inputs[kCu]);
    set_shape(args, shape_);
    replay.device().attention_forward(args);
  }

  void backward_input(const Node& node, Replay& replay) const override {
    kernels::AttentionBackwardArgs args;
    args.dout = replay.view(node.output_gradients[kOut]);
    args.q = replay.view(node.inputs[kQ]);
    args.k = replay.view(node.inputs[kK]);
    args.v = replay.view(node.inputs[kV]);
    args.out = replay.view(node.outputs[kOut]);
    args.lse = replay.view(node.outputs[kLse]);
    args.dq = gradient_or_scratch(node, replay, kQ);
    args.dk = gradient_or_scratch(node, replay, kK);
    args.dv = gradient_or_scratch(node, replay, kV);
    args.cu_q = args.cu_k = replay.view(node.inputs[kCu]);
    set_shape(args, shape_);
    replay.device().attention_backward(args);
  }

  std::vector<ValueId> saved(const Node& node, Phase) const override {
    return {node.inputs[kQ], node.inputs[kK], node.inputs[kV], node.outputs[kOut], node.outputs[kLse]};
  }

 private:
  AttentionShape shape_;
};

class CachedAttention final : public Op {
 public:
  explicit CachedAttention(const AttentionShape& shape) : shape_(shape) {}
  enum : size_t { kQ, kK, kV, kCuQ, kCuK, kKeyCache, kValueCache };
  const char* name() const override { return "cached_attention"; }

  void forward(const Node& node, Replay& replay) const override {
    kernels::AttentionForwardArgs args;
    args.q = replay.view(node.inputs[kQ]);
    args.k = append(replay, node.inputs[kK], node.inputs[kKeyCache]);
    args.v = append(replay, node.inputs[kV], node.inputs[kValueCache]);
    args.out = replay.view(node.outputs[0]);
    args.lse = replay.view(node.outputs[1]);
    args.cu_q = replay.view(node.inputs[kCuQ]);
    args.cu_k = replay.view(node.inputs[kCuK]);
    set_shape(args, shape_);
    replay.device().attention_forward(args);
  }
  std::vector<ValueId> saved(const Node&, Phase) const override { return {}; }

 private:
  // Copies the new rows behind the `past` rows of the cache and returns the rows that are now there.
  static TensorView append(Replay& replay, ValueId rows, ValueId cache) {
    const TensorView source = replay.view(rows);
    TensorView all = replay.view(cache);
    if (replay.device().is_meta()) return all;
    const int64_t past = replay.extents().past;
    TensorView target = all;
    target.shape[0] = source.shape[0];
    target.data = all.as<std::byte>() + past * all.stride[0] * kernels::dtype_bytes(all.dtype, 1);
    replay.device().convert({source, target});
    all.shape[0] = past + source.shape[0];
    return all;
  }

  AttentionShape shape_;
};

}  // namespace

RotaryTable rotary_table(Recorder& recorder, RotaryFrequencies frequencies) {
  const auto half = static_cast<int64_t>(frequencies.inv_freq.size());
  std::vector<ValueId> inputs = {recorder.input(Input::positions), recorder.constant(std::move(frequencies.inv_freq)), kNone,
                                 kNone};
  if (frequencies.long_after > 0) inputs[MakeRotaryTable::kLengths] = recorder.input(Input::lengths);
  if (!frequencies.long_inv_freq.empty()) {
    inputs[MakeRotaryTable::kLongInvFreq] = recorder.constant(std::move(frequencies.long_inv_freq));
  }
  const RotaryTable table{recorder.activation(Extent::tokens, half), recorder.activation(Extent::tokens, half)};
  recorder.append(std::make_shared<MakeRotaryTable>(frequencies.scale, frequencies.long_after, frequencies.ntk_factor),
                  std::move(inputs), {table.cos, table.sin});
  return table;
}

ValueId rotary(Recorder& recorder, ValueId x, const RotaryTable& table, int64_t heads) {
  const ValueId y = recorder.in_place(x);
  recorder.append(std::make_shared<Rotary>(heads), {x, table.cos, table.sin}, {y});
  return y;
}

ValueId attention(Recorder& recorder, ValueId q, ValueId k, ValueId v, const AttentionShape& shape) {
  const ValueId out = recorder.activation(Extent::tokens, shape.heads * shape.head_size);
  const ValueId lse = recorder.fixed_activation({shape.heads, recorder.capacity().tokens});
  add_gradient_scratch(recorder, {q, k, v});
  recorder.append(std::make_shared<Attention>(shape), {q, k, v, recorder.input(Input::cu_seqlens)}, {out, lse});
  return out;
}

ValueId cached_attention(Recorder& recorder, ValueId q, ValueId k, ValueId v, const AttentionShape& shape, int32_t layer,
                         int64_t capacity) {
  const int64_t columns = shape.kv_heads * shape.head_size;
  const ValueId keys = recorder.cache(2 * layer, capacity, columns);
  const ValueId values = recorder.cache(2 * layer + 1, capacity, columns);
  const ValueId out = recorder.activation(Extent::tokens, shape.heads * shape.head_size);
  const ValueId lse = recorder.fixed_activation({shape.heads, recorder.capacity().tokens});
  recorder.append(std::make_shared<CachedAttention>(shape),
                  {q, k, v, recorder.input(Input::cu_seqlens), recorder.input(Input::cu_keys), keys, values}, {out, lse});
  return out;
}

}  // namespace inlaid::ops

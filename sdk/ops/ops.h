// Differentiable operations. Each function appends one node to a recorder and returns the value it makes; forward and
// backward stand side by side in the .cc file of the op family. Shapes are in the comments: T token rows, H, F, V columns.
#ifndef INLAID_SDK_OPS_OPS_H_
#define INLAID_SDK_OPS_OPS_H_

#include <cstdint>
#include <vector>

#include "kernels/kernels.h"
#include "sdk/autograd/recorder.h"

namespace inlaid::ops {

using autograd::Recorder;
using autograd::ValueId;

// y [T,H] = scale * weight[tokens,:], weight [V,H].
ValueId embedding(Recorder& recorder, ValueId weight, double scale);

// y [T,out] = x [T,in] weight^T (+ bias), weight [out,in], bias [out] or kNone.
ValueId linear(Recorder& recorder, ValueId x, ValueId weight, ValueId bias);

// Low-rank update of a linear layer (LoRA, arXiv 2106.09685):
//   u [T,r] = dropout(x) a^T            a [r,in]
//   y       = y + scale * u b^T         b [out,r], in place on y
// `key` is the dropout's random key; p = 0 switches dropout off.
ValueId lora_down(Recorder& recorder, ValueId x, ValueId a, double dropout, uint64_t key);
ValueId lora_up(Recorder& recorder, ValueId y, ValueId u, ValueId b, double scale);

// y [T,H] = x / sqrt(mean(x^2) + eps) * (weight + weight_offset). A weight [D] shorter than a row normalises every D columns
// on their own: the heads of q and k.
ValueId rms_norm(Recorder& recorder, ValueId x, ValueId weight, double eps, double weight_offset);

// y = a + b.
ValueId add(Recorder& recorder, ValueId a, ValueId b);

// cos and sin [T, R/2] of the positions, shared by all layers.
struct RotaryTable {
  ValueId cos, sin;
};
// Frequencies of the pairs of channels, as kernels::RotaryTableArgs explains them.
struct RotaryFrequencies {
  std::vector<double> inv_freq;       // [R/2]
  double scale = 1.0;
  int64_t long_after = 0;             // 0: the length of a document changes nothing
  std::vector<double> long_inv_freq;  // [R/2], or empty
  double ntk_factor = 1.0;
};
RotaryTable rotary_table(Recorder& recorder, RotaryFrequencies frequencies);
// Rotates the first R columns of every head of [T, heads*D] in place.
ValueId rotary(Recorder& recorder, ValueId x, const RotaryTable& table, int64_t heads);

struct AttentionShape {
  int64_t heads, kv_heads, head_size;
  double scale;
  int64_t window = 0;   // 0: every key up to the query's own
  double soft_cap = 0;  // 0: none
};
// Causal attention inside every document: q [T, heads*D], k and v [T, kv_heads*D] -> [T, heads*D].
ValueId attention(Recorder& recorder, ValueId q, ValueId k, ValueId v, const AttentionShape& shape);
// The same for generation: appends k and v to the caches (slots 2*layer and 2*layer+1, `capacity` rows) behind the rows that are
// there, and attends to all of them. One sequence; not differentiable.
ValueId cached_attention(Recorder& recorder, ValueId q, ValueId k, ValueId v, const AttentionShape& shape, int32_t layer,
                         int64_t capacity);

// y [T,F] = activation(gate) * up.
ValueId gated(Recorder& recorder, ValueId gate, ValueId up, kernels::Activation activation);

// The output head: logits = x weight^T, with a soft cap c: c tanh(x weight^T / c).
struct Head {
  ValueId weight;
  double soft_cap = 0;  // 0: none
};

// Cross-entropy of a linear head over the rows that have a target, in chunks of rows, so that never more than a chunk of
// logits exists: loss [targets], one value per target row (not normalised), and correct [targets] (1 where the first
// largest logit is the target's). While training, the same pass leaves the gradient of sum(loss) * gradient_scale with
// respect to x, and adds to that of weight.
struct Loss {
  ValueId loss;
  ValueId correct;
};
Loss linear_cross_entropy(Recorder& recorder, ValueId x, const Head& head, double gradient_scale);

// Logits [targets, V] of the target rows.
ValueId target_logits(Recorder& recorder, ValueId x, const Head& head);

// The head for a caller with a loss of its own. Forward: loss [targets] as above, and the logits (after the soft cap) of all
// rows where the caller lends memory for them. Backward: starts from the gradients that the caller lends then, of any of loss,
// logits and x. Slots of the lent memory:
enum HostSlot : int32_t { kLogitsOut, kLossGradient, kLogitsGradient, kHiddenGradient, kHostSlots };
// Returns loss.
ValueId open_head(Recorder& recorder, ValueId x, const Head& head);

}  // namespace inlaid::ops

#endif  // INLAID_SDK_OPS_OPS_H_

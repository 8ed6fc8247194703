// For ops whose kernel writes the gradients of all inputs at once: where only some of them are wanted (an adapter on q_proj alone, in
// the first layer), the others go to scratch that lives during the input half only.
#ifndef INLAID_SDK_OPS_GRADIENT_SCRATCH_H_
#define INLAID_SDK_OPS_GRADIENT_SCRATCH_H_

#include <initializer_list>

#include "sdk/autograd/recorder.h"
#include "sdk/autograd/replay.h"

namespace inlaid::ops {

// Before append(): scratch for each of the node's first inputs that needs no gradient while another one does.
inline void add_gradient_scratch(autograd::Recorder& recorder, std::initializer_list<autograd::ValueId> inputs) {
  bool any = false;
  for (autograd::ValueId id : inputs) any |= recorder.value(id).requires_grad;
  if (!any) return;
  for (autograd::ValueId id : inputs) {
    if (recorder.value(id).requires_grad) continue;
    recorder.scratch(autograd::Phase::backward_input, autograd::Extent::tokens, recorder.value(id).shape[1]);
  }
}

// In backward_input: the gradient of an input, or its scratch.
inline TensorView gradient_or_scratch(const autograd::Node& node, autograd::Replay& replay, size_t input) {
  if (node.input_gradients[input] != autograd::kNone) return replay.view(node.input_gradients[input]);
  size_t place = 0;
  for (size_t i = 0; i < input; ++i) place += node.input_gradients[i] == autograd::kNone;
  return replay.view(node.scratch[static_cast<size_t>(autograd::Phase::backward_input)][place]);
}

}  // namespace inlaid::ops

#endif  // INLAID_SDK_OPS_GRADIENT_SCRATCH_H_

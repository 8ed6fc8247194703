// Derives the backward pass of a recorded forward pass.
#ifndef INLAID_SDK_AUTOGRAD_BACKWARD_H_
#define INLAID_SDK_AUTOGRAD_BACKWARD_H_

#include "sdk/autograd/program.h"

namespace inlaid::autograd {

// Fills program.backward and the gradient fields of its nodes, starting from the nodes that hold a gradient of an input
// after their forward pass (losses) and from those that are given one then (seeded()). Nodes in reverse; for each the input
// half, then the weight half. The first gradient to reach a value writes its buffer, later ones add to it; what nobody needs is
// neither computed nor stored.
//
// Gradients that pass through an op unchanged share one buffer (the residual stream has one for all layers). That is right
// as long as every reader of the older meaning runs before the next writer adds to the buffer: in this order a branch's
// gradient is read by the branch's own nodes, all of which run before the node at which the branch began.
//
// Nodes of a segment (Recorder::begin_segment) run forward once more, as twins with outputs of their own, just before the
// segment's backward; only twins whose results are read.
void derive_backward(Program& program);

}  // namespace inlaid::autograd

#endif  // INLAID_SDK_AUTOGRAD_BACKWARD_H_

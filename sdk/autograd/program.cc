#include "sdk/autograd/program.h"

#include "sdk/base/error.h"

namespace inlaid::autograd {

void Op::backward_input(const Node&, Replay&) const {}
void Op::backward_weight(const Node&, Replay&) const {
  fail(Code::kInternal, "op ", name(), " has no weight gradient");
}
bool Op::passes_gradient(size_t) const { return false; }
int32_t Op::gradient_output(size_t) const { return kNone; }
bool Op::seeded() const { return false; }

}  // namespace inlaid::autograd

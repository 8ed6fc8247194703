#include "sdk/autograd/replay.h"

#include "sdk/base/error.h"

namespace inlaid::autograd {

Replay::Replay(const Program& program, Device& device, const Binding& binding, const Extents& extents,
               const std::atomic<bool>* cancel)
    : program_(program), device_(device), binding_(&binding), extents_(extents), cancel_(cancel) {}

Replay::Replay(const Program& program, Device& meta, const Extents& capacity)
    : program_(program), device_(meta), extents_(capacity) {
  INLAID_CHECK(meta.is_meta());
}

void Replay::forward() {
  for (const Instruction& instruction : program_.forward) run(instruction);
}

void Replay::backward() {
  for (const Instruction& instruction : program_.backward) run(instruction);
}

void Replay::run(const Instruction& instruction) {
  check_cancel();
  const Node& node = program_.nodes[static_cast<size_t>(instruction.node)];
  switch (instruction.phase) {
    case Phase::forward: node.op->forward(node, *this); break;
    case Phase::backward_input: node.op->backward_input(node, *this); break;
    case Phase::backward_weight: node.op->backward_weight(node, *this); break;
  }
}

TensorView Replay::view(ValueId id) const {
  const Value& value = program_.values[static_cast<size_t>(id)];
  TensorView view;
  view.dtype = value.dtype;
  view.rank = static_cast<int32_t>(value.shape.size());
  int64_t stride = 1;
  for (int i = view.rank - 1; i >= 0; --i) {
    view.shape[i] = value.shape[static_cast<size_t>(i)];
    view.stride[i] = stride;
    stride *= view.shape[i];
  }
  switch (value.extent) {
    case Extent::fixed: break;
    case Extent::tokens: view.shape[0] = extents_.tokens; break;
    case Extent::targets: view.shape[0] = extents_.targets; break;
    case Extent::boundaries: view.shape[0] = extents_.documents + 1; break;
  }
  if (binding_ == nullptr) return view;
  const auto slot = static_cast<size_t>(value.slot);
  switch (value.kind) {
    case Kind::input: view.data = const_cast<void*>(binding_->inputs[slot]); break;
    case Kind::constant: view.data = const_cast<double*>(program_.constants[slot].data()); break;
    case Kind::parameter: view.data = const_cast<void*>(binding_->parameters[slot]); break;
    case Kind::cache: view.data = binding_->caches[slot]; break;
    case Kind::host: view.data = slot < binding_->host.size() ? binding_->host[slot] : nullptr; break;
    case Kind::activation:
      view.data = binding_->activations + program_.offset[static_cast<size_t>(program_.root(id))];
      break;
  }
  return view;
}

bool Replay::present(ValueId id) const { return binding_ == nullptr || view(id).data != nullptr; }

TensorView Replay::parameter_gradient(ValueId parameter) const {
  TensorView gradient = view(parameter);
  gradient.dtype = program_.compute;
  const auto slot = static_cast<size_t>(program_.values[static_cast<size_t>(parameter)].slot);
  gradient.data = binding_ == nullptr ? nullptr : binding_->gradients[slot];
  return gradient;
}

bool Replay::trainable(ValueId id) const {
  return id != kNone && program_.values[static_cast<size_t>(id)].kind == Kind::parameter &&
         program_.values[static_cast<size_t>(id)].requires_grad;
}

void Replay::check_cancel() const {
  if (cancel_ != nullptr && cancel_->load(std::memory_order_relaxed)) fail(Code::kCancelled, "cancelled");
}

}  // namespace inlaid::autograd

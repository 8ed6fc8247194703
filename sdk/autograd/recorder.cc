#include "sdk/autograd/recorder.h"

#include <utility>

#include "sdk/autograd/backward.h"
#include "sdk/autograd/memory_plan.h"
#include "sdk/autograd/replay.h"
#include "sdk/base/error.h"

namespace inlaid::autograd {

Recorder::Recorder(const Capacity& capacity, DType compute, bool training) : capacity_(capacity), training_(training) {
  INLAID_CHECK(compute == DType::f32 || compute == DType::f64);
  program_.compute = compute;
  inputs_.fill(kNone);
}

int64_t Recorder::capacity_of(Extent extent) const {
  switch (extent) {
    case Extent::tokens:
    case Extent::targets: return capacity_.tokens;
    case Extent::boundaries: return capacity_.documents + 1;
    case Extent::fixed: break;
  }
  fail(Code::kInternal, "a fixed extent has no capacity");
}

ValueId Recorder::add_value(Value value) {
  program_.values.push_back(std::move(value));
  return static_cast<ValueId>(program_.values.size() - 1);
}

ValueId Recorder::input(Input input) {
  ValueId& id = inputs_[static_cast<size_t>(input)];
  if (id != kNone) return id;
  Value value;
  value.kind = Kind::input;
  value.slot = static_cast<int32_t>(input);
  value.dtype = input == Input::row_keys ? DType::i64 : DType::i32;
  switch (input) {
    case Input::tokens:
    case Input::positions:
    case Input::lengths:
    case Input::row_keys: value.extent = Extent::tokens; break;
    case Input::cu_seqlens:
    case Input::cu_keys: value.extent = Extent::boundaries; break;
    case Input::target_ids:
    case Input::target_rows: value.extent = Extent::targets; break;
  }
  value.shape = {capacity_of(value.extent)};
  return id = add_value(std::move(value));
}

ValueId Recorder::constant(std::vector<double> values) {
  Value value;
  value.kind = Kind::constant;
  value.dtype = DType::f64;
  value.shape = {static_cast<int64_t>(values.size())};
  value.slot = static_cast<int32_t>(program_.constants.size());
  program_.constants.push_back(std::move(values));
  return add_value(std::move(value));
}

ValueId Recorder::parameter(const ParameterUse& use) {
  const auto found = parameters_.find(use.name);
  if (found != parameters_.end()) return found->second;
  Value value;
  value.kind = Kind::parameter;
  value.dtype = use.dtype;
  value.shape = use.shape;
  value.requires_grad = use.trainable && training_;
  value.slot = static_cast<int32_t>(program_.parameters.size());
  program_.parameters.push_back(use);
  return parameters_[use.name] = add_value(std::move(value));
}

ValueId Recorder::cache(int32_t slot, int64_t rows, int64_t columns) {
  Value value;
  value.kind = Kind::cache;
  value.dtype = program_.compute;
  value.shape = {rows, columns};
  value.slot = slot;
  return add_value(std::move(value));
}

ValueId Recorder::host(int32_t slot, Extent extent, int64_t columns) {
  const ValueId id = activation(extent, columns);
  program_.values.back().kind = Kind::host;
  program_.values.back().slot = slot;
  return id;
}

ValueId Recorder::activation(Extent extent, int64_t columns) {
  Value value;
  value.dtype = program_.compute;
  value.extent = extent;
  value.shape = {capacity_of(extent)};
  if (columns > 0) value.shape.push_back(columns);
  return add_value(std::move(value));
}

ValueId Recorder::integer_activation(Extent extent) {
  Value value;
  value.dtype = DType::i32;
  value.extent = extent;
  value.shape = {capacity_of(extent)};
  return add_value(std::move(value));
}

ValueId Recorder::fixed_activation(Shape shape) {
  Value value;
  value.dtype = program_.compute;
  value.shape = std::move(shape);
  return add_value(std::move(value));
}

ValueId Recorder::in_place(ValueId storage) {
  Value value = this->value(storage);
  INLAID_CHECK(value.kind == Kind::activation);
  value.storage = storage;
  return add_value(std::move(value));
}

ValueId Recorder::scratch(Phase phase, Extent extent, int64_t columns) {
  const ValueId id = activation(extent, columns);
  pending_scratch_[static_cast<size_t>(phase)].push_back(id);
  return id;
}

ValueId Recorder::fixed_scratch(Phase phase, Shape shape) {
  const ValueId id = fixed_activation(std::move(shape));
  pending_scratch_[static_cast<size_t>(phase)].push_back(id);
  return id;
}

void Recorder::append(std::shared_ptr<const Op> op, std::vector<ValueId> inputs, std::vector<ValueId> outputs) {
  bool requires_grad = false;
  for (ValueId id : inputs) requires_grad |= id != kNone && value(id).requires_grad;
  for (ValueId id : outputs) program_.values[static_cast<size_t>(id)].requires_grad = requires_grad;
  Node node;
  node.op = std::move(op);
  node.inputs = std::move(inputs);
  node.outputs = std::move(outputs);
  node.scratch = std::exchange(pending_scratch_, {});
  node.segment = segment_;
  program_.forward.push_back({static_cast<int32_t>(program_.nodes.size()), Phase::forward});
  program_.nodes.push_back(std::move(node));
}

void Recorder::begin_segment() {
  INLAID_CHECK(segment_ == kNone);
  if (training_) segment_ = segments_++;
}

void Recorder::end_segment() { segment_ = kNone; }

Program Recorder::finish(const std::vector<ValueId>& outputs, const kernels::KernelTable& table, int32_t threads) {
  INLAID_CHECK(segment_ == kNone);
  program_.outputs = outputs;
  if (training_) derive_backward(program_);
  plan_memory(program_);

  Device meta = Device::meta(table, threads);
  Replay measure(program_, meta, {capacity_.tokens, capacity_.tokens, capacity_.documents, 0});
  measure.forward();
  measure.backward();
  program_.workspace_bytes = meta.workspace_needed();
  return std::move(program_);
}

}  // namespace inlaid::autograd

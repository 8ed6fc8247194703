#include "sdk/autograd/backward.h"

#include <utility>

#include "sdk/base/error.h"

namespace inlaid::autograd {
namespace {

class Derivation {
 public:
  explicit Derivation(Program& program)
      : program_(program),
        gradient_(program.values.size(), kNone),
        twin_(program.values.size(), kNone),
        recorded_(program.nodes.size()) {}

  void run() {
    for (size_t end = recorded_; end > 0;) {
      const int32_t segment = program_.nodes[end - 1].segment;
      size_t begin = end - 1;
      if (segment != kNone) {
        while (begin > 0 && program_.nodes[begin - 1].segment == segment) --begin;
        recompute(begin, end);
      } else {
        derive(begin, begin);
      }
      end = begin;
    }
  }

 private:
  Value& value(ValueId id) { return program_.values[static_cast<size_t>(id)]; }
  ValueId& gradient(ValueId id) { return gradient_[static_cast<size_t>(id)]; }

  ValueId new_value(Value prototype) {
    program_.values.push_back(std::move(prototype));
    return static_cast<ValueId>(program_.values.size() - 1);
  }

  ValueId twin_of(ValueId id) const {
    if (id == kNone || static_cast<size_t>(id) >= twin_.size()) return id;
    const ValueId twin = twin_[static_cast<size_t>(id)];
    return twin == kNone ? id : twin;
  }

  // Derives the halves of recorded node `source`; they are stored in, and run on, node `target` (the node itself or its twin).
  void derive(size_t source, size_t target) {
    const std::vector<ValueId> inputs = program_.nodes[source].inputs;
    const std::vector<ValueId> outputs = program_.nodes[source].outputs;
    const std::shared_ptr<const Op> op = program_.nodes[source].op;

    std::vector<ValueId> output_gradients;
    bool active = op->seeded(), root = false;
    for (ValueId id : outputs) {
      output_gradients.push_back(gradient(id));
      active |= gradient(id) != kNone;
    }
    for (size_t i = 0; i < inputs.size(); ++i) root |= op->gradient_output(i) != kNone;
    if (!active && !root) return;

    std::vector<ValueId> input_gradients(inputs.size(), kNone);
    std::vector<char> accumulate(inputs.size(), 0);
    bool input_half = false, weight_half = false;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const ValueId id = inputs[i];
      if (id == kNone || !value(id).requires_grad) continue;
      if (value(id).kind == Kind::parameter) {
        weight_half |= !root;
        continue;
      }
      if (root) {
        const int32_t output = op->gradient_output(i);
        INLAID_CHECK(output != kNone && gradient(id) == kNone);
        gradient(id) = outputs[static_cast<size_t>(output)];
        continue;
      }
      input_half = true;
      if (op->passes_gradient(i)) {
        INLAID_CHECK(gradient(id) == kNone);
        gradient(id) = output_gradients[0];
      } else if (gradient(id) == kNone) {
        Value prototype = value(id);
        prototype.storage = kNone;
        prototype.requires_grad = false;
        gradient(id) = new_value(std::move(prototype));
      } else {
        accumulate[i] = 1;
      }
      input_gradients[i] = gradient(id);
    }

    Node& node = program_.nodes[target];
    node.output_gradients = std::move(output_gradients);
    node.input_gradients = std::move(input_gradients);
    node.accumulate = std::move(accumulate);
    const auto index = static_cast<int32_t>(target);
    if (input_half) program_.backward.push_back({index, Phase::backward_input});
    if (weight_half) program_.backward.push_back({index, Phase::backward_weight});
  }

  // Runs nodes [begin, end) forward again as twins, then derives their halves on the twins.
  void recompute(size_t begin, size_t end) {
    std::vector<size_t> twins;
    for (size_t i = begin; i < end; ++i) twins.push_back(add_twin(i));

    // The halves first, aside: they tell which values are read.
    std::vector<Instruction> before = std::exchange(program_.backward, {});
    for (size_t i = end; i > begin; --i) derive(i - 1, twins[i - 1 - begin]);
    std::vector<Instruction> halves = std::exchange(program_.backward, std::move(before));

    std::vector<char> needed(program_.values.size(), 0);
    for (const Instruction& half : halves) {
      const Node& node = program_.nodes[static_cast<size_t>(half.node)];
      for (ValueId id : node.op->saved(node, half.phase)) {
        if (id != kNone) needed[static_cast<size_t>(id)] = 1;
      }
    }
    std::vector<Instruction> again;
    for (size_t i = twins.size(); i > 0; --i) {
      const Node& node = program_.nodes[twins[i - 1]];
      bool read = false;
      for (ValueId id : node.outputs) read |= needed[static_cast<size_t>(id)] != 0;
      if (!read) continue;
      for (ValueId id : node.inputs) {
        if (id != kNone) needed[static_cast<size_t>(id)] = 1;
      }
      again.push_back({static_cast<int32_t>(twins[i - 1]), Phase::forward});
    }
    program_.backward.insert(program_.backward.end(), again.rbegin(), again.rend());
    program_.backward.insert(program_.backward.end(), halves.begin(), halves.end());
  }

  size_t add_twin(size_t index) {
    Node node = program_.nodes[index];
    for (ValueId& id : node.inputs) id = twin_of(id);
    for (ValueId& id : node.outputs) {
      Value prototype = value(id);
      if (prototype.storage != kNone) {
        const ValueId storage = twin_of(prototype.storage);
        INLAID_CHECK(storage != prototype.storage);  // no op in a segment overwrites what enters it
        prototype.storage = storage;
      }
      const ValueId twin = new_value(std::move(prototype));
      twin_[static_cast<size_t>(id)] = twin;
      id = twin;
    }
    program_.nodes.push_back(std::move(node));
    return program_.nodes.size() - 1;
  }

  Program& program_;
  std::vector<ValueId> gradient_;  // by recorded value
  std::vector<ValueId> twin_;      // by recorded value, inside recomputed segments
  size_t recorded_;                // nodes of the forward pass
};

}  // namespace

void derive_backward(Program& program) { Derivation(program).run(); }

}  // namespace inlaid::autograd

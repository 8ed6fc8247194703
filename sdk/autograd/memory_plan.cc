#include "sdk/autograd/memory_plan.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "sdk/base/error.h"

namespace inlaid::autograd {
namespace {

constexpr uint64_t kAlign = 64;

struct Life {
  int64_t first = std::numeric_limits<int64_t>::max();
  int64_t last = -1;
  uint64_t bytes = 0;
  bool used() const { return last >= 0; }
};

class Lifetimes {
 public:
  explicit Lifetimes(const Program& program) : program_(program), lives_(program.values.size()) {
    int64_t time = 0;
    for (const Instruction& instruction : program.forward) visit(instruction, time++);
    for (const Instruction& instruction : program.backward) visit(instruction, time++);
    for (ValueId id : program.outputs) touch(id, time);
  }

  const std::vector<Life>& lives() const { return lives_; }

 private:
  void touch(ValueId id, int64_t time) {
    if (id == kNone) return;
    const Value& value = program_.values[static_cast<size_t>(id)];
    if (value.kind != Kind::activation) return;
    Life& life = lives_[static_cast<size_t>(program_.root(id))];
    life.first = std::min(life.first, time);
    life.last = std::max(life.last, time);
    const auto bytes = static_cast<uint64_t>(byte_count(value.dtype, value.shape));
    life.bytes = std::max(life.bytes, (bytes + kAlign - 1) / kAlign * kAlign);
  }

  void visit(const Instruction& instruction, int64_t time) {
    const Node& node = program_.nodes[static_cast<size_t>(instruction.node)];
    if (instruction.phase == Phase::forward) {
      for (ValueId id : node.inputs) touch(id, time);
      for (ValueId id : node.outputs) touch(id, time);
    } else {
      for (ValueId id : node.op->saved(node, instruction.phase)) touch(id, time);
      for (ValueId id : node.output_gradients) touch(id, time);
      if (instruction.phase == Phase::backward_input) {
        for (ValueId id : node.input_gradients) touch(id, time);
      }
    }
    for (ValueId id : node.scratch[static_cast<size_t>(instruction.phase)]) touch(id, time);
  }

  const Program& program_;
  std::vector<Life> lives_;
};

}  // namespace

void plan_memory(Program& program) {
  const Lifetimes lifetimes(program);
  const std::vector<Life>& lives = lifetimes.lives();
  std::vector<size_t> order(lives.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::erase_if(order, [&](size_t id) { return !lives[id].used(); });
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return lives[a].bytes > lives[b].bytes; });

  program.offset.assign(lives.size(), -1);
  program.activation_bytes = 0;
  std::vector<size_t> placed;  // by rising offset
  for (size_t id : order) {
    const Life& life = lives[id];
    uint64_t offset = 0;
    for (size_t other : placed) {
      const Life& there = lives[other];
      if (there.last < life.first || life.last < there.first) continue;
      const auto begin = static_cast<uint64_t>(program.offset[other]);
      if (offset + life.bytes <= begin) break;
      offset = std::max(offset, begin + there.bytes);
    }
    program.offset[id] = static_cast<int64_t>(offset);
    program.activation_bytes = std::max(program.activation_bytes, offset + life.bytes);
    const auto position = std::upper_bound(placed.begin(), placed.end(), offset, [&](uint64_t value, size_t other) {
      return value < static_cast<uint64_t>(program.offset[other]);
    });
    placed.insert(position, id);
  }
}

}  // namespace inlaid::autograd

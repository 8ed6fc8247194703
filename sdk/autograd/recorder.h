// Records a forward pass and turns it into a planned Program.
#ifndef INLAID_SDK_AUTOGRAD_RECORDER_H_
#define INLAID_SDK_AUTOGRAD_RECORDER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "kernels/kernels.h"
#include "sdk/autograd/program.h"

namespace inlaid::autograd {

struct Capacity {
  int64_t tokens = 0;
  int64_t documents = 0;
};

class Recorder {
 public:
  // compute: f32, or f64 for gradient checks with the reference kernels. Without `training` no gradient is derived and no
  // value outlives its last forward use.
  Recorder(const Capacity& capacity, DType compute, bool training);

  bool training() const { return training_; }
  const Capacity& capacity() const { return capacity_; }
  DType compute() const { return program_.compute; }

  // The value of a micro-batch input; the same id for the same input.
  ValueId input(Input input);
  // A vector of f64 constants that belongs to the program.
  ValueId constant(std::vector<double> values);
  // A parameter by logical name; the same id for the same name, so that a tied weight sums its gradients.
  ValueId parameter(const ParameterUse& use);
  // Key/value cache number `slot`, [rows, columns].
  ValueId cache(int32_t slot, int64_t rows, int64_t columns);
  // Memory number `slot` that the caller lends, [capacity of extent, columns] ([capacity] when columns == 0).
  ValueId host(int32_t slot, Extent extent, int64_t columns);

  const Value& value(ValueId id) const { return program_.values[static_cast<size_t>(id)]; }

  // A new activation [capacity of extent, columns] ([capacity] when columns == 0). It requires a gradient iff one of the
  // node's inputs does.
  ValueId activation(Extent extent, int64_t columns);
  // The same with i32 elements, never differentiated.
  ValueId integer_activation(Extent extent);
  // A new activation of a fixed shape.
  ValueId fixed_activation(Shape shape);
  // Like activation, but in the memory of `storage`: the op works in place.
  ValueId in_place(ValueId storage);
  // Scratch [rows, columns] for one phase of the node that is appended next.
  ValueId scratch(Phase phase, Extent extent, int64_t columns);
  ValueId fixed_scratch(Phase phase, Shape shape);
  // Appends a node; inputs may contain kNone for absent operands.
  void append(std::shared_ptr<const Op> op, std::vector<ValueId> inputs, std::vector<ValueId> outputs);

  // Nodes between begin and end form a segment that is recomputed: of its values only those that enter or leave it are kept
  // for the backward pass, which runs the segment's forward nodes once more first.
  void begin_segment();
  void end_segment();

  // Derives the backward pass from the root nodes (those with a gradient_output), plans memory and workspace for the kernel
  // table and thread count that will run it. `outputs` stay readable at the end.
  Program finish(const std::vector<ValueId>& outputs, const kernels::KernelTable& table, int32_t threads);

 private:
  ValueId add_value(Value value);
  int64_t capacity_of(Extent extent) const;

  Capacity capacity_;
  bool training_;
  Program program_;
  std::array<ValueId, kInputs> inputs_;
  std::unordered_map<std::string, ValueId> parameters_;
  std::array<std::vector<ValueId>, 3> pending_scratch_;
  int32_t segment_ = kNone;
  int32_t segments_ = 0;
};

}  // namespace inlaid::autograd

#endif  // INLAID_SDK_AUTOGRAD_RECORDER_H_

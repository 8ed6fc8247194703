// The step program: the flat record of one forward and backward pass.
//
// Model code runs once against a Recorder (recorder.h), which appends nodes: an op, its input values, its output values. The
// backward pass is then derived: nodes in reverse, each split into the half that computes gradients of inputs (I) and the
// half that adds to gradients of weights (W). What comes out is data and is never rewritten: a list of values with sizes
// and lifetimes, a list of instructions, the parameters used. The memory plan, the run, and `plan` all read this one record,
// so that what is predicted and what happens have one source.
//
// Example, y = x W^T with trainable W:        forward  F0: read x, W; write y
//                                             backward I0: read dy, W; write dx
//                                                      W0: read dy, x; add to dW
// With W frozen there is no W0, so x is not kept for it.
#ifndef INLAID_SDK_AUTOGRAD_PROGRAM_H_
#define INLAID_SDK_AUTOGRAD_PROGRAM_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sdk/tensor/tensor.h"

namespace inlaid::autograd {

using ValueId = int32_t;
constexpr ValueId kNone = -1;

// Shapes in a program are capacities. At replay the first size of a value shrinks to what the micro-batch really has.
enum class Extent : int8_t {
  fixed,       // always the full shape
  tokens,      // rows of tokens
  targets,     // rows that have a target
  boundaries,  // documents + 1
};
struct Extents {
  int64_t tokens = 0;
  int64_t targets = 0;
  int64_t documents = 0;
  int64_t past = 0;  // tokens already in the key/value cache
};

// Data of a micro-batch that ops may read.
enum class Input : int8_t {
  tokens,       // [tokens] i32
  positions,    // [tokens] i32, restarting in every document
  row_keys,     // [tokens] i64, identity of the sample for dropout
  cu_seqlens,   // [boundaries] i32
  cu_keys,      // [boundaries] i32, boundaries in the key/value cache (generation only)
  target_ids,   // [targets] i32
  target_rows,  // [targets] i32, row of each target
  lengths,      // [tokens] i32, length of the text that the row belongs to (its own document; in generation, up to now)
};
constexpr int kInputs = 8;

enum class Kind : int8_t {
  input,
  constant,
  parameter,
  activation,
  cache,
  host,  // memory that a caller lends for one pass: an output handed out, a gradient handed in; may be absent
};

struct Value {
  Kind kind = Kind::activation;
  DType dtype = DType::f32;
  Shape shape;
  Extent extent = Extent::fixed;
  bool requires_grad = false;
  int32_t slot = 0;        // Input, or index of the constant, parameter, cache or host value
  ValueId storage = kNone; // shares the memory of this value; kNone = its own
};

enum class Phase : int8_t { forward, backward_input, backward_weight };

class Op;

struct Node {
  std::shared_ptr<const Op> op;
  std::vector<ValueId> inputs, outputs;
  // Scratch that lives during one phase only, by phase.
  std::array<std::vector<ValueId>, 3> scratch;
  int32_t segment = kNone;  // recomputation segment
  // Set when the backward pass is derived. Gradients are kNone where none flows.
  std::vector<ValueId> output_gradients, input_gradients;
  std::vector<char> accumulate;  // per input: add to the gradient instead of writing it
};

struct Instruction {
  int32_t node;
  Phase phase;
};

struct ParameterUse {
  std::string name;   // logical name
  Shape shape;
  DType dtype;
  bool trainable;
};

struct Program {
  std::vector<Value> values;
  std::vector<Node> nodes;
  std::vector<Instruction> forward, backward;
  std::vector<ParameterUse> parameters;
  std::vector<std::vector<double>> constants;
  std::vector<ValueId> outputs;  // kept alive to the end of the forward list (or of the backward list, if there is one)
  DType compute = DType::f32;

  // The memory plan: byte offset of every value in the activation region, -1 for values elsewhere.
  std::vector<int64_t> offset;
  uint64_t activation_bytes = 0;
  uint64_t workspace_bytes = 0;

  ValueId root(ValueId id) const {
    while (values[static_cast<size_t>(id)].storage != kNone) id = values[static_cast<size_t>(id)].storage;
    return id;
  }
};

class Replay;

// A differentiable operation: forward beside backward, calling kernels. Immutable once recorded; attributes (eps, heads, ...)
// are members of the subclass.
class Op {
 public:
  virtual ~Op() = default;
  virtual const char* name() const = 0;
  virtual void forward(const Node& node, Replay& replay) const = 0;
  // Writes (or adds to, per node.accumulate) every input gradient that is not kNone. Not called when there is none.
  virtual void backward_input(const Node& node, Replay& replay) const;
  // Adds to the gradients of the trainable parameters among the inputs. Not called when there is none.
  virtual void backward_weight(const Node& node, Replay& replay) const;
  // Inputs and outputs that a half of the backward pass reads (gradients of outputs are read by both anyway).
  virtual std::vector<ValueId> saved(const Node& node, Phase half) const = 0;
  // True if the gradient of this input is the gradient of output 0, in the same memory. backward_input may then transform it
  // in place (rotary does), or have nothing to do (addition).
  virtual bool passes_gradient(size_t input) const;
  // Output that already holds the gradient of this input after forward (a loss does), or kNone.
  virtual int32_t gradient_output(size_t input) const;
  // True for a last op that is told the gradients of what it computed from outside, when the backward pass begins (values of
  // Kind::host): its halves run although no other op gives its outputs a gradient.
  virtual bool seeded() const;
};

}  // namespace inlaid::autograd

#endif  // INLAID_SDK_AUTOGRAD_PROGRAM_H_

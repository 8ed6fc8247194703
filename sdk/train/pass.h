// One forward pass for a host that has a loss of its own, and what its backward pass needs.
//
// Problem: the engine's losses are fused with the output head; reinforcement learning, distillation or contrastive losses live in
// the host. Idea: the host takes log-probabilities, logits or hidden states, computes its loss and the gradients of these outputs,
// and gives them back; the backward pass starts from there and adds to the same gradient arenas as Trainer::accumulate.
// Memory: outputs are exactly as large as the batch and live as long as somebody holds them. What backward needs, the activations
// of a full micro-batch, belongs to the pass and goes with backward or with the pass; without gradients it goes with forward().
// Numerics: log_probs are the negated losses of the trainer, bit for bit. Tested by sdk/train/pass_test.cc.
#ifndef INLAID_SDK_TRAIN_PASS_H_
#define INLAID_SDK_TRAIN_PASS_H_

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sdk/autograd/replay.h"
#include "sdk/models/model.h"
#include "sdk/tensor/tensor.h"
#include "sdk/train/batch_buffers.h"

namespace inlaid::train {

// All are f32, one row for each row of the batch: log p(target) [rows] (0 where a row has no target), logits after the soft cap
// [rows, vocabulary], hidden states after the final norm, which the head reads, [rows, hidden_size].
enum class Output : int { log_probs, logits, hidden_states };
constexpr int kOutputs = 3;
const char* output_name(Output output);
Output parse_output(const std::string& name);  // kInvalidArgument lists the names
using OutputSet = std::array<bool, kOutputs>;

// Decoder and open head (ops.h): outputs {loss, hidden states}.
autograd::Program record_pass_program(const Runtime& runtime, const models::DecoderConfig& model, const nn::Modules& modules,
                                      const autograd::Capacity& capacity, bool training, bool recompute);

class Pass {
 public:
  // `binding` has the parameters of the program, and the gradients if it is one for training.
  Pass(std::shared_ptr<MemoryAccount> memory, std::shared_ptr<const autograd::Program> program,
       const autograd::Capacity& capacity, autograd::Binding binding, int64_t weights_version = 0);

  // kInvalidArgument as BatchBuffers::load, where a batch needs targets only for log_probs.
  void forward(const data::MicroBatch& batch, int64_t vocabulary, const OutputSet& outputs, Device& device,
               const std::atomic<bool>* cancel);

  // Empty if it was not asked for.
  const Tensor& output(Output output) const { return outputs_[static_cast<size_t>(output)]; }
  // kNotFound naming an output that was not asked for.
  const Tensor& requested(Output output) const;
  // The gradient of the host's loss with respect to an output; shape and type of that output, else kInvalidArgument. Its memory
  // is read by backward(), not copied; then, or with the pass, it is let go. A second one takes the place of the first.
  void set_gradient(Output output, Tensor gradient);

  // The same with a copy, counted as activations, of as many values as the output has.
  void copy_gradient(Output output, const void* values);

  // kFailedPrecondition for a pass without gradients, one that went backward, and one whose outputs were given no gradient.
  void check_backward() const;
  // Adds to the parameters' gradients; once, whether it succeeds or not.
  void backward(Device& device, const std::atomic<bool>* cancel);

  // Of the trainer's weights when the pass was computed.
  int64_t weights_version() const { return weights_version_; }
  int64_t rows() const { return extents_.tokens; }
  int64_t documents() const { return extents_.documents; }

 private:
  void seed(Block* loss_gradient);

  std::shared_ptr<MemoryAccount> memory_;
  std::shared_ptr<const autograd::Program> program_;
  autograd::Binding binding_;
  std::optional<BatchBuffers> batch_;
  Block activations_;
  autograd::Extents extents_;
  std::vector<int64_t> target_rows_;
  std::array<Tensor, kOutputs> outputs_, gradients_;
  int64_t weights_version_;
  bool spent_ = false;
};

// A pass without gradients, as evaluation computes: no dropout. adapter may be null; kInvalidArgument for one of another model.
// Thread-safe on one model as long as nobody trains it.
std::unique_ptr<Pass> forward(const models::Model& model, const models::Adapter* adapter,
                              const data::MicroBatch& batch, const OutputSet& outputs, const std::atomic<bool>* cancel);

}  // namespace inlaid::train

#endif  // INLAID_SDK_TRAIN_PASS_H_

// Runs a Program: a loop over kernel calls with base addresses for one micro-batch.
#ifndef INLAID_SDK_AUTOGRAD_REPLAY_H_
#define INLAID_SDK_AUTOGRAD_REPLAY_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "sdk/autograd/program.h"
#include "sdk/tensor/device.h"

namespace inlaid::autograd {

// The memory that a replay works on; everything is owned elsewhere.
struct Binding {
  std::byte* activations = nullptr;              // Program::activation_bytes
  std::array<const void*, kInputs> inputs{};     // per Input; may be null where the program does not read it
  std::vector<const void*> parameters;           // per Program::parameters, in the use's dtype
  std::vector<void*> gradients;                  // per Program::parameters, null for frozen ones; compute type
  std::vector<void*> caches;                     // per cache slot
  std::vector<void*> host;                       // per host slot; null or past the end: absent
};

class Replay {
 public:
  Replay(const Program& program, Device& device, const Binding& binding, const Extents& extents,
         const std::atomic<bool>* cancel);
  // For planning on the meta device: views have shapes at capacity and no memory.
  Replay(const Program& program, Device& meta, const Extents& capacity);

  // Run all instructions of a list. Throws kCancelled between kernel calls once `cancel` is set.
  void forward();
  void backward();
  void run(const Instruction& instruction);

  // --- for ops ---
  Device& device() { return device_; }
  const Extents& extents() const { return extents_; }
  // The value's memory, cut to the rows that exist.
  TensorView view(ValueId id) const;
  // View of kNone: absent.
  TensorView optional(ValueId id) const { return id == kNone ? TensorView{} : view(id); }
  // Whether a value of Kind::host is there; while planning, all are.
  bool present(ValueId id) const;
  // Gradient accumulator of a trainable parameter.
  TensorView parameter_gradient(ValueId parameter) const;
  bool trainable(ValueId id) const;
  void check_cancel() const;

 private:
  const Program& program_;
  Device& device_;
  const Binding* binding_ = nullptr;
  Extents extents_;
  const std::atomic<bool>* cancel_ = nullptr;
};

}  // namespace inlaid::autograd

#endif  // INLAID_SDK_AUTOGRAD_REPLAY_H_

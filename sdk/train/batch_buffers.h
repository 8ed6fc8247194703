// A micro-batch in the memory that a step program reads: fixed capacity, filled anew for every micro-batch.
#ifndef INLAID_SDK_TRAIN_BATCH_BUFFERS_H_
#define INLAID_SDK_TRAIN_BATCH_BUFFERS_H_

#include "sdk/autograd/recorder.h"
#include "sdk/autograd/replay.h"
#include "sdk/base/memory.h"
#include "sdk/data/dataset.h"

namespace inlaid::train {

class BatchBuffers {
 public:
  BatchBuffers(MemoryAccount& account, const autograd::Capacity& capacity);
  static uint64_t bytes(const autograd::Capacity& capacity);

  // Copies a micro-batch in; targets become the list of rows that have one. kInvalidArgument, naming what is wrong, for a
  // micro-batch that exceeds the capacity, has vectors of different lengths, no target where one is needed, ids outside [0, vocabulary), or
  // boundaries that do not rise from 0 to the number of rows.
  autograd::Extents load(const data::MicroBatch& batch, int64_t vocabulary, bool needs_target = true);
  // A single sequence for generation: ids at positions past, past + 1, ...; the last row is the one "target row".
  // `length` is that of the whole text as far as it is known, also where the ids are only its first ones; 0: past + ids.
  autograd::Extents load_sequence(std::span<const int32_t> ids, int64_t past, int64_t length = 0);

  void bind(autograd::Binding& binding) const;

 private:
  template <typename T>
  T* array(autograd::Input input) const {
    return reinterpret_cast<T*>(block_.data() + offset_[static_cast<size_t>(input)]);
  }

  autograd::Capacity capacity_;
  std::array<uint64_t, autograd::kInputs> offset_;
  Block block_;
};

}  // namespace inlaid::train

#endif  // INLAID_SDK_TRAIN_BATCH_BUFFERS_H_

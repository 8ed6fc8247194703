// Evaluation outside a trainer.
#ifndef INLAID_SDK_TRAIN_EVALUATE_H_
#define INLAID_SDK_TRAIN_EVALUATE_H_

#include <atomic>

#include "sdk/data/dataset.h"
#include "sdk/models/model.h"
#include "sdk/train/trainer.h"

namespace inlaid::train {

// Sums over a data set with a program of its own; adapter may be null. With
// most_tokens > 0 it ends after the micro-batch in which that many are reached. Thread-safe on one model as long as nobody trains it.
LossSums evaluate(const models::Model& model, const models::Adapter* adapter, const data::Dataset& dataset,
                  const std::atomic<bool>* cancel, int64_t most_tokens = 0);

// The loop that both kinds of evaluation share: every micro-batch of the data set, in order, through `forward`.
template <typename Forward>
LossSums evaluate_batches(const data::Dataset& dataset, int64_t capacity, Forward&& forward, int64_t most_tokens = 0) {
  data::BatchOptions options;
  options.shuffle = false;
  options.weighted = false;
  options.micro_batch_tokens = capacity;
  // The batcher does not outlive this call, so a reference that owns nothing is enough.
  const data::Batcher batcher(std::shared_ptr<const data::Dataset>(std::shared_ptr<void>(), &dataset), options);
  LossSums sums;
  data::Cursor cursor;
  while (cursor.epoch == 0 && (most_tokens == 0 || sums.tokens < most_tokens)) {
    const data::MicroBatch batch = batcher.next(cursor);
    sums.add(forward(batch));
    cursor = batch.next;
  }
  return sums;
}

// The parameters of a program of which none trains.
autograd::Binding bind_frozen(const autograd::Program& program, const nn::Modules& modules);

// Loss and hits of a program recorded with outputs {loss, correct}.
LossSums read_loss(const autograd::Program& program, const std::byte* activations, const autograd::Extents& extents);

// The evaluation program: forward pass and loss.
autograd::Program record_loss_program(const Runtime& runtime, const models::DecoderConfig& model, const nn::Modules& modules,
                                      const autograd::Capacity& capacity, bool training, bool recompute);

}  // namespace inlaid::train

#endif  // INLAID_SDK_TRAIN_EVALUATE_H_

// Logits of every row of a micro-batch, for comparing models: they are materialised, so the batch should be short.
#ifndef INLAID_SDK_TRAIN_LOGITS_H_
#define INLAID_SDK_TRAIN_LOGITS_H_

#include <vector>

#include "sdk/data/dataset.h"
#include "sdk/models/model.h"

namespace inlaid::train {

// [rows, vocabulary], after the model's soft cap; adapter may be null. The batch's targets do not matter. Thread-safe on one
// model as long as nobody trains it. kResourceExhausted.
std::vector<float> all_logits(const models::Model& model, const models::Adapter* adapter, const data::MicroBatch& batch);

}  // namespace inlaid::train

#endif  // INLAID_SDK_TRAIN_LOGITS_H_

#include "sdk/train/logits.h"

#include "sdk/train/pass.h"

namespace inlaid::train {

std::vector<float> all_logits(const models::Model& model, const models::Adapter* adapter, const data::MicroBatch& batch) {
  OutputSet outputs{};
  outputs[static_cast<size_t>(Output::logits)] = true;
  const std::unique_ptr<Pass> pass = forward(model, adapter, batch, outputs, nullptr);
  const Tensor& logits = pass->output(Output::logits);
  return {logits.as<float>(), logits.as<float>() + logits.elements()};
}

}  // namespace inlaid::train

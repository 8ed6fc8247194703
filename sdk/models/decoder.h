// The Llama-like decoder: embedding, blocks of (norm, attention, add, norm, gated MLP, add), norm, head. What the families do
// otherwise are options of this one: DecoderConfig says which.
#ifndef INLAID_SDK_MODELS_DECODER_H_
#define INLAID_SDK_MODELS_DECODER_H_

#include <string>
#include <vector>

#include "sdk/models/decoder_config.h"
#include "sdk/nn/modules.h"

namespace inlaid::models {

// All parameters, in order of use, under Hugging Face names.
std::vector<nn::ParameterSpec> decoder_parameters(const DecoderConfig& config);

// Every linear layer that an adapter may target. A tied head is none.
std::vector<nn::LinearModule> decoder_linears(const DecoderConfig& config);

struct DecoderOptions {
  bool recompute = false;       // every block is a recomputed segment
  int64_t cache_capacity = 0;   // > 0: attention through key/value caches of that many rows (generation)
};

// Records the decoder up to its final norm: hidden states [T, hidden_size].
autograd::ValueId record_decoder(autograd::Recorder& recorder, const DecoderConfig& config, const nn::Modules& modules,
                                 const DecoderOptions& options);

// The output head with its soft cap; the weight is lm_head.weight, or the embedding when it is tied.
ops::Head head_weight(autograd::Recorder& recorder, const DecoderConfig& config, const nn::Modules& modules);

}  // namespace inlaid::models

#endif  // INLAID_SDK_MODELS_DECODER_H_

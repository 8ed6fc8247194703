// Configuration of the Llama-like decoder, read from a Hugging Face config.json.
#ifndef INLAID_SDK_MODELS_DECODER_CONFIG_H_
#define INLAID_SDK_MODELS_DECODER_CONFIG_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/kernels.h"
#include "sdk/base/json.h"
#include "sdk/models/rotary_config.h"

namespace inlaid::models {

struct DecoderConfig {
  std::string family;  // model_type
  int64_t vocab_size = 0;
  int64_t hidden_size = 0;
  int64_t intermediate_size = 0;
  int64_t num_hidden_layers = 0;
  int64_t num_attention_heads = 0;
  int64_t num_key_value_heads = 0;
  int64_t head_dim = 0;
  int64_t max_position_embeddings = 2048;
  double rms_norm_eps = 1e-6;
  double initializer_range = 0.02;
  kernels::Activation activation = kernels::Activation::silu;
  bool qkv_bias = false, output_bias = false, mlp_bias = false;
  bool tie_word_embeddings = false;
  RotaryConfig rotary;

  bool qk_norm = false;                // RMS norm of every head of q and k (Qwen 3)
  std::vector<int64_t> windows;        // per layer: how many keys a query sees, itself included; 0: all
  double attention_scale = 1.0;        // of the products of queries and keys
  double attention_soft_cap = 0;       // c tanh(score / c); 0: none
  double logit_soft_cap = 0;           // the same of the logits
  bool post_norms = false;             // norms also of what a block's halves give, before it is added (Gemma 2)
  double norm_offset = 0;              // what is added to the weights of all norms
  double embedding_scale = 1.0;

  // Families llama, mistral, qwen2, qwen3 (dense), phi3 and gemma2. A missing key has the default of the family's configuration
  // class. A key that changes the computation and is not implemented is kUnimplemented by name; a key that is not known at all is
  // kUnimplemented too, because nobody can tell that it does not. Missing or senseless sizes are kInvalidArgument.
  static DecoderConfig parse(const Json& config, std::string_view what);
};

}  // namespace inlaid::models

#endif  // INLAID_SDK_MODELS_DECODER_CONFIG_H_

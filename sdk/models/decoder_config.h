// Configuration of the Llama-like decoder, read from a Hugging Face config.json.
#ifndef INLAID_SDK_MODELS_DECODER_CONFIG_H_
#define INLAID_SDK_MODELS_DECODER_CONFIG_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "kernels/kernels.h"
#include "sdk/base/json.h"

namespace inlaid::models {

// Rotary position embedding (arXiv 2104.09864): frequencies per pair of channels. All supported kinds are constant, so they
// are computed once: default theta^(-2i/D); linear: divided by factor; llama3: long wavelengths divided by factor, short ones
// kept, those between interpolated (Hugging Face modeling_rope_utils).
struct RotaryConfig {
  double theta = 10000.0;
  enum class Kind { plain, linear, llama3 } kind = Kind::plain;
  double factor = 1.0;
  double low_freq_factor = 1.0, high_freq_factor = 4.0;
  double original_max_position = 8192;

  std::vector<double> inv_freq(int64_t head_size) const;
};

struct DecoderConfig {
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

  // Families llama, mistral (without sliding window) and qwen2 (without sliding window). A key that changes the computation
  // and is not implemented is kUnimplemented by name; a key that is not known at all is kUnimplemented too, because nobody can
  // tell that it does not. Missing or senseless sizes are kInvalidArgument.
  static DecoderConfig parse(const Json& config, std::string_view what);
};

}  // namespace inlaid::models

#endif  // INLAID_SDK_MODELS_DECODER_CONFIG_H_

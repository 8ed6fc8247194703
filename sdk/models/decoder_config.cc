#include "sdk/models/decoder_config.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <set>
#include <string>
#include <string_view>

#include "sdk/base/error.h"

namespace inlaid::models {
namespace {

// Keys that say nothing about the forward or backward computation of a decoder: identity, generation, serialisation.
constexpr std::string_view kInertKeys[] = {
    "architectures", "model_type", "torch_dtype", "dtype", "transformers_version", "use_cache", "bos_token_id",
    "eos_token_id", "pad_token_id", "sep_token_id", "decoder_start_token_id", "name_or_path", "initializer_range",
    "return_dict", "output_hidden_states", "output_attentions", "torchscript", "use_bfloat16", "pruned_heads",
    "id2label", "label2id", "num_labels", "problem_type", "finetuning_task", "task_specific_params", "tokenizer_class",
    "prefix", "is_decoder", "is_encoder_decoder", "cross_attention_hidden_size", "add_cross_attention",
    "tie_encoder_decoder", "chunk_size_feed_forward", "auto_map", "is_llama_config", "transformers.js_config",
    "generation_config", "max_length", "min_length", "do_sample", "early_stopping", "num_beams", "num_beam_groups",
    "diversity_penalty", "temperature", "top_k", "top_p", "typical_p", "repetition_penalty", "length_penalty",
    "no_repeat_ngram_size", "encoder_no_repeat_ngram_size", "bad_words_ids", "num_return_sequences", "output_scores",
    "return_dict_in_generate", "forced_bos_token_id", "forced_eos_token_id", "remove_invalid_values",
    "exponential_decay_length_penalty", "suppress_tokens", "begin_suppress_tokens", "tf_legacy_loss",
    "base_model_tp_plan", "base_model_pp_plan", "max_window_layers"};

// Keys that parse() reads.
constexpr std::string_view kKnownKeys[] = {
    "vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
    "num_key_value_heads", "head_dim", "hidden_act", "max_position_embeddings", "rms_norm_eps", "attention_bias",
    "mlp_bias", "attention_dropout", "tie_word_embeddings", "rope_theta", "rope_scaling", "rope_parameters",
    "rope_interleaved", "pretraining_tp", "sliding_window", "use_sliding_window", "layer_types", "partial_rotary_factor",
    "quantization_config"};

template <size_t N>
bool contains(const std::string_view (&keys)[N], std::string_view key) {
  return std::find(std::begin(keys), std::end(keys), key) != std::end(keys);
}

const Json* find(const Json& config, const char* key) {
  const auto found = config.find(key);
  return found == config.end() || found->is_null() ? nullptr : &*found;
}

int64_t size_at(const Json& config, const char* key, std::string_view what, int64_t otherwise = -1) {
  if (find(config, key) == nullptr) {
    if (otherwise >= 0) return otherwise;
    fail(Code::kInvalidArgument, what, ": key '", key, "' is missing");
  }
  const int64_t value = int_at(config, key, what);
  if (value < 1 || value > (int64_t{1} << 31)) {
    fail(Code::kInvalidArgument, what, ": ", key, " = ", value, " must be between 1 and 2^31");
  }
  return value;
}

bool flag_at(const Json& config, const char* key, std::string_view what, bool otherwise) {
  return find(config, key) == nullptr ? otherwise : bool_at(config, key, what);
}

double positive_at(const Json& config, const char* key, std::string_view what, double otherwise) {
  if (find(config, key) == nullptr) return otherwise;
  const double value = number_at(config, key, what);
  if (!(value > 0) || !std::isfinite(value)) fail(Code::kInvalidArgument, what, ": ", key, " must be positive");
  return value;
}

[[noreturn]] void refuse(std::string_view what, const char* key, const Json& value, const char* right) {
  fail(Code::kUnimplemented, what, ": ", key, " = ", to_text(value), " changes the computation and is not supported; ",
       right);
}

// Reads rope_theta + rope_scaling (transformers 4) or rope_parameters (transformers 5).
RotaryConfig parse_rotary(const Json& config, std::string_view what) {
  RotaryConfig rotary;
  rotary.theta = positive_at(config, "rope_theta", what, 10000.0);
  const Json* v4 = find(config, "rope_scaling");
  const Json* v5 = find(config, "rope_parameters");
  if (v4 != nullptr && v5 != nullptr && *v4 != *v5) {
    fail(Code::kInvalidArgument, what, ": rope_scaling and rope_parameters are both given and differ");
  }
  const Json* scaling = v5 != nullptr ? v5 : v4;
  if (scaling == nullptr) return rotary;
  const std::string where = std::string(what) + (v5 != nullptr ? ": rope_parameters" : ": rope_scaling");
  if (!scaling->is_object()) fail(Code::kInvalidArgument, where, " must be an object");
  std::string kind = "default";
  for (const char* key : {"rope_type", "type"}) {
    if (find(*scaling, key) != nullptr) {
      kind = string_at(*scaling, key, where);
      break;
    }
  }
  std::set<std::string> read = {"rope_type", "type", "rope_theta"};
  rotary.theta = positive_at(*scaling, "rope_theta", where, rotary.theta);
  if (kind == "linear" || kind == "llama3") {
    read.insert("factor");
    if (find(*scaling, "factor") == nullptr) fail(Code::kInvalidArgument, where, ": key 'factor' is missing");
    rotary.factor = positive_at(*scaling, "factor", where, 1.0);
  }
  if (kind == "llama3") {
    rotary.kind = RotaryConfig::Kind::llama3;
    for (const char* key : {"low_freq_factor", "high_freq_factor", "original_max_position_embeddings"}) {
      if (find(*scaling, key) == nullptr) fail(Code::kInvalidArgument, where, ": key '", key, "' is missing");
      read.insert(key);
    }
    rotary.low_freq_factor = positive_at(*scaling, "low_freq_factor", where, 1.0);
    rotary.high_freq_factor = positive_at(*scaling, "high_freq_factor", where, 4.0);
    rotary.original_max_position = positive_at(*scaling, "original_max_position_embeddings", where, 8192);
    if (rotary.high_freq_factor <= rotary.low_freq_factor) {
      fail(Code::kInvalidArgument, where, ": high_freq_factor must be larger than low_freq_factor");
    }
  } else if (kind == "linear") {
    rotary.kind = RotaryConfig::Kind::linear;
  } else if (kind != "default") {
    fail(Code::kUnimplemented, where, ": rope_type '", kind, "' is not supported; default, linear and llama3 are");
  }
  for (const auto& [key, value] : scaling->items()) {
    if (read.contains(key) || value.is_null()) continue;
    if (key == "partial_rotary_factor" && value == 1.0) continue;
    refuse(where, key.c_str(), value, "remove the key or use a supported rope_type");
  }
  return rotary;
}

kernels::Activation parse_activation(const Json& config, std::string_view what) {
  const std::string name = find(config, "hidden_act") == nullptr ? "silu" : string_at(config, "hidden_act", what);
  if (name == "silu" || name == "swish") return kernels::Activation::silu;
  if (name == "gelu") return kernels::Activation::gelu;
  if (name == "gelu_pytorch_tanh" || name == "gelu_new") return kernels::Activation::gelu_tanh;
  if (name == "relu") return kernels::Activation::relu;
  fail(Code::kUnimplemented, what, ": hidden_act '", name,
       "' is not supported; silu, gelu, gelu_new, gelu_pytorch_tanh and relu are");
}

void refuse_what_changes(const Json& config, std::string_view what, const std::string& family) {
  for (const auto& [key, value] : config.items()) {
    if (contains(kKnownKeys, key) || contains(kInertKeys, key) || key.starts_with("_")) continue;
    refuse(what, key.c_str(), value, "the key is not known, so it cannot be ignored");
  }
  const Json* value = nullptr;
  if ((value = find(config, "attention_dropout")) && *value != 0.0) refuse(what, "attention_dropout", *value, "use 0");
  if ((value = find(config, "pretraining_tp")) && *value != 1) refuse(what, "pretraining_tp", *value, "use 1");
  if ((value = find(config, "partial_rotary_factor")) && *value != 1.0) refuse(what, "partial_rotary_factor", *value, "use 1");
  if ((value = find(config, "rope_interleaved")) && *value != false) refuse(what, "rope_interleaved", *value, "use false");
  if ((value = find(config, "quantization_config"))) refuse(what, "quantization_config", *value, "use unquantised weights");
  if ((value = find(config, "use_sliding_window")) && *value != false) refuse(what, "use_sliding_window", *value, "use false");
  if ((value = find(config, "sliding_window")) && family != "qwen2") refuse(what, "sliding_window", *value, "use null");
  if ((value = find(config, "layer_types"))) {
    for (const Json& type : *value) {
      if (type != "full_attention") refuse(what, "layer_types", *value, "every layer must be full_attention");
    }
  }
}

}  // namespace

std::vector<double> RotaryConfig::inv_freq(int64_t head_size) const {
  std::vector<double> result;
  for (int64_t i = 0; i < head_size / 2; ++i) {
    const double base = std::pow(theta, -2.0 * static_cast<double>(i) / static_cast<double>(head_size));
    double value = base;
    if (kind == Kind::linear) value = base / factor;
    if (kind == Kind::llama3) {
      const double wavelength = 2.0 * std::numbers::pi / base;
      if (wavelength > original_max_position / low_freq_factor) {
        value = base / factor;
      } else if (wavelength >= original_max_position / high_freq_factor) {
        const double smooth =
            (original_max_position / wavelength - low_freq_factor) / (high_freq_factor - low_freq_factor);
        value = (1.0 - smooth) * base / factor + smooth * base;
      }
    }
    result.push_back(value);
  }
  return result;
}

DecoderConfig DecoderConfig::parse(const Json& config, std::string_view what) {
  if (!config.is_object()) fail(Code::kInvalidArgument, what, ": must be an object");
  const std::string family = string_at(config, "model_type", what);
  if (family != "llama" && family != "mistral" && family != "qwen2") {
    fail(Code::kUnimplemented, what, ": model_type '", family, "' is not supported; llama, mistral and qwen2 are");
  }
  refuse_what_changes(config, what, family);

  DecoderConfig result;
  result.vocab_size = size_at(config, "vocab_size", what);
  result.hidden_size = size_at(config, "hidden_size", what);
  result.intermediate_size = size_at(config, "intermediate_size", what);
  result.num_hidden_layers = size_at(config, "num_hidden_layers", what);
  result.num_attention_heads = size_at(config, "num_attention_heads", what);
  result.num_key_value_heads = size_at(config, "num_key_value_heads", what, result.num_attention_heads);
  if (find(config, "head_dim") == nullptr && result.hidden_size % result.num_attention_heads != 0) {
    fail(Code::kInvalidArgument, what, ": hidden_size ", result.hidden_size, " is no multiple of num_attention_heads ",
         result.num_attention_heads);
  }
  result.head_dim = size_at(config, "head_dim", what, result.hidden_size / result.num_attention_heads);
  if (result.head_dim % 2 != 0) fail(Code::kInvalidArgument, what, ": head_dim ", result.head_dim, " must be even");
  if (result.num_attention_heads % result.num_key_value_heads != 0) {
    fail(Code::kInvalidArgument, what, ": num_attention_heads ", result.num_attention_heads,
         " is no multiple of num_key_value_heads ", result.num_key_value_heads);
  }
  result.max_position_embeddings = size_at(config, "max_position_embeddings", what, 2048);
  result.rms_norm_eps = positive_at(config, "rms_norm_eps", what, 1e-6);
  result.initializer_range = positive_at(config, "initializer_range", what, 0.02);
  result.activation = parse_activation(config, what);
  const bool attention_bias = flag_at(config, "attention_bias", what, false);
  result.qkv_bias = family == "qwen2" || attention_bias;
  result.output_bias = family == "llama" && attention_bias;
  if (family == "mistral" && attention_bias) refuse(what, "attention_bias", true, "use false");
  result.mlp_bias = flag_at(config, "mlp_bias", what, false);
  if (family != "llama" && result.mlp_bias) refuse(what, "mlp_bias", true, "use false");
  result.tie_word_embeddings = flag_at(config, "tie_word_embeddings", what, false);
  result.rotary = parse_rotary(config, what);
  return result;
}

}  // namespace inlaid::models

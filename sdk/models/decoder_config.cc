#include "sdk/models/decoder_config.h"

#include <algorithm>
#include <cmath>

#include "sdk/models/config_reader.h"

namespace inlaid::models {
namespace {

// What the families' configuration classes say about keys that a config.json leaves out, and which options they have.
struct Family {
  std::string_view name;
  int64_t max_position;
  int64_t head_dim;     // 0: hidden_size / num_attention_heads
  bool heads_for_kv;    // num_key_value_heads may be missing: as many as heads
  double eps;
  bool tied;
  int64_t window;       // 0: no sliding window unless given
};
constexpr Family kFamilies[] = {
    {"llama", 2048, 0, true, 1e-6, false, 0},       {"mistral", 131072, 0, false, 1e-6, false, 4096},
    {"qwen2", 32768, 0, false, 1e-6, false, 4096},  {"qwen3", 32768, 128, false, 1e-6, false, 4096},
    {"phi3", 4096, 0, true, 1e-5, false, 0},        {"gemma2", 8192, 256, false, 1e-6, true, 4096},
};

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
    "base_model_tp_plan", "base_model_pp_plan", "cache_implementation"};

// Keys that parse() reads, whatever the family.
constexpr std::string_view kKnownKeys[] = {
    "vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
    "num_key_value_heads", "head_dim", "hidden_act", "max_position_embeddings", "rms_norm_eps", "attention_bias",
    "mlp_bias", "lm_head_bias", "attention_dropout", "tie_word_embeddings", "rope_theta", "rope_scaling", "rope_parameters",
    "rope_interleaved", "pretraining_tp", "sliding_window", "use_sliding_window", "max_window_layers", "layer_types",
    "partial_rotary_factor", "quantization_config"};
constexpr std::string_view kPhi3Keys[] = {"original_max_position_embeddings", "resid_pdrop", "embd_pdrop"};
constexpr std::string_view kGemma2Keys[] = {"hidden_activation", "query_pre_attn_scalar", "attn_logit_softcapping",
                                            "final_logit_softcapping", "use_bidirectional_attention"};

template <size_t N>
bool contains(const std::string_view (&keys)[N], std::string_view key) {
  return std::find(std::begin(keys), std::end(keys), key) != std::end(keys);
}

const Family& family_of(const Json& config, std::string_view what) {
  const std::string name = string_at(config, "model_type", what);
  for (const Family& family : kFamilies) {
    if (family.name == name) return family;
  }
  fail(Code::kUnimplemented, what, ": model_type '", name,
       "' is not supported; llama, mistral, qwen2, qwen3, phi3 and gemma2 are");
}

kernels::Activation parse_activation(const Json& config, const Family& family, std::string_view what) {
  const bool gemma = family.name == "gemma2";
  const char* key = gemma ? "hidden_activation" : "hidden_act";
  const std::string name =
      find(config, key) != nullptr ? string_at(config, key, what) : gemma ? "gelu_pytorch_tanh" : "silu";
  if (const Json* other = find(config, "hidden_act"); gemma && other != nullptr && *other != name) {
    refuse(what, "hidden_act", *other, "gemma2 has hidden_activation, and both must say the same");
  }
  if (name == "silu" || name == "swish") return kernels::Activation::silu;
  if (name == "gelu") return kernels::Activation::gelu;
  if (name == "gelu_pytorch_tanh" || name == "gelu_new") return kernels::Activation::gelu_tanh;
  if (name == "relu") return kernels::Activation::relu;
  fail(Code::kUnimplemented, what, ": ", key, " '", name,
       "' is not supported; silu, gelu, gelu_new, gelu_pytorch_tanh and relu are");
}

void refuse_what_changes(const Json& config, const Family& family, std::string_view what) {
  for (const auto& [key, value] : config.items()) {
    if (contains(kKnownKeys, key) || contains(kInertKeys, key) || key.starts_with("_")) continue;
    if (family.name == "phi3" && contains(kPhi3Keys, key)) continue;
    if (family.name == "gemma2" && contains(kGemma2Keys, key)) continue;
    refuse(what, key, value, "the key is not known, so it cannot be ignored");
  }
  struct Fixed {
    const char* key;
    Json value;
    const char* right;
  };
  const Fixed fixed[] = {
      {"attention_dropout", 0.0, "use 0"},   {"resid_pdrop", 0.0, "use 0"},       {"embd_pdrop", 0.0, "use 0"},
      {"pretraining_tp", 1, "use 1"},        {"lm_head_bias", false, "use false"}, {"rope_interleaved", false, "use false"},
      {"use_bidirectional_attention", false, "use false"},
  };
  for (const Fixed& f : fixed) {
    if (const Json* value = find(config, f.key); value != nullptr && *value != f.value) refuse(what, f.key, *value, f.right);
  }
  if (const Json* value = find(config, "quantization_config")) {
    refuse(what, "quantization_config", *value, "use unquantised weights");
  }
}

// The sliding window of the layers that have one; 0 for none.
int64_t parse_window(const Json& config, const Family& family, std::string_view what) {
  const bool qwen = family.name.starts_with("qwen");
  const bool used = flag_at(config, "use_sliding_window", what, false);
  if (used && !qwen) refuse(what, "use_sliding_window", true, "use false, or sliding_window of mistral, phi3 or gemma2");
  if (qwen && !used) return 0;
  if (config.contains("sliding_window")) {
    if (find(config, "sliding_window") == nullptr) return 0;
    if (family.name == "llama") refuse(what, "sliding_window", config["sliding_window"], "use null");
    return size_at(config, "sliding_window", what);
  }
  return family.window;
}

// Whether a layer has the window where layer_types does not say: all of mistral and phi3, of qwen those from max_window_layers on,
// of gemma2 every other.
bool slides(const Family& family, int64_t layer, int64_t max_window_layers) {
  if (family.name == "gemma2") return layer % 2 == 0;
  if (family.name.starts_with("qwen")) return layer >= max_window_layers;
  return true;
}

std::vector<int64_t> parse_windows(const Json& config, const Family& family, int64_t layers, std::string_view what) {
  const int64_t window = parse_window(config, family, what);
  int64_t max_window_layers = 28;
  if (find(config, "max_window_layers") != nullptr) max_window_layers = int_at(config, "max_window_layers", what);
  std::vector<int64_t> windows;
  for (int64_t layer = 0; layer < layers; ++layer) {
    windows.push_back(slides(family, layer, max_window_layers) ? window : 0);
  }
  const Json* types = find(config, "layer_types");
  if (types == nullptr) {
    if (family.name == "gemma2" && window == 0) {
      fail(Code::kInvalidArgument, what, ": sliding_window is missing; every other layer of gemma2 needs it, or layer_types");
    }
    return windows;
  }
  if (!types->is_array() || static_cast<int64_t>(types->size()) != layers) {
    fail(Code::kInvalidArgument, what, ": layer_types must be a list of num_hidden_layers ", layers, " entries");
  }
  const bool obeyed = family.name.starts_with("qwen") || family.name == "gemma2";  // the others ignore the key
  for (size_t layer = 0; layer < windows.size(); ++layer) {
    const Json& type = (*types)[layer];
    const bool sliding = type == "sliding_attention";
    if (!sliding && type != "full_attention") refuse(what, "layer_types", type, "full_attention and sliding_attention are known");
    if (sliding && window == 0) {
      fail(Code::kInvalidArgument, what,
           ": layer_types has a sliding_attention but there is no window (keys use_sliding_window, sliding_window)");
    }
    if (!obeyed && sliding != (windows[layer] > 0)) {
      refuse(what, "layer_types", type, "it contradicts sliding_window, which is what this family follows");
    }
    windows[layer] = sliding ? window : 0;
  }
  return windows;
}

double parse_cap(const Json& config, const char* key, double otherwise, std::string_view what) {
  if (config.contains(key) && find(config, key) == nullptr) return 0;
  return positive_at(config, key, what, otherwise);
}

void parse_gemma2(DecoderConfig& result, const Json& config, std::string_view what) {
  result.attention_scale = 1.0 / std::sqrt(positive_at(config, "query_pre_attn_scalar", what, 256));
  result.attention_soft_cap = parse_cap(config, "attn_logit_softcapping", 50, what);
  result.logit_soft_cap = parse_cap(config, "final_logit_softcapping", 30, what);
  result.post_norms = true;
  result.norm_offset = 1;
  result.embedding_scale = std::sqrt(static_cast<double>(result.hidden_size));
}

void parse_biases(DecoderConfig& result, const Json& config, const Family& family, std::string_view what) {
  const bool attention = flag_at(config, "attention_bias", what, false);
  const bool known = family.name == "llama" || family.name == "qwen3" || family.name == "gemma2";
  if (attention && family.name != "qwen2" && !known) refuse(what, "attention_bias", true, "use false");
  if (attention && family.name == "qwen2") refuse(what, "attention_bias", true, "qwen2 has no such key");
  result.qkv_bias = family.name == "qwen2" || attention;
  result.output_bias = attention;
  result.mlp_bias = flag_at(config, "mlp_bias", what, false);
  if (family.name != "llama" && result.mlp_bias) refuse(what, "mlp_bias", true, "use false");
}

}  // namespace

DecoderConfig DecoderConfig::parse(const Json& config, std::string_view what) {
  if (!config.is_object()) fail(Code::kInvalidArgument, what, ": must be an object");
  const Family& family = family_of(config, what);
  refuse_what_changes(config, family, what);

  DecoderConfig result;
  result.family = family.name;
  result.vocab_size = size_at(config, "vocab_size", what);
  result.hidden_size = size_at(config, "hidden_size", what);
  result.intermediate_size = size_at(config, "intermediate_size", what);
  result.num_hidden_layers = size_at(config, "num_hidden_layers", what);
  if (result.num_hidden_layers > 100'000) {
    fail(Code::kInvalidArgument, what, ": num_hidden_layers ", result.num_hidden_layers, " is too large");
  }
  result.num_attention_heads = size_at(config, "num_attention_heads", what);
  const bool heads_for_kv = family.heads_for_kv || config.contains("num_key_value_heads");
  result.num_key_value_heads = size_at(config, "num_key_value_heads", what, heads_for_kv ? result.num_attention_heads : -1);
  if (find(config, "head_dim") == nullptr && family.head_dim == 0 && result.hidden_size % result.num_attention_heads != 0) {
    fail(Code::kInvalidArgument, what, ": hidden_size ", result.hidden_size, " is no multiple of num_attention_heads ",
         result.num_attention_heads);
  }
  result.head_dim = size_at(config, "head_dim", what,
                            family.head_dim > 0 ? family.head_dim : result.hidden_size / result.num_attention_heads);
  if (result.head_dim % 2 != 0) fail(Code::kInvalidArgument, what, ": head_dim ", result.head_dim, " must be even");
  if (result.num_attention_heads % result.num_key_value_heads != 0) {
    fail(Code::kInvalidArgument, what, ": num_attention_heads ", result.num_attention_heads,
         " is no multiple of num_key_value_heads ", result.num_key_value_heads);
  }
  result.max_position_embeddings = size_at(config, "max_position_embeddings", what, family.max_position);
  result.rms_norm_eps = positive_at(config, "rms_norm_eps", what, family.eps);
  result.initializer_range = positive_at(config, "initializer_range", what, 0.02);
  result.activation = parse_activation(config, family, what);
  parse_biases(result, config, family, what);
  result.tie_word_embeddings = flag_at(config, "tie_word_embeddings", what, family.tied);
  result.rotary = RotaryConfig::parse(config, what, result.family, result.head_dim, result.max_position_embeddings);
  result.qk_norm = family.name == "qwen3";
  result.windows = parse_windows(config, family, result.num_hidden_layers, what);
  result.attention_scale = 1.0 / std::sqrt(static_cast<double>(result.head_dim));
  if (family.name == "gemma2") parse_gemma2(result, config, what);
  return result;
}

}  // namespace inlaid::models

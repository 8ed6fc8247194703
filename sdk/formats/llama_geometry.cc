#include "sdk/formats/llama_geometry.h"

#include <cmath>

#include "sdk/base/error.h"

namespace inlaid::formats {
namespace {

constexpr int64_t kMaxSize = int64_t{1} << 31;  // products of two sizes stay inside 64 bits

bool has(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && !found->is_null();
}

int64_t size_at(const Json& config, const char* key, std::string_view what) {
  const int64_t value = int_at(config, key, what);
  if (value < 1 || value > kMaxSize) {
    fail(Code::kInvalidArgument, what, ": key '", key, "' is ", value, ", it must be from 1 to ", kMaxSize);
  }
  return value;
}

bool flag_or(const Json& config, const char* key, bool otherwise, std::string_view what) {
  return has(config, key) ? bool_at(config, key, what) : otherwise;
}

double positive_at(const Json& object, const char* key, std::string_view what) {
  const double value = number_at(object, key, what);
  if (!(value >= 1e-15 && value <= 1e15)) {  // as models/config_reader.h
    fail(Code::kInvalidArgument, what, ": key '", key, "' is ", value, ", it must be positive, from 1e-15 to 1e15");
  }
  return value;
}

}  // namespace

Rope parse_rope(const Json& config, std::string_view what) {
  Rope rope;
  const Json* scaling = nullptr;
  if (has(config, "rope_parameters")) {
    scaling = &at(config, "rope_parameters", what);
    if (has(*scaling, "rope_theta")) rope.theta = positive_at(*scaling, "rope_theta", what);
  } else if (has(config, "rope_scaling")) {
    scaling = &at(config, "rope_scaling", what);
  }
  if (has(config, "rope_theta")) rope.theta = positive_at(config, "rope_theta", what);
  if (scaling == nullptr) return rope;
  if (!scaling->is_object()) fail(Code::kInvalidArgument, what, ": rotary scaling must be an object");
  for (const auto& [key, value] : scaling->items()) {
    if (value.is_object()) {
      fail(Code::kUnimplemented, what, ": rotary settings per kind of layer ('", key, "') are not supported");
    }
  }

  std::string type = "default";
  for (const char* key : {"type", "rope_type"}) {
    if (has(*scaling, key)) type = string_at(*scaling, key, what);
  }
  if (type == "default") return rope;
  if (type == "linear") {
    rope.kind = Rope::Kind::kLinear;
    rope.factor = positive_at(*scaling, "factor", what);
  } else if (type == "llama3") {
    rope.kind = Rope::Kind::kLlama3;
    rope.factor = positive_at(*scaling, "factor", what);
    rope.low = positive_at(*scaling, "low_freq_factor", what);
    rope.high = positive_at(*scaling, "high_freq_factor", what);
    rope.original_context = size_at(*scaling, "original_max_position_embeddings", what);
    if (rope.high <= rope.low) {
      fail(Code::kInvalidArgument, what, ": high_freq_factor must be over low_freq_factor");
    }
  } else if (type == "yarn") {
    rope.kind = Rope::Kind::kYarn;
    rope.factor = positive_at(*scaling, "factor", what);
    const bool own = has(*scaling, "original_max_position_embeddings");
    if (own || has(config, "max_position_embeddings")) {
      rope.original_context = own ? size_at(*scaling, "original_max_position_embeddings", what)
                                  : size_at(config, "max_position_embeddings", what);
    }
    if (has(*scaling, "beta_fast")) rope.beta_fast = positive_at(*scaling, "beta_fast", what);
    if (has(*scaling, "beta_slow")) rope.beta_slow = positive_at(*scaling, "beta_slow", what);
    for (const char* key : {"attention_factor", "mscale", "mscale_all_dim"}) {
      if (has(*scaling, key)) {
        fail(Code::kUnimplemented, what, ": rotary scaling yarn with the key '", key, "' cannot be said in a GGUF file");
      }
    }
    if (!flag_or(*scaling, "truncate", true, what)) {
      fail(Code::kUnimplemented, what, ": rotary scaling yarn with truncate = false cannot be said in a GGUF file");
    }
  } else {
    fail(Code::kUnimplemented, what, ": rotary scaling '", type,
         "' cannot be said in a GGUF file; default, linear, llama3 and yarn can");
  }
  return rope;
}

Json with_rope_of_version_4(Json config) {
  if (!has(config, "rope_parameters")) return config;
  Json scaling = config["rope_parameters"];
  config.erase("rope_parameters");
  if (!scaling.is_object()) return config;
  for (const char* key : {"rope_theta", "partial_rotary_factor"}) {
    if (has(scaling, key)) config[key] = scaling[key];
    scaling.erase(key);
  }
  const bool plain = !has(scaling, "rope_type") || scaling["rope_type"] == "default";
  if (!plain && config.contains("model_type") && config["model_type"] == "phi3") {
    scaling["type"] = scaling["rope_type"];
    scaling.erase("rope_type");
    scaling.erase("original_max_position_embeddings");  // phi3 reads the one beside rope_scaling
  }
  config["rope_scaling"] = plain ? Json(nullptr) : scaling;
  return config;
}

LlamaGeometry parse_llama_geometry(const Json& config, std::string_view what) {
  LlamaGeometry g = parse_llama_shapes(config, what);
  g.rope = parse_rope(config, what);
  return g;
}

LlamaGeometry parse_llama_shapes(const Json& config, std::string_view what) {
  LlamaGeometry g;
  g.architecture = has(config, "model_type") ? string_at(config, "model_type", what) : "llama";
  const bool qwen2 = g.architecture == "qwen2", qwen3 = g.architecture == "qwen3";
  if (g.architecture == "mistral") g.architecture = "llama";
  g.hidden = size_at(config, "hidden_size", what);
  g.intermediate = size_at(config, "intermediate_size", what);
  g.parts.layers = size_at(config, "num_hidden_layers", what);
  g.heads = size_at(config, "num_attention_heads", what);
  g.kv_heads = has(config, "num_key_value_heads") ? size_at(config, "num_key_value_heads", what) : g.heads;
  g.vocabulary = size_at(config, "vocab_size", what);
  g.context =
      has(config, "max_position_embeddings") ? size_at(config, "max_position_embeddings", what) : 2048;
  if (has(config, "head_dim")) {
    g.head_size = size_at(config, "head_dim", what);
  } else if (qwen3) {
    g.head_size = 128;
  } else if (g.hidden % g.heads == 0) {
    g.head_size = g.hidden / g.heads;
  } else {
    fail(Code::kInvalidArgument, what, ": hidden_size ", g.hidden, " is no multiple of num_attention_heads ",
         g.heads, " and there is no head_dim");
  }
  if (g.head_size % 2 != 0)
    fail(Code::kInvalidArgument, what, ": the head size ", g.head_size, " must be even");
  if (g.heads % g.kv_heads != 0) {
    fail(Code::kInvalidArgument, what, ": num_attention_heads ", g.heads,
         " is no multiple of num_key_value_heads ", g.kv_heads);
  }
  if (g.parts.layers > 100'000)
    fail(Code::kInvalidArgument, what, ": num_hidden_layers ", g.parts.layers, " is too large");
  g.rms_eps = has(config, "rms_norm_eps") ? positive_at(config, "rms_norm_eps", what) : 1e-6;
  g.parts.tied = flag_or(config, "tie_word_embeddings", false, what);
  g.parts.attention_bias = qwen2 || flag_or(config, "attention_bias", false, what);
  g.parts.no_output_bias = qwen2;
  g.parts.qk_norm = qwen3;
  g.parts.mlp_bias = flag_or(config, "mlp_bias", false, what);
  return g;
}

int64_t LlamaGeometry::heads_of(RowOrder rows) const {
  switch (rows) {
    case RowOrder::kSame:
      return 0;
    case RowOrder::kQueryHeads:
      return heads;
    case RowOrder::kKeyHeads:
      return kv_heads;
  }
  return 0;
}

Shape LlamaGeometry::shape_of(std::string_view name) const {
  const auto ends = [&](std::string_view end) { return name.ends_with(end); };
  const int64_t queries = heads * head_size, keys = kv_heads * head_size;
  if (name == "model.embed_tokens.weight" || name == "lm_head.weight") return {vocabulary, hidden};
  if (ends("q_norm.weight") || ends("k_norm.weight")) return {head_size};
  if (ends("norm.weight")) return {hidden};
  if (ends("q_proj.weight")) return {queries, hidden};
  if (ends("k_proj.weight") || ends("v_proj.weight")) return {keys, hidden};
  if (ends("o_proj.weight")) return {hidden, queries};
  if (ends("gate_proj.weight") || ends("up_proj.weight")) return {intermediate, hidden};
  if (ends("down_proj.weight")) return {hidden, intermediate};
  if (ends("q_proj.bias")) return {queries};
  if (ends("k_proj.bias") || ends("v_proj.bias")) return {keys};
  if (ends("gate_proj.bias") || ends("up_proj.bias")) return {intermediate};
  if (ends("o_proj.bias") || ends("down_proj.bias")) return {hidden};
  return {};
}

std::vector<float> llama3_factors(const Rope& rope, int64_t head_size) {
  constexpr double kTwoPi = 6.283185307179586476925286766559;
  std::vector<float> factors;
  const double n = static_cast<double>(rope.original_context);
  for (int64_t i = 0; i < head_size / 2; ++i) {
    const double frequency =
        std::pow(rope.theta, -2.0 * static_cast<double>(i) / static_cast<double>(head_size));
    const double wavelength = kTwoPi / frequency;
    double factor = 0;
    if (wavelength < n / rope.high) {
      factor = 1.0;
    } else if (wavelength > n / rope.low) {
      factor = rope.factor;
    } else {
      const double smooth = (n / wavelength - rope.low) / (rope.high - rope.low);
      factor = 1.0 / ((1.0 - smooth) / rope.factor + smooth);
    }
    factors.push_back(static_cast<float>(factor));
  }
  return factors;
}

}  // namespace inlaid::formats

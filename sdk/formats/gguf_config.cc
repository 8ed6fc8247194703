#include "sdk/formats/gguf_config.h"

#include <algorithm>
#include <cfloat>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "sdk/base/error.h"

namespace inlaid::formats {
namespace {

constexpr std::string_view kArchitectures[] = {"llama", "qwen2", "qwen3"};

// A key of the file's own architecture.
std::string arch_key(const GgufFile& file, std::string_view key) {
  return file.text("general.architecture") + "." + std::string(key);
}

// The shortest decimal that rounds to the f32 that `value` is.
double as_written(double value) {
  if (!(std::fabs(value) <= FLT_MAX)) return value;
  const float narrow = static_cast<float>(value);
  if (static_cast<double>(narrow) != value) return value;
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, narrow).ptr;
  double out = value;
  std::from_chars(text, end, out);
  return out;
}

// A number, or an array in which some converters repeat it for every layer.
int64_t uniform_integer(const GgufFile& file, const std::string& key) {
  const GgufValue* value = file.find(key);
  if (value == nullptr || !value->array) return file.integer(key);
  const std::vector<int64_t> all = file.integers(key);
  if (all.empty() || std::any_of(all.begin(), all.end(), [&](int64_t n) { return n != all[0]; })) {
    fail(Code::kUnimplemented, file.path(), ": ", key,
         " differs from layer to layer, which is not supported");
  }
  return all[0];
}

// Metadata of the architecture that is fully used, or does not change the computation. Everything else is
// refused.
constexpr std::string_view kUnderstood[] = {"block_count",
                                            "context_length",
                                            "embedding_length",
                                            "feed_forward_length",
                                            "vocab_size",
                                            "attention.head_count",
                                            "attention.head_count_kv",
                                            "attention.key_length",
                                            "attention.value_length",
                                            "attention.layer_norm_rms_epsilon",
                                            "attention.causal",
                                            "rope.freq_base",
                                            "rope.dimension_count",
                                            "rope.scaling.type",
                                            "rope.scaling.factor",
                                            "rope.scale_linear",
                                            "rope.scaling.original_context_length",
                                            "rope.scaling.finetuned",
                                            "rope.scaling.yarn_beta_fast",
                                            "rope.scaling.yarn_beta_slow",
                                            "expert_count",
                                            "expert_used_count",
                                            "tensor_data_layout"};

void refuse_unknown(const GgufFile& file) {
  const std::string prefix = arch_key(file, "");
  for (const auto& [key, value] : file.metadata()) {
    if (!key.starts_with(prefix)) continue;
    const std::string_view rest = std::string_view(key).substr(prefix.size());
    if (std::find(std::begin(kUnderstood), std::end(kUnderstood), rest) == std::end(kUnderstood)) {
      fail(Code::kUnimplemented, file.path(), ": metadata key '", key, "' is not supported");
    }
  }
  for (const char* key : {"expert_count", "expert_used_count"}) {
    if (file.optional_integer(arch_key(file, key)).value_or(0) != 0) {
      fail(Code::kUnimplemented, file.path(), ": ", arch_key(file, key), ": mixtures of experts are not supported");
    }
  }
  if (!file.optional_flag(arch_key(file, "attention.causal")).value_or(true)) {
    fail(Code::kUnimplemented, file.path(), ": ", arch_key(file, "attention.causal"), " = false is not supported");
  }
}

// The rotary scaling that rope_freqs.weight was made from. The tensor holds factors only, which fix the
// parameters up to a common scale: the values that all published models use are tried, with the original
// context length that the file names.
Json llama3_scaling(const GgufFile& file, const GgufTensor& tensor, double theta, int64_t head_size) {
  if (tensor.dtype != DType::f32 || tensor.shape != Shape{head_size / 2}) {
    fail(Code::kDataLoss, file.path(), ": rope_freqs.weight must be f32 of shape [", head_size / 2, "]");
  }
  std::vector<float> factors(static_cast<size_t>(head_size / 2));
  file.file().read_at(tensor.offset, std::as_writable_bytes(std::span(factors)));
  Rope rope;
  rope.kind = Rope::Kind::kLlama3;
  rope.theta = theta;
  rope.factor = *std::max_element(factors.begin(), factors.end());
  rope.original_context =
      file.optional_integer(arch_key(file, "rope.scaling.original_context_length")).value_or(8192);
  const std::vector<float> expected = llama3_factors(rope, head_size);
  for (size_t i = 0; i < factors.size(); ++i) {
    if (std::fabs(factors[i] - expected[i]) <= 1e-5f * expected[i]) continue;
    fail(Code::kUnimplemented, file.path(), ": factor ", i, " in rope_freqs.weight is ", factors[i],
         ", not the ", expected[i], " of llama3 scaling with factor ", rope.factor,
         ", low_freq_factor 1, high_freq_factor 4 and ", "original context ", rope.original_context);
  }
  Json scaling = Json::object();
  scaling["rope_type"] = "llama3";
  scaling["factor"] = as_written(rope.factor);
  scaling["low_freq_factor"] = rope.low;
  scaling["high_freq_factor"] = rope.high;
  scaling["original_max_position_embeddings"] = rope.original_context;
  return scaling;
}

Json yarn_scaling(const GgufFile& file) {
  Json scaling = Json::object();
  scaling["rope_type"] = "yarn";
  scaling["factor"] = as_written(file.number(arch_key(file, "rope.scaling.factor")));
  scaling["original_max_position_embeddings"] = file.integer(arch_key(file, "rope.scaling.original_context_length"));
  for (const char* key : {"beta_fast", "beta_slow"}) {
    const auto value = file.optional_number(arch_key(file, std::string("rope.scaling.yarn_") + key));
    if (value) scaling[key] = as_written(*value);
  }
  return scaling;
}

Json rope_scaling(const GgufFile& file, double theta, int64_t head_size) {
  const GgufTensor* factors = file.find_tensor("rope_freqs.weight");
  const std::string type = file.optional_text(arch_key(file, "rope.scaling.type")).value_or("");
  double linear = file.optional_number(arch_key(file, "rope.scale_linear")).value_or(1.0);
  if (type == "linear") {
    linear = file.number(arch_key(file, "rope.scaling.factor"));
  } else if (type == "yarn") {
    if (factors != nullptr || linear != 1.0) {
      fail(Code::kUnimplemented, file.path(), ": yarn together with other rotary scaling");
    }
    return yarn_scaling(file);
  } else if (type != "" && type != "none") {
    fail(Code::kUnimplemented, file.path(), ": ", arch_key(file, "rope.scaling.type"), " '", type,
         "' is not supported; supported are none, linear, yarn");
  }
  if (factors != nullptr) {
    if (linear != 1.0)
      fail(Code::kUnimplemented, file.path(), ": linear scaling and rope_freqs.weight together");
    return llama3_scaling(file, *factors, theta, head_size);
  }
  if (linear == 1.0) return nullptr;
  Json scaling = Json::object();
  scaling["rope_type"] = "linear";
  scaling["factor"] = as_written(linear);
  return scaling;
}

// Whether all, or none, of the tensors named by `ends` are there in layer 0: Hugging Face's switches know
// nothing between.
bool biases(const GgufFile& file, const std::vector<std::string>& names) {
  const auto there = [&](const std::string& name) {
    return file.find_tensor("blk.0." + name + ".bias") != nullptr;
  };
  const auto found = std::count_if(names.begin(), names.end(), there);
  if (found != 0 && static_cast<size_t>(found) != names.size()) {
    fail(Code::kUnimplemented, file.path(), ": blk.0.", *std::find_if(names.begin(), names.end(), there),
         ".bias is there but not the biases of all of its group; such a mixture is not supported");
  }
  return found != 0;
}

int64_t head_size(const GgufFile& file, int64_t hidden, int64_t heads) {
  if (const auto key = file.optional_integer(arch_key(file, "attention.key_length"))) {
    const int64_t value = file.optional_integer(arch_key(file, "attention.value_length")).value_or(*key);
    if (value != *key) {
      fail(Code::kUnimplemented, file.path(), ": ", arch_key(file, "attention.value_length"), " ", value,
           " differs from key_length ", *key);
    }
    return *key;
  }
  if (heads < 1 || hidden % heads != 0) {
    fail(Code::kDataLoss, file.path(), ": ", arch_key(file, "embedding_length"), " ", hidden, " is no multiple of head_count ",
         heads);
  }
  return hidden / heads;
}

void set_token_id(Json& config, const GgufFile& file, const char* key, const char* gguf) {
  if (const auto id = file.optional_integer(std::string("tokenizer.ggml.") + gguf)) config[key] = *id;
}

}  // namespace

Json gguf_config(const GgufFile& file) {
  const std::string arch = file.text("general.architecture");
  if (std::find(std::begin(kArchitectures), std::end(kArchitectures), arch) == std::end(kArchitectures)) {
    fail(Code::kUnimplemented, file.path(), ": architecture '", arch,
         "' is not supported; supported are llama, qwen2, qwen3");
  }
  refuse_unknown(file);
  const GgufTensor* embedding = file.find_tensor("token_embd.weight");
  if (embedding == nullptr || embedding->shape.size() != 2) {
    fail(Code::kDataLoss, file.path(), ": tensor 'token_embd.weight' is missing or no matrix");
  }
  const int64_t vocabulary = file.optional_integer(arch_key(file, "vocab_size")).value_or(embedding->shape[0]);
  if (vocabulary != embedding->shape[0]) {
    fail(Code::kDataLoss, file.path(), ": ", arch_key(file, "vocab_size"), " is ", vocabulary, ", token_embd.weight has ",
         embedding->shape[0], " rows");
  }
  const int64_t hidden = file.integer(arch_key(file, "embedding_length"));
  const int64_t heads = uniform_integer(file, arch_key(file, "attention.head_count"));
  const bool own_kv = file.find(arch_key(file, "attention.head_count_kv")) != nullptr;
  const int64_t size = head_size(file, hidden, heads);
  const int64_t rotated = file.optional_integer(arch_key(file, "rope.dimension_count")).value_or(size);
  if (rotated != size) {
    fail(Code::kUnimplemented, file.path(), ": ", arch_key(file, "rope.dimension_count"), " ", rotated,
         " differs from the head size ", size, "; partial rotation is not supported");
  }
  const double theta = file.optional_number(arch_key(file, "rope.freq_base")).value_or(10000.0);

  Json config = Json::object();
  config["architectures"] = {arch == "llama" ? "LlamaForCausalLM" : arch == "qwen2" ? "Qwen2ForCausalLM" : "Qwen3ForCausalLM"};
  config["model_type"] = arch;
  config["vocab_size"] = vocabulary;
  config["hidden_size"] = hidden;
  config["intermediate_size"] = uniform_integer(file, arch_key(file, "feed_forward_length"));
  config["num_hidden_layers"] = file.integer(arch_key(file, "block_count"));
  config["num_attention_heads"] = heads;
  config["num_key_value_heads"] = own_kv ? uniform_integer(file, arch_key(file, "attention.head_count_kv")) : heads;
  config["head_dim"] = size;
  config["hidden_act"] = "silu";
  config["max_position_embeddings"] = file.integer(arch_key(file, "context_length"));
  config["rms_norm_eps"] = as_written(file.number(arch_key(file, "attention.layer_norm_rms_epsilon")));
  config["rope_theta"] = as_written(theta);
  config["rope_scaling"] = nullptr;
  // The biases of qwen2 are no option; a bias that a family does not have is left over when the model is loaded.
  if (arch != "qwen2") config["attention_bias"] = biases(file, {"attn_q", "attn_k", "attn_v", "attn_output"});
  if (arch == "llama") config["mlp_bias"] = biases(file, {"ffn_gate", "ffn_up", "ffn_down"});
  config["tie_word_embeddings"] = file.find_tensor("output.weight") == nullptr;
  set_token_id(config, file, "bos_token_id", "bos_token_id");
  set_token_id(config, file, "eos_token_id", "eos_token_id");
  set_token_id(config, file, "pad_token_id", "padding_token_id");
  try {
    parse_llama_geometry(config, file.path());
  } catch (const Error& error) {
    fail(Code::kDataLoss, error.message(), " (in the words of config.json)");
  }
  config["rope_scaling"] = rope_scaling(file, theta, size);
  return config;
}

GgufEntries gguf_architecture(const LlamaGeometry& g) {
  GgufEntries out;
  const auto put = [&](std::string_view key, GgufValue value) {
    out.emplace_back(g.architecture + "." + std::string(key), std::move(value));
  };
  put("vocab_size", gguf_u32(g.vocabulary));
  put("context_length", gguf_u32(g.context));
  put("embedding_length", gguf_u32(g.hidden));
  put("block_count", gguf_u32(g.parts.layers));
  put("feed_forward_length", gguf_u32(g.intermediate));
  put("attention.head_count", gguf_u32(g.heads));
  put("attention.head_count_kv", gguf_u32(g.kv_heads));
  put("attention.key_length", gguf_u32(g.head_size));
  put("attention.value_length", gguf_u32(g.head_size));
  put("attention.layer_norm_rms_epsilon", gguf_f32(g.rms_eps));
  put("rope.dimension_count", gguf_u32(g.head_size));
  put("rope.freq_base", gguf_f32(g.rope.theta));
  if (g.rope.kind == Rope::Kind::kLinear) {
    put("rope.scaling.type", gguf_string("linear"));
    put("rope.scaling.factor", gguf_f32(g.rope.factor));
  } else if (g.rope.kind == Rope::Kind::kYarn) {
    put("rope.scaling.type", gguf_string("yarn"));
    put("rope.scaling.factor", gguf_f32(g.rope.factor));
    put("rope.scaling.original_context_length", gguf_u32(g.rope.original_context));
    if (g.rope.beta_fast != 32.0) put("rope.scaling.yarn_beta_fast", gguf_f32(g.rope.beta_fast));
    if (g.rope.beta_slow != 1.0) put("rope.scaling.yarn_beta_slow", gguf_f32(g.rope.beta_slow));
  } else if (g.rope.kind == Rope::Kind::kLlama3) {
    if (g.rope.low != 1.0 || g.rope.high != 4.0) {
      fail(Code::kUnimplemented, "llama3 rotary scaling with low_freq_factor ", g.rope.low,
           " and high_freq_factor ", g.rope.high, " cannot be read back from a GGUF file; only 1 and 4 can");
    }
    put("rope.scaling.original_context_length", gguf_u32(g.rope.original_context));
  }
  return out;
}

GgufValue gguf_u32(int64_t value) {
  return {GgufType::u32, false, static_cast<uint64_t>(value)};
}
GgufValue gguf_f32(double value) {
  return {GgufType::f32, false, value};
}
GgufValue gguf_bool(bool value) {
  return {GgufType::boolean, false, value};
}
GgufValue gguf_string(std::string value) {
  return {GgufType::string, false, std::move(value)};
}
GgufValue gguf_strings(std::vector<std::string> values) {
  return {GgufType::string, true, std::move(values)};
}
GgufValue gguf_i32s(std::vector<int64_t> values) {
  return {GgufType::i32, true, std::move(values)};
}

}  // namespace inlaid::formats

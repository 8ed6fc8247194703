#include "sdk/models/decoder.h"

#include "sdk/ops/ops.h"

namespace inlaid::models {
namespace {

using autograd::Recorder;
using autograd::ValueId;
using nn::Init;

std::string layer_name(int64_t layer) { return "model.layers." + std::to_string(layer) + "."; }

struct LinearShape {
  const char* module;
  int64_t out, in;
  bool bias;
};

// The norms of a block in order of use; `before` names the linear layer that each comes before ("" : none).
struct NormShape {
  const char* module;
  const char* before;
  int64_t width;
};

std::vector<NormShape> block_norms(const DecoderConfig& c) {
  std::vector<NormShape> norms = {{"input_layernorm", "self_attn.q_proj", c.hidden_size}};
  if (c.qk_norm) {
    norms.push_back({"self_attn.q_norm", "self_attn.o_proj", c.head_dim});
    norms.push_back({"self_attn.k_norm", "self_attn.o_proj", c.head_dim});
  }
  norms.push_back({"post_attention_layernorm", "mlp.gate_proj", c.hidden_size});
  if (c.post_norms) {
    norms.push_back({"pre_feedforward_layernorm", "mlp.gate_proj", c.hidden_size});
    norms.push_back({"post_feedforward_layernorm", "", c.hidden_size});
  }
  return norms;
}

std::vector<LinearShape> block_linears(const DecoderConfig& c) {
  const int64_t q = c.num_attention_heads * c.head_dim;
  const int64_t kv = c.num_key_value_heads * c.head_dim;
  return {{"self_attn.q_proj", q, c.hidden_size, c.qkv_bias},
          {"self_attn.k_proj", kv, c.hidden_size, c.qkv_bias},
          {"self_attn.v_proj", kv, c.hidden_size, c.qkv_bias},
          {"self_attn.o_proj", c.hidden_size, q, c.output_bias},
          {"mlp.gate_proj", c.intermediate_size, c.hidden_size, c.mlp_bias},
          {"mlp.up_proj", c.intermediate_size, c.hidden_size, c.mlp_bias},
          {"mlp.down_proj", c.hidden_size, c.intermediate_size, c.mlp_bias}};
}

class Block {
 public:
  Block(Recorder& recorder, const DecoderConfig& config, const nn::Modules& modules, const DecoderOptions& options)
      : recorder_(recorder), config_(config), modules_(modules), options_(options) {}

  ValueId operator()(ValueId h, int64_t layer, const ops::RotaryTable& rotary) const {
    const std::string name = layer_name(layer);
    ValueId change = attention(norm(h, name + "input_layernorm"), layer, rotary);
    if (config_.post_norms) change = norm(change, name + "post_attention_layernorm");
    h = ops::add(recorder_, h, change);
    change = mlp(norm(h, name + (config_.post_norms ? "pre_feedforward_layernorm" : "post_attention_layernorm")), name);
    if (config_.post_norms) change = norm(change, name + "post_feedforward_layernorm");
    return ops::add(recorder_, h, change);
  }

  ValueId norm(ValueId x, const std::string& module) const {
    return ops::rms_norm(recorder_, x, nn::parameter(recorder_, modules_, module + ".weight"), config_.rms_norm_eps,
                         config_.norm_offset);
  }

 private:
  ValueId attention(ValueId x, int64_t layer, const ops::RotaryTable& rotary) const {
    const std::string name = layer_name(layer) + "self_attn.";
    ValueId q = nn::linear(recorder_, modules_, name + "q_proj", x);
    ValueId k = nn::linear(recorder_, modules_, name + "k_proj", x);
    const ValueId v = nn::linear(recorder_, modules_, name + "v_proj", x);
    if (config_.qk_norm) {
      q = norm(q, name + "q_norm");
      k = norm(k, name + "k_norm");
    }
    q = ops::rotary(recorder_, q, rotary, config_.num_attention_heads);
    k = ops::rotary(recorder_, k, rotary, config_.num_key_value_heads);
    const ops::AttentionShape shape{config_.num_attention_heads,
                                    config_.num_key_value_heads,
                                    config_.head_dim,
                                    config_.attention_scale,
                                    config_.windows[static_cast<size_t>(layer)],
                                    config_.attention_soft_cap};
    const ValueId out = options_.cache_capacity > 0
                            ? ops::cached_attention(recorder_, q, k, v, shape, static_cast<int32_t>(layer),
                                                    options_.cache_capacity)
                            : ops::attention(recorder_, q, k, v, shape);
    return nn::linear(recorder_, modules_, name + "o_proj", out);
  }

  ValueId mlp(ValueId x, const std::string& layer) const {
    const ValueId gate = nn::linear(recorder_, modules_, layer + "mlp.gate_proj", x);
    const ValueId up = nn::linear(recorder_, modules_, layer + "mlp.up_proj", x);
    return nn::linear(recorder_, modules_, layer + "mlp.down_proj", ops::gated(recorder_, gate, up, config_.activation));
  }

  Recorder& recorder_;
  const DecoderConfig& config_;
  const nn::Modules& modules_;
  const DecoderOptions& options_;
};

}  // namespace

std::vector<nn::ParameterSpec> decoder_parameters(const DecoderConfig& c) {
  const Init normal{Init::Kind::normal, c.initializer_range};
  const Init ones{c.norm_offset == 0 ? Init::Kind::ones : Init::Kind::zeros, 0};  // of norms, with the offset
  const Init zeros{Init::Kind::zeros, 0};
  std::vector<nn::ParameterSpec> specs;
  specs.push_back({"model.embed_tokens.weight", {c.vocab_size, c.hidden_size}, normal});
  for (int64_t layer = 0; layer < c.num_hidden_layers; ++layer) {
    const std::string name = layer_name(layer);
    const auto push_norms = [&](std::string_view before) {
      for (const NormShape& norm : block_norms(c)) {
        if (norm.before == before) specs.push_back({name + norm.module + ".weight", {norm.width}, ones});
      }
    };
    for (const LinearShape& linear : block_linears(c)) {
      push_norms(linear.module);
      specs.push_back({name + linear.module + ".weight", {linear.out, linear.in}, normal});
      if (linear.bias) specs.push_back({name + linear.module + ".bias", {linear.out}, zeros});
    }
    push_norms("");
  }
  specs.push_back({"model.norm.weight", {c.hidden_size}, ones});
  if (!c.tie_word_embeddings) specs.push_back({"lm_head.weight", {c.vocab_size, c.hidden_size}, normal});
  return specs;
}

std::vector<nn::LinearModule> decoder_linears(const DecoderConfig& c) {
  std::vector<nn::LinearModule> linears;
  for (int64_t layer = 0; layer < c.num_hidden_layers; ++layer) {
    for (const LinearShape& linear : block_linears(c)) {
      linears.push_back({layer_name(layer) + linear.module, linear.out, linear.in, false});
    }
  }
  return linears;
}

ValueId record_decoder(Recorder& recorder, const DecoderConfig& config, const nn::Modules& modules,
                       const DecoderOptions& options) {
  const ops::RotaryTable rotary = ops::rotary_table(recorder, config.rotary.frequencies(config.head_dim));
  const Block block(recorder, config, modules, options);
  ValueId h = ops::embedding(recorder, nn::parameter(recorder, modules, "model.embed_tokens.weight"), config.embedding_scale);
  for (int64_t layer = 0; layer < config.num_hidden_layers; ++layer) {
    if (options.recompute) recorder.begin_segment();
    h = block(h, layer, rotary);
    recorder.end_segment();
  }
  return block.norm(h, "model.norm");
}

ops::Head head_weight(Recorder& recorder, const DecoderConfig& config, const nn::Modules& modules) {
  return {nn::parameter(recorder, modules, config.tie_word_embeddings ? "model.embed_tokens.weight" : "lm_head.weight"),
          config.logit_soft_cap};
}

}  // namespace inlaid::models

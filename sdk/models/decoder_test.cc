// Gradients of the whole decoder against central differences in f64 on the reference kernels: every op, every option, with
// recomputation and without, adapters with dropout, documents packed together.
#include "sdk/models/decoder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "sdk/autograd/replay.h"
#include "sdk/ops/ops.h"
#include "sdk/tensor/random.h"

namespace inlaid::models {
namespace {

struct Case {
  std::string name;
  Json config;
  bool recompute = false;
  bool adapter = false;
  double dropout = 0;
  bool rslora = false;
  Json targets = "all-linear";
};

Json tiny(std::initializer_list<std::pair<std::string, Json>> changes) {
  Json json = {{"model_type", "llama"},      {"vocab_size", 11},          {"hidden_size", 8},
               {"intermediate_size", 12},    {"num_hidden_layers", 2},    {"num_attention_heads", 4},
               {"num_key_value_heads", 2},   {"rms_norm_eps", 1e-5},      {"rope_theta", 100.0},
               {"initializer_range", 0.3},   {"max_position_embeddings", 64}};
  for (const auto& [key, value] : changes) json[key] = value;
  return json;
}

Json qwen3() { return tiny({{"model_type", "qwen3"}, {"head_dim", 6}, {"attention_bias", true}}); }
Json phi3() {
  return tiny({{"model_type", "phi3"},
               {"head_dim", 8},
               {"partial_rotary_factor", 0.5},
               {"original_max_position_embeddings", 4},
               {"rope_scaling", {{"type", "longrope"}, {"short_factor", {1.0, 1.5}}, {"long_factor", {2.0, 3.0}}}}});
}
Json gemma2() {
  return tiny({{"model_type", "gemma2"}, {"head_dim", 4}, {"query_pre_attn_scalar", 3}, {"sliding_window", 2},
               {"attn_logit_softcapping", 0.7}, {"final_logit_softcapping", 1.5}});
}

// The decoder with its loss, in f64, on memory of its own.
class Harness {
 public:
  explicit Harness(const Case& c) : config_(DecoderConfig::parse(c.config, "test")) {
    for (const nn::ParameterSpec& spec : decoder_parameters(config_)) add(base_, spec);
    if (c.adapter) {
      nn::AdapterConfig adapter;
      adapter.r = 2;
      adapter.lora_alpha = 6;
      adapter.lora_dropout = c.dropout;
      adapter.use_rslora = c.rslora;
      adapter.target_modules = c.targets;
      if (c.targets == "all-linear") adapter.modules_to_save = {"norm"};
      layout_ = nn::lay_out(adapter, decoder_linears(config_), decoder_parameters(config_));
      for (const nn::ParameterSpec& spec : layout_.parameters) add(adapter_, spec);
    } else {
      for (const auto& parameter : base_.all()) trainable_.insert(parameter->spec.name);
    }
    const nn::Modules modules(base_, c.adapter ? &adapter_ : nullptr, c.adapter ? &layout_ : nullptr, trainable_, 7);
    autograd::Recorder recorder({kRows + 3, 4}, DType::f64, true);
    const autograd::ValueId hidden = record_decoder(recorder, config_, modules, {c.recompute, 0});
    const ops::Loss loss = ops::linear_cross_entropy(recorder, hidden, head_weight(recorder, config_, modules), 1.0);
    program_ = recorder.finish({loss.loss}, kernels::reference_kernels(), 1);
    activations_.resize(program_.activation_bytes + 64);
    workspace_.resize(program_.workspace_bytes + 64);
    for (const autograd::ParameterUse& use : program_.parameters) {
      nn::Parameter* parameter = c.adapter ? adapter_.find(use.name) : nullptr;
      if (parameter == nullptr) parameter = base_.find(use.name);
      values_.push_back({parameter->value.as<double>(), static_cast<size_t>(parameter->value.elements())});
      gradients_.emplace_back(use.trainable ? values_.back().size() : 0);
    }
  }

  const autograd::Program& program() const { return program_; }
  const std::vector<std::vector<double>>& gradients() const { return gradients_; }
  std::vector<std::span<double>>& values() { return values_; }

  // Sum of losses; with gradients also the backward pass.
  double run(bool backward) {
    std::fill(activations_.begin(), activations_.end(), std::byte{0xAB});  // nothing may rely on what was there
    const std::vector<int32_t> tokens = {1, 5, 3, 9, 2, 2, 10, 0, 4};
    const std::vector<int32_t> positions = {0, 1, 2, 3, 0, 1, 2, 3, 4};
    const std::vector<int64_t> keys = {5, 5, 5, 5, 8, 8, 8, 8, 8};
    const std::vector<int32_t> cu = {0, 4, 4, 9};  // an empty document in the middle
    const std::vector<int32_t> target_ids = {5, 9, 2, 10, 7};
    const std::vector<int32_t> target_rows = {0, 2, 4, 5, 8};
    const std::vector<int32_t> lengths = {4, 4, 4, 4, 5, 5, 5, 5, 5};
    autograd::Binding binding;
    binding.activations = activations_.data();
    binding.inputs = {tokens.data(), positions.data(), keys.data(), cu.data(), cu.data(), target_ids.data(),
                      target_rows.data(), lengths.data()};
    for (size_t i = 0; i < values_.size(); ++i) {
      binding.parameters.push_back(values_[i].data());
      std::fill(gradients_[i].begin(), gradients_[i].end(), 0.0);
      binding.gradients.push_back(gradients_[i].empty() ? nullptr : gradients_[i].data());
    }
    Device device = Device::cpu(kernels::reference_kernels(), kernels::serial_executor(), workspace_.data(), workspace_.size());
    autograd::Replay replay(program_, device, binding, {kRows, 5, 3, 0}, nullptr);
    replay.forward();
    const auto* loss =
        reinterpret_cast<const double*>(activations_.data() + program_.offset[static_cast<size_t>(program_.outputs[0])]);
    double sum = 0;
    for (int i = 0; i < 5; ++i) sum += loss[i];
    if (backward) replay.backward();
    return sum;
  }

 private:
  static constexpr int64_t kRows = 9;

  static void add(nn::ParameterSet& set, const nn::ParameterSpec& spec) {
    const std::shared_ptr<MemoryAccount> account = MemoryAccount::root("test", 0, default_allocator());
    nn::Parameter parameter{spec, Tensor(*account, Category::kWeights, DType::f64, spec.shape, false)};
    // Random everywhere, also where training would start from zeros or ones: a zero hides mistakes.
    std::vector<float> values(static_cast<size_t>(parameter.value.elements()));
    fill_normal(random_key(3, spec.name), spec.shape.size() == 1 ? 0.8 : 0.0, 0.35, values);
    std::copy(values.begin(), values.end(), parameter.value.as<double>());
    set.add(std::move(parameter));
  }

  DecoderConfig config_;
  nn::ParameterSet base_, adapter_;
  nn::AdapterLayout layout_;
  std::set<std::string> trainable_;
  autograd::Program program_;
  std::vector<std::byte> activations_, workspace_;
  std::vector<std::span<double>> values_;
  std::vector<std::vector<double>> gradients_;
};

class DecoderGradient : public testing::TestWithParam<Case> {};

TEST_P(DecoderGradient, EqualsCentralDifferences) {
  Harness harness(GetParam());
  harness.run(true);
  const std::vector<std::vector<double>> analytic = harness.gradients();
  constexpr double kStep = 1e-5;
  int64_t checked = 0;
  for (size_t p = 0; p < analytic.size(); ++p) {
    const std::string& name = harness.program().parameters[p].name;
    double largest = 0;
    for (double g : analytic[p]) largest = std::max(largest, std::abs(g));
    if (analytic[p].empty()) continue;
    EXPECT_GT(largest, 0) << name << " has no gradient at all";
    for (size_t i = 0; i < analytic[p].size(); i += 1 + analytic[p].size() / 7) {
      double& value = harness.values()[p][i];
      const double saved = value;
      value = saved + kStep;
      const double above = harness.run(false);
      value = saved - kStep;
      const double below = harness.run(false);
      value = saved;
      const double numeric = (above - below) / (2 * kStep);
      EXPECT_NEAR(analytic[p][i], numeric, 1e-6 * (1 + std::abs(numeric))) << name << "[" << i << "]";
      ++checked;
    }
  }
  EXPECT_GE(checked, 20);
}

INSTANTIATE_TEST_SUITE_P(
    Options, DecoderGradient,
    testing::Values(Case{"plain", tiny({})}, Case{"recompute", tiny({}), true},
                    Case{"tied", tiny({{"tie_word_embeddings", true}})},
                    Case{"biases", tiny({{"attention_bias", true}, {"mlp_bias", true}})},
                    Case{"multi_head", tiny({{"num_key_value_heads", 4}})},
                    Case{"wide_heads", tiny({{"head_dim", 6}})},
                    Case{"gelu", tiny({{"hidden_act", "gelu"}})}, Case{"gelu_tanh", tiny({{"hidden_act", "gelu_new"}})},
                    Case{"rope_linear", tiny({{"rope_scaling", {{"rope_type", "linear"}, {"factor", 3.0}}}})},
                    Case{"rope_dynamic", tiny({{"max_position_embeddings", 4},
                                               {"rope_scaling", {{"rope_type", "dynamic"}, {"factor", 3.0}}},
                                               {"head_dim", 6}})},
                    Case{"rope_yarn", tiny({{"rope_scaling", {{"rope_type", "yarn"}, {"factor", 3.0}}}}), true},
                    Case{"qwen2", tiny({{"model_type", "qwen2"}})},
                    Case{"window", tiny({{"model_type", "mistral"}, {"sliding_window", 2}})},
                    Case{"window_recompute", tiny({{"model_type", "mistral"}, {"sliding_window", 3}}), true},
                    Case{"qk_norm", qwen3()}, Case{"qk_norm_recompute", qwen3(), true},
                    Case{"qk_norm_lora", qwen3(), true, true, 0.3}, Case{"phi3", phi3()},
                    Case{"gemma2", gemma2()}, Case{"gemma2_recompute", gemma2(), true},
                    Case{"gemma2_lora", gemma2(), false, true},
                    Case{"lora", tiny({}), false, true}, Case{"lora_dropout", tiny({}), false, true, 0.3},
                    // Targets that leave some inputs of attention and of the gate without a gradient in the first layer.
                    Case{"lora_q", tiny({}), false, true, 0, false, Json::array({"q_proj"})},
                    Case{"lora_k", tiny({}), true, true, 0, false, Json::array({"k_proj"})},
                    Case{"lora_v_up", tiny({}), false, true, 0, false, Json::array({"v_proj", "up_proj"})},
                    Case{"lora_gate", tiny({}), false, true, 0, false, Json::array({"gate_proj"})},
                    Case{"lora_up", tiny({}), false, true, 0, false, Json::array({"up_proj"})},
                    Case{"lora_down", tiny({}), false, true, 0, false, Json::array({"down_proj"})},
                    Case{"lora_dropout_recompute", tiny({{"attention_bias", true}}), true, true, 0.3, true}),
    [](const auto& info) { return info.param.name; });

// Logits of every row of one text in f64: at once, or chunk by chunk through key/value caches.
class Text {
 public:
  explicit Text(const Json& config) : config_(DecoderConfig::parse(config, "test")) {
    for (const nn::ParameterSpec& spec : decoder_parameters(config_)) {
      std::vector<float> values(static_cast<size_t>(element_count(spec.shape)));
      fill_normal(random_key(3, spec.name), spec.shape.size() == 1 ? 0.8 : 0.0, 0.35, values);
      nn::Parameter parameter{spec, Tensor(*account_, Category::kWeights, DType::f64, spec.shape, false)};
      std::copy(values.begin(), values.end(), parameter.value.as<double>());
      base_.add(std::move(parameter));
    }
  }

  std::vector<double> logits(const std::vector<int32_t>& chunks) {
    const bool cached = chunks.size() > 1;
    const int64_t width = config_.num_key_value_heads * config_.head_dim;
    std::vector<std::vector<double>> caches(static_cast<size_t>(2 * config_.num_hidden_layers),
                                            std::vector<double>(static_cast<size_t>(kRows * width), NAN));
    std::vector<double> all;
    int32_t past = 0;
    for (const int32_t rows : chunks) {
      const std::set<std::string> trainable;
      const nn::Modules modules(base_, nullptr, nullptr, trainable, 7);
      autograd::Recorder recorder({kRows, 1}, DType::f64, false);
      const autograd::ValueId hidden = record_decoder(recorder, config_, modules, {false, cached ? kRows : 0});
      const autograd::ValueId out = ops::target_logits(recorder, hidden, head_weight(recorder, config_, modules));
      const autograd::Program program = recorder.finish({out}, kernels::reference_kernels(), 1);
      std::vector<std::byte> activations(program.activation_bytes + 64), workspace(program.workspace_bytes + 64);
      std::vector<int32_t> positions, targets, lengths(static_cast<size_t>(rows), kRows);
      for (int32_t row = 0; row < rows; ++row) {
        positions.push_back(past + row);
        targets.push_back(row);
      }
      const std::vector<int32_t> cu = {0, rows}, cu_keys = {0, past + rows};
      autograd::Binding binding;
      binding.activations = activations.data();
      binding.inputs = {tokens_.data() + past, positions.data(), nullptr, cu.data(), cu_keys.data(), nullptr, targets.data(),
                        lengths.data()};
      for (auto& cache : caches) binding.caches.push_back(cache.data());
      for (const autograd::ParameterUse& use : program.parameters) {
        binding.parameters.push_back(base_.find(use.name)->value.data());
        binding.gradients.push_back(nullptr);
      }
      Device device = Device::cpu(kernels::reference_kernels(), kernels::serial_executor(), workspace.data(), workspace.size());
      autograd::Replay(program, device, binding, {rows, rows, 1, past}, nullptr).forward();
      const auto* values = reinterpret_cast<const double*>(activations.data() + program.offset[static_cast<size_t>(out)]);
      all.insert(all.end(), values, values + rows * config_.vocab_size);
      past += rows;
    }
    return all;
  }

 private:
  static constexpr int32_t kRows = 9;
  const std::vector<int32_t> tokens_ = {1, 5, 3, 9, 2, 2, 10, 0, 4};
  const std::shared_ptr<MemoryAccount> account_ = MemoryAccount::root("test", 0, default_allocator());
  DecoderConfig config_;
  nn::ParameterSet base_;
};

// Where the length of the whole text is known from the start, as that of a prompt is, a text read in pieces is the text read at
// once: with windows that reach into earlier pieces, and where the length decides about the rotation.
TEST(DecoderCache, PiecesOfATextAreTheWhole) {
  const Json dynamic = {{"rope_type", "dynamic"}, {"factor", 3.0}};
  for (const Json& config : {tiny({}), tiny({{"model_type", "mistral"}, {"sliding_window", 3}}), qwen3(), phi3(), gemma2(),
                             tiny({{"max_position_embeddings", 4}, {"rope_scaling", dynamic}, {"head_dim", 6}})}) {
    SCOPED_TRACE(to_text(config));
    Text text(config);
    const std::vector<double> whole = text.logits({9});
    for (const std::vector<int32_t>& chunks : {std::vector<int32_t>{5, 4}, {2, 5, 1, 1}, {1, 1, 1, 1, 1, 1, 1, 1, 1}}) {
      const std::vector<double> pieces = text.logits(chunks);
      ASSERT_EQ(pieces.size(), whole.size());
      for (size_t i = 0; i < whole.size(); ++i) ASSERT_NEAR(pieces[i], whole[i], 1e-10) << i;
    }
  }
}

TEST(DecoderProgram, RecomputationGivesTheSameBitsInLessMemory) {
  Json config = tiny({{"num_hidden_layers", 6}});
  Harness kept({"kept", config}), again({"again", config, true});
  EXPECT_EQ(kept.run(true), again.run(true));
  for (size_t p = 0; p < kept.gradients().size(); ++p) EXPECT_EQ(kept.gradients()[p], again.gradients()[p]);
  EXPECT_LT(again.program().activation_bytes, kept.program().activation_bytes * 2 / 3);
}

TEST(DecoderProgram, FrozenParametersHaveNoGradientAndSaveNoInput) {
  const Harness lora({"lora", tiny({}), false, true});
  for (const autograd::Instruction& instruction : lora.program().backward) {
    if (instruction.phase != autograd::Phase::backward_weight) continue;
    const autograd::Node& node = lora.program().nodes[static_cast<size_t>(instruction.node)];
    bool any = false;
    for (autograd::ValueId id : node.inputs) any |= id >= 0 && lora.program().values[static_cast<size_t>(id)].requires_grad;
    EXPECT_TRUE(any) << node.op->name();
    EXPECT_STRNE(node.op->name(), "linear");
    EXPECT_STRNE(node.op->name(), "embedding");
  }
  const Harness full({"full", tiny({})});
  EXPECT_NE(full.program().backward.size(), lora.program().backward.size());
}

}  // namespace
}  // namespace inlaid::models

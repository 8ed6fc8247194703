// Configurations that are refused, each naming the key, and rules that only a missing key shows.
#include "sdk/models/decoder_config.h"

#include <gtest/gtest.h>

#include <cmath>

#include "sdk/base/error.h"

namespace inlaid::models {
namespace {

Json config_of(const std::string& family, const std::string& changes = "{}") {
  Json json = {{"model_type", family},      {"vocab_size", 11},         {"hidden_size", 16},       {"intermediate_size", 12},
               {"num_hidden_layers", 4},    {"num_attention_heads", 2}, {"num_key_value_heads", 1}, {"head_dim", 8},
               {"max_position_embeddings", 64}};
  json.update(parse_json(changes, "changes"));
  return json;
}

DecoderConfig parsed(const std::string& family, const std::string& changes = "{}") {
  return DecoderConfig::parse(config_of(family, changes), "config");
}

struct Refused {
  const char* family;
  const char* changes;
  Code code;
  const char* text;
};

TEST(DecoderConfig, RefusalsNameTheKey) {
  const Code bad = Code::kInvalidArgument, unknown = Code::kUnimplemented;
  for (const Refused& r : std::initializer_list<Refused>{
           {"gpt2", "{}", unknown, "gpt2"},
           {"llama", R"({"attn_logit_softcapping": 30.0})", unknown, "attn_logit_softcapping"},
           {"llama", R"({"final_logit_softcapping": 30.0})", unknown, "final_logit_softcapping"},
           {"llama", R"({"sliding_window": 4})", unknown, "sliding_window"},
           {"llama", R"({"original_max_position_embeddings": 4})", unknown, "original_max_position_embeddings"},
           {"llama", R"({"num_hidden_layers": 2000000})", bad, "num_hidden_layers"},
           {"llama", R"({"layer_types": "full_attention"})", bad, "layer_types"},
           {"mistral", R"({"sliding_window": 0})", bad, "sliding_window"},
           {"mistral", R"({"sliding_window": -1})", bad, "sliding_window"},
           {"mistral", R"({"sliding_window": "4"})", bad, "sliding_window"},
           {"mistral", R"({"sliding_window": 4, "use_sliding_window": true})", unknown, "use_sliding_window"},
           {"qwen2", R"({"use_sliding_window": true, "sliding_window": 4, "layer_types": ["full_attention"]})", bad, "layer_types"},
           {"qwen3", R"({"use_sliding_window": true, "layer_types": ["a", "a", "a", "a"]})", unknown, "layer_types"},
           {"qwen3", R"({"layer_types": ["sliding_attention", "a", "a", "a"]})", bad, "sliding_window"},
           {"gemma2", R"({"attn_logit_softcapping": 0})", bad, "attn_logit_softcapping"},
           {"gemma2", R"({"final_logit_softcapping": -1.0})", bad, "final_logit_softcapping"},
           {"gemma2", R"({"query_pre_attn_scalar": 0})", bad, "query_pre_attn_scalar"},
           {"gemma2", R"({"sliding_window": null})", bad, "sliding_window"},
           {"phi3", R"({"partial_rotary_factor": 0.4})", bad, "partial_rotary_factor"},
           {"phi3", R"({"partial_rotary_factor": 1.5})", bad, "partial_rotary_factor"},
           {"phi3", R"({"rope_scaling": {"type": "linear", "factor": 2.0}})", unknown, "linear"},
           {"llama", R"({"rope_scaling": []})", bad, "rope_scaling"},
           {"llama", R"({"rope_scaling": {"rope_type": "yarn"}})", bad, "factor"},
           {"llama", R"({"rope_scaling": {"rope_type": "yarn", "factor": 2, "beta_fast": -1}})", bad, "beta_fast"},
           {"llama", R"({"rope_scaling": {"rope_type": "yarn", "factor": 2, "truncate": 1}})", bad, "truncate"},
           {"llama", R"({"rope_scaling": {"rope_type": "linear", "factor": 2, "mscale": 1}})", unknown, "mscale"},
           {"llama", R"({"rope_scaling": {"rope_type": "dynamic"}})", bad, "factor"},
           {"llama", R"({"rope_scaling": {"rope_type": "dynamic", "factor": 0.5}})", bad, "factor"},
           {"llama", R"({"head_dim": 2, "rope_scaling": {"rope_type": "dynamic", "factor": 2}})", bad, "dynamic"},
           {"llama", R"({"rope_scaling": {"rope_type": "longrope", "short_factor": [1, 1, 1, 1]}})", bad, "long_factor"},
           {"llama", R"({"rope_scaling": {"rope_type": "longrope", "short_factor": [1, 1], "long_factor": [1, 1]}})", bad,
            "short_factor must be a list of 4 numbers"},
           {"llama", R"({"rope_scaling": {"rope_type": "longrope", "short_factor": [1, 1, 1, 0], "long_factor": [1, 1, 1, 1]}})",
            bad, "short_factor"},
           {"llama", R"({"rope_scaling": {"rope_type": "longrope", "short_factor": [1, 1, 1, "1"], "long_factor": [1]}})", bad,
            "short_factor"},
       }) {
    SCOPED_TRACE(std::string(r.family) + " " + r.changes);
    try {
      parsed(r.family, r.changes);
      ADD_FAILURE() << "was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), r.code) << error.message();
      EXPECT_NE(error.message().find(r.text), std::string::npos) << error.message();
    }
  }
}

using Windows = std::vector<int64_t>;

TEST(DecoderConfig, WindowsOfTheLayers) {
  EXPECT_EQ(parsed("llama").windows, Windows(4, 0));
  EXPECT_EQ(parsed("mistral").windows, Windows(4, 4096));  // the default of its class
  EXPECT_EQ(parsed("mistral", R"({"sliding_window": null})").windows, Windows(4, 0));
  EXPECT_EQ(parsed("phi3").windows, Windows(4, 0));
  EXPECT_EQ(parsed("phi3", R"({"sliding_window": 5})").windows, Windows(4, 5));
  EXPECT_EQ(parsed("qwen2", R"({"sliding_window": 5, "max_window_layers": 0})").windows, Windows(4, 0));
  EXPECT_EQ(parsed("qwen2", R"({"sliding_window": 5, "max_window_layers": 3, "use_sliding_window": true})").windows,
            (Windows{0, 0, 0, 5}));
  EXPECT_EQ(parsed("qwen3", R"({"sliding_window": 5, "use_sliding_window": true})").windows, Windows(4, 0));  // from layer 28 on
  EXPECT_EQ(parsed("gemma2", R"({"sliding_window": 5})").windows, (Windows{5, 0, 5, 0}));
}

TEST(DecoderConfig, DefaultsOfTheFamilies) {
  Json json = config_of("qwen3");
  json.erase("head_dim");
  EXPECT_EQ(DecoderConfig::parse(json, "config").head_dim, 128);
  json["model_type"] = "gemma2";
  const DecoderConfig gemma = DecoderConfig::parse(json, "config");
  EXPECT_EQ(gemma.head_dim, 256);
  EXPECT_TRUE(gemma.tie_word_embeddings);
  EXPECT_EQ(gemma.attention_soft_cap, 50);
  EXPECT_EQ(gemma.logit_soft_cap, 30);
  EXPECT_EQ(gemma.attention_scale, 1.0 / 16);
  EXPECT_EQ(gemma.embedding_scale, 4);
  json["model_type"] = "phi3";
  json.erase("num_key_value_heads");
  const DecoderConfig phi3 = DecoderConfig::parse(json, "config");
  EXPECT_EQ(phi3.head_dim, 8);
  EXPECT_EQ(phi3.num_key_value_heads, 2);
  EXPECT_EQ(phi3.rms_norm_eps, 1e-5);
  json["model_type"] = "mistral";
  EXPECT_THROW(DecoderConfig::parse(json, "config"), Error);  // 8 there, which is seldom meant
}

// Early phi3 files call longrope "su".
TEST(DecoderConfig, EarlyNameOfLongrope) {
  const std::string lists = R"("short_factor": [1, 2], "long_factor": [3, 4]}, "partial_rotary_factor": 0.5,)"
                            R"("original_max_position_embeddings": 16})";
  const RotaryConfig early = parsed("phi3", R"({"rope_scaling": {"type": "su", )" + lists).rotary;
  EXPECT_EQ(early.kind, RotaryConfig::Kind::longrope);
  EXPECT_EQ(early.original_context, 16);
  EXPECT_EQ(early.channels(8), 4);
  EXPECT_EQ(early.attention_factor, std::sqrt(1 + std::log(4.0) / std::log(16.0)));
  const ops::RotaryFrequencies f = early.frequencies(8);
  ASSERT_EQ(f.inv_freq.size(), 2u);
  EXPECT_NEAR(f.inv_freq[1], 0.005, 1e-15);
  EXPECT_NEAR(f.long_inv_freq[1], 0.0025, 1e-15);
  EXPECT_EQ(f.long_after, 16);
}

}  // namespace
}  // namespace inlaid::models

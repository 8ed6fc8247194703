#include <algorithm>
#include <set>

#include "sdk/formats/llama_geometry.h"
#include "sdk/formats/llama_names.h"
#include "sdk/formats/testing.h"

namespace inlaid::formats {
namespace {

TEST(LlamaNames, EveryNameTranslatesThereAndBack) {
  const std::vector<std::string> names = llama_tensor_names({12, false, true, true, false, true});
  EXPECT_EQ(names.size(), 3u + 12 * (9 + 4 + 3 + 2));
  std::set<std::string> distinct;
  for (const std::string& name : names) {
    const auto stored = gguf_name(name);
    ASSERT_TRUE(stored) << name;
    const auto back = hugging_face_name(stored->name);
    ASSERT_TRUE(back) << stored->name;
    EXPECT_EQ(back->name, name);
    distinct.insert(stored->name);
  }
  EXPECT_EQ(distinct.size(), names.size());
}

TEST(LlamaNames, KnownPairs) {
  EXPECT_EQ(hugging_face_name("blk.11.ffn_down.weight")->name, "model.layers.11.mlp.down_proj.weight");
  EXPECT_EQ(gguf_name("model.layers.0.post_attention_layernorm.weight")->name, "blk.0.ffn_norm.weight");
  EXPECT_EQ(hugging_face_name("blk.3.attn_k.bias")->rows, RowOrder::kKeyHeads);
  EXPECT_EQ(hugging_face_name("blk.3.attn_v.weight")->rows, RowOrder::kSame);
  for (const char* unknown :
       {"blk..attn_q.weight", "blk.01.attn_q.weight", "blk.x.attn_q.weight", "blk.1.attn_q",
        "blk.1234567.attn_q.weight", "blk.1.attn_qkv.weight", "", "output"}) {
    EXPECT_FALSE(hugging_face_name(unknown)) << unknown;
  }
}

TEST(LlamaNames, RowsOfAHead) {
  // D = 6: GGUF rows are 0, 3, 1, 4, 2, 5 of transformers; the second head follows.
  const std::vector<int64_t> wanted = {0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11};
  for (int64_t row = 0; row < 12; ++row) EXPECT_EQ(half_split_row(row, 6), wanted[static_cast<size_t>(row)]);
}

TEST(LlamaGeometry, DefaultsAndBothSpellingsOfRope) {
  Json config = tiny_config();
  config.erase("head_dim");
  config["num_key_value_heads"] = nullptr;
  LlamaGeometry g = parse_llama_geometry(config, "c");
  EXPECT_EQ(g.head_size, 16);
  EXPECT_EQ(g.kv_heads, 2);
  EXPECT_EQ(g.rope.kind, Rope::Kind::kDefault);

  const Json llama3 =
      parse_json(R"({"rope_type":"llama3","factor":8.0,"low_freq_factor":1.0,"high_freq_factor":4.0,
                                     "original_max_position_embeddings":32})",
                 "t");
  config["rope_theta"] = 500000.0;
  config["rope_scaling"] = llama3;
  const Rope four = parse_rope(config, "c");
  Json five = config;
  five.erase("rope_theta");
  five.erase("rope_scaling");
  five["rope_parameters"] = llama3;
  five["rope_parameters"]["rope_theta"] = 500000.0;
  const Rope other = parse_rope(five, "c");
  EXPECT_EQ(four.kind, Rope::Kind::kLlama3);
  EXPECT_EQ(other.kind, four.kind);
  EXPECT_EQ(other.theta, four.theta);
  EXPECT_EQ(other.original_context, 32);
  EXPECT_EQ(with_rope_of_version_4(five)["rope_scaling"], config["rope_scaling"]);
  EXPECT_EQ(with_rope_of_version_4(five)["rope_theta"], 500000.0);
  EXPECT_FALSE(with_rope_of_version_4(five).contains("rope_parameters"));

  config["rope_scaling"] = Json{{"type", "dynamic"}, {"factor", 2.0}};
  EXPECT_FAILS(Code::kUnimplemented, "dynamic", parse_rope(config, "c"));
  config["rope_scaling"] = Json{{"type", "yarn"}, {"factor", 2.0}};
  EXPECT_EQ(parse_rope(config, "c").original_context, 64);
  for (const char* key : {"attention_factor", "mscale", "truncate"}) {
    Json other = config;
    other["rope_scaling"][key] = std::string(key) == "truncate" ? Json(false) : Json(1.25);
    EXPECT_FAILS(Code::kUnimplemented, key, parse_rope(other, "c"));
  }
  five["rope_parameters"] = Json{{"full_attention", {{"rope_type", "default"}}}};
  EXPECT_FAILS(Code::kUnimplemented, "full_attention", parse_rope(five, "c"));
}

TEST(LlamaGeometry, PartialRotationAndPhi3InTheSpellingOfVersion4) {
  const Json five = parse_json(R"({"model_type":"phi3","rope_parameters":{"rope_type":"longrope","rope_theta":5.0,
      "partial_rotary_factor":0.5,"short_factor":[1.0],"long_factor":[2.0],"original_max_position_embeddings":8}})",
                               "t");
  EXPECT_EQ(with_rope_of_version_4(five), parse_json(R"({"model_type":"phi3","rope_theta":5.0,"partial_rotary_factor":0.5,
      "rope_scaling":{"short_factor":[1.0],"long_factor":[2.0],"type":"longrope"}})",
                                                     "t"));
}

TEST(LlamaGeometry, Qwen) {
  Json config = tiny_config();
  config["model_type"] = "qwen3";
  config["attention_bias"] = false;
  const LlamaGeometry three = parse_llama_geometry(config, "c");
  EXPECT_EQ(three.architecture, "qwen3");
  EXPECT_EQ(three.shape_of("model.layers.0.self_attn.k_norm.weight"), Shape{8});
  EXPECT_EQ(three.shape_of("model.norm.weight"), Shape{32});
  EXPECT_EQ(three.rows_of(RowOrder::kQueryHeads), RowOrder::kSame);
  config["model_type"] = "qwen2";
  const std::vector<std::string> names = llama_tensor_names(parse_llama_geometry(config, "c").parts);
  EXPECT_TRUE(std::count(names.begin(), names.end(), "model.layers.0.self_attn.v_proj.bias"));
  EXPECT_FALSE(std::count(names.begin(), names.end(), "model.layers.0.self_attn.o_proj.bias"));
  config["model_type"] = "mistral";
  EXPECT_EQ(parse_llama_geometry(config, "c").architecture, "llama");
}

TEST(LlamaGeometry, ContradictionsAreNamed) {
  const auto refused = [](const char* key, Json value, const char* text) {
    Json config = tiny_config();
    config[key] = std::move(value);
    EXPECT_FAILS(Code::kInvalidArgument, text, parse_llama_geometry(config, "c"));
  };
  refused("hidden_size", 0, "hidden_size");
  refused("hidden_size", "32", "hidden_size");
  refused("num_hidden_layers", int64_t{1} << 40, "num_hidden_layers");
  refused("head_dim", 7, "even");
  refused("num_key_value_heads", 3, "num_key_value_heads");
  refused("rms_norm_eps", -1.0, "rms_norm_eps");
  refused("rope_theta", 0.0, "rope_theta");
  refused("rope_scaling", Json::array(), "object");
}

// Against values that llama.cpp's formula gives for Llama 3.2 1B (head size 64), computed by hand in f64.
TEST(LlamaGeometry, FactorsOfLlama3) {
  Rope rope;
  rope.kind = Rope::Kind::kLlama3;
  rope.theta = 500000.0;
  rope.factor = 32.0;
  const std::vector<float> factors = llama3_factors(rope, 64);
  ASSERT_EQ(factors.size(), 32u);
  EXPECT_EQ(factors[0], 1.0f);
  EXPECT_EQ(factors[14], 1.0f);  // wavelength 1956 < 8192 / 4
  EXPECT_GT(factors[15], 1.0f);  // 2948: on the ramp
  EXPECT_LT(factors[17], 32.0f);
  EXPECT_EQ(factors[18], 32.0f);  // 10089 > 8192
  EXPECT_EQ(factors[31], 32.0f);
  EXPECT_NEAR(factors[16], 1 / ((1 - 0.28128260516) / 32 + 0.28128260516), 1e-4);
}

}  // namespace
}  // namespace inlaid::formats

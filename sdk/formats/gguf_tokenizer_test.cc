#include "sdk/formats/gguf_tokenizer.h"

#include "sdk/base/testing/memory_file_system.h"
#include "sdk/formats/pre_tokenizers.h"
#include "sdk/formats/testing.h"

namespace inlaid::formats {
namespace {

using testing::MemoryFileSystem;

// What comes back of a model's tokenizer from a GGUF file.
ModelFiles through_gguf(const ModelFiles& model) {
  MemoryFileSystem fs;
  write_gguf(fs, "/m.gguf", model, tiny_tensors(model.config, DType::f16));
  return open_model(fs, "/m.gguf");
}

// Merges as text, whichever of the two spellings.
Json with_merges_as_text(Json tokenizer) {
  for (Json& merge : tokenizer["model"]["merges"]) {
    if (merge.is_array()) merge = merge[0].get<std::string>() + " " + merge[1].get<std::string>();
  }
  return tokenizer;
}

TEST(GgufTokenizer, TinyRoundTrip) {
  const ModelFiles model = tiny_model();
  const ModelFiles read = through_gguf(model);
  EXPECT_EQ(read.tokenizer_json, model.tokenizer_json);
  EXPECT_EQ(read.chat_template, model.chat_template);
  EXPECT_EQ(read.tokenizer_config["bos_token"], "<s>");
  EXPECT_EQ(read.tokenizer_config["eos_token"], "a");
  EXPECT_EQ(read.tokenizer_config["pad_token"], "<s>");
  EXPECT_FALSE(read.tokenizer_config.contains("unk_token"));
  EXPECT_EQ(read.tokenizer_config["add_bos_token"], false);
  EXPECT_EQ(read.tokenizer_config["added_tokens_decoder"]["9"]["content"], "<tool>");
  EXPECT_EQ(read.tokenizer_config["added_tokens_decoder"]["9"]["special"], false);
  EXPECT_EQ(read.tokenizer_config["added_tokens_decoder"]["0"]["special"], true);
  EXPECT_EQ(read.generation_config["bos_token_id"], 0);
  EXPECT_EQ(read.generation_config["eos_token_id"], (Json{1, 2}));
}

// tokenizer.json files that the library tokenizers wrote come back with the same splitting, vocabulary and
// merges.
TEST(GgufTokenizer, GoldenTokenizersRoundTrip) {
  for (const char* name : {"gpt-2", "smollm", "llama-bpe", "qwen2"}) {
    ModelFiles model = tiny_model();
    model.config["vocab_size"] = 320;
    const std::string path = golden(std::string("tokenizer_") + name + ".json");
    model.tokenizer_json = read_text(posix_file_system(), path);
    model.tokenizer_config = Json{{"bos_token", "<|im_start|>"}, {"eos_token", "<|im_end|>"}};
    const Json wanted = with_merges_as_text(parse_json(model.tokenizer_json, path));
    const Json read = with_merges_as_text(parse_json(through_gguf(model).tokenizer_json, "read"));
    for (const char* part : {"added_tokens", "normalizer", "post_processor", "decoder", "model"}) {
      EXPECT_EQ(read[part], wanted[part]) << name << " " << part;
    }
    const auto pre =
        pre_tokenizer_like(wanted["normalizer"], wanted["pre_tokenizer"], wanted["model"]["ignore_merges"]);
    ASSERT_TRUE(pre) << name;
    EXPECT_EQ(pre->name, name);
    EXPECT_EQ(read["pre_tokenizer"], pre->pre_tokenizer);
  }
}

TEST(GgufTokenizer, BosAndEosOfTheTemplate) {
  for (bool bos : {false, true}) {
    for (bool eos : {false, true}) {
      ModelFiles model = tiny_model();
      Json tokenizer = parse_json(model.tokenizer_json, "t");
      Json single = Json::array();
      if (bos) single.push_back(Json{{"SpecialToken", {{"id", "<s>"}, {"type_id", 0}}}});
      single.push_back(Json{{"Sequence", {{"id", "A"}, {"type_id", 0}}}});
      if (eos) single.push_back(Json{{"SpecialToken", {{"id", "a"}, {"type_id", 0}}}});
      const Json byte_level{{"type", "ByteLevel"}, {"trim_offsets", false}};
      const Json processor{{"type", "TemplateProcessing"}, {"single", single}};
      tokenizer["post_processor"] =
          Json{{"type", "Sequence"}, {"processors", Json::array({byte_level, processor})}};
      model.tokenizer_json = to_text(tokenizer);
      const ModelFiles read = through_gguf(model);
      EXPECT_EQ(read.tokenizer_config["add_bos_token"], bos);
      EXPECT_EQ(read.tokenizer_config["add_eos_token"], eos);
      const Json back = parse_json(read.tokenizer_json, "back")["post_processor"];
      if (!bos && !eos) {
        EXPECT_TRUE(back.is_null());
        continue;
      }
      EXPECT_EQ(back["single"], single);
      EXPECT_EQ(back["pair"].size(), 2 * single.size());
      EXPECT_EQ(back["special_tokens"].contains("<s>"), bos);
      if (eos) {
        EXPECT_EQ(back["special_tokens"]["a"]["ids"], Json::array({1}));
      }
    }
  }
}

// Rows of the embedding beyond the tokenizer become unused tokens, and go away again.
TEST(GgufTokenizer, PaddingTokens) {
  MemoryFileSystem fs;
  const ModelFiles model = tiny_model();
  write_gguf(fs, "/m.gguf", model, tiny_tensors(model.config, DType::f16));
  const GgufFile file(fs, "/m.gguf");
  EXPECT_EQ(file.texts("tokenizer.ggml.tokens").back(), "[PAD11]");
  EXPECT_EQ(file.texts("tokenizer.ggml.tokens").size(), 12u);
  const std::vector<int64_t> types = {3, 1, 1, 1, 1, 1, 1, 1, 1, 4, 5, 5};
  EXPECT_EQ(file.integers("tokenizer.ggml.token_type"), types);
}

TEST(GgufTokenizer, RefusesWhatGgufCannotSay) {
  const auto refused = [](const std::string& pointer, Json value, Code code, const char* text) {
    ModelFiles model = tiny_model();
    Json tokenizer = parse_json(model.tokenizer_json, "t");
    tokenizer[Json::json_pointer(pointer)] = std::move(value);
    model.tokenizer_json = to_text(tokenizer);
    EXPECT_FAILS(code, text, through_gguf(model));
  };
  refused("/model/type", "WordLevel", Code::kUnimplemented,
          "'WordLevel'; supported are BPE, Unigram and WordPiece");
  // The splitting of byte-level BPE around other models.
  refused("/model/type", "WordPiece", Code::kUnimplemented, "BERT's normalizer");
  refused("/model/byte_fallback", true, Code::kUnimplemented, "its pre_tokenizer has the part");
  refused("/model/ignore_merges", true, Code::kUnimplemented, "none of the known kinds");
  refused("/model/end_of_word_suffix", "</w>", Code::kUnimplemented, "end_of_word_suffix");
  refused("/normalizer", Json{{"type", "Lowercase"}}, Code::kUnimplemented, "none of the known kinds");
  refused("/pre_tokenizer/add_prefix_space", true, Code::kUnimplemented, "none of the known kinds");
  refused("/pre_tokenizer/use_regex", 3, Code::kUnimplemented, "none of the known kinds");
  refused("/post_processor", Json{{"type", "BertProcessing"}}, Code::kUnimplemented, "BertProcessing");
  refused("/added_tokens/0/lstrip", true, Code::kUnimplemented, "lstrip");
  refused("/added_tokens/0/id", 12, Code::kInvalidArgument, "12 embeddings");
  refused("/added_tokens/0/id", 3, Code::kInvalidArgument, "both 'c' and '<s>'");
  refused("/model/vocab/a", "1", Code::kInvalidArgument, "'a' must be an integer");
  refused("/model/vocab", Json::array(), Code::kInvalidArgument, "model.vocab");
  refused("/model/merges/0", Json{"a b", "c"}, Code::kUnimplemented, "space");
  refused("/model/merges/0", 5, Code::kInvalidArgument, "merge 0");
}

// Tokenizers of the other kinds, with one thing changed.
TEST(GgufTokenizer, RefusesPiecesThatGgufCannotSay) {
  const auto refused = [](const char* name, const std::string& pointer, Json value, Code code,
                          const char* text) {
    SCOPED_TRACE(std::string(name) + " " + pointer + " " + text);
    ModelFiles model = tiny_model();
    model.config["vocab_size"] = 720;
    const std::string path = golden(std::string("../text/tokenizers/") + name + ".json");
    Json tokenizer = parse_json(read_text(posix_file_system(), path), path);
    tokenizer["post_processor"] = nullptr;
    if (!pointer.empty()) tokenizer[Json::json_pointer(pointer)] = std::move(value);
    model.tokenizer_json = to_text(tokenizer);
    model.tokenizer_config = Json{{"bos_token", "<s>"}, {"eos_token", "</s>"}};
    EXPECT_FAILS(code, text, through_gguf(model));
  };
  refused("llama", "", nullptr, Code::kOk, "");
  refused("t5", "", nullptr, Code::kOk, "");
  refused("unigram_bytes", "", nullptr, Code::kOk, "");
  refused("word_piece", "", nullptr, Code::kOk, "");
  refused("byte_fallback", "", nullptr, Code::kOk, "");
  // A merge that is missing: llama.cpp would join the two pieces all the same.
  refused("llama", "/model/merges", Json::array(), Code::kUnimplemented, "are not joined");
  refused("llama", "/model/merges/0", Json{"zz", "q"}, Code::kInvalidArgument, "merge 0");
  refused("llama", "/normalizer", Json{{"type", "Lowercase"}}, Code::kUnimplemented, "Lowercase");
  refused("llama", "/pre_tokenizer/split", true, Code::kUnimplemented, "Metaspace");
  refused("albert", "", nullptr, Code::kUnimplemented, "its normalizer has the part");
  refused("unigram", "", nullptr, Code::kUnimplemented, "Nmt");
  refused("unigram_bytes", "/pre_tokenizer/pretokenizers/0/pattern", Json{{"Regex", "a+"}},
          Code::kUnimplemented, "regular expression a+");
  refused("t5", "/normalizer/precompiled_charsmap", "?", Code::kInvalidArgument, "base64");
  refused("t5", "/model/vocab/3", "x", Code::kInvalidArgument, "entry 3 of model.vocab");
  refused("word_piece", "/normalizer/clean_text", false, Code::kUnimplemented, "BERT's normalizer");
  refused("word_piece", "/model/continuing_subword_prefix", "@@", Code::kUnimplemented, "\"##\"");
  refused("word_piece", "/post_processor", Json{{"type", "BertProcessing"}, {"cls", 1}, {"sep", 2}},
          Code::kInvalidArgument, "BertProcessing");
  const Json item{{"SpecialToken", {{"id", "<|end|>"}, {"type_id", 0}}}};
  const Json text{{"Sequence", {{"id", "A"}, {"type_id", 0}}}};
  const auto around = [](std::initializer_list<Json> items) {
    return Json{{"type", "TemplateProcessing"}, {"single", Json(items)}};
  };
  refused("llama", "/post_processor", around({item, text}), Code::kUnimplemented,
          "'<|end|>', which is not its BOS");
  refused("llama", "/post_processor", around({text, item}), Code::kUnimplemented,
          "'<|end|>', which is not its EOS");
  refused("llama", "/post_processor", around({item, item, text}), Code::kUnimplemented,
          "several special tokens");
}

TEST(PreTokenizers, SpellingsThatMeanTheSame) {
  const Json plain{{"type", "ByteLevel"}, {"add_prefix_space", false}};
  const Json wrapped{{"type", "Sequence"}, {"pretokenizers", Json::array({plain})}};
  ASSERT_TRUE(pre_tokenizer_like(nullptr, plain, false));
  EXPECT_EQ(pre_tokenizer_like(nullptr, plain, false)->name, "gpt-2");
  EXPECT_EQ(pre_tokenizer_like(nullptr, wrapped, false)->name, "gpt-2");
  EXPECT_FALSE(pre_tokenizer_like(nullptr, nullptr, false));
  for (const char* name : {"gpt-2", "smollm", "default", "llama-bpe", "qwen2"}) {
    const auto entry = pre_tokenizer_named(name);
    ASSERT_TRUE(entry) << name;
    EXPECT_EQ(pre_tokenizer_like(entry->normalizer, entry->pre_tokenizer, entry->ignore_merges)->name, name);
  }
}

}  // namespace
}  // namespace inlaid::formats

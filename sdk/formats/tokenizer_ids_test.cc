// Ids and texts of tokenizers that come from a tokenizer.model or from GGUF metadata, against those of
// transformers (tests/golden/formats/tokenizers/make_tokenizers.py), and through an export.
#include "sdk/base/testing/memory_file_system.h"
#include "sdk/formats/gguf_tokenizer.h"
#include "sdk/formats/hugging_face.h"
#include "sdk/formats/sentencepiece_model.h"
#include "sdk/formats/testing.h"
#include "sdk/formats/tokenizer_config.h"
#include "sdk/text/tokenizer.h"

namespace inlaid::formats {
namespace {

using testing::MemoryFileSystem;
using TokenizerPtr = std::shared_ptr<const text::Tokenizer>;

std::string tokenizers(const std::string& name) {
  return golden("tokenizers/" + name);
}

const Json& ids_of_others() {
  static const Json file = parse_json(read_text(posix_file_system(), tokenizers("ids.json")), "ids.json");
  return file;
}

std::string stream(const TokenizerPtr& tokenizer, const std::vector<int32_t>& ids, bool skip) {
  text::DecodeStream decoder(tokenizer, skip);
  std::string out;
  for (int32_t id : ids) out += decoder.push(id);
  return out + decoder.finish();
}

void expect_rows(const std::string& json, const std::string& name) {
  const TokenizerPtr tokenizer = text::Tokenizer::from_json(json, name);
  const Json& entry = ids_of_others()[name];
  ASSERT_GE(entry["rows"].size(), 60u) << name;
  for (const Json& row : entry["rows"]) {
    SCOPED_TRACE(name + ": " + row.dump().substr(0, 300));
    const std::vector<int32_t> ids = row["ids"];
    EXPECT_EQ(tokenizer->encode(row["text"].get<std::string>(), false).ids, ids);
    EXPECT_EQ(tokenizer->decode(ids, false), row["decoded"]);
    EXPECT_EQ(tokenizer->decode(ids, true), row["decoded_plain"]);
    EXPECT_EQ(stream(tokenizer, ids, false), row["decoded"]);
    EXPECT_EQ(stream(tokenizer, ids, true), row["decoded_plain"]);
  }
  EXPECT_EQ(Json(tokenizer->encode("hello world", true).ids), entry["with_special"]) << name;
}

// How far the reference itself is from SentencePiece and llama.cpp; the reasons are in sentencepiece.h.
void expect_differences(const std::string& name, const char* column, size_t wanted) {
  size_t count = 0;
  for (const Json& row : ids_of_others()[name]["rows"]) count += row.contains(column);
  EXPECT_EQ(count, wanted) << name;
}

std::string from_folder(const std::string& name, Json config) {
  const std::string path = join_path(tokenizers(name), "tokenizer.model");
  return sentencepiece_tokenizer_json(read_text(posix_file_system(), path), path, config, Json::object());
}

Json config_of(const std::string& name) {
  return normal_tokenizer_config(
      read_json_object(posix_file_system(), join_path(tokenizers(name), "tokenizer_config.json"), true), {});
}

TEST(TokenizerIds, TokenizerModelAsTransformersConvertsIt) {
  for (const char* name : {"llama", "bpe_rules", "unigram", "unigram_bytes", "added"}) {
    expect_rows(from_folder(name, config_of(name)), name);
  }
  const std::string path = join_path(tokenizers("llama"), "tokenizer.model");
  Json config = Json::object();
  expect_rows(
      sentencepiece_tokenizer_json(read_text(posix_file_system(), path), path, config, Json::object()),
      "llama_classless");
  EXPECT_EQ(config, (Json{{"bos_token", "<s>"}, {"eos_token", "</s>"}, {"unk_token", "<unk>"}}));
  expect_differences("llama_classless", "sentencepiece", 3);  // all three have special tokens in the text
  expect_differences("llama", "sentencepiece", 11);           // and spaces in front, as LlamaTokenizer has it
}

TEST(TokenizerIds, VocabulariesInGguf) {
  for (const char* name : {"llama.gguf", "llama_no_prefix.gguf", "phi3.gguf", "gemma.gguf", "t5.gguf",
                           "bert.gguf", "bert_cased.gguf"}) {
    const GgufFile file(posix_file_system(), tokenizers(name));
    expect_rows(gguf_tokenizer_json(file), name);
  }
  expect_differences("phi3.gguf", "llama_cpp", 0);
  expect_differences("llama_no_prefix.gguf", "llama_cpp", 0);
  expect_differences("bert_cased.gguf", "llama_cpp", 0);
}

TEST(TokenizerIds, SpecialTokensAndTemplateOfGguf) {
  const GgufFile llama(posix_file_system(), tokenizers("llama.gguf"));
  const Json config = gguf_tokenizer_config(llama);
  EXPECT_EQ(config["bos_token"], "<s>");
  EXPECT_EQ(config["eos_token"], "</s>");
  EXPECT_EQ(config["unk_token"], "<unk>");
  EXPECT_EQ(config["add_bos_token"], true);
  EXPECT_EQ(config["add_eos_token"], false);
  EXPECT_EQ(config["added_tokens_decoder"]["4"]["special"], false);
  EXPECT_FALSE(config.contains("pad_token"));
  EXPECT_EQ(gguf_generation_config(llama), (Json{{"bos_token_id", 1}, {"eos_token_id", 2}}));
  // The keys are absent: what llama.cpp takes for granted.
  const GgufFile bare(posix_file_system(), tokenizers("llama_no_prefix.gguf"));
  EXPECT_EQ(gguf_tokenizer_config(bare)["bos_token"], "<s>");
  EXPECT_EQ(gguf_tokenizer_config(bare)["add_eos_token"], true);
  const Json bert = gguf_tokenizer_config(GgufFile(posix_file_system(), tokenizers("bert.gguf")));
  EXPECT_EQ(bert["cls_token"], "[CLS]");
  EXPECT_EQ(bert["sep_token"], "[SEP]");
  EXPECT_EQ(bert["mask_token"], "[MASK]");
  EXPECT_EQ(bert["pad_token"], "[PAD]");
  const GgufFile t5(posix_file_system(), tokenizers("t5.gguf"));
  EXPECT_EQ(gguf_generation_config(t5), (Json{{"eos_token_id", 1}, {"pad_token_id", 0}}));
}

// A model with this tokenizer written as GGUF.
void write_model(FileSystem& fs, const std::string& path, const std::string& tokenizer_json,
                 const Json& config) {
  ModelFiles model = tiny_model();
  model.config["vocab_size"] = 720;
  model.generation_config = Json::object();
  model.config.erase("bos_token_id");
  model.config.erase("eos_token_id");
  model.tokenizer_json = tokenizer_json;
  model.tokenizer_config = config;
  write_gguf(fs, path, model, tiny_tensors(model.config, DType::f16));
}

// Exported and read again, with the tokenizer.json that the export carries: equal in every id, also where
// GGUF's own keys could not say it.
TEST(TokenizerIds, ExportAndBack) {
  MemoryFileSystem fs;
  for (const char* name : {"llama", "unigram", "unigram_bytes", "added"}) {
    Json config = config_of(name);
    const std::string json = from_folder(name, config);
    write_model(fs, "/m.gguf", json, config);
    const ModelFiles read = open_model(fs, "/m.gguf");
    EXPECT_EQ(read.tokenizer_json, json);
    expect_rows(read.tokenizer_json, name);
    fs.remove_all("/m.gguf");
  }
  for (const char* name :
       {"llama.gguf", "llama_no_prefix.gguf", "gemma.gguf", "t5.gguf", "bert.gguf", "bert_cased.gguf"}) {
    const GgufFile file(posix_file_system(), tokenizers(name));
    write_model(fs, "/m.gguf", gguf_tokenizer_json(file), gguf_tokenizer_config(file));
    expect_rows(open_model(fs, "/m.gguf").tokenizer_json, name);
    fs.remove_all("/m.gguf");
  }
}

// The same from GGUF's own keys alone, as llama.cpp and transformers read the file.
TEST(TokenizerIds, ExportAndBackWithoutTheCarriedJson) {
  for (const char* name : {"llama.gguf", "llama_no_prefix.gguf", "t5.gguf", "bert.gguf", "bert_cased.gguf"}) {
    MemoryFileSystem fs;
    const GgufFile file(posix_file_system(), tokenizers(name));
    write_model(fs, "/m.gguf", gguf_tokenizer_json(file), gguf_tokenizer_config(file));
    std::string bytes = read_text(fs, "/m.gguf");
    const size_t key = bytes.find("tokenizer.huggingface.json");
    ASSERT_NE(key, std::string::npos) << name;
    bytes[key] = 'T';  // another key
    write_text(fs, "/bare.gguf", bytes);
    const GgufFile bare(fs, "/bare.gguf");
    expect_rows(gguf_tokenizer_json(bare), name);
    Json wanted = gguf_tokenizer_config(file), read = gguf_tokenizer_config(bare);
    EXPECT_EQ(read, wanted) << name;
  }
}

TEST(TokenizerIds, AFolderWithATokenizerModelOnly) {
  MemoryFileSystem fs;
  const ModelFiles model = tiny_model();
  write_hugging_face(fs, "/m", model, tiny_tensors(model.config, DType::f32));
  fs.remove_all("/m/tokenizer.json");
  copy_into(fs, "/m/tokenizer.model", posix_file_system(), join_path(tokenizers("llama"), "tokenizer.model"));
  write_text(fs, "/m/tokenizer_config.json", R"({"chat_template":"{{ bos_token }}x","legacy":true})");
  const ModelFiles read = open_model(fs, "/m");
  expect_rows(read.tokenizer_json, "llama_classless");
  EXPECT_EQ(read.tokenizer_config["eos_token"], "</s>");
  // Written again, it is an ordinary folder.
  write_hugging_face(fs, "/again", read, tiny_tensors(model.config, DType::f32));
  EXPECT_EQ(open_model(fs, "/again").tokenizer_json, read.tokenizer_json);
}

}  // namespace
}  // namespace inlaid::formats

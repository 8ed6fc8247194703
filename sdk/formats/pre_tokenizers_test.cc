// Ids over one vocabulary whose merges reach across all places to split, against the library tokenizers and
// llama.cpp (tests/golden/formats/tokenizers/make_pre_tokenizers.py).
#include "sdk/formats/pre_tokenizers.h"

#include <set>

#include "sdk/formats/testing.h"
#include "sdk/formats/tokenizer_json.h"
#include "sdk/text/tokenizer.h"

namespace inlaid::formats {
namespace {

Json golden_file() {
  const std::string path = golden("tokenizers/pre_tokenizers.json");
  return parse_json(read_text(posix_file_system(), path), path);
}

std::shared_ptr<const text::Tokenizer> tokenizer_of(const PreTokenizer& pre, Json model) {
  model["ignore_merges"] = pre.ignore_merges;
  TokenizerParts parts;
  parts.normalizer = pre.normalizer;
  parts.pre_tokenizer = pre.pre_tokenizer;
  parts.decoder =
      Json{{"type", "ByteLevel"}, {"add_prefix_space", true}, {"trim_offsets", true}, {"use_regex", true}};
  parts.model = to_text(model);
  return text::Tokenizer::from_json(tokenizer_json_text(parts), pre.name);
}

TEST(PreTokenizers, EveryKindSplitsAsTheOracle) {
  const Json file = golden_file();
  ASSERT_GE(file["ids"].size(), 28u);
  for (const auto& [name, rows] : file["ids"].items()) {
    const auto pre = pre_tokenizer_named(name);
    ASSERT_TRUE(pre) << name;
    const auto tokenizer = tokenizer_of(*pre, file["model"]);
    ASSERT_EQ(rows.size(), file["texts"].size());
    for (size_t i = 0; i < rows.size(); ++i) {
      const std::string text = file["texts"][i];
      EXPECT_EQ(Json(tokenizer->encode(text, false).ids), rows[i]) << name << ": " << text;
    }
  }
}

// A row of the table that says what another one says already would be a mistake of copying.
TEST(PreTokenizers, NoTwoKindsAreTheSame) {
  const Json file = golden_file();
  std::set<std::string> seen;
  for (const auto& [name, rows] : file["ids"].items()) {
    const auto pre = pre_tokenizer_named(name);
    ASSERT_TRUE(pre);
    const std::string flags = std::string(pre->ignore_merges ? "+" : "-") + (pre->adds_bos ? "+" : "-");
    EXPECT_TRUE(seen.insert(to_text(pre->pre_tokenizer) + to_text(pre->normalizer) + flags).second) << name;
  }
}

TEST(PreTokenizers, NamesOfLlamaCpp) {
  const Json file = golden_file();
  std::set<std::string> names;
  for (const auto& [kind, list] : file["names"].items()) {
    const auto main = pre_tokenizer_named(kind);
    ASSERT_TRUE(main) << kind;
    for (const Json& name : list) {
      const auto entry = pre_tokenizer_named(name.get<std::string>());
      ASSERT_TRUE(entry) << name;
      EXPECT_EQ(entry->name, name);
      EXPECT_EQ(entry->pre_tokenizer, main->pre_tokenizer) << name;
      EXPECT_EQ(entry->normalizer, main->normalizer) << name;
      EXPECT_EQ(entry->ignore_merges, main->ignore_merges) << name;
      EXPECT_EQ(entry->adds_bos, main->adds_bos) << name;
      EXPECT_EQ(pre_tokenizer_refusal(name.get<std::string>()), "");
      names.insert(name.get<std::string>());
    }
  }
  for (std::string_view name : pre_tokenizer_list()) EXPECT_TRUE(names.contains(std::string(name))) << name;
  for (const char* name : {"llama3", "tekken", "chameleon"})
    EXPECT_TRUE(pre_tokenizer_named(name)->adds_bos) << name;
  for (const Json& refused : file["refused"]) {
    EXPECT_FALSE(pre_tokenizer_named(refused.get<std::string>())) << refused;
    EXPECT_NE(pre_tokenizer_refusal(refused.get<std::string>()), "") << refused;
  }
  for (const char* nonsense : {"", " ", "gpt", "gpt-2 phi-2", "LLAMA-BPE"}) {
    EXPECT_FALSE(pre_tokenizer_named(nonsense)) << nonsense;
    EXPECT_EQ(pre_tokenizer_refusal(nonsense), "");
  }
}

TEST(PreTokenizers, TheStructureGivesTheNameBack) {
  const Json file = golden_file();
  for (const auto& [name, rows] : file["ids"].items()) {
    const auto entry = pre_tokenizer_named(name);
    ASSERT_TRUE(entry);
    const auto back = pre_tokenizer_like(entry->normalizer, entry->pre_tokenizer, entry->ignore_merges);
    ASSERT_TRUE(back) << name;
    EXPECT_EQ(back->name,
              name == "glm4" ? "llama-bpe" : name);  // the two differ in what GGUF says otherwise (BOS)
  }
}

}  // namespace
}  // namespace inlaid::formats

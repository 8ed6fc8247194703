#include "sdk/text/tokenizer.h"

#include <atomic>
#include <thread>

#include "sdk/text/testing.h"

namespace inlaid::text {
namespace {

TEST(Tokenizer, KnowsItsVocabularyAndSpecialTokens) {
  const auto t = golden_tokenizer("llama3_like");
  EXPECT_EQ(t->token_to_id("<s>"), 0);
  EXPECT_EQ(t->token_to_id("no such token"), std::nullopt);
  EXPECT_EQ(t->token_to_id("\xFF"), std::nullopt);
  EXPECT_EQ(t->id_to_token(1), "</s>");
  EXPECT_EQ(t->id_to_token(-1), std::nullopt);
  EXPECT_EQ(t->id_to_token(t->vocab_size()), std::nullopt);
  EXPECT_TRUE(t->is_special(0));
  // Added, but special = false: stays when special tokens are skipped.
  const int32_t think = t->token_to_id("<think>").value();
  EXPECT_EQ(t->vocab_size(), think + 2);
  EXPECT_FALSE(t->is_special(think));
  EXPECT_FALSE(t->is_special(t->vocab_size()));
  EXPECT_FALSE(t->is_special(-1));
  EXPECT_EQ(t->json(), golden_file("tokenizers/llama3_like.json"));
}

TEST(Tokenizer, SpecialTokensInTextBecomeTheirIdsAndAreSkippedOnRequest) {
  const auto t = golden_tokenizer("llama3_like");
  const Encoding e = t->encode("a</s>b<think>", false);
  EXPECT_NE(std::find(e.ids.begin(), e.ids.end(), 1), e.ids.end());
  EXPECT_EQ(t->decode(e.ids, false), "a</s>b<think>");
  EXPECT_EQ(t->decode(e.ids, true), "ab<think>");
  EXPECT_EQ(t->encode("a", true).ids[0], 0);
  EXPECT_NE(t->encode("a", false).ids[0], 0);
}

TEST(Tokenizer, OffsetsAreBytesAndCoverTheSpaceBeforeAWord) {
  const auto t = golden_tokenizer("byte_bpe");
  const std::string text = "é the 🐘";
  const Encoding e = t->encode(text, false);
  uint32_t reached = 0;
  for (size_t i = 0; i < e.ids.size(); ++i) {
    EXPECT_LE(e.begin[i], reached);  // no byte of the text is left out
    EXPECT_GT(e.end[i], e.begin[i]);
    reached = std::max(reached, e.end[i]);
  }
  EXPECT_EQ(reached, text.size());
  // The pieces of the elephant share its four bytes.
  EXPECT_EQ(e.end.back(), text.size());
  EXPECT_EQ(e.begin.back(), text.size() - 4);
}

TEST(Tokenizer, TruncationPaddingAndDropoutOfTheFileAreOff) {
  Json file = parse_json(golden_file("tokenizers/byte_bpe.json"), "file");
  const auto plain = golden_tokenizer("byte_bpe");
  file["model"]["dropout"] = 0.9;
  file["truncation"] = {
      {"direction", "Right"}, {"max_length", 3}, {"strategy", "LongestFirst"}, {"stride", 0}};
  file["padding"] = {{"strategy", {{"Fixed", 64}}},
                     {"direction", "Right"},
                     {"pad_to_multiple_of", nullptr},
                     {"pad_id", 0},
                     {"pad_type_id", 0},
                     {"pad_token", "<|endoftext|>"}};
  const auto changed = Tokenizer::from_json(to_text(file), "file");
  const std::string text = "The capital of France is Paris, and that of Japan is Tokyo.";
  for (int i = 0; i < 5; ++i) EXPECT_EQ(changed->encode(text, false).ids, plain->encode(text, false).ids);
}

TEST(Tokenizer, RefusesFilesThatAreNone) {
  const std::string good = golden_file("tokenizers/byte_bpe.json");
  for (const std::string& bad :
       {std::string(), std::string("{}"), std::string("[]"), std::string("nonsense"),
        good.substr(0, good.size() / 2), std::string("\xFF\xFE"), std::string(100000, '['),
        std::string(R"({"model":{"type":"BPE"}})"),
        std::string(R"({"version":"1.0","added_tokens":[],"model":{"type":"BPE","vocab":{},"merges":[]}})"),
        std::string(
            R"({"version":"1.0","model":{"type":"WordLevel","vocab":{"a":4000000000},"unk_token":"a"}})"),
        std::string(R"({"version":"1.0","model":{"type":"BPE","vocab":{"a":0},"merges":["b c"]}})")}) {
    const Error error = error_of([&] { Tokenizer::from_json(bad, "some/tokenizer.json"); });
    EXPECT_EQ(error.code(), Code::kDataLoss) << bad.substr(0, 60);
    EXPECT_TRUE(error.message().starts_with("some/tokenizer.json: not a valid tokenizer.json: "))
        << error.message();
  }
}

TEST(Tokenizer, RefusesTextsThatAreNotUtf8OrTooLong) {
  const auto t = golden_tokenizer("byte_bpe");
  for (const char* bad : {"\xFF", "ok\xC3", "\xED\xA0\x80", "\xC0\x80", "\xF4\x90\x80\x80"}) {
    EXPECT_EQ(error_of([&] { (void)t->encode(bad, false); }).code(), Code::kInvalidArgument);
  }
  EXPECT_NE(error_of([&] { (void)t->encode("ok\xC3", false); }).message().find("byte 2"), std::string::npos);
  const std::string huge(100'000'000, 'a');
  const Error error = error_of([&] { (void)t->encode(huge, false); });
  EXPECT_EQ(error.code(), Code::kInvalidArgument);
  EXPECT_NE(error.message().find("100000000"), std::string::npos);
}

TEST(Tokenizer, RefusesIdsOutsideTheVocabulary) {
  const auto t = golden_tokenizer("byte_bpe");
  for (int32_t id : {-1, t->vocab_size(), INT32_MAX}) {
    const Error error = error_of([&] { (void)t->decode(std::vector<int32_t>{1, id}, false); });
    EXPECT_EQ(error.code(), Code::kInvalidArgument);
    EXPECT_NE(error.message().find("id " + std::to_string(id) + " "), std::string::npos) << error.message();
  }
  EXPECT_EQ(t->decode({}, false), "");
}

// Every 'a' becomes a megabyte: 64 GiB for this text. The call fails, the process goes on.
TEST(Tokenizer, AFileThatBlowsUpTextsFailsTheCallOnly) {
  Json file = parse_json(golden_file("tokenizers/byte_bpe.json"), "file");
  file["normalizer"] = {
      {"type", "Replace"}, {"pattern", {{"String", "a"}}}, {"content", std::string(1 << 20, 'b')}};
  const auto t = Tokenizer::from_json(to_text(file), "bomb");
  const Error error = error_of([&] { (void)t->encode(std::string(1 << 16, 'a'), false); });
  EXPECT_EQ(error.code(), Code::kResourceExhausted) << error.message();
  EXPECT_EQ(t->decode(t->encode("hello", false).ids, false), "hello");
}

// A regular expression that backtracks exponentially is cut off by the engine's limit.
TEST(Tokenizer, ARegularExpressionThatNeverEndsFailsTheCallOnly) {
  Json file = parse_json(golden_file("tokenizers/byte_bpe.json"), "file");
  file["pre_tokenizer"] = {
      {"type", "Split"}, {"pattern", {{"Regex", "(x+x+)+y"}}}, {"behavior", "Isolated"}, {"invert", false}};
  const auto t = Tokenizer::from_json(to_text(file), "regex");
  const Error error = error_of([&] { (void)t->encode(std::string(5000, 'x'), false); });
  EXPECT_NE(error.message().find("retry-limit"), std::string::npos) << error.message();
  EXPECT_EQ(t->decode(t->encode("hello", false).ids, false), "hello");
}

TEST(Tokenizer, EightThreadsEncodeAlike) {
  const auto t = golden_tokenizer("llama3_like");
  std::string text;
  for (int i = 0; i < 200; ++i) text += "word" + std::to_string(i) + " naïve 東京 🐘 ";
  const Encoding expected = t->encode(text, true);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int n = 0; n < 8; ++n) {
    threads.emplace_back([&] {
      for (int i = 0; i < 10; ++i) {
        const Encoding e = t->encode(text, true);
        wrong += e.ids != expected.ids || e.begin != expected.begin || t->decode(e.ids, true) != text;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace inlaid::text

#include <random>

#include "sdk/text/testing.h"
#include "sdk/text/tokenizer.h"

namespace inlaid::text {
namespace {

std::string stream(const std::shared_ptr<const Tokenizer>& t, const std::vector<int32_t>& ids, bool skip) {
  DecodeStream decoder(t, skip);
  std::string out;
  for (int32_t id : ids) {
    const std::string piece = decoder.push(id);
    out += piece;
  }
  return out + decoder.finish();
}

TEST(DecodeStream, EqualsTheWholeDecodeOfEveryGoldenText) {
  const Json file = golden_encodings();
  for (const auto& [name, rows] : file.items()) {
    const auto t = golden_tokenizer(name);
    for (const Json& row : rows) {
      SCOPED_TRACE(name + ": " + row["text"].get<std::string>().substr(0, 100));
      const std::vector<int32_t> ids = row["ids"];
      EXPECT_EQ(stream(t, ids, false), row["decoded"]);
      EXPECT_EQ(stream(t, ids, true), row["decoded_plain"]);
    }
  }
}

// Ids at random make broken characters, runs of byte tokens that are no UTF-8, and special tokens in the
// middle of them.
TEST(DecodeStream, EqualsTheWholeDecodeOfRandomIds) {
  std::mt19937 random(7);
  for (const char* name : {"byte_bpe", "llama3_like", "byte_fallback", "word_piece", "unigram", "t5",
                           "albert", "unigram_bytes", "llama", "gemma"}) {
    const auto t = golden_tokenizer(name);
    for (int round = 0; round < 300; ++round) {
      std::vector<int32_t> ids(random() % 24);
      const int32_t range = round % 2 == 0 ? t->vocab_size() : 260;  // the low ids hold specials and bytes
      for (int32_t& id : ids) id = static_cast<int32_t>(random() % static_cast<uint32_t>(range));
      for (bool skip : {false, true}) {
        EXPECT_EQ(stream(t, ids, skip), t->decode(ids, skip)) << name << ' ' << Json(ids).dump() << skip;
      }
    }
  }
}

TEST(DecodeStream, GivesTextOutAsSoonAsItIsFinal) {
  const auto t = golden_tokenizer("byte_bpe");
  DecodeStream decoder(t, true);
  const std::vector<int32_t> ids = t->encode("a🐘b", false).ids;
  ASSERT_GE(ids.size(), 4u);  // the elephant takes several tokens
  EXPECT_EQ(decoder.push(ids[0]), "a");
  for (size_t i = 1; i + 2 < ids.size(); ++i) EXPECT_EQ(decoder.push(ids[i]), "");
  EXPECT_EQ(decoder.push(ids[ids.size() - 2]), "🐘");
  EXPECT_EQ(decoder.push(ids.back()), "b");
  EXPECT_EQ(decoder.finish(), "");
  // A sequence that ends in the middle of a character, and a new one after finish().
  EXPECT_EQ(decoder.push(ids[1]), "");
  EXPECT_EQ(decoder.finish(), t->decode(std::vector<int32_t>{ids[1]}, true));
  EXPECT_EQ(decoder.push(ids.back()), "b");
}

TEST(DecodeStream, KeepsTheSpacesBetweenWords) {
  const auto t = golden_tokenizer("unigram");
  DecodeStream decoder(t, true);
  std::string out;
  size_t pieces = 0;
  for (int32_t id : t->encode("the lazy dog", false).ids) {
    const std::string piece = decoder.push(id);
    pieces += !piece.empty();
    out += piece;
  }
  EXPECT_EQ(out, "the lazy dog");
  EXPECT_GE(pieces, 3u);
}

TEST(DecodeStream, RefusesAnIdOutsideTheVocabularyAndGoesOn) {
  const auto t = golden_tokenizer("byte_bpe");
  DecodeStream decoder(t, true);
  EXPECT_EQ(error_of([&] { decoder.push(t->vocab_size()); }).code(), Code::kInvalidArgument);
  EXPECT_EQ(decoder.push(t->token_to_id("a").value()), "a");
}

// A decoder that may look back gives everything at the end.
TEST(DecodeStream, ADecoderThatLooksBackWaitsForTheEnd) {
  Json file = parse_json(golden_file("tokenizers/byte_fallback.json"), "file");
  file["decoder"] = {{"type", "Sequence"},
                     {"decoders",
                      {{{"type", "Fuse"}},
                       {{"type", "Replace"}, {"pattern", {{"String", "\u2581th"}}}, {"content", "TH"}}}}};
  const auto t = Tokenizer::from_json(to_text(file), "file");
  const std::vector<int32_t> ids = t->encode("say the word then", false).ids;
  EXPECT_NE(t->decode(ids, false).find("TH"), std::string::npos);
  EXPECT_EQ(stream(t, ids, false), t->decode(ids, false));
}

}  // namespace
}  // namespace inlaid::text

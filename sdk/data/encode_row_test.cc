// Masks, token by token, against expectations written by hand: ids of the test tokenizer are kByte + byte.
#include "sdk/data/encode_row.h"

#include <gtest/gtest.h>

#include "sdk/data/testing/support.h"

namespace inlaid::data {
namespace {

using testing::bytes;
using testing::error_of;
using testing::join;
using testing::kBos;
using testing::kByte;
using testing::kEnd;
using testing::kEos;
using testing::kSpaceYes;
using testing::kStart;
using testing::kYes;

class EncodeRow : public ::testing::Test {
 protected:
  EncodedRow encode(Format format, std::string_view row) {
    const RowEncoder encoder(options_, *tokenizer_, template_.get());
    return encode_row(encoder, format, /*plain_text=*/false, row, Json::object());
  }
  std::string reason(Format format, std::string_view row) {
    const Error e = error_of([&] { encode(format, row); });
    EXPECT_TRUE(e.code() == Code::kInvalidArgument || e.code() == Code::kOk);
    return e.message();
  }
  // Text of the trained tokens, with a bar at every gap.
  std::string trained_text(const EncodedRow& row) {
    std::string out;
    for (size_t i = 0; i < row.targets.size(); ++i) {
      if (row.targets[i] == kIgnore) continue;
      size_t end = i;
      while (end < row.targets.size() && row.targets[end] != kIgnore) ++end;
      const std::span<const int32_t> run(row.targets.data() + i, end - i);
      out += (out.empty() ? "" : "|") + tokenizer_->decode(run, false);
      i = end;
    }
    return out;
  }

  DatasetOptions options_ = [] {
    DatasetOptions options;
    options.eos_candidates = {"<|im_end|>", "</s>"};
    return options;
  }();
  std::shared_ptr<const text::Tokenizer> tokenizer_ = testing::make_tokenizer();
  std::shared_ptr<const text::ChatTemplate> template_ = testing::make_template();
};

std::vector<int32_t> ignored(size_t count) {
  return std::vector<int32_t>(count, kIgnore);
}

constexpr const char* kTwoTurns = R"({"messages": [
  {"role": "user", "content": "Hi"}, {"role": "assistant", "content": "yes"},
  {"role": "user", "content": "No?"}, {"role": "assistant", "content": "No!"}]})";

TEST_F(EncodeRow, ChatTrainsAssistantContentsAndTheirEnds) {
  const EncodedRow row = encode(Format::kChat, kTwoTurns);
  const std::vector<int32_t> head =
      join({{kStart}, bytes("user\nHi"), {kEnd}, bytes("\n"), {kStart}, bytes("assistant\n")});
  const std::vector<int32_t> middle =
      join({bytes("\n"), {kStart}, bytes("user\nNo?"), {kEnd}, bytes("\n"), {kStart}, bytes("assistant\n")});
  EXPECT_EQ(row.tokens, join({head, {kYes, kEnd}, middle, bytes("No!"), {kEnd}, bytes("\n")}));
  // Target i is token i + 1: the run of a turn starts at the newline before it and ends at its last content
  // token.
  EXPECT_EQ(row.targets, join({ignored(head.size() - 1),
                               {kYes, kEnd},
                               ignored(middle.size()),
                               bytes("No!"),
                               {kEnd},
                               ignored(2)}));
  EXPECT_EQ(row.target_tokens, 6);
  EXPECT_EQ(row.boundary_tokens, 0);
  EXPECT_TRUE(row.chat);
  EXPECT_TRUE(row.trains_stop);
  EXPECT_FALSE(row.truncated);
}

TEST_F(EncodeRow, LossOnSelectsTurns) {
  const auto trained = [&](const char* loss_on) {
    options_.loss_on = loss_on;
    return trained_text(encode(Format::kChat, kTwoTurns));
  };
  EXPECT_EQ(trained("assistant"), "yes<|im_end|>|No!<|im_end|>");
  EXPECT_EQ(trained("last_assistant"), "No!<|im_end|>");
  EXPECT_EQ(trained("completion"), "No!<|im_end|>");
  // Everything but the first token, which nothing predicts.
  EXPECT_EQ(trained("all"),
            "user\nHi<|im_end|>\n<|im_start|>assistant\nyes<|im_end|>\n<|im_start|>user\nNo?<|im_end|>\n"
            "<|im_start|>assistant\nNo!<|im_end|>\n");
}

TEST_F(EncodeRow, FlagsOfMessagesWin) {
  constexpr const char* kFlags = R"({"messages": [{"role": "user", "content": "Hi", "train": true},
    {"role": "assistant", "content": "yes", "weight": 0}, {"role": "user", "content": "No?"},
    {"role": "assistant", "content": "No!"}]})";
  const auto trained = [&](const char* loss_on, const char* row) {
    options_.loss_on = loss_on;
    return trained_text(encode(Format::kChat, row));
  };
  EXPECT_TRUE(trained("assistant", kFlags).starts_with("Hi"));
  EXPECT_TRUE(trained("assistant", kFlags).ends_with("|No!<|im_end|>"));
  EXPECT_EQ(trained("assistant", kFlags).find("yes"), std::string::npos);
  const std::string all = trained("all", kFlags);
  EXPECT_EQ(all.find("yes"), std::string::npos);
  EXPECT_NE(all.find("No?"), std::string::npos);
  EXPECT_NE(all.find("Hi"), std::string::npos);
  constexpr const char* kFirst = R"({"messages": [{"role": "user", "content": "Hi"},
    {"role": "assistant", "content": "yes", "train": true}, {"role": "user", "content": "No?"},
    {"role": "assistant", "content": "No!", "train": false}]})";
  EXPECT_EQ(trained("last_assistant", kFirst), "yes<|im_end|>");
}

TEST_F(EncodeRow, MasksEveryCharacterOfAnyScript) {
  const std::string answer = "\u6771\u4eac \U0001F418\U0001F468\u200D\U0001F469 na\u00efve \u0905\u0928";
  Json row = {{"messages", Json::array({{{"role", "user"}, {"content", "\U0001F418? \u6771"}},
                                        {{"role", "assistant"}, {"content", answer}}})}};
  const EncodedRow encoded = encode(Format::kChat, to_text(row));
  EXPECT_EQ(trained_text(encoded), answer + "<|im_end|>");
  EXPECT_EQ(encoded.target_tokens, static_cast<int64_t>(answer.size()) + 1);  // a token per byte, and the end
}

// The answer also occurs in the question and in the role's name: a search would find the wrong place.
TEST_F(EncodeRow, PlacesContentsThatOccurTwice) {
  const EncodedRow row = encode(Format::kChat, R"({"messages": [{"role": "user", "content": "assistant"},
    {"role": "assistant", "content": "assistant"}]})");
  EXPECT_EQ(trained_text(row), "assistant<|im_end|>");
  EXPECT_EQ(row.targets[row.targets.size() - 3], kEnd);
}

TEST_F(EncodeRow, ShareGptAndAlpacaGiveTheSameSamplesAsMessages) {
  const EncodedRow messages = encode(Format::kChat, R"({"messages": [{"role": "system", "content": "S"},
    {"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]})");
  const EncodedRow share_gpt = encode(Format::kChat, R"({"conversations": [{"from": "system", "value": "S"},
    {"from": "human", "value": "q"}, {"from": "gpt", "value": "a"}]})");
  const EncodedRow alpaca = encode(Format::kAlpaca, R"({"instruction": "q", "output": "a", "system": "S"})");
  const EncodedRow lists =
      encode(Format::kPromptCompletion, R"({"prompt": [{"role": "system", "content": "S"},
    {"role": "user", "content": "q"}], "completion": [{"role": "assistant", "content": "a"}]})");
  for (const EncodedRow* other : {&share_gpt, &alpaca, &lists}) {
    EXPECT_EQ(other->tokens, messages.tokens);
    EXPECT_EQ(other->targets, messages.targets);
  }
}

TEST_F(EncodeRow, AssistantTurnsOfAPromptAreNotTrained) {
  const char* row = R"({"prompt": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "old"},
    {"role": "user", "content": "r"}], "completion": [{"role": "assistant", "content": "a"},
    {"role": "user", "content": "s"}, {"role": "assistant", "content": "b"}]})";
  EXPECT_EQ(trained_text(encode(Format::kPromptCompletion, row)), "a<|im_end|>|b<|im_end|>");
  options_.loss_on = "completion";
  EXPECT_EQ(trained_text(encode(Format::kPromptCompletion, row)), "a<|im_end|>|b<|im_end|>");
  options_.loss_on = "last_assistant";
  EXPECT_EQ(trained_text(encode(Format::kPromptCompletion, row)), "b<|im_end|>");
}

TEST_F(EncodeRow, TextsOfPromptAndCompletion) {
  const EncodedRow row = encode(Format::kPromptCompletion, R"({"prompt": "ok?", "completion": " yes"})");
  EXPECT_EQ(row.tokens, join({bytes("ok?"), {kSpaceYes, kEnd}}));
  EXPECT_EQ(row.targets, (std::vector<int32_t>{kIgnore, kIgnore, kSpaceYes, kEnd, kIgnore}));
  EXPECT_FALSE(row.chat);
  options_.loss_on = "all";
  EXPECT_EQ(trained_text(encode(Format::kPromptCompletion, R"({"prompt": "ok?", "completion": " yes"})")),
            "k? yes<|im_end|>");
}

// The prompt's last space belongs to the token of the completion: the token starts in the prompt and is not
// trained.
TEST_F(EncodeRow, ATokenAcrossTheBoundaryIsCounted) {
  const EncodedRow row = encode(Format::kPromptCompletion, R"({"prompt": "ok? ", "completion": "yes!"})");
  EXPECT_EQ(row.tokens, join({bytes("ok?"), {kSpaceYes}, bytes("!"), {kEnd}}));
  EXPECT_EQ(trained_text(row), "!<|im_end|>");
  EXPECT_EQ(row.boundary_tokens, 1);
}

TEST_F(EncodeRow, TextTrainsEverything) {
  const EncodedRow row = encode(Format::kText, R"({"text": "abc"})");
  EXPECT_EQ(row.tokens, join({bytes("abc"), {kEnd}}));
  EXPECT_EQ(row.targets, join({bytes("bc"), {kEnd}, ignored(1)}));
  // An end token that is written already is not doubled.
  EXPECT_EQ(encode(Format::kText, R"({"text": "abc<|im_end|>"})").tokens, row.tokens);
}

TEST_F(EncodeRow, TheBeginTokenComesOnce) {
  tokenizer_ = testing::make_tokenizer(/*add_bos=*/true);
  EXPECT_EQ(encode(Format::kText, R"({"text": "a"})").tokens, join({{kBos}, bytes("a"), {kEnd}}));
  const EncodedRow row = encode(Format::kPromptCompletion, R"({"prompt": "", "completion": "ab"})");
  EXPECT_EQ(row.tokens, join({{kBos}, bytes("ab"), {kEnd}}));
  EXPECT_EQ(row.targets, join({bytes("ab"), {kEnd}, ignored(1)}));
  EXPECT_EQ(encode(Format::kChat, kTwoTurns).tokens[0], kStart);  // a template writes what it wants
  EXPECT_EQ(reason(Format::kText, R"({"text": "<s>a"})"),
            "begins with <s> twice: it is written in the row or the template and added by the tokenizer");
}

TEST_F(EncodeRow, TruncatesAsConfigured) {
  const char* row = R"({"prompt": "abcd", "completion": "efgh"})";  // 9 tokens with the end
  options_.max_length = 9;
  EXPECT_FALSE(encode(Format::kPromptCompletion, row).truncated);
  options_.max_length = 6;
  EXPECT_EQ(reason(Format::kPromptCompletion, row),
            "9 tokens, more than max_length 6; raise data.max_length or set data.truncation to right, left "
            "or drop");
  options_.truncation = "drop";
  const EncodedRow dropped = encode(Format::kPromptCompletion, row);
  EXPECT_EQ(dropped.dropped, "9 tokens, more than max_length 6");
  EXPECT_TRUE(dropped.tokens.empty());
  options_.truncation = "right";
  const EncodedRow right = encode(Format::kPromptCompletion, row);
  EXPECT_EQ(right.tokens, bytes("abcdef"));
  EXPECT_EQ(right.targets, join({ignored(3), bytes("ef"), ignored(1)}));
  EXPECT_TRUE(right.truncated);
  EXPECT_FALSE(right.trains_stop);
  options_.truncation = "left";
  const EncodedRow left = encode(Format::kPromptCompletion, row);
  EXPECT_EQ(left.tokens, join({bytes("defgh"), {kEnd}}));
  EXPECT_EQ(left.targets, join({bytes("efgh"), {kEnd}, ignored(1)}));
  options_.truncation = "right";
  options_.max_length = 4;
  EXPECT_EQ(reason(Format::kPromptCompletion, row), "no token is trained after truncation");
}

TEST_F(EncodeRow, RefusesRowsWithoutTargets) {
  EXPECT_EQ(reason(Format::kChat, R"({"messages": [{"role": "user", "content": "q"}]})"),
            "no token is trained: no message that data.loss_on selects has content");
  EXPECT_EQ(reason(Format::kChat, R"({"messages": [{"role": "user", "content": "q"},
            {"role": "assistant", "content": "a", "train": false}]})"),
            "no token is trained: no message that data.loss_on selects has content");
}

TEST_F(EncodeRow, RefusesRowsThatAreNotStrictJson) {
  EXPECT_EQ(reason(Format::kText, "[1]"), "must be a JSON object, is array");
  EXPECT_NE(reason(Format::kText, R"({"text": "a", "text": "b"})").find("key 'text' appears twice"),
            std::string::npos);
  EXPECT_TRUE(reason(Format::kText, "{\"text\": \"\xFF\"}").starts_with("JSON: line 1, column"));
  EXPECT_TRUE(reason(Format::kText, R"({"text": "a"} x)").starts_with("JSON: line 1, column"));
  EXPECT_TRUE(reason(Format::kText, R"({"text": "a")").starts_with("JSON: line 1, column"));
  EXPECT_TRUE(reason(Format::kText, R"({"text": "\ud800"})").starts_with("JSON: line 1, column"));
  EXPECT_TRUE(reason(Format::kText, R"({"text": "a", "x": )" + std::string(100, '[')).find("64 levels") !=
              std::string::npos);
  EXPECT_EQ(reason(Format::kUnknown, R"({"question": "a", "answer": "b"})"),
            "its columns (question, answer) tell no format; expected messages or conversations (chat), "
            "prompt and completion, "
            "instruction and output (alpaca), or text; data.*.columns renames columns");
}

TEST_F(EncodeRow, DocumentsMustBeUtf8) {
  const RowEncoder encoder(options_, *tokenizer_, template_.get());
  EXPECT_EQ(encode_row(encoder, Format::kText, true, "a\nb", Json::object()).tokens,
            join({bytes("a\nb"), {kEnd}}));
  EXPECT_EQ(error_of([&] { encode_row(encoder, Format::kText, true, "ab\xFF", Json::object()); }).message(),
            "not valid UTF-8 at byte 2 of the document");
}

TEST_F(EncodeRow, NeedsATemplateForMessagesAndAnEndForTexts) {
  template_ = nullptr;
  EXPECT_EQ(reason(Format::kChat, kTwoTurns),
            "messages need a chat template and the model has none; set data.chat_template");
  EXPECT_EQ(encode(Format::kText, R"({"text": "a"})").tokens.size(), 2u);
  options_.eos_candidates = {};
  EXPECT_EQ(reason(Format::kText, R"({"text": "a"})"),
            "a text needs a token that ends it and the model names none");
}

TEST_F(EncodeRow, TheFirstEndCandidateEndsTexts) {
  options_.eos_candidates = {"</s>", "<|im_end|>"};
  EXPECT_EQ(encode(Format::kText, R"({"text": "a"})").tokens.back(), kEos);
  options_.eos_candidates = {"<eot>"};
  EXPECT_EQ(reason(Format::kText, R"({"text": "a"})"),
            "the end token '<eot>' is not in the tokenizer's vocabulary");
}

TEST_F(EncodeRow, RefusesOptionsWithoutMeaning) {
  options_.loss_on = "asistant";
  EXPECT_EQ(reason(Format::kText, "{}"),
            "data.loss_on 'asistant' is not one of assistant, last_assistant, completion, all; did you mean "
            "'assistant'?");
  options_.loss_on = "all";
  options_.truncation = "middle";
  EXPECT_EQ(reason(Format::kText, "{}"), "data.truncation 'middle' is not one of error, right, left, drop");
  options_.truncation = "right";
  options_.max_length = 1;
  EXPECT_EQ(reason(Format::kText, "{}"), "data.max_length 1 is too small: a target needs 2 tokens");
}

}  // namespace
}  // namespace inlaid::data

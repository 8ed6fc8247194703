// Equality with the oracle packages (tokenizers, Jinja2 as transformers sets it up):
// tests/golden/text/make.py, make_sentencepiece.py.
#include "sdk/text/testing.h"

namespace inlaid::text {
namespace {

TEST(Golden, TokenizersOfEveryKindGiveTheSameIdsOffsetsAndTexts) {
  const Json file = golden_encodings();
  for (const auto& [name, rows] : file.items()) {
    const auto tokenizer = golden_tokenizer(name);
    ASSERT_GE(rows.size(), 50u);
    for (const Json& row : rows) {
      const std::string text = row["text"];
      SCOPED_TRACE(name + ": " + row.dump().substr(0, 300));
      const Encoding encoding = tokenizer->encode(text, row["add_special"]);
      EXPECT_EQ(Json(encoding.ids), row["ids"]);
      EXPECT_EQ(Json(encoding.begin), row["begin"]);
      EXPECT_EQ(Json(encoding.end), row["end"]);
      EXPECT_EQ(tokenizer->decode(encoding.ids, false), row["decoded"]);
      EXPECT_EQ(tokenizer->decode(encoding.ids, true), row["decoded_plain"]);
    }
  }
}

TEST(Golden, RendersOfEveryTemplateAndConversation) {
  std::string name;
  std::shared_ptr<const ChatTemplate> chat_template;
  for (const Json& row : golden("renders.json")) {
    if (row["template"] != name) {
      name = row["template"];
      chat_template = golden_template(name);
    }
    SCOPED_TRACE(name + ", " + row["chat"].get<std::string>());
    const auto render = [&] {
      return chat_template->render(row["messages"], row["add_generation_prompt"], row["extra"]);
    };
    if (row.contains("rendered")) {
      EXPECT_EQ(render(), row["rendered"]);
    } else {
      const Error error = error_of(render);
      EXPECT_EQ(error.code(), Code::kInvalidArgument);
      EXPECT_NE(error.message().find("raised by the template: " + row["error"].get<std::string>()),
                std::string::npos)
          << error.message();
    }
  }
}

TEST(Golden, GenerationBlocksAreTheSpansOfTransformers) {
  const auto chat_template = golden_template("generation");
  for (const Json& row : golden("generation.json")) {
    SCOPED_TRACE(row["chat"]);
    const Rendered rendered = chat_template->render_with_spans(row["messages"], {}, {"<|im_end|>"});
    EXPECT_TRUE(rendered.generation_marks);
    EXPECT_EQ(rendered.text, row["rendered"]);
    ASSERT_EQ(rendered.spans.size(), row["spans"].size());
    for (size_t i = 0; i < rendered.spans.size(); ++i) {
      EXPECT_EQ(Json({rendered.spans[i].begin, rendered.spans[i].end}), row["spans"][i]);
      EXPECT_EQ(row["messages"][static_cast<size_t>(rendered.spans[i].message)]["role"], "assistant");
    }
  }
}

TEST(Golden, ExpressionsOfJinja) {
  const Json file = golden("expressions.json");
  Json variables = file["variables"][0];
  for (const Json& row : file["rows"]) {
    const std::string source = row["template"];
    SCOPED_TRACE(source);
    std::string result;
    try {
      result = ChatTemplate::compile(source, {}, "expression")->render(Json::array(), false, variables);
    } catch (const Error& error) {
      result = error.message();
    }
    if (row.contains("rendered")) {
      EXPECT_EQ(result, row["rendered"]);
    } else {
      EXPECT_EQ(result.substr(0, 11), "expression:") << row["error"];
    }
  }
}

}  // namespace
}  // namespace inlaid::text

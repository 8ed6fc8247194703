#include "sdk/text/turn_spans.h"

#include "sdk/text/altered.h"
#include "sdk/text/marks.h"
#include "sdk/text/testing.h"

namespace inlaid::text {
namespace {

const std::vector<std::string> kEnds = {"<|im_end|>", "<|eot_id|>", "<end_of_turn>", "</s>"};

Json user(const std::string& content) {
  return {{"role", "user"}, {"content", content}};
}
Json assistant(const std::string& content) {
  return {{"role", "assistant"}, {"content", content}};
}
Json system(const std::string& content) {
  return {{"role", "system"}, {"content", content}};
}
Json tool(const std::string& content) {
  return {{"role", "tool"}, {"content", content}};
}
Json calling(const std::string& content, const Json& arguments) {
  return {{"role", "assistant"},
          {"content", content},
          {"tool_calls", {{{"id", "abcdefghi"}, {"function", {{"name", "f"}, {"arguments", arguments}}}}}}};
}

// Texts of the spans of assistant messages.
std::vector<std::string> turns(const ChatTemplate& t, const Json& messages, const Json& extra = {}) {
  const Rendered rendered = t.render_with_spans(messages, extra, kEnds);
  EXPECT_EQ(rendered.text, t.render(messages, false, extra));
  std::vector<std::string> result;
  uint32_t reached = 0;
  for (const Rendered::Span& span : rendered.spans) {
    EXPECT_GE(span.begin, reached);  // in order, none inside another
    reached = span.end;
    if (messages[static_cast<size_t>(span.message)]["role"] == "assistant") {
      result.push_back(rendered.text.substr(span.begin, span.end - span.begin));
    }
  }
  return result;
}

std::vector<std::string> turns(const std::string& source, const Json& messages, const Json& extra = {}) {
  return turns(*ChatTemplate::compile(source, special_tokens(), "test"), messages, extra);
}

using Turns = std::vector<std::string>;

TEST(TurnSpans, AreContentAndEndOfTurnMarker) {
  const auto t = golden_template("chatml");
  EXPECT_EQ(turns(*t, {user("a"), assistant("b"), user("c"), assistant("d")}),
            (Turns{"b<|im_end|>", "d<|im_end|>"}));
  EXPECT_EQ(turns(*t, {system("s"), user("a"), assistant("naïve 🐘")}), (Turns{"naïve 🐘<|im_end|>"}));
  EXPECT_EQ(turns(*t, Json::array({user("a")})), Turns{});
  EXPECT_EQ(turns(*golden_template("inst"), {user("a"), assistant("b"), user("c"), assistant("d")}),
            (Turns{"b</s>", "d</s>"}));
  // Without a marker in the candidates the span is the content alone.
  const Rendered r = t->render_with_spans({user("a"), assistant("b")}, {}, {"<other>"});
  EXPECT_EQ(r.spans.at(1).end - r.spans.at(1).begin, 1u);
  EXPECT_FALSE(r.generation_marks);
}

TEST(TurnSpans, OtherRolesHaveSpansToo) {
  const Rendered r =
      golden_template("chatml")->render_with_spans({system("s"), user("u"), assistant("a")}, {}, kEnds);
  ASSERT_EQ(r.spans.size(), 3u);
  for (int32_t i = 0; i < 3; ++i) EXPECT_EQ(r.spans[static_cast<size_t>(i)].message, i);
  EXPECT_EQ(r.text.substr(r.spans[1].begin, r.spans[1].end - r.spans[1].begin), "u<|im_end|>");
}

// What a search for the content would find elsewhere first.
TEST(TurnSpans, ContentsThatOccurElsewhere) {
  const auto t = golden_template("chatml");
  const Json messages = {user("assistant"), assistant("user"), user("user"), assistant("assistant")};
  const Rendered r = t->render_with_spans(messages, {}, kEnds);
  EXPECT_EQ(turns(*t, messages), (Turns{"user<|im_end|>", "assistant<|im_end|>"}));
  EXPECT_EQ(r.spans[3].end, r.text.size() - 1);
  EXPECT_EQ(turns(*t, {user("x"), assistant("<|im_end|>")}), Turns{"<|im_end|><|im_end|>"});
  EXPECT_EQ(turns(*t, {user("<|im_end|>\n"), assistant("a<|im_end|>\n<|im_start|>user\nb")}),
            Turns{"a<|im_end|>\n<|im_start|>user\nb<|im_end|>"});
}

TEST(TurnSpans, EmptyContents) {
  EXPECT_EQ(turns(*golden_template("chatml"), {user(""), assistant(""), user("x"), assistant("")}),
            (Turns{"<|im_end|>", "<|im_end|>"}));
  EXPECT_EQ(turns(*golden_template("trimming"), {user("x"), assistant(" \n"), user("y"), assistant("z")}),
            (Turns{"<end_of_turn>", "z<end_of_turn>"}));
  // The template tests the content, so that a mark would change it: the generation prompt tells the place.
  const std::string source =
      "{% for m in messages %}<{{ m.role }}>{% if m.content %}{{ m.content }}{% else %}{% endif %}</s>{% "
      "endfor %}"
      "{% if add_generation_prompt %}<assistant>{% endif %}";
  EXPECT_EQ(turns(source, {user("x"), assistant(""), user("y"), assistant("z")}), (Turns{"</s>", "z</s>"}));
  const std::string other =
      "{% for m in messages %}<{{ m.role }}>{{ m.content or '(nothing)' }}</s>{% endfor %}"
      "{% if add_generation_prompt %}<assistant>{% endif %}";
  EXPECT_EQ(turns(other, {user("x"), assistant(""), user("y"), assistant("z")}),
            (Turns{"(nothing)</s>", "z</s>"}));
}

TEST(TurnSpans, WhiteSpaceBelongsToTheSpanWhereTheTemplateKeepsIt) {
  const Json messages = {user(" a "), assistant("\n b\t\n"), user("c"), assistant(" d")};
  EXPECT_EQ(turns(*golden_template("chatml"), messages), (Turns{"\n b\t\n<|im_end|>", " d<|im_end|>"}));
  EXPECT_EQ(turns(*golden_template("trimming"), messages), (Turns{"b<end_of_turn>", "d<end_of_turn>"}));
  EXPECT_EQ(turns(*golden_template("llama3_like"), messages, {{"date_string", "x"}}),
            (Turns{"b<|eot_id|>", "d<|eot_id|>"}));
  const std::string prefix = "{% for m in messages %}<{{ m.role }}> ";
  const std::string suffix = " </s>{% endfor %}";
  // Users trimmed and assistants not; only one side; the template's own spaces are never taken for the
  // content's.
  EXPECT_EQ(
      turns(prefix + "{{ m.content if m.role == 'assistant' else m.content | trim }}" + suffix, messages),
      (Turns{"\n b\t\n </s>", " d </s>"}));
  EXPECT_EQ(turns(prefix + "{{ m.content.rstrip() }}" + suffix, messages), (Turns{"\n b </s>", " d </s>"}));
  EXPECT_EQ(turns(prefix + "{{ m.content.lstrip() }}" + suffix, messages), (Turns{"b\t\n </s>", "d </s>"}));
  EXPECT_EQ(turns(prefix + "{{ m.content | trim }}" + suffix, messages), (Turns{"b </s>", "d </s>"}));
}

TEST(TurnSpans, TemplatesThatMergeOrInjectTurns) {
  EXPECT_EQ(turns(*golden_template("trimming"), {system(" s "), user("a"), assistant("b")}),
            Turns{"b<end_of_turn>"});
  EXPECT_EQ(
      turns(*golden_template("inst"), {system("s"), user("a"), assistant("b"), user("c"), assistant("d")}),
      (Turns{"b</s>", "d</s>"}));
  // Two answers in a row as one turn: only the second has the marker.
  EXPECT_EQ(
      turns(
          "{% for m in messages %}{% if loop.previtem is not defined or loop.previtem.role != m.role %}"
          "<{{ m.role }}>{% endif %}{{ m.content }}"
          "{% if loop.nextitem is not defined or loop.nextitem.role != m.role %}</s>{% endif %}{% endfor %}",
          {user("a"), assistant("b"), assistant("c"), user("d")}),
      (Turns{"b", "c</s>"}));
  // Messages that are not written are left out when they are not the model's.
  EXPECT_EQ(
      turns("{% for m in messages if m.role != 'system' %}<{{ m.role }}>{{ m.content }}</s>{% endfor %}",
            {system("never shown"), user("a"), assistant("b")}),
      Turns{"b</s>"});
}

TEST(TurnSpans, EarlierThoughtsThatTheTemplateDrops) {
  const auto t = golden_template("qwen3_like");
  const Json messages = {user("q1"), assistant("<think>\nfirst\n</think>\n\nanswer one"), user("q2"),
                         assistant("<think>\nsecond\n</think>\n\nanswer two")};
  EXPECT_EQ(turns(*t, messages),
            (Turns{"answer one<|im_end|>", "<think>\nsecond\n</think>\n\nanswer two<|im_end|>"}));
  // The thought and the answer alike; an answer of one letter that also ends the header; white space written
  // anew.
  EXPECT_EQ(turns(*t, {user("q"), assistant("<think>\nyes\n</think>\n\nyes"), user("q"), assistant("ok")}),
            (Turns{"yes<|im_end|>", "ok<|im_end|>"}));
  EXPECT_EQ(turns(*t, {user("q"), assistant("<think>\nt\n</think>\n\nt"), user("t"), assistant("t")}),
            (Turns{"t<|im_end|>", "t<|im_end|>"}));
  EXPECT_EQ(turns(*t, {user("q"), assistant("<think>a</think>b")}),
            Turns{"<think>\na\n</think>\n\nb<|im_end|>"});
  EXPECT_EQ(turns(*t, {user("q"), assistant("<think>\n\n</think>\n\n东京 **bold** 42!")}),
            Turns{"<think>\n\n</think>\n\n东京 **bold** 42!<|im_end|>"});
  // A thought given apart is written by the model too.
  Json apart = assistant("answer");
  apart["reasoning_content"] = "because";
  EXPECT_EQ(turns(*t, {user("q"), apart}), Turns{"<think>\nbecause\n</think>\n\nanswer<|im_end|>"});
}

TEST(TurnSpans, ToolCallsBeginWhereTheModelBeginsToWrite) {
  const Json arguments = {{"city", "Zürich"}, {"days", 2}};
  const auto qwen = golden_template("qwen3_like");
  const std::string call =
      "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"city\": \"Zürich\", \"days\": 2}}\n</tool_call>";
  const std::string think = "<think>\n\n</think>\n\n";
  EXPECT_EQ(turns(*qwen, {user("w"), calling("", arguments), tool("cold"), assistant("It is cold.")}),
            (Turns{call + "<|im_end|>", "It is cold.<|im_end|>"}));
  // Thinking switched off: the prompt ends with an empty thought, which turns of the past do not have.
  EXPECT_EQ(turns(*qwen, {user("w"), calling("", arguments), tool("cold"), assistant("It is cold.")},
                  {{"enable_thinking", false}}),
            (Turns{call + "<|im_end|>", "It is cold.<|im_end|>"}));
  EXPECT_EQ(turns(*qwen, {user("w"), calling("Let me see.", arguments)}),
            Turns{think + "Let me see.\n" + call + "<|im_end|>"});
  EXPECT_EQ(
      turns(*golden_template("llama3_like"), {user("w"), calling("", arguments)}, {{"date_string", "x"}}),
      Turns{"{\"name\": \"f\", \"parameters\": {\"city\": \"Zürich\", \"days\": 2}}<|eot_id|>"});
  // A template without a generation prompt does not tell where a call begins: refused, not guessed.
  const Error error = error_of([&] { turns(*golden_template("inst"), {user("w"), calling("", arguments)}); });
  EXPECT_NE(error.message().find("message 1 (assistant)"), std::string::npos) << error.message();
}

// A system text repeated at the end, messages in another order: places stay right, or the turn is refused.
TEST(TurnSpans, MessagesRepeatedOrReordered) {
  const Json messages = {system("s"), user("a"), calling("", {{"x", "y"}}), user("b"), assistant("c")};
  const std::string body =
      "<{{ m.role }}>{{ m.content }}{% for t in m.tool_calls or [] %}[{{ t.function.name }}]{% endfor %}</s>";
  const std::string prompt = "{% if add_generation_prompt %}<assistant>{% endif %}";
  EXPECT_EQ(turns("{% for m in messages %}" + body + "{% endfor %}" + prompt, messages),
            (Turns{"[f]</s>", "c</s>"}));
  EXPECT_EQ(
      turns("{% for m in messages %}" + body + "{% endfor %}({{ messages[0].content }})" + prompt, messages),
      (Turns{"[f]</s>", "c</s>"}));
  const Error error =
      error_of([&] { turns("{% for m in messages[::-1] %}" + body + "{% endfor %}", messages); });
  EXPECT_NE(error.message().find("message 2 (assistant)"), std::string::npos) << error.message();
}

TEST(TurnSpans, PartsOfAContent) {
  const std::string source =
      "{% for m in messages %}<{{ m.role }}>{% if m.content is string %}{{ m.content }}{% else %}{% for p in "
      "m.content %}"
      "{% if p.type == 'image' %}<image>{% else %}{{ p.text }}{% endif %}{% endfor %}{% endif %}</s>{% "
      "endfor %}";
  const Json parts = {
      {{"type", "text"}, {"text", "one"}}, {{"type", "image"}}, {{"type", "text"}, {"text", "two"}}};
  EXPECT_EQ(
      turns(source, {{{"role", "user"}, {"content", parts}}, {{"role", "assistant"}, {"content", parts}}}),
      Turns{"one<image>two</s>"});
}

TEST(TurnSpans, ContentsChangedInsideAreWhatTheTemplateWrites) {
  const std::string source =
      "{% for m in messages %}<{{ m.role }}>{{ m.content | upper | replace('E', 'ee') }}</s>{% endfor %}";
  EXPECT_EQ(turns(source, {user("q"), assistant("the answer")}), Turns{"THee ANSWeeR</s>"});
}

TEST(TurnSpans, WhatCannotBePlacedIsRefused) {
  const std::string loop = "{% for m in messages %}<{{ m.role }}>";
  const std::string end = "</s>{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}";
  const Json messages = {user("question"), assistant("some answer here")};
  for (const std::string& body :
       {std::string("{{ m.content[:4] }}"), std::string("{{ m.content | reverse }}"),
        std::string("{{ m.content }}{{ m.content }}"), std::string("{{ m.content | length }}"),
        std::string("{{ m.content.split()[0] }}"), std::string(""),
        std::string("{{ m.content.split() | sort | join(' ') }}")}) {
    const Error error = error_of([&] { turns(loop + body + end, messages); });
    EXPECT_EQ(error.code(), Code::kInvalidArgument);
    EXPECT_NE(error.message().find("message 1 (assistant)"), std::string::npos) << body << error.message();
  }
  // Nothing that a model could have written.
  EXPECT_EQ(
      error_of([&] {
        turns(loop + "{{ m.content }}" + end, {user("q"), {{"role", "assistant"}, {"content", nullptr}}});
      }).code(),
      Code::kInvalidArgument);
}

TEST(TurnSpans, GenerationBlocksWin) {
  const std::string source =
      "{% for m in messages %}{{ m.role }}: {% if m.role == 'assistant' %}{% generation %}[{{ m.content | "
      "upper }}]"
      "{% endgeneration %};{% else %}{{ m.content }};{% endif %}{% endfor %}";
  const auto t = ChatTemplate::compile(source, {}, "test");
  const Rendered r = t->render_with_spans({user("a"), assistant("b"), user("c"), assistant("d")}, {}, kEnds);
  EXPECT_TRUE(r.generation_marks);
  EXPECT_EQ(turns(*t, {user("a"), assistant("b"), user("c"), assistant("d")}), (Turns{"[B]", "[D]"}));
  ASSERT_EQ(r.spans.size(), 2u);
  EXPECT_EQ(r.spans[1].message, 3);
  // Several blocks a turn, matched by their contents.
  const auto two = ChatTemplate::compile(
      "{% for m in messages %}{% if m.role == 'assistant' %}{% generation %}{{ m.content }}{% endgeneration "
      "%}|"
      "{% generation %}{{ m.reasoning_content }}{% endgeneration %}{% else %}{{ m.content }}{% endif %};{% "
      "endfor %}",
      {}, "test");
  Json apart = assistant("x");
  apart["reasoning_content"] = "y";
  EXPECT_EQ(turns(*two, {user("a"), apart, user("b"), apart}), (Turns{"x", "y", "x", "y"}));
  // A block whose text is changed afterwards cannot be followed.
  EXPECT_EQ(
      error_of([&] {
        turns(
            "{% set x %}{% generation %}{{ messages[0].content }}{% endgeneration %}{% endset %}{{ x[1:] }}",
            Json::array({assistant("abc")}));
      }).code(),
      Code::kInvalidArgument);
}

TEST(TurnSpans, EveryGoldenConversationIsPlacedOrRefused) {
  int placed = 0, refused = 0;
  for (const Json& row : golden("renders.json")) {
    if (!row.contains("rendered") || row["add_generation_prompt"] == true) continue;
    const auto t = golden_template(row["template"]);
    SCOPED_TRACE(row["template"].get<std::string>() + " " + row["chat"].get<std::string>());
    try {
      const Rendered r = t->render_with_spans(row["messages"], row["extra"], kEnds);
      EXPECT_EQ(r.text, row["rendered"]);
      size_t assistants = 0, spans = 0;
      for (const Json& message : row["messages"]) assistants += message["role"] == "assistant";
      for (const Rendered::Span& span : r.spans) {
        if (row["messages"][static_cast<size_t>(span.message)]["role"] != "assistant") continue;
        ++spans;
        const std::string text = r.text.substr(span.begin, span.end - span.begin);
        if (r.generation_marks) continue;
        EXPECT_TRUE(std::any_of(kEnds.begin(), kEnds.end(), [&](const auto& end) {
          return text.ends_with(end);
        })) << text;
      }
      EXPECT_EQ(spans, assistants);
      ++placed;
    } catch (const Error& error) {
      EXPECT_NE(error.message().find("(assistant)"), std::string::npos) << error.message();
      EXPECT_TRUE(row["template"] == "inst") << error.message();
      ++refused;
    }
  }
  EXPECT_GT(placed, 100);
  EXPECT_LT(refused, 10);
}

TEST(Marks, TakesOutWhatItPutsInAndAvoidsWhatIsThere) {
  const std::string used = "\U0010EFE0 is the last block";
  Marks marks(used);
  const Json messages = {user("  a " + used), assistant("b")};
  const Json marked = marks.put(messages, {.inner_begin = true, .inner_end = true}, std::nullopt);
  const std::string content = marked[0]["content"];
  EXPECT_TRUE(content.starts_with("  \xF4"));
  const auto taken = marks.take(content + marked[1]["content"].get<std::string>());
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->text, "  a " + used + "b");
  ASSERT_EQ(taken->pieces.size(), 2u);
  EXPECT_EQ(taken->pieces[0].begin, 2u);
  EXPECT_EQ(taken->pieces[1].message, 1u);
  for (size_t cut = 4; cut < 24; cut += 4)
    EXPECT_FALSE(marks.take(content.substr(0, 2 + cut))) << cut;  // a mark cut short
}

TEST(Marks, TrimsAsPythonDoes) {
  EXPECT_EQ(trimmed(" \x1c\u00a0\u2003\u3000x y\u2029\n"), (std::pair<size_t, size_t>{10, 13}));
  EXPECT_EQ(trimmed(" \n").first, trimmed(" \n").second);
  EXPECT_EQ(trimmed(""), (std::pair<size_t, size_t>{0, 0}));
  EXPECT_EQ(trimmed("\u200b"), (std::pair<size_t, size_t>{0, 3}));  // not white space
}

TEST(Altered, ChangesLettersOnly) {
  EXPECT_EQ(altered("Az9 <think>x</think> [INST]!\n"), "Ba0 <think>y</think> [INST]!\n");
  EXPECT_EQ(altered("a < b > c"), "b < c > d");
  EXPECT_EQ(altered("\u3000\u2003 \n"), "\u3000\u2003 \n");
  const std::string text = "东京 🐘 é";
  EXPECT_EQ(altered(text).size(), text.size());
  EXPECT_NE(altered(text), text);
  EXPECT_EQ(altered(altered("東京")), "東京");
}

}  // namespace
}  // namespace inlaid::text

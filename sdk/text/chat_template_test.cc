#include "sdk/text/chat_template.h"

#include <thread>

#include "sdk/text/testing.h"

namespace inlaid::text {
namespace {

const Json kHi = {{{"role", "user"}, {"content", "Hi"}}};

std::string render(const std::string& source, const Json& extra = {}) {
  return ChatTemplate::compile(source, special_tokens(), "test")->render(kHi, false, extra);
}

TEST(ChatTemplate, SeesSpecialTokensAndFurtherVariables) {
  EXPECT_EQ(render("{{ bos_token }}{{ x.y[1] }}{{ messages[0].content }}", {{"x", {{"y", {1, 2}}}}}),
            "<s>2Hi");
  EXPECT_EQ(render("{{ tools is none }}{{ documents is none }}{{ add_generation_prompt }}"), "TrueTrueFalse");
  EXPECT_EQ(render("{{ eos_token }}", {{"eos_token", "other"}}), "other");
  EXPECT_EQ(render("{% for k in x %}{{ k }}{% endfor %}", {{"x", {{"z", 1}, {"a", 2}}}}),
            "za");  // order as written
}

TEST(ChatTemplate, ReasoningIsSeenUnderTheNamesThatTemplatesRead) {
  const auto t =
      ChatTemplate::compile("{{ messages[0].reasoning_content }},{{ messages[0].thinking }}", {}, "test");
  EXPECT_EQ(t->render({{{"role", "assistant"}, {"reasoning", "r"}}}, false, {}), "r,r");
  EXPECT_EQ(
      t->render({{{"role", "assistant"}, {"thinking", "t"}, {"reasoning_content", nullptr}}}, false, {}),
      "t,t");
}

TEST(ChatTemplate, RefusesTemplatesThatDoNotParse) {
  for (const auto& [source, part] : std::vector<std::pair<std::string, std::string>>{
           {"a\nb\n{% if x %}", "line 3"},
           {"{{ 1 + }}", "line 1"},
           {"{% nonsense %}", "nonsense"},
           {"\n{% generation %}x", "line 2: generation is not closed"},
           {"x{% endgeneration %}", "line 1: endgeneration without generation"},
           {"{% for x in y %}{% generation %}{% endfor %}{% endgeneration %}", "line 1"},
           {"\xFF", "invalid UTF-8"},
           {std::string(2 << 20, 'a'), "over the limit"}}) {
    const Error error = error_of([&] { ChatTemplate::compile(source, {}, "some.jinja"); });
    EXPECT_EQ(error.code(), Code::kInvalidArgument);
    EXPECT_NE(error.message().find("some.jinja"), std::string::npos) << error.message();
    EXPECT_NE(error.message().find(part), std::string::npos) << error.message();
  }
}

TEST(ChatTemplate, RefusesMessagesOfAnotherShape) {
  const auto t = golden_template("chatml");
  for (const Json& bad :
       {Json("x"), Json({1}), Json({{{"content", "x"}}}), Json({{{"role", 1}}}), Json(nullptr)}) {
    EXPECT_EQ(error_of([&] { (void)t->render(bad, false, {}); }).code(), Code::kInvalidArgument) << bad;
  }
  EXPECT_EQ(error_of([&] { (void)t->render(kHi, false, {{"messages", 1}}); }).code(), Code::kInvalidArgument);
  EXPECT_EQ(error_of([&] { (void)t->render(kHi, false, Json(1)); }).code(), Code::kInvalidArgument);
  EXPECT_EQ(error_of([&] {
              (void)t->render({{{"role", "\xFF"}}}, false, {});
            }).code(),
            Code::kInvalidArgument);
}

TEST(ChatTemplate, ErrorsOfTemplatesNameLineAndReason) {
  const Error raised = error_of([] { render("\n\n{{ raise_exception('no system role') }}"); });
  EXPECT_EQ(raised.code(), Code::kInvalidArgument);
  EXPECT_EQ(raised.message(), "test: line 3: raised by the template: no system role");
  EXPECT_NE(error_of([] { render("{{ nothing.there }}"); }).message().find("line 1"), std::string::npos);
}

TEST(ChatTemplate, StrftimeShowsTheDateOfTheVariable) {
  const std::string all =
      "{{ strftime_now('%Y-%m-%d %H:%M:%S %d %b %Y %A %B %a %j %-d %I %p %y %e %% %F %T') }}";
  EXPECT_EQ(render(all, {{"date", "2024-02-29T13:05:09"}}),
            "2024-02-29 13:05:09 29 Feb 2024 Thursday February Thu 060 29 01 PM 24 29 % 2024-02-29 13:05:09");
  EXPECT_EQ(render("{{ strftime_now('%d %b %Y %A') }}", {{"date", "1969-12-31"}}), "31 Dec 1969 Wednesday");
  EXPECT_EQ(render("{{ strftime_now('%Y%m%d') | length }}"), "8");
  EXPECT_GE(render("{{ strftime_now('%Y') }}"), "2024");
  EXPECT_EQ(render("{{ date }}", {{"date", "today"}}), "today");
  for (const char* bad : {"today", "2023-02-29", "2024-13-01", "2024-01-01T25:00", "2024-1-1", "24-01-01"}) {
    const Error error = error_of([&] { render("{{ strftime_now('%Y') }}", {{"date", bad}}); });
    EXPECT_NE(error.message().find("'date' must be"), std::string::npos) << bad << error.message();
  }
  EXPECT_NE(error_of([] { render("{{ strftime_now('%Q') }}"); }).message().find("%Q"), std::string::npos);
}

TEST(ChatTemplate, GenerationTagsInTextAreLeftAlone) {
  EXPECT_EQ(render("{{ '{% generation %}' }}{# {% generation %} #}{% raw %}{% generation %}{% endraw %}"),
            "{% generation %}{% generation %}");
  EXPECT_EQ(render("a {%- generation -%} b {%- endgeneration -%} c"), "abc");
}

// Whatever a template does, a render ends soon, in bounded memory, with an error.
TEST(ChatTemplate, HostileTemplatesRunOutOfTheirBudget) {
  const std::string loop = "{% for i in range(100000) %}";
  for (const std::string& source : {
           loop + loop + loop + "{% endfor %}{% endfor %}{% endfor %}",
           loop + loop + "xxxxxxxxxxxxxxxx{% endfor %}{% endfor %}",
           "{% set ns = namespace(x='aaaaaaaaaaaaaaaa') %}" + loop +
               "{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
           "{% set ns = namespace(x='aaaaaaaaaaaaaaaa') %}" + loop +
               "{% set ns.x = ns.x + ns.x %}{% endfor %}",
           "{% set ns = namespace(x=[1]) %}" + loop +
               "{% set ns.x = ns.x + ns.x %}{% endfor %}{{ ns.x | list | length }}",
           std::string("{{ 'a' * 99999999999 }}"),
           std::string("{{ ('a' * 90000000) * 50 }}"),
           std::string("{{ '%9999999999d' | format(1) }}"),
           std::string("{{ range(10000000000) | list }}"),
           std::string("{% set ns = namespace(x='a') %}") + loop +
               "{% set ns.x = ns.x.replace('a', 'aaaaaaaa') %}{% endfor %}",
           "{% set x %}" + loop + loop + "xxxxxxxxxxxxxxxx{% endfor %}{% endfor %}{% endset %}",
           std::string("{% macro m(x) %}{{ m(x ~ x) }}{% endmacro %}{{ m('a') }}"),
           std::string("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"),
           "{% set ns = namespace(x='a') %}" + loop +
               "{% set ns.x = [ns.x, ns.x, ns.x] | tojson %}{% endfor %}",
       }) {
    const Error error = error_of([&] { render(source); });
    EXPECT_TRUE(error.code() == Code::kResourceExhausted || error.code() == Code::kInvalidArgument)
        << source << ": " << error.message();
  }
}

// A value nested as deep as the budget allows is dropped without an overflow of the stack.
TEST(ChatTemplate, DeeplyNestedValuesDoNotOverflowTheStack) {
  const std::string nest =
      "{% set ns = namespace(x=[]) %}{% for i in range(100000) %}{% set ns.x = [ns.x] %}{% endfor %}";
  EXPECT_EQ(render(nest + "ok"), "ok");
  const std::string deeper = "{% set ns = namespace(x=[]) %}" + std::string("{% for j in range(90) %}") +
                             "{% for i in range(100000) %}{% set ns.x = [ns.x] %}{% endfor %}{% endfor %}";
  EXPECT_EQ(error_of([&] { render(deeper); }).code(), Code::kResourceExhausted);
  EXPECT_NE(error_of([&] { render(nest + "{{ ns.x | tojson }}"); }).message().find("nested"),
            std::string::npos);
  EXPECT_EQ(error_of([&] { render(std::string(100000, '(') + "{{" + std::string(100000, '(')); }).code(),
            Code::kInvalidArgument);
  EXPECT_EQ(error_of([&] { render("{{" + std::string(100000, '[')); }).code(), Code::kInvalidArgument);
  std::string ifs;
  for (int i = 0; i < 20000; ++i) ifs += "{% if 1 %}";
  EXPECT_EQ(error_of([&] { render(ifs); }).code(), Code::kInvalidArgument);
}

TEST(ChatTemplate, RefusesAConversationThatIsTooLong) {
  const Json messages = {{{"role", "user"}, {"content", std::string(17'000'000, 'x')}}};
  EXPECT_EQ(error_of([&] { (void)golden_template("chatml")->render(messages, false, {}); }).code(),
            Code::kInvalidArgument);
}

TEST(ChatTemplate, HasNoAccessToAnythingElse) {
  for (const char* source : {"{% include 'x' %}", "{% import 'x' as y %}", "{% extends 'x' %}",
                             "{{ debug() }}", "{{ ''.__class__.__mro__ }}", "{{ self.x }}"}) {
    EXPECT_EQ(error_of([&] { render(source); }).code(), Code::kInvalidArgument) << source;
  }
}

TEST(ChatTemplate, EightThreadsRenderAlike) {
  const auto t = golden_template("qwen3_like");
  const Json messages = {{{"role", "user"}, {"content", "q"}},
                         {{"role", "assistant"}, {"content", "<think>\nt\n</think>\n\na"}}};
  const std::string expected = t->render(messages, true, {});
  std::vector<std::thread> threads;
  for (int n = 0; n < 8; ++n) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) EXPECT_EQ(t->render(messages, true, {}), expected);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace inlaid::text

#include "sdk/data/dataset.h"

#include <gtest/gtest.h>

#include <set>

#include "sdk/data/testing/support.h"

namespace inlaid::data {
namespace {

using testing::bytes;
using testing::contents;
using testing::error_of;
using testing::join;
using testing::kEnd;
using testing::World;

std::string text_row(const std::string& text) {
  return to_text({{"text", text}}) + "\n";
}

std::string chat_row(const std::string& question, const std::string& answer) {
  return to_text({{"messages", Json::array({{{"role", "user"}, {"content", question}},
                                            {{"role", "assistant"}, {"content", answer}}})}}) +
         "\n";
}

TEST(Dataset, ReadsAllFormatsInOrderAndReportsTheDecision) {
  World w;
  w.file("d/a.jsonl", chat_row("q", "a"));
  w.file(
      "d/b.json",
      R"([{"prompt": "p", "completion": "c", "id": 1},)"
      R"( {"prompt": "r", "completion": "s", "id": 2, "x": 3}])");
  w.file("d/c.txt", "one\ntwo\n\nthree\n");
  w.source("d/*.json*");
  w.source("d/c.txt");
  w.source("d/b.json").format = "prompt_completion";
  w.options.sources.back().limit = 1;
  const auto dataset = w.open();
  ASSERT_EQ(dataset->size(), 6);
  EXPECT_EQ(
      to_text(dataset->report().to_json()),
      R"({"rows":6,"used":6,"truncated":0,"held_out":0,"tokens":46,"target_tokens":20,"boundary_tokens":0,)"
      R"("files":[)"
      R"({"file":"d/a.jsonl","container":"jsonl","format":"chat","decided_by":"row 1 has 'messages'",)"
      R"("rows":1,"unused_columns":{}},)"
      R"({"file":"d/b.json","container":"json","format":"prompt_completion",)"
      R"("decided_by":"row 1 has 'prompt' and 'completion'","rows":2,"unused_columns":{"id":2,"x":1}},)"
      R"({"file":"d/c.txt","container":"text","format":"text","decided_by":"a plain text file","rows":2,)"
      R"("unused_columns":{}},)"
      R"({"file":"d/b.json","container":"json","format":"prompt_completion",)"
      R"("decided_by":"configured","rows":1,"unused_columns":{"id":1}}],)"
      R"("refused":[],"dropped":[],"warnings":[]})");
  EXPECT_EQ(dataset->sample(1).row, 1);
  const auto tokens = [&](int64_t i) {
    const Sample sample = dataset->sample(i);
    return std::vector<int32_t>(sample.tokens.begin(), sample.tokens.end());
  };
  EXPECT_EQ(tokens(1), join({bytes("pc"), {kEnd}}));
  EXPECT_EQ(tokens(2), join({bytes("rs"), {kEnd}}));
  EXPECT_EQ(tokens(3), join({bytes("one\ntwo"), {kEnd}}));
  EXPECT_EQ(tokens(4), join({bytes("three"), {kEnd}}));
  EXPECT_EQ(tokens(5), tokens(1));
  EXPECT_EQ(dataset->sample(5).row, 5);
  EXPECT_EQ(dataset->longest(), 23);
  EXPECT_EQ(dataset->shortest(), 3);
  EXPECT_EQ(error_of([&] { dataset->sample(6); }).code(), Code::kOutOfRange);
}

TEST(Dataset, ReportSurvivesJson) {
  World w;
  w.file("a.jsonl", text_row("abc") + "x\n" + text_row("abcdefghijkl") + R"({"text": "ab", "id": 1})");
  w.source("a.jsonl");
  w.options.on_bad_row = "list";
  w.options.truncation = "drop";
  w.options.max_length = 5;
  const Report report = w.open()->report();
  EXPECT_EQ(report.refused.size(), 1u);
  EXPECT_EQ(report.dropped.size(), 1u);
  EXPECT_EQ(Report::from_json(report.to_json()), report);
  EXPECT_EQ(error_of([] { Report::from_json(Json::object()); }).code(), Code::kInvalidArgument);
}

// Sizes that cross batches of work and segments of memory, bad rows in between.
std::string many_rows(int count) {
  std::string out;
  for (int i = 0; i < count; ++i) {
    out += i % 97 == 50
               ? "{broken\n"
               : text_row("row " + std::to_string(i) + std::string(static_cast<size_t>(i % 40), 'z'));
  }
  return out;
}

TEST(Dataset, IsTheSameForAnyNumberOfThreads) {
  std::set<std::string> results, errors;
  for (const int threads : {1, 2, 5}) {
    World w(threads);
    w.file("a.jsonl", many_rows(9000));
    w.source("a.jsonl");
    errors.insert(error_of([&] { w.open(); }).message());
    w.options.on_bad_row = "list";
    w.options.eval_fraction = 0.1;
    results.insert(contents(*w.open()));
  }
  EXPECT_EQ(results.size(), 1u);
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_TRUE(errors.begin()->starts_with("a.jsonl: row 51: JSON: line 1, column 2: ")) << *errors.begin();
}

TEST(Dataset, StopsAtTheFirstBadRowWithDetails) {
  World w;
  w.file("a.jsonl", text_row("ok") + "\n" + R"({"text": 3})" + "\n" + "{broken\n");
  w.source("a.jsonl");
  const Error e = error_of([&] { w.open(); });
  EXPECT_EQ(e.code(), Code::kInvalidArgument);
  EXPECT_EQ(e.message(), "a.jsonl: row 3: column 'text' must be a text, is number");
  EXPECT_EQ(e.details(), R"({"file":"a.jsonl","row":3,"reason":"column 'text' must be a text, is number"})");
}

TEST(Dataset, ListsBadRows) {
  World w;
  w.file("a.jsonl", "{broken\n" + text_row("ok") + R"({"text": ""})" + "\n" + R"({"txt": "x"})" + "\n" +
                        text_row("fine"));
  w.source("a.jsonl");
  w.options.on_bad_row = "list";
  const auto dataset = w.open();
  const Report& report = dataset->report();
  ASSERT_EQ(report.refused.size(), 3u);
  EXPECT_EQ(report.refused[0].row, 1);
  EXPECT_EQ(report.refused[1], (Report::Row{"a.jsonl", 3, "the text is empty"}));
  EXPECT_EQ(report.refused[2], (Report::Row{"a.jsonl", 4, "column 'text' is missing"}));
  EXPECT_EQ(report.files[0].decided_by, "row 2 has 'text'");
  EXPECT_EQ(report.rows, 5);
  EXPECT_EQ(report.used, 2);
  EXPECT_EQ(dataset->sample(0).row, 1);  // identities do not close up
  EXPECT_EQ(dataset->sample(1).row, 4);
}

TEST(Dataset, ABrokenArrayIsNeverListed) {
  World w;
  w.file("a.json", R"([{"text": "a"}, {"text": "b"})");
  w.source("a.json");
  w.options.on_bad_row = "list";
  EXPECT_EQ(error_of([&] { w.open(); }).message(),
            "a.json: row 2: the JSON array does not end: the file is cut off or a bracket is missing");
}

TEST(Dataset, AnEmptyResultIsAnError) {
  World w;
  w.file("a.jsonl", "");
  w.source("a.jsonl");
  EXPECT_EQ(error_of([&] { w.open(); }).message(),
            "data: no sample in 1 file(s), first 'a.jsonl': 0 rows, 0 refused, 0 dropped, 0 held out");
  w.file("a.jsonl", "x\n");
  w.options.on_bad_row = "list";
  const std::string message = error_of([&] { w.open(); }).message();
  EXPECT_TRUE(
      message.starts_with("data: no sample in 1 file(s), first 'a.jsonl': 1 rows, 1 refused, 0 dropped, 0 "
                          "held out; the first: a.jsonl: row 1: "))
      << message;
}

TEST(Dataset, HoldsOutByContent) {
  World w;
  std::string rows;
  for (int i = 0; i < 2000; ++i) rows += text_row("row " + std::to_string(i));
  w.file("a.jsonl", rows);
  w.source("a.jsonl");
  w.options.eval_fraction = 0.1;
  const auto train = w.open();
  w.options.held_out = true;
  const auto held_out = w.open();
  EXPECT_EQ(train->size() + held_out->size(), 2000);
  EXPECT_EQ(train->report().held_out, held_out->size());
  EXPECT_EQ(held_out->report().held_out, train->size());
  EXPECT_NEAR(static_cast<double>(held_out->size()), 200, 5 * 13.4);  // five standard deviations
  std::set<int64_t> seen;
  for (int64_t i = 0; i < train->size(); ++i) seen.insert(train->sample(i).row);
  for (int64_t i = 0; i < held_out->size(); ++i) EXPECT_TRUE(seen.insert(held_out->sample(i).row).second);

  // The same rows in another order and with others around them fall on the same side.
  std::string reversed = text_row("another");
  for (int i = 1999; i >= 0; --i) reversed += text_row("row " + std::to_string(i));
  w.file("a.jsonl", reversed);
  const auto again = w.open();
  std::set<std::string> before, after;
  for (int64_t i = 0; i < held_out->size(); ++i)
    before.insert(w.tokenizer->decode(held_out->sample(i).tokens, true));
  for (int64_t i = 0; i < again->size(); ++i)
    after.insert(w.tokenizer->decode(again->sample(i).tokens, true));
  after.erase("another");
  EXPECT_EQ(before, after);
}

TEST(Dataset, LimitCountsRowsOfASourceOverItsFiles) {
  World w;
  w.file("1.jsonl", text_row("a") + text_row("b"));
  w.file("2.jsonl", text_row("c") + text_row("d"));
  w.file("3.jsonl", text_row("e"));
  w.source("[123].jsonl").limit = 3;
  const auto dataset = w.open();
  EXPECT_EQ(dataset->size(), 3);
  EXPECT_EQ(dataset->report().files.size(), 2u);
}

TEST(Dataset, WarnsWhenNoStopTokenIsTrained) {
  World w;
  w.file("a.jsonl", chat_row("q", "a"));
  w.source("a.jsonl");
  EXPECT_TRUE(w.open()->report().warnings.empty());
  w.chat_template = text::ChatTemplate::compile(
      "{% for m in messages %}{{ m['role'] + ': ' + m['content'] + '\n' }}{% endfor %}", Json::object(),
      "no end");
  EXPECT_EQ(w.open()->report().warnings,
            (std::vector<std::string>{
                "1 of 1 chat samples train no stop token (<|im_end|>): from them the model does not "
                "learn to end its turn"}));
  w.file("a.jsonl", R"({"prompt": "ok? ", "completion": "yes!"})");
  EXPECT_EQ(w.open()->report().warnings,
            (std::vector<std::string>{
                "1 tokens begin before a trained text and end inside it; they are not trained (does a "
                "prompt end with a space?)"}));
}

TEST(Dataset, VariablesReachTheTemplateAndSetItsClock) {
  World w;
  w.file("a.jsonl", chat_row("q", "a"));
  w.source("a.jsonl");
  w.chat_template = text::ChatTemplate::compile(
      "{{ strftime_now('%Y') }}{{ mood }}{% for m in messages %}{{ m['content'] }}<|im_end|>{% endfor %}",
      Json::object(), "dated");
  EXPECT_EQ(w.open()->report().warnings,
            (std::vector<std::string>{
                "the chat template writes the present date: another day gives other samples"}));
  w.options.template_variables = {{"date", "1999-12-31"}, {"mood", "!"}};
  const auto dataset = w.open();
  EXPECT_TRUE(dataset->report().warnings.empty());
  EXPECT_EQ(w.tokenizer->decode(dataset->sample(0).tokens, false), "1999!q<|im_end|>a<|im_end|>");
  w.options.template_variables = Json::array();
  EXPECT_EQ(error_of([&] { w.open(); }).message(),
            "the chat template's variables must be an object, are array");
}

TEST(Dataset, ARowThatATemplateCannotRenderIsBad) {
  World w;
  w.file("a.jsonl", chat_row("q", "a") + chat_row("loop", "a") + chat_row("no", "a"));
  w.source("a.jsonl");
  w.options.on_bad_row = "list";
  w.chat_template = text::ChatTemplate::compile(
      "{% for m in messages %}{% if m['content'] == 'no' %}{{ raise_exception('never') }}{% endif %}"
      "{% if m['content'] == 'loop' %}{% for i in range(9999) %}{% for j in range(9999) %}{% for k in "
      "range(9999) %}"
      "{{ i }}{% endfor %}{% endfor %}{% endfor %}{% endif %}{{ m['content'] }}<|im_end|>{% endfor %}",
      Json::object(), "t");
  const auto dataset = w.open();
  EXPECT_EQ(dataset->size(), 1);
  ASSERT_EQ(dataset->report().refused.size(), 2u);
  EXPECT_EQ(dataset->report().refused[0].row, 2);
  EXPECT_NE(dataset->report().refused[1].reason.find("never"), std::string::npos);
}

TEST(Dataset, RefusesOptionsWithoutMeaning) {
  World w;
  w.file("a.jsonl", text_row("a"));
  EXPECT_EQ(error_of([&] { w.open(); }).message(), "data: no source is given");
  w.source("a.jsonl");
  const auto message = [&] { return error_of([&] { w.open(); }).message(); };
  w.options.on_bad_row = "skip";
  EXPECT_EQ(message(), "data.on_bad_row 'skip' is not one of error, list");
  w.options.on_bad_row = "error";
  w.options.eval_fraction = 1;
  EXPECT_EQ(message(), "data.eval_fraction 1 must be from 0 to below 1");
  w.options.eval_fraction = 0;
  w.options.held_out = true;
  EXPECT_EQ(message(), "data.eval_fraction is 0: no row is held out");
  w.options.held_out = false;
  w.options.sources[0].limit = -1;
  EXPECT_EQ(message(), "data source 'a.jsonl': limit -1 must not be negative");
  w.options.sources[0].limit = 0;
  w.options.sources[0].format = "chatt";
  EXPECT_EQ(
      message(),
      "data format 'chatt' is not one of auto, chat, prompt_completion, alpaca, text; did you mean 'chat'?");
  w.file("b.txt", "x");
  w.options.sources[0].path = "b.txt";
  w.options.sources[0].format = "chat";
  EXPECT_EQ(message(), "b.txt: a plain text file cannot have the format chat");
}

TEST(Dataset, CountsItsMemoryAndKeepsItsQuota) {
  World w;
  w.file("a.jsonl", many_rows(3000));
  w.source("a.jsonl");
  w.options.on_bad_row = "list";
  {
    const auto dataset = w.open();
    const MemoryAccount::Usage usage = w.account->usage();
    const uint64_t held = usage.current[static_cast<int>(Category::kData)];
    EXPECT_GE(held, static_cast<uint64_t>(dataset->report().tokens) * 8);
    EXPECT_EQ(held, usage.current_total);
    EXPECT_EQ(held, usage.peak_total);  // nothing is moved, so nothing is held twice
  }
  EXPECT_EQ(w.account->usage().current_total, 0u);
  w.account = MemoryAccount::root("small", 100000, default_allocator());
  EXPECT_EQ(error_of([&] { w.open(); }).code(), Code::kResourceExhausted);
  EXPECT_EQ(w.account->usage().current_total, 0u);
}

TEST(Dataset, IdentityFollowsContent) {
  World w;
  w.file("a.jsonl", chat_row("q", "a"));
  w.source("a.jsonl");
  const std::string first = w.open()->identity();
  EXPECT_EQ(first.size(), 64u);
  EXPECT_EQ(w.open()->identity(), first);
  w.options.loss_on = "all";  // the same tokens, other targets
  EXPECT_NE(w.open()->identity(), first);
  w.options.loss_on = "assistant";
  w.file("a.jsonl", chat_row("q", "b"));
  EXPECT_NE(w.open()->identity(), first);
}

}  // namespace
}  // namespace inlaid::data

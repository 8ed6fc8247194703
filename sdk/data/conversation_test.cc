#include "sdk/data/conversation.h"

#include <gtest/gtest.h>

#include "sdk/data/testing/support.h"

namespace inlaid::data {
namespace {

using testing::error_of;

const Json kNoRenames = Json::object();

Conversation read(Format format, std::string_view row, const Json& renames = kNoRenames) {
  const Json json = parse_json(row, "row");
  Columns columns(json, renames);
  return read_conversation(format, &columns);
}

std::string reason(Format format, std::string_view row, const Json& renames = kNoRenames) {
  const Error e = error_of([&] { read(format, row, renames); });
  EXPECT_TRUE(e.code() == Code::kInvalidArgument || e.code() == Code::kOk);
  return e.message();
}

std::string detected(std::string_view row, const Json& renames = kNoRenames) {
  std::string keys;
  const Format format = detect_format(parse_json(row, "row"), renames, &keys);
  return std::string(format_name(format)) + " by " + keys;
}

TEST(Conversation, DetectsFormats) {
  EXPECT_EQ(detected(R"({"messages": []})"), "chat by 'messages'");
  EXPECT_EQ(detected(R"({"conversations": []})"), "chat by 'conversations'");
  EXPECT_EQ(detected(R"({"completion": "", "prompt": ""})"),
            "prompt_completion by 'prompt' and 'completion'");
  EXPECT_EQ(detected(R"({"instruction": "", "output": "", "text": ""})"),
            "alpaca by 'instruction' and 'output'");
  EXPECT_EQ(detected(R"({"text": ""})"), "text by 'text'");
  EXPECT_EQ(detected(R"({"prompt": ""})"), " by ");
  EXPECT_EQ(detected(R"({"q": "", "a": ""})", {{"prompt", "q"}, {"completion", "a"}}),
            "prompt_completion by 'q' and 'a'");
}

TEST(Conversation, ReadsChat) {
  const Conversation c = read(Format::kChat, R"({"messages": [
    {"role": "system", "content": "S"},
    {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
    {"role": "assistant", "content": null, "tool_calls": [{"function": {"name": "f"}}], "train": false},
    {"role": "tool", "name": "f", "content": "1"}, {"role": "assistant", "content": "A", "weight": 1}],
    "tools": "[{\"x\": 1}]"})");
  EXPECT_EQ(to_text(c.messages),
            R"([{"role":"system","content":"S"},{"role":"user","content":"ab"},)"
            R"({"role":"assistant","content":null,"tool_calls":[{"function":{"name":"f"}}]},)"
            R"({"role":"tool","name":"f","content":"1"},{"role":"assistant","content":"A"}])");
  EXPECT_EQ(to_text(c.extra), R"({"tools":[{"x":1}]})");
  EXPECT_EQ(c.flags,
            (std::vector<Flag>{Flag::kUnset, Flag::kUnset, Flag::kMasked, Flag::kUnset, Flag::kTrained}));
  EXPECT_EQ(c.completion_from, 0u);
}

TEST(Conversation, ReadsShareGpt) {
  const Conversation c =
      read(Format::kChat, R"({"system": "S", "conversations": [{"from": "human", "value": "q"},
    {"from": "function_call", "value": "{\"name\": \"f\", \"arguments\": {\"a\": 1}}"},
    {"from": "observation", "value": "1"},
    {"from": "gpt", "value": "a", "train": true}], "tools": "", "documents": [{"t": 1}]})");
  EXPECT_EQ(to_text(c.messages), R"([{"role":"system","content":"S"},{"role":"user","content":"q"},)"
                                 R"({"role":"assistant","content":"","tool_calls":[{"type":"function",)"
                                 R"("function":{"name":"f","arguments":{"a":1}}}]},)"
                                 R"({"role":"tool","content":"1"},{"role":"assistant","content":"a"}])");
  EXPECT_EQ(to_text(c.extra), R"({"documents":[{"t":1}]})");
  EXPECT_EQ(c.flags.back(), Flag::kTrained);
}

TEST(Conversation, ReadsPromptAndCompletion) {
  const Conversation texts = read(Format::kPromptCompletion, R"({"prompt": "2+2=", "completion": "4"})");
  EXPECT_EQ(texts.text, "2+2=4");
  EXPECT_EQ(texts.prompt_bytes, 4u);
  EXPECT_FALSE(texts.is_chat());
  const Conversation lists = read(Format::kPromptCompletion, R"({"prompt": [{"role": "user", "content": "q"}],
    "completion": [{"role": "assistant", "content": "a"}]})");
  EXPECT_EQ(to_text(lists.messages), R"([{"role":"user","content":"q"},{"role":"assistant","content":"a"}])");
  EXPECT_EQ(lists.completion_from, 1u);
  const Conversation mixed =
      read(Format::kPromptCompletion, R"({"prompt": [{"role": "user", "content": "q"}], "completion": "a"})");
  EXPECT_EQ(mixed.messages, lists.messages);
}

TEST(Conversation, ReadsAlpaca) {
  const Conversation c =
      read(Format::kAlpaca, R"({"instruction": "Add", "input": "1 2", "output": "3", "system": "S",
    "history": [["q", "a"]]})");
  EXPECT_EQ(
      to_text(c.messages),
      R"([{"role":"system","content":"S"},{"role":"user","content":"q"},{"role":"assistant","content":"a"},)"
      R"({"role":"user","content":"Add\n1 2"},{"role":"assistant","content":"3"}])");
  EXPECT_EQ(c.flags.size(), 5u);
  const Conversation plain = read(Format::kAlpaca, R"({"instruction": "Add", "input": null, "output": "3"})");
  EXPECT_EQ(to_text(plain.messages),
            R"([{"role":"user","content":"Add"},{"role":"assistant","content":"3"}])");
}

TEST(Conversation, FollowsRenamesAndListsUnusedColumns) {
  const Json renames = {{"prompt", "question"}, {"completion", "prompt"}};
  const Json row = parse_json(R"({"question": "q", "prompt": "a", "id": 7, "completion": "unused"})", "row");
  Columns columns(row, renames);
  EXPECT_EQ(read_conversation(Format::kPromptCompletion, &columns).text, "qa");
  EXPECT_EQ(columns.unused(), (std::vector<std::string>{"id", "completion"}));
}

TEST(Conversation, RefusesBadRenames) {
  EXPECT_EQ(error_of([] {
              check_renames({{"mesages", "x"}}, "source");
            }).message(),
            "source: 'columns' renames 'mesages', which no format has; did you mean 'messages'?");
  EXPECT_EQ(error_of([] {
              check_renames({{"text", 1}}, "source");
            }).message(),
            "source: 'columns.text' must be the name of a column in the file");
  EXPECT_EQ(error_of([] { check_renames(Json::array(), "source"); }).message(),
            "source: 'columns' must be an object, is array");
}

TEST(Conversation, RefusesUnknownFormats) {
  EXPECT_EQ(parse_format("auto"), Format::kUnknown);
  EXPECT_EQ(error_of([] { parse_format("alpacca"); }).message(),
            "data format 'alpacca' is not one of auto, chat, prompt_completion, alpaca, text; did you mean "
            "'alpaca'?");
}

TEST(Conversation, NamesWhatIsWrongWithARow) {
  const auto chat = [](const std::string& message) {
    return reason(Format::kChat, R"({"messages": [{"role": "user", "content": "q"}, )" + message + "]}");
  };
  EXPECT_EQ(chat("3"), "message 2 of 'messages' must be an object, is number");
  EXPECT_EQ(chat(R"({"content": "x"})"), "message 2 of 'messages': 'role' must be a text");
  EXPECT_EQ(chat(R"({"role": "asistant", "content": "x"})"),
            "message 2 of 'messages': unknown role 'asistant'; did you mean 'assistant'?");
  EXPECT_EQ(chat(R"({"role": "assistant"})"), "message 2 of 'messages' (assistant) has no content");
  EXPECT_EQ(chat(R"({"role": "assistant", "content": 5})"),
            "message 2 of 'messages': 'content' must be a text or a list of parts, is number");
  EXPECT_EQ(chat(R"({"role": "user", "content": [{"type": "image"}]})"),
            "message 2 of 'messages': content part of type 'image' is not supported, only 'text'");
  EXPECT_EQ(chat(R"({"role": "user", "content": [{"type": "text"}]})"),
            "message 2 of 'messages': a text part must have 'text'");
  EXPECT_EQ(chat(R"({"role": "assistant", "content": "x", "weight": 0.5})"),
            "message 2 of 'messages': 'weight' must be 0 or 1; other weights are not supported");
  EXPECT_EQ(chat(R"({"role": "assistant", "content": "x", "train": 1})"),
            "message 2 of 'messages': 'train' must be true or false");
  EXPECT_EQ(chat(R"({"role": "assistant", "content": "x", "train": true, "weight": 0})"),
            "message 2 of 'messages': 'train' and 'weight' contradict each other");
  EXPECT_EQ(chat(R"({"from": "human", "value": 1})"), "message 2 of 'messages': 'value' must be a text");
  EXPECT_EQ(chat(R"({"from": "humann", "value": "x"})"),
            "message 2 of 'messages': unknown speaker 'humann' in 'from'; did you mean 'human'?");

  EXPECT_EQ(reason(Format::kChat, R"({"messages": []})"), "column 'messages' has no message");
  EXPECT_EQ(reason(Format::kChat, R"({"messages": "x"})"),
            "column 'messages' must be a list of messages, is string");
  EXPECT_EQ(reason(Format::kChat, R"({"id": 1})"), "column 'messages' is missing");
  EXPECT_EQ(reason(Format::kChat, R"({"d": null})", {{"messages", "d"}}), "column 'd' is null");
  EXPECT_EQ(reason(Format::kChat, R"({"system": "S", "messages": [{"role": "system", "content": "T"}]})"),
            "both a column 'system' and a system message");
  EXPECT_EQ(reason(Format::kChat, R"({"messages": [{"role": "user", "content": "q"}], "images": ["a.png"]})"),
            "column 'images' refers to media, which is not supported");
  EXPECT_EQ(reason(Format::kPromptCompletion, R"({"prompt": "p", "completion": ""})"),
            "the completion is empty");
  EXPECT_EQ(reason(Format::kPromptCompletion, R"({"prompt": "p", "completion": []})"),
            "'completion' must be a text like 'prompt', is array");
  EXPECT_EQ(reason(Format::kPromptCompletion, R"({"prompt": [], "completion": "x"})"),
            "the prompt has no message");
  EXPECT_EQ(reason(Format::kPromptCompletion, R"({"prompt": "p", "completion": "c", "label": false})"),
            "column 'label' grades the completion (true, false), which is not supported; keep the good rows "
            "and drop the column");
  EXPECT_EQ(reason(Format::kPromptCompletion, R"({"prompt": "p", "chosen": "c", "rejected": "r"})"),
            "column 'chosen' marks preference data, which is not supported");
  EXPECT_EQ(reason(Format::kAlpaca, R"({"instruction": "", "output": "x"})"), "the instruction is empty");
  EXPECT_EQ(reason(Format::kAlpaca, R"({"instruction": "x", "output": ""})"), "the output is empty");
  EXPECT_EQ(reason(Format::kAlpaca, R"({"instruction": "x", "output": 3})"),
            "column 'output' must be a text, is number");
  EXPECT_EQ(reason(Format::kAlpaca, R"({"instruction": "x", "output": "y", "history": [["a"]]})"),
            "an element of 'history' must be [question, answer], two texts");
  EXPECT_EQ(reason(Format::kText, R"({"text": ""})"), "the text is empty");
  EXPECT_EQ(reason(Format::kText, R"({"text": ["a"]})"), "column 'text' must be a text, is array");
}

}  // namespace
}  // namespace inlaid::data

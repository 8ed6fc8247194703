#include "sdk/data/conversation.h"

#include <algorithm>  // for find
#include <array>
#include <utility>

#include "sdk/base/error.h"
#include "sdk/base/utf8.h"

namespace inlaid::data {
namespace {

constexpr std::array<std::string_view, 12> kColumns = {"messages",    "conversations", "prompt", "completion",
                                                       "instruction", "input",         "output", "system",
                                                       "history",     "text",          "tools",  "documents"};
constexpr std::array<std::string_view, 6> kRoles = {"system",    "developer", "user",
                                                    "assistant", "tool",      "function"};

// ShareGPT's speakers. `function_call` is an assistant turn whose value is the call.
constexpr std::array<std::pair<std::string_view, std::string_view>, 14> kSpeakers = {{
    {"human", "user"},
    {"user", "user"},
    {"gpt", "assistant"},
    {"assistant", "assistant"},
    {"chatgpt", "assistant"},
    {"bing", "assistant"},
    {"model", "assistant"},
    {"function_call", "assistant"},
    {"system", "system"},
    {"developer", "developer"},
    {"tool", "tool"},
    {"observation", "tool"},
    {"function", "tool"},
    {"ipython", "tool"},
}};

template <typename... Parts>
[[noreturn]] void bad(const Parts&... parts) {
  fail(Code::kInvalidArgument, parts...);
}

std::string need_text(Columns* columns, std::string_view name) {
  const Json& value = columns->need(name);
  if (!value.is_string())
    bad("column '", columns->file_name(name), "' must be a text, is ", value.type_name());
  return value.get<std::string>();
}

std::string optional_text(Columns* columns, std::string_view name) {
  return columns->find(name) == nullptr ? std::string() : need_text(columns, name);
}

// A content: a text, or a list of text parts.
std::string join_parts(const Json& parts, const std::string& where) {
  std::string text;
  for (const Json& part : parts) {
    if (!part.is_object() || !part.contains("type") || !part["type"].is_string()) {
      bad(where, ": a content part must be an object with a 'type'");
    }
    const std::string type = part["type"].get<std::string>();
    if (type != "text")
      bad(where, ": content part of type '", excerpt(type), "' is not supported, only 'text'");
    if (!part.contains("text") || !part["text"].is_string()) bad(where, ": a text part must have 'text'");
    text += part["text"].get<std::string>();
  }
  return text;
}

Flag read_flag(const Json& message, const std::string& where) {
  Flag flag = Flag::kUnset;
  if (message.contains("train") && !message["train"].is_null()) {
    const Json& value = message["train"];
    if (!value.is_boolean()) bad(where, ": 'train' must be true or false");
    flag = value.get<bool>() ? Flag::kTrained : Flag::kMasked;
  }
  if (message.contains("weight") && !message["weight"].is_null()) {
    const Json& value = message["weight"];
    if (!value.is_number() || (value.get<double>() != 0 && value.get<double>() != 1)) {
      bad(where, ": 'weight' must be 0 or 1; other weights are not supported");
    }
    const Flag weight = value.get<double>() == 1 ? Flag::kTrained : Flag::kMasked;
    if (flag != Flag::kUnset && flag != weight) bad(where, ": 'train' and 'weight' contradict each other");
    flag = weight;
  }
  if (message.contains("train_detail"))
    bad(where, ": 'train_detail' is not supported; use 'train' for the whole message");
  return flag;
}

std::string speaker_role(const Json& message, const std::string& where) {
  const Json& from = message["from"];
  if (!from.is_string()) bad(where, ": 'from' must be a text, is ", from.type_name());
  const std::string name = from.get<std::string>();
  for (const auto& [speaker, role] : kSpeakers) {
    if (speaker == name) return std::string(role);
  }
  std::vector<std::string> known;
  for (const auto& entry : kSpeakers) known.emplace_back(entry.first);
  const std::string near = nearest(name, known);
  bad(where, ": unknown speaker '", excerpt(name), "' in 'from'", near.empty() ? "" : "; did you mean '",
      near, near.empty() ? "" : "'?");
}

// The value of a ShareGPT function_call, one call or a list of them, as tool_calls.
Json read_tool_calls(const std::string& value, const std::string& where) {
  Json calls;
  try {
    calls = parse_json(value, where);
  } catch (const Error& e) {
    bad(where, ": a function_call must be JSON: ", e.message());
  }
  if (calls.is_object()) calls = Json::array({std::move(calls)});
  if (!calls.is_array() || calls.empty())
    bad(where, ": a function_call must be an object or a list of objects");
  Json result = Json::array();
  for (Json& call : calls) {
    if (!call.is_object() || !call.contains("name") || !call.contains("arguments")) {
      bad(where, ": a function_call must have 'name' and 'arguments'");
    }
    Json wrapped = Json::object();
    wrapped["type"] = "function";
    wrapped["function"] = std::move(call);
    result.push_back(std::move(wrapped));
  }
  return result;
}

Json from_share_gpt(const Json& message, const std::string& where) {
  Json out = Json::object();
  out["role"] = speaker_role(message, where);
  if (!message.contains("value") || !message["value"].is_string()) bad(where, ": 'value' must be a text");
  if (message["from"] == "function_call") {
    out["content"] = "";
    out["tool_calls"] = read_tool_calls(message["value"].get<std::string>(), where);
  } else {
    out["content"] = message["value"];
  }
  return out;
}

Json from_chat(const Json& message, const std::string& where) {
  if (!message.contains("role") || !message["role"].is_string()) bad(where, ": 'role' must be a text");
  const std::string role = message["role"].get<std::string>();
  if (std::find(kRoles.begin(), kRoles.end(), role) == kRoles.end()) {
    const std::string near = nearest(role, std::vector<std::string>(kRoles.begin(), kRoles.end()));
    bad(where, ": unknown role '", excerpt(role), "'", near.empty() ? "" : "; did you mean '", near,
        near.empty() ? "" : "'?");
  }
  Json out = message;
  out.erase("train");
  out.erase("weight");
  const auto content = out.find("content");
  const bool has_content = content != out.end() && !content->is_null();
  if (!has_content) {
    if (!out.contains("tool_calls") || out["tool_calls"].is_null())
      bad(where, " (", role, ") has no content");
  } else if (content->is_array()) {
    *content = join_parts(*content, where);
  } else if (!content->is_string()) {
    bad(where, ": 'content' must be a text or a list of parts, is ", content->type_name());
  }
  return out;
}

void add_messages(const Json& list, const std::string& column, Conversation* out) {
  if (!list.is_array()) bad("column '", column, "' must be a list of messages, is ", list.type_name());
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string where = "message " + std::to_string(i + 1) + " of '" + column + "'";
    const Json& message = list[i];
    if (!message.is_object()) bad(where, " must be an object, is ", message.type_name());
    const bool share_gpt = !message.contains("role") && message.contains("from");
    out->messages.push_back(share_gpt ? from_share_gpt(message, where) : from_chat(message, where));
    out->flags.push_back(read_flag(message, where));
  }
}

void add_turn(std::string_view role, std::string content, Conversation* out) {
  Json message = Json::object();
  message["role"] = std::string(role);
  message["content"] = std::move(content);
  out->messages.push_back(std::move(message));
  out->flags.push_back(Flag::kUnset);
}

// Variables of the template: `tools` (a list, or a list written as JSON text) and `documents`.
void read_extra(Columns* columns, Conversation* out) {
  if (const Json* tools = columns->find("tools"); tools != nullptr && *tools != "") {
    const std::string name = columns->file_name("tools");
    Json list = tools->is_string() ? parse_json(tools->get<std::string>(), "column '" + name + "'") : *tools;
    if (!list.is_array()) bad("column '", name, "' must be a list of tools, is ", list.type_name());
    out->extra["tools"] = std::move(list);
  }
  if (const Json* documents = columns->find("documents")) {
    if (!documents->is_array()) {
      bad("column '", columns->file_name("documents"), "' must be a list, is ", documents->type_name());
    }
    out->extra["documents"] = *documents;
  }
}

Conversation read_chat(Columns* columns) {
  Conversation out;
  std::string column = "messages";
  const Json* list = columns->find("messages");
  if (list == nullptr) {
    list = columns->find("conversations");
    column = "conversations";
  }
  if (list == nullptr) list = &columns->need("messages");
  const std::string system = optional_text(columns, "system");
  if (!system.empty()) add_turn("system", system, &out);
  add_messages(*list, columns->file_name(column), &out);
  if (!system.empty() && out.messages.size() > 1 && out.messages[1]["role"] == "system") {
    bad("both a column '", columns->file_name("system"), "' and a system message");
  }
  if (list->empty()) bad("column '", columns->file_name(column), "' has no message");
  read_extra(columns, &out);
  return out;
}

Conversation read_prompt_completion(Columns* columns) {
  Conversation out;
  const Json& prompt = columns->need("prompt");
  const Json& completion = columns->need("completion");
  if (prompt.is_string()) {
    if (!completion.is_string())
      bad("'completion' must be a text like 'prompt', is ", completion.type_name());
    out.text = prompt.get<std::string>();
    out.prompt_bytes = out.text.size();
    if (completion.get_ref<const std::string&>().empty()) bad("the completion is empty");
    out.text += completion.get_ref<const std::string&>();
    return out;
  }
  add_messages(prompt, columns->file_name("prompt"), &out);
  if (out.messages.empty()) bad("the prompt has no message");
  out.completion_from = out.messages.size();
  if (completion.is_string()) {
    add_turn("assistant", completion.get<std::string>(), &out);
  } else {
    add_messages(completion, columns->file_name("completion"), &out);
  }
  if (out.messages.size() == out.completion_from) bad("the completion has no message");
  read_extra(columns, &out);
  return out;
}

Conversation read_alpaca(Columns* columns) {
  Conversation out;
  std::string question = need_text(columns, "instruction");
  const std::string input = optional_text(columns, "input");
  if (!input.empty()) question += (question.empty() ? "" : "\n") + input;
  const std::string answer = need_text(columns, "output");
  if (question.empty()) bad("the instruction is empty");
  if (answer.empty()) bad("the output is empty");
  const std::string system = optional_text(columns, "system");
  if (!system.empty()) add_turn("system", system, &out);
  if (const Json* history = columns->find("history")) {
    const std::string name = columns->file_name("history");
    if (!history->is_array())
      bad("column '", name, "' must be a list of [question, answer], is ", history->type_name());
    for (const Json& turn : *history) {
      if (!turn.is_array() || turn.size() != 2 || !turn[0].is_string() || !turn[1].is_string()) {
        bad("an element of '", name, "' must be [question, answer], two texts");
      }
      add_turn("user", turn[0].get<std::string>(), &out);
      add_turn("assistant", turn[1].get<std::string>(), &out);
    }
  }
  add_turn("user", std::move(question), &out);
  add_turn("assistant", answer, &out);
  return out;
}

}  // namespace

Format parse_format(std::string_view name) {
  for (const Format f : {Format::kChat, Format::kPromptCompletion, Format::kAlpaca, Format::kText}) {
    if (name == format_name(f)) return f;
  }
  if (name == "auto") return Format::kUnknown;
  const std::string near = nearest(name, {"auto", "chat", "prompt_completion", "alpaca", "text"});
  bad("data format '", excerpt(name), "' is not one of auto, chat, prompt_completion, alpaca, text",
      near.empty() ? "" : "; did you mean '", near, near.empty() ? "" : "'?");
}

const char* format_name(Format format) {
  switch (format) {
    case Format::kUnknown:
      return "";
    case Format::kChat:
      return "chat";
    case Format::kPromptCompletion:
      return "prompt_completion";
    case Format::kAlpaca:
      return "alpaca";
    case Format::kText:
      return "text";
  }
  return "";
}

std::string Columns::file_name(std::string_view ours) const {
  const auto found = renames_.find(std::string(ours));
  return found == renames_.end() ? std::string(ours) : found->get<std::string>();
}

const Json* Columns::find(std::string_view ours) {
  const std::string name = file_name(ours);
  const auto found = row_.find(name);
  if (found == row_.end()) return nullptr;
  used_.push_back(name);
  return found->is_null() ? nullptr : &*found;
}

const Json& Columns::need(std::string_view ours) {
  const Json* value = find(ours);
  if (value != nullptr) return *value;
  bad("column '", file_name(ours), "' is ", row_.contains(file_name(ours)) ? "null" : "missing");
}

std::vector<std::string> Columns::unused() const {
  std::vector<std::string> out;
  for (const auto& item : row_.items()) {
    if (std::find(used_.begin(), used_.end(), item.key()) == used_.end()) out.push_back(item.key());
  }
  return out;
}

void Columns::refuse_other_tasks() const {
  const auto has = [&](const char* name) {
    const auto found = row_.find(name);
    return found != row_.end() && !found->is_null() && !(found->is_array() && found->empty());
  };
  for (const char* name : {"chosen", "rejected"}) {
    if (has(name)) bad("column '", name, "' marks preference data, which is not supported");
  }
  if (has("label") && row_["label"].is_boolean()) {
    bad("column 'label' grades the completion (true, false), which is not supported; keep the good rows and "
        "drop the column");
  }
  for (const char* name : {"images", "image", "videos", "audios"}) {
    if (has(name)) bad("column '", name, "' refers to media, which is not supported");
  }
}

void check_renames(const Json& renames, std::string_view what) {
  if (!renames.is_object()) bad(what, ": 'columns' must be an object, is ", renames.type_name());
  for (const auto& item : renames.items()) {
    if (std::find(kColumns.begin(), kColumns.end(), item.key()) == kColumns.end()) {
      const std::string near =
          nearest(item.key(), std::vector<std::string>(kColumns.begin(), kColumns.end()));
      bad(what, ": 'columns' renames '", excerpt(item.key()), "', which no format has",
          near.empty() ? "" : "; did you mean '", near, near.empty() ? "" : "'?");
    }
    if (!item.value().is_string())
      bad(what, ": 'columns.", item.key(), "' must be the name of a column in the file");
  }
}

Format detect_format(const Json& row, const Json& renames, std::string* keys) {
  const Columns names(row, renames);
  const auto has = [&](std::string_view ours) { return row.contains(names.file_name(ours)); };
  const auto told = [&](Format format, std::string by) {
    *keys = std::move(by);
    return format;
  };
  if (has("messages")) return told(Format::kChat, "'" + names.file_name("messages") + "'");
  if (has("conversations")) return told(Format::kChat, "'" + names.file_name("conversations") + "'");
  if (has("prompt") && has("completion")) {
    return told(Format::kPromptCompletion,
                "'" + names.file_name("prompt") + "' and '" + names.file_name("completion") + "'");
  }
  if (has("instruction") && has("output")) {
    return told(Format::kAlpaca,
                "'" + names.file_name("instruction") + "' and '" + names.file_name("output") + "'");
  }
  if (has("text")) return told(Format::kText, "'" + names.file_name("text") + "'");
  return Format::kUnknown;
}

Conversation read_conversation(Format format, Columns* columns) {
  Conversation out;
  if (format != Format::kText) columns->refuse_other_tasks();
  switch (format) {
    case Format::kChat:
      return read_chat(columns);
    case Format::kPromptCompletion:
      return read_prompt_completion(columns);
    case Format::kAlpaca:
      return read_alpaca(columns);
    case Format::kText:
      out.text = need_text(columns, "text");
      if (out.text.empty()) bad("the text is empty");
      return out;
    case Format::kUnknown:
      break;
  }
  fail(Code::kInternal, "a row is read without a format");
}

}  // namespace inlaid::data

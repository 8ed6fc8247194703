// Rows of every format brought into one shape: messages for a chat template, or a text with a prompt.
//
// chat: {"messages": [{"role", "content", ...}]} or ShareGPT {"conversations": [{"from", "value"}]}, with
//     optional columns system, tools, documents.
// prompt_completion: {"prompt", "completion"}, two texts or two lists of messages; a text completes a list as
//     an assistant turn.
// alpaca: {"instruction", "output"} with optional input, system, history [[question, answer], ...].
// text: {"text"}, or a document of a *.txt file.
//
// Per message, `train` (true, false) or `weight` (0, 1) says whether the turn is trained, whatever loss_on
// says. A content that is a list of {"type": "text", "text"} parts is joined. Other keys of a message (name,
// tool_calls, reasoning_content, ...) go to the template as they are. The shapes are those of TRL,
// LLaMA-Factory and OpenAI's files. Tests: conversation_test.cc.
#ifndef INLAID_SDK_DATA_CONVERSATION_H_
#define INLAID_SDK_DATA_CONVERSATION_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sdk/base/json.h"

namespace inlaid::data {

enum class Format { kUnknown, kChat, kPromptCompletion, kAlpaca, kText };
// kInvalidArgument with the nearest name; "auto" is kUnknown.
Format parse_format(std::string_view name);
const char* format_name(Format format);  // "" for kUnknown

// Access to the columns of a row through renames (our name -> the file's name), noting which columns were
// used.
class Columns {
 public:
  Columns(const Json& row, const Json& renames) : row_(row), renames_(renames) {}
  // Value of one of our columns; nullptr when the row does not have it or it is null.
  const Json* find(std::string_view ours);
  // As find, but kInvalidArgument naming the column when it is missing.
  const Json& need(std::string_view ours);
  std::string file_name(std::string_view ours) const;  // what the file calls the column
  std::vector<std::string> unused() const;             // in the row's order
  // kInvalidArgument for a row that means more than its texts say: preference pairs, graded completions,
  // media. Trained as plain chats such rows would teach something wrong.
  void refuse_other_tasks() const;

 private:
  const Json& row_;
  const Json& renames_;
  std::vector<std::string> used_;
};

// Checks a source's renames: an object from names of columns to texts. `what` names the source.
void check_renames(const Json& renames, std::string_view what);

// The format that a row's columns tell; kUnknown when they tell none. `keys` names the columns that decided.
Format detect_format(const Json& row, const Json& renames, std::string* keys);

enum class Flag : int8_t { kUnset = -1, kMasked = 0, kTrained = 1 };

struct Conversation {
  // Messages in the form that templates expect, with a flag each, and further variables of the template.
  Json messages = Json::array();
  Json extra = Json::object();
  std::vector<Flag> flags;
  size_t completion_from = 0;  // messages before this one are a prompt

  // When there are no messages: a text whose first bytes are a prompt.
  std::string text;
  size_t prompt_bytes = 0;

  bool is_chat() const { return !messages.empty(); }
};

// The conversation of a row. kInvalidArgument with a reason that fits behind "FILE: row N: ".
Conversation read_conversation(Format format, Columns* columns);

}  // namespace inlaid::data

#endif  // INLAID_SDK_DATA_CONVERSATION_H_

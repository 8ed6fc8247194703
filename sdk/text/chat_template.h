// Chat templates (Jinja2 as transformers sets it up), rendered by the crate `minijinja`, with the span of
// every message's content in the result. The loss mask comes from these spans, never from searching tokens.
#ifndef INLAID_SDK_TEXT_CHAT_TEMPLATE_H_
#define INLAID_SDK_TEXT_CHAT_TEMPLATE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sdk/base/json.h"

namespace inlaid::text {

struct Rendered {
  std::string text;
  // One span of bytes [begin, end) of `text` that an assistant turn produced and that a model should learn to
  // write: its content *and* the end-of-turn marker after it, when the template writes one (so that the model
  // learns to stop).
  struct Span {
    int32_t message;  // index into the messages
    uint32_t begin, end;
  };
  std::vector<Span> spans;        // of every message whose content is found, in order of begin
  bool generation_marks = false;  // spans of assistant turns come from {% generation %} blocks
};

class Conversation;  // chat_template_state.h

// Immutable; every const member may be called from any thread.
//
// The environment is that of transformers: trim_blocks, lstrip_blocks, loop controls, raise_exception,
// strftime_now, tojson as json.dumps(ensure_ascii=False), {% generation %} blocks, methods of Python's
// strings and dictionaries; `tools` and `documents` are none unless given. Two differences: strftime_now
// shows UTC, as the library does not read the time zone of the process, and the variable `date` (YYYY-MM-DD,
// or with Thh:mm:ss) sets its clock. Templates come from outside: steps, output, memory and recursion of a
// render are limited.
class ChatTemplate {
 public:
  // Compiles a template. `special_tokens` is an object such as {"bos_token": "<s>", "eos_token": "</s>"}
  // visible to it. kInvalidArgument with line and reason for a template that does not parse.
  static std::shared_ptr<const ChatTemplate> compile(std::string source, Json special_tokens,
                                                     std::string_view what);
  ~ChatTemplate();

  // Renders messages (array of {"role", "content", ...}). `extra` holds further variables: tools, documents,
  // or host's own. kInvalidArgument when the template refuses the messages (raise_exception) or reads what is
  // not there; kResourceExhausted when it runs out of its budget.
  std::string render(const Json& messages, bool add_generation_prompt, const Json& extra) const;

  // Renders and finds the spans; how is told in turn_spans.h. A template with {% generation %} blocks has
  // exactly those as spans, one per block, as in transformers. Else the span of a message is its content as
  // written, up to the end of its end-of-turn marker: the text after the content up to and including the
  // first of `eos_candidates` before the next message. Turns with tool calls or reasoning begin where the
  // model would begin to write, after the generation prompt. Spans of other roles are there for messages
  // whose content is found; an assistant turn that cannot be placed with certainty is kInvalidArgument naming
  // the message.
  Rendered render_with_spans(const Json& messages, const Json& extra,
                             const std::vector<std::string>& eos_candidates) const;

  const std::string& source() const;
  // Whether its text may depend on the time of the render: it names strftime_now.
  bool reads_clock() const;

 private:
  ChatTemplate();
  friend class Conversation;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace inlaid::text

#endif  // INLAID_SDK_TEXT_CHAT_TEMPLATE_H_

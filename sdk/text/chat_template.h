// Chat templates (Jinja2 as transformers sets it up), rendered by the crate `minijinja`, with the span of every message's
// content in the result. The loss mask comes from these spans, never from searching tokens.
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
  // One span of bytes [begin, end) of `text` that an assistant turn produced and that a model should learn to write: its
  // content *and* the end-of-turn marker after it, when the template writes one (so that the model learns to stop).
  struct Span {
    int32_t message;  // index into the messages
    uint32_t begin, end;
  };
  std::vector<Span> spans;   // of every message whose content is found, in order of begin
  bool generation_marks;     // spans of assistant turns come from {% generation %} blocks
};

// Immutable; every const member may be called from any thread.
class ChatTemplate {
 public:
  // Compiles a template. `special_tokens` is an object such as {"bos_token": "<s>", "eos_token": "</s>"} visible to it.
  // kInvalidArgument with line and reason for a template that does not parse.
  static std::shared_ptr<const ChatTemplate> compile(std::string source, Json special_tokens, std::string_view what);
  ~ChatTemplate();

  // Renders messages (array of {"role", "content", ...}). `extra` holds further variables: tools, documents, or host's own.
  // kInvalidArgument when the template refuses the messages (raise_exception) or runs out of its step budget.
  std::string render(const Json& messages, bool add_generation_prompt, const Json& extra) const;

  // Renders and finds the spans. How: contents are wrapped in sentinels that occur nowhere, the marked render must equal the
  // unmarked one once they are removed; the span of an assistant turn runs to the end of its end-of-turn marker, which is
  // the text between its content and the next message (or the end) up to and including the first special token of
  // `eos_candidates`. When a template trims or transforms contents the unmarked text is searched from the last
  // position instead, and a content that cannot be placed is kInvalidArgument naming the message.
  Rendered render_with_spans(const Json& messages, const Json& extra, const std::vector<std::string>& eos_candidates) const;

  const std::string& source() const;

 private:
  ChatTemplate();
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace inlaid::text

#endif  // INLAID_SDK_TEXT_CHAT_TEMPLATE_H_

// What a ChatTemplate holds, and renders of it with prepared variables. For sdk/text only.
#ifndef INLAID_SDK_TEXT_CHAT_TEMPLATE_STATE_H_
#define INLAID_SDK_TEXT_CHAT_TEMPLATE_STATE_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "sdk/text/chat_template.h"
#include "sdk/text/rust/inlaid_text.h"

namespace inlaid::text {

struct ChatTemplate::State {
  ~State();

  inlaid_text_template* handle = nullptr;
  std::string what;
  std::string source;
  Json special_tokens;
  size_t generation_blocks = 0;  // in the source
};

// One conversation to be rendered several times, under on_own_stack (own_stack.h): the other variables and
// the clock are the same in each render, so that a template that shows the time gives equal texts.
class Conversation {
 public:
  using Template = ChatTemplate::State;

  // Checks the shapes of messages and extra. Keeps a reference to the template.
  Conversation(const Template& chat_template, const Json& messages, const Json& extra);

  // Code points to write around generation blocks; 0 = none.
  struct GenerationMarks {
    char32_t begin, end;
  };
  // Renders share a budget of steps: whatever the template does, and however many messages there are, the search for the turns
  // of a conversation ends. kResourceExhausted when a render goes over its own share, or when all is spent.
  std::string render(const Json& messages, bool add_generation_prompt, GenerationMarks marks = {0, 0}) const;
  bool is_exhausted() const { return steps_left_ == 0; }

  const Template& chat_template() const { return template_; }
  const Json& messages() const { return messages_; }
  // All variables as text, for the search of characters that occur nowhere.
  std::string everything() const;

 private:
  const Template& template_;
  Json messages_;
  Json variables_;
  int64_t now_;
  mutable uint64_t steps_left_;
  mutable uint64_t steps_of_first_ = 0;  // of the first render that succeeded
};

}  // namespace inlaid::text

#endif  // INLAID_SDK_TEXT_CHAT_TEMPLATE_STATE_H_

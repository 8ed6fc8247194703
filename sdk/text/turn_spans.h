// Finds the turns of a conversation in its render: what the loss is taken over.
//
// Problem: a template may write, trim, merge, move or drop parts of messages, and tokens found by searching
// ("### Response:") are not there in another context. A wrong mask trains the wrong text silently. So every
// place here is proved by a second render, and what cannot be proved is an error:
//   1. {% generation %} blocks, where the template has them, are the spans.
//   2. Marks around all strings (marks.h). The render without them must be the unmarked one: two renders for
//   a conversation.
//   3. Where a template looks into contents, each message alone: marks at the ends, marks inside of the white
//   space at the
//      ends, and at last letters replaced (altered.h).
//   4. The beginning of a turn, for empty contents and for tool calls and reasoning, whose syntax the model
//   has to write too: the
//      messages before it rendered with the generation prompt are a beginning of the text, or else that
//      prompt stands exactly once between the message before and this one.
// The end of a turn is the first end-of-turn marker after its content and before the next message.
// Cost: the renders; no tokenizer is needed. Tested in turn_spans_test.cc.
#ifndef INLAID_SDK_TEXT_TURN_SPANS_H_
#define INLAID_SDK_TEXT_TURN_SPANS_H_

#include <string>
#include <vector>

#include "sdk/text/chat_template.h"
#include "sdk/text/chat_template_state.h"

namespace inlaid::text {

// See ChatTemplate::render_with_spans.
Rendered find_turns(const Conversation& conversation, const std::vector<std::string>& eos_candidates);

}  // namespace inlaid::text

#endif  // INLAID_SDK_TEXT_TURN_SPANS_H_

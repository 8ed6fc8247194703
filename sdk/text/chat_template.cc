#include "sdk/text/chat_template.h"

#include <algorithm>
#include <chrono>  // for system_clock

#include "sdk/text/chat_template_state.h"
#include "sdk/text/own_stack.h"
#include "sdk/text/rust_result.h"
#include "sdk/text/tokenizer.h"
#include "sdk/text/turn_spans.h"

namespace inlaid::text {
namespace {

// Templates over this are refused; the longest published ones have some 30 kB.
constexpr size_t kMaxSource = size_t{1} << 20;
// So are conversations: as much as a tokenizer takes.
constexpr size_t kMaxVariables = Tokenizer::max_bytes();

// Steps of one render: about 4 million instructions, or 256 MiB of text. Real conversations of 100 turns spend some ten
// thousand.
constexpr uint64_t kStepsOfRender = uint64_t{1} << 22;
// Steps of all renders of one conversation, of which there may be several per message.
constexpr uint64_t kStepsOfConversation = 16 * kStepsOfRender;

void check_messages(const Json& messages, const std::string& what) {
  if (!messages.is_array()) fail(Code::kInvalidArgument, what, ": messages must be an array of objects");
  for (size_t i = 0; i < messages.size(); ++i) {
    const Json& message = messages[i];
    if (!message.is_object()) fail(Code::kInvalidArgument, what, ": message ", i, " must be an object");
    const auto role = message.find("role");
    if (role == message.end() || !role->is_string()) {
      fail(Code::kInvalidArgument, what, ": message ", i, " needs a 'role' that is a string");
    }
  }
}

// As transformers does: a reasoning under any of its three names is also given as 'reasoning_content', which
// most templates read, and as 'thinking'.
void name_reasoning(Json& messages) {
  for (Json& message : messages) {
    for (const char* key : {"reasoning_content", "thinking", "reasoning"}) {
      const auto found = message.find(key);
      if (found == message.end() || found->is_null()) continue;
      const Json reasoning = *found;
      message["reasoning_content"] = reasoning;
      if (!message.contains("thinking")) message["thinking"] = reasoning;
      break;
    }
  }
}

}  // namespace

ChatTemplate::State::~State() {
  inlaid_text_template_free(handle);
}

Conversation::Conversation(const Template& chat_template, const Json& messages, const Json& extra)
    : template_(chat_template), messages_(messages), variables_(chat_template.special_tokens), steps_left_(kStepsOfConversation) {
  check_messages(messages_, template_.what);
  name_reasoning(messages_);
  // transformers passes these two always, so that "is defined" holds for both.
  variables_["tools"] = nullptr;
  variables_["documents"] = nullptr;
  if (!extra.is_object() && !extra.is_null()) {
    fail(Code::kInvalidArgument, template_.what, ": further variables must be an object");
  }
  for (const auto& [key, value] : extra.items()) {
    if (key == "messages" || key == "add_generation_prompt" || key.starts_with("__")) {
      fail(Code::kInvalidArgument, template_.what, ": variable '", key, "' is set by the renderer itself");
    }
    variables_[key] = value;
  }
  const auto since_epoch = std::chrono::system_clock::now().time_since_epoch();
  now_ = std::chrono::duration_cast<std::chrono::seconds>(since_epoch).count();
}

std::string Conversation::render(const Json& messages, bool add_generation_prompt,
                                 GenerationMarks marks) const {
  Json variables = variables_;
  variables["messages"] = messages;
  variables["add_generation_prompt"] = add_generation_prompt;
  const std::string text = to_text(variables);
  if (text.size() > kMaxVariables) {
    fail(Code::kInvalidArgument, template_.what, ": a conversation of ", text.size(),
         " bytes is over the limit of ", kMaxVariables);
  }
  if (is_exhausted()) {
    fail(Code::kResourceExhausted, template_.what, ": finding the turns of ", messages_.size(), " messages takes more than ",
         kStepsOfConversation, " steps");
  }
  // A render of the same conversation with other marks takes about as much as the first one did. What a render spent that
  // failed is not known, so it counts in full.
  const uint64_t usual = steps_of_first_ > 0 ? 65536 + 4 * steps_of_first_ : kStepsOfRender;
  const uint64_t share = std::min({kStepsOfRender, usual, steps_left_});
  steps_left_ -= share;
  uint64_t steps = share;
  RustBytes error;
  RustBytes out;
  const int32_t code = inlaid_text_template_render(template_.handle, data_of(text), text.size(), now_, marks.begin,
                                                   marks.end, &steps, out.out(), error.out());
  check_rust(blame(Code::kInvalidArgument, code), error, template_.what);
  steps_left_ += share - std::min(steps, share);
  if (steps_of_first_ == 0) steps_of_first_ = std::max<uint64_t>(steps, 1);
  return std::string(out.view());
}

std::string Conversation::everything() const {
  return template_.source + to_text(variables_) + to_text(messages_);
}

ChatTemplate::ChatTemplate() : state_(std::make_unique<State>()) {}
ChatTemplate::~ChatTemplate() = default;

std::shared_ptr<const ChatTemplate> ChatTemplate::compile(std::string source, Json special_tokens,
                                                          std::string_view what) {
  if (source.size() > kMaxSource) {
    fail(Code::kInvalidArgument, what, ": a template of ", source.size(), " bytes is over the limit of ",
         kMaxSource);
  }
  if (special_tokens.is_null()) special_tokens = Json::object();
  if (!special_tokens.is_object()) fail(Code::kInvalidArgument, what, ": special tokens must be an object");
  std::shared_ptr<ChatTemplate> result(new ChatTemplate());
  State& state = *result->state_;
  state.what = what;
  state.source = std::move(source);
  state.special_tokens = std::move(special_tokens);
  RustBytes error;
  int32_t code = 0;
  on_own_stack([&] {
    code = inlaid_text_template_new(data_of(state.source), state.source.size(), &state.handle,
                                    &state.generation_blocks, error.out());
  });
  check_rust(blame(Code::kInvalidArgument, code), error, what, ": not a valid chat template");
  return result;
}

std::string ChatTemplate::render(const Json& messages, bool add_generation_prompt, const Json& extra) const {
  std::string result;
  on_own_stack([&] {
    const Conversation conversation(*state_, messages, extra);
    result = conversation.render(conversation.messages(), add_generation_prompt);
  });
  return result;
}

Rendered ChatTemplate::render_with_spans(const Json& messages, const Json& extra,
                                         const std::vector<std::string>& eos_candidates) const {
  Rendered result;
  on_own_stack([&] { result = find_turns(Conversation(*state_, messages, extra), eos_candidates); });
  return result;
}

const std::string& ChatTemplate::source() const {
  return state_->source;
}

bool ChatTemplate::reads_clock() const {
  return state_->source.find("strftime_now") != std::string::npos;
}

}  // namespace inlaid::text

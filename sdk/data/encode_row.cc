#include "sdk/data/encode_row.h"

#include <algorithm>  // for find, min
#include <span>
#include <utility>

#include "sdk/base/error.h"
#include "sdk/data/loss_mask.h"
#include "sdk/base/utf8.h"

namespace inlaid::data {
namespace {

template <typename T, size_t N>
T parse_choice(const char* key, const std::string& value, const std::pair<const char*, T> (&choices)[N]) {
  std::vector<std::string> names;
  for (const auto& [name, choice] : choices) {
    if (value == name) return choice;
    names.emplace_back(name);
  }
  std::string all;
  for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
  const std::string near = nearest(value, names);
  fail(Code::kInvalidArgument, key, " '", excerpt(value), "' is not one of ", all,
       near.empty() ? "" : "; did you mean '", near, near.empty() ? "" : "'?");
}

struct Masked {
  std::vector<int32_t> tokens;
  std::vector<uint8_t> trained;
  int64_t boundary_tokens = 0;
};

// Which messages are trained: the flags of the messages, and for those without a flag what loss_on says.
std::vector<uint8_t> selected_messages(const Conversation& c, LossOn loss_on) {
  const size_t count = c.messages.size();
  std::vector<uint8_t> assistant(count, 0);
  size_t last = count;
  for (size_t i = c.completion_from; i < count; ++i) {
    assistant[i] = c.messages[i]["role"] == "assistant";
    if (assistant[i]) last = i;
  }
  const bool only_last =
      loss_on == LossOn::kLastAssistant || (loss_on == LossOn::kCompletion && c.completion_from == 0);
  std::vector<uint8_t> selected(count, 0);
  for (size_t i = 0; i < count; ++i) {
    const bool by_default = loss_on == LossOn::kAll || (assistant[i] && (!only_last || i == last));
    selected[i] = c.flags[i] == Flag::kUnset ? by_default : c.flags[i] == Flag::kTrained;
  }
  return selected;
}

// Trained bytes of a rendered chat. Under kAll that is everything but the messages that are masked by a flag.
std::vector<ByteSpan> trained_spans(const Conversation& c, const text::Rendered& rendered, LossOn loss_on) {
  const std::vector<uint8_t> selected = selected_messages(c, loss_on);
  std::vector<uint8_t> placed(selected.size(), 0);
  std::vector<ByteSpan> in, out;
  for (const text::Rendered::Span& span : rendered.spans) {
    const size_t message = static_cast<size_t>(span.message);
    INLAID_CHECK(message < selected.size() && span.begin <= span.end && span.end <= rendered.text.size());
    placed[message] = 1;
    (selected[message] ? in : out).push_back({span.begin, span.end});
  }
  for (size_t i = 0; i < selected.size(); ++i) {
    if (placed[i] || selected[i] == (loss_on == LossOn::kAll)) continue;
    fail(Code::kInvalidArgument, "message ", i + 1, " (", c.messages[i]["role"].get<std::string>(),
         ") is to be ", selected[i] ? "trained" : "masked",
         " but the chat template does not show where it stands in the text");
  }
  return loss_on == LossOn::kAll ? complement(std::move(out), static_cast<uint32_t>(rendered.text.size()))
                                 : normalised(std::move(in));
}

text::Rendered render(const RowEncoder& e, const Conversation& c) {
  Json variables = e.template_variables;
  variables.update(c.extra);
  try {
    return e.chat_template->render_with_spans(c.messages, variables, e.eos_candidates);
  } catch (const Error& error) {
    // A render over its budget of steps or output is the row's fault, not a lack of memory.
    if (error.code() == Code::kResourceExhausted) fail(Code::kInvalidArgument, error.message());
    throw;
  }
}

Masked encode_chat(const RowEncoder& e, const Conversation& c) {
  if (e.chat_template == nullptr) {
    fail(Code::kInvalidArgument,
         "messages need a chat template and the model has none; set data.chat_template");
  }
  const text::Rendered rendered = render(e, c);
  text::Encoding encoding = e.tokenizer.encode(rendered.text, /*add_special=*/false);
  Masked out;
  out.trained = trained_tokens(encoding.begin, encoding.end, trained_spans(c, rendered, e.loss_on),
                               &out.boundary_tokens);
  out.tokens = std::move(encoding.ids);
  return out;
}

// A text with a prompt in front: one text, so that the tokens are those the model sees when it completes the
// prompt; then the token that ends a text, trained, unless it is there already.
Masked encode_text(const RowEncoder& e, const Conversation& c) {
  if (!e.eos) fail(Code::kInvalidArgument, "a text needs a token that ends it and the model names none");
  text::Encoding encoding = e.tokenizer.encode(c.text, /*add_special=*/true);
  const uint32_t from = e.loss_on == LossOn::kAll ? 0 : static_cast<uint32_t>(c.prompt_bytes);
  Masked out;
  out.trained =
      trained_tokens(encoding.begin, encoding.end, normalised({{from, static_cast<uint32_t>(c.text.size())}}),
                     &out.boundary_tokens);
  out.tokens = std::move(encoding.ids);
  if (out.tokens.empty() || out.tokens.back() != *e.eos) {
    out.tokens.push_back(*e.eos);
    out.trained.push_back(1);
  }
  out.trained.back() = 1;
  return out;
}

void check_begin(const RowEncoder& e, const std::vector<int32_t>& tokens) {
  if (e.bos && tokens.size() >= 2 && tokens[0] == *e.bos && tokens[1] == *e.bos) {
    const std::optional<std::string> name = e.tokenizer.id_to_token(*e.bos);
    fail(Code::kInvalidArgument, "begins with ", name.value_or("the begin token"),
         " twice: it is written in the row or the template and added by the tokenizer");
  }
}

// Cuts to max_length. Gives the reason when the row is to be dropped.
std::string truncate(const RowEncoder& e, Masked* m) {
  const size_t limit = static_cast<size_t>(e.max_length);
  const std::string reason =
      std::to_string(m->tokens.size()) + " tokens, more than max_length " + std::to_string(limit);
  switch (e.truncation) {
    case Truncation::kError:
      fail(Code::kInvalidArgument, reason,
           "; raise data.max_length or set data.truncation to right, left or drop");
    case Truncation::kDrop:
      return reason;
    case Truncation::kRight:
      m->tokens.resize(limit);
      m->trained.resize(limit);
      break;
    case Truncation::kLeft:
      m->tokens.erase(m->tokens.begin(), m->tokens.end() - static_cast<std::ptrdiff_t>(limit));
      m->trained.erase(m->trained.begin(), m->trained.end() - static_cast<std::ptrdiff_t>(limit));
      break;
  }
  return "";
}

Conversation parse_row(Format format, bool plain_text, std::string_view row, const Json& renames,
                       std::vector<std::string>* unused) {
  Conversation out;
  if (plain_text) {
    const size_t invalid = first_invalid_utf8(row);
    if (invalid != std::string_view::npos) {
      fail(Code::kInvalidArgument, "not valid UTF-8 at byte ", invalid, " of the document");
    }
    out.text = std::string(row);
    return out;
  }
  const Json json = parse_json(row, "JSON");
  if (!json.is_object()) fail(Code::kInvalidArgument, "must be a JSON object, is ", json.type_name());
  Columns columns(json, renames);
  if (format == Format::kUnknown) {
    std::string names;
    for (const std::string& name : columns.unused()) {
      if (names.size() > 200) break;
      names += (names.empty() ? "" : ", ") + excerpt(name);
    }
    fail(Code::kInvalidArgument, "its columns (", names,
         ") tell no format; expected messages or conversations (chat), prompt and ",
         "completion, instruction and output (alpaca), or text; data.*.columns renames columns");
  }
  out = read_conversation(format, &columns);
  *unused = columns.unused();
  return out;
}

}  // namespace

RowEncoder::RowEncoder(const DatasetOptions& options, const text::Tokenizer& tokenizer,
                       const text::ChatTemplate* chat_template)
    : tokenizer(tokenizer),
      chat_template(chat_template),
      eos_candidates(options.eos_candidates),
      template_variables(options.template_variables) {
  if (!template_variables.is_object()) {
    fail(Code::kInvalidArgument, "the chat template's variables must be an object, are ",
         template_variables.type_name());
  }
  loss_on = parse_choice<LossOn>("data.loss_on", options.loss_on,
                                 {{"assistant", LossOn::kAssistant},
                                  {"last_assistant", LossOn::kLastAssistant},
                                  {"completion", LossOn::kCompletion},
                                  {"all", LossOn::kAll}});
  truncation = parse_choice<Truncation>("data.truncation", options.truncation,
                                        {{"error", Truncation::kError},
                                         {"right", Truncation::kRight},
                                         {"left", Truncation::kLeft},
                                         {"drop", Truncation::kDrop}});
  max_length = options.max_length;
  if (max_length < 2)
    fail(Code::kInvalidArgument, "data.max_length ", max_length, " is too small: a target needs 2 tokens");
  for (const std::string& name : eos_candidates) {
    const std::optional<int32_t> id = tokenizer.token_to_id(name);
    if (id) stop_ids.push_back(*id);
    if (&name == &eos_candidates.front()) {
      if (!id)
        fail(Code::kInvalidArgument, "the end token '", excerpt(name),
             "' is not in the tokenizer's vocabulary");
      eos = id;
    }
  }
  const text::Encoding added = tokenizer.encode("", /*add_special=*/true);
  if (!added.ids.empty() && tokenizer.is_special(added.ids[0]) &&
      (!eos || added.ids[0] != *eos || added.ids.size() > 1)) {
    bos = added.ids[0];
  }
}

EncodedRow encode_row(const RowEncoder& encoder, Format format, bool plain_text, std::string_view row,
                      const Json& renames) {
  EncodedRow out;
  const Conversation conversation = parse_row(format, plain_text, row, renames, &out.unused_columns);
  out.chat = conversation.is_chat();
  Masked masked = out.chat ? encode_chat(encoder, conversation) : encode_text(encoder, conversation);
  check_begin(encoder, masked.tokens);
  if (std::cmp_greater(masked.tokens.size(), encoder.max_length)) {
    out.dropped = truncate(encoder, &masked);
    if (!out.dropped.empty()) return out;
    out.truncated = true;
  }
  out.boundary_tokens = masked.boundary_tokens;
  out.targets = shifted_targets(masked.tokens, masked.trained);
  out.tokens = std::move(masked.tokens);
  for (const int32_t target : out.targets) {
    if (target == kIgnore) continue;
    ++out.target_tokens;
    if (std::find(encoder.stop_ids.begin(), encoder.stop_ids.end(), target) != encoder.stop_ids.end())
      out.trains_stop = true;
  }
  if (out.target_tokens == 0) {
    fail(Code::kInvalidArgument, "no token is trained", out.truncated ? " after truncation" : "",
         out.chat && !out.truncated ? ": no message that data.loss_on selects has content" : "");
  }
  return out;
}

}  // namespace inlaid::data

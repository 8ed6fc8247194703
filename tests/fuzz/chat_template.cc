// A chat template over a conversation. Parts: the template; the messages (JSON); further variables (JSON). Whatever it does,
// a render ends, within its budget of steps, output and recursion.
#include "sdk/text/chat_template.h"

#include "sdk/base/utf8.h"
#include "tests/fuzz/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace inlaid;
  const std::vector<std::string> parts = fuzz::parts_of(data, size, 3);
  Json messages = Json::array({{{"role", "user"}, {"content", "Hi"}}, {{"role", "assistant"}, {"content", "Hello"}}});
  Json extra = Json::object();
  fuzz::accepts([&] { messages = parse_json(parts[1], "messages"); });
  fuzz::accepts([&] { extra = parse_json(parts[2], "variables"); });
  if (extra.is_object()) extra["date"] = "2026-01-31";  // the same render today and tomorrow
  std::shared_ptr<const text::ChatTemplate> chat_template;
  const Json special = {{"bos_token", "<s>"}, {"eos_token", "</s>"}};
  if (!fuzz::accepts([&] { chat_template = text::ChatTemplate::compile(parts[0], special, "template"); })) return 0;
  for (const bool prompt : {false, true}) {
    fuzz::accepts([&] {
      const std::string text = chat_template->render(messages, prompt, extra);
      FUZZ_REQUIRE(first_invalid_utf8(text) == text.npos);
      FUZZ_REQUIRE(text == chat_template->render(messages, prompt, extra));
    });
  }
  fuzz::accepts([&] {
    const text::Rendered rendered = chat_template->render_with_spans(messages, extra, {"</s>", "<|im_end|>"});
    uint32_t begin = 0;
    for (const text::Rendered::Span& span : rendered.spans) {
      FUZZ_REQUIRE(begin <= span.begin && span.begin <= span.end && span.end <= rendered.text.size());
      FUZZ_REQUIRE(span.message >= 0 && static_cast<size_t>(span.message) < messages.size());
      FUZZ_REQUIRE(first_invalid_utf8(rendered.text.substr(span.begin, span.end - span.begin)) == std::string::npos);
      begin = span.begin;
    }
  });
  return 0;
}

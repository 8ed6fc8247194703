#include "sdk/train/samples.h"

#include <algorithm>

#include "sdk/base/error.h"

namespace inlaid::train {

Json clock_variables(const text::ChatTemplate* chat_template, const std::string& clock) {
  Json variables = Json::object();
  if (!clock.empty() && chat_template != nullptr && chat_template->reads_clock()) variables["date"] = clock;
  return variables;
}

SamplePrompts sample_prompts(const config::Config& config, const models::Model& model, const std::string& clock) {
  SamplePrompts samples;
  samples.options.max_new_tokens = config.integer("logging.sample_max_new_tokens");
  const Json& prompts = config.value("logging.sample_prompts");
  if (prompts.empty()) return samples;
  const std::shared_ptr<const text::Tokenizer> tokenizer = model.tokenizer();
  const std::shared_ptr<const text::ChatTemplate> chat_template = model.chat_template();
  size_t longest = 0;
  for (const Json& entry : prompts) {
    const auto prompt = entry.get<std::string>();
    std::string text = prompt;
    if (chat_template != nullptr) {
      text = chat_template->render(Json::array({{{"role", "user"}, {"content", prompt}}}), true,
                                   clock_variables(chat_template.get(), clock));
    }
    samples.prompts.push_back(prompt);
    samples.ids.push_back(tokenizer->encode(text, chat_template == nullptr).ids);
    longest = std::max(longest, samples.ids.back().size());
    if (samples.ids.back().empty()) fail(Code::kInvalidArgument, "logging.sample_prompts: '", prompt, "' has no token");
  }
  samples.options.max_length = static_cast<int64_t>(longest) + samples.options.max_new_tokens;
  const int64_t room = model.config().max_position_embeddings;
  if (samples.options.max_length > room) {
    fail(Code::kInvalidArgument, "logging.sample_prompts: the longest prompt has ", longest, " tokens; with ",
         samples.options.max_new_tokens, " new ones (logging.sample_max_new_tokens) it exceeds the model's ", room, " positions");
  }
  return samples;
}

std::string answer(Generator& generator, std::span<const int32_t> ids, const std::atomic<bool>* cancel) {
  generator.prompt(ids);
  std::string text;
  for (bool done = false; !done;) {
    done = generator.next(cancel).done;
    text += generator.text();
  }
  return text;
}

}  // namespace inlaid::train

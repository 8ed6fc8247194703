#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "commands.h"

namespace inlaid_cli {
namespace {

using nlohmann::json;

// Answers the conversation so far, printing the text as it becomes final (unless as_json), and returns the answer.
std::string answer(inlaid_generator *generator, inlaid_tokenizer *tokenizer, const json &messages, bool as_json) {
  const json options = {{"add_generation_prompt", true}};
  const json rendered = json::parse(
      text(inlaid_tokenizer_render_chat, tokenizer, messages.dump().c_str(), options.dump().c_str()));
  const auto ids = rendered["ids"].get<std::vector<int32_t>>();
  check(inlaid_generator_prompt(generator, ids.data(), ids.size() * sizeof(int32_t)));
  std::string result;
  for (int32_t done = 0; done == 0;) {
    int32_t id = 0;
    inlaid_buffer *raw = nullptr;
    check(inlaid_generator_next(generator, nullptr, &id, &raw, &done));
    const Buffer buffer(raw);
    const std::string piece(static_cast<const char *>(inlaid_buffer_data(buffer.get())), inlaid_buffer_size(buffer.get()));
    result += piece;
    if (!as_json) {
      std::fwrite(piece.data(), 1, piece.size(), stdout);
      std::fflush(stdout);
    }
  }
  if (!as_json) std::printf("\n");
  return result;
}

}  // namespace

int chat(const Common &common, const ChatOptions &options) {
  const Runtime runtime = make_runtime(common);
  const Opened opened = open_result(runtime.get(), options.path, options.weights_dtype, options.best);
  const Tokenizer tokenizer = make<Tokenizer>(inlaid_model_tokenizer, opened.model.get());
  const Generator generator = make<Generator>(inlaid_generator_create, opened.model.get(), opened.adapter.get(),
                                              options.generation.empty() ? nullptr : options.generation.c_str());
  json messages = json::array();
  if (!options.system.empty()) messages.push_back({{"role", "system"}, {"content", options.system}});
  if (options.prompt) {
    messages.push_back({{"role", "user"}, {"content", *options.prompt}});
    const std::string text = answer(generator.get(), tokenizer.get(), messages, common.json);
    if (common.json) std::printf("%s\n", json({{"prompt", *options.prompt}, {"answer", text}}).dump().c_str());
    return kDone;
  }
  const bool typed = !common.json && isatty(STDIN_FILENO) != 0;
  if (typed) std::printf("An empty line or Ctrl-D ends the conversation.\n");
  for (std::string line;;) {
    if (typed) {
      std::printf("> ");
      std::fflush(stdout);
    }
    if (!std::getline(std::cin, line) || line.empty()) return kDone;
    messages.push_back({{"role", "user"}, {"content", line}});
    const std::string text = answer(generator.get(), tokenizer.get(), messages, common.json);
    if (common.json) std::printf("%s\n", json({{"prompt", line}, {"answer", text}}).dump().c_str());
    messages.push_back({{"role", "assistant"}, {"content", text}});
  }
}

}  // namespace inlaid_cli

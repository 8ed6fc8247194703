#include "sdk/text/tokenizer.h"

#include <cstring>

#include "capi/include/inlaid.h"
#include "capi/src/guard.h"
#include "capi/src/handles.h"
#include "sdk/formats/weight_source.h"

using namespace inlaid;
using namespace inlaid::capi;

namespace {

std::span<const int32_t> ids_of(const void *ids, uint64_t bytes) {
  if (bytes % sizeof(int32_t) != 0) fail(Code::kInvalidArgument, "bytes = ", bytes, " is no multiple of 4");
  if (ids == nullptr && bytes != 0) fail(Code::kInvalidArgument, "int32_ids must not be NULL");
  return {static_cast<const int32_t *>(ids), static_cast<size_t>(bytes / sizeof(int32_t))};
}

std::string bytes_of(std::span<const int32_t> ids) {
  return {reinterpret_cast<const char *>(ids.data()), ids.size() * sizeof(int32_t)};
}

// The text parts of a model without its weights.
std::shared_ptr<TokenizerState> open_text(const std::shared_ptr<Runtime> &runtime, const std::string &path) {
  auto state = std::make_shared<TokenizerState>();
  if (path.ends_with(".json")) {
    state->tokenizer = text::Tokenizer::from_json(read_text(runtime->files, path), path);
    return state;
  }
  const std::shared_ptr<models::Model> model = models::Model::outline(runtime, path, {});
  state->tokenizer = model->tokenizer();
  state->chat_template = model->chat_template();
  state->stop_tokens = model->stop_tokens();
  return state;
}

struct RenderOptions {
  bool add_generation_prompt = false;
  Json extra = Json::object();
};

RenderOptions parse_render_options(const char *text) {
  RenderOptions options;
  const std::string what = "options_json";
  const Json json = text == nullptr ? Json::object() : parse_json(text, what);
  if (!json.is_object()) fail(Code::kInvalidArgument, what, " must be an object");
  for (const auto &[key, value] : json.items()) {
    if (key == "add_generation_prompt") {
      options.add_generation_prompt = bool_at(json, key, what);
    } else if (key == "extra") {
      if (!value.is_object()) fail(Code::kInvalidArgument, what, ": extra must be an object");
      options.extra = value;
    } else {
      fail(Code::kInvalidArgument, what, ": unknown key '", key, "'; there are add_generation_prompt and extra");
    }
  }
  return options;
}

}  // namespace

inlaid_error *inlaid_tokenizer_open(inlaid_runtime *rt, const char *path, inlaid_tokenizer **out) INLAID_NOEXCEPT {
  if (out != nullptr) *out = nullptr;
  return guard([&] {
    required(out, "out");
    const std::shared_ptr<RuntimeState> &state = checked(rt, "runtime").value;
    state->check_up();
    *out = new inlaid_tokenizer(std::make_shared<Owned<TokenizerState>>(
        Owned<TokenizerState>{state, open_text(state->runtime, &required(path, "path"))}));
  });
}

inlaid_error *inlaid_tokenizer_encode(inlaid_tokenizer *t, const void *utf8, uint64_t bytes, int32_t add_special,
                                      inlaid_buffer **out_int32) INLAID_NOEXCEPT {
  if (out_int32 != nullptr) *out_int32 = nullptr;
  return guard([&] {
    required(out_int32, "out_int32");
    const text::Tokenizer &tokenizer = *checked(t, "tokenizer").value->object->tokenizer;
    if (utf8 == nullptr && bytes != 0) fail(Code::kInvalidArgument, "utf8 must not be NULL");
    const std::string_view text(bytes == 0 ? "" : static_cast<const char *>(utf8), static_cast<size_t>(bytes));
    *out_int32 = buffer(bytes_of(tokenizer.encode(text, add_special != 0).ids));
  });
}

inlaid_error *inlaid_tokenizer_decode(inlaid_tokenizer *t, const void *int32_ids, uint64_t bytes, int32_t skip_special,
                                      inlaid_buffer **out_utf8) INLAID_NOEXCEPT {
  if (out_utf8 != nullptr) *out_utf8 = nullptr;
  return guard([&] {
    required(out_utf8, "out_utf8");
    const text::Tokenizer &tokenizer = *checked(t, "tokenizer").value->object->tokenizer;
    *out_utf8 = buffer(tokenizer.decode(ids_of(int32_ids, bytes), skip_special != 0));
  });
}

inlaid_error *inlaid_tokenizer_render_chat(inlaid_tokenizer *t, const char *messages_json, const char *options_json,
                                           inlaid_buffer **out_json) INLAID_NOEXCEPT {
  if (out_json != nullptr) *out_json = nullptr;
  return guard([&] {
    required(out_json, "out_json");
    const TokenizerState &state = *checked(t, "tokenizer").value->object;
    if (state.chat_template == nullptr) fail(Code::kFailedPrecondition, "the model has no chat template");
    const Json messages = parse_json(&required(messages_json, "messages_json"), "messages_json");
    const RenderOptions options = parse_render_options(options_json);
    Json json;
    std::string text;
    if (options.add_generation_prompt) {
      text = state.chat_template->render(messages, true, options.extra);
    } else {
      const text::Rendered rendered = state.chat_template->render_with_spans(messages, options.extra, state.stop_tokens);
      text = rendered.text;
      json["spans"] = Json::array();
      for (const text::Rendered::Span &span : rendered.spans) {
        json["spans"].push_back({{"message", span.message}, {"begin", span.begin}, {"end", span.end}});
      }
    }
    json["ids"] = state.tokenizer->encode(text, false).ids;
    json["text"] = text;
    *out_json = buffer(to_text(json));
  });
}

uint32_t inlaid_tokenizer_vocab_size(const inlaid_tokenizer *t) INLAID_NOEXCEPT {
  return t == nullptr ? 0 : static_cast<uint32_t>(t->value->object->tokenizer->vocab_size());
}

void inlaid_tokenizer_release(inlaid_tokenizer *t) INLAID_NOEXCEPT { drop(t); }

inlaid_error *inlaid_decoder_create(inlaid_tokenizer *t, int32_t skip_special, inlaid_decoder **out) INLAID_NOEXCEPT {
  if (out != nullptr) *out = nullptr;
  return guard([&] {
    required(out, "out");
    const Owned<TokenizerState> &owned = *checked(t, "tokenizer").value;
    *out = new inlaid_decoder(std::make_shared<Owned<text::DecodeStream>>(Owned<text::DecodeStream>{
        owned.state, std::make_shared<text::DecodeStream>(owned.object->tokenizer, skip_special != 0)}));
  });
}

inlaid_error *inlaid_decoder_push(inlaid_decoder *d, int32_t id, inlaid_buffer **out_utf8) INLAID_NOEXCEPT {
  if (out_utf8 != nullptr) *out_utf8 = nullptr;
  return guard([&] {
    required(out_utf8, "out_utf8");
    inlaid_decoder &decoder = checked(d, "decoder");
    const Owner owner(decoder, "decoder");
    *out_utf8 = buffer(decoder.value->object->push(id));
  });
}

inlaid_error *inlaid_decoder_finish(inlaid_decoder *d, inlaid_buffer **out_utf8) INLAID_NOEXCEPT {
  if (out_utf8 != nullptr) *out_utf8 = nullptr;
  return guard([&] {
    required(out_utf8, "out_utf8");
    inlaid_decoder &decoder = checked(d, "decoder");
    const Owner owner(decoder, "decoder");
    *out_utf8 = buffer(decoder.value->object->finish());
  });
}

void inlaid_decoder_release(inlaid_decoder *d) INLAID_NOEXCEPT { drop(d); }

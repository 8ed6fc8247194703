#include "sdk/text/tokenizer.h"

#include "sdk/text/own_stack.h"
#include "sdk/text/rust_result.h"
#include "sdk/text/tokenizer_state.h"

namespace inlaid::text {
namespace {

// A tokenizer.json over this is refused. Real ones have up to 35 MB.
constexpr size_t kMaxJson = size_t{256} << 20;

}  // namespace

Tokenizer::State::~State() {
  inlaid_text_tokenizer_free(handle);
}

Tokenizer::Tokenizer() : state_(std::make_unique<State>()) {}
Tokenizer::~Tokenizer() = default;

std::shared_ptr<const Tokenizer> Tokenizer::from_json(std::string_view json, std::string_view what) {
  if (json.size() > kMaxJson) {
    fail(Code::kDataLoss, what, ": a tokenizer.json of ", json.size(), " bytes is over the limit of ",
         kMaxJson);
  }
  std::shared_ptr<Tokenizer> result(new Tokenizer());
  State& state = *result->state_;
  state.what = what;
  state.json = json;
  RustBytes error;
  int32_t code = 0;
  on_own_stack(
      [&] { code = inlaid_text_tokenizer_new(data_of(json), json.size(), &state.handle, error.out()); });
  if (code == static_cast<int32_t>(Code::kInvalidArgument) || code == static_cast<int32_t>(Code::kInternal)) {
    code = static_cast<int32_t>(
        Code::kDataLoss);  // the file is what is wrong, also where the crate panics over it
  }
  check_rust(code, error, what, ": not a valid tokenizer.json");
  RustWords ids;
  check_rust(inlaid_text_tokenizer_ids(state.handle, ids.out(), error.out()), error, what);
  const std::span<const uint32_t> pairs = ids.view();
  state.kinds.assign(size_t{pairs[pairs.size() - 2]} + 1, Tokenizer::State::Kind::kHole);
  for (size_t i = 0; i + 1 < pairs.size(); i += 2) {
    state.kinds[pairs[i]] =
        pairs[i + 1] != 0 ? Tokenizer::State::Kind::kSpecial : Tokenizer::State::Kind::kOrdinary;
  }
  state.streaming = static_cast<Tokenizer::State::Streaming>(inlaid_text_tokenizer_streaming(state.handle));
  return result;
}

Encoding Tokenizer::encode(std::string_view utf8, bool add_special) const {
  if (utf8.size() > max_bytes()) {
    fail(Code::kInvalidArgument, state_->what, ": a text of ", utf8.size(), " bytes is over the limit of ",
         max_bytes(), "; split it");
  }
  RustBytes error;
  RustWords words;
  check_rust(blame(Code::kDataLoss, inlaid_text_tokenizer_encode(state_->handle, data_of(utf8), utf8.size(),
                                                                 add_special, words.out(), error.out())),
             error, state_->what, ": cannot encode a text of ", utf8.size(), " bytes");
  const std::span<const uint32_t> triples = words.view();
  Encoding result;
  const size_t count = triples.size() / 3;
  result.ids.reserve(count);
  result.begin.reserve(count);
  result.end.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    const uint32_t id = triples[3 * i], begin = triples[3 * i + 1], end = triples[3 * i + 2];
    // A post-processor may name any id; an embedding has rows for those of the vocabulary only.
    if (id > INT32_MAX || !state_->has(static_cast<int32_t>(id))) {
      fail(Code::kDataLoss, state_->what, ": gives the id ", id, ", which is no token of its vocabulary");
    }
    if (begin > end || end > utf8.size()) {
      fail(Code::kDataLoss, state_->what, ": places a token at bytes ", begin, " to ", end, " of a text of ", utf8.size());
    }
    result.ids.push_back(static_cast<int32_t>(id));
    result.begin.push_back(triples[3 * i + 1]);
    result.end.push_back(triples[3 * i + 2]);
  }
  return result;
}

std::string Tokenizer::decode(std::span<const int32_t> ids, bool skip_special) const {
  for (int32_t id : ids) state_->check_id(id);
  RustBytes error;
  RustBytes text;
  // Ids are not negative, so that signed and unsigned words agree.
  const auto* words = reinterpret_cast<const uint32_t*>(ids.data());
  check_rust(blame(Code::kDataLoss, inlaid_text_tokenizer_decode(state_->handle, words, ids.size(), skip_special,
                                                                 text.out(), error.out())),
             error, state_->what, ": cannot decode ", ids.size(), " ids");
  return std::string(text.view());
}

int32_t Tokenizer::vocab_size() const {
  return static_cast<int32_t>(state_->kinds.size());
}

std::optional<int32_t> Tokenizer::token_to_id(std::string_view token) const {
  RustBytes error;
  int64_t id = -1;
  check_rust(inlaid_text_token_to_id(state_->handle, data_of(token), token.size(), &id, error.out()), error,
             state_->what);
  return id < 0 ? std::nullopt : std::optional<int32_t>(static_cast<int32_t>(id));
}

std::optional<std::string> Tokenizer::id_to_token(int32_t id) const {
  if (!state_->has(id)) return std::nullopt;
  RustBytes error;
  RustBytes token;
  check_rust(inlaid_text_id_to_token(state_->handle, static_cast<uint32_t>(id), token.out(), error.out()),
             error, state_->what);
  return std::string(token.view());
}

bool Tokenizer::is_special(int32_t id) const {
  return state_->has(id) && state_->kinds[static_cast<size_t>(id)] == State::Kind::kSpecial;
}

const std::string& Tokenizer::json() const {
  return state_->json;
}

bool Tokenizer::State::has(int32_t id) const {
  return id >= 0 && static_cast<size_t>(id) < kinds.size() && kinds[static_cast<size_t>(id)] != Kind::kHole;
}

void Tokenizer::State::check_id(int32_t id) const {
  if (!has(id)) {
    fail(Code::kInvalidArgument, what, ": id ", id, " is outside the vocabulary of ", kinds.size(), " ids");
  }
}

}  // namespace inlaid::text

#include "sdk/base/error.h"
#include "sdk/text/tokenizer.h"
#include "sdk/text/tokenizer_state.h"

namespace inlaid::text {
namespace {

bool ends_open(std::string_view text) {
  return text.ends_with("\xEF\xBF\xBD");
}

// "<0xNN>": one byte of a character, in vocabularies with byte fallback.
bool is_byte_token(std::string_view token) {
  return token.size() == 6 && token.starts_with("<0x") && token.ends_with('>');
}

}  // namespace

DecodeStream::DecodeStream(std::shared_ptr<const Tokenizer> tokenizer, bool skip_special)
    : tokenizer_(std::move(tokenizer)), skip_special_(skip_special) {}

std::string DecodeStream::push(int32_t id) {
  using Streaming = Tokenizer::State::Streaming;
  const Tokenizer::State& state = *tokenizer_->state_;
  state.check_id(id);
  ids_.push_back(id);
  if (state.streaming == Streaming::kWholeOnly) return "";
  if (skip_special_ && tokenizer_->is_special(id))
    return "";  // prints nothing, and does not end a run of bytes
  if (state.streaming == Streaming::kStepsOutsideBytes &&
      is_byte_token(tokenizer_->id_to_token(id).value_or(""))) {
    return "";
  }
  const std::string text = tokenizer_->decode(ids_, skip_special_);
  if (text.size() <= given_.size() || ends_open(text)) return "";
  std::string fresh = rest_of(text);
  // The next window begins where this result began, so that its first token is never the first of the
  // sequence, to which decoders give no leading space.
  ids_.erase(ids_.begin(), ids_.begin() + static_cast<std::ptrdiff_t>(read_));
  read_ = ids_.size();
  given_ = tokenizer_->decode(ids_, skip_special_);
  return fresh;
}

std::string DecodeStream::rest_of(const std::string& text) const {
  if (!text.starts_with(given_)) {
    fail(Code::kDataLoss, tokenizer_->state_->what,
         ": its decoder takes back text that it gave for fewer ids");
  }
  return text.substr(given_.size());
}

std::string DecodeStream::finish() {
  const std::string text = tokenizer_->decode(ids_, skip_special_);
  std::string fresh = rest_of(text);
  ids_.clear();
  read_ = 0;
  given_.clear();
  return fresh;
}

}  // namespace inlaid::text

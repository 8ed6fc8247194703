// Tokenizers: the C++ face of the crate `tokenizers`, read from a tokenizer.json (for a model inside a GGUF
// file, built from its metadata by formats/). Panics of the Rust side become errors here.
#ifndef INLAID_SDK_TEXT_TOKENIZER_H_
#define INLAID_SDK_TEXT_TOKENIZER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace inlaid::text {

struct Encoding {
  std::vector<int32_t> ids;
  // Byte range [begin, end) of the text from which each id came; tokens of one split character share its
  // range.
  std::vector<uint32_t> begin, end;
};

// Immutable; every const member may be called from any thread.
class Tokenizer {
 public:
  // Builds from the text of a tokenizer.json. `what` names the source in errors (kDataLoss). Truncation and
  // padding that the file may carry are switched off: they would change what a text means.
  static std::shared_ptr<const Tokenizer> from_json(std::string_view json, std::string_view what);
  ~Tokenizer();

  // Ids of a text. Special tokens written in the text become their ids. `add_special` runs the post-processor
  // (BOS and such); rendered chats are encoded without it. kInvalidArgument for invalid UTF-8 or over
  // `max_bytes()` bytes.
  Encoding encode(std::string_view utf8, bool add_special) const;
  // Text of ids. kInvalidArgument names an id outside the vocabulary.
  std::string decode(std::span<const int32_t> ids, bool skip_special) const;
  // Number of ids, added tokens included (largest id + 1).
  int32_t vocab_size() const;
  std::optional<int32_t> token_to_id(std::string_view token) const;
  std::optional<std::string> id_to_token(int32_t id) const;
  bool is_special(int32_t id) const;
  // The tokenizer.json as it was given.
  const std::string& json() const;
  // Encoding takes up to 430 bytes of memory per byte of text (measured), 7 GiB at this limit.
  static constexpr uint64_t max_bytes() { return uint64_t{16} << 20; }

 private:
  Tokenizer();
  friend class DecodeStream;
  struct State;
  std::unique_ptr<State> state_;
};

// Decodes ids one by one and gives out text only when it is final: whole UTF-8 characters, with the spaces
// that a decode of the whole sequence would have. The concatenation of all results equals decode() of all
// ids.
//
// Idea: the tokenizer decodes a window of the last ids with and without the new one; the difference of the
// two is the new text, held back while it ends in U+FFFD, the sign of a character that is not whole yet.
// Inside a run of byte tokens "<0xNN>" nothing is final before the run ends, because one invalid byte changes
// the text of the whole run. A decoder that looks back further (none of the published models has one) gives
// out everything at the end. Cost: O(window) per id. Not for use by two threads at once. Tested in
// decode_stream_test.cc.
class DecodeStream {
 public:
  DecodeStream(std::shared_ptr<const Tokenizer> tokenizer, bool skip_special);
  // Text that became final with this id; often empty in the middle of a character.
  std::string push(int32_t id);
  // The rest, at the end of the sequence.
  std::string finish();

 private:
  std::string rest_of(const std::string& text) const;

  std::shared_ptr<const Tokenizer> tokenizer_;
  bool skip_special_;
  std::vector<int32_t> ids_;  // the window, and what of it is already given out
  size_t read_ = 0;           // text of ids before this is given out
  std::string given_;         // decode of ids_[0, read_)
};

}  // namespace inlaid::text

#endif  // INLAID_SDK_TEXT_TOKENIZER_H_

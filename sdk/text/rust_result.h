// Results of the Rust library (rust/inlaid_text.h) as owning C++ values, and its codes as Error.
#ifndef INLAID_SDK_TEXT_RUST_RESULT_H_
#define INLAID_SDK_TEXT_RUST_RESULT_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "sdk/base/error.h"
#include "sdk/text/rust/inlaid_text.h"

namespace inlaid::text {

// Bytes that Rust owns: a text or the message of an error.
class RustBytes {
 public:
  RustBytes() = default;
  RustBytes(const RustBytes&) = delete;
  RustBytes& operator=(const RustBytes&) = delete;
  ~RustBytes() { inlaid_text_bytes_free(&bytes_); }

  inlaid_text_bytes* out() { return &bytes_; }
  std::string_view view() const { return {reinterpret_cast<const char*>(bytes_.data), bytes_.size}; }

 private:
  inlaid_text_bytes bytes_{nullptr, 0};
};

// 32-bit words that Rust owns.
class RustWords {
 public:
  RustWords() = default;
  RustWords(const RustWords&) = delete;
  RustWords& operator=(const RustWords&) = delete;
  ~RustWords() { inlaid_text_words_free(&words_); }

  inlaid_text_words* out() { return &words_; }
  std::span<const uint32_t> view() const { return {words_.data, words_.size}; }

 private:
  inlaid_text_words words_{nullptr, 0};
};

inline const uint8_t* data_of(std::string_view text) {
  return reinterpret_cast<const uint8_t*>(text.data());
}

// A panic of a crate is reported as kInternal. Where it happens over input from outside, that is what is to blame.
inline int32_t blame(Code input, int32_t code) {
  return code == static_cast<int32_t>(Code::kInternal) ? static_cast<int32_t>(input) : code;
}

// Throws the error of a failed call; `parts` say what it was about.
template <typename... Parts>
void check_rust(int32_t code, const RustBytes& error, const Parts&... parts) {
  if (code != 0) fail(static_cast<Code>(code), parts..., ": ", error.view());
}

}  // namespace inlaid::text

#endif  // INLAID_SDK_TEXT_RUST_RESULT_H_

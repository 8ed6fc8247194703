// Files of tests/golden/text for the tests of this folder.
#ifndef INLAID_SDK_TEXT_TESTING_H_
#define INLAID_SDK_TEXT_TESTING_H_

#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <sstream>
#include <string>

#include "sdk/base/error.h"
#include "sdk/base/json.h"
#include "sdk/text/chat_template.h"
#include "sdk/text/tokenizer.h"

namespace inlaid::text {

inline std::string golden_file(const std::string& name) {
  std::ifstream in(std::string(INLAID_SOURCE_DIR) + "/tests/golden/text/" + name, std::ios::binary);
  EXPECT_TRUE(in.good()) << name;
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

inline Json golden(const std::string& name) {
  return parse_json(golden_file(name), name);
}

// Rows of every golden tokenizer, by its name.
inline Json golden_encodings() {
  Json out = golden("tokenizers.json");
  out.update(golden("sentencepiece.json"));
  return out;
}

inline std::shared_ptr<const Tokenizer> golden_tokenizer(const std::string& name) {
  return Tokenizer::from_json(golden_file("tokenizers/" + name + ".json"), name);
}

inline Json special_tokens() {
  return {{"bos_token", "<s>"}, {"eos_token", "</s>"}};
}

inline std::shared_ptr<const ChatTemplate> golden_template(const std::string& name) {
  return ChatTemplate::compile(golden_file("templates/" + name + ".jinja"), special_tokens(), name);
}

// Runs `f` and returns the error it must throw.
template <typename F>
Error error_of(F f) {
  try {
    f();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no error";
  return Error(Code::kOk, "");
}

}  // namespace inlaid::text

#endif  // INLAID_SDK_TEXT_TESTING_H_

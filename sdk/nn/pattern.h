// Regular expressions over names of modules and parameters, as configurations and adapters bring them.
//
// They come from outside, and the usual way to match, by trying one alternative after the other, takes exponential time on
// "(.*)*x" and as much stack as the text is long. So the library's other executor is used, which follows all alternatives at
// once (Thompson, "Regular expression search algorithm", CACM 11(6), 1968): time is states times characters. What would make
// many states of few characters (counted repeats), and what that executor has to nest (look-ahead), is bounded; a back
// reference, which it cannot do, is refused. Tests: pattern_test.cc, tests/fuzz/adapter_config.cc.
#ifndef INLAID_SDK_NN_PATTERN_H_
#define INLAID_SDK_NN_PATTERN_H_

#include <regex>
#include <string>
#include <string_view>

namespace inlaid::nn {

class Pattern {
 public:
  // kInvalidArgument naming `key` for what is no regular expression (ECMAScript), or too costly a one.
  Pattern(const std::string& text, std::string_view key);
  bool matches(const std::string& name) const;    // the whole name
  bool is_inside(const std::string& name) const;  // a part of it

 private:
  std::regex regex_;
};

}  // namespace inlaid::nn

#endif  // INLAID_SDK_NN_PATTERN_H_

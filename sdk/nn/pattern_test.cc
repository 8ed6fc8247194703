#include "sdk/nn/pattern.h"

#include <gtest/gtest.h>

#include "sdk/base/error.h"

namespace inlaid::nn {
namespace {

std::string refusal(const std::string& text) {
  try {
    Pattern(text, "key");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kInvalidArgument);
    return error.message();
  }
  return "";
}

TEST(Pattern, MatchesWholeNamesOrParts) {
  const std::string name = "model.layers.11.self_attn.q_proj";
  EXPECT_TRUE(Pattern(R"(model\.layers\.\d{1,2}\.self_attn\.(q|v)_proj)", "key").matches(name));
  EXPECT_FALSE(Pattern("q_proj", "key").matches(name));
  EXPECT_TRUE(Pattern("q_proj$", "key").is_inside(name));
  EXPECT_TRUE(Pattern(R"(.*\.(?!k_)[a-z]_proj)", "key").matches(name));
}

// "(.*)*x" over 60 characters takes a matcher that backtracks 2^60 steps, and its stack grows with the name.
TEST(Pattern, TakesPolynomialTime) {
  const std::string name(60, 'a');
  EXPECT_FALSE(Pattern("(((.*)*)*)*x", "key").matches(name));
  EXPECT_FALSE(Pattern("(a|aa)+x", "key").is_inside(std::string(2000, 'a')));
}

TEST(Pattern, RefusesWhatCostsTooMuch) {
  EXPECT_NE(refusal("(a{1,99}){1,99}").find("repeats too much"), std::string::npos);
  EXPECT_NE(refusal("a{99999999999999999999}").find("repeats too much"), std::string::npos);
  EXPECT_NE(refusal(std::string(101, '(') + "a" + std::string(101, ')')).find("nested deeper"), std::string::npos);
  EXPECT_NE(refusal("(?=.*(?=.*(?=.*x)))").find("look-aheads"), std::string::npos);
  EXPECT_NE(refusal(R"((a)\1)").find("back reference"), std::string::npos);
  EXPECT_NE(refusal("(").find("is not valid"), std::string::npos);
  EXPECT_NE(refusal(std::string(1001, 'a')).find("longer than"), std::string::npos);
}

}  // namespace
}  // namespace inlaid::nn

#include "sdk/base/utf8.h"

#include <gtest/gtest.h>

#include "sdk/base/error.h"

namespace inlaid {
namespace {

TEST(Utf8, FindsTheFirstInvalidByte) {
  constexpr size_t kNone = std::string_view::npos;
  EXPECT_EQ(first_invalid_utf8("a\u00e9\u6771\U0001F418"), kNone);
  EXPECT_EQ(first_invalid_utf8(""), kNone);
  EXPECT_EQ(first_invalid_utf8("ab\xFF"), 2u);
  EXPECT_EQ(first_invalid_utf8("a\x80"), 1u);
  EXPECT_EQ(first_invalid_utf8("\xC0\xAF"), 0u);          // overlong
  EXPECT_EQ(first_invalid_utf8("\xE0\x9F\xBF"), 0u);      // overlong
  EXPECT_EQ(first_invalid_utf8("\xED\xA0\x80"), 0u);      // surrogate
  EXPECT_EQ(first_invalid_utf8("\xF0\x8F\xBF\xBF"), 0u);  // overlong
  EXPECT_EQ(first_invalid_utf8("\xF4\x90\x80\x80"), 0u);  // over U+10FFFF
  EXPECT_EQ(first_invalid_utf8("x\xE6\x9D"), 1u);         // cut off
}

TEST(Utf8, CutsExcerptsAtCharacters) {
  EXPECT_EQ(excerpt("abc", 3), "abc");
  EXPECT_EQ(excerpt("abcd", 3), "abc...");
  EXPECT_EQ(excerpt("ab\u6771", 3), "ab...");
}

TEST(Utf8, OneLineOfValidText) {
  EXPECT_EQ(one_line("tensor '\xE6\u6771\xFF' has\nno\tname", 100), "tensor '\uFFFD\u6771\uFFFD' has no name");
  EXPECT_EQ(one_line("plain", 5), "plain");
  EXPECT_EQ(one_line("0123456789abcdef", 8), "012345...ef");
  EXPECT_EQ(one_line("\u6771\u6771\u6771\u6771\u6771\u6771", 8), "\u6771\u6771...");
}

TEST(Utf8, ErrorsAreFitForALog) {
  const Error error(Code::kDataLoss, "file\xFF: " + std::string(100'000, '\n') + "damaged");
  EXPECT_LE(error.message().size(), Error::kMaxMessageBytes + 3);
  EXPECT_EQ(first_invalid_utf8(error.message()), std::string::npos);
  EXPECT_EQ(error.message().find('\n'), std::string::npos);
  EXPECT_TRUE(error.message().starts_with("file\uFFFD: "));
  EXPECT_TRUE(error.message().ends_with("damaged"));
}

}  // namespace
}  // namespace inlaid

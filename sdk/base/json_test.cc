#include "sdk/base/json.h"

#include <gtest/gtest.h>

#include "sdk/base/error.h"

namespace inlaid {
namespace {

std::string refusal(std::string_view text) {
  try {
    parse_json(text, "job.json");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kInvalidArgument);
    return error.message();
  }
  return "accepted";
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST(Json, ParsesEveryKindOfValueInOrder) {
  const Json value = parse_json(
      R"({"z":1,"a":-2,"n":null,"t":true,"f":1.5e-3,"s":"h\u00e9\ud83d\ude00","l":[1,[],{}]})", "x");
  EXPECT_EQ(
      to_text(value),
      "{\"z\":1,\"a\":-2,\"n\":null,\"t\":true,\"f\":0.0015,\"s\":\"h\u00e9\U0001F600\",\"l\":[1,[],{}]}");
  EXPECT_EQ(parse_json(" 18446744073709551615 ", "x").get<uint64_t>(), 18446744073709551615u);
  EXPECT_EQ(parse_json("\"top\"", "x"), "top");
}

TEST(Json, NumbersKeepTheirExactValue) {
  for (const char* text :
       {"0.1", "5e-05", "1e-300", "0.30000000000000004", "123456789.125", "2.2250738585072014e-308"}) {
    EXPECT_EQ(to_text(parse_json(text, "x")), text);
  }
}

TEST(Json, NamesSourceLineAndColumn) {
  EXPECT_EQ(refusal("{\"a\": 1,\n  \"b\": tru }").rfind("job.json: line 2, column ", 0), 0u)
      << refusal("{\"a\": 1,\n  \"b\": tru }");
  EXPECT_TRUE(has(refusal("[1, 2"), "line 1, column 5"));
  EXPECT_TRUE(has(refusal("\n\n   x"), "line 3, column 4"));
}

TEST(Json, RefusesWhatIsNotStrictJson) {
  for (const char* text :
       {"",          " ",        "{} x",        "1 2",       "[1,]",    "{\"a\":1,}", "// c\n1",
        "/* c */ 1", "NaN",      "[Infinity]",  "-",         "01",      "+1",         ".5",
        "1.",        "'a'",      "{a:1}",       "[1 2]",     "\"\\x\"", "\"\t\"",     "\"open",
        "1e999",     "[-1e999]", "\"\\ud800\"", "{\"a\" 1}", "nul",     "]",          "}"}) {
    EXPECT_TRUE(has(refusal(text), "job.json: line ")) << text << " gave " << refusal(text);
  }
}

TEST(Json, RefusesBadUtf8AndKeepsTheMessageUtf8) {
  for (const char* text :
       {"\"\xff\"", "\"\xc0\xaf\"", "\"\xed\xa0\x80\"", "\"\xf5\x80\x80\x80\"", "\"ab\xc3\"", "\xfe"}) {
    const std::string message = refusal(text);
    EXPECT_TRUE(has(message, "job.json: line 1")) << message;
    EXPECT_NO_THROW(to_text(Json(message))) << "the message itself is not UTF-8";
  }
  EXPECT_LT(refusal("\"" + std::string(100000, 'a') + "\x01\"").size(), 300u)
      << "the message must not hold the document";
}

TEST(Json, DuplicateKeyIsNamedWithItsFullPath) {
  EXPECT_TRUE(has(refusal(R"({"a":1,"a":2})"), "key 'a' appears twice"));
  EXPECT_TRUE(
      has(refusal(R"({"optim":{"lr":[{"x":1},{"y":1,"y":2}]}})"), "key 'optim.lr[1].y' appears twice"));
  EXPECT_TRUE(has(refusal(R"([[0,{"y":{}, "y":2}]])"), "key '[0][1].y' appears twice"));
  EXPECT_TRUE(has(refusal("{\"a\":1,\n\"\\u0061\":2}"), "line 2")) << "an escaped spelling is the same key";
  EXPECT_NO_THROW(parse_json(R"({"a":{"a":1},"b":{"a":1}})", "x")) << "the same key in different objects";
}

TEST(Json, DepthIsBounded) {
  const std::string open(64, '['), close(64, ']');
  EXPECT_NO_THROW(parse_json(open + close, "x"));
  EXPECT_TRUE(has(refusal("[" + open + close + "]"), "nested deeper than 64"));
  EXPECT_TRUE(has(refusal(std::string(1000000, '[')), "nested deeper than 64"));
  std::string objects;
  for (int i = 0; i < 65; ++i) objects += "{\"k\":";
  EXPECT_TRUE(has(refusal(objects), "nested deeper than 64"));
}

TEST(Json, ManyKeysCostLinearTime) {
  std::string text = "{";
  for (int i = 0; i < 200000; ++i) text += (i ? ",\"k" : "\"k") + std::to_string(i) + "\":0";
  EXPECT_EQ(parse_json(text + "}", "x").size(), 200000u);
}

TEST(Json, WritingRefusesStringsThatAreNotUtf8) {
  EXPECT_THROW(to_text(Json{{"k", "\xff"}}), Error);
  EXPECT_EQ(to_text(Json("a\"\\\n\x01")), R"("a\"\\\n\u0001")");
}

TEST(Json, TypedAccessNamesSourceKeyAndType) {
  const Json object =
      parse_json(R"({"i":3,"d":2.5,"b":true,"s":"x","u":18446744073709551615,"n":null})", "x");
  EXPECT_EQ(int_at(object, "i", "c"), 3);
  EXPECT_EQ(number_at(object, "i", "c"), 3.0);
  EXPECT_EQ(number_at(object, "d", "c"), 2.5);
  EXPECT_TRUE(bool_at(object, "b", "c"));
  EXPECT_EQ(string_at(object, "s", "c"), "x");
  auto message = [&](auto call) -> std::string {
    try {
      call();
    } catch (const Error& error) {
      return error.message();
    }
    return "accepted";
  };
  EXPECT_EQ(message([&] { int_at(object, "d", "config.json"); }), "config.json: key 'd' must be an integer");
  EXPECT_EQ(message([&] { int_at(object, "zz", "config.json"); }), "config.json: key 'zz' is missing");
  EXPECT_NE(message([&] { int_at(object, "u", "c"); }), "accepted");
  EXPECT_NE(message([&] { int_at(object, "n", "c"); }), "accepted");
  EXPECT_NE(message([&] { bool_at(object, "i", "c"); }), "accepted");
  EXPECT_NE(message([&] { string_at(object, "b", "c"); }), "accepted");
  EXPECT_NE(message([&] { number_at(object, "s", "c"); }), "accepted");
  EXPECT_NE(message([&] { at(Json(3), "s", "c"); }), "accepted");
}

TEST(Json, NearestFindsTypingMistakesOnly) {
  const std::vector<std::string> keys = {"learning_rate", "weight_decay", "warmup_steps", "seed"};
  EXPECT_EQ(nearest("learnig_rate", keys), "learning_rate");
  EXPECT_EQ(nearest("Learning_Rate", keys), "learning_rate");
  EXPECT_EQ(nearest("seedd", keys), "seed");
  EXPECT_EQ(nearest("esed", keys), "seed") << "neighbours exchanged";
  EXPECT_EQ(nearest("banana", keys), "");
  EXPECT_EQ(nearest("", keys), "");
  EXPECT_EQ(nearest(std::string(1 << 20, 'x'), keys), "");
}

}  // namespace
}  // namespace inlaid

// Facts about the generated schema and documentation.
#include <gtest/gtest.h>

#include <functional>

#include "sdk/base/error.h"
#include "sdk/config/config.h"
#include "sdk/config/table.h"

namespace inlaid::config {
namespace {

Json schema() {
  return parse_json(Config::schema(), "schema");
}

const Json& property(const Json& schema, const std::string& path) {
  const Json* node = &schema;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('.', begin), path.size());
    node = &at(at(*node, "properties", path), path.substr(begin, end - begin), path);
    begin = end + 1;
  }
  return *node;
}

TEST(Schema, EveryKeyOfTheTableIsThere) {
  const Json root = schema();
  EXPECT_EQ(root["$schema"], "https://json-schema.org/draft/2020-12/schema");
  for (const Key& key : table()) {
    const Json& entry = property(root, std::string(key.path));
    EXPECT_TRUE(entry["description"].is_string()) << key.path;
    if (key.preset != "null") {
      EXPECT_EQ(entry["default"], parse_json(key.preset, "x")) << key.path;
    }
  }
}

TEST(Schema, NoObjectWithPropertiesAllowsOthers) {
  int objects = 0;
  const std::function<void(const Json&)> visit = [&](const Json& node) {
    if (node.is_object() && node.contains("properties") && node["properties"].is_object() &&
        node.contains("type")) {
      ++objects;
      EXPECT_EQ(node.value("additionalProperties", Json()), Json(false));
    }
    if (node.is_structured()) {
      for (const Json& child : node) visit(child);
    }
  };
  visit(schema());
  EXPECT_EQ(objects, 14)
      << "the document, its 10 sections, lr_scheduler_kwargs, entries of data.train and data.eval";
}

TEST(Schema, StatesTypesRangesAndValues) {
  const Json root = schema();
  const auto value = [&](const char* path) { return property(root, path)["anyOf"][0]; };
  EXPECT_EQ(to_text(value("train.seed")), R"({"type":"integer","minimum":0,"maximum":9223372036854775807})");
  EXPECT_EQ(to_text(value("optim.adam_beta1")), R"({"type":"number","minimum":0,"exclusiveMaximum":1})");
  EXPECT_EQ(to_text(value("model.recompute")), R"({"type":"string","enum":["none","full","auto"]})");
  EXPECT_EQ(to_text(value("parallel.tensor")), R"({"const":1})");
  EXPECT_EQ(to_text(value("adapter.rank_pattern")),
            R"({"type":"object","additionalProperties":{"type":"integer","minimum":1,"maximum":65536}})");
  EXPECT_EQ(to_text(value("data.train")["items"]["required"]), R"(["path"])");
}

TEST(Table, DefaultsAreValidAndHelpIsThere) {
  for (const Key& key : table()) {
    EXPECT_FALSE(key.help.empty()) << key.path;
    EXPECT_EQ(key.help.back(), '.') << key.path;
  }
  // Each default, written out, is accepted, apart from those of an adapter that is not there.
  for (const Key& key : table()) {
    if (key.preset == "null" || key.path.starts_with("adapter.")) continue;
    Config config = Config::parse("{}");
    EXPECT_NO_THROW(config.set(key.path, key.preset)) << key.path;
    EXPECT_EQ(config.to_json(), Config::parse("{}").to_json()) << key.path;
  }
  Config adapter = Config::parse(R"({"adapter":{"peft_type":"LORA"}})");
  const std::string before = adapter.to_json();
  for (const Key& key : table()) {
    if (key.preset != "null" && key.path.starts_with("adapter.")) adapter.set(key.path, key.preset);
  }
  EXPECT_EQ(adapter.to_json(), before);
}

TEST(Documentation, HasARowForEveryKey) {
  const std::string text = Config::documentation();
  for (const Key& key : table()) {
    EXPECT_NE(text.find("| `" + std::string(key.path) + "` |"), std::string::npos) << key.path;
  }
  EXPECT_NE(text.find("| `data.train[].format` | `\"auto\"` |"), std::string::npos);
  EXPECT_NE(text.find("| `optim.adam_beta1` | `0.9` | number, >= 0, < 1 | Decay of the first moment. |"),
            std::string::npos);
}

}  // namespace
}  // namespace inlaid::config

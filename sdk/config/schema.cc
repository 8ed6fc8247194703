// JSON Schema (draft 2020-12) and Markdown, both from the table of keys. The schema describes each key for
// itself: rules between keys (rules.h) are not in it, and null, which means default, is accepted everywhere.
#include <cmath>
#include <cstdint>

#include "sdk/base/json.h"
#include "sdk/config/config.h"
#include "sdk/config/table.h"

namespace inlaid::config {
namespace {

Json preset(const Key& key) {
  return parse_json(key.preset, "table of keys");
}

Json text_list(std::string_view values) {
  Json list = Json::array();
  for (std::string& value : split_values(values)) list.push_back(std::move(value));
  return list;
}

// Whole bounds are written as integers.
Json bound_value(double bound) {
  const auto whole = static_cast<int64_t>(bound);
  return static_cast<double>(whole) == bound ? Json(whole) : Json(bound);
}

void add_range(const Key& key, Json* schema) {
  const auto add = [&](const char* word, double bound) {
    if (!std::isnan(bound)) (*schema)[word] = bound_value(bound);
  };
  add("minimum", key.min);
  add("maximum", key.max);
  add("exclusiveMinimum", key.above);
  add("exclusiveMaximum", key.below);
}

Json number_schema(const Key& key, const char* type) {
  Json schema = {{"type", type}};
  add_range(key, &schema);
  if (std::string_view(type) == "integer" && std::isnan(key.max)) schema["maximum"] = INT64_MAX;
  return schema;
}

Json text_schema(const Key& key) {
  Json schema = {{"type", "string"}};
  if (!key.values.empty()) schema["enum"] = text_list(key.values);
  if (!key.empty) schema["minLength"] = 1;
  return schema;
}

Json list_schema(const Key& key) {
  Json schema = {{"type", "array"}, {"items", text_schema(key)}, {"uniqueItems", true}};
  if (!key.empty) schema["minItems"] = 1;
  return schema;
}

Json map_schema(Json entry) {
  return {{"type", "object"}, {"additionalProperties", std::move(entry)}};
}

Json key_schema(const Key& key);

Json sources_schema() {
  Json properties = Json::object();
  for (const Key& key : source_table()) properties[std::string(key.path)] = key_schema(key);
  properties["path"] = {
      {"type", "string"}, {"minLength", 1}, {"description", properties["path"]["description"]}};
  Json entry = {{"type", "object"},
                {"properties", std::move(properties)},
                {"required", {"path"}},
                {"additionalProperties", false}};
  return {{"type", "array"}, {"items", std::move(entry)}, {"minItems", 1}};
}

// Without null, default and description.
Json value_schema(const Key& key) {
  if (key.fixed) return {{"const", preset(key)}};
  switch (key.type) {
    case Type::kFlag:
      return {{"type", "boolean"}};
    case Type::kInteger:
      return number_schema(key, "integer");
    case Type::kNumber:
      return number_schema(key, "number");
    case Type::kText:
    case Type::kPath:
    case Type::kTemplate:
      return text_schema(key);
    case Type::kFlagOrText:
      return {{"anyOf", Json::array({Json{{"type", "boolean"}}, text_schema(key)})}};
    case Type::kTexts:
      return list_schema(key);
    case Type::kTextOrTexts:
      return {{"anyOf", Json::array({text_schema(key), list_schema(key)})}};
    case Type::kIntegers:
      return map_schema(number_schema(key, "integer"));
    case Type::kNumbers:
      return map_schema(number_schema(key, "number"));
    case Type::kTextMap:
      return map_schema(text_schema(key));
    case Type::kObject:
      return {{"type", "object"}};
    case Type::kSources:
      return sources_schema();
  }
  return Json::object();
}

Json key_schema(const Key& key) {
  Json value = value_schema(key);
  Json schema = key.fixed && preset(key).is_null()
                    ? Json{{"type", "null"}}
                    : Json{{"anyOf", Json::array({std::move(value), Json{{"type", "null"}}})}};
  std::string help(key.help);
  if (key.fixed) help += " Other values are not supported in this build.";
  if (!key.later.empty()) help += " Not supported in this build: " + text_list(key.later).dump() + ".";
  schema["description"] = help;
  if (!preset(key).is_null()) schema["default"] = preset(key);
  return schema;
}

Json section_schema(const std::string& section) {
  Json properties = Json::object();
  for (const std::string& name : names_in(section)) {
    const std::string path = section.empty() ? name : section + "." + name;
    const Key* key = find_key(path);
    properties[name] = key != nullptr ? key_schema(*key) : section_schema(path);
  }
  Json schema = {{"type", section.empty() ? Json("object") : Json::array({"object", "null"})}};
  schema["properties"] = std::move(properties);
  schema["additionalProperties"] = false;
  return schema;
}

const char* type_name(const Key& key) {
  switch (key.type) {
    case Type::kFlag:
      return "true, false";
    case Type::kInteger:
      return "integer";
    case Type::kNumber:
      return "number";
    case Type::kText:
      return "text";
    case Type::kPath:
      return "path";
    case Type::kTemplate:
      return "path or text";
    case Type::kFlagOrText:
      return "true, false";
    case Type::kTexts:
      return "list of texts";
    case Type::kTextOrTexts:
      return "text or list of texts";
    case Type::kIntegers:
      return "object of integers";
    case Type::kNumbers:
      return "object of numbers";
    case Type::kTextMap:
      return "object of texts";
    case Type::kObject:
      return "object";
    case Type::kSources:
      return "list of objects";
  }
  return "";
}

// Text set as code in Markdown.
std::string code(std::string_view text) {
  std::string out(1, '`');
  out += text;
  out += '`';
  return out;
}

std::string values_text(const Key& key) {
  std::string out;
  const auto add = [&](const std::string& part) {
    if (!out.empty()) out += ", ";
    out += part;
  };
  if (key.values.empty() || key.type != Type::kText) add(type_name(key));
  for (const std::string& value : split_values(key.values)) add(code(value));
  const auto bound = [&](const char* sign, double value) {
    if (!std::isnan(value)) add(sign + bound_value(value).dump());
  };
  bound(">= ", key.min);
  bound("<= ", key.max);
  bound("> ", key.above);
  bound("< ", key.below);
  return out;
}

void add_rows(std::span<const Key> keys, const std::string& prefix, std::string* out) {
  for (const Key& key : keys) {
    *out += "| " + code(prefix + std::string(key.path)) + " | ";
    *out += preset(key).is_null() ? "–" : code(key.preset);
    *out += " | " + values_text(key) + " | ";
    *out += key.help;
    if (key.fixed) *out += " Other values: not in this build.";
    if (!key.later.empty()) {
      *out += " Not in this build:";
      for (const std::string& value : split_values(key.later)) out->append(1, ' ').append(code(value));
      *out += '.';
    }
    *out += " |\n";
  }
}

}  // namespace

std::string Config::schema() {
  Json schema = {
      {"$schema", "https://json-schema.org/draft/2020-12/schema"},
      {"title", "Configuration of an Inlaid job"},
      {"description",
       "null means default everywhere. Rules between keys are checked when the document is used."}};
  schema.update(section_schema(""));
  return to_text(schema);
}

std::string Config::documentation() {
  std::string out = "| key | default | values | meaning |\n|---|---|---|---|\n";
  add_rows(table(), "", &out);
  add_rows(source_table(), "data.train[].", &out);
  return out;
}

}  // namespace inlaid::config

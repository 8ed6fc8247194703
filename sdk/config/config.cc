#include "sdk/config/config.h"

#include "sdk/base/error.h"
#include "sdk/config/rules.h"
#include "sdk/config/table.h"
#include "sdk/config/validate.h"

namespace inlaid::config {
namespace {

constexpr std::string_view kWhat = "configuration";

// The place of a dotted path in a document; objects on the way are made.
Json& place(Json& document, std::string_view path) {
  Json* node = &document;
  for (;;) {
    const size_t dot = path.find('.');
    if (!node->is_object()) *node = Json::object();
    node = &(*node)[std::string(path.substr(0, dot))];
    if (dot == std::string_view::npos) return *node;
    path.remove_prefix(dot + 1);
  }
}

const Json* find(const Json& document, std::string_view path) {
  const Json* node = &document;
  for (;;) {
    const size_t dot = path.find('.');
    if (!node->is_object()) return nullptr;
    const auto found = node->find(std::string(path.substr(0, dot)));
    if (found == node->end()) return nullptr;
    if (dot == std::string_view::npos) return &*found;
    node = &*found;
    path.remove_prefix(dot + 1);
  }
}

Json canonical_form(Values values) {
  apply_rules(&values);
  Json document = Json::object();
  for (const Key& key : table()) {
    const auto found = values.find(key.path);
    place(document, key.path) =
        found != values.end() ? found->second : parse_json(key.preset, "table of keys");
  }
  return document;
}

const Key& known(std::string_view path) {
  const Key* key = find_key(path);
  if (key == nullptr) fail(Code::kInternal, "the table of configuration keys has no '", path, "'");
  return *key;
}

[[noreturn]] void missing(std::string_view path) {
  refuse(path, "is needed and not set");
}

}  // namespace

Config Config::parse(std::string_view json, const std::string& folder) {
  Config config;
  const Values values = validate(parse_json(json, kWhat), folder);
  config.given_ = Json::object();
  for (const auto& [path, value] : values) place(config.given_, path) = value;
  config.canonical_ = canonical_form(values);
  return config;
}

void Config::set(std::string_view path, std::string_view json_value) {
  if (find_key(path) == nullptr && !is_section(path)) refuse_unknown(path);
  Json document = given_;
  place(document, path) = parse_json(json_value, path);
  Json canonical = canonical_form(validate(document, ""));
  given_ = std::move(document);
  canonical_ = std::move(canonical);
}

void Config::check_job() const {
  if (!has("model.path") && !has("model.config")) {
    refuse("model.path", "is needed: a model folder or GGUF file, or 'model.config' to train from scratch");
  }
  if (!has("data.train")) missing("data.train");
  const bool evaluates = has("data.eval") || number("data.eval_fraction") > 0;
  for (const char* key : {"train.early_stopping_patience", "checkpoint.keep_best"}) {
    if (!has(key) || integer(key) == 0) continue;
    if (!evaluates) refuse(key, "needs something to evaluate on: set 'data.eval' or 'data.eval_fraction'");
    if (!has("train.eval_steps")) refuse(key, "needs evaluations in the course of training: set 'train.eval_steps'");
  }
}

std::string Config::to_json() const {
  return to_text(canonical_);
}

const Json& Config::value(std::string_view path) const {
  if (find_key(path) == nullptr && !is_section(path)) known(path);
  const Json* found = find(canonical_, path);
  return found != nullptr ? *found : canonical_;
}

bool Config::has(std::string_view path) const {
  const Json* found = find(canonical_, path);
  if (found == nullptr) known(path);
  return found != nullptr && !found->is_null();
}

// A key that another replaces reads as its default here: who asks for it has no use for null.
Json Config::needed(std::string_view path) const {
  const Key& key = known(path);
  const Json* found = find(canonical_, path);
  Json value = found != nullptr && !found->is_null() ? *found : parse_json(key.preset, "table of keys");
  if (value.is_null()) missing(path);
  return value;
}

bool Config::flag(std::string_view path) const {
  const Json value = needed(path);
  INLAID_CHECK(value.is_boolean());
  return value.get<bool>();
}

int64_t Config::integer(std::string_view path) const {
  const Json value = needed(path);
  INLAID_CHECK(value.is_number_integer());
  return value.get<int64_t>();
}

double Config::number(std::string_view path) const {
  const Json value = needed(path);
  INLAID_CHECK(value.is_number());
  return value.get<double>();
}

std::string Config::text(std::string_view path) const {
  const Json value = needed(path);
  INLAID_CHECK(value.is_string());
  return value.get<std::string>();
}

std::optional<int64_t> Config::optional_integer(std::string_view path) const {
  return has(path) ? std::optional(integer(path)) : std::nullopt;
}

std::optional<double> Config::optional_number(std::string_view path) const {
  return has(path) ? std::optional(number(path)) : std::nullopt;
}

std::optional<std::string> Config::optional_text(std::string_view path) const {
  return has(path) ? std::optional(text(path)) : std::nullopt;
}

}  // namespace inlaid::config

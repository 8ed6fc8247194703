#include "sdk/formats/tokenizer_config.h"

#include <string_view>

namespace inlaid::formats {
namespace {

// "bos_token", "eos_token", ...; not "add_bos_token", which is a flag.
bool names_special_token(std::string_view key, const Json& value) {
  return key.ends_with("_token") && (value.is_string() || (value.is_object() && value.contains("content")));
}

Json plain(const Json& token) {
  return token.is_object() ? token["content"] : token;
}

}  // namespace

Json normal_tokenizer_config(Json config, const Json& special_tokens_map) {
  for (auto& [key, value] : config.items()) {
    if (names_special_token(key, value)) value = plain(value);
  }
  if (!special_tokens_map.is_object()) return config;
  for (const auto& [key, value] : special_tokens_map.items()) {
    const bool absent = !config.contains(key) || config[key].is_null();
    if (absent && names_special_token(key, value)) config[key] = plain(value);
  }
  return config;
}

std::string chat_template_of(const Json& config) {
  const auto found = config.find("chat_template");
  if (found == config.end()) return "";
  if (found->is_string()) return found->get<std::string>();
  if (!found->is_array()) return "";
  std::string only;
  for (const Json& entry : *found) {
    if (!entry.is_object() || !entry.contains("template") || !entry["template"].is_string()) continue;
    const std::string text = entry["template"].get<std::string>();
    if (entry.contains("name") && entry["name"] == "default") return text;
    if (found->size() == 1) only = text;
  }
  return only;
}

Json without_chat_template(Json config, const std::string& chat_template) {
  const auto found = config.find("chat_template");
  if (found == config.end()) return config;
  if (!found->is_array()) {
    config.erase("chat_template");
    return config;
  }
  for (Json& entry : *found) {
    if (entry.is_object() && entry.contains("name") && entry["name"] == "default")
      entry["template"] = chat_template;
  }
  return config;
}

}  // namespace inlaid::formats

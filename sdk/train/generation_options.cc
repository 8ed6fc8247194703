#include <cmath>

#include "sdk/base/error.h"
#include "sdk/train/generator.h"

namespace inlaid::train {

GenerationOptions GenerationOptions::parse(std::string_view text) {
  const std::string what = "generation options";
  const Json json = text.empty() ? Json::object() : parse_json(text, what);
  if (!json.is_object()) fail(Code::kInvalidArgument, what, ": must be an object");
  GenerationOptions options;
  for (const auto& [key, value] : json.items()) {
    if (value.is_null()) continue;
    if (key == "max_new_tokens") {
      options.max_new_tokens = int_at(json, key, what);
    } else if (key == "max_length") {
      options.max_length = int_at(json, key, what);
    } else if (key == "temperature") {
      options.temperature = number_at(json, key, what);
    } else if (key == "top_k") {
      options.top_k = int_at(json, key, what);
    } else if (key == "top_p") {
      options.top_p = number_at(json, key, what);
    } else if (key == "seed") {
      options.seed = static_cast<uint64_t>(int_at(json, key, what));
    } else if (key == "stop") {
      if (!value.is_array()) fail(Code::kInvalidArgument, what, ": stop must be a list of texts");
      for (const Json& entry : value) {
        if (!entry.is_string() || entry.get<std::string>().empty()) {
          fail(Code::kInvalidArgument, what, ": stop must be a list of texts that are not empty");
        }
        options.stop.push_back(entry.get<std::string>());
      }
    } else {
      const std::string near = nearest(
          key, {"max_new_tokens", "max_length", "temperature", "top_k", "top_p", "seed", "stop"});
      fail(Code::kInvalidArgument, what, ": unknown key '", key, "'", near.empty() ? "" : "; did you mean '" + near + "'?");
    }
  }
  const auto range = [&](const char* key, bool good, const char* right) {
    if (!good) fail(Code::kInvalidArgument, what, ": ", key, " must be ", right);
  };
  range("max_new_tokens", options.max_new_tokens >= 0, "at least 0");
  range("max_length", options.max_length >= 0 && options.max_length <= (1 << 20), "between 0 and 2^20");
  range("temperature", std::isfinite(options.temperature) && options.temperature >= 0, "at least 0");
  range("top_k", options.top_k >= 0, "at least 0");
  range("top_p", options.top_p > 0 && options.top_p <= 1, "above 0 and at most 1");
  return options;
}

}  // namespace inlaid::train

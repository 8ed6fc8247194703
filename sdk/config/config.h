// The configuration of a job: one JSON document, strict, described by one table (schema.cc) of key, type, default, range
// and help, from which validation, defaults, canonical print, JSON Schema and documentation are made.
#ifndef INLAID_SDK_CONFIG_CONFIG_H_
#define INLAID_SDK_CONFIG_CONFIG_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sdk/base/json.h"

namespace inlaid::config {

class Config {
 public:
  // Parses and validates. Unknown, mistyped, duplicate or out-of-range key: kInvalidArgument with the full path and the
  // nearest valid key. `null` means default. Keys that this build cannot honour (for example precision.mode = fp8) are
  // refused with the reason. Relative paths are made absolute against `folder` ("" leaves them).
  static Config parse(std::string_view json, const std::string& folder = "");

  // Sets one value by dotted path ("optim.learning_rate") and validates the whole again; on failure nothing changes.
  void set(std::string_view path, std::string_view json_value);

  // Canonical JSON: defaults filled in, keys in the table's order; equal configurations give equal bytes.
  std::string to_json() const;
  // JSON Schema (draft 2020-12) of everything parse() accepts.
  static std::string schema();
  // Markdown table of keys, defaults and help.
  static std::string documentation();

  // Typed access by dotted path. A path that the table does not have is kInternal (a mistake in the engine). The optional_
  // forms give nothing for a key whose default is "absent" and that was not set.
  bool flag(std::string_view path) const;
  int64_t integer(std::string_view path) const;
  double number(std::string_view path) const;
  std::string text(std::string_view path) const;
  std::optional<int64_t> optional_integer(std::string_view path) const;
  std::optional<double> optional_number(std::string_view path) const;
  std::optional<std::string> optional_text(std::string_view path) const;
  const Json& value(std::string_view path) const;  // null when absent
  bool has(std::string_view path) const;           // set, or has a default

 private:
  Json canonical_;
};

}  // namespace inlaid::config

#endif  // INLAID_SDK_CONFIG_CONFIG_H_

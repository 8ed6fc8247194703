// The configuration of a job: one JSON document, strict, described by one table (table.cc) of key, type,
// default, range and help, from which validation, defaults, canonical print, JSON Schema and documentation
// are made.
//
// A document passes three stages: parse_json (strict JSON), validate.h (each key for itself), rules.h (keys
// against each other, and defaults that depend on other keys). Tested by config_test.cc and schema_test.cc.
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
  // Parses and validates. Unknown, mistyped, duplicate or out-of-range key: kInvalidArgument with the full
  // path and the nearest valid key. `null` means default. Keys that this build cannot honour (for example
  // precision.mode = fp8) are refused with the reason, as kUnimplemented. Details of the error hold {"key":
  // path}, and "nearest" for an unknown key. Relative paths are made absolute against `folder` ("" leaves
  // them). No key is obligatory here: a program may use the parts of a configuration one by one; check_job()
  // is for a whole job.
  static Config parse(std::string_view json, const std::string& folder = "");

  // Sets one value by dotted path ("optim.learning_rate") and validates the whole again; on failure nothing
  // changes. null gives the default back; defaults that depend on other keys follow them. Relative paths stay
  // as they are.
  void set(std::string_view path, std::string_view json_value);

  // kInvalidArgument naming what a whole job needs and this document lacks: a model, and data.train.
  void check_job() const;

  // Canonical JSON: defaults filled in, keys in the table's order; equal configurations give equal bytes.
  std::string to_json() const;
  // JSON Schema (draft 2020-12) of everything parse() accepts.
  static std::string schema();
  // Markdown table of keys, defaults and help.
  static std::string documentation();

  // Typed access by dotted path. A path that the table does not have is kInternal (a mistake in the engine);
  // a key without default that was not set is kInvalidArgument. A key that another one replaces
  // (train.micro_batch_tokens beside train.micro_batch_size) reads as its default. The optional_ forms give
  // nothing for absent and replaced keys.
  bool flag(std::string_view path) const;
  int64_t integer(std::string_view path) const;
  double number(std::string_view path) const;
  std::string text(std::string_view path) const;
  std::optional<int64_t> optional_integer(std::string_view path) const;
  std::optional<double> optional_number(std::string_view path) const;
  std::optional<std::string> optional_text(std::string_view path) const;
  const Json& value(std::string_view path) const;  // null when absent; a section gives its object
  bool has(std::string_view path) const;           // set, or has a default, and not replaced by another key

 private:
  Json needed(std::string_view path) const;

  Json given_ = Json::object();  // what was set, valid, paths absolute
  Json canonical_;               // given_ with all defaults; every key of the table is there
};

}  // namespace inlaid::config

#endif  // INLAID_SDK_CONFIG_CONFIG_H_

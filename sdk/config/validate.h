// From a document to values: unknown keys, types, ranges and what this build cannot do. Rules between keys
// are in rules.h.
#ifndef INLAID_SDK_CONFIG_VALIDATE_H_
#define INLAID_SDK_CONFIG_VALIDATE_H_

#include <map>
#include <string>
#include <string_view>

#include "sdk/base/json.h"
#include "sdk/config/table.h"

namespace inlaid::config {

// Values by dotted path: what the document sets, without nulls, each in its canonical form.
using Values = std::map<std::string, Json, std::less<>>;

// Checks a whole document. Relative paths become absolute against `folder` unless that is "".
Values validate(const Json& document, const std::string& folder);

// Throws kInvalidArgument, or kUnimplemented for what this build cannot do, about one key: message "key 'KEY'
// TEXT", details
// {"key": KEY}.
[[noreturn]] void refuse(std::string_view key, const std::string& text);
[[noreturn]] void refuse_in_this_build(std::string_view key, const std::string& text);
// The same for a key that does not exist, with the nearest one that does.
[[noreturn]] void refuse_unknown(std::string_view path);

}  // namespace inlaid::config

#endif  // INLAID_SDK_CONFIG_VALIDATE_H_

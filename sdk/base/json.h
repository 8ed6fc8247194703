// Strict JSON on top of nlohmann-json: UTF-8 only, no comments, no trailing text, no duplicate keys, bounded
// depth.
#ifndef INLAID_SDK_BASE_JSON_H_
#define INLAID_SDK_BASE_JSON_H_

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace inlaid {

// Keeps the order of keys as written, which matters for canonical output and for templates that print
// objects.
using Json = nlohmann::ordered_json;

// Parses one document. `what` names the source in messages, for example a file name or "row 12 of
// data.jsonl". Throws kInvalidArgument naming `what`, line and column, and for a duplicate key its full path.
// Depth over 64 (arrays and objects) is refused.
Json parse_json(std::string_view text, std::string_view what);

// One-line text of a value, UTF-8 kept as it is. Throws kInvalidArgument for strings that are not UTF-8.
std::string to_text(const Json& value);

// Typed access with an error that names `what` and the key: "config.json: key 'hidden_size' must be an
// integer".
const Json& at(const Json& object, std::string_view key, std::string_view what);
int64_t int_at(const Json& object, std::string_view key, std::string_view what);
double number_at(const Json& object, std::string_view key, std::string_view what);
bool bool_at(const Json& object, std::string_view key, std::string_view what);
std::string string_at(const Json& object, std::string_view key, std::string_view what);

// The candidate nearest to `word` by edit distance, or "" when none is near enough to be what was meant.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace inlaid

#endif  // INLAID_SDK_BASE_JSON_H_

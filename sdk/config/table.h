// The declaration of every configuration key: one row each, from which validation, defaults, canonical print,
// JSON Schema and documentation are made. To add a key, add a row to table.cc (and a rule to rules.cc if it
// depends on other keys).
#ifndef INLAID_SDK_CONFIG_TABLE_H_
#define INLAID_SDK_CONFIG_TABLE_H_

#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace inlaid::config {

enum class Type {
  kFlag,
  kInteger,  // 3 and 3.0 alike, as in JSON Schema
  kNumber,
  kText,        // one of `values` when that is not empty
  kPath,        // text; relative paths are made absolute
  kTemplate,    // a path, or inline text: whatever holds '{' or a line break
  kFlagOrText,  // true, false, or one of `values`
  kTexts,       // list
  kTextOrTexts,
  kIntegers,  // object from text to integer
  kNumbers,   // object from text to number
  kTextMap,   // object from text to text
  kObject,    // any object; not looked into here
  kSources,   // list of objects with the keys of source_table()
};

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

struct Key {
  std::string_view path;  // "section.key"
  Type type;
  std::string_view preset = "null";  // default, as JSON; null = absent
  // Bounds of numbers (also inside maps), of which any may be absent: min <= value <= max, above < value <
  // below.
  double min = kNone, max = kNone, above = kNone, below = kNone;
  std::string_view values = "";  // texts that are accepted, "a|b|c"; empty = any
  // What this build knows but cannot do is refused as such: the texts in `later`, or, when `fixed`, every
  // value but the default.
  std::string_view later = "";
  bool fixed = false;
  bool empty = true;  // an empty text or list is accepted
  std::string_view help = "";
};

std::span<const Key> table();
std::span<const Key> source_table();  // an entry of data.train and data.eval

// The row of a path, or nullptr.
const Key* find_key(std::string_view path);
// True if keys stand below the path: "train", "optim.lr_scheduler_kwargs".
bool is_section(std::string_view path);
// Parts of an "a|b|c" list.
std::vector<std::string> split_values(std::string_view values);
// Names of the keys and sections directly below a section ("" = the document).
std::vector<std::string> names_in(std::string_view section);

}  // namespace inlaid::config

#endif  // INLAID_SDK_CONFIG_TABLE_H_

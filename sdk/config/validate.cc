#include "sdk/config/validate.h"

#include <algorithm>
#include <cmath>

#include "sdk/base/error.h"
#include "sdk/base/file_system.h"

namespace inlaid::config {
namespace {

[[noreturn]] void throw_about(Code code, std::string_view key, const std::string& text,
                              Json details = Json::object()) {
  details["key"] = std::string(key);
  throw Error(code, "configuration: key '" + std::string(key) + "' " + text, to_text(details));
}

std::string joined(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) {
    if (!out.empty()) out += ", ";
    out += name;
  }
  return out;
}

// A value as messages show it, cut when it is long.
std::string shown(const Json& value) {
  std::string text = to_text(value);
  if (text.size() > 60) text = value.is_object() ? "an object" : value.is_array() ? "a list" : "a long text";
  return text;
}

std::string number_text(double value) {
  return to_text(value == std::floor(value) && std::fabs(value) < 1e15 ? Json(static_cast<int64_t>(value))
                                                                       : Json(value));
}

class Checker {
 public:
  Checker(const Key& key, std::string path, const std::string& folder)
      : key_(key), path_(std::move(path)), folder_(folder) {}

  // The canonical form of a value that is not null.
  Json check(const Json& value) {
    Json result = typed(value);
    if (key_.fixed) {
      const Json preset = parse_json(key_.preset, "table of keys");
      if (result != preset) {
        refuse_in_this_build(path_, preset.is_null() ? "is not supported in this build; leave it out"
                                                     : "cannot be " + shown(value) +
                                                           " in this build; supported: " + shown(preset));
      }
    }
    return result;
  }

 private:
  [[noreturn]] void wrong(const Json& value, const std::string& wanted) {
    refuse(path_, "must be " + wanted + ", not " + shown(value));
  }

  Json typed(const Json& value) {
    switch (key_.type) {
      case Type::kFlag:
        return flag(value);
      case Type::kInteger:
        return integer(value, path_);
      case Type::kNumber:
        return number(value, path_);
      case Type::kText:
        return text(value, path_);
      case Type::kPath:
        return absolute(text(value, path_));
      case Type::kTemplate:
        return template_text(value);
      case Type::kFlagOrText:
        if (value.is_boolean()) return value;
        if (!value.is_string()) wrong(value, "true, false or one of: " + joined(split_values(key_.values)));
        return text(value, path_);
      case Type::kTexts:
        return texts(value);
      case Type::kTextOrTexts:
        if (value.is_string()) return text(value, path_);
        if (!value.is_array()) wrong(value, "a string or a list of strings");
        return texts(value);
      case Type::kIntegers:
        return map(value, [&](const Json& v, const std::string& at) { return integer(v, at); });
      case Type::kNumbers:
        return map(value, [&](const Json& v, const std::string& at) { return number(v, at); });
      case Type::kTextMap:
        return map(value, [&](const Json& v, const std::string& at) { return text(v, at); });
      case Type::kObject:
        if (!value.is_object()) wrong(value, "an object");
        return value;
      case Type::kSources:
        return sources(value);
    }
    return Json();
  }

  Json flag(const Json& value) {
    if (!value.is_boolean()) wrong(value, "true or false");
    return value;
  }

  // Integers beyond 2^53 are accepted when written as integers, not as 1e17.
  Json integer(const Json& value, const std::string& at) {
    constexpr double kExact = 9007199254740992;
    Json result;
    if (value.is_number_float()) {
      const double number = value.get<double>();
      if (number == std::floor(number) && std::fabs(number) <= kExact) result = static_cast<int64_t>(number);
    } else if (value.is_number_integer() &&
               (!value.is_number_unsigned() || value.get<uint64_t>() <= uint64_t{INT64_MAX})) {
      result = value.get<int64_t>();
    }
    if (result.is_null()) refuse(at, "must be an integer below 2^63, not " + shown(value));
    check_range(static_cast<double>(result.get<int64_t>()), value, at);
    return result;
  }

  Json number(const Json& value, const std::string& at) {
    if (!value.is_number()) refuse(at, "must be a number, not " + shown(value));
    const double number = value.get<double>() + 0.0;  // -0 becomes 0
    check_range(number, value, at);
    return number;
  }

  void check_range(double number, const Json& value, const std::string& at) {
    std::string bound;
    if (number < key_.min) bound = "at least " + number_text(key_.min);
    if (number > key_.max) bound = "at most " + number_text(key_.max);
    if (number <= key_.above) bound = "greater than " + number_text(key_.above);
    if (number >= key_.below) bound = "less than " + number_text(key_.below);
    if (!bound.empty()) refuse(at, "must be " + bound + ", not " + shown(value));
  }

  Json text(const Json& value, const std::string& at) {
    if (!value.is_string()) refuse(at, "must be a string, not " + shown(value));
    const std::string& word = value.get_ref<const std::string&>();
    if (word.empty() && !key_.empty) refuse(at, "must not be empty");
    if (word.find('\0') != std::string::npos) refuse(at, "must not hold the character U+0000");
    if (key_.values.empty()) return value;
    const std::vector<std::string> values = split_values(key_.values), later = split_values(key_.later);
    if (std::find(values.begin(), values.end(), word) != values.end()) return value;
    const std::string supported = (key_.type == Type::kFlagOrText ? "true, false, " : "") + joined(values);
    if (std::find(later.begin(), later.end(), word) != later.end()) {
      refuse_in_this_build(at, "cannot be " + shown(value) + " in this build; supported: " + supported);
    }
    const std::string near = nearest(word, values);
    refuse(at, "must be one of: " + supported + "; not " + shown(value) +
                   (near.empty() ? std::string() : "; did you mean \"" + near + "\"?"));
  }

  Json template_text(const Json& value) {
    Json result = text(value, path_);
    const bool inline_text = result.get_ref<const std::string&>().find_first_of("{\n") != std::string::npos;
    return inline_text ? result : absolute(result);
  }

  Json absolute(const Json& path) {
    const std::string& given = path.get_ref<const std::string&>();
    return given.empty() ? path : Json(join_path(folder_, given));
  }

  Json texts(const Json& value) {
    if (!value.is_array()) wrong(value, "a list of strings");
    if (value.empty() && !key_.empty) refuse(path_, "must not be empty");
    Json result = Json::array();
    for (size_t i = 0; i < value.size(); ++i) {
      const std::string at = element(path_, i);
      const Json entry = text(value[i], at);
      if (std::find(result.begin(), result.end(), entry) != result.end())
        refuse(at, "repeats " + shown(entry));
      result.push_back(entry);
    }
    return result;
  }

  template <typename Check>
  Json map(const Json& value, const Check& check) {
    if (!value.is_object()) wrong(value, "an object");
    Json result = Json::object();
    for (const auto& [name, entry] : value.items()) result[name] = check(entry, path_ + "." + name);
    return result;
  }

  Json sources(const Json& value) {
    if (!value.is_array()) wrong(value, "a list of objects");
    if (value.empty()) refuse(path_, "must not be empty");
    Json result = Json::array();
    for (size_t i = 0; i < value.size(); ++i) result.push_back(source(value[i], element(path_, i)));
    return result;
  }

  Json source(const Json& value, const std::string& at) {
    if (!value.is_object())
      refuse(at, "must be an object like {\"path\": \"rows.jsonl\"}, not " + shown(value));
    std::vector<std::string> names;
    for (const Key& key : source_table()) names.emplace_back(key.path);
    for (const auto& [name, entry] : value.items()) {
      if (std::find(names.begin(), names.end(), name) != names.end()) continue;
      const std::string near = nearest(name, names);
      refuse(at + "." + name, near.empty() ? "is unknown; known here: " + joined(names)
                                           : "is unknown; did you mean '" + at + "." + near + "'?");
    }
    Json result = Json::object();
    for (const Key& key : source_table()) {
      const std::string name(key.path);
      const auto found = value.find(name);
      const bool set = found != value.end() && !found->is_null();
      result[name] = set ? Checker(key, at + "." + name, folder_).check(*found)
                         : parse_json(key.preset, "table of keys");
    }
    if (result["path"].is_null()) refuse(at + ".path", "is missing: name a file or a glob");
    return result;
  }

  static std::string element(const std::string& path, size_t index) {
    std::string at = path;
    at += '[';
    at += std::to_string(index);
    at += ']';
    return at;
  }

  const Key& key_;
  std::string path_;
  const std::string& folder_;
};

void validate_section(const Json& object, const std::string& section, const std::string& folder,
                      Values* values) {
  for (const auto& [name, value] : object.items()) {
    const std::string path = section.empty() ? name : section + "." + name;
    const bool plain = name.find('.') == std::string::npos;  // "optim.name" is no name of a key
    if (const Key* key = plain ? find_key(path) : nullptr) {
      if (!value.is_null()) values->emplace(path, Checker(*key, path, folder).check(value));
    } else if (plain && !name.empty() && is_section(path)) {
      if (value.is_null()) continue;
      if (!value.is_object())
        refuse(path, "must be an object with the keys " + joined(names_in(path)) + ", not " + shown(value));
      validate_section(value, path, folder, values);
    } else {
      refuse_unknown(path);
    }
  }
}

// The key that was probably meant: a neighbour in the same section, the same name in another section, or a
// similar path.
std::string nearest_key(std::string_view path) {
  const size_t dot = path.rfind('.');
  const std::string_view section = dot == std::string_view::npos ? "" : path.substr(0, dot);
  const std::string_view name = dot == std::string_view::npos ? path : path.substr(dot + 1);
  const std::string near = nearest(name, names_in(section));
  if (!near.empty()) return section.empty() ? near : std::string(section) + "." + near;
  std::vector<std::string> paths, names;
  for (const Key& key : table()) {
    const std::string_view leaf = key.path.substr(key.path.rfind('.') + 1);
    if (leaf == name) return std::string(key.path);
    paths.emplace_back(key.path);
    names.emplace_back(leaf);
  }
  const std::string leaf = nearest(name, names);
  if (!leaf.empty())
    return paths[static_cast<size_t>(std::find(names.begin(), names.end(), leaf) - names.begin())];
  return nearest(path, paths);
}

}  // namespace

void refuse(std::string_view key, const std::string& text) {
  throw_about(Code::kInvalidArgument, key, text);
}

void refuse_in_this_build(std::string_view key, const std::string& text) {
  throw_about(Code::kUnimplemented, key, text);
}

void refuse_unknown(std::string_view path) {
  const std::string near = nearest_key(path);
  if (!near.empty()) {
    throw_about(Code::kInvalidArgument, path, "is unknown; did you mean '" + near + "'?",
                Json{{"nearest", near}});
  }
  const size_t dot = path.rfind('.');
  std::string section(dot == std::string_view::npos ? "" : path.substr(0, dot));
  if (!is_section(section)) section.clear();
  refuse(path, "is unknown; known " + (section.empty() ? "at the top" : "in '" + section + "'") + ": " +
                   joined(names_in(section)));
}

Values validate(const Json& document, const std::string& folder) {
  if (!document.is_object()) {
    fail(Code::kInvalidArgument, "configuration: must be a JSON object, not ", shown(document));
  }
  Values values;
  validate_section(document, "", folder, &values);
  return values;
}

}  // namespace inlaid::config

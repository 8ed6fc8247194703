#include "sdk/base/json.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <unordered_set>
#include <utility>

#include "sdk/base/error.h"

namespace inlaid {
namespace {

constexpr size_t kMaxDepth = 64;

// Characters of the document for the parser, which leave behind how far it has read.
struct TrackedChar {
  using iterator_category = std::forward_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  const char* position;
  const char** reached;

  reference operator*() const { return *position; }
  TrackedChar& operator++() {
    *reached = ++position;
    return *this;
  }
  TrackedChar operator++(int) {
    TrackedChar old = *this;
    ++*this;
    return old;
  }
  bool operator==(const TrackedChar& other) const { return position == other.position; }
  bool operator!=(const TrackedChar& other) const { return position != other.position; }
};

// A piece of the document fit for a message: printable ASCII, at most 40 characters.
std::string excerpt(std::string_view text) {
  std::string out;
  for (char c : text.substr(0, 40)) out += (c >= 0x20 && c < 0x7f) ? c : '?';
  if (text.size() > 40) out += "...";
  return out;
}

// Builds the value from the parser's events. The parser of nlohmann-json is iterative, so that depth costs no
// stack; keys are compared through a hash set, so that an object of many keys costs linear time.
class Builder : public nlohmann::json_sax<Json> {
 public:
  Builder(std::string_view text, std::string_view what) : text_(text), what_(what), reached_(text.data()) {}

  Json parse() {
    TrackedChar first{text_.data(), &reached_}, last{text_.data() + text_.size(), &reached_};
    Json::sax_parse(first, last, this, nlohmann::detail::input_format_t::json, /*strict=*/true);
    return std::move(root_);
  }

  bool null() override { return put(nullptr); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(number_integer_t value) override { return put(value); }
  bool number_unsigned(number_unsigned_t value) override { return put(value); }
  bool number_float(number_float_t value, const string_t&) override { return put(value); }
  bool string(string_t& value) override { return put(std::move(value)); }
  bool binary(binary_t&) override { return false; }  // no such thing in JSON text

  bool start_object(size_t) override { return open(Json::object()); }
  bool start_array(size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    Level& level = levels_.back();
    if (!level.keys.insert(name).second) {
      refuse("key '" + path() + (levels_.size() > 1 ? "." : "") + name + "' appears twice");
    }
    level.key = std::move(name);
    return true;
  }

  bool parse_error(size_t, const std::string& token, const nlohmann::detail::exception& error) override {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: TEXT; last read: 'TOKEN'; expected
    // ..."
    std::string text = error.what();
    if (size_t end = text.find("] "); end != std::string::npos) text.erase(0, end + 2);
    if (text.rfind("parse error", 0) == 0) {
      if (size_t colon = text.find(": "); colon != std::string::npos) text.erase(0, colon + 2);
    }
    if (size_t at = text.find(token); !token.empty() && at != std::string::npos) {
      text.replace(at, token.size(), excerpt(token));
    }
    refuse(text);
  }

 private:
  struct Level {
    Json* value;
    std::unordered_set<std::string> keys;
    std::string key;
  };

  // Dotted path of the value being filled, without the key in hand of the innermost object.
  std::string path() const {
    std::string out;
    for (size_t i = 0; i + 1 < levels_.size(); ++i) {
      if (levels_[i].value->is_object()) {
        if (!out.empty()) out += '.';
        out += levels_[i].key;
      } else {
        out += '[';
        out += std::to_string(levels_[i].value->size() - 1);
        out += ']';
      }
    }
    return out;
  }

  [[noreturn]] void refuse(const std::string& text) const {
    const char* end = std::min(reached_, text_.data() + text_.size());
    const char* begin = text_.data();
    const size_t line = 1 + static_cast<size_t>(std::count(begin, end, '\n'));
    const char* start = end;
    while (start != begin && start[-1] != '\n') --start;
    fail(Code::kInvalidArgument, what_, ": line ", line, ", column ",
         std::max<std::ptrdiff_t>(1, end - start), ": ", text);
  }

  // Places a value where the document has it and returns its place, which stays until its parent grows.
  template <typename Value>
  Json* place(Value&& value) {
    if (levels_.empty()) {
      root_ = std::forward<Value>(value);
      return &root_;
    }
    Level& level = levels_.back();
    if (level.value->is_array()) {
      level.value->get_ref<Json::array_t&>().emplace_back(std::forward<Value>(value));
      return &level.value->back();
    }
    // The keys were compared in key(): append without ordered_map's linear search.
    std::vector<Json::object_t::value_type>& entries = level.value->get_ref<Json::object_t&>();
    entries.emplace_back(level.key, std::forward<Value>(value));
    return &entries.back().second;
  }

  template <typename Value>
  bool put(Value&& value) {
    place(std::forward<Value>(value));
    return true;
  }

  bool open(Json empty) {
    if (levels_.size() >= kMaxDepth) refuse("nested deeper than " + std::to_string(kMaxDepth) + " levels");
    Json* value = place(std::move(empty));
    levels_.push_back({value, {}, {}});
    return true;
  }

  bool close() {
    levels_.pop_back();
    return true;
  }

  std::string_view text_;
  std::string_view what_;
  const char* reached_;
  Json root_;
  std::vector<Level> levels_;
};

[[noreturn]] void wrong_type(std::string_view what, std::string_view key, const char* type) {
  fail(Code::kInvalidArgument, what, ": key '", key, "' must be ", type);
}

char lower(char c) {
  return (c >= 'A' && c <= 'Z') ? static_cast<char>(c - 'A' + 'a') : c;
}

// Edit distance with insertion, deletion, substitution and transposition of neighbours (optimal string
// alignment).
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1), last(b.size() + 1), now(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    now[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const bool same = lower(a[i - 1]) == lower(b[j - 1]);
      now[j] = std::min({last[j] + 1, now[j - 1] + 1, last[j - 1] + (same ? 0 : 1)});
      if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1])) {
        now[j] = std::min(now[j], before[j - 2] + 1);
      }
    }
    std::swap(before, last);
    std::swap(last, now);
  }
  return last[b.size()];
}

}  // namespace

Json parse_json(std::string_view text, std::string_view what) {
  return Builder(text, what).parse();
}

std::string to_text(const Json& value) {
  try {
    return value.dump(-1, ' ', false, Json::error_handler_t::strict);
  } catch (const Json::type_error&) {
    fail(Code::kInvalidArgument, "a string that is to be written as JSON is not UTF-8");
  }
}

const Json& at(const Json& object, std::string_view key, std::string_view what) {
  if (!object.is_object()) fail(Code::kInvalidArgument, what, ": must be an object with key '", key, "'");
  auto found = object.find(std::string(key));
  if (found == object.end()) fail(Code::kInvalidArgument, what, ": key '", key, "' is missing");
  return *found;
}

int64_t int_at(const Json& object, std::string_view key, std::string_view what) {
  const Json& value = at(object, key, what);
  if (!value.is_number_integer()) wrong_type(what, key, "an integer");
  if (value.is_number_unsigned() &&
      value.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    wrong_type(what, key, "an integer below 2^63");
  }
  return value.get<int64_t>();
}

double number_at(const Json& object, std::string_view key, std::string_view what) {
  const Json& value = at(object, key, what);
  if (!value.is_number()) wrong_type(what, key, "a number");
  return value.get<double>();
}

bool bool_at(const Json& object, std::string_view key, std::string_view what) {
  const Json& value = at(object, key, what);
  if (!value.is_boolean()) wrong_type(what, key, "true or false");
  return value.get<bool>();
}

std::string string_at(const Json& object, std::string_view key, std::string_view what) {
  const Json& value = at(object, key, what);
  if (!value.is_string()) wrong_type(what, key, "a string");
  return value.get<std::string>();
}

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  constexpr size_t kLongest = 64;  // longer words are not typing mistakes of any key
  if (word.empty() || word.size() > kLongest) return "";
  std::string best;
  size_t best_distance = std::max<size_t>(1, word.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > kLongest) continue;
    const size_t distance = edit_distance(word, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

}  // namespace inlaid

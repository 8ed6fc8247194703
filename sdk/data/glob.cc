#include "sdk/data/glob.h"

#include <algorithm>  // for sort

#include "sdk/base/error.h"
#include "sdk/base/utf8.h"

namespace inlaid::data {
namespace {

constexpr std::string_view kSpecial = "*?[";

size_t character_length(std::string_view text) {
  size_t length = 1;
  while (length < text.size() && (static_cast<unsigned char>(text[length]) & 0xC0) == 0x80) ++length;
  return length;
}

// Matches the set at the start of `pattern` ("[...]") against one byte. `used` = bytes of the set, 0 when it
// does not end.
bool matches_set(std::string_view pattern, char c, size_t* used) {
  size_t at = 1;
  const bool negated = at < pattern.size() && pattern[at] == '!';
  if (negated) ++at;
  bool found = false;
  for (bool first = true; at < pattern.size() && (first || pattern[at] != ']'); first = false) {
    const unsigned char low = static_cast<unsigned char>(pattern[at]);
    unsigned char high = low;
    if (at + 2 < pattern.size() && pattern[at + 1] == '-' && pattern[at + 2] != ']') {
      high = static_cast<unsigned char>(pattern[at + 2]);
      at += 2;
    }
    ++at;
    found = found || (low <= static_cast<unsigned char>(c) && static_cast<unsigned char>(c) <= high);
  }
  *used = at < pattern.size() ? at + 1 : 0;
  return found != negated;
}

void walk(FileSystem& fs, const std::string& folder, std::string_view rest, std::vector<std::string>* out) {
  const size_t slash = rest.find('/');
  const std::string_view part = rest.substr(0, slash);
  const bool last = slash == std::string_view::npos;
  const std::string_view after = last ? std::string_view() : rest.substr(slash + 1);
  if (part.empty()) {  // "//" in a path
    if (!last) walk(fs, folder, after, out);
    return;
  }
  const auto visit = [&](const std::string& name) {
    const std::string path = folder.empty() ? name : join_path(folder, name);
    if (last) {
      if (!fs.is_folder(path)) out->push_back(path);
    } else if (fs.is_folder(path)) {
      walk(fs, path, after, out);
    }
  };
  if (part.find_first_of(kSpecial) == std::string_view::npos) {
    const std::string name(part);
    if (fs.exists(folder.empty() ? name : join_path(folder, name))) visit(name);
    return;
  }
  for (const std::string& name : fs.list(folder.empty() ? "." : folder)) {
    if (matches_component(part, name)) visit(name);
  }
}

}  // namespace

// Backtracks only to the last star, so the cost is at most |pattern| * |name|.
bool matches_component(std::string_view pattern, std::string_view name) {
  if (name.starts_with('.') && !pattern.starts_with('.')) return false;
  size_t p = 0, n = 0;
  size_t star = std::string_view::npos, star_name = 0;
  while (n < name.size()) {
    size_t used = 0;
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      star_name = n;
      continue;
    }
    if (p < pattern.size() && pattern[p] == '?') {
      ++p;
      n += character_length(name.substr(n));
      continue;
    }
    if (p < pattern.size() && pattern[p] == '[') {
      const bool in_set = matches_set(pattern.substr(p), name[n], &used);
      if (used > 0 && in_set) {
        p += used;
        ++n;
        continue;
      }
    }
    if (p < pattern.size() && used == 0 && pattern[p] == name[n]) {
      ++p;
      ++n;
      continue;
    }
    if (star == std::string_view::npos) return false;
    p = star + 1;
    n = ++star_name;
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

std::vector<std::string> expand_glob(FileSystem& fs, const std::string& pattern) {
  if (pattern.empty()) fail(Code::kInvalidArgument, "data source: path is empty");
  if (fs.exists(pattern)) {
    if (fs.is_folder(pattern)) {
      fail(Code::kInvalidArgument, "data source '", pattern,
           "' is a folder; name a file or a pattern such as '", join_path(pattern, "*.jsonl"), "'");
    }
    return {pattern};
  }
  if (pattern.find_first_of(kSpecial) == std::string::npos) {
    fail(Code::kInvalidArgument, "data source '", pattern, "': no such file");
  }
  std::vector<std::string> out;
  const bool absolute = pattern.front() == '/';
  walk(fs, absolute ? "/" : "", std::string_view(pattern).substr(absolute ? 1 : 0), &out);
  if (out.empty()) fail(Code::kInvalidArgument, "data source '", pattern, "': the pattern matches no file");
  std::sort(out.begin(), out.end());
  for (const std::string& path : out) {
    if (first_invalid_utf8(path) != std::string::npos) {
      fail(Code::kInvalidArgument, "data source '", pattern,
           "' matches a file whose name is not UTF-8; rename it");
    }
  }
  return out;
}

}  // namespace inlaid::data

#include "sdk/nn/pattern.h"

#include <algorithm>
#include <cstdint>

#include "sdk/base/error.h"

namespace inlaid::nn {
namespace {

constexpr size_t kMaxLength = 1000;
constexpr uint64_t kMaxStates = 4096;
constexpr int kMaxDepth = 100;  // of brackets: both parser and executor recurse over them
constexpr int kMaxLookAheads = 2;

// States that the expression may take: its length times all counts of its repeats, as if they were nested.
uint64_t states(std::string_view text) {
  uint64_t states = text.size();
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
      continue;
    }
    if (text[i] != '{') continue;
    uint64_t most = 0, number = 0;
    for (++i; i < text.size() && ((text[i] >= '0' && text[i] <= '9') || text[i] == ','); ++i) {
      number = text[i] == ',' ? 0 : std::min(number * 10 + static_cast<uint64_t>(text[i] - '0'), kMaxStates);
      most = std::max(most, number);
    }
    states = std::min(states * (most + 1), kMaxStates + 1);
  }
  return states;
}

int depth(std::string_view text) {
  int depth = 0, deepest = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == '(') {
      deepest = std::max(deepest, ++depth);
    } else if (text[i] == ')') {
      --depth;
    }
  }
  return deepest;
}

int look_aheads(std::string_view text) {
  int n = 0;
  for (size_t at = text.find("(?"); at != text.npos; at = text.find("(?", at + 2)) {
    n += at + 2 < text.size() && text[at + 2] != ':';
  }
  return n;
}

std::regex compile(const std::string& text, std::string_view key) {
  const auto refuse = [&](const std::string& reason) {
    fail(Code::kInvalidArgument, key, ": the regular expression '", text, "' ", reason);
  };
  if (text.size() > kMaxLength) refuse("is longer than " + std::to_string(kMaxLength) + " characters");
  if (states(text) > kMaxStates) refuse("repeats too much; use * or + instead of large counts");
  if (depth(text) > kMaxDepth) refuse("has brackets nested deeper than " + std::to_string(kMaxDepth));
  if (look_aheads(text) > kMaxLookAheads) refuse("has more than " + std::to_string(kMaxLookAheads) + " look-aheads");
  try {
    return std::regex(text, std::regex_constants::ECMAScript | std::regex_constants::__polynomial);
  } catch (const std::regex_error& e) {
    if (e.code() == std::regex_constants::error_complexity) refuse("has a back reference, which is not supported");
    refuse(std::string("is not valid: ") + e.what());
    throw;
  }
}

}  // namespace

Pattern::Pattern(const std::string& text, std::string_view key) : regex_(compile(text, key)) {}
bool Pattern::matches(const std::string& name) const { return std::regex_match(name, regex_); }
bool Pattern::is_inside(const std::string& name) const { return std::regex_search(name, regex_); }

}  // namespace inlaid::nn

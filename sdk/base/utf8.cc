#include "sdk/base/utf8.h"

#include <algorithm>
#include <utility>

namespace inlaid {
namespace {

// Length of the well-formed sequence at the start of `text` (not empty), or 0.
size_t sequence_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead < 0xC2 || lead > 0xF4) return 0;
  const size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  if (text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  const unsigned second = byte(1);
  if (lead == 0xE0 && second < 0xA0) return 0;  // overlong
  if (lead == 0xED && second > 0x9F) return 0;  // surrogates
  if (lead == 0xF0 && second < 0x90) return 0;  // overlong
  if (lead == 0xF4 && second > 0x8F) return 0;  // over U+10FFFF
  return length;
}

}  // namespace

size_t first_invalid_utf8(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    const size_t length = sequence_length(text.substr(at));
    if (length == 0) return at;
    at += length;
  }
  return std::string_view::npos;
}

std::string one_line(std::string text, size_t limit) {
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  if (first_invalid_utf8(text) != std::string::npos) {
    std::string valid;
    for (size_t at = 0; at < text.size();) {
      const size_t length = sequence_length(std::string_view(text).substr(at));
      valid += length > 0 ? text.substr(at, length) : "\uFFFD";
      at += length > 0 ? length : 1;
    }
    text = std::move(valid);
  }
  if (text.size() > limit) {
    const auto inside = [&](size_t at) { return (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80; };
    size_t head = limit * 3 / 4, tail = text.size() - limit / 4;
    while (head > 0 && inside(head)) --head;
    while (tail < text.size() && inside(tail)) ++tail;
    text.replace(head, tail - head, "...");
  }
  std::replace_if(text.begin(), text.end(), is_control, ' ');
  return text;
}

std::string excerpt(std::string_view text, size_t limit) {
  if (text.size() <= limit) return std::string(text);
  size_t cut = limit;
  while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xC0) == 0x80) --cut;
  return std::string(text.substr(0, cut)) + "...";
}

}  // namespace inlaid

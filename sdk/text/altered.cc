#include "sdk/text/altered.h"

#include "sdk/text/marks.h"

namespace inlaid::text {
namespace {

constexpr size_t kMaxTag = 48;  // bytes of "<tag>" and "[TAG]"

// Bytes of the tag at the start of `text`, 0 if there is none.
size_t tag_at(std::string_view text) {
  const char close = text[0] == '<' ? '>' : ']';
  if (text[0] != '<' && text[0] != '[') return 0;
  for (size_t i = 1; i < text.size() && i < kMaxTag; ++i) {
    if (text[i] == close) return i + 1;
    if (text[i] == text[0] || text[i] == ' ' || text[i] == '\n') return 0;
  }
  return 0;
}

char next_in_class(char c) {
  if (c >= 'a' && c <= 'z') return static_cast<char>('a' + (c - 'a' + 1) % 26);
  if (c >= 'A' && c <= 'Z') return static_cast<char>('A' + (c - 'A' + 1) % 26);
  if (c >= '0' && c <= '9') return static_cast<char>('0' + (c - '0' + 1) % 10);
  return c;
}

}  // namespace

std::string altered(std::string_view text) {
  std::string out(text);
  for (size_t at = 0; at < text.size();) {
    if (const size_t tag = tag_at(text.substr(at))) {
      at += tag;
      continue;
    }
    size_t length = 1;
    while (at + length < text.size() && (static_cast<unsigned char>(text[at + length]) & 0xC0) == 0x80)
      ++length;
    if (length == 1) {
      out[at] = next_in_class(text[at]);
    } else {
      // The neighbour of a code point differs in the last bit of its last byte. White space is left alone,
      // and not made.
      std::string other(text.substr(at, length));
      other.back() = static_cast<char>(other.back() ^ 1);
      const auto is_space = [](std::string_view c) { return trimmed(c).first == trimmed(c).second; };
      if (!is_space(text.substr(at, length)) && !is_space(other)) out.replace(at, length, other);
    }
    at += length;
  }
  return out;
}

std::optional<AlteredPlace> find_by_alteration(std::string_view content, std::string_view rendered,
                                               std::string_view other_rendered) {
  if (rendered.size() != other_rendered.size()) return std::nullopt;
  const std::string other = altered(content);
  // Bytes that differ, in the content and in the render, with their first and last positions.
  const auto differences = [](std::string_view a, std::string_view b, size_t& first, size_t& last) {
    std::string bytes;
    for (size_t i = 0; i < a.size(); ++i) {
      if (a[i] == b[i]) continue;
      if (bytes.empty()) first = i;
      last = i;
      bytes += a[i];
    }
    return bytes;
  };
  size_t first = 0, last = 0, content_first = 0, content_last = 0;
  const std::string shown = differences(rendered, other_rendered, first, last);
  const std::string expected = differences(content, other, content_first, content_last);
  if (shown.empty() || !expected.ends_with(shown)) return std::nullopt;

  const auto [inner_begin, inner_end] = trimmed(content);
  AlteredPlace place{first, last + 1, false};
  size_t tail = content_last + 1;  // the content before this is matched
  while (tail < content.size() && place.end < rendered.size() && rendered[place.end] == content[tail]) {
    ++tail;
    ++place.end;
  }
  if (tail < inner_end) return std::nullopt;
  if (tail < content.size()) {
    // White space at the end was cut: what looks like a part of it in the render is the template's own.
    place.end -= tail - inner_end;
    tail = inner_end;
  }
  if (shown.size() != expected.size()) return place;
  size_t head = content_first;  // the content from here is matched
  while (head > 0 && place.begin > 0 && rendered[place.begin - 1] == content[head - 1]) {
    --head;
    --place.begin;
  }
  if (head > 0 && head <= inner_begin) {
    place.begin += inner_begin - head;
    head = inner_begin;
  }
  // Equal ends with another length between them: the template wrote something of its own in the middle.
  place.whole = head <= inner_begin && place.end - place.begin == tail - head;
  return place;
}

}  // namespace inlaid::text

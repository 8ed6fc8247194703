#include "sdk/text/marks.h"

#include <algorithm>  // for min
#include <bitset>     // for bitset

#include "sdk/base/error.h"

namespace inlaid::text {
namespace {

constexpr char32_t kPlane = 0x100000;  // first code point of plane 16
constexpr size_t kBlocks = 0xF000 / 32;
constexpr size_t kDigitsOfNumber = 5;
constexpr size_t kNone = SIZE_MAX;

// Code points of plane 16 are F4 80..8F 80..BF 80..BF in UTF-8. 0 where there is none at `at`.
char32_t plane16_at(std::string_view text, size_t at) {
  if (text.size() - at < 4 || static_cast<unsigned char>(text[at]) != 0xF4) return 0;
  char32_t code = 4;
  for (size_t i = 1; i < 4; ++i) {
    const auto byte = static_cast<unsigned char>(text[at + i]);
    if ((byte & 0xC0) != 0x80) return 0;
    code = code << 6 | (byte & 0x3F);
  }
  return code >= kPlane ? code : 0;
}

void append(std::string& out, char32_t code) {
  out += static_cast<char>(0xF0 | code >> 18);
  out += static_cast<char>(0x80 | (code >> 12 & 0x3F));
  out += static_cast<char>(0x80 | (code >> 6 & 0x3F));
  out += static_cast<char>(0x80 | (code & 0x3F));
}

// Bytes of the white space character at the start of `text`, 0 if there is none.
size_t space_at(std::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const unsigned first = byte(0);
  if (first == ' ' || (first >= 0x09 && first <= 0x0D) || (first >= 0x1C && first <= 0x1F)) return 1;
  if (first == 0xC2 && (byte(1) == 0x85 || byte(1) == 0xA0)) return 2;
  const unsigned rest = byte(1) << 8 | byte(2);
  if (first == 0xE1 && rest == 0x9A80) return 3;
  if (first == 0xE2 && ((rest >= 0x8080 && rest <= 0x808A) || rest == 0x80A8 || rest == 0x80A9 ||
                        rest == 0x80AF || rest == 0x819F)) {
    return 3;
  }
  if (first == 0xE3 && rest == 0x8080) return 3;
  return 0;
}

void visit_all(Json& value, const std::function<void(std::string&, bool)>& visit) {
  if (value.is_string()) {
    visit(value.get_ref<std::string&>(), false);
  } else if (value.is_structured()) {
    for (Json& item : value) visit_all(item, visit);
  }
}

}  // namespace

void visit_strings(Json& message, const std::function<void(std::string&, bool)>& visit) {
  if (auto content = message.find("content"); content != message.end()) {
    if (content->is_string()) {
      visit(content->get_ref<std::string&>(), true);
    } else if (content->is_array()) {
      for (Json& part : *content) {
        if (!part.is_object()) continue;
        if (auto text = part.find("text"); text != part.end() && text->is_string()) {
          visit(text->get_ref<std::string&>(), true);
        }
      }
    }
  }
  for (const char* key : {"reasoning_content", "reasoning", "thinking"}) {
    if (auto found = message.find(key); found != message.end() && found->is_string()) {
      visit(found->get_ref<std::string&>(), false);
    }
  }
  auto calls = message.find("tool_calls");
  if (calls == message.end() || !calls->is_array()) return;
  for (Json& call : *calls) {
    if (!call.is_object()) continue;
    auto function = call.find("function");
    Json& target = function != call.end() && function->is_object() ? *function : call;
    for (const char* key : {"name", "arguments"}) {
      if (auto found = target.find(key); found != target.end()) visit_all(*found, visit);
    }
  }
}

std::pair<size_t, size_t> trimmed(std::string_view text) {
  size_t begin = 0;
  while (size_t space = space_at(text.substr(begin))) begin += space;
  size_t end = begin;
  for (size_t at = begin; at < text.size();) {
    if (const size_t space = space_at(text.substr(at))) {
      at += space;
    } else {
      end = ++at;
    }
  }
  return {begin, end};
}

Marks::Marks(std::string_view everything) {
  std::bitset<kBlocks> used;
  for (size_t at = everything.find('\xF4'); at != everything.npos; at = everything.find('\xF4', at + 1)) {
    const char32_t code = plane16_at(everything, at);
    if (code != 0 && (code - kPlane) / kBlock < kBlocks) used.set((code - kPlane) / kBlock);
  }
  for (size_t block = kBlocks; block-- > 0;) {
    if (!used.test(block)) {
      base_ = kPlane + static_cast<char32_t>(block) * kBlock;
      return;
    }
  }
  fail(Code::kInvalidArgument, "the conversation uses every part of the private use plane 16 of Unicode");
}

std::string Marks::mark(char32_t kind, size_t number) const {
  std::string out;
  append(out, base_ + kind);
  for (size_t digit = kDigitsOfNumber; digit-- > 0;) {
    append(out, base_ + kDigits + static_cast<char32_t>(number >> 4 * digit & 15));
  }
  return out;
}

Json Marks::put(const Json& messages, Edges edges, std::optional<size_t> only) {
  owners_.clear();
  Json marked = messages;
  for (size_t i = 0; i < marked.size(); ++i) {
    if (only && *only != i) continue;
    visit_strings(marked[i], [&](std::string& text, bool content) {
      const auto [inner_begin, inner_end] = trimmed(text);
      if (edges.skip_blank && inner_begin == inner_end) return;
      const size_t number = owners_.size();
      if (number >> 4 * kDigitsOfNumber != 0)
        fail(Code::kInvalidArgument, "too many strings in the messages");
      owners_.push_back({i, content});
      text.insert(edges.inner_end ? inner_end : text.size(), mark(kEnd, number));
      text.insert(edges.inner_begin ? inner_begin : 0, mark(kBegin, number));
    });
  }
  return marked;
}

std::optional<Marks::Taken> Marks::take(std::string_view marked) const {
  Taken result;
  size_t open = kNone;             // number of the string we are in
  size_t generation_open = kNone;  // begin of the block we are in
  size_t at = 0;
  const auto next = [&]() -> char32_t {  // offset in our block of the code point at `at`, or kBlock
    const char32_t code = at < marked.size() ? plane16_at(marked, at) : 0;
    return code >= base_ && code < base_ + kBlock ? code - base_ : kBlock;
  };
  while (at < marked.size()) {
    const size_t lead = std::min(marked.find('\xF4', at), marked.size());
    result.text.append(marked, at, lead - at);
    at = lead;
    if (at == marked.size()) break;
    const char32_t kind = next();
    if (kind == kBlock) {
      result.text += marked[at++];
      continue;
    }
    at += 4;
    const size_t place = result.text.size();
    if (kind == kGenerationBegin) {
      if (generation_open != kNone) return std::nullopt;
      generation_open = place;
    } else if (kind == kGenerationEnd) {
      if (generation_open == kNone) return std::nullopt;
      result.generation.emplace_back(generation_open, place);
      generation_open = kNone;
    } else if (kind == kBegin || kind == kEnd) {
      size_t number = 0;
      for (size_t digit = 0; digit < kDigitsOfNumber; ++digit, at += 4) {
        const char32_t value = next();
        if (value >= 16) return std::nullopt;
        number = number << 4 | value;
      }
      if (number >= owners_.size()) return std::nullopt;
      if (kind == kBegin) {
        if (open != kNone) return std::nullopt;
        open = number;
        result.pieces.push_back({number, owners_[number].message, owners_[number].content, place, place});
      } else {
        if (open != number) return std::nullopt;
        open = kNone;
        result.pieces.back().end = place;
      }
    } else {
      return std::nullopt;
    }
  }
  if (open != kNone || generation_open != kNone) return std::nullopt;
  return result;
}

}  // namespace inlaid::text

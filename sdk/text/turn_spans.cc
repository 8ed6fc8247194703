#include "sdk/text/turn_spans.h"

#include <algorithm>  // for min, sort
#include <optional>   // for optional

#include "sdk/base/error.h"
#include "sdk/text/altered.h"
#include "sdk/text/marks.h"

namespace inlaid::text {
namespace {

// Where the strings of one message stand in the text.
struct Place {
  bool found = false;
  bool twice = false;      // a content stands there more than once
  bool from_turn = false;  // the span begins with the turn, not with the first string
  size_t begin = 0, end = 0;
};

bool is_assistant(const Json& message) {
  return message["role"] == "assistant" || message["role"] == "model";
}

class TurnFinder {
 public:
  TurnFinder(const Conversation& conversation, const std::vector<std::string>& eos_candidates)
      : conversation_(conversation),
        messages_(conversation.messages()),
        eos_(eos_candidates),
        marks_(conversation.everything()),
        text_(conversation.render(messages_, false)),
        places_(messages_.size()) {}

  Rendered find() {
    if (text_.size() > UINT32_MAX) fail(Code::kInvalidArgument, what(), ": renders more than 4 GiB");
    if (conversation_.chat_template().generation_blocks > 0) return from_generation_blocks();
    place_all();
    Rendered result{text_, {}, false};
    for (size_t i = 0; i < messages_.size(); ++i) {
      const bool required = is_assistant(messages_[i]);
      if (!required && (!places_[i].found || places_[i].twice)) continue;
      if (required) settle(i);
      add_span(result, i, places_[i].begin, turn_end(i));
    }
    std::sort(result.spans.begin(), result.spans.end(),
              [](const auto& a, const auto& b) { return a.begin < b.begin; });
    return result;
  }

 private:
  const std::string& what() const { return conversation_.chat_template().what; }

  [[noreturn]] void refuse(size_t i, const char* reason) const {
    fail(Code::kInvalidArgument, what(), ": message ", i, " (", messages_[i]["role"].get<std::string>(), ") ",
         reason,
         "; a template that marks its turns with {% generation %} and {% endgeneration %} leaves no doubt");
  }

  static void add_span(Rendered& result, size_t message, size_t begin, size_t end) {
    result.spans.push_back(
        {static_cast<int32_t>(message), static_cast<uint32_t>(begin), static_cast<uint32_t>(end)});
  }

  // A second render, for which the template may fail where it did not before.
  std::optional<std::string> try_render(const Json& messages, bool add_generation_prompt) const {
    try {
      return conversation_.render(messages, add_generation_prompt);
    } catch (const Error&) {
      if (conversation_.is_exhausted()) throw;
      return std::nullopt;
    }
  }

  // ---- places of contents ----

  void place_all() {
    for (const bool skip_blank : {false, true}) {
      if (place_by_marks({.skip_blank = skip_blank}, std::nullopt)) return;
      if (place_by_marks({.inner_begin = true, .inner_end = true, .skip_blank = skip_blank}, std::nullopt)) {
        // White space at the ends of a content belongs to it only where the template keeps it.
        for (size_t i = 0; i < messages_.size(); ++i) {
          if (places_[i].found && has_space_at_ends(i)) place_by_marks_alone(i);
        }
        return;
      }
      if (!has_blank()) break;
    }
    for (size_t i = 0; i < messages_.size(); ++i) {
      if (!place_by_marks_alone(i) && is_assistant(messages_[i])) place_by_alteration(i);
    }
  }

  bool place_by_marks_alone(size_t i) {
    for (const bool skip_blank : {false, true}) {
      for (const bool inner_begin : {false, true}) {
        for (const bool inner_end : {false, true}) {
          if (place_by_marks({inner_begin, inner_end, skip_blank}, i) && places_[i].found) return true;
        }
      }
      if (!has_blank()) break;
    }
    return false;
  }

  bool place_by_marks(Edges edges, std::optional<size_t> only) {
    const std::optional<std::string> marked = try_render(marks_.put(messages_, edges, only), false);
    if (!marked) return false;
    const std::optional<Marks::Taken> taken = marks_.take(*marked);
    if (!taken || taken->text != text_) return false;
    std::vector<size_t> seen;  // marks of contents
    for (size_t i = 0; i < messages_.size(); ++i) {
      if (!only || *only == i) places_[i] = Place();
    }
    for (const Marks::Piece& piece : taken->pieces) {
      Place& place = places_[piece.message];
      if (piece.content) {
        place.twice |= std::find(seen.begin(), seen.end(), piece.mark) != seen.end();
        seen.push_back(piece.mark);
      } else {
        place.from_turn = true;
      }
      place.begin = place.found ? std::min(place.begin, piece.begin) : piece.begin;
      place.end = place.found ? std::max(place.end, piece.end) : piece.end;
      place.found = true;
    }
    return true;
  }

  bool has_space_at_ends(size_t i) const {
    bool result = false;
    Json message = messages_[i];
    visit_strings(message, [&](std::string& text, bool) {
      const auto [begin, end] = trimmed(text);
      result |= begin != 0 || end != text.size();
    });
    return result;
  }

  bool has_blank() const {
    bool result = false;
    Json messages = messages_;
    for (Json& message : messages) {
      visit_strings(message, [&](std::string& text, bool) {
        const auto [begin, end] = trimmed(text);
        result |= begin == end;
      });
    }
    return result;
  }

  void place_by_alteration(size_t i) {
    std::vector<std::string> contents;
    bool other_strings = false;
    Json changed = messages_;
    visit_strings(changed[i], [&](std::string& text, bool content) {
      if (!content) {
        other_strings = true;
        return;
      }
      contents.push_back(text);
      text = altered(text);
    });
    if (contents.size() != 1 || other_strings) return;
    const std::optional<std::string> rendered = try_render(changed, false);
    if (!rendered) return;
    if (const auto place = find_by_alteration(contents[0], text_, *rendered)) {
      places_[i] = {.found = true,
                    .twice = false,
                    .from_turn = !place->whole,
                    .begin = place->begin,
                    .end = place->end};
    }
  }

  // ---- turns ----

  // Makes places_[i] the part of the text that the model writes, without the end-of-turn marker, or refuses.
  void settle(size_t i) {
    Place& place = places_[i];
    if (!place.found) place_by_marks_alone(i);  // a blank content that was skipped before
    if (place.twice) refuse(i, "has a content that the template writes more than once");
    if (place.found && !place.from_turn) return;
    if (!place.found) {
      bool any = false, letters = false;
      Json message = messages_[i];
      visit_strings(message, [&](std::string& text, bool) {
        any = true;
        const auto [begin, end] = trimmed(text);
        letters |= begin != end;
      });
      if (!any) refuse(i, "has neither a content nor tool calls");
      if (letters) refuse(i, "cannot be placed: the template drops or changes its content");
    }
    const size_t limit = place.found ? place.begin : next_begin(i, end_before(i));
    const std::optional<size_t> begin = turn_begin(i, end_before(i), limit);
    if (!begin) {
      refuse(i, place.found
                    ? "begins at a place that cannot be told from the generation prompt"
                    : "is empty and stands at a place that cannot be told from the generation prompt");
    }
    place.begin = *begin;
    if (!place.found) place.end = *begin;
    place.found = true;
  }

  size_t end_before(size_t i) const {
    size_t end = 0;
    for (size_t j = 0; j < i; ++j) {
      if (places_[j].found && !places_[j].twice) end = std::max(end, places_[j].end);
    }
    return end;
  }

  // Beginning of the first other message after `from`, or the end of the text.
  size_t next_begin(size_t i, size_t from) const {
    size_t next = text_.size();
    for (size_t j = 0; j < places_.size(); ++j) {
      if (j != i && places_[j].found && !places_[j].twice && places_[j].begin >= from)
        next = std::min(next, places_[j].begin);
    }
    return next;
  }

  // Where the model begins to write message i, which lies in [from, limit].
  std::optional<size_t> turn_begin(size_t i, size_t from, size_t limit) const {
    if (from > limit) return std::nullopt;  // messages out of order
    Json before = Json::array();
    for (size_t j = 0; j < i; ++j) before.push_back(messages_[j]);
    const std::optional<std::string> prompt = try_render(before, true);
    const std::optional<std::string> bare = try_render(before, false);
    if (!prompt || !bare || prompt->size() <= bare->size() || !prompt->starts_with(*bare))
      return std::nullopt;
    if (text_.starts_with(*prompt) && prompt->size() >= from && prompt->size() <= limit)
      return prompt->size();
    // The prompt may end with lines that a turn in the past does not have, such as an empty thought.
    std::string_view header = std::string_view(*prompt).substr(bare->size());
    const std::string_view region = std::string_view(text_).substr(from, limit - from);
    while (!header.empty()) {
      const size_t at = region.find(header);
      if (at != region.npos) {
        if (region.find(header, at + 1) != region.npos) return std::nullopt;
        return from + at + header.size();
      }
      const size_t line_end = header.size() < 2 ? header.npos : header.rfind('\n', header.size() - 2);
      header = header.substr(0, line_end == header.npos ? 0 : line_end + 1);
    }
    return std::nullopt;
  }

  size_t turn_end(size_t i) const {
    const Place& place = places_[i];
    const size_t limit = next_begin(i, place.end);
    const std::string_view region = std::string_view(text_).substr(place.end, limit - place.end);
    size_t gap = region.npos;  // bytes before the marker
    size_t length = 0;
    for (const std::string& eos : eos_) {
      const size_t at = eos.empty() ? region.npos : region.find(eos);
      if (at < gap || (at == gap && at != region.npos && eos.size() > length)) {
        gap = at;
        length = eos.size();
      }
    }
    if (gap == region.npos) return place.end;
    // If the next message is not placed, the marker might be the end of that one.
    const bool next_unplaced = i + 1 < places_.size() && !is_assistant(messages_[i + 1]) &&
                               (!places_[i + 1].found || places_[i + 1].twice);
    const auto [space, rest] = trimmed(region.substr(0, gap));
    if (next_unplaced && space != rest) {
      if (!is_assistant(messages_[i])) return place.end;
      refuse(i, "has an end-of-turn marker that may belong to the message after it");
    }
    return place.end + gap + length;
  }

  // ---- generation blocks ----

  Rendered from_generation_blocks() {
    const std::string marked =
        conversation_.render(messages_, false, {marks_.generation_begin(), marks_.generation_end()});
    const std::optional<Marks::Taken> taken = marks_.take(marked);
    if (!taken || taken->text != text_) {
      fail(Code::kInvalidArgument, what(),
           ": the template changes the text of its {% generation %} blocks after "
           "they are written; their places cannot be told");
    }
    std::vector<size_t> assistants;
    for (size_t i = 0; i < messages_.size(); ++i) {
      if (is_assistant(messages_[i])) assistants.push_back(i);
    }
    Rendered result{text_, {}, true};
    const bool one_each = assistants.size() == taken->generation.size();
    if (!one_each) place_all();
    for (size_t block = 0; block < taken->generation.size(); ++block) {
      const auto [begin, end] = taken->generation[block];
      std::optional<size_t> owner;
      if (one_each) owner = assistants[block];
      for (size_t i = 0; !owner && i < places_.size(); ++i) {
        if (places_[i].found && places_[i].begin < end && places_[i].end > begin) owner = i;
      }
      if (!owner) {
        fail(Code::kInvalidArgument, what(), ": {% generation %} block ", block, " of ",
             taken->generation.size(), " holds no content of a message, and there are ", assistants.size(),
             " assistant messages");
      }
      add_span(result, *owner, begin, end);
    }
    return result;
  }

  const Conversation& conversation_;
  const Json& messages_;
  const std::vector<std::string>& eos_;
  Marks marks_;
  std::string text_;
  std::vector<Place> places_;
};

}  // namespace

Rendered find_turns(const Conversation& conversation, const std::vector<std::string>& eos_candidates) {
  return TurnFinder(conversation, eos_candidates).find();
}

}  // namespace inlaid::text

// Marks around the strings of messages, to see where a template writes them.
//
// Idea: each string becomes <begin n>string<end n>, the messages are rendered, and the marks are taken out of
// the result again. When what is left equals the render without marks, the template has treated the strings
// as opaque, and the places of the marks are the places of the strings. The marks are made of 32 code points
// of the last private use plane that occur in nothing the render sees. Tested in turn_spans_test.cc.
#ifndef INLAID_SDK_TEXT_MARKS_H_
#define INLAID_SDK_TEXT_MARKS_H_

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sdk/base/json.h"

namespace inlaid::text {

// Calls `visit` for every string of a message that an assistant writes: the content (a string, or the texts
// of its parts), reasoning, names and arguments of tool calls. `content` tells the first kind from the
// others.
void visit_strings(Json& message, const std::function<void(std::string& text, bool content)>& visit);

// Range of a text without the white space (in Python's sense) at both ends.
std::pair<size_t, size_t> trimmed(std::string_view text);

// Where marks stand in a string: at its ends, or inside of the white space at its ends. Templates often trim
// contents; the inner place is right for those. A blank string (nothing but white space) may be left without
// marks, because many templates test whether a content is empty.
struct Edges {
  bool inner_begin = false, inner_end = false, skip_blank = false;
};

class Marks {
 public:
  // `everything` is all text that the render sees. kInvalidArgument if it uses up the private use plane.
  explicit Marks(std::string_view everything);

  // Puts marks around the strings of message `only`, or of all messages.
  Json put(const Json& messages, Edges edges, std::optional<size_t> only);

  // A marked string, as bytes [begin, end) of the text without marks.
  struct Piece {
    size_t mark;  // number of the string
    size_t message;
    bool content;
    size_t begin, end;
  };
  struct Taken {
    std::string text;
    std::vector<Piece> pieces;                          // in order of begin
    std::vector<std::pair<size_t, size_t>> generation;  // blocks, in order
  };
  // Takes the marks out. Nothing when they are not in pairs, as after a template that cuts strings.
  std::optional<Taken> take(std::string_view marked) const;

  char32_t generation_begin() const { return base_ + kGenerationBegin; }
  char32_t generation_end() const { return base_ + kGenerationEnd; }

 private:
  enum : char32_t { kDigits = 0, kBegin = 16, kEnd, kGenerationBegin, kGenerationEnd, kBlock = 32 };

  struct Owner {
    size_t message;
    bool content;
  };
  std::string mark(char32_t kind, size_t number) const;

  char32_t base_ = 0;
  std::vector<Owner> owners_;  // of mark numbers
};

}  // namespace inlaid::text

#endif  // INLAID_SDK_TEXT_MARKS_H_

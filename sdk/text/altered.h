// Finds the place of a content that a template takes apart, by rendering another content of the same shape.
//
// Problem: some templates look into a content, for example to move or drop its "<think>...</think>" part; a
// mark would change what they find. Idea: replace every letter and digit outside of tags by another one of
// the same class and length, render again, and compare: the bytes that differ are exactly those that come
// from the content. Tags, punctuation and white space stay, so that a template splits both contents alike;
// where it does not, the results differ in length, and nothing is found. Cost: one render. Tested in
// turn_spans_test.cc.
#ifndef INLAID_SDK_TEXT_ALTERED_H_
#define INLAID_SDK_TEXT_ALTERED_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace inlaid::text {

// The text with other letters and digits; equal to it when it has none outside of tags.
std::string altered(std::string_view text);

struct AlteredPlace {
  size_t begin, end;  // bytes of the rendered text
  // The whole content stands there, but for white space at its ends. Else its beginning is missing or
  // changed, and `begin` is the first byte that surely comes from it.
  bool whole;
};

// Place of `content` in `rendered`; `other_rendered` is the render with altered(content) instead. Nothing
// when the two do not show a single place, or when the end of the content is missing or changed.
std::optional<AlteredPlace> find_by_alteration(std::string_view content, std::string_view rendered,
                                               std::string_view other_rendered);

}  // namespace inlaid::text

#endif  // INLAID_SDK_TEXT_ALTERED_H_

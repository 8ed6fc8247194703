// UTF-8 checks for text that does not go through the JSON parser, and cutting of quoted text in messages.
#ifndef INLAID_SDK_BASE_UTF8_H_
#define INLAID_SDK_BASE_UTF8_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace inlaid {

// Offset of the first byte that is not part of well-formed UTF-8 (RFC 3629: no overlong forms, no surrogates,
// at most U+10FFFF), or npos.
size_t first_invalid_utf8(std::string_view text);

// Text fit for a message of one line: what is not UTF-8 becomes U+FFFD, control characters become spaces, and of a text over
// `limit` bytes the beginning and the end are kept, with "..." between.
std::string one_line(std::string text, size_t limit);

// Text for a message: at most `limit` bytes, cut at a character and then marked with "...".
std::string excerpt(std::string_view text, size_t limit = 60);

}  // namespace inlaid

#endif  // INLAID_SDK_BASE_UTF8_H_

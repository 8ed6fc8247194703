// Which tokens are trained, from spans of bytes of the text they were made from.
//
// The rendered chat is encoded once, as one text, with the byte range of every token; the mask is read off
// the ranges. The often used alternative, searching the tokens of a response marker, fails when the marker is
// tokenised differently in its context, and then masks everything without a word. Encoding turn by turn would
// give other tokens than the model sees when it is used.
//
// Rule: a token is trained if its first byte lies inside a trained span. So a token that starts before a span
// and reaches into it is not trained (it would teach the model to write a part of the prompt); a token that
// starts inside and reaches beyond is. The first kind is counted: it means that the text before the span ends
// in the middle of a token, mostly because a prompt ends with a space that belongs to the next word. All
// tokens of one split character have the character's range and are trained or not together.
//
// Example: prompt "a: ", completion "yes", span [3, 6), tokens "a" [0, 1), ":" [1, 2), " yes" [2, 6): nothing
// is trained. Tests: loss_mask_test.cc, encode_row_test.cc.
#ifndef INLAID_SDK_DATA_LOSS_MASK_H_
#define INLAID_SDK_DATA_LOSS_MASK_H_

#include <cstdint>
#include <span>
#include <vector>

namespace inlaid::data {

struct ByteSpan {
  uint32_t begin, end;
  bool operator==(const ByteSpan&) const = default;
};

// Sorted, disjoint and without empty ones.
std::vector<ByteSpan> normalised(std::vector<ByteSpan> spans);
// [0, size) without `holes`.
std::vector<ByteSpan> complement(std::vector<ByteSpan> holes, uint32_t size);

// One flag per token, by the rule above; `begin` and `end` are the tokens' ranges, `spans` is normalised.
// Adds the tokens that start before a span and reach into it to *boundary_tokens.
std::vector<uint8_t> trained_tokens(std::span<const uint32_t> begin, std::span<const uint32_t> end,
                                    const std::vector<ByteSpan>& spans, int64_t* boundary_tokens);

// targets[i] = tokens[i + 1] where that token is trained, else kIgnore; the last position has no target.
std::vector<int32_t> shifted_targets(std::span<const int32_t> tokens, std::span<const uint8_t> trained);

}  // namespace inlaid::data

#endif  // INLAID_SDK_DATA_LOSS_MASK_H_

#include "sdk/data/loss_mask.h"

#include <gtest/gtest.h>

#include "sdk/data/dataset.h"

namespace inlaid::data {
namespace {

using Spans = std::vector<ByteSpan>;
using Flags = std::vector<uint8_t>;

TEST(LossMask, NormalisesAndComplements) {
  EXPECT_EQ(normalised({{5, 8}, {1, 3}, {2, 4}, {9, 9}, {8, 9}}), (Spans{{1, 4}, {5, 9}}));
  EXPECT_EQ(complement({{5, 8}, {0, 2}}, 10), (Spans{{2, 5}, {8, 10}}));
  EXPECT_EQ(complement({}, 3), (Spans{{0, 3}}));
  EXPECT_EQ(complement({{0, 3}}, 3), (Spans{}));
}

struct Case {
  std::vector<uint32_t> begin, end;
  Spans spans;
  Flags trained;
  int64_t boundary;
};

TEST(LossMask, ATokenIsTrainedIfItsFirstByteIs) {
  const Case cases[] = {
      // Edges: the first byte of a span is inside, the byte after it is not.
      {{0, 1, 2, 3}, {1, 2, 3, 4}, {{1, 3}}, {0, 1, 1, 0}, 0},
      // A token that reaches into a span is not trained, and counted; one that reaches beyond is trained.
      {{0, 2, 6}, {2, 6, 7}, {{3, 7}}, {0, 0, 1}, 1},
      {{0, 2, 6}, {2, 6, 7}, {{0, 3}}, {1, 1, 0}, 0},
      // A token that starts in one span and ends in another is trained by its start, and is no boundary
      // token.
      {{0, 4}, {4, 6}, {{0, 1}, {3, 6}}, {1, 1}, 0},
      // A token around a whole span.
      {{0, 5}, {5, 6}, {{2, 3}}, {0, 0}, 1},
      // Tokens of one split character share its range.
      {{0, 4, 4, 4, 7}, {4, 7, 7, 7, 8}, {{4, 7}}, {0, 1, 1, 1, 0}, 0},
      {{0, 1}, {1, 2}, {}, {0, 0}, 0},
  };
  for (const Case& c : cases) {
    int64_t boundary = 0;
    EXPECT_EQ(trained_tokens(c.begin, c.end, c.spans, &boundary), c.trained);
    EXPECT_EQ(boundary, c.boundary);
  }
}

TEST(LossMask, ShiftsTargetsByOne) {
  const std::vector<int32_t> tokens = {10, 11, 12, 13};
  EXPECT_EQ(shifted_targets(tokens, Flags{1, 0, 1, 1}), (std::vector<int32_t>{kIgnore, 12, 13, kIgnore}));
  EXPECT_EQ(shifted_targets(tokens, Flags{1, 1, 1, 1}), (std::vector<int32_t>{11, 12, 13, kIgnore}));
}

}  // namespace
}  // namespace inlaid::data

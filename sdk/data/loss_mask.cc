#include "sdk/data/loss_mask.h"

#include <algorithm>  // for sort, upper_bound, max

#include "sdk/base/error.h"
#include "sdk/data/dataset.h"  // for kIgnore

namespace inlaid::data {

std::vector<ByteSpan> normalised(std::vector<ByteSpan> spans) {
  std::sort(spans.begin(), spans.end(),
            [](const ByteSpan& a, const ByteSpan& b) { return a.begin < b.begin; });
  std::vector<ByteSpan> out;
  for (const ByteSpan& span : spans) {
    if (span.begin >= span.end) continue;
    if (!out.empty() && span.begin <= out.back().end) {
      out.back().end = std::max(out.back().end, span.end);
    } else {
      out.push_back(span);
    }
  }
  return out;
}

std::vector<ByteSpan> complement(std::vector<ByteSpan> holes, uint32_t size) {
  std::vector<ByteSpan> out;
  uint32_t at = 0;
  for (const ByteSpan& hole : normalised(std::move(holes))) {
    if (hole.begin > at) out.push_back({at, hole.begin});
    at = hole.end;
  }
  if (at < size) out.push_back({at, size});
  return out;
}

std::vector<uint8_t> trained_tokens(std::span<const uint32_t> begin, std::span<const uint32_t> end,
                                    const std::vector<ByteSpan>& spans, int64_t* boundary_tokens) {
  INLAID_CHECK(begin.size() == end.size());
  std::vector<uint8_t> trained(begin.size(), 0);
  for (size_t i = 0; i < begin.size(); ++i) {
    // The first span that starts behind the token's first byte; the one before it is the only one that can
    // hold that byte.
    const auto after =
        std::upper_bound(spans.begin(), spans.end(), begin[i],
                         [](uint32_t byte, const ByteSpan& span) { return byte < span.begin; });
    if (after != spans.begin() && begin[i] < std::prev(after)->end) {
      trained[i] = 1;
    } else if (after != spans.end() && after->begin < end[i]) {
      ++*boundary_tokens;
    }
  }
  return trained;
}

std::vector<int32_t> shifted_targets(std::span<const int32_t> tokens, std::span<const uint8_t> trained) {
  INLAID_CHECK(tokens.size() == trained.size());
  std::vector<int32_t> targets(tokens.size(), kIgnore);
  for (size_t i = 0; i + 1 < tokens.size(); ++i) {
    if (trained[i + 1]) targets[i] = tokens[i + 1];
  }
  return targets;
}

}  // namespace inlaid::data

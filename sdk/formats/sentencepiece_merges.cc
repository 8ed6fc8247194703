#include <algorithm>
#include <unordered_map>

#include "sdk/base/error.h"
#include "sdk/formats/sentencepiece.h"

namespace inlaid::formats {
namespace {

// Sum of the squares of the pieces' bytes: all prefixes and suffixes are hashed. Real vocabularies have under
// 2^26.
constexpr uint64_t kMaxWork = uint64_t{1} << 33;

struct Cut {
  uint32_t whole, left, right;
  uint32_t left_length, right_length;  // in characters
};

bool begins_character(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
}

}  // namespace

Merges merges_of(const std::vector<Piece>& pieces, MergeOrder order, std::string_view what) {
  const auto takes_part = [&](const Piece& piece) {
    return order == MergeOrder::kGguf || piece.type == PieceType::kNormal;
  };
  std::unordered_map<std::string_view, uint32_t> ids;
  ids.reserve(pieces.size());
  uint64_t work = 0;
  for (size_t id = 0; id < pieces.size(); ++id) {
    if (takes_part(pieces[id])) ids.emplace(pieces[id].text, static_cast<uint32_t>(id));
    const uint64_t bytes = std::min<uint64_t>(pieces[id].text.size(), uint64_t{1} << 20);
    work += bytes * bytes;
    if (work > kMaxWork) {
      fail(Code::kDataLoss, what, ": the pieces up to number ", id,
           " are too long to be a vocabulary; the file is damaged");
    }
  }
  std::vector<Cut> cuts;
  for (size_t id = 0; id < pieces.size(); ++id) {
    if (!takes_part(pieces[id])) continue;
    const std::string_view text = pieces[id].text;
    const auto length = static_cast<uint32_t>(std::count_if(text.begin(), text.end(), begins_character));
    uint32_t left_length = 0;
    for (size_t at = 1; at < text.size(); ++at) {
      if (!begins_character(text[at])) continue;
      ++left_length;
      const auto left = ids.find(text.substr(0, at));
      if (left == ids.end()) continue;
      const auto right = ids.find(text.substr(at));
      if (right == ids.end()) continue;
      cuts.push_back(
          {static_cast<uint32_t>(id), left->second, right->second, left_length, length - left_length});
    }
  }
  std::sort(cuts.begin(), cuts.end(), [&](const Cut& a, const Cut& b) {
    const double a_score = pieces[a.whole].score, b_score = pieces[b.whole].score;
    if (a_score != b_score) return a_score > b_score;
    if (order == MergeOrder::kModel) {
      if (a.whole != b.whole) return a.whole < b.whole;
      return a.left_length < b.left_length;
    }
    if (a.left_length != b.left_length) return a.left_length > b.left_length;
    if (a.right_length != b.right_length) return a.right_length > b.right_length;
    return a.whole < b.whole;
  });
  Merges out;
  out.reserve(cuts.size());
  for (const Cut& cut : cuts) out.emplace_back(cut.left, cut.right);
  return out;
}

}  // namespace inlaid::formats

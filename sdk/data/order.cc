#include "sdk/data/order.h"

#include <algorithm>
#include <cmath>

#include "sdk/base/error.h"
#include "sdk/data/permutation.h"

namespace inlaid::data {
namespace {

constexpr int64_t kMostDraws = int64_t{1} << 40;
// Seeds of the sources' passes must differ from each other and from the seed of the epochs.
constexpr uint64_t kGolden = 0x9e3779b97f4a7c15;

}  // namespace

Order::Order(const std::vector<Part>& parts, uint64_t seed, bool shuffle) : seed_(seed), shuffle_(shuffle) {
  for (const Part& part : parts) {
    const int64_t samples = part.end - part.begin;
    const double draws = std::max(1.0, std::round(part.weight * static_cast<double>(samples)));
    if (!(static_cast<double>(size_) + draws <= static_cast<double>(kMostDraws))) {
      fail(Code::kInvalidArgument, "data: a weight of ", part.weight, " on ", samples, " samples makes an epoch of more than ",
           kMostDraws, " draws");
    }
    sources_.push_back({part.begin, samples, size_, static_cast<int64_t>(draws)});
    size_ += sources_.back().draws;
    repeats_ = repeats_ || sources_.back().draws != samples;
  }
}

Order::Draw Order::at(int64_t epoch, int64_t index) const {
  const int64_t place = shuffle_ ? Permutation(seed_, epoch, size_)(index) : index;
  const auto source = std::upper_bound(sources_.begin(), sources_.end(), place,
                                       [](int64_t value, const Source& s) { return value < s.first; }) - 1;
  const int64_t draw = place - source->first;
  if (source->draws == source->samples) return {source->begin + draw, epoch};
  const int64_t number = epoch * source->draws + draw;
  const int64_t pass = number / source->samples, sample = number % source->samples;
  const auto which = static_cast<uint64_t>(source - sources_.begin()) + 1;
  return {source->begin + (shuffle_ ? Permutation(seed_ ^ kGolden * which, pass, source->samples)(sample) : sample), pass};
}

}  // namespace inlaid::data

#include "sdk/train/report/curve.h"

#include <algorithm>
#include <cmath>

namespace inlaid::train {
namespace {

// Sums and spans of any number of values stay finite.
constexpr double kLargest = 1e100;

void merge(Curve::Point* into, const Curve::Point& point) {
  into->step = point.step;
  into->sum += point.sum;
  into->count += point.count;
  into->low = std::min(into->low, point.low);
  into->high = std::max(into->high, point.high);
}

}  // namespace

void Curve::add(int64_t step, double value) {
  if (!(std::fabs(value) <= kLargest)) return;
  while (!points_.empty() && points_.back().step >= step) points_.pop_back();
  const Point point{step, value, 1, value, value};
  if (!points_.empty() && points_.back().count < merged_) {
    merge(&points_.back(), point);
    return;
  }
  if (points_.size() == limit_) {
    for (size_t i = 0; i < limit_ / 2; ++i) {
      points_[i] = points_[2 * i];
      merge(&points_[i], points_[2 * i + 1]);
    }
    points_.resize(limit_ / 2);
    merged_ *= 2;
  }
  points_.push_back(point);
}

double Curve::low() const {
  return std::min_element(points_.begin(), points_.end(), [](const Point& a, const Point& b) { return a.low < b.low; })->low;
}

double Curve::high() const {
  return std::max_element(points_.begin(), points_.end(), [](const Point& a, const Point& b) { return a.high < b.high; })->high;
}

}  // namespace inlaid::train

// One metric over the steps of a run, in bounded memory: neighbouring points are merged when there are too many.
#ifndef INLAID_SDK_TRAIN_REPORT_CURVE_H_
#define INLAID_SDK_TRAIN_REPORT_CURVE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace inlaid::train {

class Curve {
 public:
  struct Point {
    int64_t step = 0;  // the last one merged into this point
    double sum = 0;
    int64_t count = 0;
    double low = 0, high = 0;
    double mean() const { return sum / static_cast<double>(count); }
  };

  // At most `limit` points (even) are kept.
  explicit Curve(size_t limit = 1024) : limit_(limit) {}

  // Steps come in ascending order. One that is not above the last means that the run went back to a checkpoint: what was
  // added from there on is dropped. Values that are not finite, or over 1e100, are left out.
  void add(int64_t step, double value);

  const std::vector<Point>& points() const { return points_; }
  bool empty() const { return points_.empty(); }
  double low() const;   // of all points; not empty
  double high() const;  // of all points; not empty

 private:
  size_t limit_;
  int64_t merged_ = 1;  // values per full point
  std::vector<Point> points_;
};

}  // namespace inlaid::train

#endif  // INLAID_SDK_TRAIN_REPORT_CURVE_H_

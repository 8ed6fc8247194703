// The best evaluations of a run, and for how long there was no new best one: what early stopping and the choice of the
// checkpoints to keep go by. Part of a checkpoint's state, so that a resumed run judges as the uninterrupted one.
#ifndef INLAID_SDK_TRAIN_BEST_H_
#define INLAID_SDK_TRAIN_BEST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "sdk/base/json.h"

namespace inlaid::train {

class BestEvaluations {
 public:
  struct Entry {
    int64_t step;
    double loss;
    bool operator==(const Entry&) const = default;
  };

  // Keeps `count` >= 1 entries. A new best must be lower than the old one by more than `threshold`.
  BestEvaluations(int64_t count, double threshold) : count_(count), threshold_(threshold) {}

  // True if the evaluation is among the best ones. A loss that is not finite never is. Of equal ones the earlier is better.
  bool add(int64_t step, double loss);

  const std::vector<Entry>& entries() const { return entries_; }  // the best first
  int64_t since_best() const { return since_best_; }              // evaluations since the last new best
  std::string why_stopped() const;                                // for people

  Json to_json() const;
  // What to_json() wrote, with the count and threshold of `settings`. kDataLoss for anything else.
  static BestEvaluations from_json(const Json& json, const BestEvaluations& settings);

 private:
  int64_t count_;
  double threshold_;
  std::vector<Entry> entries_;
  double best_ = 0;         // the last new best, by which patience is measured
  bool has_best_ = false;
  int64_t since_best_ = 0;
};

}  // namespace inlaid::train

#endif  // INLAID_SDK_TRAIN_BEST_H_

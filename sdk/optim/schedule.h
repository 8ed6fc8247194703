// The course of the learning rate over a run, and the rule of which parameters decay.
//
// The factor on optim.learning_rate for each optimizer step is a pure function of the step, so that nothing
// about it needs saving. Formulas are those of transformers.get_scheduler
// (src/transformers/optimization.py, 5.24), in the same order of double operations; schedule_test.cc compares
// with numbers from that library (tests/golden/schedule). One difference: transformers ignores a warm-up
// beside "constant"; here nothing is ignored, so it is what transformers calls "constant_with_warmup".
#ifndef INLAID_SDK_OPTIM_SCHEDULE_H_
#define INLAID_SDK_OPTIM_SCHEDULE_H_

#include <cstdint>
#include <span>
#include <string_view>

#include "sdk/config/config.h"

namespace inlaid::optim {

class LearningRateSchedule {
 public:
  // Reads optim.lr_scheduler_type, optim.warmup_*, optim.lr_scheduler_kwargs and optim.learning_rate.
  // `total_steps` >= 1 is the number of optimizer steps of the whole run. kInvalidArgument if the phases do
  // not fit into it.
  LearningRateSchedule(const config::Config& config, int64_t total_steps);

  // Factor for the optimizer step after `steps_done` completed steps (0 for the first). Without effect on the
  // object; callable from any thread.
  double multiplier(int64_t steps_done) const;

  int64_t warmup_steps() const { return warmup_; }

 private:
  enum class Type { kConstant, kLinear, kCosine, kInverseSqrt, kWarmupStableDecay };

  Type type_;
  int64_t total_;
  int64_t warmup_;
  double min_rate_ = 0;      // of cosine_with_min_lr (0 makes it cosine) and warmup_stable_decay
  int64_t decay_steps_ = 0;  // of warmup_stable_decay
  int64_t timescale_ = 1;    // of inverse_sqrt
};

// Whether weight decay acts on a parameter: matrices decay; norms and biases, which have rank below 2, do
// not.
bool decays(std::string_view name, std::span<const int64_t> shape);

}  // namespace inlaid::optim

#endif  // INLAID_SDK_OPTIM_SCHEDULE_H_

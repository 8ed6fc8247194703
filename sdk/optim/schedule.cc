#include "sdk/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include "sdk/base/error.h"

namespace inlaid::optim {
namespace {

// Share of the way from `begin`, `steps` steps long.
double progress(int64_t step, int64_t begin, int64_t steps) {
  return static_cast<double>(step - begin) / static_cast<double>(std::max<int64_t>(1, steps));
}

double half_cosine(double progress, double min_rate) {
  const double factor = 0.5 * (1.0 + std::cos(std::numbers::pi * progress));
  return std::max(0.0, factor * (1.0 - min_rate) + min_rate);
}

}  // namespace

LearningRateSchedule::LearningRateSchedule(const config::Config& config, int64_t total_steps)
    : total_(total_steps) {
  if (total_steps < 1) fail(Code::kInvalidArgument, "a schedule needs at least 1 step, not ", total_steps);
  warmup_ = config.integer("optim.warmup_steps");
  if (const double ratio = config.number("optim.warmup_ratio"); ratio > 0) {
    warmup_ = static_cast<int64_t>(std::ceil(static_cast<double>(total_steps) * ratio));
  }
  const std::string type = config.text("optim.lr_scheduler_type");
  if (type == "constant") {
    type_ = Type::kConstant;
  } else if (type == "linear") {
    type_ = Type::kLinear;
  } else if (type == "cosine") {
    type_ = Type::kCosine;
  } else if (type == "cosine_with_min_lr") {
    type_ = Type::kCosine;
    const double peak = config.number("optim.learning_rate");
    const double last = config.optional_number("optim.lr_scheduler_kwargs.min_lr").value_or(0);
    min_rate_ =
        config.optional_number("optim.lr_scheduler_kwargs.min_lr_rate").value_or(peak > 0 ? last / peak : 0);
  } else if (type == "inverse_sqrt") {
    type_ = Type::kInverseSqrt;
    timescale_ = config.optional_integer("optim.lr_scheduler_kwargs.timescale")
                     .value_or(warmup_ > 0 ? warmup_ : 10000);
  } else if (type == "warmup_stable_decay") {
    type_ = Type::kWarmupStableDecay;
    decay_steps_ = config.integer("optim.lr_scheduler_kwargs.num_decay_steps");
    min_rate_ = config.optional_number("optim.lr_scheduler_kwargs.min_lr_ratio").value_or(0);
    if (warmup_ > total_ || decay_steps_ > total_ - warmup_) {
      fail(Code::kInvalidArgument, "optim.lr_scheduler_kwargs.num_decay_steps (", decay_steps_,
           ") and the warm-up (", warmup_, ") are more than the ", total_, " steps of the run");
    }
  } else {
    fail(Code::kInternal, "no schedule is called '", type, "'");
  }
}

double LearningRateSchedule::multiplier(int64_t step) const {
  if (step < warmup_) {
    const double factor = progress(step, 0, warmup_);
    return type_ == Type::kWarmupStableDecay ? factor * (1.0 - min_rate_) + min_rate_ : factor;
  }
  switch (type_) {
    case Type::kConstant:
      return 1.0;
    case Type::kLinear:
      return std::max(0.0, static_cast<double>(total_ - step) /
                               static_cast<double>(std::max<int64_t>(1, total_ - warmup_)));
    case Type::kCosine:
      return half_cosine(progress(step, warmup_, total_ - warmup_), min_rate_);
    case Type::kInverseSqrt: {
      const int64_t shift = timescale_ - warmup_;
      return 1.0 / std::sqrt(static_cast<double>(step + shift) / static_cast<double>(timescale_));
    }
    case Type::kWarmupStableDecay: {
      const int64_t decay_begin = total_ - decay_steps_;
      if (step < decay_begin) return 1.0;
      return step < total_ ? half_cosine(progress(step, decay_begin, decay_steps_), min_rate_) : min_rate_;
    }
  }
  return 0.0;
}

bool decays(std::string_view, std::span<const int64_t> shape) {
  return shape.size() >= 2;
}

}  // namespace inlaid::optim

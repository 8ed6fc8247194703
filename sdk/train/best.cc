#include "sdk/train/best.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "sdk/base/error.h"

namespace inlaid::train {

bool BestEvaluations::add(int64_t step, double loss) {
  ++since_best_;
  if (!std::isfinite(loss)) return false;
  if (!has_best_ || loss < best_ - threshold_) {
    best_ = loss;
    has_best_ = true;
    since_best_ = 0;
  }
  const auto place = std::upper_bound(entries_.begin(), entries_.end(), loss,
                                      [](double value, const Entry& entry) { return value < entry.loss; });
  if (place - entries_.begin() >= count_) return false;
  entries_.insert(place, {step, loss});
  if (static_cast<int64_t>(entries_.size()) > count_) entries_.pop_back();
  return true;
}

std::string BestEvaluations::why_stopped() const {
  if (entries_.empty()) return "stopped early: no evaluation gave a finite loss";
  char text[128];
  std::snprintf(text, sizeof text, "stopped early: held-out loss %.4f of step %lld was not improved on in %lld evaluations",
                entries_[0].loss, static_cast<long long>(entries_[0].step), static_cast<long long>(since_best_));
  return text;
}

// JSON numbers are printed so that they read back to the same bits.
Json BestEvaluations::to_json() const {
  Json json;
  json["entries"] = Json::array();
  for (const Entry& entry : entries_) json["entries"].push_back({{"step", entry.step}, {"eval_loss", entry.loss}});
  json["best"] = has_best_ ? Json(best_) : Json();
  json["since_best"] = since_best_;
  return json;
}

BestEvaluations BestEvaluations::from_json(const Json& json, const BestEvaluations& settings) {
  const std::string what = "best evaluations of the checkpoint";
  BestEvaluations result(settings.count_, settings.threshold_);
  try {
    for (const Json& entry : at(json, "entries", what)) {
      result.entries_.push_back({int_at(entry, "step", what), number_at(entry, "eval_loss", what)});
    }
    result.has_best_ = !at(json, "best", what).is_null();
    if (result.has_best_) result.best_ = number_at(json, "best", what);
    result.since_best_ = int_at(json, "since_best", what);
  } catch (const Error& error) {
    fail(Code::kDataLoss, error.message());
  }
  if (static_cast<int64_t>(result.entries_.size()) > settings.count_) result.entries_.resize(static_cast<size_t>(settings.count_));
  return result;
}

}  // namespace inlaid::train

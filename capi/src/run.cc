#include "sdk/train/run.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "capi/include/inlaid.h"
#include "capi/src/guard.h"
#include "capi/src/handles.h"

using namespace inlaid;
using namespace inlaid::capi;

namespace {

int64_t count_at(const Json &json, const std::string &key, const std::string &what) {
  const int64_t value = int_at(json, key, what);
  if (value < 0) fail(Code::kInvalidArgument, what, ": ", key, " must not be negative");
  return value;
}

train::RunOptions parse_run_options(const char *text) {
  train::RunOptions options;
  const std::string what = "json";
  const Json json = text == nullptr ? Json::object() : parse_json(text, what);
  if (!json.is_object()) fail(Code::kInvalidArgument, what, " must be an object");
  for (const auto &[key, value] : json.items()) {
    if (value.is_null()) continue;
    if (key == "until") {
      options.until = count_at(json, key, what);
    } else if (key == "eval_steps") {
      options.eval_every = count_at(json, key, what);
    } else if (key == "save_steps") {
      options.save_every = count_at(json, key, what);
    } else if (key == "save_total_limit") {
      options.save_total_limit = count_at(json, key, what);
    } else if (key == "checkpoint_dir") {
      options.checkpoint_folder = string_at(json, key, what);
    } else if (key == "keep_best") {
      options.keep_best = count_at(json, key, what);
    } else if (key == "early_stopping_patience") {
      options.patience = count_at(json, key, what);
    } else if (key == "early_stopping_threshold") {
      options.threshold = number_at(json, key, what);
      if (!(options.threshold >= 0)) fail(Code::kInvalidArgument, what, ": ", key, " must not be negative");
    } else {
      const std::string near = nearest(key, {"until", "eval_steps", "save_steps", "save_total_limit", "checkpoint_dir", "keep_best",
                                             "early_stopping_patience", "early_stopping_threshold"});
      fail(Code::kInvalidArgument, what, ": unknown key '", key, "'", near.empty() ? "" : "; did you mean '" + near + "'?");
    }
  }
  return options;
}

}  // namespace

inlaid_error *inlaid_run_start(inlaid_trainer *t, inlaid_dataset *eval_data_or_null, const char *json,
                               inlaid_run **out) INLAID_NOEXCEPT {
  if (out != nullptr) *out = nullptr;
  return guard([&] {
    required(out, "out");
    inlaid_trainer &trainer = checked(t, "trainer");
    const Owner owner(*trainer.value, "trainer");
    trainer.value->check_idle();
    trainer.value->state->check_up();
    train::RunOptions options = parse_run_options(json);
    if (eval_data_or_null != nullptr) options.eval_data = checked(eval_data_or_null, "eval_data").value;
    auto handle = std::make_unique<inlaid_run>(nullptr, trainer.value);
    RuntimeState::Runs place(1);
    handle->value = train::Run::start(trainer.value->trainer, std::move(options));
    trainer.value->run = handle->value;
    trainer.value->state->add(handle->value, std::move(place));
    *out = handle.release();
  });
}

inlaid_error *inlaid_run_next(inlaid_run *r, int64_t timeout_ms, inlaid_event **out) INLAID_NOEXCEPT {
  if (out != nullptr) *out = nullptr;
  return guard([&] {
    required(out, "out");
    std::shared_ptr<const train::Event> next = checked(r, "run").value->next(timeout_ms);
    if (next != nullptr) *out = event(std::move(next));
  });
}

inlaid_error *inlaid_run_request(inlaid_run *r, const char *verb) INLAID_NOEXCEPT {
  return guard([&] { checked(r, "run").value->request(&required(verb, "verb")); });
}

inlaid_error *inlaid_run_set(inlaid_run *r, const char *key, const char *json) INLAID_NOEXCEPT {
  return guard([&] { checked(r, "run").value->set(&required(key, "key"), &required(json, "json")); });
}

void inlaid_run_cancel(inlaid_run *r) INLAID_NOEXCEPT {
  if (r != nullptr) r->value->cancel();
}

inlaid_error *inlaid_run_join(inlaid_run *r, int64_t timeout_ms) INLAID_NOEXCEPT {
  return guard([&] {
    if (!checked(r, "run").value->join(timeout_ms)) fail(Code::kDeadlineExceeded, "the run has not ended yet");
  });
}

void inlaid_run_release(inlaid_run *r) INLAID_NOEXCEPT {
  if (r != nullptr) r->value->cancel();
  drop(r);
}

int32_t inlaid_event_kind(const inlaid_event *e) INLAID_NOEXCEPT { return e == nullptr ? 0 : static_cast<int32_t>(e->event->kind); }
uint64_t inlaid_event_step(const inlaid_event *e) INLAID_NOEXCEPT { return e == nullptr ? 0 : static_cast<uint64_t>(e->event->step); }
uint64_t inlaid_event_seq(const inlaid_event *e) INLAID_NOEXCEPT { return e == nullptr ? 0 : e->event->sequence; }
uint32_t inlaid_event_metric_count(const inlaid_event *e) INLAID_NOEXCEPT {
  return e == nullptr ? 0 : static_cast<uint32_t>(e->event->metrics.size());
}
const char *inlaid_event_metric_name(const inlaid_event *e, uint32_t i) INLAID_NOEXCEPT {
  return e == nullptr || i >= e->event->metrics.size() ? nullptr : e->event->metrics[i].first.c_str();
}
double inlaid_event_metric_value(const inlaid_event *e, uint32_t i) INLAID_NOEXCEPT {
  return e == nullptr || i >= e->event->metrics.size() ? std::numeric_limits<double>::quiet_NaN() : e->event->metrics[i].second;
}
double inlaid_event_metric(const inlaid_event *e, const char *name) INLAID_NOEXCEPT {
  if (e != nullptr && name != nullptr) {
    for (const auto &[key, value] : e->event->metrics) {
      if (key == name) return value;
    }
  }
  return std::numeric_limits<double>::quiet_NaN();
}
const char *inlaid_event_text(const inlaid_event *e) INLAID_NOEXCEPT { return e == nullptr ? "" : e->event->text.c_str(); }
const char *inlaid_event_json(const inlaid_event *e) INLAID_NOEXCEPT { return e == nullptr ? "{}" : e->json.c_str(); }
void inlaid_event_release(inlaid_event *e) INLAID_NOEXCEPT { delete e; }

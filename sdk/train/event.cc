#include "sdk/train/event.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "sdk/base/clock.h"
#include "sdk/base/json.h"

namespace inlaid::train {

const char* event_kind_name(EventKind kind) {
  switch (kind) {
    case EventKind::step: return "step";
    case EventKind::eval: return "eval";
    case EventKind::checkpoint: return "checkpoint";
    case EventKind::warning: return "warning";
    case EventKind::state: return "state";
    case EventKind::done: return "done";
    case EventKind::sample: return "sample";
    case EventKind::change: return "change";
  }
  return "unknown";
}

std::string Event::json() const {
  Json json;
  json["event"] = event_kind_name(kind);
  json["step"] = step;
  json["seq"] = sequence;
  json["time"] = time;
  if (kind == EventKind::sample) json["prompt"] = prompt;
  if (!text.empty()) json["text"] = text;
  for (const auto& [name, value] : metrics) json[name] = std::isfinite(value) ? Json(value) : Json();
  return to_text(json);
}

std::shared_ptr<const Event> EventQueue::number(Event event) {
  const std::lock_guard<std::mutex> lock(mutex_);
  event.sequence = next_sequence_++;
  event.time = static_cast<double>(unix_ms_now()) / 1000;
  return std::make_shared<const Event>(std::move(event));
}

void EventQueue::push(std::shared_ptr<const Event> event) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (events_.size() >= capacity_) {
    const auto oldest = std::find_if(events_.begin(), events_.end(),
                                     [](const auto& queued) { return queued->kind == EventKind::step; });
    if (oldest != events_.end()) events_.erase(oldest);
  }
  const bool done = event->kind == EventKind::done;
  events_.push_back(std::move(event));
  done_ = done_ || done;
  ready_.notify_all();
}

std::shared_ptr<const Event> EventQueue::pop(int64_t timeout_ms, bool* ended) {
  std::unique_lock<std::mutex> lock(mutex_);
  const auto something = [this] { return !events_.empty() || closed_; };
  if (timeout_ms < 0) {
    ready_.wait(lock, something);
  } else {
    ready_.wait_for(lock, std::chrono::milliseconds(timeout_ms), something);
  }
  if (events_.empty() && last_ != nullptr) return std::exchange(last_, nullptr);
  *ended = events_.empty() && closed_;
  if (events_.empty()) return nullptr;
  std::shared_ptr<const Event> event = std::move(events_.front());
  events_.pop_front();
  return event;
}

void EventQueue::close(std::shared_ptr<Event> last) {
  const std::lock_guard<std::mutex> lock(mutex_);
  closed_ = true;
  if (!done_) {
    last->sequence = next_sequence_++;
    last->time = static_cast<double>(unix_ms_now()) / 1000;
    last_ = std::move(last);
  }
  ready_.notify_all();
}

}  // namespace inlaid::train

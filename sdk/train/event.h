// Events of a run, and the bounded queue from which they are pulled.
#ifndef INLAID_SDK_TRAIN_EVENT_H_
#define INLAID_SDK_TRAIN_EVENT_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace inlaid::train {

// Numerically equal to INLAID_EVENT_* of capi/include/inlaid.h.
enum class EventKind : int32_t { step = 1, eval = 2, checkpoint = 3, warning = 4, state = 5, done = 6, sample = 7, change = 8 };
const char* event_kind_name(EventKind kind);

struct Event {
  EventKind kind = EventKind::state;
  int64_t step = 0;
  double time = 0;                                      // seconds since 1970, when it happened
  uint64_t sequence = 0;                                // within the run; a gap shows events that were dropped
  std::vector<std::pair<std::string, double>> metrics;  // name, value
  std::string text;                                     // state name, warning, checkpoint path, answer to a prompt, changed key
  std::string prompt;                                   // of a sample
  std::string json() const;                             // {"event": "step", "step": 3, "seq": 7, ..., "loss": 1.25}
};

// Bounded: when it is full, the oldest step event is dropped; other kinds never are.
class EventQueue {
 public:
  explicit EventQueue(size_t capacity) : capacity_(capacity) {}
  // Numbers and dates an event, which is to be pushed next: what is written to files can be written before anybody sees it.
  std::shared_ptr<const Event> number(Event event);
  void push(std::shared_ptr<const Event> event);
  // The next event; nullptr when none comes within the timeout (milliseconds; negative = wait) or after close() with nothing
  // left (`*ended` tells).
  std::shared_ptr<const Event> pop(int64_t timeout_ms, bool* ended);
  // No more events. `last` is delivered unless a done event was pushed; this needs no memory.
  void close(std::shared_ptr<Event> last);

 private:
  const size_t capacity_;
  std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<std::shared_ptr<const Event>> events_;
  uint64_t next_sequence_ = 1;
  bool closed_ = false;
  bool done_ = false;                  // a done event was pushed
  std::shared_ptr<const Event> last_;  // what close() was given, until it is delivered
};

}  // namespace inlaid::train

#endif  // INLAID_SDK_TRAIN_EVENT_H_

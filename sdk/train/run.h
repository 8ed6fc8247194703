// A run: training in the background on a thread of its own, watched by pulling events and steered by requests.
#ifndef INLAID_SDK_TRAIN_RUN_H_
#define INLAID_SDK_TRAIN_RUN_H_

#include <atomic>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "sdk/base/error.h"
#include "sdk/train/best.h"
#include "sdk/train/event.h"
#include "sdk/train/event_writer.h"
#include "sdk/train/samples.h"
#include "sdk/train/trainer.h"

namespace inlaid::train {

struct RunOptions {
  int64_t until = 0;          // stop after this many optimizer steps in all; 0 = all of the schedule
  int64_t eval_every = 0;     // 0 = only at the end
  bool eval_on_start = false;
  int64_t save_every = 0;     // 0 = only at the end
  int64_t save_total_limit = 0;
  int64_t logging_every = 1;
  double wall_time_limit = 0;         // seconds; 0 = none, see run.cc; the runtime's own limit holds as well
  std::string checkpoint_folder;      // "" = nothing is saved
  int64_t keep_best = 0;              // checkpoints of the best evaluations that are kept beside the latest
  int64_t patience = 0;               // stop after so many evaluations without a new best; 0 = never
  double threshold = 0;               // what a new best must be better by
  std::string output_folder;          // of the writers and the lock; "" = none
  std::shared_ptr<FileLock> lock;     // of the output folder, released before the last event is seen
  std::vector<std::string> writers;   // see event_writer.h
  SamplePrompts samples;              // answered before the first step and after the last one
  std::shared_ptr<const data::Dataset> eval_data;  // nullptr = no evaluation
  std::string resumed_state;          // state text of the checkpoint that the trainer was restored from
};

class Run {
 public:
  // Starts the thread. The trainer must not be used by anybody else until the run has ended.
  static std::shared_ptr<Run> start(std::shared_ptr<Trainer> trainer, RunOptions options);
  ~Run();  // the thread has ended by then: it holds a reference itself

  // See EventQueue::pop. Throws kOutOfRange after the last event.
  std::shared_ptr<const Event> next(int64_t timeout_ms);
  // "pause", "resume", "save", "eval", "stop". kInvalidArgument for another verb.
  void request(std::string_view verb);
  // Trainer::set before the next step. Throws as that does, at once; the answer is a change event.
  void set(const std::string& key, const std::string& json);
  // Ends the run as soon as possible in any phase; two atomic stores.
  void cancel() {
    cancelled_.store(true, std::memory_order_relaxed);
    interrupt_.store(true, std::memory_order_relaxed);
  }
  // Waits for the end; false on timeout. Rethrows the run's own error when it ended with one (kCancelled if cancelled).
  bool join(int64_t timeout_ms);
  bool ended() const { return ended_.load(); }

 private:
  Run(std::shared_ptr<Trainer> trainer, RunOptions options);
  void main();
  void train();
  void train_within_time();
  // Text of the last event: how the run ended.
  std::string end_text(const std::exception_ptr& failure) const;
  void emit(Event event);
  void state(const char* name);
  void evaluate();
  void evaluate_and_judge();  // also takes account of the result
  bool out_of_patience() const;
  void answer_samples();
  void save();
  // Serves requests; waits while paused. True when the run shall stop.
  bool serve_requests();
  void step();
  void change(const std::string& key, const std::string& json);

  std::shared_ptr<Trainer> trainer_;
  RunOptions options_;
  EventQueue events_;
  std::vector<std::unique_ptr<EventWriter>> writers_;
  // What kernels and files look at: somebody cancelled, or the time is up.
  std::atomic<bool> interrupt_{false};
  std::atomic<bool> cancelled_{false};
  std::atomic<bool> time_is_up_{false};
  std::atomic<bool> ended_{false};

  std::mutex mutex_;
  std::condition_variable changed_;
  bool pause_ = false, save_ = false, eval_ = false, stop_ = false;  // guarded by mutex_
  std::vector<std::pair<std::string, std::string>> changes_;         // guarded by mutex_: key and value
  config::Config config_;                                            // guarded by mutex_: with all changes asked for
  std::exception_ptr failure_;                                       // set before ended_

  // Only the run's thread touches these.
  int64_t tokens_ = 0, rows_ = 0, target_tokens_ = 0;
  int64_t first_step_ = 0;
  double busy_seconds_ = 0;  // spent in steps of this run
  double last_eval_loss_ = 0;
  BestEvaluations best_;
  std::string early_end_;    // how the run ended when it stopped early or ran out of time
  int64_t saved_step_ = -1;
  double started_ = 0;
  std::shared_ptr<Event> last_event_;  // what closes the queue when there is no memory to say more
};

}  // namespace inlaid::train

#endif  // INLAID_SDK_TRAIN_RUN_H_

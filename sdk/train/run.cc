#include "sdk/train/run.h"

#include <algorithm>
#include <chrono>
#include <sstream>
#include <system_error>
#include <utility>

#include "sdk/base/json.h"

namespace inlaid::train {
namespace {

constexpr size_t kQueuedEvents = 1024;
constexpr auto kPausePoll = std::chrono::milliseconds(20);  // cancel() is a bare store, so a pause looks for it

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double mean(double sum, int64_t count) { return sum / static_cast<double>(count); }

// Process-independent counters that a resumed run continues.
int64_t counter(const Json& state, const char* key) {
  const auto found = state.find(key);
  return found != state.end() && found->is_number_integer() ? found->get<int64_t>() : 0;
}

// An alarm: sets flags at a moment, unless it goes before.
class Alarm {
 public:
  // Throws kResourceExhausted if no thread can start.
  Alarm(double seconds, std::function<void()> ring) {
    try {
      thread_ = std::thread([this, seconds, ring = std::move(ring)] {
        std::unique_lock<std::mutex> lock(mutex_);
        const auto limit = std::chrono::duration<double>(std::min(seconds, kLongestAlarm));
        if (!changed_.wait_for(lock, limit, [this] { return off_; })) ring();
      });
    } catch (const std::system_error& error) {
      fail(Code::kResourceExhausted, "no thread could be started for the wall time limit: ", error.what());
    }
  }
  ~Alarm() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      off_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

 private:
  static constexpr double kLongestAlarm = 1e9;  // seconds: no overflow of the clock
  std::mutex mutex_;
  std::condition_variable changed_;
  bool off_ = false;
  std::thread thread_;
};

}  // namespace

Run::Run(std::shared_ptr<Trainer> trainer, RunOptions options)
    : trainer_(std::move(trainer)),
      options_(std::move(options)),
      events_(kQueuedEvents),
      config_(trainer_->config()),
      best_(std::max(options_.keep_best, int64_t{1}), options_.threshold),
      last_event_(std::make_shared<Event>()) {
  last_event_->kind = EventKind::done;
  last_event_->text = "failed";
}

Run::~Run() = default;

std::shared_ptr<Run> Run::start(std::shared_ptr<Trainer> trainer, RunOptions options) {
  std::shared_ptr<Run> run(new Run(std::move(trainer), std::move(options)));
  Runtime& runtime = *run->trainer_->model()->runtime();
  run->writers_ = open_writers(runtime.files, run->options_.output_folder, run->options_.writers);
  runtime.background.start([run] { run->main(); });
  return run;
}

std::shared_ptr<const Event> Run::next(int64_t timeout_ms) {
  bool ended = false;
  std::shared_ptr<const Event> event = events_.pop(timeout_ms, &ended);
  if (event == nullptr && ended) fail(Code::kOutOfRange, "the run has ended and all events were delivered");
  return event;
}

void Run::request(std::string_view verb) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (verb == "pause") {
    pause_ = true;
  } else if (verb == "resume") {
    pause_ = false;
  } else if (verb == "save") {
    save_ = true;
  } else if (verb == "eval") {
    eval_ = true;
  } else if (verb == "stop") {
    stop_ = true;
  } else {
    fail(Code::kInvalidArgument, "unknown request '", verb, "'; there are pause, resume, save, eval and stop");
  }
  changed_.notify_all();
}

void Run::set(const std::string& key, const std::string& json) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Trainer::change(&config_, key, json);
  changes_.emplace_back(key, json);
  changed_.notify_all();
}

bool Run::join(int64_t timeout_ms) {
  std::unique_lock<std::mutex> lock(mutex_);
  const auto over = [this] { return ended_.load(); };
  if (timeout_ms < 0) {
    changed_.wait(lock, over);
  } else if (!changed_.wait_for(lock, std::chrono::milliseconds(timeout_ms), over)) {
    return false;
  }
  if (failure_) std::rethrow_exception(failure_);
  return true;
}

// Whatever is thrown, out of memory included, the run ends with a last event and an error for join(): a thread that an
// exception leaves takes the process with it.
void Run::main() {
  std::exception_ptr failure;
  try {
    train_within_time();
  } catch (...) {
    failure = std::current_exception();
  }
  const auto attempt = [&](const auto& action) {
    try {
      action();
    } catch (...) {
      // The last events cannot be written: the run's own error matters more; without one, this becomes it.
      if (!failure) failure = std::current_exception();
    }
  };
  Event done;
  done.kind = EventKind::done;
  done.step = trainer_->steps_done();
  done.text = "failed";
  attempt([&] { done.text = end_text(failure); });
  attempt([&] {
    const bool plain = done.text == "done" || done.text == "stopped" || done.text == "cancelled";
    state(plain ? done.text.c_str() : early_end_.empty() ? "failed" : early_end_.starts_with("stopped: ") ? "stopped" : "done");
  });
  attempt([&] { emit(std::move(done)); });
  options_.lock.reset();
  last_event_->step = trainer_->steps_done();
  events_.close(last_event_);
  const std::lock_guard<std::mutex> lock(mutex_);
  failure_ = failure;
  ended_.store(true);
  changed_.notify_all();
}

std::string Run::end_text(const std::exception_ptr& failure) const {
  if (!failure) {
    const bool all = trainer_->steps_done() >= trainer_->total_steps().value_or(0);
    return !early_end_.empty() ? early_end_ : all ? "done" : "stopped";
  }
  try {
    std::rethrow_exception(failure);
  } catch (const Error& error) {
    return error.code() == Code::kCancelled ? "cancelled" : "failed: " + error.message();
  } catch (const std::bad_alloc&) {
    return "failed: out of memory";
  } catch (const std::exception& error) {
    return std::string("failed: ") + error.what();
  } catch (...) {
    return "failed: an exception that is none of the C++ standard library's";
  }
}

// Trains under the wall time limit. When the time is up, whatever goes on is interrupted as a cancellation interrupts it, between
// two kernel calls; a step that was cut off has changed nothing, and the state after the last whole step is saved.
void Run::train_within_time() {
  const double own = options_.wall_time_limit, host = trainer_->model()->runtime()->duties.wall_time_limit;
  const double limit = own > 0 && host > 0 ? std::min(own, host) : std::max(own, host);
  if (!(limit > 0)) return train();
  {
    const Alarm alarm(limit, [this] {
      time_is_up_.store(true);
      interrupt_.store(true);
    });
    try {
      return train();
    } catch (const Error& error) {
      if (error.code() != Code::kCancelled || !time_is_up_ || cancelled_) throw;
    }
  }
  interrupt_.store(false);
  if (cancelled_) interrupt_.store(true);  // cancelled just now: between the two stores above
  std::ostringstream text;
  text << "the wall time limit of " << limit << " s was reached";
  Event event;
  event.kind = EventKind::warning;
  event.step = trainer_->steps_done();
  event.text = text.str() + "; the job is saved and can be resumed";
  emit(std::move(event));
  state("stopping");
  if (saved_step_ != trainer_->steps_done()) save();
  early_end_ = "stopped: " + text.str();
}

void Run::train() {
  started_ = now();
  state("starting");
  if (!options_.resumed_state.empty()) {
    const Json state = parse_json(options_.resumed_state, "state of the checkpoint");
    tokens_ = counter(state, "num_tokens");
    target_tokens_ = counter(state, "num_target_tokens");
    rows_ = counter(state, "num_rows");
    if (state.contains("best_evaluations")) best_ = BestEvaluations::from_json(state["best_evaluations"], best_);
  }
  if (!trainer_->total_steps()) {
    fail(Code::kFailedPrecondition, "the run has no length: set train.max_steps or attach training data");
  }
  first_step_ = trainer_->steps_done();
  if (!options_.resumed_state.empty()) saved_step_ = trainer_->steps_done();
  const int64_t end = options_.until > 0 ? std::min(options_.until, *trainer_->total_steps()) : *trainer_->total_steps();
  if (trainer_->steps_done() == 0) {
    answer_samples();
    if (options_.eval_on_start && options_.eval_data != nullptr) evaluate();
  }
  state("running");
  int64_t evaluated = trainer_->steps_done() == 0 && options_.eval_on_start ? 0 : -1;
  bool stopped = false, early = out_of_patience();
  while (!early && trainer_->steps_done() < end) {
    stopped = serve_requests();
    if (stopped) break;
    step();
    const int64_t done = trainer_->steps_done();
    if (options_.eval_every > 0 && done % options_.eval_every == 0 && options_.eval_data != nullptr) {
      evaluate_and_judge();
      evaluated = done;
      early = out_of_patience();
    }
    if (options_.save_every > 0 && done % options_.save_every == 0) save();
  }
  if (stopped) state("stopping");
  if (!stopped && !early && options_.eval_data != nullptr && evaluated != trainer_->steps_done()) evaluate_and_judge();
  if (!stopped) answer_samples();
  if (saved_step_ != trainer_->steps_done()) save();
  if (early) early_end_ = best_.why_stopped();
}

bool Run::out_of_patience() const { return options_.patience > 0 && best_.since_best() >= options_.patience; }

void Run::evaluate_and_judge() {
  evaluate();
  const bool among_best = best_.add(trainer_->steps_done(), last_eval_loss_);
  if (options_.keep_best == 0 || options_.checkpoint_folder.empty()) return;
  if (among_best) save();
  std::vector<std::string> names;
  for (const BestEvaluations::Entry& entry : best_.entries()) names.push_back(checkpoint::checkpoint_name(entry.step));
  FileSystem& files = trainer_->model()->runtime()->files;
  checkpoint::record_best(files, options_.checkpoint_folder, names);
  checkpoint::prune(files, options_.checkpoint_folder, options_.save_total_limit);  // of those that were better before
}

void Run::answer_samples() {
  if (options_.samples.prompts.empty()) return;
  Generator generator(trainer_->model(), trainer_->adapter(), options_.samples.options);
  for (size_t i = 0; i < options_.samples.prompts.size(); ++i) {
    Event event;
    event.kind = EventKind::sample;
    event.step = trainer_->steps_done();
    event.prompt = options_.samples.prompts[i];
    event.text = answer(generator, options_.samples.ids[i], &interrupt_);
    emit(std::move(event));
  }
}

bool Run::serve_requests() {
  std::unique_lock<std::mutex> lock(mutex_);
  bool paused = false;
  for (;;) {
    if (interrupt_.load(std::memory_order_relaxed)) fail(Code::kCancelled, "cancelled");
    if (!changes_.empty()) {
      const auto changes = std::exchange(changes_, {});
      lock.unlock();
      for (const auto& [key, json] : changes) change(key, json);
      lock.lock();
      continue;
    }
    if (std::exchange(save_, false)) {
      lock.unlock();
      save();
      lock.lock();
      continue;
    }
    if (std::exchange(eval_, false)) {
      lock.unlock();
      evaluate();
      lock.lock();
      continue;
    }
    if (stop_ || !pause_) break;
    if (!paused) {
      paused = true;
      lock.unlock();
      state("paused");
      lock.lock();
      continue;
    }
    changed_.wait_for(lock, kPausePoll);
  }
  const bool stop = stop_;
  lock.unlock();
  if (paused && !stop) state("running");
  return stop;
}

void Run::change(const std::string& key, const std::string& json) {
  trainer_->set(key, json);
  Event event;
  event.kind = EventKind::change;
  event.step = trainer_->steps_done();
  event.text = key + " = " + json;
  emit(std::move(event));
}

void Run::step() {
  const double begin = now();
  const StepResult result = trainer_->step(&interrupt_);
  const double seconds = now() - begin;
  busy_seconds_ += seconds;
  tokens_ += result.sums.tokens;
  target_tokens_ += result.sums.target_tokens;
  rows_ += result.sums.documents;
  const int64_t total = *trainer_->total_steps();
  const int64_t steps_here = result.step - first_step_;
  if (result.step % options_.logging_every != 0 && result.step != total) return;

  Event event;
  event.kind = EventKind::step;
  event.step = result.step;
  const MemoryAccount::Usage usage = trainer_->model()->runtime()->memory->usage();
  event.metrics = {
      {"loss", mean(result.sums.loss, result.sums.target_tokens)},
      {"mean_token_accuracy", mean(static_cast<double>(result.sums.correct), result.sums.target_tokens)},
      {"grad_norm", result.grad_norm},
      {"learning_rate", result.learning_rate},
      {"epoch", result.epoch},
      {"tokens", static_cast<double>(result.sums.tokens)},
      {"target_tokens", static_cast<double>(result.sums.target_tokens)},
      {"micro_batches", static_cast<double>(result.micro_batches)},
      {"num_tokens", static_cast<double>(tokens_)},
      {"num_target_tokens", static_cast<double>(target_tokens_)},
      {"num_rows", static_cast<double>(rows_)},
      {"step_seconds", seconds},
      {"tokens_per_second", static_cast<double>(result.sums.tokens) / seconds},
      {"total_steps", static_cast<double>(total)},
      {"seconds_left", busy_seconds_ / static_cast<double>(steps_here) * static_cast<double>(total - result.step)},
      {"memory_bytes", static_cast<double>(usage.current_total)},
      {"memory_peak_bytes", static_cast<double>(usage.peak_total)},
  };
  for (int i = 0; i < kCategories; ++i) {
    event.metrics.emplace_back(std::string("memory_peak_") + category_name(static_cast<Category>(i)),
                               static_cast<double>(usage.peak[static_cast<size_t>(i)]));
  }
  emit(std::move(event));
}

void Run::evaluate() {
  if (options_.eval_data == nullptr) {
    Event event;
    event.kind = EventKind::warning;
    event.step = trainer_->steps_done();
    event.text = "an evaluation was requested but there is no evaluation data (data.eval or data.eval_fraction)";
    emit(std::move(event));
    return;
  }
  const double begin = now();
  const LossSums sums = trainer_->evaluate(*options_.eval_data, &interrupt_);
  Event event;
  event.kind = EventKind::eval;
  event.step = trainer_->steps_done();
  last_eval_loss_ = mean(sums.loss, sums.target_tokens);
  event.metrics = {{"eval_loss", last_eval_loss_},
                   {"eval_mean_token_accuracy", mean(static_cast<double>(sums.correct), sums.target_tokens)},
                   {"eval_target_tokens", static_cast<double>(sums.target_tokens)},
                   {"eval_rows", static_cast<double>(sums.documents)},
                   {"eval_seconds", now() - begin},
                   {"epoch", trainer_->epochs_done()}};
  emit(std::move(event));
}

void Run::save() {
  const int64_t step = trainer_->steps_done();
  Event event;
  event.step = step;
  if (options_.checkpoint_folder.empty()) {
    event.kind = EventKind::warning;
    event.text = "nothing was saved: the run has no folder for checkpoints (output_dir)";
    saved_step_ = step;
    emit(std::move(event));
    return;
  }
  state("saving");
  FileSystem& files = trainer_->model()->runtime()->files;
  files.make_folders(options_.checkpoint_folder);
  const std::string name = checkpoint::checkpoint_name(step);
  const std::string folder = join_path(options_.checkpoint_folder, name);
  const double begin = now();
  const bool there = files.exists(folder);
  // Left by an earlier run from which this one has branched off: restored from an older checkpoint.
  if (there && saved_step_ != step) checkpoint::remove(files, options_.checkpoint_folder, name);
  if (!there || saved_step_ != step) {
    Json counters;
    counters["num_tokens"] = tokens_;
    counters["num_target_tokens"] = target_tokens_;
    counters["num_rows"] = rows_;
    counters["best_evaluations"] = best_.to_json();
    trainer_->save(folder, to_text(counters), &interrupt_);
  }
  checkpoint::record_latest(files, options_.checkpoint_folder, name);
  checkpoint::prune(files, options_.checkpoint_folder, options_.save_total_limit);
  saved_step_ = step;
  event.kind = EventKind::checkpoint;
  event.text = folder;
  event.metrics = {{"save_seconds", now() - begin}};
  emit(std::move(event));
  state("running");
}

void Run::state(const char* name) {
  Event event;
  event.kind = EventKind::state;
  event.step = trainer_->steps_done();
  event.text = name;
  event.metrics = {{"total_steps", static_cast<double>(trainer_->total_steps().value_or(0))}};
  emit(std::move(event));
}

// Whoever sees an event finds it in the files, and with the last one all files closed.
void Run::emit(Event event) {
  const std::shared_ptr<const Event> numbered = events_.number(std::move(event));
  std::exception_ptr failure;
  try {
    for (const auto& writer : writers_) {
      writer->write(*numbered);
      if (numbered->kind == EventKind::done) writer->close();
    }
  } catch (...) {
    writers_.clear();  // the run fails by this error, but whoever pulls events still gets the last ones
    failure = std::current_exception();
  }
  if (numbered->kind == EventKind::done) options_.lock.reset();
  events_.push(numbered);
  if (failure) std::rethrow_exception(failure);
}

}  // namespace inlaid::train

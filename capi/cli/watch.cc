#include "watch.h"

#include <csignal>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string_view>

namespace inlaid_cli {
namespace {

// A program's own handlers may have state of the process; the library has neither.
volatile std::sig_atomic_t counted = 0;
const char *volatile consolation = nullptr;

void count_interrupt(int) { counted = counted + 1; }

// Only what a signal handler may do: write and leave at once.
void leave(int) {
  const char *const parts[] = {"\ninlaid: interrupted; ", consolation, "\n"};
  for (const char *part : parts) {
    if (write(STDERR_FILENO, part, std::strlen(part)) < 0) break;
  }
  _exit(kInterrupted);
}

void handle_with(void (*handler)(int), struct sigaction *interrupt, struct sigaction *terminate) {
  struct sigaction action;
  std::memset(&action, 0, sizeof action);
  action.sa_handler = handler;
  sigaction(SIGINT, &action, interrupt);
  sigaction(SIGTERM, &action, terminate);
}

std::string duration(double seconds) {
  const auto s = static_cast<long>(std::max(0.0, std::round(seconds)));
  char text[32];
  if (s >= 3600) {
    std::snprintf(text, sizeof text, "%ld:%02ld:%02ld", s / 3600, s / 60 % 60, s % 60);
  } else {
    std::snprintf(text, sizeof text, "%ld:%02ld", s / 60, s % 60);
  }
  return text;
}

class Screen {
 public:
  Screen(bool json, int64_t total_rows) : json_(json), bar_(!json && isatty(STDOUT_FILENO) != 0), rows_(total_rows) {}

  void show(const inlaid_event *event) {
    if (json_) {
      std::printf("%s\n", inlaid_event_json(event));
      std::fflush(stdout);
      return;
    }
    switch (inlaid_event_kind(event)) {
      case INLAID_EVENT_STEP: step(event); break;
      case INLAID_EVENT_EVAL:
        line("evaluation after step " + std::to_string(inlaid_event_step(event)) + ": loss " +
             number("%.4f", inlaid_event_metric(event, "eval_loss")) + ", accuracy " +
             number("%.1f %%", 100 * inlaid_event_metric(event, "eval_mean_token_accuracy")) + " of " +
             number("%.0f", inlaid_event_metric(event, "eval_target_tokens")) + " tokens in " +
             number("%.0f", inlaid_event_metric(event, "eval_rows")) + " rows");
        break;
      case INLAID_EVENT_CHECKPOINT: line(std::string("saved ") + inlaid_event_text(event)); break;
      case INLAID_EVENT_SAMPLE: sample(event); break;
      case INLAID_EVENT_CHANGE: line(std::string("changed: ") + inlaid_event_text(event)); break;
      case INLAID_EVENT_WARNING: line(std::string("warning: ") + inlaid_event_text(event)); break;
      case INLAID_EVENT_DONE:
        end_bar();
        if (std::string_view(inlaid_event_text(event)).starts_with("stopped early")) line(inlaid_event_text(event));
        if (rows_ > 0 && seen_ > 0) rows();
        break;
      default: break;
    }
  }

  void note(const std::string &text) {
    if (!json_) line(text);
  }

 private:
  // Beyond the first epoch rows come again.
  void rows() {
    if (seen_ <= rows_) {
      line("rows seen " + std::to_string(seen_) + " / rows there " + std::to_string(rows_));
    } else {
      line(std::to_string(seen_) + " rows trained on, " + number("%.2f", static_cast<double>(seen_) / static_cast<double>(rows_)) +
           " times the " + std::to_string(rows_) + " rows there");
    }
  }

  static std::string number(const char *format, double value) {
    char text[64];
    std::snprintf(text, sizeof text, format, value);
    return text;
  }

  void step(const inlaid_event *event) {
    const auto done = static_cast<int64_t>(inlaid_event_step(event));
    const auto total = static_cast<int64_t>(inlaid_event_metric(event, "total_steps"));
    seen_ = static_cast<int64_t>(inlaid_event_metric(event, "num_rows"));
    const std::string text = "step " + std::to_string(done) + "/" + std::to_string(total) + "  loss " +
                             number("%.4f", inlaid_event_metric(event, "loss")) + "  " +
                             number("%.0f tok/s", inlaid_event_metric(event, "tokens_per_second")) + "  " +
                             duration(inlaid_event_metric(event, "seconds_left")) + " left  " +
                             number("%.2f GiB", inlaid_event_metric(event, "memory_peak_bytes") / 1073741824.0);
    if (!bar_) {
      // Plain output keeps about twenty lines a run.
      if (total <= 20 || done % std::max<int64_t>(1, total / 20) == 0 || done == total) line(text);
      return;
    }
    constexpr int kWidth = 24;
    const int filled = total > 0 ? static_cast<int>(kWidth * done / total) : 0;
    std::string bar(static_cast<size_t>(filled), '#');
    bar.resize(kWidth, '.');
    std::printf("\r\033[K[%s] %s", bar.c_str(), text.c_str());
    std::fflush(stdout);
    open_ = true;
  }

  void sample(const inlaid_event *event) {
    const nlohmann::json json = nlohmann::json::parse(inlaid_event_json(event));
    line("> " + json.value("prompt", "") + "\n" + inlaid_event_text(event));
  }

  void end_bar() {
    if (!open_) return;
    std::printf("\n");
    open_ = false;
  }

  void line(const std::string &text) {
    end_bar();
    std::printf("%s\n", text.c_str());
    std::fflush(stdout);
  }

  bool json_, bar_;
  int64_t rows_, seen_ = 0;
  bool open_ = false;
};

}  // namespace

Interrupts::Interrupts(const char *text) {
  consolation = text;
  handle_with(leave, &interrupt_, &terminate_);
}

Interrupts::~Interrupts() {
  sigaction(SIGINT, &interrupt_, nullptr);
  sigaction(SIGTERM, &terminate_, nullptr);
}

void Interrupts::only_count() { handle_with(count_interrupt, nullptr, nullptr); }

int Interrupts::count() const { return static_cast<int>(counted); }

int watch(inlaid_run *run, Interrupts &interrupts, const std::string &output_dir, int64_t total_rows, bool json) {
  interrupts.only_count();
  Screen screen(json, total_rows);
  int served = 0;
  std::string end;
  for (;;) {
    if (interrupts.count() > served) {
      served = interrupts.count();
      if (served == 1) {
        screen.note("stopping after this step and saving; press Ctrl-C again to end at once without saving");
        check(inlaid_run_request(run, "stop"));
      } else {
        screen.note("ending without saving; inlaid resume " + output_dir + " goes on from the last checkpoint or the beginning");
        inlaid_run_cancel(run);
      }
    }
    inlaid_event *raw = nullptr;
    check(inlaid_run_next(run, 100, &raw));
    const Event event(raw);
    if (!event) continue;
    screen.show(event.get());
    if (inlaid_event_kind(event.get()) == INLAID_EVENT_DONE) {
      end = inlaid_event_text(event.get());
      break;
    }
  }
  check(inlaid_run_join(run, -1));
  const bool out_of_time = end.rfind("stopped: ", 0) == 0;
  if (served == 0 && !out_of_time) return kDone;
  if (out_of_time || end == "stopped") screen.note("to go on: inlaid resume " + output_dir);
  return kInterrupted;
}

}  // namespace inlaid_cli

// Watching a run from the terminal: progress, Ctrl-C, the end.
#ifndef INLAID_CAPI_CLI_WATCH_H_
#define INLAID_CAPI_CLI_WATCH_H_

#include <csignal>
#include <string>

#include "api.h"

namespace inlaid_cli {

// What Ctrl-C and SIGTERM do while a job is opened and trained. At first they say why nothing is lost and end the process with
// kInterrupted; once watch() has taken over they only count. The destructor restores what was before.
class Interrupts {
 public:
  explicit Interrupts(const char *consolation);  // a literal
  ~Interrupts();
  Interrupts(const Interrupts &) = delete;
  Interrupts &operator=(const Interrupts &) = delete;

  void only_count();
  int count() const;

 private:
  struct sigaction interrupt_, terminate_;
};

// Pulls events until the run has ended. On a terminal a progress bar, elsewhere plain lines; with json one event a line.
// The first Ctrl-C (or SIGTERM) asks the run to stop and save, the second cancels it. Returns the exit code.
int watch(inlaid_run *run, Interrupts &interrupts, const std::string &output_dir, int64_t total_rows, bool json);

}  // namespace inlaid_cli

#endif  // INLAID_CAPI_CLI_WATCH_H_

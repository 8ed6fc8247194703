// Watching a run from the terminal: progress, Ctrl-C, the end.
#ifndef INLAID_CAPI_CLI_WATCH_H_
#define INLAID_CAPI_CLI_WATCH_H_

#include <string>

#include "api.h"

namespace inlaid_cli {

// Pulls events until the run has ended. On a terminal a progress bar, elsewhere plain lines; with json one event a line.
// The first Ctrl-C (or SIGTERM) asks the run to stop and save, the second cancels it. Returns the exit code.
int watch(inlaid_run *run, const std::string &output_dir, int64_t total_rows, bool json);

}  // namespace inlaid_cli

#endif  // INLAID_CAPI_CLI_WATCH_H_

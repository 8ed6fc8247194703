// The C API with owners and exceptions, for this program only: it is written against inlaid.h like any other host.
#ifndef INLAID_CAPI_CLI_API_H_
#define INLAID_CAPI_CLI_API_H_

#include <inlaid.h>

#include <memory>
#include <stdexcept>
#include <string>

namespace inlaid_cli {

// Exit codes of the program; see README.
enum Exit : int { kDone = 0, kFailed = 1, kUsage = 2, kData = 3, kResources = 4, kDamaged = 5, kInterrupted = 130 };

struct Failure : std::runtime_error {
  Failure(int exit_code, const std::string &message, const std::string &name = "")
      : std::runtime_error(message), exit(exit_code), code(name) {}
  int exit;
  std::string code;  // name of the engine's error code; empty for an error of the command line
};

// Writes the error to standard error: a line of text, or with json a line {"kind": "error", "code", "message", "exit"}.
void print_failure(const Failure &failure, bool json);

// Throws Failure for an error and releases it.
void check(inlaid_error *error);

template <typename T, void (*Release)(T *)>
struct Releaser {
  void operator()(T *handle) const { Release(handle); }
};
template <typename T, void (*Release)(T *)>
using Owned = std::unique_ptr<T, Releaser<T, Release>>;

using Runtime = Owned<inlaid_runtime, inlaid_runtime_release>;
using Config = Owned<inlaid_config, inlaid_config_release>;
using Buffer = Owned<inlaid_buffer, inlaid_buffer_release>;
using Model = Owned<inlaid_model, inlaid_model_release>;
using Adapter = Owned<inlaid_adapter, inlaid_adapter_release>;
using Tokenizer = Owned<inlaid_tokenizer, inlaid_tokenizer_release>;
using Dataset = Owned<inlaid_dataset, inlaid_dataset_release>;
using Job = Owned<inlaid_job, inlaid_job_release>;
using Run = Owned<inlaid_run, inlaid_run_release>;
using Event = Owned<inlaid_event, inlaid_event_release>;
using Generator = Owned<inlaid_generator, inlaid_generator_release>;

// Calls a function whose last parameter is the out pointer, and owns the result.
template <typename O, typename F, typename... Args>
O make(F function, Args... args) {
  typename O::pointer out = nullptr;
  check(function(args..., &out));
  return O(out);
}

// The text of a buffer made by such a function.
template <typename F, typename... Args>
std::string text(F function, Args... args) {
  const Buffer buffer = make<Buffer>(function, args...);
  return {static_cast<const char *>(inlaid_buffer_data(buffer.get())),
          static_cast<size_t>(inlaid_buffer_size(buffer.get()))};
}

struct RuntimeOptions {
  int threads = 0;                        // 0 = all processors
  std::string memory_limit, disk_limit;   // see parse_bytes; "" = none
  double wall_time_limit = 0;             // seconds; 0 = none
  bool zero_memory = false;
};
Runtime make_runtime(const RuntimeOptions &wanted);
// "4GiB", "500MB", "123" to bytes; Failure(kUsage) otherwise.
int64_t parse_bytes(const std::string &text);

struct Opened {
  Model model;
  Adapter adapter;  // may be empty
};
// `best`: the best checkpoint of an output folder instead of the latest.
Opened open_result(inlaid_runtime *runtime, const std::string &path, const std::string &weights_dtype, bool best);

}  // namespace inlaid_cli

#endif  // INLAID_CAPI_CLI_API_H_

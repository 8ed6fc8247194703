// Every function of inlaid.h that returns an error, one by one: each kind of exception that can come out of the engine
// becomes an error value, and a forked child is refused. The exceptions come out of operator new (new_faults.h), inside the
// shipped library.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <regex>
#include <set>

#include "entries.h"
#include "new_faults.h"
#include "tests/capi/support.h"

namespace faults {
namespace {

using capi_test::json;
using capi_test::make;
using new_faults::Kind;

TEST(Entries, TheTableIsComplete) {
  const std::string header = capi_test::read_file(capi_test::source_path("capi/include/inlaid.h"));
  const std::regex declaration(R"(INLAID_MUSTUSE inlaid_error \*\s*(inlaid_\w+)\()");
  std::set<std::string> declared, listed;
  for (std::sregex_iterator found(header.begin(), header.end(), declaration), end; found != end; ++found) declared.insert((*found)[1]);
  for (const Entry& entry : entries()) listed.insert(entry.name);
  EXPECT_EQ(declared, listed);
  EXPECT_GT(declared.size(), 50u);
}

struct Expectation {
  Kind kind;
  inlaid_code code;
  const char* message;
};
constexpr Expectation kExpectations[] = {
    {Kind::kBadAlloc, INLAID_RESOURCE_EXHAUSTED, "out of memory"},
    {Kind::kRuntimeError, INLAID_INTERNAL, "an injected std::runtime_error"},
    {Kind::kEngineError, INLAID_ABORTED, "an injected inlaid::Error"},
    {Kind::kNoException, INLAID_UNKNOWN, "none of the C++ standard library's"},
};

// Each allocation of each call fails once, with NULL for all handles: functions allocate at least for their own error. The
// answer is the call's own error, "out of memory", or the exception as an error; never a crash. Three functions allocate
// their result directly, so that each kind must come through them; the guard itself is tested in guard_test.cc, and that
// every function is inside of it in tests/boundary/test_guard.py.
TEST(Entries, EachKindOfExceptionBecomesAnError) {
  const Handles none;
  const std::set<std::string> direct = {"inlaid_runtime_create", "inlaid_cancel_create", "inlaid_batch_create"};
  for (const Entry& entry : entries()) {
    inlaid_error* own = entry.call(none);
    const inlaid_code own_code = inlaid_error_code(own);
    inlaid_error_release(own);
    for (const Expectation& expected : kExpectations) {
      int translated = 0;
      for (int64_t n = 0;; ++n) {
        ASSERT_LT(n, 10000) << entry.name;
        new_faults::arm(n, expected.kind);
        inlaid_error* error = entry.call(none);
        new_faults::disarm();
        const inlaid_code code = inlaid_error_code(error);
        const std::string message = inlaid_error_message(error);
        inlaid_error_release(error);
        if (code == expected.code) {
          EXPECT_NE(message.find(expected.message), std::string::npos) << entry.name << ": " << message;
          ++translated;
        } else {
          EXPECT_TRUE(code == own_code || code == INLAID_RESOURCE_EXHAUSTED) << entry.name << ": " << code << ", " << message;
        }
        if (!new_faults::fired()) break;
      }
      if (direct.count(entry.name) != 0) {
        EXPECT_GT(translated, 0) << entry.name << " never gave code " << expected.code;
      }
    }
  }
}

// Nothing is left behind by those calls, whatever was thrown where.
TEST(Entries, ExceptionsLeakNothing) {
  const Handles none;
  const auto all = [&](Kind kind) {
    for (const Entry& entry : entries()) {
      for (int64_t n = 0; n < 12; ++n) {
        new_faults::arm(n, kind);
        inlaid_error_release(entry.call(none));
        new_faults::disarm();
      }
    }
  };
  for (const Expectation& expected : kExpectations) all(expected.kind);  // what is made once per process is made
  for (const Expectation& expected : kExpectations) {
    const int64_t before = new_faults::live();
    all(expected.kind);
    EXPECT_EQ(new_faults::live(), before) << expected.message;
  }
}

// One live handle of each type, for a child that inherits them.
class Live {
 public:
  Live() {
    json job = folder_.job("");
    job["train"]["max_steps"] = 1;
    config_ = capi_test::make_config(job);
    runtime_ = capi_test::make_runtime(2);
    model_ = make<capi_test::Model>(inlaid_model_create, runtime_.get(), config_.get(), nullptr);
    adapter_ = make<capi_test::Adapter>(inlaid_adapter_create, model_.get(), config_.get());
    dataset_ = make<capi_test::Dataset>(inlaid_dataset_open, model_.get(), config_.get(), "train");
    tokenizer_ = make<capi_test::Tokenizer>(inlaid_model_tokenizer, model_.get());
    decoder_ = make<capi_test::Decoder>(inlaid_decoder_create, tokenizer_.get(), 0);
    batch_ = make<capi_test::Batch>(inlaid_batch_create);
    job_ = make<capi_test::Job>(inlaid_job_create, runtime_.get(), config_.get());
    trainer_ = make<capi_test::Trainer>(inlaid_job_trainer, job_.get());
    const int32_t ids[] = {5, 6, 7};
    capi_test::ok(inlaid_batch_add_int32(batch_.get(), "tokens", ids, sizeof ids));
    capi_test::ok(inlaid_batch_add_int32(batch_.get(), "targets", ids, sizeof ids));
    pass_ = make<capi_test::Pass>(inlaid_forward, model_.get(), adapter_.get(), batch_.get(), nullptr, nullptr);
    run_ = make<capi_test::RunHandle>(inlaid_job_start, job_.get());
    generator_ = make<capi_test::Generator>(inlaid_generator_create, model_.get(), adapter_.get(), nullptr);
    handles = {runtime_.get(), config_.get(), tokenizer_.get(), decoder_.get(), model_.get(),   adapter_.get(), dataset_.get(),
               batch_.get(),   trainer_.get(), pass_.get(),      run_.get(),   job_.get(),     generator_.get(), folder_ / ""};
  }
  void finish() { EXPECT_EQ(capi_test::watch(run_.get()).end, "done"); }
  Handles handles;

 private:
  capi_test::Folder folder_;
  capi_test::Runtime runtime_;
  capi_test::Config config_;
  capi_test::Model model_;
  capi_test::Adapter adapter_;
  capi_test::Dataset dataset_;
  capi_test::Tokenizer tokenizer_;
  capi_test::Decoder decoder_;
  capi_test::Batch batch_;
  capi_test::Job job_;
  capi_test::Trainer trainer_;
  capi_test::Pass pass_;
  capi_test::RunHandle run_;
  capi_test::Generator generator_;
};

// A fork while threads of the library are at work: in the child every call on an inherited handle says so at once. A call
// that hangs there is ended by the alarm.
TEST(Entries, AForkedChildIsRefused) {
  Live live;
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(20);
    std::string wrong;
    for (const Entry& entry : entries()) {
      if (!entry.takes_handle) continue;
      inlaid_error* error = entry.call(live.handles);
      const bool right = inlaid_error_code(error) == INLAID_FAILED_PRECONDITION &&
                         std::string(inlaid_error_message(error)).find("fork") != std::string::npos;
      if (!right) wrong += std::string(entry.name) + ": " + inlaid_error_message(error) + "\n";
      inlaid_error_release(error);
    }
    if (write(ends[1], wrong.data(), wrong.size()) < 0) _exit(2);
    _exit(wrong.empty() ? 0 : 1);
  }
  close(ends[1]);
  std::string wrong;
  char bytes[4096];
  for (ssize_t n; (n = read(ends[0], bytes, sizeof bytes)) > 0;) wrong.append(bytes, static_cast<size_t>(n));
  close(ends[0]);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "ended by signal " << WTERMSIG(status) << (WTERMSIG(status) == SIGALRM ? ": a call hangs" : "");
  EXPECT_EQ(wrong, "");
  live.finish();  // the parent notices nothing
}

}  // namespace
}  // namespace faults

// Fault loops over a whole training script, in the manner of SQLite's: the n-th allocation of an arena fails, or the n-th
// operation on a file, for n = 0, 1, 2, ... until the script gets through. After every fault: an error with a right code and a
// message of one line, or the full right result where the engine can do without what failed; nothing leaked, no temporary
// file left; and the same script, run again on the same disk in the same process, ends with the bits of an undisturbed run.
//
// tests/run takes samples of n (the small ones all), tests/run --full all of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <thread>

#include "script.h"
#include "sdk/base/json.h"

namespace faults {
namespace {

using inlaid::Code;

bool full() { return std::getenv("INLAID_TEST_FULL") != nullptr; }

// Numbers below `total` to try: all, or the first ones and then about `samples` that are spread evenly, the last included.
std::vector<int64_t> numbers(int64_t total, int64_t samples) {
  const int64_t stride = std::max<int64_t>(1, total / samples), first = std::min<int64_t>(total, stride == 1 ? total : 10);
  std::vector<int64_t> chosen;
  for (int64_t n = 0; n < first; ++n) chosen.push_back(n);
  for (int64_t n = first; n < total; n += stride) chosen.push_back(n);
  if (chosen.back() != total - 1) chosen.push_back(total - 1);
  return chosen;
}

bool soon(const std::function<bool()>& condition) {
  for (int i = 0; i < 10000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

// The undisturbed run that all others are compared with; the second of two, so that what is made once per process is there.
const Outcome& expected() {
  static const Outcome outcome = [] {
    Rig warm_up;
    run_script(warm_up);
    Rig rig;
    return run_script(rig);
  }();
  return outcome;
}

void expect_right_steps(const Outcome& outcome, const std::string& what) {
  for (const auto& [step, line] : outcome.steps) {
    const auto found = expected().steps.find(step);
    ASSERT_NE(found, expected().steps.end()) << what;
    EXPECT_EQ(line, found->second) << what << ", step " << step;
  }
}

void expect_nothing_left(Rig& rig, const Outcome& outcome, const std::string& what) {
  EXPECT_EQ(outcome.memory_left, 0u) << what << ": a memory category is not back at zero";
  EXPECT_TRUE(soon([&] { return rig.allocator.live_blocks() == 0; })) << what << ": " << rig.allocator.live_bytes() << " bytes leak";
  EXPECT_EQ(rig.allocator.wrong_releases(), 0u) << what;
}

// What holds after any fault. `codes`: those that the error may have. True if the script got through all the same.
bool expect_clean(Rig& rig, const Outcome& outcome, std::initializer_list<inlaid_code> codes, const std::string& what) {
  expect_nothing_left(rig, outcome, what);
  expect_right_steps(outcome, what);
  if (outcome.code == INLAID_OK) {
    EXPECT_EQ(outcome.bits, expected().bits) << what << ": success with a wrong result";
    return true;
  }
  const bool known = std::find(codes.begin(), codes.end(), outcome.code) != codes.end();
  EXPECT_TRUE(known) << what << ": code " << outcome.code << ": " << outcome.message;
  EXPECT_EQ(outcome.message.find('\n'), std::string::npos) << what << ": " << outcome.message;
  return false;
}

void expect_recovery(Rig& rig, const std::string& what) {
  const Outcome again = run_script(rig);
  EXPECT_EQ(again.code, INLAID_OK) << what << ", then without a fault: " << again.message;
  EXPECT_EQ(again.bits, expected().bits) << what << ", then without a fault";
  expect_right_steps(again, what + ", then without a fault");
  expect_nothing_left(rig, again, what + ", then without a fault");
  EXPECT_EQ(rig.temporary(), std::vector<std::string>()) << what << ", then without a fault";
}

TEST(FaultLoop, TheScriptIsDeterministic) {
  ASSERT_EQ(expected().code, INLAID_OK) << expected().message;
  EXPECT_EQ(expected().steps.size(), 4u);
  Rig rig;
  const Outcome first = run_script(rig);
  EXPECT_EQ(first.bits, expected().bits);
  EXPECT_EQ(first.steps, expected().steps);
  EXPECT_EQ(rig.temporary(), std::vector<std::string>());
  expect_recovery(rig, "a complete script");
}

TEST(FaultLoop, TheNthArenaIsRefused) {
  ASSERT_EQ(expected().code, INLAID_OK) << expected().message;
  Rig undisturbed;
  run_script(undisturbed);
  const int64_t total = undisturbed.allocator.requests();
  ASSERT_GT(total, 30);
  for (int64_t n : numbers(total, full() ? total : 10)) {
    const std::string what = "arena " + std::to_string(n) + " of " + std::to_string(total);
    Rig rig;
    rig.allocator.fail_at(n);
    const Outcome outcome = run_script(rig);
    EXPECT_FALSE(expect_clean(rig, outcome, {INLAID_RESOURCE_EXHAUSTED}, what)) << what << ": nobody noticed";
    EXPECT_NE(outcome.message.find("bytes of"), std::string::npos) << what << ": " << outcome.message;
    EXPECT_EQ(rig.temporary(), std::vector<std::string>()) << what;
    rig.allocator.fail_at(-1);
    expect_recovery(rig, what);
    if (testing::Test::HasFailure()) return;
  }
}

// What the engine can do without: the token cache, and tidying up, which the next save does again.
bool may_be_missed(const std::string& operation) {
  return operation.find("/cache") != std::string::npos;
}

TEST(FaultLoop, TheNthFileOperationFails) {
  ASSERT_EQ(expected().code, INLAID_OK) << expected().message;
  Rig undisturbed;
  run_script(undisturbed);
  const int64_t total = undisturbed.files.operations();
  ASSERT_GT(total, 200);
  for (int64_t n : numbers(total, full() ? total : 30)) {
    Rig rig;
    const Code code = n % 2 == 0 ? Code::kUnavailable : Code::kResourceExhausted;
    rig.files.fail_at(n, code);
    const Outcome outcome = run_script(rig);
    const std::string operation = rig.files.history().at(static_cast<size_t>(n));
    const std::string what = "file operation " + std::to_string(n) + " of " + std::to_string(total) + " (" + operation + ")";
    // INLAID_UNAVAILABLE also where trouble is content of an answer, see Script::look().
    if (expect_clean(rig, outcome, {static_cast<inlaid_code>(code), INLAID_UNAVAILABLE}, what)) {
      EXPECT_TRUE(may_be_missed(operation)) << what << ": nobody noticed";
    } else {
      EXPECT_NE(outcome.message.find("fault injected"), std::string::npos) << what << ": " << outcome.message;
    }
    if (!operation.starts_with("remove_all")) {
      EXPECT_EQ(rig.temporary(), std::vector<std::string>()) << what;
    }
    rig.files.reset();
    expect_recovery(rig, what);
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace faults

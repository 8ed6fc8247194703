// A save is cut at every operation it makes, by power loss, by an error of the disk, and by SIGKILL.
#include <gtest/gtest.h>
#include <signal.h>    // for kill
#include <sys/wait.h>  // for waitpid
#include <unistd.h>    // for fork, usleep, mkdtemp

#include <random>

#include "sdk/base/testing/fault_file_system.h"
#include "sdk/base/testing/memory_file_system.h"
#include "sdk/checkpoint/checkpoint.h"
#include "sdk/checkpoint/testing/error_of.h"
#include "sdk/checkpoint/testing/sample.h"

namespace inlaid::checkpoint {
namespace {

using inlaid::testing::all_crash_options;
using inlaid::testing::CrashOptions;
using inlaid::testing::describe;
using inlaid::testing::FaultFileSystem;
using inlaid::testing::MemoryFileSystem;
using testing::difference_from_sample;
using testing::error_of;
using testing::Sample;

void save_step(FileSystem& fs, const std::string& run, int64_t step) {
  const Sample sample(step);
  save(fs, join_path(run, checkpoint_name(step)), sample.info(), sample.records(), nullptr, 300);
}

// What a trainer does every so many steps.
void save_record_prune(FileSystem& fs, const std::string& run, int64_t step) {
  save_step(fs, run, step);
  record_latest(fs, run, checkpoint_name(step));
  prune(fs, run, 1);
}

bool has_leftovers(FileSystem& fs, const std::string& run) {
  for (const std::string& name : fs.list(run)) {
    if (name.ends_with(".tmp")) return true;
  }
  return false;
}

// The step of the latest checkpoint, which must be whole and exactly what was saved.
int64_t checked_latest(FileSystem& fs, const std::string& run) {
  const std::string latest = latest_checkpoint(fs, run);
  if (latest.empty()) return -1;
  const int64_t step = Reader::open(fs, latest)->info().step;
  EXPECT_EQ(base_name(latest), checkpoint_name(step));
  EXPECT_EQ(difference_from_sample(fs, latest, step), "");
  EXPECT_EQ(to_text(verify(fs, latest)["problems"]), "[]");
  return step;
}

void start(MemoryFileSystem& disk) {
  disk.make_folders("run");
  save_record_prune(disk, "run", 1);
  disk.sync_everything();
}

TEST(CrashTest, PowerLossAtEveryOperation) {
  for (const CrashOptions& options : all_crash_options()) {
    int64_t total = 0, new_seen = 0;
    for (int64_t n = 0; n == 0 || n <= total; ++n) {
      MemoryFileSystem disk;
      start(disk);
      FaultFileSystem fs(disk);
      if (n == 0) {  // learn the number of operations
        save_record_prune(fs, "run", 2);
        total = fs.operations();
        ASSERT_GT(total, 20);
        disk.crash(options);
        EXPECT_EQ(checked_latest(disk, "run"), 2) << describe(options) << ": a finished save is not durable";
        continue;
      }
      fs.cut_power_at(n - 1);
      EXPECT_THROW(save_record_prune(fs, "run", 2), Error);
      disk.crash(options);
      const int64_t step = checked_latest(disk, "run");
      EXPECT_TRUE(step == 1 || step == 2) << step << " after " << describe(options) << " at " << fs.history().back();
      new_seen += step == 2;
      // A final name stands for a whole checkpoint, or a resumed job could not save at that step again.
      EXPECT_EQ(disk.exists("run/step-000002"), step == 2) << describe(options) << " at " << fs.history().back();
      save_record_prune(disk, "run", 3);
      EXPECT_EQ(checked_latest(disk, "run"), 3);
      EXPECT_EQ(disk.list("run"), (std::vector<std::string>{"index.json", "step-000003"}));
    }
    EXPECT_GT(new_seen, 0);
    EXPECT_LT(new_seen, total);
  }
}

// By itself, without the index that is written after it.
TEST(CrashTest, FinishedSaveIsDurable) {
  for (const CrashOptions& options : all_crash_options()) {
    MemoryFileSystem disk;
    start(disk);
    save_step(disk, "run", 2);
    disk.crash(options);
    EXPECT_EQ(checked_latest(disk, "run"), 2) << describe(options);
  }
}

TEST(CrashTest, FaultAtEveryOperation) {
  int64_t total = 0, failed = 0;
  for (int64_t n = 0; n == 0 || n <= total; ++n) {
    MemoryFileSystem disk;
    start(disk);
    FaultFileSystem fs(disk);
    if (n > 0) fs.fail_at(n - 1, Code::kResourceExhausted);
    const Error error = error_of([&] { save_step(fs, "run", 2); });
    if (n == 0) {
      total = fs.operations();
      continue;
    }
    ASSERT_TRUE(error.code() == Code::kResourceExhausted || error.code() == Code::kOk) << error.what();
    if (error.code() == Code::kOk) {
      EXPECT_EQ(checked_latest(disk, "run"), 2);
      continue;
    }
    ++failed;
    EXPECT_EQ(checked_latest(disk, "run"), 1) << fs.history().back();
    EXPECT_EQ(disk.list("run"), (std::vector<std::string>{"index.json", "step-000001"})) << fs.history().back();
    fs.reset();
    save_record_prune(fs, "run", 2);
    EXPECT_EQ(checked_latest(disk, "run"), 2);
  }
  EXPECT_GT(failed, total - 5);
}

TEST(CrashTest, DiskThatStaysBrokenLeavesTheOldAndTheNextPruneCleans) {
  int64_t total = 0;
  for (int64_t n = 0; n == 0 || n <= total; ++n) {
    MemoryFileSystem disk;
    start(disk);
    FaultFileSystem fs(disk);
    if (n > 0) fs.cut_power_at(n - 1);
    const Error error = error_of([&] { save_step(fs, "run", 2); });
    if (n == 0) total = fs.operations();
    if (n > 0) {
      EXPECT_EQ(error.code(), Code::kAborted);
    }
    const int64_t step = checked_latest(disk, "run");
    EXPECT_TRUE(step == 1 || step == 2);
    prune(disk, "run", 0);
    EXPECT_FALSE(has_leftovers(disk, "run"));
    EXPECT_EQ(checked_latest(disk, "run"), step);
  }
}

TEST(CrashTest, PowerLossWhilePruning) {
  for (const CrashOptions& options : all_crash_options()) {
    for (int64_t n = 0;; ++n) {
      MemoryFileSystem disk;
      disk.make_folders("run");
      for (int64_t step = 1; step <= 4; ++step) save_step(disk, "run", step);
      record_latest(disk, "run", checkpoint_name(4));
      record_best(disk, "run", {checkpoint_name(2)});
      disk.sync_everything();
      FaultFileSystem fs(disk);
      fs.cut_power_at(n);
      const Error error = error_of([&] { prune(fs, "run", 1); });
      disk.crash(options);
      EXPECT_EQ(checked_latest(disk, "run"), 4);
      EXPECT_EQ(best_checkpoint(disk, "run"), "run/step-000002");
      for (const std::string& name : disk.list("run")) {
        if (name.starts_with("step-") && !name.ends_with(".tmp")) {
          EXPECT_TRUE(verify(disk, join_path("run", name))["ok"].get<bool>()) << name << " " << describe(options);
        }
      }
      prune(disk, "run", 1);
      EXPECT_EQ(disk.list("run"), (std::vector<std::string>{"index.json", "step-000002", "step-000004"}));
      if (error.code() == Code::kOk) break;
    }
  }
}

// A removal deletes file by file, and a disk may keep the deletions and lose the rename before them. MemoryFileSystem deletes
// a folder at once, so the order of the operations is what there is to check.
TEST(CrashTest, PruneDeletesOnlyBehindADurableRename) {
  MemoryFileSystem disk;
  disk.make_folders("run");
  for (int64_t step = 1; step <= 3; ++step) save_step(disk, "run", step);
  FaultFileSystem fs(disk);
  prune(fs, "run", 1);
  const std::vector<std::string> want = {"rename run/step-000001 -> run/step-000001.tmp",
                                         "rename run/step-000002 -> run/step-000002.tmp", "sync_folder run",
                                         "remove_all run/step-000001.tmp", "remove_all run/step-000002.tmp"};
  EXPECT_EQ(fs.history(), want);
}

TEST(CrashTest, KillAtRandomMoments) {
  std::string folder = ::testing::TempDir() + "inlaid_kill_XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  FileSystem& fs = posix_file_system();
  save_record_prune(fs, folder, 1);
  std::mt19937 random(5);
  int64_t step = 1;
  for (int round = 0; round < 16; ++round) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      try {
        for (int64_t next = step + 1;; ++next) save_record_prune(fs, folder, next);
      } catch (...) {
        _exit(1);
      }
    }
    usleep(std::uniform_int_distribution<useconds_t>(500, 100'000)(random));
    kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status)) << "the child failed by itself";
    const int64_t latest = checked_latest(fs, folder);
    EXPECT_GE(latest, step);
    step = latest;
  }
  save_record_prune(fs, folder, step + 1);
  EXPECT_EQ(fs.list(folder), (std::vector<std::string>{"index.json", checkpoint_name(step + 1)}));
  fs.remove_all(folder);
}

}  // namespace
}  // namespace inlaid::checkpoint

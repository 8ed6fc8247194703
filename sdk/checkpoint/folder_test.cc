#include <gtest/gtest.h>

#include "sdk/base/testing/memory_file_system.h"
#include "sdk/checkpoint/checkpoint.h"
#include "sdk/checkpoint/format.h"
#include "sdk/checkpoint/manifest_file.h"
#include "sdk/checkpoint/testing/error_of.h"
#include "sdk/checkpoint/testing/sample.h"

namespace inlaid::checkpoint {
namespace {

using inlaid::testing::MemoryFileSystem;
using testing::error_of;
using testing::Sample;

class FolderTest : public ::testing::Test {
 protected:
  FolderTest() { fs_.make_folders("run"); }

  // Creation times are set, so that no test depends on the clock.
  void save_step(int64_t step, int64_t created) {
    const Sample sample(step);
    const std::string folder = join_path("run", checkpoint_name(step));
    save(fs_, folder, sample.info(), sample.records());
    v1::Manifest manifest = parse_manifest(read_text(fs_, folder + "/manifest.pb"), "manifest");
    manifest.set_created_unix_ms(created);
    write_atomically(fs_, folder + "/manifest.pb", seal_manifest(manifest));
  }
  std::string latest() { return latest_checkpoint(fs_, "run"); }
  std::vector<std::string> list() { return fs_.list("run"); }

  MemoryFileSystem fs_;
};

TEST_F(FolderTest, Names) {
  EXPECT_EQ(checkpoint_name(0), "step-000000");
  EXPECT_EQ(checkpoint_name(123), "step-000123");
  EXPECT_EQ(checkpoint_name(12345678), "step-12345678");
}

TEST_F(FolderTest, NothingThere) {
  EXPECT_EQ(latest(), "");
  EXPECT_EQ(latest_checkpoint(fs_, "nowhere"), "");
  EXPECT_EQ(best_checkpoint(fs_, "run"), "");
  EXPECT_NO_THROW(prune(fs_, "nowhere", 1));
  EXPECT_EQ(error_of([&] { record_latest(fs_, "run", "step-000001"); }).code(), Code::kNotFound);
  EXPECT_EQ(error_of([&] { record_latest(fs_, "run", "../run"); }).code(), Code::kInvalidArgument);
}

TEST_F(FolderTest, IndexSaysLatestAndBest) {
  save_step(5, 1000);
  save_step(10, 2000);
  record_best(fs_, "run", {"step-000005"});
  record_latest(fs_, "run", "step-000010");
  EXPECT_EQ(read_text(fs_, "run/index.json"), "{\"best\":[\"step-000005\"],\"latest\":\"step-000010\"}\n");
  EXPECT_EQ(latest(), "run/step-000010");
  EXPECT_EQ(best_checkpoint(fs_, "run"), "run/step-000005");
  record_best(fs_, "run", {"step-000007", "step-000010", "step-000005"});  // the first one was never saved
  EXPECT_EQ(best_checkpoint(fs_, "run"), "run/step-000010");
  fs_.remove_all("run/step-000010/manifest.pb");
  EXPECT_EQ(best_checkpoint(fs_, "run"), "run/step-000005");
  EXPECT_EQ(error_of([&] { record_best(fs_, "run", {"../run"}); }).code(), Code::kInvalidArgument);
}

TEST_F(FolderTest, RemoveOne) {
  save_step(5, 1000);
  save_step(10, 2000);
  remove(fs_, "run", "step-000005");
  EXPECT_EQ(list(), std::vector<std::string>{"step-000010"});
}

TEST_F(FolderTest, MissingOrDamagedIndex) {
  save_step(5, 1000);
  save_step(10, 2000);
  EXPECT_EQ(latest(), "run/step-000010");
  for (const char* text : {"", "{", "[]", "7", "{\"latest\": 7}", "{\"latest\": \"../etc\"}", "\xff\xfe",
                           "{\"latest\": \"step-000099\"}", "{\"latest\": \"step-10\"}"}) {
    write_atomically(fs_, "run/index.json", text);
    EXPECT_EQ(latest(), "run/step-000010") << text;
  }
  record_latest(fs_, "run", "step-000005");
  EXPECT_EQ(read_text(fs_, "run/index.json"), "{\"latest\":\"step-000005\"}\n");
}

// Power was lost between the rename of a checkpoint and the writing of the index.
TEST_F(FolderTest, IndexOneBehind) {
  save_step(5, 1000);
  record_latest(fs_, "run", "step-000005");
  save_step(10, 2000);
  EXPECT_EQ(latest(), "run/step-000010");
}

// A job was resumed from step 5 and has saved step 7: steps 10 and 15 belong to a past that was given up.
TEST_F(FolderTest, RestartedFromAnOlderOne) {
  save_step(5, 1000);
  save_step(10, 2000);
  save_step(15, 3000);
  save_step(7, 4000);
  record_latest(fs_, "run", "step-000007");
  EXPECT_EQ(latest(), "run/step-000007");
  fs_.remove_all("run/index.json");
  EXPECT_EQ(latest(), "run/step-000007");
}

TEST_F(FolderTest, DamagedCheckpointIsPassedOver) {
  save_step(5, 1000);
  save_step(10, 2000);
  record_latest(fs_, "run", "step-000010");
  fs_.truncate("run/step-000010/state-00000-00000.safetensors", 100);
  EXPECT_EQ(latest(), "run/step-000005");
  fs_.remove_all("run/step-000005/manifest.pb");
  EXPECT_EQ(latest(), "");
}

// Silently going back in time would be worse than an error.
TEST_F(FolderTest, CheckpointOfANewerReleaseIsAnError) {
  save_step(5, 1000);
  save_step(10, 2000);
  v1::Manifest manifest = parse_manifest(read_text(fs_, "run/step-000010/manifest.pb"), "manifest");
  manifest.set_min_reader_version(kReaderVersion + 1);
  write_atomically(fs_, "run/step-000010/manifest.pb", seal_manifest(manifest));
  EXPECT_EQ(error_of([&] { latest(); }).code(), Code::kFailedPrecondition);
}

TEST_F(FolderTest, PruneKeepsLatestBestAndTheNewest) {
  for (int64_t step = 1; step <= 6; ++step) save_step(step, 1000 * step);
  record_latest(fs_, "run", "step-000006");
  record_best(fs_, "run", {"step-000002"});
  prune(fs_, "run", 0);
  EXPECT_EQ(list().size(), 7u);
  prune(fs_, "run", 3);  // and the best one
  EXPECT_EQ(list(), (std::vector<std::string>{"index.json", "step-000002", "step-000004", "step-000005", "step-000006"}));
  prune(fs_, "run", 1);
  EXPECT_EQ(list(), (std::vector<std::string>{"index.json", "step-000002", "step-000006"}));
  EXPECT_EQ(error_of([&] { prune(fs_, "run", -1); }).code(), Code::kInvalidArgument);
}

TEST_F(FolderTest, PruneRemovesDamagedOnesAndAnAbandonedPastFirst) {
  save_step(5, 1000);
  save_step(10, 2000);
  save_step(15, 3000);
  save_step(7, 4000);
  save_step(8, 5000);
  record_latest(fs_, "run", "step-000008");
  fs_.truncate("run/step-000007/index-00000.pb", 10);
  prune(fs_, "run", 3);
  EXPECT_EQ(list(), (std::vector<std::string>{"index.json", "step-000008", "step-000010", "step-000015"}));
  prune(fs_, "run", 2);
  EXPECT_EQ(list(), (std::vector<std::string>{"index.json", "step-000008", "step-000015"}));
}

TEST_F(FolderTest, PruneRemovesLeftoversAndNothingElse) {
  save_step(1, 1000);
  fs_.make_folders("run/step-000002.tmp/inner");
  fs_.make_folders("run/mine.tmp");
  fs_.make_folders("run/step-notes");
  write_atomically(fs_, "run/step-000003", "a file, no folder");
  fs_.create("run/index.json.tmp");
  prune(fs_, "run", 1);
  EXPECT_EQ(list(), (std::vector<std::string>{"mine.tmp", "step-000001", "step-000003", "step-notes"}));
}

}  // namespace
}  // namespace inlaid::checkpoint

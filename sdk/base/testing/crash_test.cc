// The disks of the crash tests: what they lose, and that they catch the classic mistakes of writing a file
// safely.
#include <gtest/gtest.h>

#include <functional>

#include "sdk/base/error.h"
#include "sdk/base/testing/fault_file_system.h"
#include "sdk/base/testing/memory_file_system.h"

namespace inlaid::testing {
namespace {

using Bytes = CrashOptions::Bytes;
using Entries = CrashOptions::Entries;

void put(FileSystem& fs, const std::string& path, std::string_view text, bool sync) {
  auto file = fs.create(path);
  file->write(std::as_bytes(std::span(text.data(), text.size())));
  if (sync) file->sync();
  file->close();
}

TEST(MemoryFileSystem, UnsyncedBytesAreLostTornOrKept) {
  for (Bytes bytes : {Bytes::kLost, Bytes::kTorn, Bytes::kKept}) {
    MemoryFileSystem fs;
    put(fs, "f", "0123", true);
    fs.sync_folder(".");
    auto file = fs.append("f");
    file->write(std::as_bytes(std::span("456789", 6)));
    fs.crash({bytes, Entries::kLost});
    const char* expected[] = {"0123", "0123456", "0123456789"};
    EXPECT_EQ(read_text(fs, "f"), expected[static_cast<int>(bytes)]);
    EXPECT_THROW(file->write({}), Error) << "the handle died with the crash";
  }
}

TEST(MemoryFileSystem, RewrittenFileFallsBackOrIsTorn) {
  for (Bytes bytes : {Bytes::kLost, Bytes::kTorn}) {
    MemoryFileSystem fs;
    put(fs, "f", "old text", true);
    fs.sync_folder(".");
    put(fs, "f", "NEW!", false);
    fs.crash({bytes, Entries::kLost});
    EXPECT_EQ(read_text(fs, "f"), bytes == Bytes::kLost ? "old text" : "NE");
  }
}

TEST(MemoryFileSystem, EntriesNeedASyncOfTheirOwnFolder) {
  MemoryFileSystem fs;
  fs.make_folders("a/b");
  put(fs, "a/b/f", "x", true);
  fs.sync_folder("a/b");
  fs.crash();
  EXPECT_TRUE(fs.list(".").empty()) << "nobody synced the folders above";

  fs.make_folders("a");
  fs.sync_folder(".");
  put(fs, "a/f", "x", true);
  put(fs, "a/g", "y", true);
  fs.sync_folder("a");
  fs.rename("a/f", "a/h");
  fs.remove_all("a/g");
  fs.crash();
  EXPECT_EQ(fs.list("a"), (std::vector<std::string>{"f", "g"})) << "rename and removal were not synced";
  fs.rename("a/f", "a/h");
  fs.sync_folder("a");
  fs.crash();
  EXPECT_EQ(fs.list("a"), (std::vector<std::string>{"g", "h"}));
  fs.remove_all("a/g");
  fs.crash({Bytes::kLost, Entries::kKept});
  EXPECT_EQ(fs.list("a"), std::vector<std::string>{"h"});
}

TEST(MemoryFileSystem, Damage) {
  MemoryFileSystem fs;
  put(fs, "f", "abc", true);
  fs.sync_everything();
  fs.flip_bit("f", 1, 0);
  fs.crash();
  EXPECT_EQ(read_text(fs, "f"), "acc");
  fs.truncate("f", 1);
  EXPECT_EQ(read_text(fs, "f"), "a");
}

TEST(FaultFileSystem, CountsAndFailsTheNthOperationOnly) {
  MemoryFileSystem disk;
  FaultFileSystem fs(disk);
  write_atomically(fs, "f", "text");
  EXPECT_EQ(fs.history(), (std::vector<std::string>{"create f.tmp", "write f.tmp", "sync f.tmp",
                                                    "close f.tmp", "rename f.tmp -> f", "sync_folder ."}));
  const int64_t total = fs.operations();
  for (int64_t n = 0; n < total; ++n) {
    fs.reset();
    fs.fail_at(n, Code::kResourceExhausted);
    try {
      write_atomically(fs, "f", "other");
      FAIL() << n;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::kResourceExhausted);
    }
    EXPECT_NO_THROW(write_atomically(fs, "f", "again")) << "one failure only";
  }
}

TEST(FaultFileSystem, FailingWritePassesHalfOn) {
  MemoryFileSystem disk;
  FaultFileSystem fs(disk);
  fs.fail_at(1, Code::kResourceExhausted);
  EXPECT_THROW(put(fs, "f", "012345", true), Error);
  EXPECT_EQ(read_text(disk, "f"), "012");
}

TEST(FaultFileSystem, NothingWorksAfterAPowerCut) {
  MemoryFileSystem disk;
  FaultFileSystem fs(disk);
  put(fs, "f", "x", true);
  auto reader = fs.open("f");
  fs.cut_power_at(fs.operations());
  EXPECT_THROW(fs.create("g"), Error);
  EXPECT_FALSE(disk.exists("g"));
  std::array<std::byte, 1> out;
  EXPECT_THROW(reader->read_at(0, out), Error);
  EXPECT_THROW(fs.open("f"), Error);
  EXPECT_THROW(fs.exists("f"), Error);
  EXPECT_THROW(fs.list("."), Error);
  EXPECT_THROW(fs.remove_all("f"), Error);
  fs.reset();
  EXPECT_TRUE(fs.exists("f"));
}

// Cuts `write` at every operation and lets every kind of crash follow. True if the file was the old or the
// new one, whole, each time, and the new one after a write that returned.
bool survives(const std::function<void(FileSystem&)>& write) {
  bool whole = true;
  for (const CrashOptions& options : all_crash_options()) {
    for (int64_t n = 0, total = 1; n <= total; ++n) {
      MemoryFileSystem disk;
      put(disk, "f", "old", true);
      disk.sync_everything();
      FaultFileSystem fs(disk);
      fs.cut_power_at(n);
      bool returned = true;
      try {
        write(fs);
      } catch (const Error&) {
        returned = false;
      }
      total = returned ? n : n + 1;
      disk.crash(options);
      const std::string text = disk.exists("f") ? read_text(disk, "f") : "missing";
      if (text != "new" && (returned || text != "old")) whole = false;
    }
  }
  return whole;
}

TEST(Crash, AtomicWriteSurvivesEveryCutAndTheClassicMistakesDoNot) {
  EXPECT_TRUE(survives([](FileSystem& fs) { write_atomically(fs, "f", "new"); }));
  EXPECT_FALSE(survives([](FileSystem& fs) { put(fs, "f", "new", true); })) << "written in place";
  EXPECT_FALSE(survives([](FileSystem& fs) {
    put(fs, "t", "new", false);
    fs.rename("t", "f");
    fs.sync_folder(".");
  })) << "file not synced before the rename";
  EXPECT_FALSE(survives([](FileSystem& fs) {
    put(fs, "t", "new", true);
    fs.rename("t", "f");
  })) << "folder not synced after the rename";
}

}  // namespace
}  // namespace inlaid::testing

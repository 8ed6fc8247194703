// The same expectations for the operating system's files and for the file system in memory that crash tests
// stand on.
#include "sdk/base/file_system.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <thread>

#include "sdk/base/error.h"
#include "sdk/base/testing/fault_file_system.h"
#include "sdk/base/testing/memory_file_system.h"

namespace inlaid {
namespace {

class Files : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (GetParam()) {
      std::string name = (std::filesystem::temp_directory_path() / "inlaid_fs_XXXXXX").string();
      ASSERT_NE(::mkdtemp(name.data()), nullptr);
      folder_ = name;
    } else {
      folder_ = "/some/folder";
      memory_.make_folders(folder_);
    }
  }
  void TearDown() override {
    if (GetParam()) std::filesystem::remove_all(folder_);
  }

  FileSystem& fs() { return GetParam() ? posix_file_system() : memory_; }
  std::string path(std::string_view name) const { return join_path(folder_, name); }
  void put(const std::string& name, std::string_view text) {
    auto file = fs().create(path(name));
    file->write(std::as_bytes(std::span(text.data(), text.size())));
    file->close();
  }
  std::string get(const std::string& name) { return read_text(fs(), path(name)); }

  // The code and message of the error that `call` must throw.
  template <typename Call>
  static Error error_of(const Call& call) {
    try {
      call();
    } catch (const Error& error) {
      return error;
    }
    return Error(Code::kOk, "no error");
  }

  testing::MemoryFileSystem memory_;
  std::string folder_;
};

INSTANTIATE_TEST_SUITE_P(Both, Files, ::testing::Values(true, false),
                         [](const auto& test) { return test.param ? "Posix" : "Memory"; });

TEST_P(Files, CreateAppendReadTruncate) {
  put("a", "hello");
  auto file = fs().append(path("a"));
  const std::string more = " world";
  file->write(std::as_bytes(std::span(more.data(), more.size())));
  file->sync();
  file->close();
  file->close();
  EXPECT_EQ(get("a"), "hello world");
  EXPECT_THROW(file->write({}), Error);
  put("a", "x");
  EXPECT_EQ(get("a"), "x");
  fs().append(path("new"))->close();
  EXPECT_EQ(get("new"), "");
}

TEST_P(Files, PositionedReads) {
  put("a", "0123456789");
  auto file = fs().open(path("a"));
  EXPECT_EQ(file->size(), 10u);
  EXPECT_EQ(file->path(), path("a"));
  std::array<std::byte, 4> out;
  file->read_at(6, out);
  EXPECT_EQ(static_cast<char>(out[3]), '9');
  file->read_at(10, {});
  for (uint64_t offset : {uint64_t{7}, uint64_t{11}, UINT64_MAX - 1}) {
    const Error error = error_of([&] { file->read_at(offset, out); });
    EXPECT_EQ(error.code(), Code::kDataLoss);
    EXPECT_NE(error.message().find(path("a")), std::string::npos);
  }
  put("a", "012");  // truncated by somebody else while it is open
  EXPECT_EQ(error_of([&] { file->read_at(0, out); }).code(), Code::kDataLoss);
}

TEST_P(Files, ErrorsCarryCodeAndPath) {
  put("file", "x");
  struct Case {
    Code code;
    std::function<void()> call;
  };
  for (const Case& c : std::vector<Case>{
           {Code::kNotFound, [&] { fs().open(path("none")); }},
           {Code::kNotFound, [&] { fs().open(path("file/below")); }},
           {Code::kNotFound, [&] { fs().create(path("none/file")); }},
           {Code::kNotFound, [&] { fs().list(path("none")); }},
           {Code::kNotFound, [&] { fs().rename(path("none"), path("other")); }},
           {Code::kNotFound, [&] { fs().sync_folder(path("none")); }},
           {Code::kInvalidArgument, [&] { fs().open(folder_); }},
           {Code::kAlreadyExists, [&] { fs().make_folders(path("file")); }},
           {Code::kAlreadyExists, [&] { fs().make_folders(path("file/below")); }},
       }) {
    const Error error = error_of(c.call);
    EXPECT_EQ(error.code(), c.code) << error.message();
    EXPECT_NE(error.message().find(folder_), std::string::npos) << error.message();
  }
}

TEST_P(Files, FoldersListRenameRemove) {
  fs().make_folders(path("x/y/z"));
  fs().make_folders(path("x/y/z"));
  EXPECT_TRUE(fs().is_folder(path("x/y")));
  put("x/b", "1");
  put("x/a", "2");
  EXPECT_EQ(fs().list(path("x")), (std::vector<std::string>{"a", "b", "y"}));
  EXPECT_FALSE(fs().is_folder(path("x/a")));
  EXPECT_TRUE(fs().exists(path("x/a")));
  EXPECT_FALSE(fs().exists(path("x/a/b")));

  fs().rename(path("x/a"), path("x/b"));  // replaces a file
  EXPECT_EQ(get("x/b"), "2");
  EXPECT_FALSE(fs().exists(path("x/a")));
  fs().make_folders(path("empty"));
  fs().rename(path("x"), path("empty"));  // replaces an empty folder
  EXPECT_EQ(get("empty/b"), "2");
  fs().make_folders(path("full"));
  put("full/f", "");
  EXPECT_EQ(error_of([&] { fs().rename(path("empty"), path("full")); }).code(), Code::kAlreadyExists);
  EXPECT_NE(error_of([&] { fs().rename(path("empty"), path("empty/y/inside")); }).code(), Code::kOk);
  fs().sync_folder(folder_);

  fs().remove_all(path("empty"));
  fs().remove_all(path("empty"));
  fs().remove_all(path("full/f"));
  EXPECT_EQ(fs().list(folder_), std::vector<std::string>{"full"});
}

TEST_P(Files, WholeFileHelpers) {
  write_atomically(fs(), path("a"), "first");
  write_atomically(fs(), path("a"), std::string("sec\0nd", 6));
  EXPECT_EQ(get("a"), std::string("sec\0nd", 6));
  EXPECT_EQ(fs().list(folder_), std::vector<std::string>{"a"}) << "no temporary file stays";
  EXPECT_EQ(error_of([&] { read_text(fs(), path("a"), 5); }).code(), Code::kInvalidArgument);
  EXPECT_EQ(read_text(fs(), path("a"), 6).size(), 6u);
}

// Whichever operation of a write fails, the file is as before or new, and no temporary file stays.
TEST(WriteAtomically, FaultAtEveryOperation) {
  testing::MemoryFileSystem disk;
  testing::FaultFileSystem fs(disk);
  disk.make_folders("/d");
  write_atomically(fs, "/d/a", "old");
  fs.reset();
  write_atomically(fs, "/d/a", "old");
  const int64_t operations = fs.operations();
  for (int64_t n = 0; n < operations; ++n) {
    fs.reset();
    fs.fail_at(n, Code::kResourceExhausted);
    EXPECT_THROW(write_atomically(fs, "/d/a", "new"), Error) << n;
    const bool renamed = n == operations - 1;  // the folder's sync is the last operation
    EXPECT_EQ(read_text(disk, "/d/a"), renamed ? "new" : "old") << n;
    EXPECT_EQ(disk.list("/d"), std::vector<std::string>{"a"}) << n;
  }
}

TEST_P(Files, Locks) {
  EXPECT_FALSE(fs().is_locked(path("lock"))) << "no such file";
  std::unique_ptr<FileLock> lock = fs().lock(path("lock"));
  ASSERT_NE(lock, nullptr);
  EXPECT_TRUE(fs().is_locked(path("lock")));
  EXPECT_EQ(fs().lock(path("lock")), nullptr);
  EXPECT_TRUE(fs().is_locked(path("lock"))) << "asking and failing releases nothing";
  EXPECT_NE(fs().lock(path("other")), nullptr);
  lock.reset();
  EXPECT_FALSE(fs().is_locked(path("lock")));
  EXPECT_NE(fs().lock(path("lock")), nullptr);
  EXPECT_EQ(error_of([&] { fs().lock(path("nowhere/lock")); }).code(), Code::kNotFound);
}

TEST_P(Files, ReadsFromSeveralThreads) {
  std::string text;
  for (int i = 0; i < 4096; ++i) text += static_cast<char>(i * 13);
  put("a", text);
  auto file = fs().open(path("a"));
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (size_t i = t; i < 4096; i += 4) {
        std::array<std::byte, 1> out;
        file->read_at(i, out);
        EXPECT_EQ(static_cast<char>(out[0]), text[i]);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(PosixFiles, NamedPipeIsRefusedWithoutWaiting) {
  const std::string name =
      (std::filesystem::temp_directory_path() / ("inlaid_pipe_" + std::to_string(::getpid()))).string();
  ASSERT_EQ(::mkfifo(name.c_str(), 0600), 0);
  EXPECT_THROW(posix_file_system().open(name), Error);
  ::unlink(name.c_str());
}

TEST(PosixFiles, FullDiskIsResourceExhausted) {
  if (!posix_file_system().exists("/dev/full")) GTEST_SKIP() << "this system has no /dev/full";
  const std::string text(1 << 16, 'x');
  auto file = posix_file_system().append("/dev/full");
  try {
    file->write(std::as_bytes(std::span(text.data(), text.size())));
    FAIL() << "written to a full disk";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kResourceExhausted);
    EXPECT_NE(error.message().find("/dev/full"), std::string::npos);
  }
}

TEST(PosixFiles, RemovalDoesNotFollowSymbolicLinks) {
  std::string name = (std::filesystem::temp_directory_path() / "inlaid_link_XXXXXX").string();
  ASSERT_NE(::mkdtemp(name.data()), nullptr);
  FileSystem& fs = posix_file_system();
  fs.make_folders(name + "/kept");
  fs.create(name + "/kept/file")->close();
  fs.make_folders(name + "/gone");
  ASSERT_EQ(::symlink((name + "/kept").c_str(), (name + "/gone/link").c_str()), 0);
  fs.remove_all(name + "/gone");
  EXPECT_TRUE(fs.exists(name + "/kept/file"));
  fs.remove_all(name);
}

TEST(Paths, JoinParentBase) {
  EXPECT_EQ(join_path("a", "b"), "a/b");
  EXPECT_EQ(join_path("a/", "b"), "a/b");
  EXPECT_EQ(join_path("a", "/b"), "/b");
  EXPECT_EQ(join_path("", "b"), "b");
  EXPECT_EQ(join_path("a", ""), "a");
  EXPECT_EQ(join_path("/", "b"), "/b");
  EXPECT_EQ(parent_path("a/b"), "a");
  EXPECT_EQ(parent_path("a/b/"), "a");
  EXPECT_EQ(parent_path("b"), ".");
  EXPECT_EQ(parent_path("/b"), "/");
  EXPECT_EQ(parent_path("/"), "/");
  EXPECT_EQ(base_name("a/b"), "b");
  EXPECT_EQ(base_name("a/b/"), "b");
  EXPECT_EQ(base_name("b"), "b");
  EXPECT_EQ(base_name("/"), "/");
}

}  // namespace
}  // namespace inlaid

// A file system that fails on demand, around another one. It numbers the operations that change something,
// from 0 in the order they are called; a test first runs a scenario without faults to learn operations(),
// then once per number:
//
//   for (int64_t n = 0; n < total; ++n) {
//     MemoryFileSystem disk;  FaultFileSystem fs(disk);
//     fs.cut_power_at(n);
//     EXPECT_THROW(save(fs), Error);
//     disk.crash(options);
//     EXPECT_TRUE(old_or_new_is_whole(disk));
//   }
#ifndef INLAID_SDK_BASE_TESTING_FAULT_FILE_SYSTEM_H_
#define INLAID_SDK_BASE_TESTING_FAULT_FILE_SYSTEM_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sdk/base/error.h"
#include "sdk/base/file_system.h"

namespace inlaid::testing {

// Counted: create, append, write, sync, close, rename, sync_folder, make_folders, remove_all; with Counted::kEverything
// also the rest, which is otherwise only dead after a power cut: open, read_at, exists, is_folder, list, lock, is_locked. A
// write that fails passes half of its bytes on first, as a full disk does; every other failing operation has no effect.
// Thread-safe.
class FaultFileSystem : public FileSystem {
 public:
  enum class Counted { kChanges, kEverything };
  explicit FaultFileSystem(FileSystem& base, Counted counted = Counted::kChanges);
  ~FaultFileSystem() override;

  // Operation `n` throws `code`; those before and after it work.
  void fail_at(int64_t n, Code code);
  // Operation `n` and everything after it throws kAborted.
  void cut_power_at(int64_t n);
  // No more faults; counting starts again at 0.
  void reset();

  int64_t operations() const;
  // One line per operation, "rename a -> b": for the message of a test that failed at operation n.
  std::vector<std::string> history() const;

  std::unique_ptr<ReadableFile> open(const std::string& path) override;
  std::unique_ptr<WritableFile> create(const std::string& path) override;
  std::unique_ptr<WritableFile> append(const std::string& path) override;
  void rename(const std::string& from, const std::string& to) override;
  void sync_folder(const std::string& folder) override;
  void make_folders(const std::string& path) override;
  bool exists(const std::string& path) override;
  bool is_folder(const std::string& path) override;
  std::vector<std::string> list(const std::string& folder) override;
  void remove_all(const std::string& path) override;
  std::unique_ptr<FileLock> lock(const std::string& path) override;
  bool is_locked(const std::string& path) override;

  struct State;

 private:
  FileSystem& base_;
  std::shared_ptr<State> state_;
};

}  // namespace inlaid::testing

#endif  // INLAID_SDK_BASE_TESTING_FAULT_FILE_SYSTEM_H_

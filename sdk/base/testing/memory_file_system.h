// A file system in memory that can lose power. It keeps what is visible and what is durable apart, by the
// rules that POSIX promises and no more:
//   - bytes of a file are durable after WritableFile::sync() of that file;
//   - the entries of a folder (creations, renames, removals in it) are durable after sync_folder() of that
//   folder, for that
//     folder alone: neither its parents nor the bytes of its files.
// crash() makes the durable state the visible one. A real disk may have written more than it promised, so a
// crash test runs over every CrashOptions: code that is safe only when nothing, or only when everything, of
// the rest survives is not safe.
#ifndef INLAID_SDK_BASE_TESTING_MEMORY_FILE_SYSTEM_H_
#define INLAID_SDK_BASE_TESTING_MEMORY_FILE_SYSTEM_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sdk/base/file_system.h"

namespace inlaid::testing {

// What survives a crash beyond what was synced.
struct CrashOptions {
  enum class Bytes {
    kLost,  // files fall back to their synced bytes
    kTorn,  // half of the unsynced bytes arrived
    kKept,
  };
  enum class Entries {
    kLost,  // unsynced creations, renames and removals did not happen
    kKept,  // they did: a renamed file whose bytes were never synced shows up empty or torn
  };
  Bytes bytes = Bytes::kLost;
  Entries entries = Entries::kLost;
};

// All combinations.
std::vector<CrashOptions> all_crash_options();

// "bytes lost, entries kept": for the messages of a test.
std::string describe(const CrashOptions& options);

// Paths are absolute or relative to the root, which always exists; "." is the root, ".." is refused. Errors
// as in file_system.h. Thread-safe.
class MemoryFileSystem : public FileSystem {
 public:
  MemoryFileSystem();
  ~MemoryFileSystem() override;

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

  // Power loss: what is not durable is gone, except as `options` says. Open handles become useless
  // (kUnavailable).
  void crash(const CrashOptions& options = {});
  // Makes everything visible durable, as after a quiet minute: the start of a crash test.
  void sync_everything();

  // Damage by others. Both act on visible and durable bytes alike.
  void flip_bit(const std::string& path, uint64_t byte, int bit);
  void truncate(const std::string& path, uint64_t size);

  struct State;

 private:
  std::shared_ptr<State> state_;
};

}  // namespace inlaid::testing

#endif  // INLAID_SDK_BASE_TESTING_MEMORY_FILE_SYSTEM_H_

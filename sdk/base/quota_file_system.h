// A file system with a hard limit on bytes, around another one: the disk quota of a runtime.
//
// What counts are the bytes of the files that were written through it, and of the folders that were put under the quota:
// the output folder of a job counts from the moment it is opened, whoever wrote it, so that a restarted host is held to the
// same limit. A file counts with its size; a temporary file beside the one that it is going to replace counts as well.
// Removing and replacing gives the bytes back.
//
// A write that does not fit is refused before any of its bytes are written (kResourceExhausted); require_room() asks before
// the first byte of something large, such as a checkpoint. After an error of the file system below, the bytes that it may
// have written stay counted until the file is removed: the sum may be too high for a while, never too low. Files are known
// by their paths: what others write meanwhile, and hard or symbolic links, are not looked for.
//
// Cost: a look into a table of paths per operation. Thread-safe. Tests: quota_file_system_test.cc, tests/faults/quota_test.cc.
#ifndef INLAID_SDK_BASE_QUOTA_FILE_SYSTEM_H_
#define INLAID_SDK_BASE_QUOTA_FILE_SYSTEM_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "sdk/base/file_system.h"

namespace inlaid {

class QuotaFileSystem : public FileSystem {
 public:
  // limit 0 = none: then nothing is counted. `base` must outlive this.
  QuotaFileSystem(FileSystem& base, uint64_t limit) : base_(base), limit_(limit) {}

  uint64_t limit() const { return limit_; }
  uint64_t used() const;

  std::unique_ptr<ReadableFile> open(const std::string& path) override { return base_.open(path); }
  std::unique_ptr<WritableFile> create(const std::string& path) override;
  std::unique_ptr<WritableFile> append(const std::string& path) override;
  void rename(const std::string& from, const std::string& to) override;
  void sync_folder(const std::string& folder) override { base_.sync_folder(folder); }
  void make_folders(const std::string& path) override { base_.make_folders(path); }
  bool exists(const std::string& path) override { return base_.exists(path); }
  bool is_folder(const std::string& path) override { return base_.is_folder(path); }
  std::vector<std::string> list(const std::string& folder) override { return base_.list(folder); }
  void remove_all(const std::string& path) override;
  std::unique_ptr<FileLock> lock(const std::string& path) override { return base_.lock(path); }
  bool is_locked(const std::string& path) override { return base_.is_locked(path); }

  // Throws kResourceExhausted, naming `path`, unless so many bytes could be written now. Takes nothing.
  void require_room(const std::string& path, uint64_t bytes) const;
  // Puts what lies in a folder, if there is one, under the quota.
  void count_folder(const std::string& folder);

 private:
  friend class QuotaWritable;
  // Adds to the size of a file, or throws and adds nothing.
  void charge(const std::string& path, uint64_t bytes);
  void check(const std::string& path, uint64_t bytes) const;  // with the mutex held
  void forget(const std::string& key);                        // with the mutex held: a file, or a folder with all in it
  void set(const std::string& key, uint64_t bytes);           // with the mutex held
  void walk(const std::string& folder, int depth, std::map<std::string, uint64_t>* sizes);

  FileSystem& base_;
  const uint64_t limit_;
  mutable std::mutex mutex_;
  std::map<std::string, uint64_t> sizes_;  // of files, by normal path
  uint64_t used_ = 0;
};

}  // namespace inlaid

#endif  // INLAID_SDK_BASE_QUOTA_FILE_SYSTEM_H_

// The one seam through which the engine touches files. Tests put a faulty or crashing file system here; a
// host may put its own store. Files are read with positioned reads, never mapped: a file truncated by
// somebody else must not kill the host.
//
// All calls throw: kNotFound, kPermissionDenied, kAlreadyExists, kResourceExhausted (disk full), kDataLoss
// (short read), or kUnavailable for other input/output errors; every message names the path.
#ifndef INLAID_SDK_BASE_FILE_SYSTEM_H_
#define INLAID_SDK_BASE_FILE_SYSTEM_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace inlaid {

class ReadableFile {
 public:
  virtual ~ReadableFile() = default;
  virtual uint64_t size() const = 0;
  // Fills `out` from `offset`; kDataLoss if the file ends before. Safe from several threads.
  virtual void read_at(uint64_t offset, std::span<std::byte> out) const = 0;
  virtual const std::string& path() const = 0;
};

class WritableFile {
 public:
  virtual ~WritableFile() = default;                         // closes without syncing
  virtual void write(std::span<const std::byte> bytes) = 0;  // appends, all or throws
  virtual void sync() = 0;                                   // data reaches the disk
  virtual void close() = 0;                                  // idempotent; reports a late error
};

// Held until it dies; the end of the process releases it, too.
class FileLock {
 public:
  virtual ~FileLock() = default;
};

class FileSystem {
 public:
  virtual ~FileSystem() = default;
  virtual std::unique_ptr<ReadableFile> open(const std::string& path) = 0;
  // Creates or truncates.
  virtual std::unique_ptr<WritableFile> create(const std::string& path) = 0;
  // Opens for appending, creating if needed.
  virtual std::unique_ptr<WritableFile> append(const std::string& path) = 0;
  // Atomic within one folder; replaces an existing file, and an existing *empty* folder.
  virtual void rename(const std::string& from, const std::string& to) = 0;
  // Makes renames and creations inside `folder` durable.
  virtual void sync_folder(const std::string& folder) = 0;
  virtual void make_folders(const std::string& path) = 0;
  virtual bool exists(const std::string& path) = 0;
  virtual bool is_folder(const std::string& path) = 0;
  // Names (not paths) in byte order.
  virtual std::vector<std::string> list(const std::string& folder) = 0;
  // File, or folder with everything in it. Missing is fine.
  virtual void remove_all(const std::string& path) = 0;
  // Takes the exclusive lock of a file, which is created if needed; nullptr if it is taken, by this process or another one.
  virtual std::unique_ptr<FileLock> lock(const std::string& path) = 0;
  // Whether somebody holds the lock of a file; false if there is no such file. Takes nothing.
  virtual bool is_locked(const std::string& path) = 0;
};

// The operating system's files.
FileSystem& posix_file_system();

// Whole-file helpers. read_text refuses files over `limit` bytes (kInvalidArgument).
std::string read_text(FileSystem& fs, const std::string& path, uint64_t limit = uint64_t{1} << 30);
// Calls `write` with path + ".tmp", then renames that over `path`. After an error `path` is as before and the temporary file
// is gone. Durable only if `write` syncs and the caller syncs the folder.
void replace_file(FileSystem& fs, const std::string& path, const std::function<void(WritableFile&)>& write);
// replace_file with these bytes, made durable.
void write_atomically(FileSystem& fs, const std::string& path, std::string_view bytes);

// a + "/" + b with one slash; b alone when b is absolute.
std::string join_path(std::string_view a, std::string_view b);
std::string parent_path(std::string_view path);  // "." when there is none
std::string base_name(std::string_view path);

}  // namespace inlaid

#endif  // INLAID_SDK_BASE_FILE_SYSTEM_H_

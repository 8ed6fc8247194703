// The operating system's files through POSIX calls: positioned reads and appending writes in loops that go on
// after a signal (EINTR) or a partial transfer, and fsync on files and folders. Tested by
// file_system_test.cc.
#include <dirent.h>    // for opendir, readdir
#include <fcntl.h>     // for open
#include <sys/stat.h>  // for fstat, stat
#include <unistd.h>    // for pread, write, fsync, close

#include <algorithm>
#include <cerrno>
#include <cstdio>  // for std::rename
#include <filesystem>
#include <system_error>
#include <utility>

#include "sdk/base/error.h"
#include "sdk/base/file_system.h"

namespace inlaid {
namespace {

// Linux transfers at most 0x7ffff000 bytes a call; smaller pieces let signals and cancellation in.
constexpr size_t kLargestTransfer = size_t{1} << 30;

Code code_of(int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return Code::kNotFound;
    case EACCES:
    case EPERM:
    case EROFS:
      return Code::kPermissionDenied;
    case EEXIST:
    case ENOTEMPTY:
      return Code::kAlreadyExists;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      return Code::kResourceExhausted;
    case EINVAL:
    case EISDIR:
    case ELOOP:
    case ENAMETOOLONG:
      return Code::kInvalidArgument;
    default:
      return Code::kUnavailable;
  }
}

[[noreturn]] void fail_errno(int error, const std::string& path, const char* action) {
  fail(code_of(error), path, ": cannot ", action, ": ", std::generic_category().message(error));
}

// An open file descriptor, closed when it dies.
class Descriptor {
 public:
  Descriptor(const std::string& path, int flags, const char* action) {
    do {
      fd_ = ::open(path.c_str(), flags | O_CLOEXEC, 0666);
    } while (fd_ < 0 && errno == EINTR);
    if (fd_ < 0) fail_errno(errno, path, action);
  }
  ~Descriptor() { close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int get() const { return fd_; }
  // 0 or errno. Linux has closed the descriptor even when close() was interrupted: never close twice.
  int close() {
    if (fd_ < 0) return 0;
    const int result = ::close(std::exchange(fd_, -1));
    return (result != 0 && errno != EINTR) ? errno : 0;
  }

 private:
  int fd_ = -1;
};

void sync_descriptor(const Descriptor& file, const std::string& path) {
  int result;
  do {
    result = ::fsync(file.get());
  } while (result != 0 && errno == EINTR);
  if (result != 0) fail_errno(errno, path, "sync");
}

class PosixReadable : public ReadableFile {
 public:
  // O_NONBLOCK so that opening a named pipe does not wait for a writer; regular files ignore it.
  explicit PosixReadable(const std::string& path) : path_(path), file_(path, O_RDONLY | O_NONBLOCK, "open") {
    struct stat status {};
    if (::fstat(file_.get(), &status) != 0) fail_errno(errno, path, "open");
    if (!S_ISREG(status.st_mode)) fail(Code::kInvalidArgument, path, ": is not a regular file");
    size_ = static_cast<uint64_t>(status.st_size);
  }

  uint64_t size() const override { return size_; }
  const std::string& path() const override { return path_; }

  void read_at(uint64_t offset, std::span<std::byte> out) const override {
    if (offset > size_ || out.size() > size_ - offset) short_file(offset, out.size(), size_);
    size_t done = 0;
    while (done < out.size()) {
      const ssize_t got =
          ::pread(file_.get(), out.data() + done, std::min(out.size() - done, kLargestTransfer),
                  static_cast<off_t>(offset + done));
      if (got < 0) {
        if (errno == EINTR) continue;
        fail_errno(errno, path_, "read");
      }
      if (got == 0) short_file(offset, out.size(), offset + done);
      done += static_cast<size_t>(got);
    }
  }

 private:
  [[noreturn]] void short_file(uint64_t offset, size_t wanted, uint64_t end) const {
    fail(Code::kDataLoss, path_, ": ends at byte ", end, ", but ", wanted, " bytes at offset ", offset,
         " are needed; the file is truncated");
  }

  std::string path_;
  Descriptor file_;
  uint64_t size_ = 0;
};

class PosixWritable : public WritableFile {
 public:
  PosixWritable(const std::string& path, int flags)
      : path_(path), file_(path, O_WRONLY | O_CREAT | flags, "create") {}

  void write(std::span<const std::byte> bytes) override {
    check_open();
    while (!bytes.empty()) {
      const ssize_t put = ::write(file_.get(), bytes.data(), std::min(bytes.size(), kLargestTransfer));
      if (put < 0) {
        if (errno == EINTR) continue;
        fail_errno(errno, path_, "write");
      }
      bytes = bytes.subspan(static_cast<size_t>(put));
    }
  }

  void sync() override {
    check_open();
    sync_descriptor(file_, path_);
  }

  void close() override {
    if (const int error = file_.close(); error != 0) fail_errno(error, path_, "close");
  }

 private:
  void check_open() const {
    if (file_.get() < 0) fail(Code::kFailedPrecondition, path_, ": is closed");
  }

  std::string path_;
  Descriptor file_;
};

// A lock of the open file (Linux: F_OFD_SETLK), which, unlike fcntl's classic ones, belongs to this descriptor alone: closing
// another descriptor of the file does not release it, and it excludes other threads of the process as well.
class PosixLock : public FileLock {
 public:
  explicit PosixLock(const std::string& path) : file_(path, O_RDWR | O_CREAT, "open for locking") {
    struct flock whole = whole_file();
    taken_ = ::fcntl(file_.get(), F_OFD_SETLK, &whole) == 0;
    if (!taken_ && errno != EAGAIN && errno != EACCES) fail_errno(errno, path, "lock");
  }
  bool taken() const { return taken_; }

  static struct flock whole_file() {
    struct flock range {};
    range.l_type = F_WRLCK;
    range.l_whence = SEEK_SET;
    return range;
  }

 private:
  Descriptor file_;
  bool taken_ = false;
};

class PosixFileSystem : public FileSystem {
 public:
  constexpr ~PosixFileSystem() override {}
  std::unique_ptr<ReadableFile> open(const std::string& path) override {
    return std::make_unique<PosixReadable>(path);
  }
  std::unique_ptr<WritableFile> create(const std::string& path) override {
    return std::make_unique<PosixWritable>(path, O_TRUNC);
  }
  std::unique_ptr<WritableFile> append(const std::string& path) override {
    return std::make_unique<PosixWritable>(path, O_APPEND);
  }

  void rename(const std::string& from, const std::string& to) override {
    if (std::rename(from.c_str(), to.c_str()) != 0) {
      const int error = errno;
      fail(code_of(error), from, ": cannot rename to ", to, ": ", std::generic_category().message(error));
    }
  }

  void sync_folder(const std::string& folder) override {
    const Descriptor file(folder, O_RDONLY | O_DIRECTORY, "sync folder");
    sync_descriptor(file, folder);
  }

  void make_folders(const std::string& path) override {
    std::error_code error;
    std::filesystem::create_directories(path, error);
    if (!error && !is_folder(path)) error = std::make_error_code(std::errc::file_exists);
    if (error == std::errc::not_a_directory) error = std::make_error_code(std::errc::file_exists);
    if (error) fail_errno(error.value(), path, "make folder");
  }

  bool exists(const std::string& path) override {
    struct stat status {};
    return stat_if_there(path, &status);
  }
  bool is_folder(const std::string& path) override {
    struct stat status {};
    return stat_if_there(path, &status) && S_ISDIR(status.st_mode);
  }

  std::vector<std::string> list(const std::string& folder) override {
    std::unique_ptr<DIR, int (*)(DIR*)> stream(::opendir(folder.c_str()), &::closedir);
    if (!stream) fail_errno(errno, folder, "list");
    std::vector<std::string> names;
    for (;;) {
      errno = 0;
      const dirent* entry = ::readdir(stream.get());  // a stream of our own: no other thread reads it
      if (entry == nullptr) break;
      const std::string_view name = entry->d_name;
      if (name != "." && name != "..") names.emplace_back(name);
    }
    if (errno != 0) fail_errno(errno, folder, "list");
    std::sort(names.begin(), names.end());
    return names;
  }

  void remove_all(const std::string& path) override {
    std::error_code error;
    std::filesystem::remove_all(path, error);  // does not follow symbolic links
    if (error && error != std::errc::not_a_directory) fail_errno(error.value(), path, "remove");
  }

  std::unique_ptr<FileLock> lock(const std::string& path) override {
    auto lock = std::make_unique<PosixLock>(path);
    if (!lock->taken()) return nullptr;
    return lock;
  }

  bool is_locked(const std::string& path) override {
    if (!exists(path)) return false;
    const Descriptor file(path, O_RDWR, "open for locking");
    struct flock whole = PosixLock::whole_file();
    if (::fcntl(file.get(), F_OFD_GETLK, &whole) != 0) fail_errno(errno, path, "look up the lock of");
    return whole.l_type != F_UNLCK;
  }

 private:
  static bool stat_if_there(const std::string& path, struct stat* status) {
    if (::stat(path.c_str(), status) == 0) return true;
    if (errno == ENOENT || errno == ENOTDIR) return false;
    fail_errno(errno, path, "look up");
  }
};

// Stateless and constant: it lies in read-only memory and needs no construction at load.
constexpr PosixFileSystem kPosix{};

}  // namespace

FileSystem& posix_file_system() {
  return const_cast<PosixFileSystem&>(kPosix);
}

}  // namespace inlaid

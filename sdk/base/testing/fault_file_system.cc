#include "sdk/base/testing/fault_file_system.h"

#include <mutex>
#include <utility>

namespace inlaid::testing {

struct FaultFileSystem::State {
  mutable std::mutex mutex;
  int64_t count = 0;
  int64_t fail_at = -1;
  int64_t cut_at = -1;
  Code code = Code::kUnavailable;
  bool dead = false;
  bool everything = false;  // looks are counted, too
  std::vector<std::string> history;

  // Counts one operation and throws if it is to fail; `on_failure` runs before the throw.
  template <typename OnFailure>
  void step(const std::string& what, const OnFailure& on_failure) {
    std::lock_guard lock(mutex);
    check_power();
    const int64_t n = count++;
    history.push_back(what);
    if (n == cut_at) dead = true;
    if (n == cut_at || n == fail_at) {
      on_failure();
      if (dead) check_power();
      fail(code, what, ": fault injected at operation ", n);
    }
  }
  void step(const std::string& what) {
    step(what, [] {});
  }

  void check_power() const {
    if (dead) fail(Code::kAborted, "power was cut at operation ", cut_at, ": ", history.back());
  }
  void look(const char* what, const std::string& path) {
    if (everything) return step(std::string(what) + path);
    std::lock_guard lock(mutex);
    check_power();
  }
};

namespace {

class FaultReadable : public ReadableFile {
 public:
  FaultReadable(std::shared_ptr<FaultFileSystem::State> state, std::unique_ptr<ReadableFile> file)
      : state_(std::move(state)), file_(std::move(file)) {}
  uint64_t size() const override { return file_->size(); }
  const std::string& path() const override { return file_->path(); }
  void read_at(uint64_t offset, std::span<std::byte> out) const override {
    state_->look("read ", file_->path());
    file_->read_at(offset, out);
  }

 private:
  std::shared_ptr<FaultFileSystem::State> state_;
  std::unique_ptr<ReadableFile> file_;
};

class FaultWritable : public WritableFile {
 public:
  FaultWritable(std::shared_ptr<FaultFileSystem::State> state, std::unique_ptr<WritableFile> file,
                std::string path)
      : state_(std::move(state)), file_(std::move(file)), path_(std::move(path)) {}
  void write(std::span<const std::byte> bytes) override {
    state_->step("write " + path_, [&] { file_->write(bytes.first(bytes.size() / 2)); });
    file_->write(bytes);
  }
  void sync() override {
    state_->step("sync " + path_);
    file_->sync();
  }
  void close() override {
    state_->step("close " + path_);
    file_->close();
  }

 private:
  std::shared_ptr<FaultFileSystem::State> state_;
  std::unique_ptr<WritableFile> file_;
  std::string path_;
};

}  // namespace

FaultFileSystem::FaultFileSystem(FileSystem& base, Counted counted) : base_(base), state_(std::make_shared<State>()) {
  state_->everything = counted == Counted::kEverything;
}
FaultFileSystem::~FaultFileSystem() = default;

void FaultFileSystem::fail_at(int64_t n, Code code) {
  std::lock_guard lock(state_->mutex);
  state_->fail_at = n;
  state_->code = code;
}

void FaultFileSystem::cut_power_at(int64_t n) {
  std::lock_guard lock(state_->mutex);
  state_->cut_at = n;
}

void FaultFileSystem::reset() {
  std::lock_guard lock(state_->mutex);
  state_->count = 0;
  state_->fail_at = state_->cut_at = -1;
  state_->dead = false;
  state_->history.clear();
}

int64_t FaultFileSystem::operations() const {
  std::lock_guard lock(state_->mutex);
  return state_->count;
}

std::vector<std::string> FaultFileSystem::history() const {
  std::lock_guard lock(state_->mutex);
  return state_->history;
}

std::unique_ptr<ReadableFile> FaultFileSystem::open(const std::string& path) {
  state_->look("open ", path);
  return std::make_unique<FaultReadable>(state_, base_.open(path));
}

std::unique_ptr<WritableFile> FaultFileSystem::create(const std::string& path) {
  state_->step("create " + path);
  return std::make_unique<FaultWritable>(state_, base_.create(path), path);
}

std::unique_ptr<WritableFile> FaultFileSystem::append(const std::string& path) {
  state_->step("append " + path);
  return std::make_unique<FaultWritable>(state_, base_.append(path), path);
}

void FaultFileSystem::rename(const std::string& from, const std::string& to) {
  state_->step("rename " + from + " -> " + to);
  base_.rename(from, to);
}

void FaultFileSystem::sync_folder(const std::string& folder) {
  state_->step("sync_folder " + folder);
  base_.sync_folder(folder);
}

void FaultFileSystem::make_folders(const std::string& path) {
  state_->step("make_folders " + path);
  base_.make_folders(path);
}

bool FaultFileSystem::exists(const std::string& path) {
  state_->look("exists ", path);
  return base_.exists(path);
}

bool FaultFileSystem::is_folder(const std::string& path) {
  state_->look("is_folder ", path);
  return base_.is_folder(path);
}

std::vector<std::string> FaultFileSystem::list(const std::string& folder) {
  state_->look("list ", folder);
  return base_.list(folder);
}

std::unique_ptr<FileLock> FaultFileSystem::lock(const std::string& path) {
  state_->look("lock ", path);
  return base_.lock(path);
}

bool FaultFileSystem::is_locked(const std::string& path) {
  state_->look("is_locked ", path);
  return base_.is_locked(path);
}

void FaultFileSystem::remove_all(const std::string& path) {
  state_->step("remove_all " + path);
  base_.remove_all(path);
}

}  // namespace inlaid::testing

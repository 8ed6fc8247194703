#include "sdk/base/quota_file_system.h"

#include <filesystem>
#include <utility>

#include "sdk/base/error.h"
#include "sdk/base/json.h"

namespace inlaid {
namespace {

constexpr int kMaxDepth = 32;  // of folders that are counted

// One spelling per path: no "//", no "/./", no slash at the end.
std::string normal(const std::string& path) {
  std::string text = std::filesystem::path(path).lexically_normal().string();
  while (text.size() > 1 && text.back() == '/') text.pop_back();
  return text;
}

}  // namespace

class QuotaWritable : public WritableFile {
 public:
  QuotaWritable(QuotaFileSystem& owner, std::string key, std::unique_ptr<WritableFile> file)
      : owner_(owner), key_(std::move(key)), file_(std::move(file)) {}
  void write(std::span<const std::byte> bytes) override {
    owner_.charge(key_, bytes.size());
    file_->write(bytes);
  }
  void sync() override { file_->sync(); }
  void close() override { file_->close(); }

 private:
  QuotaFileSystem& owner_;
  const std::string key_;
  std::unique_ptr<WritableFile> file_;
};

uint64_t QuotaFileSystem::used() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return used_;
}

void QuotaFileSystem::check(const std::string& path, uint64_t bytes) const {
  if (bytes <= limit_ && used_ <= limit_ - bytes) return;
  const Json details = {{"file", path}, {"requested", bytes}, {"in_use", used_}, {"limit", limit_}};
  throw Error(Code::kResourceExhausted,
              path + ": " + std::to_string(bytes) + " bytes do not fit into the disk limit of " + std::to_string(limit_) +
                  " bytes, of which " + std::to_string(used_) + " are in use (disk_limit)",
              to_text(details));
}

void QuotaFileSystem::set(const std::string& key, uint64_t bytes) {
  uint64_t& size = sizes_[key];
  used_ += bytes - size;
  size = bytes;
}

void QuotaFileSystem::forget(const std::string& key) {
  for (auto entry = sizes_.lower_bound(key); entry != sizes_.end() && entry->first.starts_with(key);) {
    const bool inside = entry->first.size() == key.size() || entry->first[key.size()] == '/';
    if (inside) used_ -= entry->second;
    entry = inside ? sizes_.erase(entry) : std::next(entry);
  }
}

void QuotaFileSystem::charge(const std::string& key, uint64_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  check(key, bytes);
  set(key, sizes_[key] + bytes);
}

void QuotaFileSystem::require_room(const std::string& path, uint64_t bytes) const {
  if (limit_ == 0) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  check(path, bytes);
}

std::unique_ptr<WritableFile> QuotaFileSystem::create(const std::string& path) {
  if (limit_ == 0) return base_.create(path);
  std::string key = normal(path);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    sizes_.try_emplace(key, 0);
  }
  std::unique_ptr<WritableFile> file = base_.create(path);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    set(key, 0);
  }
  return std::make_unique<QuotaWritable>(*this, std::move(key), std::move(file));
}

std::unique_ptr<WritableFile> QuotaFileSystem::append(const std::string& path) {
  if (limit_ == 0) return base_.append(path);
  std::string key = normal(path);
  const uint64_t before = base_.exists(path) ? base_.open(path)->size() : 0;
  std::unique_ptr<WritableFile> file = base_.append(path);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    set(key, before);
  }
  return std::make_unique<QuotaWritable>(*this, std::move(key), std::move(file));
}

// Places for the new names are made before anything happens: after the rename nothing can fail.
void QuotaFileSystem::rename(const std::string& from, const std::string& to) {
  if (limit_ == 0) return base_.rename(from, to);
  const std::string old_key = normal(from), new_key = normal(to);
  const std::lock_guard<std::mutex> lock(mutex_);
  std::map<std::string, uint64_t> moved;
  for (auto entry = sizes_.lower_bound(old_key); entry != sizes_.end() && entry->first.starts_with(old_key); ++entry) {
    const std::string rest = entry->first.substr(old_key.size());
    if (rest.empty() || rest.front() == '/') moved[new_key + rest] = entry->second;
  }
  for (const auto& entry : moved) sizes_.try_emplace(entry.first, 0);
  base_.rename(from, to);
  for (auto& [key, size] : sizes_) {
    if (key.starts_with(new_key) && (key.size() == new_key.size() || key[new_key.size()] == '/')) used_ -= std::exchange(size, 0);
  }
  forget(old_key);
  for (const auto& [key, bytes] : moved) set(key, bytes);
}

void QuotaFileSystem::remove_all(const std::string& path) {
  base_.remove_all(path);
  if (limit_ == 0) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  forget(normal(path));
}

void QuotaFileSystem::walk(const std::string& folder, int depth, std::map<std::string, uint64_t>* sizes) {
  if (depth > kMaxDepth) fail(Code::kInvalidArgument, folder, ": more than ", kMaxDepth, " folders inside each other");
  for (const std::string& name : base_.list(folder)) {
    const std::string path = join_path(folder, name);
    if (base_.is_folder(path)) {
      walk(path, depth + 1, sizes);
    } else {
      (*sizes)[normal(path)] = base_.open(path)->size();
    }
  }
}

void QuotaFileSystem::count_folder(const std::string& folder) {
  if (limit_ == 0 || !base_.is_folder(folder)) return;
  std::map<std::string, uint64_t> sizes;
  walk(folder, 0, &sizes);
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [key, bytes] : sizes) set(key, bytes);
}

}  // namespace inlaid

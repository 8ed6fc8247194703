#include "sdk/base/testing/memory_file_system.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "sdk/base/error.h"

namespace inlaid::testing {
namespace {

struct Node;
using Entries = std::map<std::string, std::shared_ptr<Node>, std::less<>>;

// A file or a folder. Names belong to the folder that holds it, so a rename moves the node.
struct Node {
  bool folder = false;
  std::string bytes, durable_bytes;  // of a file
  Entries entries, durable_entries;  // of a folder
};

std::shared_ptr<Node> make_node(bool folder) {
  auto node = std::make_shared<Node>();
  node->folder = folder;
  return node;
}

std::vector<std::string> split(const std::string& path) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin < path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    std::string part = path.substr(begin, end - begin);
    begin = end + 1;
    if (part == "..") fail(Code::kInvalidArgument, path, ": '..' is not supported");
    if (!part.empty() && part != ".") parts.push_back(std::move(part));
  }
  return parts;
}

bool contains(const Node& tree, const Node* node) {
  if (&tree == node) return true;
  return std::any_of(tree.entries.begin(), tree.entries.end(),
                     [&](const auto& entry) { return contains(*entry.second, node); });
}

// Half of what was written since the last sync: appended bytes extend the durable ones, a rewritten file is
// cut.
std::string torn(const Node& file) {
  const bool extended = file.bytes.compare(0, file.durable_bytes.size(), file.durable_bytes) == 0;
  const size_t kept = extended ? file.durable_bytes.size() : 0;
  return file.bytes.substr(0, kept + (file.bytes.size() - kept) / 2);
}

void crash_node(Node& node, const CrashOptions& options) {
  if (node.folder) {
    if (options.entries == CrashOptions::Entries::kLost) node.entries = node.durable_entries;
    node.durable_entries = node.entries;
    for (auto& [name, child] : node.entries) crash_node(*child, options);
    return;
  }
  if (options.bytes == CrashOptions::Bytes::kLost) node.bytes = node.durable_bytes;
  if (options.bytes == CrashOptions::Bytes::kTorn) node.bytes = torn(node);
  node.durable_bytes = node.bytes;
}

}  // namespace

struct MemoryFileSystem::State {
  std::mutex mutex;
  std::shared_ptr<Node> root = make_node(true);
  int generation = 0;  // number of crashes; handles of an earlier one are dead
  std::set<std::shared_ptr<Node>> locked;

  std::shared_ptr<Node> find(const std::vector<std::string>& parts) const {
    std::shared_ptr<Node> node = root;
    for (const std::string& part : parts) {
      auto found = node->entries.find(part);  // a file has no entries
      if (found == node->entries.end()) return nullptr;
      node = found->second;
    }
    return node;
  }

  std::shared_ptr<Node> need(const std::string& path) const {
    std::shared_ptr<Node> node = find(split(path));
    if (!node) fail(Code::kNotFound, path, ": no such file or folder");
    return node;
  }

  std::shared_ptr<Node> need_file(const std::string& path) const {
    std::shared_ptr<Node> node = need(path);
    if (node->folder) fail(Code::kInvalidArgument, path, ": is a folder");
    return node;
  }

  std::shared_ptr<Node> need_folder(const std::string& path) const {
    std::shared_ptr<Node> node = need(path);
    if (!node->folder) fail(Code::kNotFound, path, ": is not a folder");
    return node;
  }

  // The folder that holds `path`, and its name there.
  std::pair<std::shared_ptr<Node>, std::string> place(const std::string& path) const {
    std::vector<std::string> parts = split(path);
    if (parts.empty()) fail(Code::kInvalidArgument, path, ": is the root");
    std::string name = std::move(parts.back());
    parts.pop_back();
    std::shared_ptr<Node> parent = find(parts);
    if (!parent || !parent->folder) fail(Code::kNotFound, path, ": no such folder to hold it");
    return {parent, name};
  }

  void check_alive(int since, const std::string& path) const {
    if (since != generation) fail(Code::kUnavailable, path, ": handle from before the crash");
  }
};

namespace {

class MemoryReadable : public ReadableFile {
 public:
  MemoryReadable(std::shared_ptr<MemoryFileSystem::State> state, std::shared_ptr<Node> node, std::string path)
      : state_(std::move(state)),
        node_(std::move(node)),
        path_(std::move(path)),
        generation_(state_->generation),
        size_(node_->bytes.size()) {}

  uint64_t size() const override { return size_; }
  const std::string& path() const override { return path_; }
  void read_at(uint64_t offset, std::span<std::byte> out) const override {
    std::lock_guard lock(state_->mutex);
    state_->check_alive(generation_, path_);
    const std::string& bytes = node_->bytes;
    if (offset > bytes.size() || out.size() > bytes.size() - offset) {
      fail(Code::kDataLoss, path_, ": ends at byte ", bytes.size(), ", but ", out.size(), " bytes at offset ",
           offset, " are needed");
    }
    if (!out.empty()) std::memcpy(out.data(), bytes.data() + offset, out.size());
  }

 private:
  std::shared_ptr<MemoryFileSystem::State> state_;
  std::shared_ptr<Node> node_;
  std::string path_;
  int generation_;
  uint64_t size_;
};

class MemoryWritable : public WritableFile {
 public:
  MemoryWritable(std::shared_ptr<MemoryFileSystem::State> state, std::shared_ptr<Node> node, std::string path)
      : state_(std::move(state)),
        node_(std::move(node)),
        path_(std::move(path)),
        generation_(state_->generation) {}

  void write(std::span<const std::byte> bytes) override {
    std::lock_guard lock(state_->mutex);
    check_open();
    node_->bytes.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  void sync() override {
    std::lock_guard lock(state_->mutex);
    check_open();
    node_->durable_bytes = node_->bytes;
  }
  void close() override {
    std::lock_guard lock(state_->mutex);
    state_->check_alive(generation_, path_);
    open_ = false;
  }

 private:
  void check_open() const {
    state_->check_alive(generation_, path_);
    if (!open_) fail(Code::kFailedPrecondition, path_, ": is closed");
  }

  std::shared_ptr<MemoryFileSystem::State> state_;
  std::shared_ptr<Node> node_;
  std::string path_;
  int generation_;
  bool open_ = true;
};

}  // namespace

std::vector<CrashOptions> all_crash_options() {
  std::vector<CrashOptions> all;
  for (auto bytes : {CrashOptions::Bytes::kLost, CrashOptions::Bytes::kTorn, CrashOptions::Bytes::kKept}) {
    for (auto entries : {CrashOptions::Entries::kLost, CrashOptions::Entries::kKept})
      all.push_back({bytes, entries});
  }
  return all;
}

std::string describe(const CrashOptions& options) {
  const char* bytes[] = {"lost", "torn", "kept"};
  const char* entries[] = {"lost", "kept"};
  return std::string("bytes ") + bytes[static_cast<int>(options.bytes)] + ", entries " +
         entries[static_cast<int>(options.entries)];
}

MemoryFileSystem::MemoryFileSystem() : state_(std::make_shared<State>()) {}
MemoryFileSystem::~MemoryFileSystem() = default;

std::unique_ptr<ReadableFile> MemoryFileSystem::open(const std::string& path) {
  std::lock_guard lock(state_->mutex);
  return std::make_unique<MemoryReadable>(state_, state_->need_file(path), path);
}

namespace {

class MemoryLock : public FileLock {
 public:
  MemoryLock(std::shared_ptr<MemoryFileSystem::State> state, std::shared_ptr<Node> node)
      : state_(std::move(state)), node_(std::move(node)) {}
  ~MemoryLock() override {
    std::lock_guard lock(state_->mutex);
    state_->locked.erase(node_);
  }

 private:
  std::shared_ptr<MemoryFileSystem::State> state_;
  std::shared_ptr<Node> node_;
};

}  // namespace

std::unique_ptr<WritableFile> MemoryFileSystem::create(const std::string& path) {
  std::unique_ptr<WritableFile> file = append(path);
  std::lock_guard lock(state_->mutex);
  state_->need_file(path)->bytes.clear();
  return file;
}

std::unique_ptr<WritableFile> MemoryFileSystem::append(const std::string& path) {
  std::lock_guard lock(state_->mutex);
  auto [parent, name] = state_->place(path);
  std::shared_ptr<Node>& node = parent->entries[name];
  if (!node) node = make_node(false);
  if (node->folder) fail(Code::kInvalidArgument, path, ": is a folder");
  return std::make_unique<MemoryWritable>(state_, node, path);
}

void MemoryFileSystem::rename(const std::string& from, const std::string& to) {
  std::lock_guard lock(state_->mutex);
  auto [old_parent, old_name] = state_->place(from);
  auto [new_parent, new_name] = state_->place(to);
  auto found = old_parent->entries.find(old_name);
  if (found == old_parent->entries.end()) fail(Code::kNotFound, from, ": no such file or folder");
  const std::shared_ptr<Node> node = found->second;
  if (contains(*node, new_parent.get())) fail(Code::kInvalidArgument, from, ": cannot move into itself");
  if (auto target = new_parent->entries.find(new_name); target != new_parent->entries.end()) {
    if (target->second == node) return;
    if (target->second->folder != node->folder) {
      fail(Code::kInvalidArgument, to, ": a file cannot replace a folder, nor a folder a file");
    }
    if (!target->second->entries.empty()) fail(Code::kAlreadyExists, to, ": folder is not empty");
  }
  old_parent->entries.erase(old_name);
  new_parent->entries[new_name] = node;
}

void MemoryFileSystem::sync_folder(const std::string& folder) {
  std::lock_guard lock(state_->mutex);
  const std::shared_ptr<Node> node = state_->need_folder(folder);
  node->durable_entries = node->entries;
}

void MemoryFileSystem::make_folders(const std::string& path) {
  std::lock_guard lock(state_->mutex);
  std::shared_ptr<Node> node = state_->root;
  for (const std::string& part : split(path)) {
    std::shared_ptr<Node>& child = node->entries[part];
    if (!child) child = make_node(true);
    if (!child->folder) fail(Code::kAlreadyExists, path, ": '", part, "' is a file");
    node = std::shared_ptr<Node>(child);
  }
}

bool MemoryFileSystem::exists(const std::string& path) {
  std::lock_guard lock(state_->mutex);
  return state_->find(split(path)) != nullptr;
}

bool MemoryFileSystem::is_folder(const std::string& path) {
  std::lock_guard lock(state_->mutex);
  const std::shared_ptr<Node> node = state_->find(split(path));
  return node && node->folder;
}

std::vector<std::string> MemoryFileSystem::list(const std::string& folder) {
  std::lock_guard lock(state_->mutex);
  std::vector<std::string> names;
  for (const auto& entry : state_->need_folder(folder)->entries) names.push_back(entry.first);
  return names;
}

void MemoryFileSystem::remove_all(const std::string& path) {
  std::lock_guard lock(state_->mutex);
  if (!state_->find(split(path))) return;
  auto [parent, name] = state_->place(path);
  parent->entries.erase(name);
}

std::unique_ptr<FileLock> MemoryFileSystem::lock(const std::string& path) {
  append(path);
  std::lock_guard lock(state_->mutex);
  const std::shared_ptr<Node> node = state_->need_file(path);
  if (!state_->locked.insert(node).second) return nullptr;
  return std::make_unique<MemoryLock>(state_, node);
}

bool MemoryFileSystem::is_locked(const std::string& path) {
  std::lock_guard lock(state_->mutex);
  return state_->locked.count(state_->find(split(path))) > 0;
}

void MemoryFileSystem::crash(const CrashOptions& options) {
  std::lock_guard lock(state_->mutex);
  ++state_->generation;
  crash_node(*state_->root, options);
}

void MemoryFileSystem::sync_everything() {
  std::lock_guard lock(state_->mutex);
  crash_node(*state_->root, {CrashOptions::Bytes::kKept, CrashOptions::Entries::kKept});
}

void MemoryFileSystem::flip_bit(const std::string& path, uint64_t byte, int bit) {
  std::lock_guard lock(state_->mutex);
  const std::shared_ptr<Node> node = state_->need_file(path);
  if (byte >= node->bytes.size()) fail(Code::kOutOfRange, path, ": has no byte ", byte);
  node->bytes[byte] = static_cast<char>(node->bytes[byte] ^ (1 << bit));
  node->durable_bytes = node->bytes;
}

void MemoryFileSystem::truncate(const std::string& path, uint64_t size) {
  std::lock_guard lock(state_->mutex);
  const std::shared_ptr<Node> node = state_->need_file(path);
  node->bytes.resize(std::min<uint64_t>(size, node->bytes.size()));
  node->durable_bytes = node->bytes;
}

}  // namespace inlaid::testing

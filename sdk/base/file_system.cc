#include "sdk/base/file_system.h"

#include "sdk/base/error.h"

namespace inlaid {

std::string read_text(FileSystem& fs, const std::string& path, uint64_t limit) {
  std::unique_ptr<ReadableFile> file = fs.open(path);
  const uint64_t size = file->size();
  if (size > limit) {
    fail(Code::kInvalidArgument, path, ": ", size, " bytes are more than the ", limit,
         " bytes expected at most");
  }
  std::string text(size, '\0');
  file->read_at(0, std::as_writable_bytes(std::span(text.data(), text.size())));
  return text;
}

void write_atomically(FileSystem& fs, const std::string& path, std::string_view bytes) {
  replace_file(fs, path, [&](WritableFile& file) {
    file.write(std::as_bytes(std::span(bytes.data(), bytes.size())));
    file.sync();
  });
  fs.sync_folder(parent_path(path));
}

void replace_file(FileSystem& fs, const std::string& path, const std::function<void(WritableFile&)>& write) {
  const std::string temporary = path + ".tmp";
  try {
    const std::unique_ptr<WritableFile> file = fs.create(temporary);
    write(*file);
    file->close();
    fs.rename(temporary, path);
  } catch (...) {
    try {
      fs.remove_all(temporary);
    } catch (...) {
      // The first error is the one to report; the next write truncates what is left.
    }
    throw;
  }
}

std::string join_path(std::string_view a, std::string_view b) {
  if (a.empty() || (!b.empty() && b.front() == '/')) return std::string(b);
  std::string path(a);
  if (b.empty()) return path;
  if (path.back() != '/') path += '/';
  path += b;
  return path;
}

std::string parent_path(std::string_view path) {
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  const size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return ".";
  path = path.substr(0, slash);
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  return path.empty() ? "/" : std::string(path);
}

std::string base_name(std::string_view path) {
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  if (path == "/") return "/";
  const size_t slash = path.rfind('/');
  return std::string(slash == std::string_view::npos ? path : path.substr(slash + 1));
}

}  // namespace inlaid

#include "sdk/formats/staged.h"

#include <utility>

#include "sdk/base/error.h"

namespace inlaid::formats {
namespace {

std::string without_end_slash(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

}  // namespace

StagedOutput::StagedOutput(FileSystem& fs, std::string target, Kind kind)
    : fs_(fs), target_(without_end_slash(std::move(target))), kind_(kind) {
  if (target_.empty()) fail(Code::kInvalidArgument, "the path to write to is empty");
  if (fs_.exists(target_)) {
    const bool empty_folder = kind == Kind::kFolder && fs_.is_folder(target_) && fs_.list(target_).empty();
    if (!empty_folder) {
      fail(Code::kAlreadyExists, target_, " already exists; remove it or choose another name");
    }
  }
  const std::string parent = parent_path(target_);
  for (std::string missing = parent; !fs_.exists(missing); missing = parent_path(missing))
    made_.push_back(missing);
  if (!made_.empty()) fs_.make_folders(parent);
  for (int number = 1;; ++number) {
    path_ = target_ + ".tmp-" + std::to_string(number);
    if (!fs_.exists(path_)) break;
  }
  if (kind == Kind::kFolder) fs_.make_folders(path_);
}

StagedOutput::~StagedOutput() {
  if (settled_) return;
  try {
    fs_.remove_all(path_);
  } catch (const Error&) {
    // The error that led here is what the caller must hear; a temporary that stays behind is never taken for
    // the target.
  }
}

void StagedOutput::write_text(std::string_view name, std::string_view text) {
  auto file = fs_.create(join_path(path_, name));
  file->write(std::as_bytes(std::span(text.data(), text.size())));
  file->sync();
  file->close();
}

void StagedOutput::commit() {
  if (kind_ == Kind::kFolder) fs_.sync_folder(path_);
  fs_.rename(path_, target_);
  settled_ = true;
  fs_.sync_folder(parent_path(target_));
  for (const std::string& folder : made_) fs_.sync_folder(parent_path(folder));
}

void StagedOutput::discard() {
  fs_.remove_all(path_);
  settled_ = true;
}

}  // namespace inlaid::formats

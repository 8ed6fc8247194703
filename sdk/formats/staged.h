// All-or-nothing output: a file or folder is written beside its target under a temporary name
// ("TARGET.tmp-1", the first number that is free), and takes its own name by one rename when it is complete
// and on the disk. Whoever looks at the target sees nothing or everything. Without commit() the destructor
// removes the temporary.
//
// Tests: staged_test.cc cuts every write, sync and rename in turn.
#ifndef INLAID_SDK_FORMATS_STAGED_H_
#define INLAID_SDK_FORMATS_STAGED_H_

#include <string>
#include <string_view>
#include <vector>

#include "sdk/base/file_system.h"

namespace inlaid::formats {

class StagedOutput {
 public:
  enum class Kind { kFile, kFolder };

  // kAlreadyExists if `target` exists (an empty folder may, for a folder). Makes missing parents, and the
  // temporary folder.
  StagedOutput(FileSystem& fs, std::string target, Kind kind);
  ~StagedOutput();
  StagedOutput(const StagedOutput&) = delete;
  StagedOutput& operator=(const StagedOutput&) = delete;

  const std::string& path() const { return path_; }  // the temporary name
  // Writes and syncs one whole file inside a temporary folder.
  void write_text(std::string_view name, std::string_view text);
  // Every file inside must be synced. Syncs the folders, renames, and makes the rename durable.
  void commit();
  // Removes the temporary now, where its last use is over before the whole is: unlike the destructor, not without a word.
  void discard();

 private:
  FileSystem& fs_;
  std::string target_, path_;
  Kind kind_;
  std::vector<std::string> made_;  // parents that did not exist, innermost first
  bool settled_ = false;  // committed or discarded
};

}  // namespace inlaid::formats

#endif  // INLAID_SDK_FORMATS_STAGED_H_

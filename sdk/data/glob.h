// File patterns of data sources.
#ifndef INLAID_SDK_DATA_GLOB_H_
#define INLAID_SDK_DATA_GLOB_H_

#include <string>
#include <string_view>
#include <vector>

#include "sdk/base/file_system.h"

namespace inlaid::data {

// Files that a pattern names, in byte order of their paths. `*` stands for any characters of one path
// component, `?` for one character, `[abc]`, `[a-z]` and `[!a]` for one of a set; a leading dot has to be
// written. A path that exists is taken as it is, whatever characters it has. kInvalidArgument for a folder,
// for a pattern that matches no file, and for a file name that is not UTF-8 (reports could not carry it).
std::vector<std::string> expand_glob(FileSystem& fs, const std::string& pattern);

// Whether one path component matches one component of a pattern.
bool matches_component(std::string_view pattern, std::string_view name);

}  // namespace inlaid::data

#endif  // INLAID_SDK_DATA_GLOB_H_

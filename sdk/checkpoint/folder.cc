// The folder of a run's checkpoints.
//
// index.json says which checkpoint is the latest and which the best; it is written after the checkpoint. So after a crash
// it may be one behind, and it may be lost; then the folders themselves decide. "Newer than the recorded one" means a higher
// step *and* a later time of creation: after a restart from an older checkpoint the folder holds higher steps of the abandoned
// past.
//
// Removing is renaming to NAME.tmp, making that durable, and only then deleting: a crash in between leaves no final name with
// half a checkpoint behind it.
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sdk/base/error.h"
#include "sdk/checkpoint/checkpoint.h"
#include "sdk/checkpoint/contents.h"
#include "sdk/checkpoint/format.h"

namespace inlaid::checkpoint {
namespace {

constexpr char kIndexFile[] = "index.json";
constexpr uint64_t kMaxIndexJsonBytes = uint64_t{1} << 20;
constexpr std::string_view kPrefix = "step-";

// The step of a checkpoint's name, nullopt for every other name.
std::optional<int64_t> step_of(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  const std::string_view digits = name.substr(kPrefix.size());
  int64_t step = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), step);
  if (error != std::errc() || end != digits.data() + digits.size() || step < 0 || checkpoint_name(step) != name) {
    return std::nullopt;
  }
  return step;
}

struct Candidate {
  std::string name;
  int64_t step = 0;
};

// Folders with the name of a checkpoint, by step.
std::vector<Candidate> candidates(FileSystem& fs, const std::string& folder) {
  std::vector<Candidate> found;
  if (!fs.is_folder(folder)) return found;
  for (const std::string& name : fs.list(folder)) {
    const std::optional<int64_t> step = step_of(name);
    if (step && fs.is_folder(join_path(folder, name))) found.push_back({name, *step});
  }
  std::sort(found.begin(), found.end(), [](const Candidate& a, const Candidate& b) { return a.step < b.step; });
  return found;
}

// Time of creation of a checkpoint whose metadata and sizes are in order; nullopt for a damaged one. A checkpoint that needs
// a newer reader, or a disk that does not answer, is an error: passing over it would silently go back in time.
std::optional<int64_t> created_if_whole(FileSystem& fs, const std::string& path) {
  try {
    const Contents contents = load_contents(fs, path);
    check_sizes(fs, contents, [](const std::string& problem) { fail(Code::kDataLoss, problem); });
    return contents.manifest.created_unix_ms();
  } catch (const Error& error) {
    if (error.code() != Code::kDataLoss && error.code() != Code::kNotFound) throw;
    return std::nullopt;
  }
}

// index.json as an object; empty when it is missing or damaged.
Json read_index(FileSystem& fs, const std::string& folder) {
  const std::string path = join_path(folder, kIndexFile);
  if (!fs.exists(path)) return Json::object();
  try {
    Json index = parse_json(read_text(fs, path, kMaxIndexJsonBytes), path);
    return index.is_object() ? index : Json::object();
  } catch (const Error& error) {
    if (error.code() != Code::kInvalidArgument && error.code() != Code::kDataLoss) throw;
    return Json::object();
  }
}

// The checkpoint's name under `key`, "" when there is none or what stands there is none.
std::string name_in(const Json& index, const char* key) {
  const auto found = index.find(key);
  if (found == index.end() || !found->is_string()) return "";
  const std::string name = found->get<std::string>();
  return step_of(name) ? name : "";
}

// The names under "best" that are names of checkpoints.
std::vector<std::string> best_names(const Json& index) {
  std::vector<std::string> names;
  const auto found = index.find("best");
  if (found == index.end() || !found->is_array()) return names;
  for (const Json& entry : *found) {
    if (entry.is_string() && step_of(entry.get<std::string>())) names.push_back(entry.get<std::string>());
  }
  return names;
}

void check_name(const std::string& name) {
  if (!step_of(name)) fail(Code::kInvalidArgument, "'", name, "' is no name of a checkpoint; an example is step-000100");
}

void record(FileSystem& fs, const std::string& folder, const char* key, Json value) {
  Json index = read_index(fs, folder);
  if (index.contains(key) && index[key] == value) return;
  index[key] = std::move(value);
  write_atomically(fs, join_path(folder, kIndexFile), to_text(index) + "\n");
}

// Temporary folders of saves and removals, and of the index itself.
void remove_leftovers(FileSystem& fs, const std::string& folder) {
  const std::string_view suffix = kTemporarySuffix;
  for (const std::string& name : fs.list(folder)) {
    if (!name.ends_with(suffix)) continue;
    const std::string_view stem = std::string_view(name).substr(0, name.size() - suffix.size());
    if (stem == kIndexFile || step_of(stem)) fs.remove_all(join_path(folder, name));
  }
}

void remove_all(FileSystem& fs, const std::string& folder, const std::vector<std::string>& names) {
  if (names.empty()) return;
  for (const std::string& name : names) {
    const std::string path = join_path(folder, name);
    fs.rename(path, path + kTemporarySuffix);
  }
  fs.sync_folder(folder);
  remove_leftovers(fs, folder);
}

}  // namespace

std::string checkpoint_name(int64_t step) {
  char text[32];
  std::snprintf(text, sizeof text, "step-%06lld", static_cast<long long>(step));
  return text;
}

std::string latest_checkpoint(FileSystem& fs, const std::string& folder) {
  std::string name = name_in(read_index(fs, folder), "latest");
  std::optional<int64_t> created;  // of `name`, when that is whole
  if (!name.empty()) created = created_if_whole(fs, join_path(folder, name));
  const int64_t recorded_step = created ? *step_of(name) : -1;
  for (const Candidate& candidate : candidates(fs, folder)) {
    if (candidate.step <= recorded_step) continue;
    const std::optional<int64_t> other = created_if_whole(fs, join_path(folder, candidate.name));
    if (!other || (created && *other < *created)) continue;
    name = candidate.name;
    created = other;
  }
  return created ? join_path(folder, name) : "";
}

std::string best_checkpoint(FileSystem& fs, const std::string& folder) {
  for (const std::string& name : best_names(read_index(fs, folder))) {
    const std::string path = join_path(folder, name);
    if (created_if_whole(fs, path)) return path;
  }
  return "";
}

void record_latest(FileSystem& fs, const std::string& folder, const std::string& name) {
  check_name(name);
  if (!fs.is_folder(join_path(folder, name))) {
    fail(Code::kNotFound, join_path(folder, name), ": there is no checkpoint of this name to record");
  }
  record(fs, folder, "latest", name);
}

void record_best(FileSystem& fs, const std::string& folder, const std::vector<std::string>& names) {
  Json list = Json::array();
  for (const std::string& name : names) {
    check_name(name);
    if (fs.is_folder(join_path(folder, name))) list.push_back(name);
  }
  record(fs, folder, "best", std::move(list));
}

void remove(FileSystem& fs, const std::string& folder, const std::string& name) {
  remove_leftovers(fs, folder);
  remove_all(fs, folder, {name});
}

void prune(FileSystem& fs, const std::string& folder, int64_t keep) {
  if (keep < 0) fail(Code::kInvalidArgument, "the number of checkpoints to keep must be at least 0, not ", keep);
  if (!fs.is_folder(folder)) return;
  remove_leftovers(fs, folder);
  if (keep == 0) return;
  std::vector<std::pair<std::optional<int64_t>, std::string>> found;  // by age, damaged ones first
  for (const Candidate& candidate : candidates(fs, folder)) {
    found.emplace_back(created_if_whole(fs, join_path(folder, candidate.name)), candidate.name);
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  const Json index = read_index(fs, folder);
  const std::vector<std::string> best = best_names(index);
  std::set<std::string> kept = {name_in(index, "latest"), base_name(latest_checkpoint(fs, folder))};
  kept.insert(best.begin(), best.end());
  std::vector<std::string> old;
  for (size_t i = 0; i + static_cast<size_t>(keep) < found.size(); ++i) {
    if (kept.count(found[i].second) == 0) old.push_back(found[i].second);
  }
  remove_all(fs, folder, old);
}

}  // namespace inlaid::checkpoint

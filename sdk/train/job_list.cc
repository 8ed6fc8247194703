#include "sdk/train/job_list.h"

#include "sdk/base/error.h"
#include "sdk/checkpoint/checkpoint.h"
#include "sdk/train/output_folder.h"

namespace inlaid::train {
namespace {

Json describe(FileSystem& files, const std::string& folder) {
  const std::string job_path = join_path(folder, kJobFile), state_path = join_path(folder, kStateFile);
  const bool running = files.is_locked(join_path(folder, kLockFile));
  Json json;
  json["output_dir"] = folder;
  json["created"] = string_at(parse_json(read_text(files, job_path), job_path), "created", job_path);
  json["state"] = running ? "running" : "created";
  json["text"] = "";
  json["step"] = 0;
  json["total_steps"] = 0;
  json["updated"] = 0.0;
  if (files.exists(state_path)) {
    const Json state = parse_json(read_text(files, state_path), state_path);
    const std::string recorded = string_at(state, "state", state_path);
    json["state"] = running ? "running" : recorded == "running" ? "interrupted" : recorded;
    json["text"] = string_at(state, "text", state_path);
    json["step"] = int_at(state, "step", state_path);
    json["total_steps"] = int_at(state, "total_steps", state_path);
    json["updated"] = number_at(state, "updated", state_path);
  }
  const std::string checkpoints = join_path(folder, kCheckpointsFolder);
  json["latest_checkpoint"] = checkpoint::latest_checkpoint(files, checkpoints);
  json["best_checkpoint"] = checkpoint::best_checkpoint(files, checkpoints);
  return json;
}

[[noreturn]] void fail_running(const std::string& folder) {
  fail(Code::kFailedPrecondition, folder, " is being trained by another run, in this process or another one");
}

}  // namespace

std::shared_ptr<FileLock> lock_job(FileSystem& files, const std::string& folder) {
  files.make_folders(folder);
  std::shared_ptr<FileLock> lock = files.lock(join_path(folder, kLockFile));
  if (lock == nullptr) fail_running(folder);
  return lock;
}

void check_not_running(FileSystem& files, const std::string& folder) {
  if (files.is_locked(join_path(folder, kLockFile))) fail_running(folder);
}

Json list_jobs(FileSystem& files, const std::string& folder) {
  if (!files.is_folder(folder)) fail(Code::kNotFound, folder, " is no folder");
  Json jobs = Json::array();
  for (const std::string& name : files.list(folder)) {
    const std::string path = join_path(folder, name);
    if (!files.exists(join_path(path, kJobFile))) continue;
    try {
      jobs.push_back(describe(files, path));
    } catch (const Error& error) {
      jobs.push_back({{"output_dir", path}, {"state", "damaged"}, {"text", error.message()}});
    }
  }
  return jobs;
}

}  // namespace inlaid::train

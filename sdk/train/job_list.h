// The jobs of a folder, as their output folders tell: what a host that was restarted goes by.
//
// An output folder is a durable record: job.json (the configuration), state.json (what became of it, written anew when it
// starts, at every checkpoint and at its end) and checkpoints/. While a job trains, its run holds the lock of the file
// `lock`, which ends with the process: so "running" without the lock means that the process was killed.
#ifndef INLAID_SDK_TRAIN_JOB_LIST_H_
#define INLAID_SDK_TRAIN_JOB_LIST_H_

#include <memory>
#include <string>

#include "sdk/base/file_system.h"
#include "sdk/base/json.h"

namespace inlaid::train {

// The lock of an output folder. kFailedPrecondition while another run trains there.
std::shared_ptr<FileLock> lock_job(FileSystem& files, const std::string& folder);

// kFailedPrecondition if that lock is held.
void check_not_running(FileSystem& files, const std::string& folder);

// One object per subfolder of `folder` that holds a job, by name: {"output_dir", "created", "state", "text", "step",
// "total_steps", "updated" (seconds since 1970), "latest_checkpoint", "best_checkpoint"}. States: created (never trained),
// running, interrupted (killed), stopped, cancelled, failed, done. A job whose record cannot be read has the state "damaged"
// and says why in "text". kNotFound if there is no such folder.
Json list_jobs(FileSystem& files, const std::string& folder);

}  // namespace inlaid::train

#endif  // INLAID_SDK_TRAIN_JOB_LIST_H_

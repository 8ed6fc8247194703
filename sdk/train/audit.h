// audit.json of an output folder: what a result was made from, by which program, and what came of it.
//
//   {"version": 1, "created": "...", "inlaid_version": "...", "kernels": "avx512", "cpu_threads": 2, "seed": 42,
//    "inputs":  [{"role": "model", "path": "/m/model.gguf", "bytes": n, "sha256": "..."}, ...],
//    "complete": true, "step": 60, "ended": "done",
//    "outputs": [{"path": "checkpoints/step-000060/manifest.pb", "bytes": n, "sha256": "..."}, ...]}
//
// Inputs are the files of model, tokenizer, chat template, adapter and data, hashed when the job is created; job.json, which
// holds the configuration, is the first of the outputs. Outputs are hashed at the end of a run; while a job trains, and after
// its process was killed, "complete" is false and there are none. Of a checkpoint its manifest is hashed, which holds the
// hashes of its index, which holds the checksums of its tensors: so the large files are read once, by verify.
//
// Cost: one reading of all inputs at the creation of a job and at each resume, file beside file on the pool.
// Test: tests/faults/audit_test.cc.
#ifndef INLAID_SDK_TRAIN_AUDIT_H_
#define INLAID_SDK_TRAIN_AUDIT_H_

#include <memory>
#include <string>

#include "sdk/base/json.h"
#include "sdk/tensor/runtime.h"
#include "sdk/train/event_writer.h"

namespace inlaid::train {

class Job;

// Writes the audit of a job that has just been created.
void write_audit(const Job& job, const std::string& folder);
// Hashes the inputs that an audit names again: kFailedPrecondition naming every file that changed. A file that is gone is left
// to whoever opens it, and so is a folder without an audit.
void check_inputs(Runtime& runtime, const std::string& folder);
// At the end of a run: the outputs. Has to be the last writer, after all others have closed their files.
std::unique_ptr<EventWriter> open_audit_writer(FileSystem& files, const std::string& folder);
// Everything that can be checked about an output folder: inputs, outputs and every checkpoint. {"ok", "problems": [texts],
// "inputs": n, "outputs": n, "checkpoints": n, "tensors": n, "bytes": n}; tensors and bytes are those of the checkpoints.
// kNotFound if there is no job.
Json verify_job(Runtime& runtime, const std::string& folder);

}  // namespace inlaid::train

#endif  // INLAID_SDK_TRAIN_AUDIT_H_

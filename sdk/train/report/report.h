// The report of a job for people: one HTML page, a pure function of the output folder.
#ifndef INLAID_SDK_TRAIN_REPORT_REPORT_H_
#define INLAID_SDK_TRAIN_REPORT_REPORT_H_

#include <string>

#include "sdk/base/file_system.h"

namespace inlaid::train {

// Curves of loss, accuracy, learning rate, gradient norm, tokens/s and memory; answers to the sample prompts before and after;
// what the data report says; warnings, checkpoints and the configuration. Needs job.json and reads events.jsonl, which may
// still grow. kNotFound if the folder holds no job. Everything that came from outside is escaped.
std::string report_html(FileSystem& files, const std::string& folder);

}  // namespace inlaid::train

#endif  // INLAID_SDK_TRAIN_REPORT_REPORT_H_

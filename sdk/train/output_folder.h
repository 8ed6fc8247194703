// The names of what lies in the output folder of a job.
#ifndef INLAID_SDK_TRAIN_OUTPUT_FOLDER_H_
#define INLAID_SDK_TRAIN_OUTPUT_FOLDER_H_

namespace inlaid::train {

inline constexpr const char* kJobFile = "job.json";
inline constexpr const char* kAuditFile = "audit.json";
inline constexpr const char* kStateFile = "state.json";
inline constexpr const char* kDataReportFile = "data_report.json";
inline constexpr const char* kEventsFile = "events.jsonl";
inline constexpr const char* kReportFile = "report.html";
inline constexpr const char* kStepsFile = "steps.csv";
inline constexpr const char* kEvalsFile = "evals.csv";
inline constexpr const char* kTensorBoardFolder = "events";
inline constexpr const char* kLockFile = "lock";
inline constexpr const char* kCheckpointsFolder = "checkpoints";

}  // namespace inlaid::train

#endif  // INLAID_SDK_TRAIN_OUTPUT_FOLDER_H_

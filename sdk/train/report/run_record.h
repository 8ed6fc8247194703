// What an output folder tells about a job: job.json, data_report.json and events.jsonl, as the report shows them.
#ifndef INLAID_SDK_TRAIN_REPORT_RUN_RECORD_H_
#define INLAID_SDK_TRAIN_REPORT_RUN_RECORD_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sdk/base/file_system.h"
#include "sdk/base/json.h"
#include "sdk/train/report/curve.h"

namespace inlaid::train {

struct RunRecord {
  Json job;   // job.json
  Json data;  // data_report.json, null when there is none

  std::map<std::string, Curve> train, eval;  // metric name to its curve
  std::map<std::string, double> last;        // metrics of the last step event
  struct Sample {
    std::string prompt, before, after;  // before: the first answer, after: the latest one
    int64_t step_before = 0, step_after = 0;
  };
  std::vector<Sample> samples;
  struct Note {
    int64_t step;
    std::string text;
  };
  std::vector<Note> warnings, changes, checkpoints;
  std::string state = "starting";  // the last state of the run
  std::string end;                 // how it ended; "" while it goes on, or when it was killed
  int64_t steps_done = 0;
  double first_time = 0, last_time = 0;  // seconds since 1970
  int64_t unreadable_lines = 0;          // cut off by a crash, or no events
};

// Members of an object that may be anything: `otherwise` where the key is missing or holds another type.
std::string text_in(const Json& object, const char* key, const std::string& otherwise = "");
int64_t integer_in(const Json& object, const char* key);
Json object_in(const Json& object, const char* key);  // {}

// kNotFound if the folder holds no job. A line of events.jsonl whose fields have other types is counted as unreadable.
RunRecord read_run_record(FileSystem& files, const std::string& folder);

}  // namespace inlaid::train

#endif  // INLAID_SDK_TRAIN_REPORT_RUN_RECORD_H_

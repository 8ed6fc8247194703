// Files that a run's events are written to (logging.writers), all below the job's output folder and all appended to when the
// job is resumed:
//
//   jsonl        events.jsonl: every event, one JSON document a line; the record from which report.html is made
//   csv          steps.csv and evals.csv: one row per event, columns as in the header
//   tensorboard  events/events.out.tfevents.*: one file per process that trained
//   html         report.html: written anew after every evaluation and at the end, see report.h
//
// Beside them always state.json, the state of the job for whoever lists jobs (job_list.h).
//
// A job that was killed writes the steps after its last checkpoint again when it is resumed; the later row counts.
// Tests: event_writer_test.cc, tests/train/test_tensorboard.py.
#ifndef INLAID_SDK_TRAIN_EVENT_WRITER_H_
#define INLAID_SDK_TRAIN_EVENT_WRITER_H_

#include <memory>
#include <string>
#include <vector>

#include "sdk/base/file_system.h"
#include "sdk/train/event.h"

namespace inlaid::train {

class EventWriter {
 public:
  virtual ~EventWriter() = default;
  virtual void write(const Event& event) = 0;
  virtual void close() = 0;  // reports a late error of the disk
};

// The writers of these names, in an order in which each may read what those before it wrote, and that of state.json; none
// without a folder. Creates what is missing of `folder`. kFailedPrecondition if a file of an earlier run cannot be continued.
std::vector<std::unique_ptr<EventWriter>> open_writers(FileSystem& files, const std::string& folder,
                                                       const std::vector<std::string>& names);

// One of the above.
std::unique_ptr<EventWriter> open_tensorboard_writer(FileSystem& files, const std::string& folder);

}  // namespace inlaid::train

#endif  // INLAID_SDK_TRAIN_EVENT_WRITER_H_

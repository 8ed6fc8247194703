#include "sdk/train/event_writer.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "sdk/base/error.h"
#include "sdk/base/json.h"
#include "sdk/train/audit.h"
#include "sdk/train/output_folder.h"
#include "sdk/train/report/report.h"

namespace inlaid::train {
namespace {

void append(WritableFile& file, const std::string& text) {
  file.write(std::as_bytes(std::span(text.data(), text.size())));
}

// Opens a file for whole lines. A line that a crash cut off stays a line of its own.
std::unique_ptr<WritableFile> append_lines(FileSystem& files, const std::string& path) {
  char last = '\n';
  if (files.exists(path)) {
    const std::unique_ptr<ReadableFile> old = files.open(path);
    if (old->size() > 0) old->read_at(old->size() - 1, std::as_writable_bytes(std::span(&last, 1)));
  }
  std::unique_ptr<WritableFile> file = files.append(path);
  if (last != '\n') append(*file, "\n");
  return file;
}

// The first line of a file, or as much of it as `limit` bytes hold; "" if there is no file.
std::string first_line(FileSystem& files, const std::string& path, uint64_t limit) {
  if (!files.exists(path)) return "";
  const std::unique_ptr<ReadableFile> file = files.open(path);
  std::string text(static_cast<size_t>(std::min(limit, file->size())), '\0');
  file->read_at(0, std::as_writable_bytes(std::span(text.data(), text.size())));
  return text.substr(0, text.find('\n'));
}

class JsonlWriter : public EventWriter {
 public:
  JsonlWriter(FileSystem& files, const std::string& path) : file_(append_lines(files, path)) {}
  void write(const Event& event) override { append(*file_, event.json() + "\n"); }
  void close() override { file_->close(); }

 private:
  std::unique_ptr<WritableFile> file_;
};

// A table of one kind of event. Its header comes from the first event, or from the file when there is one.
class Table {
 public:
  Table(FileSystem& files, std::string path) : files_(files), path_(std::move(path)) {}

  void add(const Event& event) {
    if (file_ == nullptr) open(event);
    std::string row = std::to_string(event.step) + "," + number(event.time);
    for (const auto& metric : event.metrics) {
      row += ',';
      if (std::isfinite(metric.second)) row += number(metric.second);
    }
    append(*file_, row + "\n");
  }
  void close() {
    if (file_ != nullptr) file_->close();
  }

 private:
  static std::string number(double value) {
    char text[40];
    std::snprintf(text, sizeof text, "%.17g", value);
    return text;
  }

  void open(const Event& event) {
    std::string header = "step,time";
    for (const auto& metric : event.metrics) {
      header += ',';
      header += metric.first;
    }
    const std::string old = first_line(files_, path_, header.size() + 1);
    if (!old.empty() && old != header) {
      fail(Code::kFailedPrecondition, path_, " has other columns than this version writes; move it away to go on");
    }
    file_ = append_lines(files_, path_);
    if (old.empty()) append(*file_, header + "\n");
  }

  FileSystem& files_;
  std::string path_;
  std::unique_ptr<WritableFile> file_;
};

class CsvWriter : public EventWriter {
 public:
  CsvWriter(FileSystem& files, const std::string& folder)
      : steps_(files, join_path(folder, kStepsFile)), evals_(files, join_path(folder, kEvalsFile)) {}
  void write(const Event& event) override {
    if (event.kind == EventKind::step) steps_.add(event);
    if (event.kind == EventKind::eval) evals_.add(event);
  }
  void close() override {
    steps_.close();
    evals_.close();
  }

 private:
  Table steps_, evals_;
};

class HtmlWriter : public EventWriter {
 public:
  HtmlWriter(FileSystem& files, const std::string& folder) : files_(files), folder_(folder) {}
  void write(const Event& event) override {
    if (event.kind != EventKind::eval && event.kind != EventKind::done) return;
    write_atomically(files_, join_path(folder_, kReportFile), report_html(files_, folder_));
  }
  void close() override {}

 private:
  FileSystem& files_;
  std::string folder_;
};

class StateWriter : public EventWriter {
 public:
  StateWriter(FileSystem& files, const std::string& folder) : files_(files), path_(join_path(folder, kStateFile)) {}

  void write(const Event& event) override {
    for (const auto& [name, value] : event.metrics) {
      if (name == "total_steps") total_steps_ = static_cast<int64_t>(value);
    }
    const bool started = event.kind == EventKind::state && event.text == "running";
    if (!started && event.kind != EventKind::checkpoint && event.kind != EventKind::done) return;
    Json json;
    json["state"] = event.kind == EventKind::done ? end_of(event.text) : "running";
    json["text"] = event.kind == EventKind::done ? event.text : "";
    json["step"] = event.step;
    json["total_steps"] = total_steps_;
    json["updated"] = event.time;
    write_atomically(files_, path_, to_text(json) + "\n");
  }
  void close() override {}

 private:
  static const char* end_of(const std::string& text) {
    if (text.starts_with("failed")) return "failed";
    if (text == "stopped" || text.starts_with("stopped: ")) return "stopped";  // "stopped early: ..." is done
    return text == "cancelled" ? "cancelled" : "done";
  }

  FileSystem& files_;
  std::string path_;
  int64_t total_steps_ = 0;
};

}  // namespace

std::vector<std::unique_ptr<EventWriter>> open_writers(FileSystem& files, const std::string& folder,
                                                       const std::vector<std::string>& names) {
  const auto wanted = [&](const char* name) { return std::find(names.begin(), names.end(), name) != names.end(); };
  std::vector<std::unique_ptr<EventWriter>> writers;
  if (folder.empty()) return writers;
  files.make_folders(folder);
  if (wanted("jsonl")) writers.push_back(std::make_unique<JsonlWriter>(files, join_path(folder, kEventsFile)));
  if (wanted("csv")) writers.push_back(std::make_unique<CsvWriter>(files, folder));
  if (wanted("tensorboard")) writers.push_back(open_tensorboard_writer(files, join_path(folder, kTensorBoardFolder)));
  if (wanted("html")) writers.push_back(std::make_unique<HtmlWriter>(files, folder));
  writers.push_back(std::make_unique<StateWriter>(files, folder));
  writers.push_back(open_audit_writer(files, folder));
  return writers;
}

}  // namespace inlaid::train

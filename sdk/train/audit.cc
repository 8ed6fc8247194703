#include "sdk/train/audit.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "sdk/base/error.h"
#include "sdk/base/hash.h"
#include "sdk/checkpoint/checkpoint.h"
#include "sdk/train/job.h"
#include "sdk/train/output_folder.h"

namespace inlaid::train {
namespace {

constexpr uint64_t kMaxAuditBytes = uint64_t{64} << 20;

// A file by its role ("model", "training data"; "" for an output), and what is recorded or found of it.
struct Entry {
  std::string role, path;
  uint64_t bytes = 0;
  std::string sha256 = "";
  bool missing = false;
};

Json to_json(const std::vector<Entry>& entries) {
  Json list = Json::array();
  for (const Entry& entry : entries) {
    Json json;
    if (!entry.role.empty()) json["role"] = entry.role;
    json["path"] = entry.path;
    json["bytes"] = entry.bytes;
    json["sha256"] = entry.sha256;
    list.push_back(std::move(json));
  }
  return list;
}

std::vector<Entry> from_json(const Json& list, const std::string& what) {
  if (!list.is_array()) fail(Code::kDataLoss, what, ": a list of files is expected");
  std::vector<Entry> entries;
  for (const Json& json : list) {
    Entry entry;
    if (json.contains("role")) entry.role = string_at(json, "role", what);
    entry.path = string_at(json, "path", what);
    entry.bytes = static_cast<uint64_t>(int_at(json, "bytes", what));
    entry.sha256 = string_at(json, "sha256", what);
    entries.push_back(std::move(entry));
  }
  return entries;
}

// Fills in size and hash of a file below `folder`.
void measure(FileSystem& files, const std::string& folder, Entry* entry) {
  const std::string path = join_path(folder, entry->path);
  entry->missing = !files.exists(path) || files.is_folder(path);
  if (entry->missing) return;
  entry->bytes = files.open(path)->size();
  entry->sha256 = sha256_file(files, path);
}

void measure_all(Runtime& runtime, const std::string& folder, std::vector<Entry>* entries) {
  runtime.pool.run(static_cast<int64_t>(entries->size()),
                   [&](int64_t task, int) { measure(runtime.files, folder, &(*entries)[static_cast<size_t>(task)]); });
}

// The files that a loader reads from a folder of a model, a tokenizer or an adapter; or the file itself.
void add_files(FileSystem& files, const std::string& role, const std::string& path, std::vector<Entry>* entries) {
  if (!files.is_folder(path)) {
    entries->push_back({role, path});
    return;
  }
  for (const std::string& name : files.list(path)) {
    const std::string file = join_path(path, name);
    bool read = false;
    for (const char* ending : {".json", ".jinja", ".safetensors", ".model"}) read = read || name.ends_with(ending);
    if (read && !files.is_folder(file)) entries->push_back({role, file});
  }
}

std::vector<Entry> inputs_of(const Job& job, FileSystem& files) {
  std::vector<Entry> entries;
  for (const auto& [key, role] : {std::pair{"model.path", "model"}, std::pair{"model.tokenizer", "tokenizer"},
                                  std::pair{"adapter.path", "adapter"}, std::pair{"data.chat_template", "chat template"}}) {
    const auto path = job.config().optional_text(key);
    if (!path || path->find_first_of("{\n") != std::string::npos) continue;  // an inline template is part of the configuration
    add_files(files, role, *path, &entries);
  }
  std::set<std::string> seen;
  const auto add_data = [&](const char* role, const std::shared_ptr<const data::Dataset>& dataset) {
    if (dataset == nullptr) return;
    for (const data::Report::File& file : dataset->report().files) {
      if (seen.insert(file.file).second) entries.push_back({role, file.file});
    }
  };
  add_data("training data", job.train_data());
  add_data("evaluation data", job.eval_data());
  return entries;
}

Json read_audit(FileSystem& files, const std::string& folder) {
  const std::string path = join_path(folder, kAuditFile);
  return parse_json(read_text(files, path, kMaxAuditBytes), path);
}

void put(FileSystem& files, const std::string& folder, const Json& audit) {
  // File names need not be UTF-8.
  write_atomically(files, join_path(folder, kAuditFile), audit.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

// What a run leaves in its folder, without what is only kept for speed (cache), the exports that people make, and the tensors
// and indices of checkpoints.
std::vector<Entry> outputs_of(FileSystem& files, const std::string& folder) {
  std::vector<Entry> entries;
  const auto add = [&](const std::string& name) {
    if (files.exists(join_path(folder, name))) entries.push_back({"", name});
  };
  for (const char* name : {kJobFile, kDataReportFile, kStateFile, kEventsFile, kReportFile, kStepsFile, kEvalsFile}) add(name);
  for (const char* below : {kTensorBoardFolder, kCheckpointsFolder}) {
    const std::string path = join_path(folder, below);
    if (!files.is_folder(path)) continue;
    for (const std::string& name : files.list(path)) {
      if (name.ends_with(".tmp")) continue;
      const std::string entry = join_path(below, name);
      add(files.is_folder(join_path(folder, entry)) ? join_path(entry, checkpoint::kManifestFile) : entry);
    }
  }
  return entries;
}

class AuditWriter : public EventWriter {
 public:
  AuditWriter(FileSystem& files, const std::string& folder) : files_(files), folder_(folder) {}

  void write(const Event& event) override {
    step_ = event.step;
    if (event.kind == EventKind::done) end_ = event.text;
    if (started_ || event.kind != EventKind::state || event.text != "running") return;
    started_ = true;  // what was recorded of an earlier run holds no longer
    update({}, false);
  }
  void close() override {
    std::vector<Entry> outputs = outputs_of(files_, folder_);
    for (Entry& entry : outputs) measure(files_, folder_, &entry);
    update(outputs, true);
  }

 private:
  void update(const std::vector<Entry>& outputs, bool complete) {
    if (!files_.exists(join_path(folder_, kAuditFile))) return;  // of a version that wrote none
    Json audit = read_audit(files_, folder_);
    audit["complete"] = complete;
    audit["step"] = step_;
    audit["ended"] = end_;
    audit["outputs"] = to_json(outputs);
    put(files_, folder_, audit);
  }

  FileSystem& files_;
  std::string folder_;
  int64_t step_ = 0;
  std::string end_;  // how the run ended
  bool started_ = false;
};

std::string shortened(const std::string& hash) { return hash.substr(0, 16); }

// One text for each file that is not what was recorded.
std::vector<std::string> differences(Runtime& runtime, const std::string& folder, const std::vector<Entry>& recorded, const char* since,
                                     bool missing_too) {
  std::vector<Entry> found = recorded;
  measure_all(runtime, folder, &found);
  std::vector<std::string> texts;
  for (size_t i = 0; i < recorded.size(); ++i) {
    const Entry &then = recorded[i], &now = found[i];
    std::string text = then.role;
    if (!text.empty()) text += " file ";
    text += then.path;
    if (now.missing) {
      if (missing_too) texts.push_back(text + " is missing");
    } else if (now.bytes != then.bytes) {
      texts.push_back(text + " changed since " + since + ": " + std::to_string(then.bytes) + " bytes then, " +
                      std::to_string(now.bytes) + " now");
    } else if (now.sha256 != then.sha256) {
      texts.push_back(text + " changed since " + since + ": sha256 " + shortened(then.sha256) + " then, " + shortened(now.sha256) + " now");
    }
  }
  return texts;
}

}  // namespace

void write_audit(const Job& job, const std::string& folder) {
  Runtime& runtime = *job.trainer()->model()->runtime();
  std::vector<Entry> inputs = inputs_of(job, runtime.files);
  measure_all(runtime, "", &inputs);
  Json audit;
  audit["version"] = 1;
  audit["created"] = job.clock();
  audit["inlaid_version"] = INLAID_VERSION;
  audit["kernels"] = runtime.kernels.name;
  audit["cpu_threads"] = runtime.pool.threads();
  audit["seed"] = job.config().integer("train.seed");
  audit["inputs"] = to_json(inputs);
  audit["complete"] = false;
  audit["step"] = 0;
  audit["ended"] = "";
  audit["outputs"] = Json::array();
  put(runtime.files, folder, audit);
}

void check_inputs(Runtime& runtime, const std::string& folder) {
  if (!runtime.files.exists(join_path(folder, kAuditFile))) return;
  const Json audit = read_audit(runtime.files, folder);
  const std::string what = join_path(folder, kAuditFile);
  const std::vector<std::string> changed =
      differences(runtime, "", from_json(at(audit, "inputs", what), what), "the job was created", false);
  if (changed.empty()) return;
  std::string all = changed.front();
  for (size_t i = 1; i < changed.size(); ++i) all += "; " + changed[i];
  fail(Code::kFailedPrecondition, folder, ": ", all);
}

std::unique_ptr<EventWriter> open_audit_writer(FileSystem& files, const std::string& folder) {
  return std::make_unique<AuditWriter>(files, folder);
}

Json verify_job(Runtime& runtime, const std::string& folder) {
  FileSystem& files = runtime.files;
  if (!files.exists(join_path(folder, kJobFile))) fail(Code::kNotFound, folder, " holds no job: there is no ", kJobFile);
  std::vector<std::string> problems;
  size_t inputs = 0, outputs = 0;
  try {
    const std::string what = join_path(folder, kAuditFile);
    const Json audit = read_audit(files, folder);
    const std::vector<Entry> in = from_json(at(audit, "inputs", what), what), out = from_json(at(audit, "outputs", what), what);
    inputs = in.size();
    problems = differences(runtime, "", in, "the job was created", true);
    if (bool_at(audit, "complete", what) && !files.is_locked(join_path(folder, kLockFile))) {
      outputs = out.size();
      for (std::string& text : differences(runtime, folder, out, "the run ended", true)) problems.push_back(std::move(text));
    }
  } catch (const Error& error) {
    problems.push_back(error.message());
  }
  int64_t checkpoints = 0, tensors = 0, bytes = 0;
  const std::string below = join_path(folder, kCheckpointsFolder);
  if (files.is_folder(below)) {
    for (const std::string& name : files.list(below)) {
      if (!name.starts_with("step-") || name.ends_with(".tmp")) continue;
      const Json report = checkpoint::verify(files, join_path(below, name));
      ++checkpoints;
      tensors += report.at("tensors").get<int64_t>();
      bytes += report.at("bytes").get<int64_t>();
      for (const Json& problem : report.at("problems")) problems.push_back(problem.get<std::string>());
    }
  }
  Json report;
  report["ok"] = problems.empty();
  report["problems"] = problems;
  report["inputs"] = inputs;
  report["outputs"] = outputs;
  report["checkpoints"] = checkpoints;
  report["tensors"] = tensors;
  report["bytes"] = bytes;
  return report;
}

}  // namespace inlaid::train

#include "sdk/train/report/run_record.h"

#include <algorithm>
#include <functional>

#include "sdk/base/error.h"
#include "sdk/train/output_folder.h"

namespace inlaid::train {
namespace {

constexpr uint64_t kBlockBytes = uint64_t{1} << 20;

// The lines of a file that may be larger than memory. A last line without its end is being written, or was cut off: skipped.
void for_each_line(const ReadableFile& file, const std::function<void(std::string_view)>& visit) {
  std::string block, line;
  for (uint64_t offset = 0; offset < file.size(); offset += block.size()) {
    block.resize(static_cast<size_t>(std::min(kBlockBytes, file.size() - offset)));
    file.read_at(offset, std::as_writable_bytes(std::span(block.data(), block.size())));
    for (size_t begin = 0; begin < block.size();) {
      const size_t end = block.find('\n', begin);
      line.append(block, begin, end == std::string::npos ? end : end - begin);
      if (end == std::string::npos) break;
      visit(line);
      line.clear();
      begin = end + 1;
    }
  }
}

void add_metrics(const Json& event, int64_t step, std::map<std::string, Curve>* curves) {
  for (const auto& [name, value] : event.items()) {
    if (value.is_number() && name != "step" && name != "seq" && name != "time") (*curves)[name].add(step, value.get<double>());
  }
}

void add_sample(const Json& event, int64_t step, std::vector<RunRecord::Sample>* samples) {
  const std::string prompt = text_in(event, "prompt"), text = text_in(event, "text");
  auto found = std::find_if(samples->begin(), samples->end(), [&](const auto& sample) { return sample.prompt == prompt; });
  if (found == samples->end()) {
    samples->push_back({prompt, text, text, step, step});
  } else {
    found->after = text;
    found->step_after = step;
  }
}

bool has_types(const Json& event) {
  const auto is = [&](const char* key, auto test) {
    const auto found = event.find(key);
    return found == event.end() || test(*found);
  };
  const auto text = [](const Json& value) { return value.is_string(); };
  return is("event", text) && is("text", text) && is("prompt", text) &&
         is("step", [](const Json& value) { return value.is_number_integer(); }) &&
         is("time", [](const Json& value) { return value.is_number(); });
}

void add_event(const Json& event, RunRecord* record) {
  const std::string kind = text_in(event, "event"), text = text_in(event, "text");
  const int64_t step = integer_in(event, "step");
  const double time = event.contains("time") ? event["time"].get<double>() : 0;
  if (record->first_time == 0) record->first_time = time;
  record->last_time = std::max(record->last_time, time);
  if (kind == "step") {
    record->steps_done = step;
    record->end.clear();
    add_metrics(event, step, &record->train);
    for (const auto& [name, value] : event.items()) {
      if (value.is_number()) record->last[name] = value.get<double>();
    }
  } else if (kind == "eval") {
    add_metrics(event, step, &record->eval);
  } else if (kind == "sample") {
    add_sample(event, step, &record->samples);
  } else if (kind == "warning") {
    record->warnings.push_back({step, text});
  } else if (kind == "change") {
    record->changes.push_back({step, text});
  } else if (kind == "checkpoint") {
    record->checkpoints.push_back({step, text});
  } else if (kind == "state") {
    record->state = text;
  } else if (kind == "done") {
    record->end = text;
  }
}

Json read_json(FileSystem& files, const std::string& path) {
  Json json = parse_json(read_text(files, path), path);
  if (!json.is_object()) fail(Code::kDataLoss, path, ": must hold a JSON object");
  return json;
}

}  // namespace

std::string text_in(const Json& object, const char* key, const std::string& otherwise) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : otherwise;
}

int64_t integer_in(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number_integer() ? found->get<int64_t>() : 0;
}

Json object_in(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_object() ? *found : Json::object();
}

RunRecord read_run_record(FileSystem& files, const std::string& folder) {
  const std::string job = join_path(folder, kJobFile), data = join_path(folder, kDataReportFile);
  const std::string events = join_path(folder, kEventsFile);
  if (!files.exists(job)) fail(Code::kNotFound, folder, " holds no job: there is no ", kJobFile);
  RunRecord record;
  record.job = read_json(files, job);
  if (files.exists(data)) record.data = read_json(files, data);
  if (!files.exists(events)) return record;
  for_each_line(*files.open(events), [&](std::string_view line) {
    Json event;
    try {
      event = parse_json(line, events);
    } catch (const Error&) {
      ++record.unreadable_lines;
      return;
    }
    if (event.is_object() && has_types(event)) {
      add_event(event, &record);
    } else {
      ++record.unreadable_lines;
    }
  });
  return record;
}

}  // namespace inlaid::train

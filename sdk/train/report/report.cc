#include "sdk/train/report/report.h"

#include <algorithm>
#include <cstdio>

#include "sdk/base/json.h"
#include "sdk/train/report/chart.h"
#include "sdk/train/report/page.h"
#include "sdk/train/report/run_record.h"

namespace inlaid::train {
namespace {

constexpr double kMiB = 1048576;
constexpr size_t kShownRows = 20;  // of refused and dropped rows; data_report.json has all

std::string number(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string duration(double seconds) {
  const auto s = static_cast<long long>(std::min(seconds, 1e12));
  char text[48];
  if (s >= 3600) {
    std::snprintf(text, sizeof text, "%lld h %02lld min", s / 3600, s / 60 % 60);
  } else {
    std::snprintf(text, sizeof text, "%lld min %02lld s", s / 60, s % 60);
  }
  return text;
}

const Curve* find(const std::map<std::string, Curve>& curves, const std::string& name) {
  const auto found = curves.find(name);
  return found == curves.end() || found->second.empty() ? nullptr : &found->second;
}

double last_of(const RunRecord& record, const char* name) {
  const auto found = record.last.find(name);
  return found == record.last.end() ? 0 : found->second;
}

std::string card(const std::string& value, const std::string& what) {
  return "<div class=\"card\"><b>" + html_escape(value) + "</b><span>" + html_escape(what) + "</span></div>\n";
}

// "3.59 → 1.44" of a metric before and after, from its first and last point.
void change_card(const RunRecord& record, const char* metric, const char* format, double factor, const char* what,
                 std::string* out) {
  const Curve* curve = find(record.eval, metric);
  if (curve == nullptr) return;
  const std::string first = number(format, factor * curve->points().front().mean());
  const std::string last = number(format, factor * curve->points().back().mean());
  *out += card(curve->points().size() > 1 ? first + " → " + last : last, what);
}

std::string cards(const RunRecord& record) {
  std::string out = "<div class=\"cards\">\n";
  change_card(record, "eval_loss", "%.4f", 1, "held-out loss", &out);
  change_card(record, "eval_mean_token_accuracy", "%.1f %%", 100, "held-out accuracy", &out);
  const double total = last_of(record, "total_steps");
  out += card(std::to_string(record.steps_done) + (total > 0 ? " / " + number("%.0f", total) : ""), "steps");
  if (!record.last.empty()) {
    out += card(short_number(last_of(record, "num_rows")), "rows seen");
    out += card(short_number(last_of(record, "num_tokens")), "tokens seen");
    out += card(number("%.0f", last_of(record, "tokens_per_second")), "tokens/s at the end");
    out += card(number("%.0f MiB", last_of(record, "memory_peak_bytes") / kMiB), "peak memory of the engine");
  }
  if (record.last_time > record.first_time) out += card(duration(record.last_time - record.first_time), "first to last event");
  return out + "</div>\n";
}

std::string charts(const RunRecord& record) {
  const auto train = [&](const char* name) { return find(record.train, name); };
  std::string out = "<div class=\"charts\">\n";
  out += line_chart("Loss", {{"training", train("loss")}, {"held-out", find(record.eval, "eval_loss"), true}});
  out += line_chart("Token accuracy", {{"training", train("mean_token_accuracy")},
                                       {"held-out", find(record.eval, "eval_mean_token_accuracy"), true}});
  out += line_chart("Learning rate", {{"", train("learning_rate")}});
  out += line_chart("Gradient norm", {{"", train("grad_norm")}});
  out += line_chart("Tokens/s", {{"", train("tokens_per_second")}});
  std::vector<Line> memory;
  for (const auto& [name, curve] : record.train) {
    const std::string prefix = "memory_peak_";
    if (name.starts_with(prefix) && name != "memory_peak_bytes" && !curve.empty() && curve.high() > 0) {
      memory.push_back({name.substr(prefix.size()), &curve});
    }
  }
  out += line_chart("Peak memory by category", memory, kMiB, "MiB");
  return out + "</div>\n";
}

std::string samples(const RunRecord& record) {
  if (record.samples.empty()) return "";
  std::string out = "<h2>Answers before and after</h2>\n<div class=\"samples\">\n";
  for (const RunRecord::Sample& sample : record.samples) {
    out += "<div class=\"sample\"><b>" + html_escape(sample.prompt) + "</b><div class=\"answers\">";
    out += "<div><span>step " + std::to_string(sample.step_before) + "</span><div>" + html_escape(sample.before) + "</div></div>";
    if (sample.step_after != sample.step_before) {
      out += "<div><span>step " + std::to_string(sample.step_after) + "</span><div>" + html_escape(sample.after) + "</div></div>";
    }
    out += "</div></div>\n";
  }
  return out + "</div>\n";
}

std::string data_table(const Json& data) {
  if (!data.is_object() || data.empty()) return "";
  std::string out =
      "<h2>Data</h2>\n<div class=\"wide\"><table><tr><th></th><th class=n>rows</th><th class=n>used</th><th class=n>truncated</th>"
      "<th class=n>held out</th><th class=n>refused</th><th class=n>dropped</th><th class=n>tokens</th><th class=n>targets</th></tr>\n";
  std::string rows;
  for (const auto& [split, report] : data.items()) {
    if (!report.is_object()) continue;
    out += "<tr><td>" + html_escape(split) + "</td>";
    for (const char* key : {"rows", "used", "truncated", "held_out", "refused", "dropped", "tokens", "target_tokens"}) {
      const Json value = report.value(key, Json());
      const int64_t count = value.is_array() ? static_cast<int64_t>(value.size())
                            : value.is_number_integer() ? value.get<int64_t>() : 0;
      out += "<td class=n>" + std::to_string(count) + "</td>";
    }
    out += "</tr>\n";
    size_t shown = 0;
    for (const char* kind : {"refused", "dropped"}) {
      const Json list = report.value(kind, Json());
      if (!list.is_array()) continue;
      for (const Json& row : list) {
        if (++shown > kShownRows) break;
        rows += std::string(kind) + " " + text_in(row, "file") + ":" + std::to_string(integer_in(row, "row")) + ": " +
                text_in(row, "reason") + "\n";
      }
    }
    if (shown > kShownRows) rows += "… all of them are in data_report.json\n";
  }
  out += "</table></div>\n";
  if (!rows.empty()) out += "<details><summary>rows that were left out</summary><pre>" + html_escape(rows) + "</pre></details>\n";
  return out;
}

std::string notes(const char* title, const std::vector<RunRecord::Note>& list) {
  if (list.empty()) return "";
  std::string out = std::string("<h2>") + title + "</h2>\n<div class=\"wide\"><table>\n";
  for (const RunRecord::Note& note : list) {
    out += "<tr><td class=n>" + std::to_string(note.step) + "</td><td>" + html_escape(note.text) + "</td></tr>\n";
  }
  return out + "</table></div>\n";
}

std::string head(const RunRecord& record, const std::string& folder) {
  const Json config = object_in(record.job, "config");
  const std::string path = text_in(object_in(config, "model"), "path", "from scratch");
  const std::string adapter = text_in(object_in(config, "adapter"), "peft_type");
  std::string out = "<h1>" + html_escape(base_name(folder)) + "</h1>\n<p>" + html_escape(path) + ", ";
  out += adapter.empty() ? "all weights" : html_escape(adapter) + " adapter";
  out += "</p>\n<p>" + html_escape(record.end.empty() ? record.state : record.end) + " after step " +
         std::to_string(record.steps_done) + "; created " + html_escape(text_in(record.job, "created")) + " UTC by Inlaid " +
         html_escape(text_in(record.job, "inlaid_version")) + "</p>\n";
  if (record.unreadable_lines > 0) {
    out += "<p>" + std::to_string(record.unreadable_lines) + " lines of events.jsonl are cut off or damaged and not shown.</p>\n";
  }
  return out;
}

}  // namespace

std::string report_html(FileSystem& files, const std::string& folder) {
  const RunRecord record = read_run_record(files, folder);
  std::string out = "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
                    "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<title>" +
                    html_escape(base_name(folder)) + "</title>\n<style>" + kStyle + "</style></head>\n<body>\n";
  out += head(record, folder) + cards(record) + charts(record) + samples(record) + data_table(record.data);
  out += notes("Warnings", record.warnings) + notes("Changed while training", record.changes) + notes("Checkpoints", record.checkpoints);
  out += "<h2>Configuration</h2>\n<details><summary>job.json</summary><pre>" + html_escape(record.job.dump(2)) + "</pre></details>\n";
  return out + "<script>" + kScript + "</script>\n</body></html>\n";
}

}  // namespace inlaid::train

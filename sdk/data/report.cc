#include "sdk/base/error.h"
#include "sdk/data/dataset.h"

namespace inlaid::data {
namespace {

Json rows_to_json(const std::vector<Report::Row>& rows) {
  Json out = Json::array();
  for (const Report::Row& row : rows)
    out.push_back({{"file", row.file}, {"row", row.row}, {"reason", row.reason}});
  return out;
}

std::vector<Report::Row> rows_from_json(const Json& list) {
  std::vector<Report::Row> out;
  for (const Json& row : list) {
    out.push_back(
        {string_at(row, "file", "report"), int_at(row, "row", "report"), string_at(row, "reason", "report")});
  }
  return out;
}

Json files_to_json(const std::vector<Report::File>& files) {
  Json out = Json::array();
  for (const Report::File& file : files) {
    Json unused = Json::object();
    for (const auto& [name, rows] : file.unused_columns) unused[name] = rows;
    out.push_back({{"file", file.file},
                   {"container", file.container},
                   {"format", file.format},
                   {"decided_by", file.decided_by},
                   {"rows", file.rows},
                   {"unused_columns", unused}});
  }
  return out;
}

std::vector<Report::File> files_from_json(const Json& list) {
  std::vector<Report::File> out;
  for (const Json& json : list) {
    Report::File file;
    file.file = string_at(json, "file", "report");
    file.container = string_at(json, "container", "report");
    file.format = string_at(json, "format", "report");
    file.decided_by = string_at(json, "decided_by", "report");
    file.rows = int_at(json, "rows", "report");
    const Json& unused = at(json, "unused_columns", "report");
    for (const auto& item : unused.items()) {
      file.unused_columns.emplace_back(item.key(), int_at(unused, item.key(), "report"));
    }
    out.push_back(std::move(file));
  }
  return out;
}

}  // namespace

Json Report::to_json() const {
  Json out = Json::object();
  out["rows"] = rows;
  out["used"] = used;
  out["truncated"] = truncated;
  out["held_out"] = held_out;
  out["tokens"] = tokens;
  out["target_tokens"] = target_tokens;
  out["boundary_tokens"] = boundary_tokens;
  out["files"] = files_to_json(files);
  out["refused"] = rows_to_json(refused);
  out["dropped"] = rows_to_json(dropped);
  out["warnings"] = warnings;
  return out;
}

Report Report::from_json(const Json& json) {
  Report out;
  out.rows = int_at(json, "rows", "report");
  out.used = int_at(json, "used", "report");
  out.truncated = int_at(json, "truncated", "report");
  out.held_out = int_at(json, "held_out", "report");
  out.tokens = int_at(json, "tokens", "report");
  out.target_tokens = int_at(json, "target_tokens", "report");
  out.boundary_tokens = int_at(json, "boundary_tokens", "report");
  out.files = files_from_json(at(json, "files", "report"));
  out.refused = rows_from_json(at(json, "refused", "report"));
  out.dropped = rows_from_json(at(json, "dropped", "report"));
  for (const Json& warning : at(json, "warnings", "report")) {
    if (!warning.is_string()) fail(Code::kInvalidArgument, "report: a warning must be a text");
    out.warnings.push_back(warning.get<std::string>());
  }
  return out;
}

}  // namespace inlaid::data

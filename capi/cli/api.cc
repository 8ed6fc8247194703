#include "api.h"

#include <inlaid_plugin.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

namespace inlaid_cli {
namespace {

int exit_code(inlaid_code code, const std::string &details) {
  const nlohmann::json json = nlohmann::json::parse(details, nullptr, false);
  const bool data = json.is_object() && json.value("origin", "") == "data";
  switch (code) {
    case INLAID_INVALID_ARGUMENT:
    case INLAID_UNIMPLEMENTED: return data ? kData : kUsage;
    case INLAID_NOT_FOUND:
    case INLAID_FAILED_PRECONDITION:
    case INLAID_ALREADY_EXISTS: return kUsage;
    case INLAID_RESOURCE_EXHAUSTED: return kResources;
    case INLAID_DATA_LOSS: return kDamaged;
    case INLAID_CANCELLED: return kInterrupted;
    default: return kFailed;
  }
}

const char *name(inlaid_code code) {
  static const char *const kNames[] = {"OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND",
                                       "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
                                       "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS",
                                       "UNAUTHENTICATED"};
  return code >= 0 && code < 17 ? kNames[code] : "UNKNOWN";
}

}  // namespace

void check(inlaid_error *error) {
  if (error == nullptr) return;
  const inlaid_code code = inlaid_error_code(error);
  const Failure failure(exit_code(code, inlaid_error_details(error)), inlaid_error_message(error), name(code));
  inlaid_error_release(error);
  throw failure;
}

void print_failure(const Failure &failure, bool json) {
  if (json) {
    const nlohmann::json line = {{"kind", "error"}, {"code", failure.code}, {"message", failure.what()}, {"exit", failure.exit}};
    // A file name need not be UTF-8.
    std::fprintf(stderr, "%s\n", line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
    return;
  }
  std::fprintf(stderr, "inlaid: %s%s%s\n", failure.code.c_str(), failure.code.empty() ? "" : ": ", failure.what());
}

int64_t parse_bytes(const std::string &text) {
  char *end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  const std::string unit = end;
  const std::pair<const char *, double> units[] = {{"", 1},     {"B", 1},          {"kB", 1e3},        {"MB", 1e6},
                                                   {"GB", 1e9}, {"KiB", 1024.0},   {"MiB", 1048576.0}, {"GiB", 1073741824.0}};
  for (const auto &[suffix, factor] : units) {
    if (end != text.c_str() && unit == suffix && std::isfinite(number) && number >= 1) return static_cast<int64_t>(number * factor);
  }
  throw Failure(kUsage, "'" + text + "' is no number of bytes; write for example 4GiB or 500MB");
}

Runtime make_runtime(const RuntimeOptions &wanted) {
  inlaid_log_sink warnings = INLAID_LOG_SINK_INIT;
  warnings.min_level = INLAID_LOG_WARNING;
  warnings.write = [](void *, int32_t, const char *component, const char *utf8, uint64_t size) {
    std::fprintf(stderr, "inlaid: %s: %.*s\n", component, static_cast<int>(size), utf8);
  };
  inlaid_runtime_options options = INLAID_RUNTIME_OPTIONS_INIT;
  options.cpu_threads = wanted.threads;
  options.log_sink = &warnings;
  nlohmann::json settings = nlohmann::json::object();
  if (!wanted.memory_limit.empty()) settings["memory_limit"] = parse_bytes(wanted.memory_limit);
  if (!wanted.disk_limit.empty()) settings["disk_limit"] = parse_bytes(wanted.disk_limit);
  if (wanted.wall_time_limit > 0) settings["wall_time_limit"] = wanted.wall_time_limit;
  if (wanted.zero_memory) settings["zero_memory"] = true;
  const std::string text = settings.dump();
  options.settings_json = text.c_str();
  return make<Runtime>(inlaid_runtime_create, &options);
}

Opened open_result(inlaid_runtime *runtime, const std::string &path, const std::string &weights_dtype, bool best) {
  nlohmann::json options = nlohmann::json::object();
  if (!weights_dtype.empty()) options["weights_dtype"] = weights_dtype;
  if (best) options["checkpoint"] = "best";
  inlaid_model *model = nullptr;
  inlaid_adapter *adapter = nullptr;
  check(inlaid_result_open(runtime, path.c_str(), options.dump().c_str(), nullptr, &model, &adapter));
  return {Model(model), Adapter(adapter)};
}

}  // namespace inlaid_cli

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "commands.h"

namespace inlaid_cli {
namespace {

using nlohmann::ordered_json;

std::string read_file(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Failure(kUsage, path + ": " + std::strerror(errno));
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

ordered_json sources(const std::vector<std::string> &paths) {
  ordered_json list = ordered_json::array();
  for (const std::string &path : paths) list.push_back({{"path", path}});
  return list;
}

std::string from_options(const TrainOptions &options) {
  ordered_json json;
  json["model"]["path"] = options.model;
  if (!options.full) {
    json["adapter"] = {{"peft_type", "LORA"}, {"r", 16}, {"lora_alpha", 32}, {"target_modules", "all-linear"}};
  }
  json["data"]["train"] = sources(options.data);
  if (!options.eval.empty()) json["data"]["eval"] = sources(options.eval);
  if (!options.output.empty()) json["output_dir"] = options.output;
  return json.dump();
}

// Errors name the job file, if there is one.
Config parse(const std::string &text, const std::string &folder, const std::string &file) {
  try {
    return make<Config>(inlaid_config_parse, text.c_str(), folder.c_str());
  } catch (const Failure &e) {
    if (file.empty()) throw;
    const bool json = std::filesystem::path(file).extension() == ".json";
    throw Failure(e.exit, file + ": " + e.what() + (json ? "" : "; a job file is expected here, data is named with --data"), e.code);
  }
}

}  // namespace

Config job_config(const TrainOptions &options) {
  if (!options.record.empty()) {
    const std::string path = (std::filesystem::path(options.record) / "job.json").string();
    if (!std::filesystem::exists(path)) throw Failure(kUsage, options.record + " holds no job: there is no job.json");
    const ordered_json record = ordered_json::parse(read_file(path), nullptr, false);
    if (record.is_discarded()) throw Failure(kDamaged, path + " is damaged: it is no JSON");
    if (!record.is_object() || !record.contains("config")) {
      throw Failure(kUsage, path + " is no record of a job in its output folder; `inlaid train` starts a job file");
    }
    return make<Config>(inlaid_config_parse, record["config"].dump().c_str(), nullptr);
  }
  const bool file = !options.job.empty();
  if (file && (!options.model.empty() || !options.data.empty() || !options.eval.empty() || options.full)) {
    throw Failure(kUsage, "give either a job file or --model and --data");
  }
  if (!file && (options.model.empty() || options.data.empty())) {
    throw Failure(kUsage, "give a job file, or --model and --data");
  }
  // Paths in a job file are relative to the file, paths on the command line to the working folder.
  const std::filesystem::path current = std::filesystem::current_path();
  const std::string folder = (file ? (current / options.job).parent_path() : current).string();
  const std::string text = file ? read_file(options.job) : from_options(options);
  Config config = parse(text, folder, options.job);
  if (file && !options.output.empty()) {
    const std::string path = nlohmann::json(std::filesystem::absolute(options.output).string()).dump();
    check(inlaid_config_set(config.get(), "output_dir", path.c_str()));
  }
  for (const std::string &assignment : options.set) {
    const size_t equals = assignment.find('=');
    if (equals == std::string::npos) throw Failure(kUsage, "--set " + assignment + ": write KEY=VALUE");
    const std::string key = assignment.substr(0, equals), value = assignment.substr(equals + 1);
    // A value that is no JSON is meant as a string.
    const bool json = nlohmann::json::accept(value);
    check(inlaid_config_set(config.get(), key.c_str(), json ? value.c_str() : nlohmann::json(value).dump().c_str()));
  }
  return config;
}

}  // namespace inlaid_cli

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "commands.h"

namespace inlaid_cli {

using nlohmann::json;

namespace {

// The section `data` of the job in an output folder, if it has evaluation data; else null.
json evaluation_data(const std::string &path) {
  std::ifstream file(std::filesystem::path(path) / "job.json");
  const json record = json::parse(file, nullptr, false);
  if (!record.is_object() || !record.contains("config")) return nullptr;
  const json data = record["config"].value("data", json::object());
  const bool sources = data.contains("eval") && data["eval"].is_array();
  return sources || data.value("eval_fraction", 0.0) > 0 ? data : json();
}

void print_certificate(const json &certificate) {
  const json &logits = certificate["logits"];
  std::printf("certificate: logits differ by at most %.2g (largest %.1f), top token the same at %lld of %lld positions",
              logits.value("max_abs_difference", 0.0), logits.value("max_abs", 0.0), logits.value("same_top_token", 0LL),
              logits.value("tokens", 0LL));
  if (const json &held_out = certificate.value("held_out", json()); !held_out.is_null()) {
    std::printf("; held-out loss %.4f, exported %.4f (%lld rows)", held_out.value("loss", 0.0), held_out.value("loss_exported", 0.0),
                held_out.value("rows", 0LL));
  }
  if (certificate.contains("tokenizer") && !certificate["tokenizer"].is_null()) std::printf("; tokenizer and template equal");
  std::printf("\n");
}

// For people: thousands of tensors as one number for each role and dtype; --json lists them.
nlohmann::ordered_json without_table(nlohmann::ordered_json described) {
  const auto table = described.find("tensors");
  if (table == described.end() || !table->is_array()) return described;
  std::map<std::string, int64_t> counts;
  for (const auto &tensor : *table) {
    const std::string role = tensor.value("role", "");
    ++counts[(role.empty() ? "" : role + " ") + tensor.value("dtype", "")];
  }
  *table = counts;
  return described;
}

}  // namespace

int evaluate(const Common &common, const EvalOptions &eval) {
  const Runtime runtime = make_runtime(common);
  TrainOptions options;
  options.model = eval.path;
  options.data = eval.data;
  options.set = eval.set;
  options.full = true;  // no adapter part: what is evaluated comes from the path
  const Config config = job_config(options);
  const Opened opened = open_result(runtime.get(), eval.path, eval.weights_dtype, eval.best);
  const Dataset dataset = make<Dataset>(inlaid_dataset_open, opened.model.get(), config.get(), "train");
  const Event event =
      make<Event>(inlaid_evaluate, opened.model.get(), opened.adapter.get(), dataset.get(), static_cast<inlaid_cancel *>(nullptr));
  if (common.json) {
    std::printf("%s\n", inlaid_event_json(event.get()));
  } else {
    std::printf("loss %.4f, accuracy %.1f %% of %.0f tokens in %.0f rows\n", inlaid_event_metric(event.get(), "eval_loss"),
                100 * inlaid_event_metric(event.get(), "eval_mean_token_accuracy"),
                inlaid_event_metric(event.get(), "eval_target_tokens"), inlaid_event_metric(event.get(), "eval_rows"));
  }
  return kDone;
}

int export_result(const Common &common, const ExportOptions &options) {
  const Runtime runtime = make_runtime(common);
  const Opened opened = open_result(runtime.get(), options.path, "", options.best);
  std::string to = options.to;
  const bool default_place = to.empty();
  if (default_place && !std::filesystem::is_directory(options.path)) throw Failure(kUsage, "name the file or folder to write with --to");
  if (options.format == "peft") {
    if (!opened.adapter) throw Failure(kUsage, options.path + " has no adapter; export it as huggingface or gguf");
    if (to.empty()) to = (std::filesystem::path(options.path) / "adapter").string();
    check(inlaid_adapter_save(opened.adapter.get(), to.c_str()));
  } else {
    if (to.empty()) to = (std::filesystem::path(options.path) / (options.format == "gguf" ? "model.gguf" : "model")).string();
    json settings = {{"format", options.format}, {"certificate", options.certificate}};
    const json data = evaluation_data(options.path);
    if (options.certificate && !data.is_null()) settings["data"] = data;
    if (!options.dtype.empty()) settings["dtype"] = options.dtype;
    check(inlaid_model_export(opened.model.get(), opened.adapter.get(), to.c_str(), settings.dump().c_str()));
  }
  const json certificate = options.certificate || options.format == "peft"
                               ? json::parse(text(inlaid_export_certificate, runtime.get(), to.c_str()))
                               : json();
  if (common.json) {
    std::printf("%s\n", json({{"format", options.format}, {"path", to}, {"certificate", certificate}}).dump().c_str());
  } else {
    std::printf("wrote %s\n", to.c_str());
    if (!certificate.is_null()) print_certificate(certificate);
  }
  return kDone;
}

int convert(const Common &common, ExportOptions options) {
  options.format = std::filesystem::path(options.to).extension() == ".gguf" ? "gguf" : "huggingface";
  return export_result(common, options);
}

int describe(const Common &common, const std::string &path) {
  const Runtime runtime = make_runtime(common);
  std::string described;
  const std::filesystem::path folder = path;
  if (std::filesystem::exists(folder / "manifest.pb") || std::filesystem::exists(folder / "job.json")) {
    described = text(inlaid_checkpoint_manifest, runtime.get(), path.c_str(), 1);
  } else {
    const Opened opened = open_result(runtime.get(), path, "as_stored", false);
    described = opened.adapter ? text(inlaid_adapter_describe, opened.adapter.get()) : text(inlaid_model_describe, opened.model.get());
  }
  std::printf("%s\n", common.json ? described.c_str() : without_table(nlohmann::ordered_json::parse(described)).dump(2).c_str());
  return kDone;
}

int verify(const Common &common, const std::string &path) {
  const Runtime runtime = make_runtime(common);
  const bool job = std::filesystem::exists(std::filesystem::path(path) / "job.json");
  const json report = json::parse(job ? text(inlaid_job_verify, runtime.get(), path.c_str())
                                      : text(inlaid_checkpoint_verify, runtime.get(), path.c_str()));
  if (common.json) {
    std::printf("%s\n", report.dump().c_str());
  } else {
    for (const json &problem : report["problems"]) std::printf("wrong: %s\n", problem.get<std::string>().c_str());
    if (report.value("ok", false)) {
      std::printf("ok: %lld tensors, %lld bytes\n", report.value("tensors", 0LL), report.value("bytes", 0LL));
      if (job) {
        std::printf("ok: %lld inputs, %lld outputs, %lld checkpoints\n", report.value("inputs", 0LL), report.value("outputs", 0LL),
                    report.value("checkpoints", 0LL));
      }
    }
  }
  return report.value("ok", false) ? kDone : kDamaged;
}

int jobs(const Common &common, const std::string &folder) {
  const Runtime runtime = make_runtime(common);
  const json list = json::parse(text(inlaid_job_list, runtime.get(), folder.c_str()));
  if (common.json) {
    std::printf("%s\n", list.dump().c_str());
    return kDone;
  }
  for (const json &job : list) {
    std::printf("%-12s %6lld / %-6lld  %s  %s\n", job.value("state", "").c_str(), job.value("step", 0LL),
                job.value("total_steps", 0LL), job.value("output_dir", "").c_str(), job.value("text", "").c_str());
  }
  return kDone;
}

int report(const Common &common, const std::string &path, const std::string &to) {
  const Runtime runtime = make_runtime(common);
  const std::string html = text(inlaid_job_report, runtime.get(), path.c_str());
  const std::string target = to.empty() ? (std::filesystem::path(path) / "report.html").string() : to;
  std::ofstream file(target, std::ios::binary);
  file << html;
  if (!file.flush()) throw Failure(kResources, target + ": could not be written");
  if (common.json) {
    std::printf("%s\n", json({{"path", target}}).dump().c_str());
  } else {
    std::printf("wrote %s\n", target.c_str());
  }
  return kDone;
}

int schema() {
  std::printf("%s\n", text(inlaid_config_schema).c_str());
  return kDone;
}

}  // namespace inlaid_cli

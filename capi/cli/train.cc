#include <cstdio>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "watch.h"

namespace inlaid_cli {
namespace {

using nlohmann::json;

Runtime runtime_for(const Common &common, const inlaid_config *config) {
  const json canonical = json::parse(text(inlaid_config_to_json, config));
  const json &section = canonical.value("runtime", json::object());
  RuntimeOptions options = common;
  const auto integer = [&](const char *key) {
    return section.contains(key) && section[key].is_number() ? section[key].get<int64_t>() : 0;
  };
  if (options.threads == 0) options.threads = static_cast<int>(integer("cpu_threads"));
  if (options.memory_limit.empty() && integer("memory_limit") > 0) options.memory_limit = std::to_string(integer("memory_limit"));
  if (options.disk_limit.empty() && integer("disk_limit") > 0) options.disk_limit = std::to_string(integer("disk_limit"));
  options.zero_memory = options.zero_memory || section.value("zero_memory", false);
  return make_runtime(options);
}

// What a job needs, for one that its memory limit refused; nothing if not even that can be said within the limit.
void advise_on_memory(const inlaid_runtime *runtime, const inlaid_config *config) {
  try {
    const json report = json::parse(text(inlaid_config_plan, const_cast<inlaid_runtime *>(runtime), config));
    if (!report.contains("memory")) return;
    std::fprintf(stderr, "inlaid: the job needs %.1f MiB in all; `inlaid plan` shows for what\n",
                 report["memory"].value("total", 0.0) / 1048576.0);
  } catch (const Failure &) {
  }
}

int run(const Common &common, inlaid_job *job, Interrupts &interrupts) {
  const json facts = json::parse(text(inlaid_job_describe, job));
  const std::string output = facts.value("output_dir", "");
  const auto total = facts.value("total_steps", int64_t{0}), done = facts.value("steps_done", int64_t{0});
  // Started before anything is said: a folder in which another process trains is refused here at the latest.
  const Run handle = make<Run>(inlaid_job_start, job);
  if (!common.json) {
    std::printf("%lld of %lld parameters train on %lld rows in %lld steps", facts.value("trained_parameters", 0LL),
                facts.value("parameters", 0LL), facts.value("train_rows", 0LL), static_cast<long long>(total));
    if (!facts.value("resumed_from", "").empty()) {
      std::printf(", resumed after step %lld from %s", static_cast<long long>(done),
                  facts.value("resumed_from", "").c_str());
    }
    std::printf("%s\n", total > 0 && done >= total ? ": all of its steps are done" : "");
  }
  return watch(handle.get(), interrupts, output, facts.value("train_rows", int64_t{0}), common.json);
}

void print_report(const char *split, const json &report) {
  std::printf("%s: %lld rows, %lld used, %lld truncated, %lld held out; %lld tokens, %lld of them targets\n", split,
              report.value("rows", 0LL), report.value("used", 0LL), report.value("truncated", 0LL),
              report.value("held_out", 0LL), report.value("tokens", 0LL), report.value("target_tokens", 0LL));
  for (const char *kind : {"refused", "dropped"}) {
    for (const json &row : report.value(kind, json::array())) {
      std::printf("  %s %s:%lld: %s\n", kind, row.value("file", "").c_str(), row.value("row", 0LL),
                  row.value("reason", "").c_str());
    }
  }
}

}  // namespace

int train(const Common &common, const TrainOptions &options) {
  const Config config = job_config(options);
  const json canonical = json::parse(text(inlaid_config_to_json, config.get()));
  if (!canonical.contains("output_dir") || canonical["output_dir"].is_null()) {
    throw Failure(kUsage, "output_dir is missing: name it in the job file or with --out");
  }
  Interrupts interrupts("training had not begun, there is nothing to save");
  const Runtime runtime = runtime_for(common, config.get());
  Job job;
  try {
    job = make<Job>(inlaid_job_create, runtime.get(), config.get());
  } catch (const Failure &e) {
    if (e.exit == kResources && !common.json) advise_on_memory(runtime.get(), config.get());
    throw;
  }
  return run(common, job.get(), interrupts);
}

int resume(const Common &common, const std::string &output) {
  // The job's own quotas, unless other ones are asked for.
  Interrupts interrupts("nothing was trained since the last checkpoint");
  TrainOptions options;
  options.record = output;
  const Runtime runtime = runtime_for(common, job_config(options).get());
  const Job job = make<Job>(inlaid_job_resume, runtime.get(), output.c_str());
  return run(common, job.get(), interrupts);
}

int plan(const Common &common, const TrainOptions &options) {
  const Config config = job_config(options);
  const Runtime runtime = runtime_for(common, config.get());
  const auto report = nlohmann::ordered_json::parse(text(inlaid_config_plan, runtime.get(), config.get()));
  const bool planned = report.contains("memory");
  // A plan that got as far as the memory can only be refused for it.
  const int exit = report["refused"].empty() ? kDone : planned ? kResources : kUsage;
  if (common.json) {
    std::printf("%s\n", report.dump().c_str());
    return exit;
  }
  for (const auto &reason : report["refused"]) std::printf("refused: %s\n", reason.get<std::string>().c_str());
  if (!planned) return exit;
  std::printf("peak memory by category:\n");
  for (const auto &[name, bytes] : report["memory"].items()) {
    std::printf("  %-14s %10.1f MiB\n", name.c_str(), bytes.get<double>() / 1048576.0);
  }
  std::printf("%lld of %lld parameters train; micro-batches of up to %lld tokens, %.1f GFLOP each; recomputation: %s\n",
              report.value("trained_parameters", 0LL), report.value("parameters", 0LL), report.value("capacity_tokens", 0LL),
              report.value("flops_per_micro_batch", 0.0) / 1e9, report.value("recompute", "").c_str());
  return exit;
}

int check_data(const Common &common, const TrainOptions &options, int64_t show) {
  const Config config = job_config(options);
  const json canonical = json::parse(text(inlaid_config_to_json, config.get()));
  const Runtime runtime = runtime_for(common, config.get());
  const std::string path = canonical["model"].value("path", "");
  if (path.empty()) throw Failure(kUsage, "data check needs model.path, for its tokenizer and template");
  const json load = {{"weights_dtype", "as_stored"}};
  const Model model = make<Model>(inlaid_model_load, runtime.get(), path.c_str(), load.dump().c_str(), nullptr);
  const Tokenizer tokenizer = make<Tokenizer>(inlaid_model_tokenizer, model.get());
  json all;
  for (const char *split : {"train", "eval"}) {
    const bool held_out = canonical["data"].value("eval_fraction", 0.0) > 0;
    const bool has_eval = canonical["data"].contains("eval") && canonical["data"]["eval"].is_array();
    if (std::string_view(split) == "eval" && !held_out && !has_eval) continue;
    const Dataset dataset = make<Dataset>(inlaid_dataset_open, model.get(), config.get(), split);
    const json report = json::parse(text(inlaid_dataset_report, dataset.get()));
    all[split] = report;
    if (common.json) continue;
    print_report(split, report);
    for (int64_t i = 0; i < show && i < static_cast<int64_t>(inlaid_dataset_size(dataset.get())); ++i) {
      const json sample = json::parse(text(inlaid_dataset_sample, dataset.get(), static_cast<uint64_t>(i)));
      const auto ids = sample["ids"].get<std::vector<int32_t>>();
      std::vector<int32_t> targets;
      for (int32_t id : sample["targets"].get<std::vector<int32_t>>()) {
        if (id >= 0) targets.push_back(id);
      }
      const auto decode = [&](const std::vector<int32_t> &list) {
        return text(inlaid_tokenizer_decode, tokenizer.get(), static_cast<const void *>(list.data()),
                    static_cast<uint64_t>(list.size() * sizeof(int32_t)), 0);
      };
      std::printf("--- sample %lld: text\n%s\n--- sample %lld: what is learnt\n%s\n", static_cast<long long>(i),
                  decode(ids).c_str(), static_cast<long long>(i), decode(targets).c_str());
    }
  }
  if (common.json) std::printf("%s\n", all.dump().c_str());
  return kDone;
}

}  // namespace inlaid_cli

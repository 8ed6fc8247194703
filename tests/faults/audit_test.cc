// The audit of an output folder: what it records is so, what changed is named, by verify and before a resume.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>

#include "tests/capi/support.h"

namespace faults {
namespace {

using namespace capi_test;

std::string sha256_of(const std::string& path) {
  const std::string command = "sha256sum '" + path + "'";
  std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), &pclose);
  char hex[65] = {};
  if (pipe == nullptr || std::fread(hex, 1, 64, pipe.get()) != 64) throw std::runtime_error("sha256sum " + path);
  return hex;
}

json verify(inlaid_runtime* runtime, const std::string& folder) { return parsed(inlaid_job_verify, runtime, folder.c_str()); }

// A Hugging Face folder as the base of a job, and a job on it with held-out rows and a template of its own.
struct Bench {
  Bench() {
    const Config config = make_config(folder.job(""));
    const Model model = make<Model>(inlaid_model_create, runtime.get(), config.get(), nullptr);
    ok(inlaid_model_export(model.get(), nullptr, (folder / "base").c_str(), nullptr));
    job = folder.job("out");
    job["model"] = {{"path", folder / "base"}};
    job["data"]["chat_template"] = folder / "tokenizer/chat_template.jinja";
    job["train"]["max_steps"] = 4;
    job["checkpoint"] = {{"save_steps", 2}};
    out = folder / "out";
  }
  Folder folder;
  Runtime runtime = make_runtime(2);
  json job;
  std::string out;
};

TEST(Audit, RecordsWhatThereIs) {
  Bench bench;
  train(bench.runtime.get(), bench.job);
  const json audit = json::parse(read_file(bench.out + "/audit.json"));
  EXPECT_EQ(audit["seed"], 42);
  const json described = parsed(inlaid_runtime_describe, bench.runtime.get());
  EXPECT_EQ(audit["kernels"], described["kernels"]);
  EXPECT_EQ(audit["inlaid_version"], described["version"]);
  EXPECT_EQ(audit["cpu_threads"], 2);
  EXPECT_EQ(audit["ended"], "done");
  EXPECT_EQ(audit["step"], 4);
  std::map<std::string, int> roles;
  for (const json& input : audit["inputs"]) {
    const std::string path = input["path"];
    ++roles[input["role"]];
    EXPECT_EQ(input["bytes"], std::filesystem::file_size(path)) << path;
    EXPECT_EQ(input["sha256"], sha256_of(path)) << path;
  }
  EXPECT_GE(roles["model"], 3) << "config.json, tokenizer and weights: " << audit["inputs"];
  EXPECT_EQ(roles["training data"], 1);
  EXPECT_EQ(roles["evaluation data"], 1);
  EXPECT_EQ(roles["chat template"], 1);
  std::set<std::string> outputs;
  for (const json& output : audit["outputs"]) {
    const std::string path = bench.out + "/" + output["path"].get<std::string>();
    outputs.insert(output["path"]);
    EXPECT_EQ(output["sha256"], sha256_of(path)) << path;
  }
  for (const char* name : {"job.json", "data_report.json", "events.jsonl", "report.html", "state.json", "checkpoints/index.json",
                           "checkpoints/step-000004/manifest.pb"}) {
    EXPECT_EQ(outputs.count(name), 1u) << name << " is not in " << audit["outputs"];
  }
  const json report = verify(bench.runtime.get(), bench.out);
  EXPECT_EQ(report["ok"], true) << report;
  EXPECT_EQ(report["inputs"], audit["inputs"].size());
  EXPECT_EQ(report["outputs"], audit["outputs"].size());
  EXPECT_GE(report["checkpoints"], 1);
}

// Each file that a job was made from or has made, changed by one bit in the middle: verify names it and nothing else.
TEST(Audit, OneBitIsNamed) {
  Bench bench;
  train(bench.runtime.get(), bench.job);
  std::vector<std::string> paths;
  const json audit = json::parse(read_file(bench.out + "/audit.json"));
  for (const json& input : audit["inputs"]) paths.push_back(input["path"]);
  for (const json& output : audit["outputs"]) paths.push_back(bench.out + "/" + output["path"].get<std::string>());
  for (const auto& entry : std::filesystem::recursive_directory_iterator(bench.out + "/checkpoints")) {
    if (entry.is_regular_file() && entry.path().extension() == ".safetensors") paths.push_back(entry.path());
  }
  for (const std::string& path : paths) {
    const std::string bytes = read_file(path);
    std::string changed = bytes;
    changed[changed.size() / 2] ^= 1;
    write_file(path, changed);
    const json report = verify(bench.runtime.get(), bench.out);
    EXPECT_EQ(report["ok"], false) << path;
    const std::string name = std::filesystem::path(path).filename();
    EXPECT_NE(report["problems"].dump().find(name), std::string::npos) << path << ": " << report["problems"];
    write_file(path, bytes);
  }
  const std::string rows = bench.folder / "train.jsonl", kept = read_file(rows);
  std::filesystem::remove(rows);
  EXPECT_NE(verify(bench.runtime.get(), bench.out)["problems"].dump().find("train.jsonl is missing"), std::string::npos);
  write_file(rows, kept);
  EXPECT_EQ(verify(bench.runtime.get(), bench.out)["ok"], true);
}

// What changed between a job and its resume is named, file by file, before anything is trained.
TEST(Audit, AResumeNamesWhatChanged) {
  Bench bench;
  {
    const Config config = make_config(bench.job);
    const Job job = make<Job>(inlaid_job_create, bench.runtime.get(), config.get());
    const Trainer trainer = make<Trainer>(inlaid_job_trainer, job.get());
    const std::string options = json({{"until", 2}, {"checkpoint_dir", bench.out + "/checkpoints"}}).dump();
    watch(make<RunHandle>(inlaid_run_start, trainer.get(), nullptr, options.c_str()).get());
  }
  const auto flip = [](const std::string& path) {
    std::string bytes = read_file(path);
    bytes[bytes.size() / 2] ^= 1;
    write_file(path, bytes);
  };
  const std::string weights = bench.folder / "base/model.safetensors", rows = bench.folder / "train.jsonl";
  const auto refused = [&](std::initializer_list<std::string> words) {
    EXPECT_FAILS_OUT(inlaid_job, INLAID_FAILED_PRECONDITION, words, inlaid_job_resume, bench.runtime.get(), bench.out.c_str());
  };
  flip(weights);
  refused({"model file " + weights, "changed since the job was created", "sha256"});
  flip(rows);
  refused({"model file " + weights, "training data file " + rows});
  flip(weights);
  write_file(rows, read_file(rows) + "\n");
  refused({"training data file " + rows, "bytes then"});
  std::string text = read_file(rows);
  text.pop_back();
  write_file(rows, text);
  flip(rows);
  const Job job = make<Job>(inlaid_job_resume, bench.runtime.get(), bench.out.c_str());
  EXPECT_EQ(watch(make<RunHandle>(inlaid_job_start, job.get()).get()).steps.size(), 2u);
  EXPECT_EQ(verify(bench.runtime.get(), bench.out)["ok"], true);
}

// While a job trains there are no outputs to hold anybody to; a damaged audit is reported, not trusted.
TEST(Audit, UnfinishedAndDamaged) {
  Bench bench;
  {
    const Config config = make_config(bench.job);
    const Job job = make<Job>(inlaid_job_create, bench.runtime.get(), config.get());
    const json audit = json::parse(read_file(bench.out + "/audit.json"));
    EXPECT_EQ(audit["complete"], false);
    const json report = verify(bench.runtime.get(), bench.out);
    EXPECT_EQ(report["ok"], true) << report;
    EXPECT_EQ(report["outputs"], 0);
    EXPECT_EQ(report["checkpoints"], 0);
  }
  write_file(bench.out + "/audit.json", "{\"inputs\": 5}");
  EXPECT_EQ(verify(bench.runtime.get(), bench.out)["ok"], false);
  write_file(bench.out + "/audit.json", "no JSON");
  EXPECT_NE(verify(bench.runtime.get(), bench.out)["problems"].dump().find("audit.json"), std::string::npos);
  EXPECT_FAILS_OUT(inlaid_job, INLAID_INVALID_ARGUMENT, {"audit.json"}, inlaid_job_resume, bench.runtime.get(), bench.out.c_str());
}

}  // namespace
}  // namespace faults

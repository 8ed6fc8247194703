// What happens in the course of a run: early stopping, the best checkpoints, changes while training, answers to prompts, and
// the files that record it all.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <map>
#include <sstream>

#include "support.h"

namespace capi_test {
namespace {

std::vector<json> events_of(const std::string& output) {
  std::vector<json> events;
  std::istringstream stream(read_file(output + "/events.jsonl"));
  for (std::string line; std::getline(stream, line);) events.push_back(json::parse(line));
  return events;
}

std::vector<json> of_kind(const std::vector<json>& events, const std::string& kind) {
  std::vector<json> result;
  std::copy_if(events.begin(), events.end(), std::back_inserter(result), [&](const json& event) { return event["event"] == kind; });
  return result;
}

std::vector<std::string> checkpoints(const std::string& output) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(output + "/checkpoints")) {
    if (entry.is_directory()) names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// Learns fast and then overfits: the held-out loss falls and rises again.
json overfitting(const Folder& folder, const std::string& output) {
  json job = folder.job(output, false);
  job["train"] = {{"micro_batch_tokens", 256}, {"max_steps", 60}, {"eval_on_start", false}, {"eval_steps", 2}, {"early_stopping_patience", 3}};
  job["optim"] = {{"learning_rate", 0.02}, {"lr_scheduler_type", "constant"}};
  return job;
}

double evaluate_result(inlaid_runtime* runtime, const json& job, const std::string& output, const char* options) {
  inlaid_model* raw_model = nullptr;
  inlaid_adapter* raw_adapter = nullptr;
  ok(inlaid_result_open(runtime, output.c_str(), options, nullptr, &raw_model, &raw_adapter));
  const Model model(raw_model);
  const Adapter adapter(raw_adapter);
  const Config config = make_config(job);
  const Dataset data = make<Dataset>(inlaid_dataset_open, raw_model, config.get(), "eval");
  const Event event = make<Event>(inlaid_evaluate, raw_model, raw_adapter, data.get(), nullptr);
  return inlaid_event_metric(event.get(), "eval_loss");
}

TEST(Run, StopsEarlyAndKeepsTheBest) {
  const Folder folder;
  const Runtime runtime = make_runtime(2);
  const json job = overfitting(folder, "out");
  const Trained trained = train(runtime.get(), job);
  EXPECT_NE(trained.end.find("stopped early"), std::string::npos) << trained.end;
  EXPECT_LT(trained.steps.size(), 60u);

  const std::vector<json> evals = of_kind(events_of(folder / "out"), "eval");
  ASSERT_GE(evals.size(), 4u);
  const auto best = std::min_element(evals.begin(), evals.end(),
                                     [](const json& a, const json& b) { return a["eval_loss"] < b["eval_loss"]; });
  EXPECT_EQ(evals.end() - best, 4) << "the best one and three without improvement";
  char name[32];
  std::snprintf(name, sizeof name, "step-%06d", (*best)["step"].get<int>());
  const std::vector<std::string> kept = checkpoints(folder / "out");
  EXPECT_NE(std::find(kept.begin(), kept.end(), name), kept.end());
  EXPECT_EQ(evaluate_result(runtime.get(), job, folder / "out", R"({"checkpoint": "best"})"), (*best)["eval_loss"].get<double>());
  EXPECT_EQ(evaluate_result(runtime.get(), job, folder / "out", nullptr), evals.back()["eval_loss"].get<double>());

  inlaid_model* model = nullptr;
  inlaid_adapter* adapter = nullptr;
  EXPECT_TRUE(fails(inlaid_result_open(runtime.get(), (folder / "out").c_str(), R"({"checkpoint": "bets"})", nullptr, &model, &adapter),
                    INLAID_INVALID_ARGUMENT, {"bets", "best"}));
  train(runtime.get(), folder.job("plain"));
  EXPECT_TRUE(fails(inlaid_result_open(runtime.get(), (folder / "plain").c_str(), R"({"checkpoint": "best"})", nullptr, &model, &adapter),
                    INLAID_NOT_FOUND, {"keep_best"}));
}

// Patience is a part of what a checkpoint remembers.
TEST(Run, StopsEarlyAtTheSameStepAfterAResume) {
  const Folder folder;
  const Runtime runtime = make_runtime(2);
  const Trained whole = train(runtime.get(), overfitting(folder, "whole"));
  json job = overfitting(folder, "cut");
  job["checkpoint"] = {{"save_steps", 1}, {"save_total_limit", 2}};
  std::vector<std::string> steps;
  std::string end;
  for (size_t last = whole.steps.size() - 3; end.empty(); last = whole.steps.size()) {
    const Config config = make_config(job);
    const Job handle = std::filesystem::exists(folder / "cut") ? make<Job>(inlaid_job_resume, runtime.get(), (folder / "cut").c_str())
                                                               : make<Job>(inlaid_job_create, runtime.get(), config.get());
    const RunHandle run = make<RunHandle>(inlaid_job_start, handle.get());
    for (;;) {
      const Event event = make<Event>(inlaid_run_next, run.get(), int64_t{-1});
      const int32_t kind = inlaid_event_kind(event.get());
      if (kind == INLAID_EVENT_STEP) steps.push_back(step_line(event.get()));
      // Saved at every step: cancelling loses nothing once the checkpoint of the step is there.
      if (kind == INLAID_EVENT_CHECKPOINT && inlaid_event_step(event.get()) == last) inlaid_run_cancel(run.get());
      if (kind != INLAID_EVENT_DONE) continue;
      if (std::string(inlaid_event_text(event.get())) != "cancelled") end = inlaid_event_text(event.get());
      break;
    }
  }
  EXPECT_EQ(steps, whole.steps);
  EXPECT_EQ(end, whole.end);
  // A job that stopped early stays stopped.
  const Job again = make<Job>(inlaid_job_resume, runtime.get(), (folder / "cut").c_str());
  const RunHandle run = make<RunHandle>(inlaid_job_start, again.get());
  const Trained nothing = watch(run.get());
  EXPECT_TRUE(nothing.steps.empty());
  EXPECT_EQ(nothing.end, whole.end);
}

TEST(Run, KeepsTheBestFewBesideTheLatest) {
  const Folder folder;
  const Runtime runtime = make_runtime(2);
  json job = overfitting(folder, "out");
  job["train"].erase("early_stopping_patience");
  job["train"]["max_steps"] = 24;
  job["checkpoint"] = {{"keep_best", 2}, {"save_steps", 5}, {"save_total_limit", 1}};
  train(runtime.get(), job);
  std::vector<json> evals = of_kind(events_of(folder / "out"), "eval");
  std::stable_sort(evals.begin(), evals.end(), [](const json& a, const json& b) { return a["eval_loss"] < b["eval_loss"]; });
  std::vector<std::string> expected = {"step-000024"};
  for (size_t i = 0; i < 2; ++i) {
    char name[32];
    std::snprintf(name, sizeof name, "step-%06d", evals[i]["step"].get<int>());
    if (name != expected[0]) expected.push_back(name);
  }
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(checkpoints(folder / "out"), expected);
}

TEST(Run, WhatCannotWorkIsRefused) {
  const Folder folder;
  const Runtime runtime = make_runtime(1);
  const auto refused = [&](const json& job, std::initializer_list<std::string> words) {
    inlaid_config* config = nullptr;
    if (inlaid_error* error = inlaid_config_parse(job.dump().c_str(), nullptr, &config)) {
      EXPECT_TRUE(fails(error, INLAID_INVALID_ARGUMENT, words)) << job;
      return;
    }
    const Config owned(config);
    inlaid_job* handle = nullptr;
    EXPECT_TRUE(fails(inlaid_job_create(runtime.get(), config, &handle), INLAID_INVALID_ARGUMENT, words)) << job;
  };
  json job = overfitting(folder, "out");
  job["data"].erase("eval");
  refused(job, {"early_stopping_patience", "data.eval"});
  job = overfitting(folder, "out");
  job["train"].erase("eval_steps");
  refused(job, {"early_stopping_patience", "train.eval_steps"});
  job = folder.job("out");
  job["train"]["early_stopping_threshold"] = 0.1;
  refused(job, {"early_stopping_threshold", "early_stopping_patience"});
  job = folder.job("out");
  job["logging"] = {{"writers", {"html"}}};
  refused(job, {"logging.writers", "jsonl"});
  std::string long_prompt;
  for (int i = 0; i < 300; ++i) long_prompt += "Define lamp " + std::to_string(i) + " ";
  job = folder.job("out");
  job["logging"] = {{"sample_prompts", {long_prompt}}};
  refused(job, {"logging.sample_prompts", "512"});
}

// A change while training acts from the next step on, is recorded, and goes on to act after a resume.
TEST(Run, ChangesWhileTraining) {
  const Folder folder;
  const Runtime runtime = make_runtime(2);
  json job = folder.job("out");
  job["optim"]["lr_scheduler_type"] = "constant";
  {
    const Config config = make_config(job);
    const Job handle = make<Job>(inlaid_job_create, runtime.get(), config.get());
    const Trainer trainer = make<Trainer>(inlaid_job_trainer, handle.get());
    const std::string options = json({{"until", 3}, {"checkpoint_dir", folder / "out/checkpoints"}}).dump();
    ok(inlaid_trainer_set(trainer.get(), "optim.weight_decay", "0.25"));
    const RunHandle run = make<RunHandle>(inlaid_run_start, trainer.get(), nullptr, options.c_str());
    ok(inlaid_run_request(run.get(), "pause"));
    ok(inlaid_run_set(run.get(), "optim.learning_rate", "0.001"));
    ok(inlaid_run_request(run.get(), "resume"));
    int64_t changed_after = -1;
    for (;;) {
      const Event event = make<Event>(inlaid_run_next, run.get(), int64_t{-1});
      const int32_t kind = inlaid_event_kind(event.get());
      if (kind == INLAID_EVENT_CHANGE) {
        EXPECT_STREQ(inlaid_event_text(event.get()), "optim.learning_rate = 0.001");
        changed_after = static_cast<int64_t>(inlaid_event_step(event.get()));
      }
      if (kind == INLAID_EVENT_STEP) {
        const bool after = changed_after >= 0 && static_cast<int64_t>(inlaid_event_step(event.get())) > changed_after;
        EXPECT_EQ(inlaid_event_metric(event.get(), "learning_rate"), after ? 0.001 : 0.01);
      }
      if (kind == INLAID_EVENT_DONE) break;
    }
    EXPECT_GE(changed_after, 0);
  }
  const Job resumed = make<Job>(inlaid_job_resume, runtime.get(), (folder / "out").c_str());
  const RunHandle run = make<RunHandle>(inlaid_job_start, resumed.get());
  EXPECT_EQ(watch(run.get()).end, "done");
  const std::vector<json> steps = of_kind(events_of(folder / "out"), "step");
  ASSERT_EQ(steps.size(), 5u);
  for (const json& step : steps) EXPECT_EQ(step["learning_rate"], 0.001) << step;
  const std::string last = folder / "out/checkpoints/step-000008";
  const json manifest = parsed(inlaid_checkpoint_manifest, runtime.get(), last.c_str(), 1);
  EXPECT_NE(manifest.dump().find("\"weight_decay\":0.25"), std::string::npos) << manifest;
}

TEST(Run, AnswersAndRecords) {
  const Folder folder;
  const Runtime runtime = make_runtime(2);
  json job = folder.job("out");
  job["train"]["eval_on_start"] = true;
  job["logging"] = {{"writers", {"jsonl", "csv", "tensorboard", "html"}},
                    {"sample_prompts", {"Define lamp 0", "Define <river>"}},
                    {"sample_max_new_tokens", 5}};
  const json plan = parsed(inlaid_config_plan, runtime.get(), make_config(job).get());
  const Trained trained = train(runtime.get(), job);
  const std::vector<json> events = events_of(folder / "out"), samples = of_kind(events, "sample");
  ASSERT_EQ(samples.size(), 4u);
  EXPECT_EQ(samples[1]["prompt"], "Define <river>");
  EXPECT_EQ(samples[1]["step"], 0);
  EXPECT_EQ(samples[3]["step"], 8);
  EXPECT_NE(samples[0]["text"], samples[2]["text"]) << "training changes the answers";
  for (const json& event : events) EXPECT_GT(event["time"].get<double>(), 1.7e9);

  // The samples change nothing else, and the plan knows what they take.
  json plain = folder.job("plain");
  plain["train"]["eval_on_start"] = true;
  EXPECT_EQ(trained.steps, train(runtime.get(), plain).steps);
  const json last = of_kind(events, "step").back();
  for (const auto& [category, bytes] : plan["memory"].items()) {
    if (category == "total") continue;
    EXPECT_EQ(last["memory_peak_" + category], bytes) << category;
  }

  const std::string steps = read_file(folder / "out/steps.csv");
  EXPECT_EQ(std::count(steps.begin(), steps.end(), '\n'), 9);
  EXPECT_FALSE(std::filesystem::is_empty(folder / "out/events"));
  const std::string page = read_file(folder / "out/report.html");
  EXPECT_NE(page.find("Define &lt;river&gt;"), std::string::npos);
  EXPECT_EQ(page, text(inlaid_job_report, runtime.get(), (folder / "out").c_str()));
}

// What a host that was restarted finds, job by job, and that nobody trains in a folder where somebody trains.
TEST(Run, ListOfJobs) {
  const Folder folder;
  const Runtime runtime = make_runtime(2);
  train(runtime.get(), folder.job("jobs/a_done"));
  make<Job>(inlaid_job_create, runtime.get(), make_config(folder.job("jobs/b_created")).get());
  json endless = folder.job("jobs/c_running");
  endless["train"]["max_steps"] = 1000000;
  const Job job = make<Job>(inlaid_job_create, runtime.get(), make_config(endless).get());
  const Job rival = make<Job>(inlaid_job_resume, runtime.get(), (folder / "jobs/c_running").c_str());
  RunHandle run = make<RunHandle>(inlaid_job_start, job.get());
  write_file(folder / "killed.json", [&] {
    json killed = folder.job("jobs/d_interrupted");
    killed["train"]["max_steps"] = 1000000;
    killed["checkpoint"] = {{"save_steps", 1}};
    return killed.dump();
  }());
  const auto [child, output] = start_child({"train", folder / "killed.json", "1"});
  std::string text;
  char byte;
  while (!text.ends_with("saved\n") && read(output, &byte, 1) == 1) text += byte;
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  close(output);
  std::filesystem::create_directories(folder / "jobs/e_damaged");
  write_file(folder / "jobs/e_damaged/job.json", "{");
  std::filesystem::create_directories(folder / "jobs/f_no_job");

  const json list = parsed(inlaid_job_list, runtime.get(), (folder / "jobs").c_str());
  std::map<std::string, json> jobs;
  for (const json& entry : list) jobs[std::filesystem::path(entry["output_dir"].get<std::string>()).filename()] = entry;
  ASSERT_EQ(jobs.size(), 5u) << list;
  EXPECT_EQ(jobs["a_done"]["state"], "done");
  EXPECT_EQ(jobs["a_done"]["step"], 8);
  EXPECT_EQ(jobs["a_done"]["total_steps"], 8);
  EXPECT_NE(jobs["a_done"]["latest_checkpoint"].get<std::string>().find("step-000008"), std::string::npos);
  EXPECT_EQ(jobs["b_created"]["state"], "created");
  EXPECT_EQ(jobs["c_running"]["state"], "running");
  EXPECT_EQ(jobs["d_interrupted"]["state"], "interrupted");
  EXPECT_NE(jobs["d_interrupted"]["latest_checkpoint"], "");
  EXPECT_EQ(jobs["e_damaged"]["state"], "damaged");
  EXPECT_NE(jobs["e_damaged"]["text"].get<std::string>().find("job.json"), std::string::npos);

  EXPECT_FAILS_OUT(inlaid_run, INLAID_FAILED_PRECONDITION, {"c_running"}, inlaid_job_start, rival.get());
  EXPECT_FAILS_OUT(inlaid_job, INLAID_FAILED_PRECONDITION, {"c_running"}, inlaid_job_resume, runtime.get(),
                   (folder / "jobs/c_running").c_str());
  const ChildResult other = run_child({"resume", folder / "jobs/c_running", "1"});
  EXPECT_EQ(other.exit_code, 10 + INLAID_FAILED_PRECONDITION) << other.output;
  inlaid_run_cancel(run.get());
  EXPECT_EQ(watch(run.get()).end, "cancelled");
  const Job complete = make<Job>(inlaid_job_resume, runtime.get(), (folder / "jobs/a_done").c_str());
  watch(make<RunHandle>(inlaid_job_start, complete.get()).get());
  const json after = parsed(inlaid_job_list, runtime.get(), (folder / "jobs").c_str());
  EXPECT_EQ(after[2]["state"], "cancelled") << after;
  EXPECT_EQ(after[0]["state"], "done") << after;
  EXPECT_EQ(after[0]["total_steps"], 8) << "also when there was nothing left to do";
}

}  // namespace
}  // namespace capi_test

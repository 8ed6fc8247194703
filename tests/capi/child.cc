// What tests do in a process of its own. Writes to standard output; the exit code is 0, or 10 + the code of an error.
//
//   train JOB.json THREADS [UNTIL]   a new job, up to a step; prints every step
//   resume OUT THREADS [UNTIL]       goes on with one
//   busy OUT THREADS                 goes on with one, evaluates and generates between all steps, and forgets what it saw
//   adapter OUT TARGET               writes the adapter of the latest checkpoint
//   full_disk BYTES JOB.json         trains while no file may grow beyond BYTES; prints the error
//   memory JOB.json                  trains and prints resident memory before and after, and the accounts
#include <sys/resource.h>

#include <csignal>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <thread>

#include "support.h"

using namespace capi_test;

namespace {

int reported(inlaid_error* error) {
  const int code = inlaid_error_code(error);
  std::printf("%s\n", inlaid_error_message(error));
  inlaid_error_release(error);
  return 10 + code;
}

void print(const Trained& trained) {
  for (const std::string& step : trained.steps) std::printf("%s\n", step.c_str());
}

// Trains to `until` in a background run that saves into the job's folder, like the job itself does.
int run_until(inlaid_job* job, const std::string& output, int64_t until) {
  const Trainer trainer = make<Trainer>(inlaid_job_trainer, job);
  const std::string options = json({{"until", until}, {"checkpoint_dir", output + "/checkpoints"}}).dump();
  const RunHandle run = make<RunHandle>(inlaid_run_start, trainer.get(), static_cast<inlaid_dataset*>(nullptr), options.c_str());
  print(watch(run.get()));
  return 0;
}

int go(inlaid_job* job, const std::string& output, int64_t until) {
  if (until > 0) return run_until(job, output, until);
  inlaid_run* raw = nullptr;
  if (inlaid_error* error = inlaid_job_start(job, &raw)) return reported(error);
  const RunHandle run(raw);
  for (;;) {
    const Event event = make<Event>(inlaid_run_next, raw, int64_t{-1});
    const int32_t kind = inlaid_event_kind(event.get());
    if (kind == INLAID_EVENT_STEP) std::printf("%s\n", step_line(event.get()).c_str());
    if (kind == INLAID_EVENT_CHECKPOINT) std::printf("saved\n");
    std::fflush(stdout);
    if (kind == INLAID_EVENT_DONE) break;
  }
  inlaid_error* error = inlaid_run_join(raw, -1);
  return error == nullptr ? 0 : reported(error);
}

int train_job(const std::string& file, int threads, int64_t until) {
  const json job = json::parse(read_file(file));
  const Runtime runtime = make_runtime(threads);
  const Config config = make_config(job);
  inlaid_job* raw = nullptr;
  if (inlaid_error* error = inlaid_job_create(runtime.get(), config.get(), &raw)) return reported(error);
  const Job handle(raw);
  return go(raw, job.value("output_dir", ""), until);
}

int resume_job(const std::string& output, int threads, int64_t until) {
  const Runtime runtime = make_runtime(threads);
  inlaid_job* raw = nullptr;
  if (inlaid_error* error = inlaid_job_resume(runtime.get(), output.c_str(), &raw)) return reported(error);
  const Job handle(raw);
  return go(raw, output, until);
}

// The remaining steps one by one, with everything in between that must not matter.
int busy(const std::string& output, int threads) {
  const Runtime runtime = make_runtime(threads);
  const Job job = make<Job>(inlaid_job_resume, runtime.get(), output.c_str());
  const Trainer trainer = make<Trainer>(inlaid_job_trainer, job.get());
  inlaid_model* model = nullptr;
  inlaid_adapter* adapter = nullptr;
  ok(inlaid_job_model(job.get(), &model, &adapter));
  const Model own_model(model);
  const Adapter own_adapter(adapter);
  const Config config = make_config(json::parse(read_file(output + "/job.json"))["config"]);
  const Dataset eval = make<Dataset>(inlaid_dataset_open, model, config.get(), "eval");
  for (;;) {
    inlaid_event* raw = nullptr;
    inlaid_error* error = inlaid_trainer_step(trainer.get(), nullptr, &raw);
    if (error != nullptr && inlaid_error_code(error) == INLAID_OUT_OF_RANGE) {
      inlaid_error_release(error);
      return 0;
    }
    ok(error);
    const Event event(raw);
    std::printf("%s\n", step_line(raw).c_str());
    make<Event>(inlaid_trainer_evaluate, trainer.get(), eval.get(), static_cast<inlaid_cancel*>(nullptr));
    make<Event>(inlaid_evaluate, model, adapter, eval.get(), static_cast<inlaid_cancel*>(nullptr));
    generate(model, adapter, {5, 6, 7}, 4);
  }
}

int save_adapter(const std::string& output, const std::string& target) {
  const Runtime runtime = make_runtime(1);
  inlaid_model* model = nullptr;
  inlaid_adapter* adapter = nullptr;
  ok(inlaid_result_open(runtime.get(), output.c_str(), nullptr, nullptr, &model, &adapter));
  const Model own_model(model);
  const Adapter own_adapter(adapter);
  ok(inlaid_adapter_save(adapter, target.c_str()));
  return 0;
}

int full_disk(rlim_t bytes, const std::string& file) {
  std::signal(SIGXFSZ, SIG_IGN);  // writes beyond the limit then fail with EFBIG
  const rlimit limit{bytes, bytes};
  if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
  return train_job(file, 1, 0);
}

int64_t resident_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("VmRSS:", 0) == 0) return std::stoll(line.substr(6)) * 1024;
  }
  return 0;
}

int memory(const std::string& file) {
  const json job = json::parse(read_file(file));
  const int64_t before = resident_bytes();
  const Runtime runtime = make_runtime(2);
  const Config config = make_config(job);
  const Job handle = make<Job>(inlaid_job_create, runtime.get(), config.get());
  const RunHandle run = make<RunHandle>(inlaid_job_start, handle.get());
  watch(run.get());
  json result;
  result["before"] = before;
  result["after"] = resident_bytes();
  result["runtime"] = parsed(inlaid_runtime_describe, runtime.get());
  std::printf("%s\n", result.dump().c_str());
  return 0;
}

int act(const std::vector<std::string>& a) {
  const auto number = [&](size_t i) { return a.size() > i ? std::stoll(a[i]) : 0; };
  if (a[0] == "train") return train_job(a.at(1), static_cast<int>(number(2)), number(3));
  if (a[0] == "resume") return resume_job(a.at(1), static_cast<int>(number(2)), number(3));
  if (a[0] == "busy") return busy(a.at(1), static_cast<int>(number(2)));
  if (a[0] == "adapter") return save_adapter(a.at(1), a.at(2));
  if (a[0] == "full_disk") return full_disk(static_cast<rlim_t>(number(1)), a.at(2));
  if (a[0] == "memory") return memory(a.at(1));
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return argc > 1 ? act({argv + 1, argv + argc}) : 2;
  } catch (const std::exception& e) {
    std::printf("%s\n", e.what());
    return 1;
  }
}

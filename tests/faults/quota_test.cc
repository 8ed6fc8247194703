// What a host may ask of a runtime: limits on disk and time that hold, and memory that is empty when it comes back.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "tests/capi/support.h"

namespace faults {
namespace {

using namespace capi_test;

uint64_t bytes_below(const std::string& folder) {
  uint64_t total = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) total += entry.file_size();
  }
  return total;
}

bool has_temporary_files(const std::string& folder) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().filename().string().find(".tmp") != std::string::npos) return true;
  }
  return false;
}

uint64_t disk_used(inlaid_runtime* runtime) { return parsed(inlaid_runtime_describe, runtime)["disk_used"].get<uint64_t>(); }

json saving_job(const Folder& folder, const std::string& output) {
  json job = folder.job(output, false);  // all weights train: a checkpoint is large beside everything else
  job["checkpoint"] = {{"save_steps", 2}, {"save_total_limit", 1}};
  job["logging"] = {{"writers", {"jsonl", "html", "csv", "tensorboard"}}};
  return job;
}

// The end of a run that fails: its error.
inlaid_error* failing_run(inlaid_job* job) {
  const RunHandle run = make<RunHandle>(inlaid_job_start, job);
  for (int32_t kind = 0; kind != INLAID_EVENT_DONE;) {
    kind = inlaid_event_kind(make<Event>(inlaid_run_next, run.get(), int64_t{-1}).get());
  }
  return inlaid_run_join(run.get(), -1);
}

TEST(Quota, WhatIsCountedIsWhatLiesThere) {
  const Folder folder;
  const Runtime runtime = make_runtime(2, {{"disk_limit", 100000000}});
  train(runtime.get(), saving_job(folder, "out"));
  EXPECT_EQ(disk_used(runtime.get()), bytes_below(folder / "out"));
  const Runtime unlimited = make_runtime(1);
  EXPECT_EQ(disk_used(unlimited.get()), 0u);
}

// A checkpoint that does not fit beside the one before: the run ends with the reason, the old checkpoint is whole, no byte
// too much lies on the disk, and with more room the job goes on to the bits of an undisturbed one.
TEST(Quota, ADiskThatIsFull) {
  const Folder folder;
  const Runtime free = make_runtime(2);
  const Trained expected = train(free.get(), saving_job(folder, "undisturbed"));
  const uint64_t checkpoint = bytes_below(folder / "undisturbed/checkpoints/step-000008");

  // Room for what a job writes until its first checkpoint is there, and for a part of another one.
  const json job = saving_job(folder, "cramped");
  const Config config = make_config(job);
  const uint64_t limit = bytes_below(folder / "undisturbed") + checkpoint / 4;
  const Runtime cramped = make_runtime(2, {{"disk_limit", limit}});
  {
    const Job handle = make<Job>(inlaid_job_create, cramped.get(), config.get());
    EXPECT_TRUE(fails(failing_run(handle.get()), INLAID_RESOURCE_EXHAUSTED, {"step-000004", "disk limit of " + std::to_string(limit)}));
  }
  EXPECT_LE(bytes_below(folder / "cramped"), limit);
  EXPECT_FALSE(has_temporary_files(folder / "cramped"));
  EXPECT_EQ(parsed(inlaid_checkpoint_verify, free.get(), (folder / "cramped/checkpoints/step-000002").c_str())["ok"], true);
  EXPECT_FALSE(std::filesystem::exists(folder / "cramped/checkpoints/step-000004"));
  EXPECT_EQ(parsed(inlaid_job_list, free.get(), (folder / "").c_str())[0]["state"], "failed") << "small files still fit";

  // A runtime that starts later counts what is there: the limit holds over restarts.
  const Runtime restarted = make_runtime(2, {{"disk_limit", limit}});
  {
    const Job handle = make<Job>(inlaid_job_resume, restarted.get(), (folder / "cramped").c_str());
    EXPECT_EQ(disk_used(restarted.get()), bytes_below(folder / "cramped"));
    EXPECT_TRUE(fails(failing_run(handle.get()), INLAID_RESOURCE_EXHAUSTED, {"disk limit"}));
  }
  EXPECT_LE(bytes_below(folder / "cramped"), limit);
  const Job handle = make<Job>(inlaid_job_resume, free.get(), (folder / "cramped").c_str());
  const Trained rest = watch(make<RunHandle>(inlaid_job_start, handle.get()).get());
  EXPECT_EQ(rest.steps, std::vector<std::string>(expected.steps.begin() + 2, expected.steps.end()));
}

TEST(Quota, ExportsAndSavesOfTheHost) {
  const Folder folder;
  const Runtime runtime = make_runtime(1, {{"disk_limit", 1000}});
  const Config config = make_config(folder.job(""));
  const Model model = make<Model>(inlaid_model_create, runtime.get(), config.get(), nullptr);
  const Adapter adapter = make<Adapter>(inlaid_adapter_create, model.get(), config.get());
  const Trainer trainer = make<Trainer>(inlaid_trainer_create, model.get(), adapter.get(), config.get());
  EXPECT_TRUE(fails(inlaid_checkpoint_save(trainer.get(), (folder / "saved").c_str(), nullptr), INLAID_RESOURCE_EXHAUSTED, {"saved"}));
  EXPECT_TRUE(fails(inlaid_adapter_save(adapter.get(), (folder / "peft").c_str()), INLAID_RESOURCE_EXHAUSTED, {"peft"}));
  EXPECT_TRUE(fails(inlaid_model_export(model.get(), nullptr, (folder / "hf").c_str(), nullptr), INLAID_RESOURCE_EXHAUSTED, {"hf"}));
  EXPECT_TRUE(fails(inlaid_model_export(model.get(), nullptr, (folder / "m.gguf").c_str(), R"({"format": "gguf"})"),
                    INLAID_RESOURCE_EXHAUSTED, {"m.gguf"}));
  EXPECT_EQ(disk_used(runtime.get()), 0u) << "nothing is kept";
  for (const char* name : {"saved", "peft", "hf", "m.gguf"}) EXPECT_FALSE(std::filesystem::exists(folder / name)) << name;
}

TEST(Quota, AJobAsksForLimitsThatItsRuntimeKeeps) {
  const Folder folder;
  const auto refused = [&](const char* key, const json& value, const json& settings) {
    json job = folder.job("out");
    job["runtime"][key] = value;
    const Runtime runtime = make_runtime(1, settings);
    EXPECT_FAILS_OUT(inlaid_job, INLAID_FAILED_PRECONDITION, {std::string("runtime.") + key}, inlaid_job_create, runtime.get(),
                     make_config(job).get());
  };
  refused("disk_limit", 1000000, json::object());
  refused("disk_limit", 1000000, {{"disk_limit", 1000001}});
  refused("zero_memory", true, json::object());
  json job = folder.job("out");
  job["runtime"] = {{"disk_limit", 1000000}, {"zero_memory", true}};
  EXPECT_EQ(train(make_runtime(1, {{"disk_limit", 1000000}, {"zero_memory", true}}).get(), job).steps.size(), 8u);
}

// A run whose time is up: within a step or an evaluation, saved, said, resumable to the same bits.
void expect_out_of_time(bool of_the_runtime) {
  const Folder folder;
  const Runtime plain = make_runtime(2);
  json job = folder.job("out");
  job["train"]["max_steps"] = 1000000;
  if (!of_the_runtime) job["runtime"]["wall_time_limit"] = 0.2;
  const Config config = make_config(job);
  const Runtime limited = make_runtime(2, of_the_runtime ? json{{"wall_time_limit", 0.2}} : json::object());
  std::vector<std::string> warnings;
  Trained first;
  {
    const Job handle = make<Job>(inlaid_job_create, limited.get(), config.get());
    const RunHandle run = make<RunHandle>(inlaid_job_start, handle.get());
    for (;;) {
      const Event event = make<Event>(inlaid_run_next, run.get(), int64_t{-1});
      const int32_t kind = inlaid_event_kind(event.get());
      if (kind == INLAID_EVENT_STEP) first.steps.push_back(step_line(event.get()));
      if (kind == INLAID_EVENT_WARNING) warnings.push_back(inlaid_event_text(event.get()));
      if (kind != INLAID_EVENT_DONE) continue;
      first.end = inlaid_event_text(event.get());
      break;
    }
    ok(inlaid_run_join(run.get(), -1));
  }
  EXPECT_EQ(first.end, "stopped: the wall time limit of 0.2 s was reached");
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("can be resumed"), std::string::npos) << warnings[0];
  const json listed = parsed(inlaid_job_list, plain.get(), (folder / "").c_str())[0];
  EXPECT_EQ(listed["state"], "stopped") << listed;
  EXPECT_EQ(listed["step"].get<size_t>(), first.steps.size()) << listed;

  // A step beyond, against an undisturbed job.
  const auto until = std::to_string(first.steps.size() + 1);
  json whole = folder.job("whole");
  whole["train"]["max_steps"] = 1000000;
  const auto run_until = [&](inlaid_job* handle) {
    const Trainer trainer = make<Trainer>(inlaid_job_trainer, handle);
    return watch(make<RunHandle>(inlaid_run_start, trainer.get(), nullptr, ("{\"until\": " + until + "}").c_str()).get());
  };
  const Job resumed = make<Job>(inlaid_job_resume, plain.get(), (folder / "out").c_str());
  const Job undisturbed = make<Job>(inlaid_job_create, plain.get(), make_config(whole).get());
  std::vector<std::string> steps = first.steps;
  for (const std::string& line : run_until(resumed.get()).steps) steps.push_back(line);
  EXPECT_EQ(steps, run_until(undisturbed.get()).steps);
}

TEST(Quota, WallTimeOfTheRuntime) { expect_out_of_time(true); }
TEST(Quota, WallTimeOfTheJob) { expect_out_of_time(false); }

// Also where no step ends in time: an evaluation that would take for ever.
TEST(Quota, WallTimeDuringAnEvaluation) {
  const Folder folder;
  std::string rows = read_file(folder / "eval.jsonl"), many;
  for (int i = 0; i < 1000; ++i) many += rows;
  write_file(folder / "eval.jsonl", many);
  json job = folder.job("out");
  job["train"]["eval_on_start"] = true;
  job["runtime"]["wall_time_limit"] = 0.1;
  const Runtime runtime = make_runtime(1);
  const Trained trained = train(runtime.get(), job);
  EXPECT_EQ(trained.end, "stopped: the wall time limit of 0.1 s was reached");
  EXPECT_TRUE(trained.steps.empty());
}

// A cancellation is one, whatever the clock says.
TEST(Quota, CancelUnderAWallTimeLimit) {
  const Folder folder;
  json job = folder.job("");
  job["train"]["max_steps"] = 1000000;
  job["runtime"]["wall_time_limit"] = 1000;
  const Runtime runtime = make_runtime(1);
  const Job handle = make<Job>(inlaid_job_create, runtime.get(), make_config(job).get());
  const RunHandle run = make<RunHandle>(inlaid_job_start, handle.get());
  inlaid_run_cancel(run.get());
  EXPECT_EQ(watch(run.get()).end, "cancelled");
}

// An allocator that looks at what it gets back.
struct Watcher {
  std::atomic<uint64_t> released{0}, dirty{0};
  inlaid_allocator vtable() {
    inlaid_allocator allocator = INLAID_ALLOCATOR_INIT;
    allocator.user = this;
    allocator.alloc = [](void*, uint64_t bytes, uint64_t align) -> void* {
      void* memory = nullptr;
      return posix_memalign(&memory, std::max<uint64_t>(align, sizeof(void*)), bytes) == 0 ? std::memset(memory, 0x5a, bytes) : nullptr;
    };
    allocator.free = [](void* user, void* memory, uint64_t bytes) {
      auto& self = *static_cast<Watcher*>(user);
      const auto* first = static_cast<const unsigned char*>(memory);
      self.released += bytes;
      self.dirty += static_cast<uint64_t>(bytes - static_cast<uint64_t>(std::count(first, first + bytes, 0)));
      std::free(memory);
    };
    return allocator;
  }
};

TEST(Quota, MemoryIsZeroedOnRequest) {
  const Folder folder;
  for (const bool zero : {true, false}) {
    Watcher watcher;
    const inlaid_allocator vtable = watcher.vtable();
    {
      const Runtime runtime = make_runtime(2, {{"zero_memory", zero}}, &vtable);
      const json job = folder.job(zero ? "zeroed" : "plain");
      EXPECT_EQ(train(runtime.get(), job).steps.size(), 8u);
      inlaid_model* model = nullptr;
      inlaid_adapter* adapter = nullptr;
      ok(inlaid_result_open(runtime.get(), job["output_dir"].get<std::string>().c_str(), nullptr, nullptr, &model, &adapter));
      const Model own_model(model);
      const Adapter own_adapter(adapter);
      generate(model, adapter, {5, 6, 7}, 3);
      EXPECT_EQ(parsed(inlaid_runtime_describe, runtime.get())["zero_memory"], zero);
    }
    EXPECT_GT(watcher.released, 100000u);
    if (zero) {
      EXPECT_EQ(watcher.dirty, 0u);
    } else {
      EXPECT_GT(watcher.dirty, 100000u) << "without the option this test would see it";
    }
  }
}

}  // namespace
}  // namespace faults

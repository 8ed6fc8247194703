// Training through the C API: several at once, by hand, in the background, with adapters on one base.
#include <algorithm>
#include <chrono>
#include <thread>

#include "support.h"

namespace capi_test {
namespace {

json with_seed(json job, int seed) {
  job["train"]["seed"] = seed;
  return job;
}

// Two runtimes and three jobs in one process at the same time give the bits that each gives alone.
TEST(Training, ThreeJobsInTwoRuntimesAtOnce) {
  const Folder folder;
  const json jobs[] = {with_seed(folder.job(""), 1), with_seed(folder.job("", false), 2), with_seed(folder.job(""), 3)};
  std::vector<Trained> alone, together(3);
  for (const json& job : jobs) {
    const Runtime runtime = make_runtime(1);
    alone.push_back(train(runtime.get(), job));
    ASSERT_EQ(alone.back().steps.size(), 8u);
  }
  EXPECT_NE(alone[0].steps, alone[2].steps) << "the seeds differ";
  for (int round = 0; round < 3; ++round) {
    const Runtime first = make_runtime(2), second = make_runtime(3);
    std::vector<std::thread> threads;
    for (size_t i = 0; i < 3; ++i) {
      threads.emplace_back([&, i] { together[i] = train(i == 1 ? second.get() : first.get(), jobs[i]); });
    }
    for (std::thread& thread : threads) thread.join();
    for (size_t i = 0; i < 3; ++i) EXPECT_EQ(together[i].steps, alone[i].steps) << "job " << i;
  }
}

TEST(Training, TheSameBitsForAnyNumberOfThreads) {
  const Folder folder;
  for (bool lora : {true, false}) {
    const Runtime one = make_runtime(1), many = make_runtime(5);
    const std::vector<std::string> expected = train(one.get(), folder.job("", lora)).steps;
    EXPECT_EQ(train(many.get(), folder.job("", lora)).steps, expected);
  }
}

// What PEFT adapts by default leaves a projection without gradient in the first layer. In a process of its own, because a
// defect here once ended the process.
TEST(Training, AdaptersOnSomeModulesOnly) {
  const Folder folder;
  for (const json& modules : {json({"q_proj", "v_proj"}), json({"v_proj"}), json({"q_proj"}), json({"k_proj"}),
                              json({"up_proj"}), json({"gate_proj"}), json({"down_proj"}), json({"o_proj"})}) {
    json job = folder.job("");
    job["adapter"]["target_modules"] = modules;
    write_file(folder / "job.json", job.dump());
    const ChildResult result = run_child({"train", folder / "job.json", "2"});
    EXPECT_EQ(result.exit_code, 0) << modules << ": " << result.output;
    EXPECT_EQ(std::count(result.output.begin(), result.output.end(), '\n'), 8) << modules << ": " << result.output;
  }
}

// Adapters train at once on one resident base, whose bits do not change, and each learns what it learns alone.
TEST(Training, TwoAdaptersOnOneBase) {
  const Folder folder;
  const json jobs[] = {with_seed(folder.job(""), 1), with_seed(folder.job(""), 2)};
  const Runtime runtime = make_runtime(2);
  const Config base_config = make_config(jobs[0]);
  const Model base = make<Model>(inlaid_model_create, runtime.get(), base_config.get(), nullptr);
  const std::string before = weight_bytes(base.get());
  const std::string base_text = generate(base.get(), nullptr, {5, 6, 7}, 8);
  const auto run_adapter = [&](const json& job, std::string* generated) {
    const Config config = make_config(job);
    const Adapter adapter = make<Adapter>(inlaid_adapter_create, base.get(), config.get());
    const Trainer trainer = make<Trainer>(inlaid_trainer_create, base.get(), adapter.get(), config.get());
    const Dataset data = make<Dataset>(inlaid_dataset_open, base.get(), config.get(), "train");
    ok(inlaid_trainer_set_dataset(trainer.get(), data.get()));
    const RunHandle run = make<RunHandle>(inlaid_run_start, trainer.get(), nullptr, nullptr);
    const std::vector<std::string> steps = watch(run.get()).steps;
    *generated = generate(base.get(), adapter.get(), {5, 6, 7}, 8);
    return steps;
  };
  std::vector<std::string> alone[2], together[2];
  std::string alone_text[2], together_text[2];
  for (int i = 0; i < 2; ++i) alone[i] = run_adapter(jobs[i], &alone_text[i]);
  std::thread other([&] { together[0] = run_adapter(jobs[0], &together_text[0]); });
  together[1] = run_adapter(jobs[1], &together_text[1]);
  other.join();
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(alone[i].size(), 8u);
    EXPECT_EQ(together[i], alone[i]);
    EXPECT_EQ(together_text[i], alone_text[i]);
    EXPECT_NE(together_text[i], base_text) << "the adapter does something";
  }
  EXPECT_EQ(weight_bytes(base.get()), before);
  EXPECT_EQ(generate(base.get(), nullptr, {5, 6, 7}, 8), base_text);
}

TEST(Training, OneTrainerForTheWeightsOfAModel) {
  const Folder folder;
  const Runtime runtime = make_runtime(1);
  const Config full = make_config(folder.job("", false)), lora = make_config(folder.job(""));
  const Model model = make<Model>(inlaid_model_create, runtime.get(), full.get(), nullptr);
  const Adapter adapter = make<Adapter>(inlaid_adapter_create, model.get(), lora.get());
  Trainer trainer = make<Trainer>(inlaid_trainer_create, model.get(), nullptr, full.get());
  EXPECT_FAILS_OUT(inlaid_trainer, INLAID_FAILED_PRECONDITION, {"another trainer"}, inlaid_trainer_create, model.get(), nullptr,
                   full.get());
  EXPECT_FAILS_OUT(inlaid_trainer, INLAID_FAILED_PRECONDITION, {"another trainer"}, inlaid_trainer_create, model.get(),
                   adapter.get(), lora.get());
  trainer.reset();
  const Trainer first = make<Trainer>(inlaid_trainer_create, model.get(), adapter.get(), lora.get());
  const Adapter second_adapter = make<Adapter>(inlaid_adapter_create, model.get(), lora.get());
  const Trainer second = make<Trainer>(inlaid_trainer_create, model.get(), second_adapter.get(), lora.get());
  EXPECT_FAILS_OUT(inlaid_trainer, INLAID_FAILED_PRECONDITION, {"adapters"}, inlaid_trainer_create, model.get(), nullptr,
                   full.get());
}

// The micro-batches of a step, given by hand, make the step bit for bit.
TEST(Training, AccumulateAndApplyAreAStep) {
  const Folder folder;
  json job = folder.job("", false);
  job["data"]["shuffle"] = false;
  job["data"]["packing"] = false;
  job["train"].erase("micro_batch_tokens");
  job["train"]["micro_batch_size"] = 2;
  job["train"]["gradient_accumulation_steps"] = 3;
  job["train"]["max_steps"] = 4;
  const Runtime runtime = make_runtime(2);
  const Config config = make_config(job);
  const Job whole = make<Job>(inlaid_job_create, runtime.get(), config.get());
  const Trainer stepper = make<Trainer>(inlaid_job_trainer, whole.get());

  json by_hand_job = job;
  by_hand_job["train"].erase("micro_batch_size");
  by_hand_job["data"].erase("packing");
  by_hand_job["train"]["micro_batch_tokens"] = 512;
  const Config by_hand = make_config(by_hand_job);
  const Model model = make<Model>(inlaid_model_create, runtime.get(), by_hand.get(), nullptr);
  const Dataset data = make<Dataset>(inlaid_dataset_open, model.get(), by_hand.get(), "train");
  const Trainer trainer = make<Trainer>(inlaid_trainer_create, model.get(), nullptr, by_hand.get());
  uint64_t sample = 0;
  for (int step = 0; step < 4; ++step) {
    double loss = 0, targets = 0;
    for (int micro = 0; micro < 3; ++micro) {
      std::vector<int32_t> tokens, wanted, ends = {0};
      for (int i = 0; i < 2; ++i) {
        const json one = parsed(inlaid_dataset_sample, data.get(), sample++);
        for (int32_t id : one["ids"]) tokens.push_back(id);
        for (int32_t id : one["targets"]) wanted.push_back(id);
        ends.push_back(static_cast<int32_t>(tokens.size()));
      }
      const Batch batch = make<Batch>(inlaid_batch_create);
      ok(inlaid_batch_add_int32(batch.get(), "tokens", tokens.data(), tokens.size() * 4));
      ok(inlaid_batch_add_int32(batch.get(), "targets", wanted.data(), wanted.size() * 4));
      ok(inlaid_batch_add_int32(batch.get(), "cu_seqlens", ends.data(), ends.size() * 4));
      const Event event = make<Event>(inlaid_trainer_accumulate, trainer.get(), batch.get(), nullptr);
      targets += inlaid_event_metric(event.get(), "target_tokens");
      loss += inlaid_event_metric(event.get(), "loss") * inlaid_event_metric(event.get(), "target_tokens");
    }
    const Event applied = make<Event>(inlaid_trainer_apply, trainer.get());
    const Event stepped = make<Event>(inlaid_trainer_step, stepper.get(), nullptr);
    EXPECT_EQ(step_line(applied.get()), step_line(stepped.get()));
    EXPECT_NEAR(inlaid_event_metric(applied.get(), "loss"), loss / targets, 1e-12);
  }
}

// Saves, pauses, evaluates and stops on request, and says so in events.
TEST(Training, Requests) {
  const Folder folder;
  json job = folder.job("out");
  job["train"]["max_steps"] = 1000000;
  const Runtime runtime = make_runtime(1);
  const Config config = make_config(job);
  const Job handle = make<Job>(inlaid_job_create, runtime.get(), config.get());
  const RunHandle run = make<RunHandle>(inlaid_job_start, handle.get());
  std::vector<std::string> log;
  uint64_t last_step = 0;
  const auto until = [&](int32_t kind, const std::string& text) {
    for (;;) {
      const Event event = make<Event>(inlaid_run_next, run.get(), int64_t{10000});
      ASSERT_NE(event, nullptr) << "nothing for ten seconds while waiting for " << kind << " " << text;
      last_step = inlaid_event_step(event.get());
      ASSERT_NE(inlaid_event_kind(event.get()), INLAID_EVENT_DONE);
      if (inlaid_event_kind(event.get()) == kind && (text.empty() || text == inlaid_event_text(event.get()))) return;
    }
  };
  until(INLAID_EVENT_STEP, "");
  ok(inlaid_run_request(run.get(), "pause"));
  until(INLAID_EVENT_STATE, "paused");
  const uint64_t paused_at = last_step;
  ok(inlaid_run_request(run.get(), "save"));  // served while paused, too
  until(INLAID_EVENT_CHECKPOINT, "");
  EXPECT_EQ(last_step, paused_at);
  ok(inlaid_run_request(run.get(), "eval"));
  until(INLAID_EVENT_EVAL, "");
  EXPECT_EQ(last_step, paused_at);
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  ok(inlaid_run_request(run.get(), "resume"));
  until(INLAID_EVENT_STEP, "");
  EXPECT_EQ(last_step, paused_at + 1) << "no step was made while paused";
  ok(inlaid_run_request(run.get(), "stop"));
  const Trained rest = watch(run.get());
  EXPECT_EQ(rest.end, "stopped");
  const Job resumed = make<Job>(inlaid_job_resume, runtime.get(), (folder / "out").c_str());
  EXPECT_EQ(parsed(inlaid_job_describe, resumed.get())["steps_done"], parsed(inlaid_job_describe, handle.get())["steps_done"]);
}

// A cancelled run saves nothing and leaves the trainer as it was after its last step.
TEST(Training, CancelledRun) {
  const Folder folder;
  json job = folder.job("");
  const Runtime runtime = make_runtime(1);
  const std::vector<std::string> whole = train(runtime.get(), job).steps;
  job = folder.job("out");
  const Config config = make_config(job);
  const Job handle = make<Job>(inlaid_job_create, runtime.get(), config.get());
  const Trainer trainer = make<Trainer>(inlaid_job_trainer, handle.get());
  const RunHandle run = make<RunHandle>(inlaid_job_start, handle.get());
  inlaid_run_cancel(run.get());
  std::vector<std::string> steps = watch(run.get()).steps;  // it may have finished before
  while (steps.size() < whole.size()) {
    steps.push_back(step_line(make<Event>(inlaid_trainer_step, trainer.get(), nullptr).get()));
  }
  EXPECT_EQ(steps, whole);
}

TEST(Training, PollingAndTimeouts) {
  const Folder folder;
  json job = folder.job("");
  job["train"]["max_steps"] = 1000000;
  const Runtime runtime = make_runtime(1);
  const Config config = make_config(job);
  const Job handle = make<Job>(inlaid_job_create, runtime.get(), config.get());
  const RunHandle run = make<RunHandle>(inlaid_job_start, handle.get());
  ok(inlaid_run_request(run.get(), "pause"));
  for (std::string text; text != "paused";) {
    const Event event = make<Event>(inlaid_run_next, run.get(), int64_t{10000});
    ASSERT_NE(event, nullptr);
    text = inlaid_event_text(event.get());
  }
  EXPECT_EQ(make<Event>(inlaid_run_next, run.get(), int64_t{0}), nullptr);
  EXPECT_EQ(make<Event>(inlaid_run_next, run.get(), int64_t{5}), nullptr);
  EXPECT_TRUE(fails(inlaid_run_join(run.get(), 5), INLAID_DEADLINE_EXCEEDED));
  inlaid_run_cancel(run.get());
  EXPECT_EQ(watch(run.get()).end, "cancelled");
}

// Steps may be dropped when nobody pulls; then the sequence numbers show it, and nothing else is missing.
TEST(Training, EventsThatNobodyPulls) {
  const Folder folder;
  json job = folder.job("out");
  job["train"]["max_steps"] = 1500;
  job["train"]["micro_batch_tokens"] = 96;
  job["checkpoint"] = {{"save_steps", 500}};
  job["model"]["config"]["num_hidden_layers"] = 1;
  const Runtime runtime = make_runtime(1);
  const Config config = make_config(job);
  const Job handle = make<Job>(inlaid_job_create, runtime.get(), config.get());
  const RunHandle run = make<RunHandle>(inlaid_job_start, handle.get());
  ok(inlaid_run_join(run.get(), -1));
  uint64_t expected = 1, gaps = 0, checkpoints = 0, steps = 0;
  for (;;) {
    const Event event = make<Event>(inlaid_run_next, run.get(), int64_t{0});
    ASSERT_NE(event, nullptr);
    if (inlaid_event_seq(event.get()) != expected) gaps += inlaid_event_seq(event.get()) - expected;
    expected = inlaid_event_seq(event.get()) + 1;
    checkpoints += inlaid_event_kind(event.get()) == INLAID_EVENT_CHECKPOINT;
    steps += inlaid_event_kind(event.get()) == INLAID_EVENT_STEP;
    if (inlaid_event_kind(event.get()) == INLAID_EVENT_DONE) break;
  }
  EXPECT_GT(gaps, 0u);
  EXPECT_EQ(steps + gaps, 1500u) << "only steps are dropped";
  EXPECT_EQ(checkpoints, 3u);
  // The file has them all.
  const std::string lines = read_file(folder / "out/events.jsonl");
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), static_cast<int64_t>(expected) - 1);
}

TEST(Training, TheLogSinkHearsTheLibraryAndNothingIsPrinted) {
  static std::atomic<int> records;
  records = 0;
  inlaid_log_sink sink = INLAID_LOG_SINK_INIT;
  sink.min_level = INLAID_LOG_TRACE;
  sink.write = [](void* user, int32_t level, const char* component, const char* utf8, uint64_t size) {
    ASSERT_EQ(user, &records);
    ASSERT_TRUE(level >= INLAID_LOG_TRACE && level <= INLAID_LOG_ERROR);
    ASSERT_NE(component[0], 0);
    ASSERT_TRUE(utf8 != nullptr && size > 0);
    ++records;
  };
  sink.user = &records;
  inlaid_runtime_options options = INLAID_RUNTIME_OPTIONS_INIT;
  options.log_sink = &sink;
  const Runtime runtime = make<Runtime>(inlaid_runtime_create, &options);
  const Folder folder;
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  train(runtime.get(), folder.job("out"));
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace capi_test

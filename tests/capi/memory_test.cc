// Memory is planned and accounted for, and cancellation is prompt: on the real model where size matters.
#include <chrono>
#include <cmath>
#include <functional>
#include <thread>

#include "support.h"

namespace capi_test {
namespace {

using Clock = std::chrono::steady_clock;

const char* const kCategories[] = {"weights",   "gradients",     "optimizer", "activations",
                                   "workspace", "communication", "data"};

void expect_as_planned(const json& plan, const json& accounts, const std::string& what) {
  for (const char* category : kCategories) {
    EXPECT_EQ(plan["memory"][category], accounts["memory"][category]["peak"]) << what << ": " << category;
  }
  EXPECT_EQ(plan["memory"]["total"], accounts["memory"]["total"]["peak"]) << what;
}

// The plan of a job is the peak of its run, to the byte, in every category.
TEST(Memory, PlanIsPeak) {
  const Folder folder;
  std::vector<std::pair<std::string, std::function<void(json&)>>> variants = {
      {"as it is", [](json&) {}},
      {"recomputed", [](json& job) { job["model"]["recompute"] = "full"; }},
      {"sized by rows", [](json& job) {
         job["train"].erase("micro_batch_tokens");
         job["train"]["micro_batch_size"] = 3;
       }},
      {"without evaluation data", [](json& job) { job["data"].erase("eval"); }},
      {"accumulated", [](json& job) { job["train"]["gradient_accumulation_steps"] = 3; }},
      {"data in a file",
       [&folder](json& job) {
         job["data"]["resident_bytes"] = 1;
         job["data"]["cache_dir"] = folder / "cache";
       }},
  };
  for (bool lora : {true, false}) {
    for (const auto& [name, change] : variants) {
      json job = folder.job("", lora);
      change(job);
      for (int threads : {1, 3}) {
        const std::string what = name + (lora ? ", LoRA, " : ", full, ") + std::to_string(threads) + " threads";
        const Config config = make_config(job);
        const Runtime runtime = make_runtime(threads);
        const json plan = parsed(inlaid_config_plan, runtime.get(), config.get());
        EXPECT_EQ(plan["refused"], json::array()) << what;
        const Runtime fresh = make_runtime(threads);
        EXPECT_EQ(train(fresh.get(), job).steps.size(), 8u);
        expect_as_planned(plan, parsed(inlaid_runtime_describe, fresh.get()), what);
      }
    }
  }
}

TEST(Memory, AccountsFollowHandles) {
  const Folder folder;
  const Config config = make_config(folder.job(""));
  const Runtime runtime = make_runtime(1);
  const auto current = [&](const char* category) {
    return parsed(inlaid_runtime_describe, runtime.get())["memory"][category]["current"].get<int64_t>();
  };
  Model model = make<Model>(inlaid_model_create, runtime.get(), config.get(), nullptr);
  const int64_t weights = current("weights");
  EXPECT_GT(weights, 0);
  Generator generator = make<Generator>(inlaid_generator_create, model.get(), nullptr, nullptr);
  const int32_t prompt[] = {5, 6, 7};
  ok(inlaid_generator_prompt(generator.get(), prompt, sizeof prompt));
  EXPECT_GT(current("activations"), 0) << "the key/value cache";
  generator.reset();
  EXPECT_EQ(current("activations"), 0);
  EXPECT_EQ(current("weights"), weights);
  model.reset();
  EXPECT_EQ(current("total"), 0);
}

json real_job(const Folder& folder, bool lora) {
  json job;
  job["model"]["path"] = smollm2_path();
  if (lora) job["adapter"] = {{"peft_type", "LORA"}, {"r", 16}, {"target_modules", "all-linear"}};
  job["data"]["train"] = {{{"path", folder / "train.jsonl"}}};
  job["train"] = {{"micro_batch_tokens", 256}, {"max_steps", 1}, {"eval_on_start", false}};
  return job;
}

// In a fresh process the sum of the categories explains what the process has grown by, to 5 %.
TEST(Memory, CategoriesExplainTheProcess) {
  const Folder folder;
  for (bool lora : {true, false}) {
    write_file(folder / "job.json", real_job(folder, lora).dump());
    const ChildResult child = run_child({"memory", folder / "job.json"});
    ASSERT_EQ(child.exit_code, 0) << child.output;
    const json report = json::parse(child.output);
    const double grown = report["after"].get<double>() - report["before"].get<double>();
    const double accounted = report["runtime"]["memory"]["total"]["current"].get<double>();
    std::printf("%s: grown by %.1f MiB, accounted for %.1f MiB (%.1f %%)\n", lora ? "LoRA" : "full", grown / 1048576,
                accounted / 1048576, 100 * accounted / grown);
    EXPECT_NEAR(accounted / grown, 1.0, 0.05) << report["runtime"]["memory"].dump(1);
  }
}

// A step of 1024 tokens of SmolLM2, cancelled from another thread at different moments: the call returns soon (a hang is an
// error, the time is printed), and the next step is the one that would have been.
TEST(Memory, CancelOnTheRealModel) {
  const Folder folder;
  const Runtime runtime = make_runtime(2);
  json job = real_job(folder, true);
  job["train"]["micro_batch_tokens"] = 1024;
  job["train"]["max_steps"] = 3;
  const Config config = make_config(job);
  const Model model = make<Model>(inlaid_model_load, runtime.get(), smollm2_path().c_str(),
                                  R"({"weights_dtype": "as_stored"})", nullptr);
  std::vector<int32_t> tokens(1024), targets(1024);
  for (int32_t i = 0; i < 1024; ++i) {
    tokens[static_cast<size_t>(i)] = 100 + i * 7 % 5000;
    targets[static_cast<size_t>(i)] = 100 + (i + 1) * 7 % 5000;
  }
  const Batch batch = make<Batch>(inlaid_batch_create);
  ok(inlaid_batch_add_int32(batch.get(), "tokens", tokens.data(), tokens.size() * 4));
  ok(inlaid_batch_add_int32(batch.get(), "targets", targets.data(), targets.size() * 4));

  const Adapter adapter = make<Adapter>(inlaid_adapter_create, model.get(), config.get());
  const Trainer trainer = make<Trainer>(inlaid_trainer_create, model.get(), adapter.get(), config.get());
  const auto begin = Clock::now();
  make<Event>(inlaid_trainer_accumulate, trainer.get(), batch.get(), nullptr);
  const auto whole = Clock::now() - begin;
  const std::string expected = step_line(make<Event>(inlaid_trainer_apply, trainer.get()).get());

  const Adapter again = make<Adapter>(inlaid_adapter_create, model.get(), config.get());
  const Trainer other = make<Trainer>(inlaid_trainer_create, model.get(), again.get(), config.get());
  for (int part : {1, 7}) {  // in the forward and in the backward pass
    const Cancel cancel = make<Cancel>(inlaid_cancel_create);
    Clock::time_point triggered;
    std::thread canceller([&] {
      std::this_thread::sleep_for(whole * part / 10);
      triggered = Clock::now();
      inlaid_cancel_trigger(cancel.get());
    });
    inlaid_event* none = nullptr;
    inlaid_error* error = inlaid_trainer_accumulate(other.get(), batch.get(), cancel.get(), &none);
    const auto returned = Clock::now();
    canceller.join();
    const auto latency = std::chrono::duration_cast<std::chrono::milliseconds>(returned - triggered).count();
    std::printf("cancelled after %d0 %% of a micro-batch of %lld ms: returned within %lld ms\n", part,
                static_cast<long long>(std::chrono::duration_cast<std::chrono::milliseconds>(whole).count()),
                static_cast<long long>(latency));
    EXPECT_TRUE(fails(error, INLAID_CANCELLED));
    EXPECT_EQ(none, nullptr);
    EXPECT_LT(latency, 10000) << "hangs";
    EXPECT_FAILS_OUT(inlaid_event, INLAID_FAILED_PRECONDITION, {"accumulated"}, inlaid_trainer_apply, other.get());
  }
  make<Event>(inlaid_trainer_accumulate, other.get(), batch.get(), nullptr);
  EXPECT_EQ(step_line(make<Event>(inlaid_trainer_apply, other.get()).get()), expected);
}

}  // namespace
}  // namespace capi_test

// Documented errors that the other tests of the C API do not come by; tests/boundary/test_documented_errors.py sees to it that
// there is one of each.
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/capi/support.h"

namespace faults {
namespace {

using namespace capi_test;

TEST(Documented, AModelThatDoesNotFit) {
  const Folder folder;
  const Runtime small = make_runtime(1, {{"memory_limit", 10000}});
  EXPECT_FAILS_OUT(inlaid_model, INLAID_RESOURCE_EXHAUSTED, {"10000"}, inlaid_model_create, small.get(),
                   make_config(folder.job("")).get(), nullptr);
  EXPECT_EQ(parsed(inlaid_runtime_describe, small.get())["memory"]["total"]["current"], 0);
}

TEST(Documented, ADamagedModelNamesTheTensor) {
  const Folder folder;
  const Runtime runtime = make_runtime(1);
  const Model model = make<Model>(inlaid_model_create, runtime.get(), make_config(folder.job("")).get(), nullptr);
  ok(inlaid_model_export(model.get(), nullptr, (folder / "hf").c_str(), nullptr));
  const std::string file = folder / "hf/model.safetensors", name = "model.layers.1.mlp.up_proj.weight";
  std::string bytes = read_file(file);
  const size_t at = bytes.find(name);
  ASSERT_NE(at, std::string::npos);
  write_file(file, bytes.replace(at, 5, "mobel"));
  EXPECT_FAILS_OUT(inlaid_model, INLAID_DATA_LOSS, {name}, inlaid_model_load, runtime.get(), (folder / "hf").c_str(), nullptr, nullptr);
}

TEST(Documented, CancelledSteps) {
  const Folder folder;
  const Runtime runtime = make_runtime(1);
  const Config config = make_config(folder.job(""));
  const Job job = make<Job>(inlaid_job_create, runtime.get(), config.get());
  const Trainer trainer = make<Trainer>(inlaid_job_trainer, job.get());
  const Cancel cancel = make<Cancel>(inlaid_cancel_create);
  inlaid_cancel_trigger(cancel.get());
  EXPECT_FAILS_OUT(inlaid_event, INLAID_CANCELLED, {}, inlaid_trainer_step, trainer.get(), cancel.get());
  const Batch batch = make<Batch>(inlaid_batch_create);
  const int32_t ids[] = {5, 6, 7};
  ok(inlaid_batch_add_int32(batch.get(), "tokens", ids, sizeof ids));
  ok(inlaid_batch_add_int32(batch.get(), "targets", ids, sizeof ids));
  EXPECT_FAILS_OUT(inlaid_event, INLAID_CANCELLED, {}, inlaid_trainer_accumulate, trainer.get(), batch.get(), cancel.get());
  make<Event>(inlaid_trainer_step, trainer.get(), nullptr);  // as if nothing had been
}

// A paused run looks for its end every few milliseconds, so that a shutdown which does not wait finds it still there.
TEST(Documented, AShutdownThatDoesNotWait) {
  const Folder folder;
  json job = folder.job("");
  job["train"]["max_steps"] = 1000000;
  bool seen = false;
  for (int attempt = 0; attempt < 10 && !seen; ++attempt) {
    const Runtime runtime = make_runtime(1);
    const Job handle = make<Job>(inlaid_job_create, runtime.get(), make_config(job).get());
    const RunHandle run = make<RunHandle>(inlaid_job_start, handle.get());
    ok(inlaid_run_request(run.get(), "pause"));
    std::string state;
    while (state != "paused") {
      const Event event = make<Event>(inlaid_run_next, run.get(), int64_t{-1});
      if (inlaid_event_kind(event.get()) == INLAID_EVENT_STATE) state = inlaid_event_text(event.get());
    }
    const testing::AssertionResult late = fails(inlaid_runtime_shutdown(runtime.get(), 0), INLAID_DEADLINE_EXCEEDED, {"again"});
    seen = late;
    ok(inlaid_runtime_shutdown(runtime.get(), 60000));
    EXPECT_TRUE(fails(inlaid_run_join(run.get(), 0), INLAID_CANCELLED));
  }
  EXPECT_TRUE(seen);
  ok(inlaid_runtime_shutdown(make_runtime(1).get(), 0));  // nothing to wait for
}

// A trainer that has a batch to itself.
struct Bench {
  explicit Bench(const json& settings = json::object()) : runtime(make_runtime(1, settings)) {
    const Config config = make_config(folder.job(""));
    const Job job = make<Job>(inlaid_job_create, runtime.get(), config.get());
    trainer = make<Trainer>(inlaid_job_trainer, job.get());
    const int32_t ids[] = {5, 6, 7};
    ok(inlaid_batch_add_int32(batch.get(), "tokens", ids, sizeof ids));
    ok(inlaid_batch_add_int32(batch.get(), "targets", ids, sizeof ids));
  }
  Pass forward() { return make<Pass>(inlaid_trainer_forward, trainer.get(), batch.get(), nullptr, nullptr); }
  Folder folder;
  Runtime runtime;
  Trainer trainer;
  Batch batch = make<Batch>(inlaid_batch_create);
};

TEST(Documented, PassesAndTheirGradients) {
  Bench bench;
  EXPECT_FAILS_OUT(inlaid_pass, INLAID_INVALID_ARGUMENT, {"object"}, inlaid_trainer_forward, bench.trainer.get(), bench.batch.get(), "[]",
                   nullptr);
  const Pass pass = bench.forward(), other = bench.forward();
  DLManagedTensorVersioned* gradient = nullptr;
  ok(inlaid_pass_output(other.get(), "log_probs", &gradient));
  EXPECT_TRUE(fails(inlaid_pass_set_gradient(pass.get(), "logits", gradient), INLAID_NOT_FOUND, {"logits"}));
  const std::vector<float> ones(3, 1.0f);
  ok(inlaid_pass_set_gradient_f32(pass.get(), "log_probs", ones.data(), 12));
  ok(inlaid_backward(pass.get(), 0, nullptr));
  EXPECT_TRUE(fails(inlaid_pass_set_gradient(pass.get(), "log_probs", gradient), INLAID_FAILED_PRECONDITION));
  ok(inlaid_pass_set_gradient(other.get(), "log_probs", gradient));  // which takes it
}

TEST(Documented, PassesThatDoNotFit) {
  const auto used = [](inlaid_runtime* runtime) {
    return parsed(inlaid_runtime_describe, runtime)["memory"]["total"]["current"].get<uint64_t>();
  };
  uint64_t two = 0, peak = 0;
  {
    Bench free;
    const Pass first = free.forward(), second = free.forward();
    two = used(free.runtime.get());
    peak = parsed(inlaid_runtime_describe, free.runtime.get())["memory"]["total"]["peak"].get<uint64_t>();
  }
  Bench bench(json{{"memory_limit", peak}});
  std::vector<Pass> passes;
  passes.push_back(bench.forward());
  passes.push_back(bench.forward());
  EXPECT_EQ(used(bench.runtime.get()), two);
  for (;;) {
    inlaid_pass* more = nullptr;
    inlaid_error* error = inlaid_trainer_forward(bench.trainer.get(), bench.batch.get(), nullptr, nullptr, &more);
    inlaid_error_release(error);
    if (error != nullptr) break;
    passes.emplace_back(more);
  }
  EXPECT_FAILS_OUT(inlaid_pass, INLAID_RESOURCE_EXHAUSTED, {"bytes of"}, inlaid_trainer_forward, bench.trainer.get(), bench.batch.get(),
                   nullptr, nullptr);
  passes.pop_back();
  passes.push_back(bench.forward());  // there is room again
}

TEST(Documented, ADamagedManifest) {
  Bench bench;
  const std::string saved = bench.folder / "saved", manifest = saved + "/manifest.pb";
  ok(inlaid_checkpoint_save(bench.trainer.get(), saved.c_str(), nullptr));
  const std::string bytes = read_file(manifest);
  write_file(manifest, bytes.substr(0, bytes.size() / 2));
  EXPECT_FAILS_OUT(inlaid_buffer, INLAID_DATA_LOSS, {"manifest.pb"}, inlaid_checkpoint_manifest, bench.runtime.get(), saved.c_str(), 1);
}

}  // namespace
}  // namespace faults

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

}  // namespace
}  // namespace faults

// Life and death of handles: release in any order, fork, two threads on one handle, memory that runs out.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <thread>

#include "support.h"

namespace capi_test {
namespace {

using Clock = std::chrono::steady_clock;

// Waits for what happens soon on another thread; false after ten seconds.
bool soon(const std::function<bool()>& condition) {
  const auto end = Clock::now() + std::chrono::seconds(10);
  while (!condition()) {
    if (Clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

// Releases five handles in each of the 120 orders and uses the last one that is left, whatever it is.
TEST(Lifetime, HandlesOfAModelInEveryOrder) {
  const Folder folder;
  const Config config = make_config(folder.job(""));
  CountingAllocator allocator;
  const inlaid_allocator vtable = allocator.vtable();
  std::vector<int> order = {0, 1, 2, 3, 4};
  do {
    Runtime runtime = make_runtime(1, json::object(), &vtable);
    Model model = make<Model>(inlaid_model_create, runtime.get(), config.get(), nullptr);
    Adapter adapter = make<Adapter>(inlaid_adapter_create, model.get(), config.get());
    Dataset data = make<Dataset>(inlaid_dataset_open, model.get(), config.get(), "train");
    Trainer trainer = make<Trainer>(inlaid_trainer_create, model.get(), adapter.get(), config.get());
    ok(inlaid_trainer_set_dataset(trainer.get(), data.get()));
    for (int i = 0; i < 5; ++i) {
      const bool last = i == 4;
      switch (order[static_cast<size_t>(i)]) {
        case 0:
          if (last) text(inlaid_runtime_describe, runtime.get());
          runtime.reset();
          break;
        case 1:
          if (last) text(inlaid_model_describe, model.get());
          model.reset();
          break;
        case 2:
          if (last) text(inlaid_adapter_describe, adapter.get());
          adapter.reset();
          break;
        case 3:
          if (last) text(inlaid_dataset_sample, data.get(), uint64_t{0});
          data.reset();
          break;
        default:
          if (last) make<Event>(inlaid_trainer_step, trainer.get(), nullptr);
          trainer.reset();
      }
    }
    ASSERT_EQ(allocator.live, 0) << testing::PrintToString(order);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(Lifetime, HandlesOfAJobInEveryOrder) {
  const Folder folder;
  json job = folder.job("");
  job["train"]["max_steps"] = 1000000;  // still going when it is released
  const Config config = make_config(job);
  CountingAllocator allocator;
  const inlaid_allocator vtable = allocator.vtable();
  std::vector<int> order = {0, 1, 2, 3, 4};
  do {
    Runtime runtime = make_runtime(1, json::object(), &vtable);
    Job handle = make<Job>(inlaid_job_create, runtime.get(), config.get());
    Trainer trainer = make<Trainer>(inlaid_job_trainer, handle.get());
    inlaid_model* model = nullptr;
    inlaid_adapter* adapter = nullptr;
    ok(inlaid_job_model(handle.get(), &model, &adapter));
    inlaid_adapter_release(adapter);
    Model own_model(model);
    RunHandle run = make<RunHandle>(inlaid_job_start, handle.get());
    for (int which : order) {
      if (which == 0) runtime.reset();
      if (which == 1) handle.reset();
      if (which == 2) trainer.reset();
      if (which == 3) own_model.reset();
      if (which == 4) run.reset();
    }
    ASSERT_TRUE(soon([&] { return allocator.live == 0; })) << testing::PrintToString(order);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(Lifetime, EventsBuffersAndErrorsOutliveTheirMakers) {
  const Folder folder;
  Runtime runtime = make_runtime(1);
  const Config config = make_config(folder.job(""));
  Job job = make<Job>(inlaid_job_create, runtime.get(), config.get());
  Trainer trainer = make<Trainer>(inlaid_job_trainer, job.get());
  const Event event = make<Event>(inlaid_trainer_step, trainer.get(), nullptr);
  const Buffer buffer = make<Buffer>(inlaid_job_describe, job.get());
  inlaid_batch* batch = nullptr;
  ok(inlaid_batch_create(&batch));
  inlaid_error* error = inlaid_batch_add_int32(batch, "no such tensor", "abcd", 4);
  inlaid_batch_release(batch);
  trainer.reset();
  job.reset();
  runtime.reset();
  EXPECT_EQ(inlaid_event_step(event.get()), 1u);
  EXPECT_NE(std::string(inlaid_event_json(event.get())).find("\"loss\""), std::string::npos);
  EXPECT_NE(std::string(static_cast<const char*>(inlaid_buffer_data(buffer.get()))).find("total_steps"), std::string::npos);
  EXPECT_TRUE(fails(error, INLAID_INVALID_ARGUMENT, {"no such tensor"}));
}

// A child process must not touch what it inherited: calls fail, releases do nothing, the parent trains on.
TEST(Lifetime, ForkedChild) {
  const Folder folder;
  const Runtime runtime = make_runtime(2);
  const Config config = make_config(folder.job(""));
  Job job = make<Job>(inlaid_job_create, runtime.get(), config.get());
  Trainer trainer = make<Trainer>(inlaid_job_trainer, job.get());
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const auto refuses = [](inlaid_error* error) {
      const bool right = inlaid_error_code(error) == INLAID_FAILED_PRECONDITION &&
                         std::string(inlaid_error_message(error)).find("fork") != std::string::npos;
      inlaid_error_release(error);
      return right;
    };
    inlaid_event* event = nullptr;
    inlaid_buffer* buffer = nullptr;
    inlaid_run* run = nullptr;
    inlaid_job* other = nullptr;
    const bool right = refuses(inlaid_trainer_step(trainer.get(), nullptr, &event)) &&
                       refuses(inlaid_runtime_describe(runtime.get(), &buffer)) &&
                       refuses(inlaid_job_start(job.get(), &run)) &&
                       refuses(inlaid_runtime_shutdown(runtime.get(), -1)) &&
                       refuses(inlaid_job_create(runtime.get(), config.get(), &other));
    inlaid_trainer_release(trainer.release());
    inlaid_job_release(job.release());
    _exit(right ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  make<Event>(inlaid_trainer_step, trainer.get(), nullptr);
}

// A child may make a runtime of its own.
TEST(Lifetime, ForkedChildStartsAnew) {
  const Folder folder;
  const Runtime runtime = make_runtime(2);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    try {
      const Runtime own = make_runtime(2);
      _exit(train(own.get(), folder.job("")).steps.size() == 8 ? 0 : 1);
    } catch (...) {
      _exit(2);
    }
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

// A handle that another thread is using answers FAILED_PRECONDITION, and neither thread sees anything else.
TEST(Lifetime, TwoThreadsOnOneHandle) {
  const Folder folder;
  json job = folder.job("");
  job["train"]["max_steps"] = 1000000;
  const Runtime runtime = make_runtime(1);
  const Config config = make_config(job);
  const Job handle = make<Job>(inlaid_job_create, runtime.get(), config.get());
  const Trainer trainer = make<Trainer>(inlaid_job_trainer, handle.get());
  std::atomic<int> refusals{0}, surprises{0}, steps{0};
  const auto work = [&] {
    const auto end = Clock::now() + std::chrono::seconds(10);
    while (refusals < 20 && Clock::now() < end) {
      inlaid_event* event = nullptr;
      inlaid_error* error = inlaid_trainer_step(trainer.get(), nullptr, &event);
      if (error == nullptr) {
        ++steps;
      } else if (inlaid_error_code(error) == INLAID_FAILED_PRECONDITION &&
                 std::string(inlaid_error_message(error)).find("another thread") != std::string::npos) {
        ++refusals;
      } else {
        ++surprises;
      }
      inlaid_error_release(error);
      inlaid_event_release(event);
    }
  };
  std::thread other(work);
  work();
  other.join();
  EXPECT_GE(refusals, 20);
  EXPECT_GT(steps, 0);
  EXPECT_EQ(surprises, 0);
}

TEST(Lifetime, TheTrainerOfARunIsBusy) {
  const Folder folder;
  json job = folder.job("");
  job["train"]["max_steps"] = 1000000;
  const Runtime runtime = make_runtime(1);
  const Config config = make_config(job);
  const Job handle = make<Job>(inlaid_job_create, runtime.get(), config.get());
  const Trainer trainer = make<Trainer>(inlaid_job_trainer, handle.get());
  const RunHandle run = make<RunHandle>(inlaid_job_start, handle.get());
  EXPECT_FAILS_OUT(inlaid_event, INLAID_FAILED_PRECONDITION, {"busy"}, inlaid_trainer_step, trainer.get(), nullptr);
  EXPECT_FAILS_OUT(inlaid_event, INLAID_FAILED_PRECONDITION, {"busy"}, inlaid_trainer_apply, trainer.get());
  EXPECT_FAILS_OUT(inlaid_run, INLAID_FAILED_PRECONDITION, {"busy"}, inlaid_job_start, handle.get());
  EXPECT_FAILS_OUT(inlaid_run, INLAID_FAILED_PRECONDITION, {"busy"}, inlaid_run_start, trainer.get(), nullptr, nullptr);
  EXPECT_TRUE(fails(inlaid_checkpoint_save(trainer.get(), (folder / "x").c_str(), nullptr), INLAID_FAILED_PRECONDITION, {"busy"}));
  EXPECT_TRUE(fails(inlaid_run_join(run.get(), 0), INLAID_DEADLINE_EXCEEDED));
  inlaid_run_cancel(run.get());
  EXPECT_EQ(watch(run.get()).end, "cancelled");
  make<Event>(inlaid_trainer_step, trainer.get(), nullptr);  // free again
}

// Shutdown with runs that are going: they end as cancelled, and no thread of the library is left.
TEST(Lifetime, ShutdownEndsRuns) {
  const auto threads = [] {
    const std::string status = read_file("/proc/self/status");
    return std::stoi(status.substr(status.find("Threads:") + 8));
  };
  soon([&] { return threads() == 1; });  // threads of the tests before are on their way out
  const int before = threads();
  const Folder folder;
  json job = folder.job("");
  job["train"]["max_steps"] = 1000000;
  Runtime runtime = make_runtime(3);
  const Config config = make_config(job);
  Job handle = make<Job>(inlaid_job_create, runtime.get(), config.get());
  RunHandle run = make<RunHandle>(inlaid_job_start, handle.get());
  ok(inlaid_runtime_shutdown(runtime.get(), -1));
  EXPECT_TRUE(fails(inlaid_run_join(run.get(), 0), INLAID_CANCELLED));
  run.reset();
  handle.reset();
  runtime.reset();
  EXPECT_TRUE(soon([&] { return threads() == before; })) << threads() << " threads, " << before << " before";
}

// All that a job does, as one function that can fail anywhere. The error is NULL if it did not.
inlaid_error* whole_job(const Folder& folder, const inlaid_config* config, const inlaid_allocator* allocator) {
  inlaid_runtime_options options = INLAID_RUNTIME_OPTIONS_INIT;
  options.cpu_threads = 1;
  options.host_allocator = allocator;
  inlaid_runtime* runtime = nullptr;
  if (inlaid_error* error = inlaid_runtime_create(&options, &runtime)) return error;
  const Runtime own_runtime(runtime);
  inlaid_model* model = nullptr;
  if (inlaid_error* error = inlaid_model_create(runtime, config, nullptr, &model)) return error;
  const Model own_model(model);
  inlaid_adapter* adapter = nullptr;
  if (inlaid_error* error = inlaid_adapter_create(model, config, &adapter)) return error;
  const Adapter own_adapter(adapter);
  inlaid_dataset* data = nullptr;
  if (inlaid_error* error = inlaid_dataset_open(model, config, "train", &data)) return error;
  const Dataset own_data(data);
  inlaid_trainer* trainer = nullptr;
  if (inlaid_error* error = inlaid_trainer_create(model, adapter, config, &trainer)) return error;
  const Trainer own_trainer(trainer);
  if (inlaid_error* error = inlaid_trainer_set_dataset(trainer, data)) return error;
  inlaid_event* event = nullptr;
  if (inlaid_error* error = inlaid_trainer_step(trainer, nullptr, &event)) return error;
  inlaid_event_release(event);
  if (inlaid_error* error = inlaid_evaluate(model, adapter, data, nullptr, &event)) return error;
  inlaid_event_release(event);
  std::string ids;
  if (inlaid_error* error = greedy_tokens(model, adapter, {5, 6, 7}, 2, &ids)) return error;
  static std::atomic<int> number{0};
  const std::string target = folder / ("saved" + std::to_string(++number));
  return inlaid_model_export(model, adapter, target.c_str(), nullptr);
}

// Every allocation of the host's allocator fails once, in a fresh job each time.
TEST(Lifetime, TheNthAllocationFails) {
  const Folder folder;
  const Config config = make_config(folder.job(""));
  CountingAllocator allocator;
  const inlaid_allocator vtable = allocator.vtable();
  ok(whole_job(folder, config.get(), &vtable));
  const int64_t total = allocator.calls;
  ASSERT_EQ(allocator.live, 0);
  ASSERT_GT(total, 10);
  const int64_t stride = std::max<int64_t>(1, total / 60);
  for (int64_t n = 1; n <= total; n += n < 20 ? 1 : stride) {
    allocator.calls = 0;
    allocator.fail_at = n;
    EXPECT_TRUE(fails(whole_job(folder, config.get(), &vtable), INLAID_RESOURCE_EXHAUSTED)) << "allocation " << n;
    ASSERT_EQ(allocator.live, 0) << "allocation " << n << " of " << total;
    ASSERT_EQ(allocator.live_bytes, 0) << "allocation " << n;
  }
  allocator.fail_at = -1;
  ok(whole_job(folder, config.get(), &vtable));
}

// A limit one byte short: an error that names category and limit, before anything is taken; the same job then runs with
// the limit that the plan asks for.
TEST(Lifetime, MemoryLimit) {
  const Folder folder;
  json job = folder.job("");
  job["model"]["recompute"] = "none";  // with "auto" the job would fit by recomputing
  const Config config = make_config(job);
  const Runtime planner = make_runtime(1);
  const auto need = parsed(inlaid_config_plan, planner.get(), config.get())["memory"]["total"].get<int64_t>();
  const Runtime small = make_runtime(1, {{"memory_limit", need - 1}});
  const json refused = parsed(inlaid_config_plan, small.get(), config.get())["refused"];
  EXPECT_EQ(refused.size(), 1u) << refused;
  EXPECT_FAILS_OUT(inlaid_job, INLAID_RESOURCE_EXHAUSTED, {std::to_string(need - 1)}, inlaid_job_create, small.get(),
                   config.get());
  EXPECT_EQ(parsed(inlaid_runtime_describe, small.get())["memory"]["total"]["current"], 0) << "nothing is kept";
  const Runtime enough = make_runtime(1, {{"memory_limit", need}});
  EXPECT_EQ(train(enough.get(), job).steps.size(), 8u);

  bool named = false;
  const Runtime tiny = make_runtime(1, {{"memory_limit", 4096}});
  inlaid_job* none = nullptr;
  inlaid_error* error = inlaid_job_create(tiny.get(), config.get(), &none);
  for (const char* category : {"weights", "gradients", "optimizer", "activations", "workspace", "data"}) {
    named |= std::string(inlaid_error_message(error)).find(category) != std::string::npos;
  }
  EXPECT_TRUE(named) << inlaid_error_message(error);
  EXPECT_TRUE(fails(error, INLAID_RESOURCE_EXHAUSTED, {"4096"}));
}

}  // namespace
}  // namespace capi_test

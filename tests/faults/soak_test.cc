// A host that lives long: a thousand jobs after each other leave memory, threads and open files as they were; and handles die
// in every order on whatever thread. tests/run does a part of the thousand, tests/run --full all.
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <thread>

#include "new_faults.h"
#include "tests/capi/support.h"

namespace faults {
namespace {

using namespace capi_test;

// A sanitizer keeps freed memory for a while, and has an allocator of its own.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

bool full() { return std::getenv("INLAID_TEST_FULL") != nullptr; }

bool soon(const std::function<bool()>& condition) {
  for (int i = 0; i < 10000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

int64_t status_number(const std::string& key) {
  const std::string status = read_file("/proc/self/status");
  return std::stoll(status.substr(status.find(key + ":") + key.size() + 1));
}

int64_t open_files() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
}

// What one tenant does: a runtime, a job that trains, evaluates and saves, an adapter that is used and kept.
void cycle(const Folder& folder, const inlaid_config* config) {
  const std::string out = folder / "out";
  {
    const Runtime runtime = make_runtime(2);
    const Job job = make<Job>(inlaid_job_create, runtime.get(), config);
    watch(make<RunHandle>(inlaid_job_start, job.get()).get());
    inlaid_model* model = nullptr;
    inlaid_adapter* adapter = nullptr;
    ok(inlaid_result_open(runtime.get(), out.c_str(), nullptr, nullptr, &model, &adapter));
    const Model own_model(model);
    const Adapter own_adapter(adapter);
    generate(model, adapter, {5, 6, 7}, 2);
    ok(inlaid_adapter_save(adapter, (folder / "out/peft").c_str()));
    inlaid_model* none = nullptr;
    EXPECT_TRUE(fails(inlaid_model_load(runtime.get(), "/nowhere", nullptr, nullptr, &none), INLAID_NOT_FOUND));
  }
  std::filesystem::remove_all(out);
}

TEST(Soak, AThousandJobsLeaveNothingBehind) {
  const Folder folder;
  json job = folder.job("out");
  job["train"]["max_steps"] = 2;
  const Config config = make_config(job);
  const int cycles = full() ? 1000 : 40;
  const auto settled = [&] {
    EXPECT_TRUE(soon([] { return status_number("Threads") == 1; }));
    return new_faults::live();
  };
  // Once per thread arena of the C library, and once per process for what libraries make at first use.
  for (int i = 0; i < 20; ++i) cycle(folder, config.get());
  const int64_t objects = settled(), files = open_files(), resident = status_number("VmRSS");
  const auto bytes = static_cast<int64_t>(mallinfo2().uordblks);
  for (int i = 0; i < cycles; ++i) cycle(folder, config.get());
  EXPECT_EQ(settled(), objects) << "objects of C++ that nobody has given back";
  EXPECT_EQ(open_files(), files);
  if (kSanitized) return;
  // What C code holds (the tokenizer's library), and what the process takes: flat, with some pages of slack.
  EXPECT_LE(static_cast<int64_t>(mallinfo2().uordblks) - bytes, 64 << 10);
  const int64_t grown = status_number("VmRSS") - resident;
  std::printf("%d jobs: resident memory %lld kB, grown by %lld kB\n", cycles, static_cast<long long>(resident),
              static_cast<long long>(grown));
  EXPECT_LE(grown, std::max<int64_t>(4096, resident / 5)) << "kB";
}

// The same in one runtime that lives on: no run leaves its thread, its stack or its objects.
TEST(Soak, ManyRunsInOneRuntime) {
  const Folder folder;
  json job = folder.job("");
  job["train"]["max_steps"] = 1;
  const Config config = make_config(job);
  const Runtime runtime = make_runtime(2);
  const auto run_one = [&] {
    const Job handle = make<Job>(inlaid_job_create, runtime.get(), config.get());
    EXPECT_EQ(watch(make<RunHandle>(inlaid_job_start, handle.get()).get()).end, "done");
  };
  const auto used = [&] { return parsed(inlaid_runtime_describe, runtime.get())["memory"]["total"]["current"].get<int64_t>(); };
  for (int i = 0; i < 10; ++i) run_one();
  EXPECT_TRUE(soon([&] { return used() == 0; }));
  const int64_t objects = new_faults::live(), address_space = status_number("VmSize");
  for (int i = 0; i < (full() ? 1000 : 100); ++i) run_one();
  EXPECT_TRUE(soon([&] { return new_faults::live() <= objects; })) << new_faults::live() - objects << " objects more";
  EXPECT_TRUE(soon([&] { return used() == 0; }));
  if (kSanitized) return;
  // A stack is 8 MiB of it; the allocator's arenas may add a little.
  EXPECT_LE(status_number("VmSize") - address_space, 200 << 10) << "kB";
}

// Every handle that a job has, released in every order, each release on a thread of its own, as garbage collectors do it.
TEST(Soak, EveryOrderFromOtherThreads) {
  const Folder folder;
  const Config config = make_config(folder.job(""));
  CountingAllocator allocator;
  const inlaid_allocator vtable = allocator.vtable();
  std::vector<int> order = {0, 1, 2, 3, 4, 5};
  int round = 0;
  do {
    if (!full() && round++ % 12 != 0) continue;  // 60 of the 720 orders
    Runtime runtime = make_runtime(1, json::object(), &vtable);
    Model model = make<Model>(inlaid_model_create, runtime.get(), config.get(), nullptr);
    Adapter adapter = make<Adapter>(inlaid_adapter_create, model.get(), config.get());
    Dataset data = make<Dataset>(inlaid_dataset_open, model.get(), config.get(), "train");
    Trainer trainer = make<Trainer>(inlaid_trainer_create, model.get(), adapter.get(), config.get());
    ok(inlaid_trainer_set_dataset(trainer.get(), data.get()));
    RunHandle run = make<RunHandle>(inlaid_run_start, trainer.get(), data.get(), nullptr);  // still going
    const std::function<void()> releases[] = {[&] { runtime.reset(); }, [&] { model.reset(); },   [&] { adapter.reset(); },
                                              [&] { data.reset(); },    [&] { trainer.reset(); }, [&] { run.reset(); }};
    for (int which : order) std::thread(releases[which]).join();
    ASSERT_TRUE(soon([&] { return allocator.live == 0; })) << testing::PrintToString(order);
  } while (std::next_permutation(order.begin(), order.end()));
  // All at once.
  for (int i = 0; i < 20; ++i) {
    Runtime runtime = make_runtime(2, json::object(), &vtable);
    Job job = make<Job>(inlaid_job_create, runtime.get(), config.get());
    Trainer trainer = make<Trainer>(inlaid_job_trainer, job.get());
    RunHandle run = make<RunHandle>(inlaid_job_start, job.get());
    Event event = make<Event>(inlaid_run_next, run.get(), int64_t{-1});
    std::vector<std::thread> threads;
    threads.emplace_back([&] { runtime.reset(); });
    threads.emplace_back([&] { job.reset(); });
    threads.emplace_back([&] { trainer.reset(); });
    threads.emplace_back([&] { run.reset(); });
    threads.emplace_back([&] { event.reset(); });
    for (std::thread& thread : threads) thread.join();
    ASSERT_TRUE(soon([&] { return allocator.live == 0; })) << i;
  }
}

}  // namespace
}  // namespace faults

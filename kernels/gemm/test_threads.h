// Threads for tests and benchmarks of kernels, which may not use the engine's pool: a fixed set that takes
// tasks from one counter. Waiting workers spin for a while and then sleep.
#ifndef INLAID_KERNELS_GEMM_TEST_THREADS_H_
#define INLAID_KERNELS_GEMM_TEST_THREADS_H_

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "kernels/kernels.h"

namespace inlaid::kernels {

class TestThreads {
 public:
  explicit TestThreads(int32_t threads) : executor_{this, threads, &TestThreads::run} {
    for (int32_t i = 1; i < threads; ++i) workers_.emplace_back([this, i] { work(i); });
  }
  ~TestThreads() {
    {
      std::lock_guard lock(mutex_);
      stopped_ = true;
      generation_.fetch_add(1);
    }
    wake_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }
  TestThreads(const TestThreads&) = delete;
  TestThreads& operator=(const TestThreads&) = delete;

  const Executor& executor() const { return executor_; }

 private:
  using TaskFn = void (*)(void*, int64_t, int32_t);

  static void run(void* self, int64_t tasks, TaskFn fn, void* arg) {
    auto& me = *static_cast<TestThreads*>(self);
    {
      std::lock_guard lock(me.mutex_);
      me.fn_ = fn;
      me.arg_ = arg;
      me.tasks_ = tasks;
      me.next_.store(0);
      me.busy_.store(static_cast<int32_t>(me.workers_.size()));
      me.generation_.fetch_add(1);
    }
    me.wake_.notify_all();
    me.take_tasks(0);
    while (me.busy_.load() != 0) std::this_thread::yield();
  }

  void take_tasks(int32_t thread) {
    for (int64_t task; (task = next_.fetch_add(1)) < tasks_;) fn_(arg_, task, thread);
  }

  void work(int32_t thread) {
    for (uint64_t seen = 0;;) {
      for (int spins = 0; spins < 20000 && generation_.load() == seen; ++spins) {
      }
      {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [&] { return generation_.load() != seen; });
        seen = generation_.load();
        if (stopped_) return;
      }
      take_tasks(thread);
      busy_.fetch_sub(1);
    }
  }

  Executor executor_;
  std::vector<std::thread> workers_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::atomic<uint64_t> generation_{0};
  std::atomic<int64_t> next_{0};
  std::atomic<int32_t> busy_{0};
  int64_t tasks_ = 0;
  TaskFn fn_ = nullptr;
  void* arg_ = nullptr;
  bool stopped_ = false;
};

}  // namespace inlaid::kernels

#endif  // INLAID_KERNELS_GEMM_TEST_THREADS_H_

// One mutex guards the list of open jobs; tasks of a job are claimed by an atomic counter, so a task costs
// one atomic addition and a run() two short critical sections. Workers look for work for a few microseconds
// before they sleep, because a training step calls run() once per kernel; they do not when there are more
// threads than processors.
//
// Lifetime of a job: it lives on its caller's stack. Workers enter it (count `helpers`) only under the mutex
// while it is listed; the caller takes it off the list and returns when `helpers` is 0. A worker's decrement
// of `helpers` is its last touch of the job, except when the caller sleeps, which then cannot leave before
// the worker releases the mutex.
//
// Tested by thread_pool_test.cc, also under ThreadSanitizer.
#include "sdk/base/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "sdk/base/error.h"

namespace inlaid {
namespace {

using TaskFunction = std::function<void(int64_t, int)>;

constexpr std::chrono::microseconds kSpin{30};

// The pool whose task this thread is executing, so that a nested run() is recognised. The only thread-local
// of the engine: it says something about the current call stack, not about the process, and is restored when
// the task returns.
thread_local const void* executing_pool = nullptr;

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Waits for `ready` by polling, at most kSpin. True when it came.
template <typename Ready>
bool spin(const Ready& ready) {
  const auto deadline = std::chrono::steady_clock::now() + kSpin;
  do {
    for (int i = 0; i < 32; ++i) {
      if (ready()) return true;
      pause();
    }
  } while (std::chrono::steady_clock::now() < deadline);
  return false;
}

struct Job {
  const TaskFunction* fn = nullptr;
  int64_t tasks = 0;
  std::atomic<int64_t> next{0};
  std::atomic<bool> failed{false};
  std::atomic<int> helpers{0};  // workers inside; changed under the mutex
  bool caller_sleeps = false;   // under the mutex
  std::exception_ptr error;     // under the mutex
  std::condition_variable done;

  bool wants_help() const {
    return !failed.load(std::memory_order_relaxed) && next.load(std::memory_order_relaxed) < tasks;
  }
};

}  // namespace

struct ThreadPool::State {
  int threads = 1;
  bool may_spin = false;
  std::mutex mutex;
  std::condition_variable work;
  std::vector<Job*> jobs;            // under the mutex
  int sleeping = 0;                  // under the mutex
  bool stop = false;                 // under the mutex
  std::atomic<uint64_t> changes{0};  // grows with every job and at the stop; polled by spinning workers
  std::vector<std::thread> workers;
  kernels::Executor executor{};

  // Claims and runs tasks until none is left or one has failed.
  void work_on(Job& job, int thread) {
    const void* before = executing_pool;
    executing_pool = this;
    while (!job.failed.load(std::memory_order_relaxed)) {
      const int64_t task = job.next.fetch_add(1, std::memory_order_relaxed);
      if (task >= job.tasks) break;
      try {
        (*job.fn)(task, thread);
      } catch (...) {
        std::lock_guard lock(mutex);
        if (!job.failed.exchange(true)) job.error = std::current_exception();
      }
    }
    executing_pool = before;
  }

  // The open job with the fewest helpers, so that callers share the workers.
  Job* pick() const {
    Job* best = nullptr;
    for (Job* job : jobs) {
      if (job->wants_help() && (best == nullptr || job->helpers.load() < best->helpers.load())) best = job;
    }
    return best;
  }

  void worker_loop(int thread) {
    std::unique_lock lock(mutex);
    for (;;) {
      Job* job = pick();
      if (job == nullptr) {
        if (stop) return;
        const uint64_t seen = changes.load();
        if (may_spin) {
          lock.unlock();
          spin([&] { return changes.load(std::memory_order_relaxed) != seen; });
          lock.lock();
        }
        if (changes.load() == seen) {
          ++sleeping;
          work.wait(lock, [&] { return changes.load() != seen; });
          --sleeping;
        }
        continue;
      }
      job->helpers.fetch_add(1);
      lock.unlock();
      work_on(*job, thread);
      lock.lock();
      if (job->caller_sleeps) {
        if (job->helpers.fetch_sub(1) == 1) job->done.notify_one();
      } else {
        job->helpers.fetch_sub(1, std::memory_order_acq_rel);
      }
    }
  }

  void run(int64_t tasks, const TaskFunction& fn) {
    if (threads == 1 || tasks == 1 || executing_pool == this) {
      run_serially(tasks, fn);
      return;
    }
    Job job;
    job.fn = &fn;
    job.tasks = tasks;
    int wake = 0;
    {
      std::lock_guard lock(mutex);
      jobs.push_back(&job);
      changes.fetch_add(1);
      wake = static_cast<int>(std::min<int64_t>(sleeping, tasks - 1));
    }
    for (; wake > 0; --wake) work.notify_one();
    work_on(job, 0);
    {
      std::lock_guard lock(mutex);
      jobs.erase(std::find(jobs.begin(), jobs.end(), &job));
    }
    auto finished = [&] { return job.helpers.load(std::memory_order_acquire) == 0; };
    if (!finished() && !(may_spin && spin(finished))) {
      std::unique_lock lock(mutex);
      job.caller_sleeps = true;
      job.done.wait(lock, finished);
    }
    if (job.error) std::rethrow_exception(job.error);
  }

  void run_serially(int64_t tasks, const TaskFunction& fn) {
    struct Restore {
      const void* before;
      ~Restore() { executing_pool = before; }
    } restore{executing_pool};
    executing_pool = this;
    for (int64_t task = 0; task < tasks; ++task) fn(task, 0);
  }

  void shut_down() {
    {
      std::lock_guard lock(mutex);
      stop = true;
      changes.fetch_add(1);
    }
    work.notify_all();
    for (std::thread& worker : workers) worker.join();
  }
};

ThreadPool::ThreadPool(int threads) : state_(std::make_unique<State>()) {
  if (threads < 1) fail(Code::kInvalidArgument, "a thread pool needs at least 1 thread, not ", threads);
  State* state = state_.get();
  state->threads = threads;
  state->may_spin = static_cast<unsigned>(threads) <= std::thread::hardware_concurrency();
  state->executor = {
      state, threads, [](void* self, int64_t tasks, void (*fn)(void*, int64_t, int32_t), void* arg) {
        static_cast<State*>(self)->run(tasks, [fn, arg](int64_t task, int thread) { fn(arg, task, thread); });
      }};
  try {
    state->jobs.reserve(16);
    state->workers.reserve(static_cast<size_t>(threads - 1));
    for (int i = 1; i < threads; ++i) state->workers.emplace_back([state, i] { state->worker_loop(i); });
  } catch (const std::system_error& error) {
    const size_t started = state->workers.size();
    state->shut_down();
    fail(Code::kResourceExhausted, "cannot start thread ", started + 2, " of ", threads, ": ", error.what());
  } catch (...) {  // no memory for a thread: those that run are to end, or their handles end the process
    state->shut_down();
    throw;
  }
}

ThreadPool::~ThreadPool() {
  state_->shut_down();
}

int ThreadPool::threads() const {
  return state_->threads;
}

void ThreadPool::run(int64_t tasks, const std::function<void(int64_t task, int thread)>& fn) {
  state_->run(tasks, fn);
}

const kernels::Executor& ThreadPool::executor() const {
  return state_->executor;
}

}  // namespace inlaid

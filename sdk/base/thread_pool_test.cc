#include "sdk/base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

#include "sdk/base/error.h"

namespace inlaid {
namespace {

TEST(ThreadPool, RunsEveryTaskOnceForAnyNumberOfThreads) {
  for (int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (int64_t tasks : {0, 1, 2, 3, 7, 100, 1000}) {
      std::vector<int> hits(static_cast<size_t>(tasks),
                            0);  // plain ints: a race would be seen by ThreadSanitizer
      pool.run(tasks, [&](int64_t task, int thread) {
        EXPECT_GE(thread, 0);
        EXPECT_LT(thread, threads);
        ++hits[static_cast<size_t>(task)];
      });
      EXPECT_EQ(hits, std::vector<int>(static_cast<size_t>(tasks), 1));
    }
  }
}

TEST(ThreadPool, WorkersReallyHelp) {
  ThreadPool pool(3);
  // Three tasks that can only finish when all three run at the same time.
  std::atomic<int> inside{0};
  pool.run(3, [&](int64_t, int) {
    ++inside;
    while (inside < 3) std::this_thread::yield();
  });
  EXPECT_EQ(inside, 3);
}

TEST(ThreadPool, ThreadIndexIsUniqueAmongOverlappingTasksOfOneRun) {
  constexpr int kThreads = 4;
  ThreadPool pool(kThreads);
  for (int round = 0; round < 50; ++round) {
    std::vector<std::atomic<int>> users(kThreads);
    pool.run(64, [&](int64_t, int thread) {
      EXPECT_EQ(users[static_cast<size_t>(thread)].fetch_add(1), 0);
      std::this_thread::yield();
      users[static_cast<size_t>(thread)].fetch_sub(1);
    });
  }
}

TEST(ThreadPool, CallersShareThePoolWithoutWaitingForEachOther) {
  ThreadPool pool(2);
  // Each caller's run can finish only if the other's run makes progress at the same time.
  std::atomic<int> arrived{0};
  auto job = [&] {
    pool.run(4, [&](int64_t task, int) {
      if (task == 0) {
        ++arrived;
        while (arrived < 3) std::this_thread::yield();
      }
    });
  };
  std::thread first(job), second(job);
  job();
  first.join();
  second.join();
  EXPECT_EQ(arrived, 3);
}

TEST(ThreadPool, ManyCallersManyRuns) {
  ThreadPool pool(3);
  std::vector<std::thread> callers;
  std::vector<int64_t> sums(4, 0);
  for (size_t c = 0; c < sums.size(); ++c) {
    callers.emplace_back([&, c] {
      for (int round = 0; round < 500; ++round) {
        std::vector<int64_t> out(5);
        pool.run(5, [&](int64_t task, int) { out[static_cast<size_t>(task)] = task + 1; });
        for (int64_t value : out) sums[c] += value;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(sums, std::vector<int64_t>(4, 500 * 15));
}

TEST(ThreadPool, FirstExceptionIsRethrownAndLaterTasksAreSkipped) {
  for (int threads : {1, 2, 4}) {
    ThreadPool pool(threads);
    std::atomic<int64_t> ran{0};
    try {
      pool.run(1000000, [&](int64_t task, int) {
        ++ran;
        if (task == 3) fail(Code::kDataLoss, "task ", task);
      });
      FAIL() << "no exception";
    } catch (const Error& error) {
      EXPECT_EQ(error.message(), "task 3");
    }
    EXPECT_LT(ran, 1000000);
    std::atomic<int> after{0};
    pool.run(10, [&](int64_t, int) { ++after; });
    EXPECT_EQ(after, 10) << "the pool works on after a failure";
  }
}

TEST(ThreadPool, AFailureOfOneCallerDoesNotTouchAnother) {
  ThreadPool pool(2);
  std::thread failing([&] {
    for (int i = 0; i < 200; ++i) {
      EXPECT_THROW(pool.run(4, [](int64_t, int) { throw std::runtime_error("no"); }), std::runtime_error);
    }
  });
  for (int i = 0; i < 200; ++i) {
    std::atomic<int> done{0};
    pool.run(4, [&](int64_t, int) { ++done; });
    EXPECT_EQ(done, 4);
  }
  failing.join();
}

TEST(ThreadPool, NestedRunIsSerialOnItsThread) {
  ThreadPool pool(3);
  std::atomic<int> inner{0};
  pool.run(6, [&](int64_t, int) {
    const std::thread::id self = std::this_thread::get_id();
    int64_t expected = 0;
    pool.run(5, [&](int64_t task, int thread) {
      EXPECT_EQ(std::this_thread::get_id(), self);
      EXPECT_EQ(task, expected++);
      EXPECT_EQ(thread, 0);
      ++inner;
    });
  });
  EXPECT_EQ(inner, 30);
  // After nesting, and after an exception inside a nested run, the caller is outside again.
  EXPECT_THROW(pool.run(1, [&](int64_t, int) { pool.run(1, [](int64_t, int) { throw 1; }); }), int);
  std::atomic<int> inside{0};
  pool.run(3, [&](int64_t, int) {
    ++inside;
    while (inside < 3) std::this_thread::yield();
  });
}

TEST(ThreadPool, PoolsNestIntoEachOther) {
  ThreadPool outer(2), inner(2);
  std::atomic<int> count{0};
  outer.run(4, [&](int64_t, int) { inner.run(4, [&](int64_t, int) { ++count; }); });
  EXPECT_EQ(count, 16);
}

TEST(ThreadPool, SleepingWorkersWakeUp) {
  ThreadPool pool(2);
  for (int round = 0; round < 3; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // far beyond the polling of an idle worker
    std::atomic<int> inside{0};
    pool.run(2, [&](int64_t, int) {
      ++inside;
      while (inside < 2) std::this_thread::yield();
    });
  }
}

TEST(ThreadPool, SlowWorkerIsWaitedFor) {
  ThreadPool pool(2);
  std::atomic<int> inside{0};
  int late = 0;
  pool.run(2, [&](int64_t, int thread) {
    ++inside;
    while (inside < 2) std::this_thread::yield();
    if (thread == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      late = 1;
    }
  });
  EXPECT_EQ(late, 1);
}

TEST(ThreadPool, ExecutorIsThePool) {
  ThreadPool pool(2);
  const kernels::Executor& executor = pool.executor();
  EXPECT_EQ(executor.threads, 2);
  std::vector<int> hits(50, 0);
  kernels::parallel(executor, 50, [&](int64_t task, int32_t) { ++hits[static_cast<size_t>(task)]; });
  EXPECT_EQ(hits, std::vector<int>(50, 1));
  EXPECT_THROW(kernels::parallel(executor, 50, [](int64_t, int32_t) { throw std::runtime_error("x"); }),
               std::runtime_error);
}

TEST(ThreadPool, ComesAndGoesAndRefusesNonsense) {
  for (int i = 0; i < 50; ++i) ThreadPool pool(3);
  EXPECT_THROW(ThreadPool(0), Error);
  EXPECT_THROW(ThreadPool(-3), Error);
}

}  // namespace
}  // namespace inlaid

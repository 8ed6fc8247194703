// The runtime's threads. One pool serves every job of a runtime: a caller of run() works on its own tasks
// together with the pool's workers, and several callers may run at the same time without waiting for each
// other.
//
// Results never depend on the number of threads: a task writes only what no other task writes, and the cut
// into tasks is a function of shapes alone. Which thread runs which task is decided at run time.
#ifndef INLAID_SDK_BASE_THREAD_POOL_H_
#define INLAID_SDK_BASE_THREAD_POOL_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "kernels/kernels.h"

namespace inlaid {

class ThreadPool {
 public:
  // threads >= 1 counts the caller: a pool of 1 starts no thread. Throws kResourceExhausted if a thread
  // cannot start.
  explicit ThreadPool(int threads);
  ~ThreadPool();  // joins; no run() may be in progress
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const;

  // Calls fn(task, thread) for every task in [0, tasks), 0 <= thread < threads(), and returns when all are
  // done. Of the calls that share one run(), no two with the same `thread` overlap, so `thread` can index
  // scratch memory. The first exception of a task is rethrown here; later tasks are then skipped. Nested
  // calls from inside a task run serially.
  void run(int64_t tasks, const std::function<void(int64_t task, int thread)>& fn);

  // The pool as the kernels see it; valid while the pool lives.
  const kernels::Executor& executor() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace inlaid

#endif  // INLAID_SDK_BASE_THREAD_POOL_H_

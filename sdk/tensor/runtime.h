// What everything of one runtime shares: threads, kernels, memory, files, log. No process state: several runtimes with
// different settings live side by side.
#ifndef INLAID_SDK_TENSOR_RUNTIME_H_
#define INLAID_SDK_TENSOR_RUNTIME_H_

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <thread>

#include "kernels/kernels.h"
#include "sdk/base/file_system.h"
#include "sdk/base/log.h"
#include "sdk/base/memory.h"
#include "sdk/base/quota_file_system.h"
#include "sdk/base/thread_pool.h"

namespace inlaid {

// Threads of background runs. They are joined when a later one starts after their end, or when the runtime dies; a run that
// drops the last reference to its runtime, on its own thread, is detached instead, because a thread cannot join itself.
class BackgroundThreads {
 public:
  ~BackgroundThreads();
  // kResourceExhausted if no thread can start.
  void start(std::function<void()> body);

 private:
  struct Entry {
    std::thread thread;
    std::shared_ptr<std::atomic<bool>> over;  // the body has returned
  };
  std::mutex mutex_;
  std::list<Entry> threads_;
};

// What a host may ask for beside threads and memory; 0 = no limit.
struct Duties {
  uint64_t disk_limit = 0;     // bytes, see quota_file_system.h
  double wall_time_limit = 0;  // seconds that a run may last
  bool zero_memory = false;    // arenas are filled with zeros before they are given back
};

struct Runtime {
  // threads 0 = one per processor. memory_limit 0 = none. allocator null = the C library's. `disk` must outlive the runtime.
  Runtime(int threads, uint64_t memory_limit, std::shared_ptr<SystemAllocator> allocator, FileSystem& disk, Log log,
          const kernels::KernelTable& table, const Duties& duties = {});

  ThreadPool pool;
  const kernels::KernelTable& kernels;
  std::shared_ptr<MemoryAccount> memory;
  QuotaFileSystem files;
  const Duties duties;
  Log log;
  BackgroundThreads background;  // last: its threads use the members above
};

}  // namespace inlaid

#endif  // INLAID_SDK_TENSOR_RUNTIME_H_

#include "sdk/tensor/runtime.h"

#include <sched.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "sdk/base/error.h"

namespace inlaid {
namespace {

// Processors that this process may use.
int processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

}  // namespace

BackgroundThreads::~BackgroundThreads() {
  for (std::thread& thread : threads_) {
    if (thread.get_id() == std::this_thread::get_id()) {
      thread.detach();
    } else {
      thread.join();
    }
  }
}

void BackgroundThreads::start(std::function<void()> body) {
  const std::lock_guard<std::mutex> lock(mutex_);
  try {
    threads_.emplace_back(std::move(body));
  } catch (const std::system_error& e) {
    fail(Code::kResourceExhausted, "no thread could be started for a run: ", e.what());
  }
}

Runtime::Runtime(int threads, uint64_t memory_limit, std::shared_ptr<SystemAllocator> allocator, FileSystem& files, Log log,
                 const kernels::KernelTable& table)
    : pool(threads > 0 ? threads : processors()),
      kernels(table),
      memory(MemoryAccount::root("runtime", memory_limit, allocator ? *allocator : default_allocator(), allocator)),
      files(files),
      log(std::move(log)) {}

}  // namespace inlaid

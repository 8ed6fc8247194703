#include "sdk/tensor/runtime.h"

#include <sched.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "sdk/base/error.h"
#include "sdk/base/wiping_allocator.h"

namespace inlaid {
namespace {

// Processors that this process may use.
int processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

std::shared_ptr<MemoryAccount> make_account(uint64_t limit, std::shared_ptr<SystemAllocator> allocator, bool wipe) {
  if (wipe) allocator = std::make_shared<WipingAllocator>(std::move(allocator));
  SystemAllocator& source = allocator != nullptr ? *allocator : default_allocator();
  return MemoryAccount::root("runtime", limit, source, std::move(allocator));
}

}  // namespace

BackgroundThreads::~BackgroundThreads() {
  for (Entry& entry : threads_) {
    std::thread& thread = entry.thread;
    if (thread.get_id() == std::this_thread::get_id()) {
      thread.detach();
    } else {
      thread.join();
    }
  }
}

void BackgroundThreads::start(std::function<void()> body) {
  const std::lock_guard<std::mutex> lock(mutex_);
  // A thread that has ended keeps its stack until it is joined: a runtime that lives long would collect them.
  for (auto entry = threads_.begin(); entry != threads_.end();) {
    if (!entry->over->load()) {
      ++entry;
      continue;
    }
    entry->thread.join();
    entry = threads_.erase(entry);
  }
  threads_.emplace_back();
  try {
    threads_.back().over = std::make_shared<std::atomic<bool>>(false);
    threads_.back().thread = std::thread([body = std::move(body), over = threads_.back().over]() mutable {
      body();
      body = nullptr;  // with what it holds
      over->store(true);
    });
  } catch (const std::system_error& e) {
    threads_.pop_back();
    fail(Code::kResourceExhausted, "no thread could be started for a run: ", e.what());
  } catch (...) {
    threads_.pop_back();
    throw;
  }
}

Runtime::Runtime(int threads, uint64_t memory_limit, std::shared_ptr<SystemAllocator> allocator, FileSystem& disk, Log log,
                 const kernels::KernelTable& table, const Duties& duties)
    : pool(threads > 0 ? threads : processors()),
      kernels(table),
      memory(make_account(memory_limit, std::move(allocator), duties.zero_memory)),
      files(disk, duties.disk_limit),
      duties(duties),
      log(std::move(log)) {}

}  // namespace inlaid

#include "sdk/tensor/runtime.h"

#include <sched.h>

#include <algorithm>
#include <utility>

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

Runtime::Runtime(int threads, uint64_t memory_limit, SystemAllocator& allocator, FileSystem& files, Log log,
                 const kernels::KernelTable& table)
    : pool(threads > 0 ? threads : processors()),
      kernels(table),
      memory(MemoryAccount::root("runtime", memory_limit, allocator)),
      files(files),
      log(std::move(log)) {}

}  // namespace inlaid

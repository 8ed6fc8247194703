// What everything of one runtime shares: threads, kernels, memory, files, log. No process state: several runtimes with
// different settings live side by side.
#ifndef INLAID_SDK_TENSOR_RUNTIME_H_
#define INLAID_SDK_TENSOR_RUNTIME_H_

#include <memory>

#include "kernels/kernels.h"
#include "sdk/base/file_system.h"
#include "sdk/base/log.h"
#include "sdk/base/memory.h"
#include "sdk/base/thread_pool.h"

namespace inlaid {

struct Runtime {
  // threads 0 = one per processor. memory_limit 0 = none. `allocator` and `files` must outlive the runtime.
  Runtime(int threads, uint64_t memory_limit, SystemAllocator& allocator, FileSystem& files, Log log,
          const kernels::KernelTable& table);

  ThreadPool pool;
  const kernels::KernelTable& kernels;
  std::shared_ptr<MemoryAccount> memory;
  FileSystem& files;
  Log log;
};

}  // namespace inlaid

#endif  // INLAID_SDK_TENSOR_RUNTIME_H_

// A disk in memory, a file system that fails on it, an allocator that counts: runtimes of the C API over all three.
#ifndef INLAID_TESTS_FAULTS_RIG_H_
#define INLAID_TESTS_FAULTS_RIG_H_

#include <string>
#include <vector>

#include "capi/include/inlaid.h"
#include "sdk/base/testing/counting_allocator.h"
#include "sdk/base/testing/fault_file_system.h"
#include "sdk/base/testing/memory_file_system.h"

namespace faults {

struct Rig {
  // The disk holds /in: tokenizer, template, training and evaluation rows of a small job.
  Rig();
  // One thread, so that the operations come in the same order every time.
  inlaid_runtime* new_runtime();
  // Paths of all files and folders below the root.
  std::vector<std::string> tree();
  // Paths of temporary files and folders: NAME.tmp, NAME.tmp-1.
  std::vector<std::string> temporary();

  inlaid::testing::MemoryFileSystem disk;
  inlaid::testing::FaultFileSystem files{disk, inlaid::testing::FaultFileSystem::Counted::kEverything};
  inlaid::testing::CountingAllocator allocator;
};

}  // namespace faults

#endif  // INLAID_TESTS_FAULTS_RIG_H_

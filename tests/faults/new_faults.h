// Exceptions out of the n-th `operator new` of the process, and a count of what was not given back.
//
// A program that links new_faults.cc replaces the C++ library's operators; the shared library takes them from the program,
// so the shipped object is what is tested. Allocations of C code and of the arenas (MemoryAccount) do not pass here. A fault cannot be put
// everywhere: the destructor of nlohmann::json allocates, and an exception that leaves a destructor ends the process.
#ifndef INLAID_TESTS_FAULTS_NEW_FAULTS_H_
#define INLAID_TESTS_FAULTS_NEW_FAULTS_H_

#include <cstdint>

namespace new_faults {

// What a failing operator new throws. The standard knows bad_alloc alone; code that throws the others stands for any
// library that the engine calls.
enum class Kind { kBadAlloc, kRuntimeError, kEngineError, kNoException };

// Allocations of all threads are numbered from 0 from now on; number n fails.
void arm(int64_t n, Kind kind);
// No more faults. Returns how many allocations there were since arm().
int64_t disarm();
// Whether a fault has happened since arm().
bool fired();
// Allocations that were not given back, of all threads.
int64_t live();

}  // namespace new_faults

#endif  // INLAID_TESTS_FAULTS_NEW_FAULTS_H_

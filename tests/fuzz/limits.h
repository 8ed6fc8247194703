// Bounds on what one input may cost, as faults rather than as slowness.
//
// Memory: operator new counts what is alive and faults beyond the limit; what Rust and C take is bounded by the size of the
// address space. Work: processor time of the process, by a timer whose signal ends it. Both are far above what the engine
// needs for an input of the driver's size, and far below what a hostile number in a header could ask for.
#ifndef INLAID_TESTS_FUZZ_LIMITS_H_
#define INLAID_TESTS_FUZZ_LIMITS_H_

#include <cstddef>
#include <cstdint>

namespace inlaid::fuzz {

constexpr uint64_t kMostBytes = uint64_t{512} << 20;
#ifdef __SANITIZE_ADDRESS__
constexpr int kMostSeconds = 120;
#else
constexpr int kMostSeconds = 20;
#endif

// Once, before the first input: bounds the address space (not under a sanitizer, which reserves terabytes) and catches
// deadly signals. Before the process ends, `input` is printed in base64.
struct Input {
  const char* data = nullptr;
  size_t size = 0;
  uint64_t number = 0;
};
void install_limits(const Input* input);

// Starts the clock for one input and counts memory from here.
void begin_input();
void end_input();

}  // namespace inlaid::fuzz

#endif  // INLAID_TESTS_FUZZ_LIMITS_H_

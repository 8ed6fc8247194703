// What every fuzz target has in common: the properties that hold for all input from outside.
//
// A target is one file with LLVMFuzzerTestOneInput. It hands its bytes to one reader of the engine and checks
//   - no crash, no undefined behaviour: sanitizers, and the handlers of driver.cc;
//   - no exception but inlaid::Error, never kInternal or kUnknown; its message is one line of UTF-8, not empty and not long;
//   - bounded memory and work per input: limits.h;
//   - what is read, written and read again is the same.
// The same file links against our driver (g++ only, a bounded run from a fixed seed, in tests/run) and against libFuzzer
// (clang: see CMakeLists.txt).
#ifndef INLAID_TESTS_FUZZ_CHECK_H_
#define INLAID_TESTS_FUZZ_CHECK_H_

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "sdk/base/error.h"
#include "sdk/base/file_system.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace inlaid::fuzz {

// Prints what is wrong and ends the process; the driver adds the input.
[[noreturn]] void fault(const std::string& what);

// A property that must hold whatever the input is.
#define FUZZ_REQUIRE(condition)                                                          \
  do {                                                                                   \
    if (!(condition)) ::inlaid::fuzz::fault(std::string(__FILE__ ": must hold: ") + #condition); \
  } while (false)

// Faults unless the error is one that a host can show to its user.
void check_error(const Error& error);

// Runs `body`; false when it ended with an Error, which is checked. Any other exception is a fault.
template <typename Body>
bool accepts(Body&& body) {
  try {
    body();
    return true;
  } catch (const Error& error) {
    check_error(error);
  } catch (const std::exception& error) {
    fault(std::string("an exception that is no inlaid::Error: ") + error.what());
  }
  return false;
}

// An input of several parts (files, say) is text cut at lines "--8<--". Exactly `count` parts; missing ones are empty.
std::vector<std::string> parts_of(const uint8_t* data, size_t size, size_t count);

void put_file(FileSystem& fs, const std::string& path, std::string_view bytes);

}  // namespace inlaid::fuzz

#endif  // INLAID_TESTS_FUZZ_CHECK_H_

// Errors of the engine. Exceptions inside, none outside: the engine throws inlaid::Error, and the guard of the C API
// (capi/src/guard.h) turns it into an inlaid_error. Nothing else in the engine catches by habit.
#ifndef INLAID_SDK_BASE_ERROR_H_
#define INLAID_SDK_BASE_ERROR_H_

#include <cstddef>
#include <cstdint>
#include <exception>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

namespace inlaid {

// The 17 canonical status codes, numerically equal to INLAID_* of capi/include/inlaid.h.
enum class Code : int32_t {
  kOk = 0,
  kCancelled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kAborted = 10,
  kOutOfRange = 11,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kDataLoss = 15,
  kUnauthenticated = 16,
};

// Name of a code as the C API spells it, for example "INVALID_ARGUMENT".
const char* code_name(Code code);

// A failed operation: a code, a message of one line that names the file, row, key or tensor and says what would be
// right, and optional machine-readable details (a JSON object as text, "{}" when there is nothing to add).
//
// Messages quote names and values that come from outside. So the constructor makes every message UTF-8 of one line and of
// at most kMaxMessageBytes (utf8.h, one_line), whatever the parts were: hosts may log and show it as it is.
class Error : public std::exception {
 public:
  static constexpr size_t kMaxMessageBytes = 4096;

  Error(Code code, std::string message, std::string details = "{}");

  Code code() const { return code_; }
  const std::string& message() const { return message_; }
  const std::string& details() const { return details_; }
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  Code code_;
  std::string message_;
  std::string details_;
};

// Throws Error(code, all parts written one after the other).
template <typename... Parts>
[[noreturn]] void fail(Code code, const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  throw Error(code, std::move(out).str());
}

// Throws kInternal unless an invariant of the engine holds. Never for input from outside.
#define INLAID_CHECK(condition)                                                                    \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      ::inlaid::fail(::inlaid::Code::kInternal, "invariant broken: ", #condition, " at ", __FILE__, \
                     ":", __LINE__);                                                               \
    }                                                                                              \
  } while (false)

}  // namespace inlaid

#endif  // INLAID_SDK_BASE_ERROR_H_

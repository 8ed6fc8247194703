// The guard: where exceptions become error values. That every exported function that can fail is one call of it is checked by
// tests/boundary/test_guard.py.
#include "capi/src/guard.h"

#include <gtest/gtest.h>

#include <functional>
#include <new>
#include <stdexcept>
#include <string>

namespace inlaid::capi {
namespace {

void expect(const std::function<void()>& body, inlaid_code code, const std::string& message, const std::string& details = "{}") {
  inlaid_error* error = guard(body);
  EXPECT_EQ(inlaid_error_code(error), code) << message;
  EXPECT_EQ(inlaid_error_message(error), message);
  EXPECT_EQ(inlaid_error_details(error), details) << message;
  inlaid_error_release(error);
}

TEST(Guard, EachKindOfException) {
  EXPECT_EQ(guard([] {}), nullptr);
  const std::string details = R"({"file":"x"})";
  expect([&] { throw Error(Code::kDataLoss, "a file is cut off", details); }, INLAID_DATA_LOSS, "a file is cut off", details);
  expect([] { fail(Code::kNotFound, "no file ", 5); }, INLAID_NOT_FOUND, "no file 5");
  expect([] { throw std::bad_alloc(); }, INLAID_RESOURCE_EXHAUSTED, "out of memory");
  expect([] { throw std::bad_array_new_length(); }, INLAID_RESOURCE_EXHAUSTED, "out of memory");
  expect([] { throw std::runtime_error("something of a library"); }, INLAID_INTERNAL, "something of a library");
  expect([] { throw std::out_of_range("a logic error"); }, INLAID_INTERNAL, "a logic error");
  expect([] { throw 42; }, INLAID_UNKNOWN, "an exception that is none of the C++ standard library's");
  expect([] { throw "text"; }, INLAID_UNKNOWN, "an exception that is none of the C++ standard library's");
}

// The error that says that there is no memory is always there, and always the same one.
TEST(Guard, OutOfMemoryNeedsNoMemory) {
  inlaid_error* first = guard([] { throw std::bad_alloc(); });
  inlaid_error* second = guard([] { throw std::bad_alloc(); });
  EXPECT_EQ(first, second);
  inlaid_error_release(first);
  inlaid_error_release(first);
  EXPECT_EQ(inlaid_error_code(second), INLAID_RESOURCE_EXHAUSTED);
}

}  // namespace
}  // namespace inlaid::capi

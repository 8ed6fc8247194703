// The error that a call throws, as a value.
#ifndef INLAID_SDK_CHECKPOINT_TESTING_ERROR_OF_H_
#define INLAID_SDK_CHECKPOINT_TESTING_ERROR_OF_H_

#include "sdk/base/error.h"

namespace inlaid::checkpoint::testing {

// Code kOk when nothing is thrown.
template <typename Fn>
Error error_of(Fn&& fn) {
  try {
    fn();
  } catch (const Error& error) {
    return error;
  }
  return Error(Code::kOk, "no error");
}

}  // namespace inlaid::checkpoint::testing

#endif  // INLAID_SDK_CHECKPOINT_TESTING_ERROR_OF_H_

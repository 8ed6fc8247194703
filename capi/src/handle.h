// Handles of the C API: reference-counted, checked for fork and for use by two threads at once.
#ifndef INLAID_CAPI_SRC_HANDLE_H_
#define INLAID_CAPI_SRC_HANDLE_H_

#include <unistd.h>

#include <atomic>
#include <memory>
#include <utility>

#include "capi/include/inlaid.h"
#include "sdk/base/error.h"

namespace inlaid::capi {

// A handle is created with one reference; release() drops it. `value` is shared with children, which keep it alive.
template <typename T>
struct Handle {
  explicit Handle(std::shared_ptr<T> v) : value(std::move(v)) {}
  std::shared_ptr<T> value;
  const pid_t process = getpid();
  std::atomic<bool> busy{false};
};

// kInvalidArgument for NULL; kFailedPrecondition in a forked child.
template <typename H>
H& checked(H* handle, const char* name) {
  if (handle == nullptr) fail(Code::kInvalidArgument, name, " is NULL");
  if (handle->process != getpid()) {
    fail(Code::kFailedPrecondition, name, " was created before fork(); a child process must create its own runtime");
  }
  return *handle;
}

// Drops the caller's reference. In a forked child the object is left alone: its threads exist in the parent only.
template <typename H>
void drop(H* handle) noexcept {
  if (handle != nullptr && handle->process == getpid()) delete handle;
}

// Owns a handle for the length of one call: a second thread gets kFailedPrecondition instead of a race.
class Owner {
 public:
  template <typename H>
  Owner(H& handle, const char* name) : busy_(handle.busy) {
    if (busy_.exchange(true, std::memory_order_acquire)) {
      fail(Code::kFailedPrecondition, name, " is in use by another thread");
    }
  }
  ~Owner() { busy_.store(false, std::memory_order_release); }
  Owner(const Owner&) = delete;
  Owner& operator=(const Owner&) = delete;

 private:
  std::atomic<bool>& busy_;
};

template <typename T>
T& required(T* pointer, const char* name) {
  if (pointer == nullptr) fail(Code::kInvalidArgument, name, " must not be NULL");
  return *pointer;
}

}  // namespace inlaid::capi

#endif  // INLAID_CAPI_SRC_HANDLE_H_

#include "sdk/text/own_stack.h"

#include <pthread.h>

#include <exception>  // for exception_ptr

#include "sdk/base/error.h"

namespace inlaid::text {
namespace {

constexpr size_t kStack = size_t{256} << 20;

struct Task {
  const std::function<void()>& body;
  std::exception_ptr thrown;
};

void* run(void* argument) {
  Task& task = *static_cast<Task*>(argument);
  try {
    task.body();
  } catch (...) {
    task.thrown = std::current_exception();
  }
  return nullptr;
}

}  // namespace

void on_own_stack(const std::function<void()>& body) {
  Task task{body, nullptr};
  pthread_attr_t attributes;
  pthread_t thread;
  bool made = pthread_attr_init(&attributes) == 0;
  if (made) {
    made = pthread_attr_setstacksize(&attributes, kStack) == 0 &&
           pthread_create(&thread, &attributes, run, &task) == 0;
    pthread_attr_destroy(&attributes);
  }
  if (!made) {
    fail(Code::kResourceExhausted, "cannot start a thread with ", kStack,
         " bytes of address space for its stack");
  }
  pthread_join(thread, nullptr);
  if (task.thrown) std::rethrow_exception(task.thrown);
}

}  // namespace inlaid::text

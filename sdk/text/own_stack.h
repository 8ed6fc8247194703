// Runs a function on a thread of its own with a large stack.
//
// Problem: a template can nest values as deep as its budget allows, and they are dropped recursively; the
// stack of the calling thread is the host's, 1 MiB in some. Idea: a short-lived thread with 256 MiB of
// address space for its stack, of which only touched pages take memory. It also keeps destructors of Rust's
// thread-local data away from threads of the host, which may live longer than the library. Cost: some 30
// microseconds. Tested by the nested values in chat_template_test.cc.
#ifndef INLAID_SDK_TEXT_OWN_STACK_H_
#define INLAID_SDK_TEXT_OWN_STACK_H_

#include <functional>

namespace inlaid::text {

// Calls `body` on the other thread and waits for its end. What it throws is thrown here. kResourceExhausted
// when no such thread can be made.
void on_own_stack(const std::function<void()>& body);

}  // namespace inlaid::text

#endif  // INLAID_SDK_TEXT_OWN_STACK_H_

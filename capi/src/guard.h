// The one place where exceptions become error values: every exported function that can fail is one guard around C++ code.
#ifndef INLAID_CAPI_SRC_GUARD_H_
#define INLAID_CAPI_SRC_GUARD_H_

#include <new>

#include "capi/include/inlaid.h"
#include "sdk/base/error.h"

namespace inlaid::capi {

// New error object; the immortal out-of-memory error when there is no memory for one.
inlaid_error *to_c(const Error &e) noexcept;
inlaid_error *to_c(Code code, const char *message) noexcept;
inlaid_error *out_of_memory() noexcept;

template <typename Body>
inlaid_error *guard(Body &&body) noexcept {
  try {
    body();
    return nullptr;
  } catch (const Error &e) {
    return to_c(e);
  } catch (const std::bad_alloc &) {
    return out_of_memory();
  } catch (const std::exception &e) {
    return to_c(Code::kInternal, e.what());
  } catch (...) {
    return to_c(Code::kUnknown, "an exception that is none of the C++ standard library's");
  }
}

}  // namespace inlaid::capi

#endif  // INLAID_CAPI_SRC_GUARD_H_

#include <cstring>
#include <memory>
#include <string>

#include "capi/include/inlaid.h"
#include "capi/src/guard.h"

struct inlaid_error {
  inlaid_code code;
  std::string message;
  std::string details;
};

namespace inlaid::capi {
namespace {

// Stands for the error that there is no memory to make. Its address is all that matters: the getters know its contents, so it
// needs no construction and is never released.
alignas(inlaid_error) const unsigned char kOutOfMemory[sizeof(inlaid_error)] = {};

const inlaid_error *immortal() { return reinterpret_cast<const inlaid_error *>(kOutOfMemory); }

}  // namespace

inlaid_error *out_of_memory() noexcept { return const_cast<inlaid_error *>(immortal()); }

inlaid_error *to_c(Code code, const char *message) noexcept {
  try {
    return new inlaid_error{static_cast<inlaid_code>(code), message, "{}"};
  } catch (...) {
    return out_of_memory();
  }
}

inlaid_error *to_c(const Error &e) noexcept {
  try {
    return new inlaid_error{static_cast<inlaid_code>(e.code()), e.message(), e.details()};
  } catch (...) {
    return out_of_memory();
  }
}

}  // namespace inlaid::capi

using inlaid::capi::immortal;

inlaid_code inlaid_error_code(const inlaid_error *e) INLAID_NOEXCEPT {
  if (e == nullptr) return INLAID_OK;
  return e == immortal() ? INLAID_RESOURCE_EXHAUSTED : e->code;
}

const char *inlaid_error_message(const inlaid_error *e) INLAID_NOEXCEPT {
  if (e == nullptr) return "";
  return e == immortal() ? "out of memory" : e->message.c_str();
}

const char *inlaid_error_details(const inlaid_error *e) INLAID_NOEXCEPT {
  return e == nullptr || e == immortal() ? "{}" : e->details.c_str();
}

void inlaid_error_release(inlaid_error *e) INLAID_NOEXCEPT {
  if (e != immortal()) delete e;
}

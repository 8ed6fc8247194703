#include "new_faults.h"

#include <atomic>
#include <cstdlib>
#include <new>
#include <stdexcept>

#include "sdk/base/error.h"

namespace new_faults {
namespace {

std::atomic<bool> armed{false}, happened{false};
std::atomic<int64_t> calls{0}, fails_at{0}, outstanding{0};
std::atomic<Kind> thrown{Kind::kBadAlloc};
thread_local bool throwing = false;  // making the exception allocates as well

bool due() {
  if (!armed.load() || throwing) return false;
  return calls.fetch_add(1) == fails_at.load();
}

[[noreturn]] void raise() {
  happened.store(true);
  throwing = true;
  struct Done {
    ~Done() { throwing = false; }
  } done;
  switch (thrown.load()) {
    case Kind::kBadAlloc: throw std::bad_alloc();
    case Kind::kRuntimeError: throw std::runtime_error("an injected std::runtime_error");
    case Kind::kEngineError: throw inlaid::Error(inlaid::Code::kAborted, "an injected inlaid::Error", "{}");
    case Kind::kNoException: throw 42;
  }
  throw std::bad_alloc();
}

void* take(std::size_t bytes, std::size_t align) {
  if (due()) raise();
  const std::size_t size = bytes == 0 ? 1 : bytes;
  void* memory = align <= alignof(std::max_align_t) ? std::malloc(size) : std::aligned_alloc(align, (size + align - 1) / align * align);
  if (memory == nullptr) throw std::bad_alloc();
  outstanding.fetch_add(1);
  return memory;
}

void give(void* memory) noexcept {
  if (memory == nullptr) return;
  outstanding.fetch_sub(1);
  std::free(memory);
}

}  // namespace

void arm(int64_t n, Kind kind) {
  calls.store(0);
  fails_at.store(n);
  thrown.store(kind);
  happened.store(false);
  armed.store(true);
}

int64_t disarm() {
  armed.store(false);
  return calls.load();
}

bool fired() { return happened.load(); }
int64_t live() { return outstanding.load(); }

}  // namespace new_faults

// The nothrow forms return nullptr where the others throw, as [new.delete.single] wants.
namespace {
void* take_or_null(std::size_t bytes, std::size_t align) noexcept {
  try {
    return new_faults::take(bytes, align);
  } catch (...) {
    return nullptr;
  }
}
constexpr std::size_t kPlain = alignof(std::max_align_t);
}  // namespace

void* operator new(std::size_t n) { return new_faults::take(n, kPlain); }
void* operator new[](std::size_t n) { return new_faults::take(n, kPlain); }
void* operator new(std::size_t n, std::align_val_t a) { return new_faults::take(n, static_cast<std::size_t>(a)); }
void* operator new[](std::size_t n, std::align_val_t a) { return new_faults::take(n, static_cast<std::size_t>(a)); }
void* operator new(std::size_t n, const std::nothrow_t&) noexcept { return take_or_null(n, kPlain); }
void* operator new[](std::size_t n, const std::nothrow_t&) noexcept { return take_or_null(n, kPlain); }
void operator delete(void* p) noexcept { new_faults::give(p); }
void operator delete[](void* p) noexcept { new_faults::give(p); }
void operator delete(void* p, std::size_t) noexcept { new_faults::give(p); }
void operator delete[](void* p, std::size_t) noexcept { new_faults::give(p); }
void operator delete(void* p, std::align_val_t) noexcept { new_faults::give(p); }
void operator delete[](void* p, std::align_val_t) noexcept { new_faults::give(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { new_faults::give(p); }
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept { new_faults::give(p); }
void operator delete(void* p, const std::nothrow_t&) noexcept { new_faults::give(p); }
void operator delete[](void* p, const std::nothrow_t&) noexcept { new_faults::give(p); }

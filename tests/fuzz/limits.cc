#include "tests/fuzz/limits.h"

#include <malloc.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

extern "C" void __sanitizer_set_death_callback(void (*callback)()) __attribute__((weak));

namespace inlaid::fuzz {
namespace {

const Input* running = nullptr;
std::atomic<int64_t> alive{0};
std::atomic<bool> counting{false};

// Only calls that are safe in a signal handler.
void say(const char* text) {
  if (write(STDERR_FILENO, text, std::strlen(text)) < 0) _exit(1);
}

void print_input() {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  if (running == nullptr || running->data == nullptr) return;
  char number[24];
  char* digit = number + sizeof number - 1;
  *digit = '\0';
  uint64_t n = running->number;
  do *--digit = static_cast<char>('0' + n % 10);
  while ((n /= 10) != 0);
  say("fuzz: input number ");
  say(digit);
  say(", in base64:\n");
  for (size_t at = 0; at < running->size; at += 3) {
    uint32_t group = 0;
    for (size_t i = 0; i < 3; ++i) {
      group = group << 8 | (at + i < running->size ? static_cast<unsigned char>(running->data[at + i]) : 0u);
    }
    char out[5] = {};
    for (size_t i = 0; i < 4; ++i) out[i] = i <= running->size - at ? kDigits[group >> (18 - 6 * i) & 63] : '=';
    say(out);
  }
  say("\n");
  running = nullptr;  // once, however the process ends
}

void on_signal(int number) {
  say(number == SIGPROF ? "fuzz: an input takes too long\n" : "fuzz: a deadly signal\n");
  print_input();
  signal(SIGABRT, SIG_DFL);
  abort();
}

void count(int64_t bytes) {
  if (alive.fetch_add(bytes) + bytes <= static_cast<int64_t>(kMostBytes) || bytes < 0 || !counting) return;
  counting = false;
  say("fuzz: an input takes too much memory\n");
  abort();
}

void* take(size_t bytes) {
  // Checked before: a size that no machine has must be seen as well.
  if (counting && bytes > kMostBytes) count(static_cast<int64_t>(kMostBytes) + 1);
  void* memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  count(static_cast<int64_t>(malloc_usable_size(memory)));
  return memory;
}

void give(void* memory) noexcept {
  if (memory == nullptr) return;
  count(-static_cast<int64_t>(malloc_usable_size(memory)));
  std::free(memory);
}

void set_timer(int seconds) {
  itimerval timer{};
  timer.it_value.tv_sec = seconds;
  setitimer(ITIMER_PROF, &timer, nullptr);
}

}  // namespace

void install_limits(const Input* input) {
  running = input;
#ifndef __SANITIZE_ADDRESS__
  // Threads, stacks of 256 MiB for templates and tokenizers, the engine's and Rust's heaps.
  const rlimit space{uint64_t{8} << 30, uint64_t{8} << 30};
  setrlimit(RLIMIT_AS, &space);
  for (int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) signal(number, on_signal);
#endif
  signal(SIGABRT, on_signal);
  signal(SIGPROF, on_signal);
  if (__sanitizer_set_death_callback != nullptr) __sanitizer_set_death_callback(print_input);
}

void begin_input() {
  alive = 0;
  counting = true;
  set_timer(kMostSeconds);
}

void end_input() {
  set_timer(0);
  counting = false;
}

}  // namespace inlaid::fuzz

void* operator new(size_t bytes) { return inlaid::fuzz::take(bytes); }
void* operator new[](size_t bytes) { return inlaid::fuzz::take(bytes); }
void operator delete(void* memory) noexcept { inlaid::fuzz::give(memory); }
void operator delete[](void* memory) noexcept { inlaid::fuzz::give(memory); }
void operator delete(void* memory, size_t) noexcept { inlaid::fuzz::give(memory); }
void operator delete[](void* memory, size_t) noexcept { inlaid::fuzz::give(memory); }

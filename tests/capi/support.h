// What the tests of the C API share: owners for handles, checks of errors, a small job, child processes.
#ifndef INLAID_TESTS_CAPI_SUPPORT_H_
#define INLAID_TESTS_CAPI_SUPPORT_H_

#include <gtest/gtest.h>
#include <inlaid.h>
#include <inlaid_plugin.h>

#include <atomic>
#include <initializer_list>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "owned.h"

namespace capi_test {

using nlohmann::json;

// Throws the message of an error, which ends the test as failed.
void ok(inlaid_error* error);
// Success if the error has this code and its message every one of these words; releases it.
testing::AssertionResult fails(inlaid_error* error, inlaid_code code, std::initializer_list<std::string> words = {});

// Calls a function whose last parameter is the out pointer.
template <typename O, typename F, typename... Args>
O make(F function, Args... args) {
  typename O::pointer out = nullptr;
  ok(function(args..., &out));
  return O(out);
}
template <typename F, typename... Args>
std::string text(F function, Args... args) {
  const Buffer buffer = make<Buffer>(function, args...);
  return {static_cast<const char*>(inlaid_buffer_data(buffer.get())), static_cast<size_t>(inlaid_buffer_size(buffer.get()))};
}
template <typename F, typename... Args>
json parsed(F function, Args... args) {
  return json::parse(text(function, args...));
}
// Expects that a call fails with this code and leaves its out pointer NULL. It starts as a value that is not NULL.
#define EXPECT_FAILS_OUT(type, code, words, function, ...)                                       \
  do {                                                                                           \
    type* out_ = reinterpret_cast<type*>(0x10);                                                  \
    EXPECT_TRUE(::capi_test::fails(function(__VA_ARGS__, &out_), code, words)) << #function;     \
    EXPECT_EQ(out_, nullptr) << #function;                                                       \
  } while (0)

Runtime make_runtime(int threads = 2, const json& settings = json::object(), const inlaid_allocator* allocator = nullptr);
Config make_config(const json& job);

// A folder of its own with data, tokenizer and template of a small model, removed at the end.
class Folder {
 public:
  Folder();
  ~Folder();
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  // LoRA (or full) on a model of two layers; 24 rows, about four in a step; writes to output, "" = nowhere.
  json job(const std::string& output, bool lora = true) const;

 private:
  std::string path_;
};
std::string source_path(const std::string& name);  // under INLAID_SOURCE
std::string smollm2_path();
std::string read_file(const std::string& path);
void write_file(const std::string& path, const std::string& text);

// Pulls all events of a run until it has ended and joins it.
struct Trained {
  std::vector<std::string> steps;  // step, loss and gradient norm of every step event, all bits
  std::vector<std::string> states;
  std::string end;
};
Trained watch(inlaid_run* run);
std::string step_line(const inlaid_event* event);
Trained train(inlaid_runtime* runtime, const json& job);
std::string generate(inlaid_model* model, inlaid_adapter* adapter, const std::vector<int32_t>& prompt, int count);
inlaid_error* greedy_tokens(inlaid_model* model, inlaid_adapter* adapter, const std::vector<int32_t>& prompt, int count,
                            std::string* ids);
// Bytes of all tensors of the model, to see that they did not change.
std::string weight_bytes(inlaid_model* model);

// Host allocator that counts what is out, and fails one allocation if asked.
class CountingAllocator {
 public:
  inlaid_allocator vtable();
  std::atomic<int64_t> calls{0}, live{0}, live_bytes{0};
  std::atomic<int64_t> fail_at{-1};  // number of the call that gets NULL
};

// Runs capi_child with these arguments. Output is what it wrote to standard output.
struct ChildResult {
  int exit_code;  // negative: signal
  std::string output;
};
ChildResult run_child(const std::vector<std::string>& arguments);
// Starts it and returns its process id and the reading end of its output.
std::pair<int, int> start_child(const std::vector<std::string>& arguments);

}  // namespace capi_test

#endif  // INLAID_TESTS_CAPI_SUPPORT_H_

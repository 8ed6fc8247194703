// Helpers of this folder's tests: golden files, values of stored tensors, and a tiny model to export.
#ifndef INLAID_SDK_FORMATS_TESTING_H_
#define INLAID_SDK_FORMATS_TESTING_H_

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "sdk/base/error.h"
#include "sdk/formats/weight_source.h"

namespace inlaid::formats {

inline std::string golden(const std::string& name) {
  return std::string(INLAID_SOURCE_DIR) + "/tests/golden/formats/" + name;
}

// Index of a tensor; fails the test and gives 0 when it is not there.
size_t index_of(const WeightSource& source, const std::string& name);
std::vector<std::byte> bytes_of(const WeightSource& source, const std::string& name);
// Decoded to f32.
std::vector<float> values_of(const WeightSource& source, const std::string& name);

void write_text(FileSystem& fs, const std::string& path, const std::string& text);
// Copies one file, or a folder of files, from one file system to another.
void copy_into(FileSystem& to, const std::string& target, FileSystem& from, const std::string& source);

// Every tensor of `source` as f32 values to be stored as `dtype`. `source` must outlive the result.
std::vector<ExportTensor> exports_of(const WeightSource& source, DType dtype);

// A configuration of one layer with every shape different, and values for it that a formula gives.
Json tiny_config();
std::vector<ExportTensor> tiny_tensors(const Json& config, DType dtype);
// A byte-level BPE tokenizer of ten tokens whose special token is "<s>".
std::string tiny_tokenizer();
ModelFiles tiny_model();

// Runs fn and gives the code and message of the Error that it throws; kOk when it throws none.
struct Outcome {
  Code code = Code::kOk;
  std::string message;
};
Outcome outcome_of(const std::function<void()>& fn);

#define EXPECT_FAILS(wanted_code, wanted_text, expression)                                         \
  do {                                                                                             \
    const ::inlaid::formats::Outcome outcome = ::inlaid::formats::outcome_of([&] { expression; }); \
    EXPECT_EQ(outcome.code, wanted_code) << outcome.message;                                       \
    EXPECT_NE(outcome.message.find(wanted_text), std::string::npos) << outcome.message;            \
  } while (false)

}  // namespace inlaid::formats

#endif  // INLAID_SDK_FORMATS_TESTING_H_

// A small checkpoint whose every value follows from formulas, for tests and for the golden files.
#ifndef INLAID_SDK_CHECKPOINT_TESTING_SAMPLE_H_
#define INLAID_SDK_CHECKPOINT_TESTING_SAMPLE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "sdk/checkpoint/checkpoint.h"

namespace inlaid::checkpoint::testing {

// Texts, cursor, extra files and nine tensors: four parameters of different types, two of them with both moments, and a
// scalar. Different steps have different bytes.
class Sample {
 public:
  explicit Sample(int64_t step);
  Sample(const Sample&) = delete;
  Sample& operator=(const Sample&) = delete;
  const Info& info() const { return info_; }
  const std::vector<Record>& records() const { return records_; }

 private:
  void add(const std::string& name, Role role, DType dtype, Shape shape);
  Info info_;
  std::vector<std::vector<std::byte>> data_;
  std::vector<Record> records_;
};

// Byte `i` of tensor `number` of the sample for `step`: (31 step + 17 number + 7 i + i / 256) mod 251.
std::byte sample_byte(int64_t step, size_t number, size_t i);

// "" when `folder` holds exactly the sample for `step`, otherwise the first difference.
std::string difference_from_sample(FileSystem& fs, const std::string& folder, int64_t step);

}  // namespace inlaid::checkpoint::testing

#endif  // INLAID_SDK_CHECKPOINT_TESTING_SAMPLE_H_

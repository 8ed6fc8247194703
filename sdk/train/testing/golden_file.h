// Reading of golden tensors in tests.
#ifndef INLAID_SDK_TRAIN_TESTING_GOLDEN_FILE_H_
#define INLAID_SDK_TRAIN_TESTING_GOLDEN_FILE_H_

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "sdk/base/error.h"
#include "sdk/formats/weight_source.h"

namespace inlaid::train {

// All f64 tensors of a safetensors file.
inline std::map<std::string, std::vector<double>> read_golden(const std::string& path) {
  std::map<std::string, std::vector<double>> result;
  const auto source = formats::open_safetensors(posix_file_system(), path);
  for (size_t i = 0; i < source->tensors().size(); ++i) {
    const formats::StoredTensor& tensor = source->tensors()[i];
    if (tensor.dtype != DType::f64) fail(Code::kInvalidArgument, path, ": ", tensor.name, " is not f64");
    std::vector<double> values(static_cast<size_t>(element_count(tensor.shape)));
    source->read(i, {reinterpret_cast<std::byte*>(values.data()), values.size() * sizeof(double)});
    result[tensor.name] = std::move(values);
  }
  return result;
}

// The evenly spaced entries that make_golden.py keeps of a tensor.
inline std::vector<double> sampled(const float* values, int64_t count, int64_t samples = 256) {
  std::vector<double> result;
  samples = std::min(samples, count);
  for (int64_t i = 0; i < samples; ++i) result.push_back(static_cast<double>(values[i * count / samples]));
  return result;
}

// Relative L2 distance from the oracle.
inline double relative_error(const std::vector<double>& values, const std::vector<double>& oracle) {
  double difference = 0, size = 0;
  for (size_t i = 0; i < oracle.size(); ++i) {
    difference += (values[i] - oracle[i]) * (values[i] - oracle[i]);
    size += oracle[i] * oracle[i];
  }
  return std::sqrt(difference / size);
}

}  // namespace inlaid::train

#endif  // INLAID_SDK_TRAIN_TESTING_GOLDEN_FILE_H_

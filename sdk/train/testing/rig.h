// What the tests of this layer start from: runtimes, small models and data, micro-batches.
#ifndef INLAID_SDK_TRAIN_TESTING_RIG_H_
#define INLAID_SDK_TRAIN_TESTING_RIG_H_

#include <memory>
#include <string>
#include <vector>

#include "sdk/train/job.h"

namespace inlaid::train {

std::shared_ptr<Runtime> make_runtime(int threads, uint64_t memory_limit = 0);

// The real model; a test that needs it fails when INLAID_TEST_DATA does not name its folder.
std::string smollm2_path();

// A folder of its own for one test, removed at its end.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// A configuration with constant rate and no clipping, changed by `changes` (dotted keys).
config::Config make_config(const std::vector<std::pair<std::string, std::string>>& changes);

// config.json of a small random model (vocabulary 64).
Json tiny_config();

// Documents of token ids; every token but the first of a document is a target, as far as `targets` says.
data::MicroBatch make_batch(const std::vector<std::vector<int32_t>>& documents);
// A deterministic document of `length` ids below `vocabulary`.
std::vector<int32_t> make_document(int seed, int64_t length, int32_t vocabulary);

// Values of everything that trains, one after the other.
std::vector<float> trained_values(const Trainer& trainer);

}  // namespace inlaid::train

#endif  // INLAID_SDK_TRAIN_TESTING_RIG_H_

// Keys of random numbers. There is no generator state anywhere: a number is Philox(key, counter), and a key is a pure function
// of the job's seed and the logical name of the tensor or op that uses it.
#ifndef INLAID_SDK_TENSOR_RANDOM_H_
#define INLAID_SDK_TENSOR_RANDOM_H_

#include <cstdint>
#include <span>
#include <string_view>

namespace inlaid {

// 64-bit key of (seed, name): FNV-1a of the name, mixed with the seed by the SplitMix64 finaliser.
uint64_t random_key(uint64_t seed, std::string_view name);

// Element i of each is a pure function of (key, i).
void fill_uniform(uint64_t key, double low, double high, std::span<float> out);  // [low, high)
void fill_normal(uint64_t key, double mean, double deviation, std::span<float> out);  // Box-Muller

}  // namespace inlaid

#endif  // INLAID_SDK_TENSOR_RANDOM_H_

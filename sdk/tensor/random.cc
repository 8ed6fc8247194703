#include "sdk/tensor/random.h"

#include <cmath>
#include <numbers>

#include "kernels/philox.h"

namespace inlaid {
namespace {

uint64_t mix(uint64_t x) {
  x ^= x >> 30;
  x *= 0xBF58476D1CE4E5B9u;
  x ^= x >> 27;
  x *= 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

// 53 random bits as a double in [0, 1).
double unit(uint32_t high, uint32_t low) {
  return static_cast<double>((uint64_t{high} << 21) | (low >> 11)) * 0x1p-53;
}

Philox::Words words(uint64_t key, uint64_t block) {
  return Philox::generate(key, {static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), 0, 0});
}

}  // namespace

uint64_t random_key(uint64_t seed, std::string_view name) {
  uint64_t hash = 0xCBF29CE484222325u;
  for (char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  return mix(hash + mix(seed + 0x9E3779B97F4A7C15u));
}

void fill_uniform(uint64_t key, double low, double high, std::span<float> out) {
  for (size_t i = 0; i < out.size(); ++i) {
    const Philox::Words w = words(key, i / 2);
    const double u = i % 2 == 0 ? unit(w[0], w[1]) : unit(w[2], w[3]);
    out[i] = static_cast<float>(low + (high - low) * u);
  }
}

void fill_normal(uint64_t key, double mean, double deviation, std::span<float> out) {
  for (size_t i = 0; i < out.size(); i += 2) {
    const Philox::Words w = words(key, i / 2);
    const double radius = std::sqrt(-2.0 * std::log(1.0 - unit(w[0], w[1])));
    const double angle = 2.0 * std::numbers::pi * unit(w[2], w[3]);
    out[i] = static_cast<float>(mean + deviation * radius * std::cos(angle));
    if (i + 1 < out.size()) out[i + 1] = static_cast<float>(mean + deviation * radius * std::sin(angle));
  }
}

}  // namespace inlaid

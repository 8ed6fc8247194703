#include "sdk/data/permutation.h"

#include <bit>  // for bit_width

#include "kernels/philox.h"
#include "sdk/base/error.h"

namespace inlaid::data {
namespace {

// Philox serves initial weights and dropout of the same seed, too; the order has a key of its own.
constexpr uint64_t kOrderKey = 0x6461746120736872;  // "data shr"
// Four rounds suffice for large halves (Luby and Rackoff); halves of one or two bits mix worse.
constexpr uint32_t kRounds = 8;

}  // namespace

Permutation::Permutation(uint64_t seed, int64_t epoch, int64_t n)
    : key_(seed ^ kOrderKey), epoch_(static_cast<uint64_t>(epoch)), n_(static_cast<uint64_t>(n)) {
  INLAID_CHECK(n >= 1 && n < (int64_t{1} << 62));
  const int bits = std::bit_width(n_ - 1);
  half_bits_ = bits <= 2 ? 1 : (bits + 1) / 2;
}

uint64_t Permutation::network(uint64_t value) const {
  const uint32_t mask = static_cast<uint32_t>((uint64_t{1} << half_bits_) - 1);
  uint32_t left = static_cast<uint32_t>(value >> half_bits_);
  uint32_t right = static_cast<uint32_t>(value) & mask;
  for (uint32_t round = 0; round < kRounds; ++round) {
    const Philox::Words counter = {right, round, static_cast<uint32_t>(epoch_),
                                   static_cast<uint32_t>(epoch_ >> 32)};
    const uint32_t mixed = left ^ (Philox::generate(key_, counter)[0] & mask);
    left = right;
    right = mixed;
  }
  return uint64_t{left} << half_bits_ | right;
}

int64_t Permutation::operator()(int64_t index) const {
  uint64_t value = static_cast<uint64_t>(index);
  do {
    value = network(value);
  } while (value >= n_);
  return static_cast<int64_t>(value);
}

}  // namespace inlaid::data

// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011): a counter-based generator. A random
// number is a pure function of (key, counter), so there is no state to save and none to share.
#ifndef INLAID_KERNELS_PHILOX_H_
#define INLAID_KERNELS_PHILOX_H_

#include <array>
#include <cstdint>

namespace inlaid {

struct Philox {
  using Words = std::array<uint32_t, 4>;

  static constexpr Words generate(uint64_t key, Words counter) {
    uint32_t k0 = static_cast<uint32_t>(key);
    uint32_t k1 = static_cast<uint32_t>(key >> 32);
    for (int round = 0; round < 10; ++round) {
      const uint64_t p0 = uint64_t{0xD2511F53u} * counter[0];
      const uint64_t p1 = uint64_t{0xCD9E8D57u} * counter[2];
      counter = {static_cast<uint32_t>(p1 >> 32) ^ counter[1] ^ k0, static_cast<uint32_t>(p1),
                 static_cast<uint32_t>(p0 >> 32) ^ counter[3] ^ k1, static_cast<uint32_t>(p0)};
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    return counter;
  }
};

}  // namespace inlaid

#endif  // INLAID_KERNELS_PHILOX_H_

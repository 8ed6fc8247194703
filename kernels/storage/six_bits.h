// The packed 6-bit numbers of K-quants, one at a time.
#ifndef INLAID_KERNELS_STORAGE_SIX_BITS_H_
#define INLAID_KERNELS_STORAGE_SIX_BITS_H_

#include <cstdint>

namespace inlaid::kernels {

struct ScaleAndMinimum {
  int scale, minimum;
};

// Group g of the 12 bytes of q4_k and q5_k. Bytes 0 to 3 hold the scales of groups 0 to 3, bytes 4 to 7 their
// minima, in the low six bits; bytes 8 to 11 the low nibbles of scale and minimum of groups 4 to 7, whose
// high two bits are on top of the first eight bytes.
constexpr ScaleAndMinimum scale_and_minimum(const uint8_t* p, int g) {
  if (g < 4) return {p[g] & 63, p[g + 4] & 63};
  return {(p[g + 4] & 15) | p[g - 4] >> 6 << 4, p[g + 4] >> 4 | p[g] >> 6 << 4};
}

// Scale i of 16 of the 12 bytes of q3_k, -32 to 31: eight bytes of low nibbles (of i and i + 8), four of high
// pairs of bits (of i, i + 4, i + 8, i + 12).
constexpr int signed_scale(const uint8_t* p, int i) {
  const int low = p[i % 8] >> (i / 8 * 4) & 15;
  const int high = p[8 + i % 4] >> (i / 4 * 2) & 3;
  return (low | high << 4) - 32;
}

}  // namespace inlaid::kernels

#endif  // INLAID_KERNELS_STORAGE_SIX_BITS_H_

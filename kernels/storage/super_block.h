// The K-quants of ggml: where the parts of a block of 256 values lie, and the walk over part of a row.
//
// Problem: two or four bits a value need a scale for every 16 or 32 values, and an f16 scale each would cost
// as much as half a bit a value. Idea: a block of 256 has one f16 scale d (and one f16 minimum dmin), and its
// groups have small integer multipliers of them. Which is also why the blocks are not cut where a matrix
// product cuts its rows: but every 32 values (one or two groups) can be decoded apart, so a reader asks for any
// multiple of 32.
//
// Bytes of a block, in this order (n x k: n values of k bits):
//   q2_k  16 x (4 scale, 4 minimum), 256 x 2, f16 d, f16 dmin
//   q3_k  256 x 1 high bit, 256 x 2 low bits, 12 bytes of 16 x 6-bit scale + 32, f16 d
//   q4_k  f16 d, f16 dmin, 12 bytes of 8 x (6 scale, 6 minimum), 256 x 4
//   q5_k  f16 d, f16 dmin, 12 bytes of 8 x (6 scale, 6 minimum), 256 x 1 high bit, 256 x 4 low bits
//   q6_k  256 x 4 low bits, 256 x 2 high bits, 16 x int8 scale, f16 d
// Groups g = 0 .. 7 of 32 values share bytes: byte j of a run of 32 holds value j of several groups, from its low
// bits up. Of 2 bits: run g / 4, bits 2 (g % 4). Of 4 bits: run g / 2, nibble g % 2; but in q6_k run 2 (g / 4) + g % 2,
// nibble g % 4 / 2. Of 1 bit: one run, bit g.
//
// Source: ggml, src/ggml-common.h and src/ggml-quants.c. Tests: storage_test.cc. Internal linkage throughout,
// for files that are compiled for an instruction set of their own.
#ifndef INLAID_KERNELS_STORAGE_SUPER_BLOCK_H_
#define INLAID_KERNELS_STORAGE_SUPER_BLOCK_H_

#include <cstdint>

namespace inlaid::kernels {
namespace {

constexpr int kSuperBlock = 256;  // values
constexpr int kGroup = 32;        // values that are decoded together
constexpr int kGroups = kSuperBlock / kGroup;

struct Q2K {
  static constexpr int kBytes = 84, kScales = 0, kLow = 16, kScale = 80, kMinimum = 82;
};
struct Q3K {
  static constexpr int kBytes = 110, kHigh = 0, kLow = 32, kScales = 96, kScale = 108;
};
struct Q4K {
  static constexpr int kBytes = 144, kScale = 0, kMinimum = 2, kScales = 4, kLow = 16;
};
struct Q5K {
  static constexpr int kBytes = 176, kScale = 0, kMinimum = 2, kScales = 4, kHigh = 16, kLow = 48;
};
struct Q6K {
  static constexpr int kBytes = 210, kLow = 0, kHigh = 128, kScales = 192, kScale = 208;
};

// Calls groups(block, first, end, dst) for the groups [first, end) of each block that the values
// [begin, begin + count) of a row touch. begin and count are multiples of 32.
template <typename Groups>
inline __attribute__((always_inline)) void walk_row(const uint8_t* row, int64_t block_bytes, int64_t begin,
                                                    int64_t count, float* dst, const Groups& groups) {
  const uint8_t* block = row + begin / kSuperBlock * block_bytes;
  int first = static_cast<int>(begin % kSuperBlock / kGroup);
  for (int64_t left = count / kGroup; left > 0; block += block_bytes, first = 0) {
    const int end = left < kGroups - first ? first + static_cast<int>(left) : kGroups;
    groups(block, first, end, dst);
    dst += (end - first) * kGroup;
    left -= end - first;
  }
}

}  // namespace
}  // namespace inlaid::kernels

#endif  // INLAID_KERNELS_STORAGE_SUPER_BLOCK_H_

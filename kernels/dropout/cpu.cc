// Dropout with a counter-based mask: nothing is stored, forward and backward make the same mask from (key,
// sample, position, column), and it does not depend on packing, micro-batching or threads.
//
// Idea: Philox4x32-10 (philox.h) on kLanes / 2 counters at once, each 32-bit word in the low half of a 64-bit
// lane, because the instruction that multiplies 32 x 32 -> 64 bits wants it there. High halves may hold
// rubbish: neither the product nor a later shift of a product sees them. Cost: about 3 instructions per
// element. Tested by dropout_test.cc against philox.h.
#include <cmath>

#include "kernels/level.h"
#include "kernels/plane.h"

namespace inlaid::kernels::INLAID_LEVEL {
namespace {

constexpr int kCounters = kLanes / 2;

// Products of the low halves.
INLAID_INLINE U64 multiply_low(U64 a, U64 b) {
#if defined(__AVX512F__)
  return reinterpret_cast<U64>(
      _mm512_maskz_mul_epu32(0xFF, reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b)));
#elif defined(__AVX2__)
  return reinterpret_cast<U64>(_mm256_mul_epu32(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b)));
#elif defined(__SSE2__)
  return reinterpret_cast<U64>(_mm_mul_epu32(reinterpret_cast<__m128i>(a), reinterpret_cast<__m128i>(b)));
#else
  return (a & 0xFFFFFFFFu) * (b & 0xFFFFFFFFu);
#endif
}

// The words of counters (first, w1, w2, w3), (first + 1, w1, w2, w3), ...: 4 kCounters words, in the order of
// columns.
INLAID_INLINE void philox(uint64_t key, uint32_t first, uint32_t w1, uint32_t w2, uint32_t w3,
                          uint32_t* words) {
  U64 c0, c1 = U64{} + w1, c2 = U64{} + w2, c3 = U64{} + w3;
  for (int i = 0; i < kCounters; ++i) c0[i] = first + static_cast<uint32_t>(i);
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  const U64 m0 = U64{} + 0xD2511F53u, m1 = U64{} + 0xCD9E8D57u;
  for (int round = 0; round < 10; ++round) {
    const U64 p0 = multiply_low(m0, c0), p1 = multiply_low(m1, c2);
    c0 = (p1 >> 32) ^ c1 ^ uint64_t { k0 };
    c1 = p1;
    c2 = (p0 >> 32) ^ c3 ^ uint64_t { k1 };
    c3 = p0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  const U64 low = (c0 & 0xFFFFFFFFu) | (c1 << 32), high = (c2 & 0xFFFFFFFFu) | (c3 << 32);
  for (int i = 0; i < kCounters; ++i) {
    __builtin_memcpy(words + 4 * i, reinterpret_cast<const char*>(&low) + 8 * i, 8);
    __builtin_memcpy(words + 4 * i + 2, reinterpret_cast<const char*>(&high) + 8 * i, 8);
  }
}

}  // namespace

void dropout(const Context& context, const DropoutArgs& args) {
  const Plane x = plane(args.x), y = plane(args.y);
  const int64_t* row_keys = static_cast<const int64_t*>(args.row_keys.data);
  const int32_t* positions = static_cast<const int32_t*>(args.positions.data);
  // word < p 2^32, for integers: word < ceil(p 2^32); everything is dropped if that does not fit a word.
  const double limit = std::ceil(args.p * 4294967296.0);
  const bool all = limit >= 4294967296.0;
  const U threshold = U{} + (all ? 0u : static_cast<uint32_t>(limit));
  const V scale = broadcast(all ? 0.0f : static_cast<float>(1 / (1 - args.p)));
  constexpr int64_t kWords = 4 * kCounters;
  for_rows(context, x, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const uint64_t row_key = static_cast<uint64_t>(row_keys[t]);
      const float* xt = x.data + t * x.stride;
      float* yt = y.data + t * y.stride;
      for (int64_t c0 = 0; c0 < x.columns; c0 += kWords) {
        uint32_t words[kWords];
        philox(args.key, static_cast<uint32_t>(c0 / 4), static_cast<uint32_t>(positions[t]),
               static_cast<uint32_t>(row_key), static_cast<uint32_t>(row_key >> 32), words);
        along(c0, smaller(c0 + kWords, x.columns), [&](int64_t c, auto lanes) {
          U word;
          __builtin_memcpy(&word, words + (c - c0), sizeof word);
          const bool dropped_all = all;
          V value = load_lanes(xt + c, lanes) * scale;
          value = dropped_all ? V{} : (word < threshold ? V{} : value);
          if (args.accumulate) value += load_lanes(yt + c, lanes);
          store_lanes(yt + c, value, lanes);
        });
      }
    }
  });
}

}  // namespace inlaid::kernels::INLAID_LEVEL

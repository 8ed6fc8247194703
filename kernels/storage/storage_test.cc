#include "kernels/storage/storage.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <random>
#include <vector>

#include "kernels/gemm/test_threads.h"
#include "kernels/storage/half.h"

namespace inlaid::kernels {
namespace {

uint32_t bits(float x) {
  return std::bit_cast<uint32_t>(x);
}
float from_bits(uint32_t u) {
  return std::bit_cast<float>(u);
}

struct Level {
  const char* name;
  DecodeRow decode;
  DecodePart part;
  void (*convert)(const Context&, const ConvertArgs&);
};

std::vector<Level> levels() {
  std::vector<Level> list = {{"portable", portable::to_f32, portable::to_f32_part, portable::convert}};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c")) {
    list.push_back({"avx2", avx2::to_f32, avx2::to_f32_part, avx2::convert});
  }
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw")) {
    list.push_back({"avx512", avx512::to_f32, avx512::to_f32_part, avx512::convert});
  }
#endif
  return list;
}

// The value of a finite 16-bit float with `fraction` fraction bits, from its definition.
double defined_value(uint32_t h, int exponent_bits, int fraction) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = static_cast<int>(h >> fraction & ((1u << exponent_bits) - 1));
  const double f = static_cast<double>(h & ((1u << fraction) - 1)) / (1 << fraction);
  const double magnitude = exponent == 0 ? std::ldexp(f, 1 - bias) : std::ldexp(1 + f, exponent - bias);
  return h >> 15 ? -magnitude : magnitude;
}

struct Half {
  const char* name;
  DType type;
  int exponent_bits, fraction;
  float (*widen)(uint16_t);
  uint16_t (*narrow)(float);
  uint32_t infinity() const { return ((1u << exponent_bits) - 1) << fraction; }
};
const Half kHalves[] = {{"f16", DType::f16, 5, 10, f16_to_f32, f32_to_f16},
                        {"bf16", DType::bf16, 8, 7, bf16_to_f32, f32_to_bf16}};

TEST(Half, EveryPatternWidensToItsValueAndBack) {
  for (const Half& half : kHalves) {
    for (uint32_t h = 0; h < 0x10000; ++h) {
      const float x = half.widen(static_cast<uint16_t>(h));
      const uint32_t magnitude = h & 0x7fff;
      if (magnitude > half.infinity()) {
        ASSERT_TRUE(std::isnan(x)) << half.name << h;
        ASSERT_TRUE(std::isnan(half.widen(half.narrow(x)))) << half.name << h;
      } else if (magnitude == half.infinity()) {
        ASSERT_EQ(x,
                  h >> 15 ? -std::numeric_limits<float>::infinity() : std::numeric_limits<float>::infinity());
        ASSERT_EQ(half.narrow(x), h);
      } else {
        ASSERT_EQ(static_cast<double>(x), defined_value(h, half.exponent_bits, half.fraction))
            << half.name << h;
        ASSERT_EQ(std::signbit(x), h >> 15 != 0);
        ASSERT_EQ(half.narrow(x), h) << half.name;
      }
    }
  }
}

// Rounding can change only at the midpoints of neighbours, so these decide every f32.
TEST(Half, NarrowsToTheNearestTiesToEven) {
  for (const Half& half : kHalves) {
    for (uint32_t h = 0; h < half.infinity(); ++h) {
      const double low = defined_value(h, half.exponent_bits, half.fraction);
      const double high =
          h + 1 == half.infinity()  // the value that the next pattern would have, were it finite
              ? std::ldexp(1.0, 1 << (half.exponent_bits - 1))
              : defined_value(h + 1, half.exponent_bits, half.fraction);
      const float middle = static_cast<float>((low + high) / 2);
      ASSERT_EQ(static_cast<double>(middle), (low + high) / 2);
      const uint32_t even = h % 2 == 0 ? h : h + 1;
      for (uint32_t sign : {0u, 0x8000u}) {
        const uint32_t s = sign << 16;
        ASSERT_EQ(half.narrow(from_bits(bits(middle) | s)), even | sign) << half.name << h;
        ASSERT_EQ(half.narrow(from_bits((bits(middle) - 1) | s)), h | sign) << half.name << h;
        ASSERT_EQ(half.narrow(from_bits((bits(middle) + 1) | s)), (h + 1) | sign) << half.name << h;
      }
    }
    ASSERT_EQ(half.narrow(std::numeric_limits<float>::max()), half.infinity());
    for (uint32_t nan : {0x7f800001u, 0x7fc00000u, 0xff800001u, 0xffffffffu}) {
      const uint16_t h = half.narrow(from_bits(nan));
      ASSERT_GT(h & 0x7fffu, half.infinity()) << half.name;
      ASSERT_EQ(h >> 15, nan >> 31) << half.name;
    }
  }
}

TEST(Decode, LevelsAgreeOnEveryHalf) {
  std::vector<uint16_t> all(0x10000);
  for (uint32_t h = 0; h < 0x10000; ++h) all[h] = static_cast<uint16_t>(h);
  for (const Half& half : kHalves) {
    for (const Level& level : levels()) {
      std::vector<float> out(all.size());
      level.decode(half.type, all.data(), static_cast<int64_t>(all.size()), out.data());
      for (uint32_t h = 0; h < 0x10000; ++h) {
        ASSERT_EQ(bits(out[h]), bits(half.widen(all[h]))) << level.name << " " << half.name << " " << h;
      }
      for (int64_t count = 0; count < 20; ++count) {  // tails, and nothing past the end
        std::vector<float> some(21, -1.0f);
        level.decode(half.type, all.data() + 0x3c00, count, some.data());
        for (int64_t i = 0; i < 21; ++i) {
          ASSERT_EQ(some[i], i < count ? half.widen(all[0x3c00 + i]) : -1.0f);
        }
      }
    }
  }
}

struct Golden {
  std::vector<float> values;
  struct Type {
    DType type;
    std::vector<char> encoded;
    std::vector<float> decoded;
  };
  std::vector<Type> types;
};

Golden golden() {
  std::ifstream in(INLAID_SOURCE_DIR "/tests/golden/storage/blocks.bin", std::ios::binary);
  uint32_t count = 0;
  in.read(reinterpret_cast<char*>(&count), sizeof count);
  Golden g;
  g.values.resize(count);
  in.read(reinterpret_cast<char*>(g.values.data()), count * 4);
  for (DType type : {DType::q8_0, DType::q4_0, DType::q4_1, DType::q5_0}) {
    Golden::Type t{type, std::vector<char>(static_cast<size_t>(dtype_bytes(type, count))),
                   std::vector<float>(count)};
    in.read(t.encoded.data(), static_cast<std::streamsize>(t.encoded.size()));
    in.read(reinterpret_cast<char*>(t.decoded.data()), count * 4);
    g.types.push_back(std::move(t));
  }
  EXPECT_TRUE(in.good() && count > 4000);
  return g;
}

TEST(Encode, WritesTheBlocksOfGguf) {
  const Golden g = golden();
  for (const Golden::Type& t : g.types) {
    std::vector<char> out(t.encoded.size());
    from_f32(t.type, g.values.data(), static_cast<int64_t>(g.values.size()), out.data());
    for (size_t i = 0; i < out.size(); ++i) {
      ASSERT_EQ(out[i], t.encoded[i]) << dtype_info(t.type).name << " block " << i / dtype_info(t.type).bytes;
    }
  }
}

TEST(Decode, ReadsTheBlocksOfGguf) {
  const Golden g = golden();
  const auto count = static_cast<int64_t>(g.values.size());
  for (const Golden::Type& t : g.types) {
    for (const Level& level : levels()) {
      std::vector<float> out(g.values.size());
      level.decode(t.type, t.encoded.data(), count, out.data());
      for (int64_t i = 0; i < count; ++i) {
        ASSERT_EQ(bits(out[i]), bits(t.decoded[i]))
            << level.name << " " << dtype_info(t.type).name << " " << i;
      }
    }
  }
}

// A block of ggml's own quantiser differs nowhere.
TEST(Encode, WritesTheQ4KOfGgml) {
  std::ifstream in(INLAID_SOURCE_DIR "/tests/golden/storage/q4_k.bin", std::ios::binary);
  uint32_t count = 0;
  in.read(reinterpret_cast<char*>(&count), sizeof count);
  std::vector<float> values(count);
  std::vector<uint8_t> expected(static_cast<size_t>(dtype_bytes(DType::q4_k, count))), actual(expected.size());
  in.read(reinterpret_cast<char*>(values.data()), count * 4);
  in.read(reinterpret_cast<char*>(expected.data()), static_cast<std::streamsize>(expected.size()));
  ASSERT_TRUE(in.good() && count > 20000);
  from_f32(DType::q4_k, values.data(), count, actual.data());
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(actual[i], expected[i]) << "block " << i / 144 << " byte " << i % 144;
  }
}

// Of normally distributed values, as weights nearly are: about what four bits can keep, and not more.
TEST(Encode, Q4KIsClose) {
  std::mt19937 rng(11);
  std::normal_distribution<float> normal(0, 0.05f);
  std::vector<float> x(256 * 64), back(x.size());
  for (float& v : x) v = normal(rng);
  std::vector<uint8_t> blocks(144 * 64);
  from_f32(DType::q4_k, x.data(), static_cast<int64_t>(x.size()), blocks.data());
  portable::to_f32(DType::q4_k, blocks.data(), static_cast<int64_t>(x.size()), back.data());
  double error = 0, power = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    error += (x[i] - back[i]) * (x[i] - back[i]);
    power += x[i] * x[i];
  }
  EXPECT_LT(std::sqrt(error / power), 0.08);
  EXPECT_GT(std::sqrt(error / power), 0.04);
}

// Types that are read but not written, and q4_k from random bytes: the values of the gguf package, at every level and
// by the reference.
TEST(Decode, ReadsTheKQuantsOfGguf) {
  std::ifstream in(INLAID_SOURCE_DIR "/tests/golden/storage/decode.bin", std::ios::binary);
  for (DType type : {DType::q5_1, DType::q2_k, DType::q3_k, DType::q4_k, DType::q5_k, DType::q6_k}) {
    uint32_t blocks = 0;
    in.read(reinterpret_cast<char*>(&blocks), sizeof blocks);
    ASSERT_TRUE(in.good() && blocks >= 24 && blocks < 200);
    const int64_t count = int64_t{blocks} * dtype_info(type).block;
    std::vector<char> encoded(static_cast<size_t>(dtype_bytes(type, count)));
    std::vector<float> expected(static_cast<size_t>(count)), actual(expected.size());
    in.read(encoded.data(), static_cast<std::streamsize>(encoded.size()));
    in.read(reinterpret_cast<char*>(expected.data()), count * 4);
    ASSERT_TRUE(in.good());
    const auto compare = [&](const char* level) {
      for (int64_t i = 0; i < count; ++i) {
        const auto at = static_cast<size_t>(i);
        ASSERT_EQ(bits(actual[at]), bits(expected[at])) << level << " " << dtype_info(type).name << " " << i;
      }
    };
    for (const Level& level : levels()) {
      level.decode(type, encoded.data(), count, actual.data());
      compare(level.name);
    }
    reference::convert(Context{}, {view1(encoded.data(), type, count), view1(actual.data(), DType::f32, count)});
    compare("reference");
  }
}

const DType kBlocks[] = {DType::q4_0, DType::q4_1, DType::q8_0, DType::q5_0, DType::q5_1, DType::q2_k,
                         DType::q3_k, DType::q4_k, DType::q5_k, DType::q6_k};

// Any bytes: infinite, NaN and denormal scales included. A NaN is a NaN, whatever its bits.
TEST(Decode, LevelsAgreeOnAnyBytes) {
  std::mt19937 rng(5);
  for (DType type : kBlocks) {
    for (int64_t blocks = 1; blocks <= 37; blocks += blocks < 6 ? 1 : 31) {
      const int64_t count = blocks * dtype_info(type).block;
      std::vector<uint8_t> bytes(static_cast<size_t>(dtype_bytes(type, count)));
      std::vector<float> expected(static_cast<size_t>(count));
      int64_t finite = 0;
      for (int round = 0; round < 20; ++round) {
        for (uint8_t& b : bytes) b = static_cast<uint8_t>(rng());
        reference::convert(Context{}, {view1(bytes.data(), type, count), view1(expected.data(), DType::f32, count)});
        for (float x : expected) finite += std::isfinite(x);
        for (const Level& level : levels()) {
          std::vector<float> actual(expected.size() + 1, 17.0f);
          level.decode(type, bytes.data(), count, actual.data());
          for (size_t i = 0; i < expected.size(); ++i) {
            if (std::isnan(expected[i])) {
              ASSERT_TRUE(std::isnan(actual[i])) << level.name << " " << dtype_info(type).name << " " << i;
            } else {
              ASSERT_EQ(bits(actual[i]), bits(expected[i])) << level.name << " " << dtype_info(type).name << " " << i;
            }
          }
          ASSERT_EQ(actual.back(), 17.0f) << "wrote past the end";
        }
      }
      EXPECT_GT(finite, 10 * count) << dtype_info(type).name;
    }
  }
}

TEST(Decode, ZeroScalesGiveZeros) {
  for (DType type : kBlocks) {
    const int64_t count = 3 * dtype_info(type).block;
    std::vector<uint8_t> bytes(static_cast<size_t>(dtype_bytes(type, count)), 0);
    for (const Level& level : levels()) {
      std::vector<float> out(static_cast<size_t>(count), 1.0f);
      level.decode(type, bytes.data(), count, out.data());
      for (float x : out) ASSERT_EQ(x, 0.0f) << level.name << " " << dtype_info(type).name;
    }
  }
}

// Every cut of a row at multiples of the unit, also inside a block of 256: the values of the whole row, and no others
// written.
TEST(Decode, PartsOfARow) {
  std::mt19937 rng(6);
  for (int t = 0; t < kDTypes; ++t) {
    const auto type = static_cast<DType>(t);
    if (!storage_type(type)) continue;
    const int64_t count = 3 * 256;
    std::vector<uint8_t> bytes(static_cast<size_t>(dtype_bytes(type, count)));
    for (uint8_t& b : bytes) b = static_cast<uint8_t>(rng() & 0x33);  // no scale or value is infinite
    const int64_t unit = decode_unit(type), step = unit == 1 ? 31 : unit;
    for (const Level& level : levels()) {
      std::vector<float> all(static_cast<size_t>(count));
      level.decode(type, bytes.data(), count, all.data());
      for (int64_t begin = 0; begin < count; begin += step) {
        for (int64_t end = begin; end <= count; end += step) {
          std::vector<float> some(static_cast<size_t>(end - begin) + 1, 17.0f);
          level.part(type, bytes.data(), begin, end - begin, some.data());
          ASSERT_EQ(std::memcmp(some.data(), all.data() + begin, static_cast<size_t>(end - begin) * 4), 0)
              << level.name << " " << dtype_info(type).name << " " << begin << " to " << end;
          ASSERT_EQ(some.back(), 17.0f) << "wrote past the end";
        }
      }
    }
  }
}

TEST(Encode, KeepsWhatIsNotFinite) {
  const float inf = std::numeric_limits<float>::infinity();
  for (DType type : {DType::q8_0, DType::q4_0, DType::q4_1, DType::q5_0, DType::q4_k}) {
    for (float special : {std::nanf(""), inf, -inf}) {
      for (int at : {0, 5, 31}) {
        const int64_t size = dtype_info(type).block;
        std::vector<float> x(static_cast<size_t>(size), 0.25f), back(x.size());
        x[static_cast<size_t>(at)] = special;
        char block[144];
        from_f32(type, x.data(), size, block);
        portable::to_f32(type, block, size, back.data());
        EXPECT_FALSE(std::isfinite(back[static_cast<size_t>(at)])) << dtype_info(type).name << special << at;
      }
    }
  }
}

std::vector<float> random_values(int64_t n) {
  std::mt19937 rng(7);
  std::uniform_real_distribution<float> uniform(-2, 2);
  std::vector<float> v(static_cast<size_t>(n));
  for (float& x : v) x = uniform(rng);
  return v;
}

// Every pair of types, rows further apart than their length, several threads: the same bytes as the
// reference, and nothing written between the rows.
TEST(Convert, LevelsWriteWhatTheReferenceWrites) {
  std::vector<DType> types = {DType::f64};
  for (int t = 0; t < kDTypes; ++t) {
    if (storage_type(static_cast<DType>(t))) types.push_back(static_cast<DType>(t));
  }
  const int64_t rows = 3, columns = 3840, src_stride = 4096, dst_stride = 4352;
  const std::vector<float> values = random_values(rows * src_stride);
  TestThreads threads(3);
  const Context context{&threads.executor(), nullptr, 0};
  for (DType from : types) {
    std::vector<char> src(static_cast<size_t>(dtype_bytes(from, rows * src_stride)));
    if (storage_type(from) && !encoded_type(from)) {
      for (size_t i = 0; i < src.size(); ++i) src[i] = static_cast<char>((i * 37 + i / 11) & 0x33);
    } else if (from == DType::f64) {
      for (size_t i = 0; i < values.size(); ++i) {
        const double wide = values[i];
        std::memcpy(src.data() + 8 * i, &wide, 8);
      }
    } else {
      from_f32(from, values.data(), rows * src_stride, src.data());
    }
    for (DType to : types) {
      if (to != from && to != DType::f64 && !encoded_type(to)) continue;
      TensorView in = view2(src.data(), from, rows, columns);
      in.stride[0] = src_stride;
      std::vector<char> expected(static_cast<size_t>(dtype_bytes(to, rows * dst_stride)), 17);
      TensorView out = view2(expected.data(), to, rows, columns);
      out.stride[0] = dst_stride;
      // A block in its own format is copied, not encoded again.
      if (from == to) {
        for (int64_t r = 0; r < rows; ++r) {
          std::memcpy(expected.data() + dtype_bytes(to, r * dst_stride),
                      src.data() + dtype_bytes(to, r * src_stride),
                      static_cast<size_t>(dtype_bytes(to, columns)));
        }
      } else {
        reference::convert(context, {in, out});
      }
      for (const Level& level : levels()) {
        std::vector<char> actual(expected.size(), 17);
        out.data = actual.data();
        level.convert(context, {in, out});
        EXPECT_EQ(std::memcmp(actual.data(), expected.data(), actual.size()), 0)
            << level.name << " " << dtype_info(from).name << " to " << dtype_info(to).name;
      }
    }
  }
}

TEST(Convert, FlatAndEmpty) {
  const std::vector<float> values = random_values(200000);
  TestThreads threads(2);
  const Context context{&threads.executor(), nullptr, 0};
  for (const Level& level : levels()) {
    std::vector<uint16_t> narrow(values.size());
    std::vector<float> back(values.size());
    const auto n = static_cast<int64_t>(values.size());
    level.convert(context, {view1(const_cast<float*>(values.data()), DType::f32, n),
                            view1(narrow.data(), DType::bf16, n)});
    level.convert(context, {view1(narrow.data(), DType::bf16, n), view1(back.data(), DType::f32, n)});
    for (size_t i = 0; i < values.size(); ++i) ASSERT_EQ(back[i], bf16_to_f32(f32_to_bf16(values[i])));
    level.convert(context, {view1(narrow.data(), DType::bf16, 0), view1(back.data(), DType::f32, 0)});
  }
}

}  // namespace
}  // namespace inlaid::kernels

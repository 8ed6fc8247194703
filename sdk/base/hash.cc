#include "sdk/base/hash.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

namespace inlaid {
namespace {

// First 32 bits of the fractional parts of the cube roots of the first 64 primes (FIPS 180-4, 4.2.2).
constexpr std::array<uint32_t, 64> kRound = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

// Square roots of the first 8 primes, same construction (5.3.3).
constexpr std::array<uint32_t, 8> kStart = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                            0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

uint32_t load_big_endian(const std::byte* bytes) {
  return std::to_integer<uint32_t>(bytes[0]) << 24 | std::to_integer<uint32_t>(bytes[1]) << 16 |
         std::to_integer<uint32_t>(bytes[2]) << 8 | std::to_integer<uint32_t>(bytes[3]);
}

// Tables for eight bytes at a time ("slicing-by-8"): kCrc[k][b] is the checksum of byte b followed by k zero
// bytes.
constexpr std::array<std::array<uint32_t, 256>, 8> make_crc_tables() {
  constexpr uint32_t kPolynomial = 0x82f63b78;  // Castagnoli, bits reversed
  std::array<std::array<uint32_t, 256>, 8> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) ? kPolynomial : 0);
    table[0][byte] = crc;
  }
  for (size_t k = 1; k < 8; ++k) {
    for (uint32_t byte = 0; byte < 256; ++byte) {
      const uint32_t before = table[k - 1][byte];
      table[k][byte] = (before >> 8) ^ table[0][before & 0xff];
    }
  }
  return table;
}
constexpr auto kCrc = make_crc_tables();

}  // namespace

Sha256::Sha256() : state_(kStart), pending_{} {}

void Sha256::block(const std::byte* bytes) {
  std::array<uint32_t, 64> w;
  for (size_t i = 0; i < 16; ++i) w[i] = load_big_endian(bytes + 4 * i);
  for (size_t i = 16; i < 64; ++i) {
    const uint32_t s0 = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ (w[i - 15] >> 3);
    const uint32_t s1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ (w[i - 2] >> 10);
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = state_;
  for (size_t i = 0; i < 64; ++i) {
    const uint32_t s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + kRound[i] + w[i];
    const uint32_t s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + t1;
    d = c, c = b, b = a, a = t1 + t2;
  }
  const std::array<uint32_t, 8> sum = {a, b, c, d, e, f, g, h};
  for (size_t i = 0; i < 8; ++i) state_[i] += sum[i];
}

void Sha256::update(std::span<const std::byte> bytes) {
  const size_t held = length_ % 64;
  length_ += bytes.size();
  if (held != 0) {
    const size_t take = std::min(64 - held, bytes.size());
    if (take != 0) std::memcpy(pending_.data() + held, bytes.data(), take);
    bytes = bytes.subspan(take);
    if (held + take < 64) return;
    block(pending_.data());
  }
  for (; bytes.size() >= 64; bytes = bytes.subspan(64)) block(bytes.data());
  if (!bytes.empty()) std::memcpy(pending_.data(), bytes.data(), bytes.size());
}

void Sha256::update(std::string_view text) {
  update(std::as_bytes(std::span(text.data(), text.size())));
}

std::string Sha256::hex() {
  const uint64_t bits = length_ * 8;
  // One bit 1, zeros up to 56 modulo 64, then the length in bits, big-endian.
  std::array<std::byte, 72> tail{};
  tail[0] = std::byte{0x80};
  const size_t padding = 1 + (119 - length_ % 64) % 64;
  for (size_t i = 0; i < 8; ++i) tail[padding + i] = static_cast<std::byte>(bits >> (56 - 8 * i));
  update(std::span<const std::byte>(tail.data(), padding + 8));
  std::string text;
  for (uint32_t word : state_) {
    for (int shift = 28; shift >= 0; shift -= 4) text += "0123456789abcdef"[word >> shift & 15];
  }
  return text;
}

std::string sha256_hex(std::string_view text) {
  Sha256 hash;
  hash.update(text);
  return hash.hex();
}

std::string sha256_file(FileSystem& fs, const std::string& path) {
  const std::unique_ptr<ReadableFile> file = fs.open(path);
  std::vector<std::byte> buffer(std::min<uint64_t>(file->size(), uint64_t{1} << 20));
  Sha256 hash;
  for (uint64_t offset = 0; offset < file->size();) {
    const std::span piece(buffer.data(), std::min<uint64_t>(buffer.size(), file->size() - offset));
    file->read_at(offset, piece);
    hash.update(std::span<const std::byte>(piece));
    offset += piece.size();
  }
  return hash.hex();
}

uint32_t crc32c(uint32_t crc, std::span<const std::byte> bytes) {
  crc = ~crc;
  auto byte = [&](size_t i) { return std::to_integer<uint32_t>(bytes[i]); };
  while (bytes.size() >= 8) {
    const uint32_t low = crc ^ (byte(0) | byte(1) << 8 | byte(2) << 16 | byte(3) << 24);
    crc = kCrc[7][low & 0xff] ^ kCrc[6][low >> 8 & 0xff] ^ kCrc[5][low >> 16 & 0xff] ^ kCrc[4][low >> 24] ^
          kCrc[3][byte(4)] ^ kCrc[2][byte(5)] ^ kCrc[1][byte(6)] ^ kCrc[0][byte(7)];
    bytes = bytes.subspan(8);
  }
  for (; !bytes.empty(); bytes = bytes.subspan(1)) crc = (crc >> 8) ^ kCrc[0][(crc ^ byte(0)) & 0xff];
  return ~crc;
}

}  // namespace inlaid

// SHA-256 (FIPS 180-4) and CRC-32C (Castagnoli), for identities and for damage respectively.
#ifndef INLAID_SDK_BASE_HASH_H_
#define INLAID_SDK_BASE_HASH_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "sdk/base/file_system.h"

namespace inlaid {

class Sha256 {
 public:
  Sha256();
  void update(std::span<const std::byte> bytes);
  void update(std::string_view text);
  std::string hex();  // 64 lower-case digits; ends the computation

 private:
  void block(const std::byte* bytes);
  std::array<uint32_t, 8> state_;
  std::array<std::byte, 64> pending_;
  uint64_t length_ = 0;
};

std::string sha256_hex(std::string_view text);
std::string sha256_file(FileSystem& fs, const std::string& path);
// Continues a checksum; start with 0.
uint32_t crc32c(uint32_t crc, std::span<const std::byte> bytes);

}  // namespace inlaid

#endif  // INLAID_SDK_BASE_HASH_H_

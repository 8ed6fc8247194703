#include "sdk/base/hash.h"

#include <gtest/gtest.h>

#include "sdk/base/testing/memory_file_system.h"

namespace inlaid {
namespace {

std::span<const std::byte> bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// NIST example vectors (FIPS 180-4 test data), and one million 'a'.
TEST(Sha256, PublishedVectors) {
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256_hex(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, PiecesGiveTheHashOfTheWhole) {
  std::string text;
  for (int i = 0; i < 300; ++i) text += static_cast<char>(i * 7);
  for (size_t length = 0; length < text.size(); ++length) {  // every padding case
    const std::string_view whole(text.data(), length);
    for (size_t piece : {size_t{1}, size_t{13}, size_t{64}, size_t{100}}) {
      Sha256 hash;
      for (size_t at = 0; at < length; at += piece) hash.update(whole.substr(at, piece));
      ASSERT_EQ(hash.hex(), sha256_hex(whole)) << length << " bytes in pieces of " << piece;
    }
  }
}

TEST(Sha256, FileEqualsItsBytes) {
  testing::MemoryFileSystem fs;
  const std::string text((size_t{1} << 20) + 77, 'q');  // more than one read
  write_atomically(fs, "f", text);
  write_atomically(fs, "empty", "");
  EXPECT_EQ(sha256_file(fs, "f"), sha256_hex(text));
  EXPECT_EQ(sha256_file(fs, "empty"), sha256_hex(""));
}

// RFC 3720 (iSCSI), B.4.
TEST(Crc32c, PublishedVectors) {
  EXPECT_EQ(crc32c(0, bytes("123456789")), 0xe3069283u);
  EXPECT_EQ(crc32c(0, bytes(std::string(32, '\0'))), 0x8a9136aau);
  EXPECT_EQ(crc32c(0, bytes(std::string(32, '\xff'))), 0x62a8ab43u);
  std::string rising;
  for (char c = 0; c < 32; ++c) rising += c;
  EXPECT_EQ(crc32c(0, bytes(rising)), 0x46dd794eu);
  EXPECT_EQ(crc32c(0, {}), 0u);
}

TEST(Crc32c, ContinuesAtAnySplit) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += static_cast<char>(i * 31);
  const uint32_t whole = crc32c(0, bytes(text));
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    const std::string_view view = text;
    EXPECT_EQ(crc32c(crc32c(0, bytes(view.substr(0, cut))), bytes(view.substr(cut))), whole);
  }
}

}  // namespace
}  // namespace inlaid

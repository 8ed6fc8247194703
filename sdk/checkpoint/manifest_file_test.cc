#include "sdk/checkpoint/manifest_file.h"

#include <gtest/gtest.h>

#include <functional>

#include "sdk/checkpoint/format.h"
#include "sdk/checkpoint/testing/error_of.h"

namespace inlaid::checkpoint {
namespace {

using testing::error_of;

v1::Manifest small_manifest() {
  v1::Manifest manifest;
  manifest.set_format_version(1);
  manifest.set_min_reader_version(1);
  manifest.set_step(7);
  manifest.mutable_cursor()->set_index(3);
  v1::Writer* writer = manifest.add_writers();
  writer->set_index_file("index-00000.pb");
  writer->set_index_sha256(std::string(64, 'a'));
  return manifest;
}

TEST(ManifestFileTest, RoundTrip) {
  const std::string bytes = seal_manifest(small_manifest());
  const v1::Manifest back = parse_manifest(bytes, "m");
  EXPECT_EQ(back.step(), 7);
  EXPECT_EQ(back.cursor().index(), 3);
  EXPECT_EQ(bytes[bytes.size() - 5], 0x7d);
  EXPECT_EQ(seal_manifest(back), bytes) << "an old checksum must not be written into the message";
}

TEST(ManifestFileTest, EveryTruncationAndEveryFlippedBitIsFound) {
  const std::string bytes = seal_manifest(small_manifest());
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(error_of([&] { parse_manifest(bytes.substr(0, size), "m"); }).code(), Code::kDataLoss) << size;
  }
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string damaged = bytes;
    damaged[bit / 8] ^= static_cast<char>(1 << (bit % 8));
    const Error error = error_of([&] { parse_manifest(damaged, "m"); });
    EXPECT_TRUE(error.code() == Code::kDataLoss || error.code() == Code::kFailedPrecondition) << bit;
  }
  EXPECT_EQ(error_of([&] { parse_manifest(bytes + '\0', "m"); }).code(), Code::kDataLoss);
}

// A length-delimited field that no version of the schema has.
std::string unknown_field(uint32_t number, const std::string& value) {
  std::string bytes;
  for (uint32_t tag = number << 3 | 2; tag > 0; tag >>= 7) {
    bytes += static_cast<char>((tag & 0x7f) | (tag > 0x7f ? 0x80 : 0));
  }
  return bytes + static_cast<char>(value.size()) + value;
}

TEST(ManifestFileTest, UnknownFieldsSurviveARewrite) {
  v1::Manifest manifest = small_manifest();
  manifest.mutable_writers(0)->MergeFromString(unknown_field(77, "inside a writer"));
  manifest.MergeFromString(unknown_field(200, "of a later version"));
  v1::Manifest read = parse_manifest(seal_manifest(manifest), "m");
  read.set_step(8);
  const v1::Manifest again = parse_manifest(seal_manifest(read), "m");
  EXPECT_EQ(again.step(), 8);
  EXPECT_TRUE(again.SerializeAsString().ends_with(unknown_field(200, "of a later version")));
  EXPECT_TRUE(again.writers(0).SerializeAsString().ends_with(unknown_field(77, "inside a writer")));
}

TEST(ManifestFileTest, NewerFormatIsReadUnlessItNeedsANewerReader) {
  v1::Manifest manifest = small_manifest();
  manifest.set_format_version(9);
  EXPECT_EQ(parse_manifest(seal_manifest(manifest), "m").format_version(), 9u);
  manifest.set_min_reader_version(kReaderVersion + 1);
  manifest.set_producer("inlaid 9.0");
  const std::string bytes = seal_manifest(manifest);
  const Error error = error_of([&] { parse_manifest(bytes, "m"); });
  EXPECT_EQ(error.code(), Code::kFailedPrecondition);
  EXPECT_NE(error.message().find("inlaid 9.0"), std::string::npos);
  // Also when that version has given up this checksum.
  EXPECT_EQ(error_of([&] { parse_manifest(bytes.substr(0, bytes.size() - 5), "m"); }).code(), Code::kFailedPrecondition);
}

TEST(ManifestFileTest, RefusesWhatCannotBe) {
  const auto code = [](const std::function<void(v1::Manifest&)>& change) {
    v1::Manifest manifest = small_manifest();
    change(manifest);
    return error_of([&] { parse_manifest(seal_manifest(manifest), "m"); }).code();
  };
  EXPECT_EQ(code([](v1::Manifest&) {}), Code::kOk);
  EXPECT_EQ(code([](v1::Manifest& m) { m.clear_writers(); }), Code::kDataLoss);
  EXPECT_EQ(code([](v1::Manifest& m) { m.set_format_version(0); }), Code::kDataLoss);
  EXPECT_EQ(code([](v1::Manifest& m) { m.set_step(-1); }), Code::kDataLoss);
  EXPECT_EQ(code([](v1::Manifest& m) { m.mutable_cursor()->set_epoch(-1); }), Code::kDataLoss);
  EXPECT_EQ(code([](v1::Manifest& m) { m.mutable_writers(0)->set_index_file("../index"); }), Code::kDataLoss);
  EXPECT_EQ(code([](v1::Manifest& m) { m.mutable_writers(0)->set_index_file("manifest.pb"); }), Code::kDataLoss);
  EXPECT_EQ(code([](v1::Manifest& m) { m.mutable_writers(0)->set_index_bytes(kMaxIndexBytes + 1); }), Code::kDataLoss);
  EXPECT_EQ(code([](v1::Manifest& m) { m.mutable_writers(0)->set_records(UINT64_MAX); }), Code::kDataLoss);
  EXPECT_EQ(code([](v1::Manifest& m) { m.mutable_writers(0)->set_index_sha256("abc"); }), Code::kDataLoss);
  EXPECT_EQ(code([](v1::Manifest& m) { *m.add_writers() = m.writers(0); }), Code::kDataLoss);
  const auto add_file = [](v1::Manifest& m, const std::string& name, uint64_t bytes) {
    v1::ExtraFile* file = m.add_extra_files();
    file->set_name(name);
    file->set_bytes(bytes);
    file->set_sha256(std::string(64, '0'));
  };
  EXPECT_EQ(code([&](v1::Manifest& m) { add_file(m, "a", 1); }), Code::kOk);
  EXPECT_EQ(code([&](v1::Manifest& m) { add_file(m, "/a", 1); }), Code::kDataLoss);
  EXPECT_EQ(code([&](v1::Manifest& m) { add_file(m, "index-00000.pb", 1); }), Code::kDataLoss);
  EXPECT_EQ(code([&](v1::Manifest& m) { add_file(m, "a", UINT64_MAX); }), Code::kDataLoss);
  EXPECT_EQ(code([&](v1::Manifest& m) {
              for (int i = 0; i <= kMaxExtraFiles; ++i) add_file(m, std::to_string(i), 1);
            }),
            Code::kDataLoss);
  const auto add_key = [](v1::Manifest& m, const std::string& key) { m.add_metadata()->set_key(key); };
  EXPECT_EQ(code([&](v1::Manifest& m) { add_key(m, "a"), add_key(m, "b"); }), Code::kOk);
  EXPECT_EQ(code([&](v1::Manifest& m) { add_key(m, "b"), add_key(m, "a"); }), Code::kDataLoss);
  EXPECT_EQ(code([&](v1::Manifest& m) { add_key(m, "a"), add_key(m, "a"); }), Code::kDataLoss);
}

TEST(ManifestFileTest, RefusesTextThatIsNotUtf8AndTooMuchText) {
  v1::Manifest manifest = small_manifest();
  manifest.mutable_base()->set_path("/models/\xff");
  EXPECT_EQ(error_of([&] { seal_manifest(manifest); }).code(), Code::kInvalidArgument);
  manifest = small_manifest();
  manifest.set_config_json(std::string(kMaxManifestBytes, 'x'));
  EXPECT_EQ(error_of([&] { seal_manifest(manifest); }).code(), Code::kInvalidArgument);
}

// 2 bytes of file for an object of some hundred bytes: refused before the objects are made.
TEST(ManifestFileTest, RefusesAFileOfEmptyEntries) {
  std::string bytes;
  for (int i = 0; i < 1'000'000; ++i) bytes += std::string("\x22\x00", 2);  // Index.records, empty
  EXPECT_EQ(error_of([&] { parse_index(bytes, "i"); }).code(), Code::kDataLoss);
}

}  // namespace
}  // namespace inlaid::checkpoint

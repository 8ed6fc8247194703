#include "sdk/formats/safetensors.h"

#include <cstring>

#include "sdk/base/testing/memory_file_system.h"
#include "sdk/formats/testing.h"

namespace inlaid::formats {
namespace {

using testing::MemoryFileSystem;

const char* kFile = "/m.safetensors";

// A file with this header and `data` zero bytes.
void write_file(FileSystem& fs, const std::string& header, size_t data) {
  const uint64_t length = header.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  write_text(fs, kFile, bytes + header + std::string(data, '\0'));
}

std::vector<std::byte> counted(size_t n, int first) {
  std::vector<std::byte> out(n);
  for (size_t i = 0; i < n; ++i) out[i] = static_cast<std::byte>(first + static_cast<int>(i));
  return out;
}

void write_three(FileSystem& fs) {
  const std::vector<StoredTensor> tensors = {
      {"b", DType::bf16, {2, 3}, ""}, {"a", DType::u8, {5}, ""}, {"c \"quoted\" ü", DType::f32, {}, ""}};
  SafetensorsWriter writer(fs, kFile, tensors);
  for (size_t index : writer.order()) {
    writer.write(counted(static_cast<size_t>(byte_count(tensors[index].dtype, tensors[index].shape)),
                         static_cast<int>(10 * index)));
  }
  writer.finish();
}

TEST(Safetensors, RoundTrip) {
  MemoryFileSystem fs;
  write_three(fs);
  const SafetensorsFile file(fs, kFile);
  ASSERT_EQ(file.tensors().size(), 3u);
  EXPECT_EQ(file.tensors()[0].name, "a");  // sorted
  EXPECT_EQ(file.tensors()[1].dtype, DType::bf16);
  EXPECT_EQ(file.tensors()[1].shape, (Shape{2, 3}));
  EXPECT_EQ(file.tensors()[2].shape, Shape{});
  EXPECT_EQ(bytes_of(file, "b"), counted(12, 0));
  EXPECT_EQ(bytes_of(file, "a"), counted(5, 10));
  EXPECT_EQ(bytes_of(file, "c \"quoted\" ü"), counted(4, 20));
  const std::vector<std::pair<std::string, std::string>> metadata = {{"format", "pt"}};
  EXPECT_EQ(file.metadata(), metadata);
}

TEST(Safetensors, DataIsAlignedToItsElements) {
  MemoryFileSystem fs;
  write_three(fs);
  const std::string text = read_text(fs, kFile);
  uint64_t length = 0;
  std::memcpy(&length, text.data(), 8);
  EXPECT_EQ(length % 8, 0u);
  // f32, then bf16, then u8.
  EXPECT_EQ(static_cast<int>(text[8 + length]), 20);
  EXPECT_EQ(static_cast<int>(text[8 + length + 4]), 0);
  EXPECT_EQ(static_cast<int>(text[8 + length + 16]), 10);
}

TEST(Safetensors, WriterRefusesNamesAndTypes) {
  MemoryFileSystem fs;
  const StoredTensor a{"a", DType::f32, {1}, ""}, q{"q", DType::q8_0, {32}, ""};
  EXPECT_FAILS(Code::kInvalidArgument, "'a'", SafetensorsWriter(fs, kFile, {a, a}));
  EXPECT_FAILS(Code::kInvalidArgument, "q8_0", SafetensorsWriter(fs, kFile, {q}));
}

TEST(Safetensors, EveryTruncationIsDataLoss) {
  MemoryFileSystem fs;
  write_three(fs);
  const std::string whole = read_text(fs, kFile);
  for (size_t size = 0; size < whole.size(); ++size) {
    write_text(fs, "/cut", whole.substr(0, size));
    EXPECT_EQ(outcome_of([&] { open_safetensors(fs, "/cut"); }).code, Code::kDataLoss) << size;
  }
  write_text(fs, "/cut", whole + "x");
  EXPECT_FAILS(Code::kDataLoss, "1 bytes after the last tensor", open_safetensors(fs, "/cut"));
}

TEST(Safetensors, BitFlipsNeverReadPastTheFile) {
  MemoryFileSystem fs;
  write_three(fs);
  const std::string whole = read_text(fs, kFile);
  int refused = 0;
  for (size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    write_text(fs, "/flip", damaged);
    const Outcome outcome = outcome_of([&] {
      const auto source = open_safetensors(fs, "/flip");
      for (const StoredTensor& tensor : source->tensors()) bytes_of(*source, tensor.name);
    });
    if (outcome.code == Code::kOk) continue;
    ++refused;
    EXPECT_TRUE(outcome.code == Code::kDataLoss || outcome.code == Code::kUnimplemented) << outcome.message;
  }
  EXPECT_GT(refused, 1000);
}

TEST(Safetensors, RefusesHostileHeaders) {
  MemoryFileSystem fs;
  const auto refused = [&](const std::string& header, size_t data, Code code, const std::string& text) {
    write_file(fs, header, data);
    EXPECT_FAILS(code, text, open_safetensors(fs, kFile));
  };
  const auto entry = [](const std::string& shape, const std::string& offsets) {
    return R"({"t":{"dtype":"F32","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}";
  };
  refused(entry("[2]", "[0,7]"), 8, Code::kDataLoss, "need 8 bytes");
  refused(entry("[2]", "[0,8]"), 7, Code::kDataLoss, "do not lie inside");
  refused(entry("[2]", "[8,0]"), 8, Code::kDataLoss, "do not lie inside");
  refused(entry("[2]", "[4,12]"), 12, Code::kDataLoss, "hole");
  refused(entry("[-1]", "[0,8]"), 8, Code::kDataLoss, "at least 0");
  refused(entry("[2.0]", "[0,8]"), 8, Code::kDataLoss, "integer");
  refused(entry("[4611686018427387904,4]", "[0,0]"), 0, Code::kDataLoss, "too large");
  refused(entry("[18446744073709551615]", "[0,0]"), 0, Code::kDataLoss, "too large");
  refused(entry("[1,1,1,1,1,1,1,1,1]", "[0,4]"), 4, Code::kUnimplemented, "dimensions");
  refused(entry("2", "[0,8]"), 8, Code::kDataLoss, "needs exactly");
  refused(R"({"t":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":1}})", 4, Code::kDataLoss,
          "needs exactly");
  refused(R"({"t":{"dtype":"F8_E4M3","shape":[4],"data_offsets":[0,4]}})", 4, Code::kUnimplemented,
          "F8_E4M3");
  refused(R"({"t":3})", 0, Code::kDataLoss, "object");
  refused(R"([])", 0, Code::kDataLoss, "object");
  refused(R"({"__metadata__":{"a":1}})", 0, Code::kDataLoss, "text");
  refused(
      R"({"t":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"t":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
      2, Code::kDataLoss, "twice");
  refused(
      R"({"s":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"t":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
      3, Code::kDataLoss, "overlaps");
  refused(
      R"({"s":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"t":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})",
      2, Code::kDataLoss, "overlaps");
  refused(std::string(100, '['), 0, Code::kDataLoss, "header");

  std::string huge(8, '\xff');
  write_text(fs, kFile, huge + "{}");
  EXPECT_FAILS(Code::kDataLoss, "header length", open_safetensors(fs, kFile));
  EXPECT_FAILS(Code::kNotFound, "/none", open_safetensors(fs, "/none"));
}

TEST(Safetensors, EmptyTensorsAreFine) {
  MemoryFileSystem fs;
  write_file(
      fs,
      R"({"a":{"dtype":"F32","shape":[0,4],"data_offsets":[0,0]},"b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
      R"("c":{"dtype":"F32","shape":[0],"data_offsets":[1,1]}}   )",
      1);
  const auto source = open_safetensors(fs, kFile);
  EXPECT_EQ(source->tensors().size(), 3u);
  EXPECT_TRUE(bytes_of(*source, "a").empty());
}

}  // namespace
}  // namespace inlaid::formats

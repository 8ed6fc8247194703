#include <tuple>

#include "sdk/base/testing/memory_file_system.h"
#include "sdk/formats/gguf_config.h"
#include "sdk/formats/gguf_file.h"
#include "sdk/formats/testing.h"

namespace inlaid::formats {
namespace {

using testing::MemoryFileSystem;

const char* kFile = "/m.gguf";

struct Entry {
  std::string name;
  std::vector<uint64_t> sizes;  // fastest-varying first
  uint32_t type;
  uint64_t offset;
};

// A container by the letter of the format, right or wrong.
std::string container(const GgufEntries& metadata, const std::vector<Entry>& tensors, size_t data) {
  std::string out;
  append_number(out, kGgufMagic);
  append_number(out, kGgufVersion);
  append_number(out, uint64_t{tensors.size()});
  append_number(out, uint64_t{metadata.size()});
  for (const auto& [key, value] : metadata) {
    append_text(out, key);
    append_value(out, value);
  }
  for (const Entry& tensor : tensors) {
    append_text(out, tensor.name);
    append_number(out, static_cast<uint32_t>(tensor.sizes.size()));
    for (uint64_t size : tensor.sizes) append_number(out, size);
    append_number(out, tensor.type);
    append_number(out, tensor.offset);
  }
  out.resize((out.size() + 31) / 32 * 32, '\0');
  return out + std::string(data, 'd');
}

GgufEntries some_metadata() {
  return {{"general.architecture", gguf_string("llama")},
          {"n", gguf_u32(7)},
          {"x", gguf_f32(0.5)},
          {"flag", gguf_bool(true)},
          {"words", gguf_strings({"", "one", "Ġtwo"})},
          {"ints", gguf_i32s({-1, 0, 5})},
          {"bools", {GgufType::boolean, true, std::vector<bool>{true, false}}},
          {"floats", {GgufType::f64, true, std::vector<double>{0.1}}},
          {"bytes", {GgufType::u8, true, std::vector<uint64_t>{1, 255}}}};
}

TEST(Gguf, RoundTripOfMetadataAndTable) {
  MemoryFileSystem fs;
  write_text(fs, kFile, container(some_metadata(), {{"a", {4, 3}, 0, 0}, {"q", {64}, 8, 64}}, 64 + 68));
  const GgufFile file(fs, kFile);
  EXPECT_EQ(file.text("general.architecture"), "llama");
  EXPECT_EQ(file.integer("n"), 7);
  EXPECT_EQ(file.number("x"), 0.5);
  EXPECT_EQ(file.optional_flag("flag"), true);
  EXPECT_EQ(file.texts("words"), (std::vector<std::string>{"", "one", "Ġtwo"}));
  EXPECT_EQ(file.integers("ints"), (std::vector<int64_t>{-1, 0, 5}));
  EXPECT_EQ(file.integers("bytes"), (std::vector<int64_t>{1, 255}));
  EXPECT_EQ(std::get<std::vector<bool>>(file.find("bools")->data), (std::vector<bool>{true, false}));
  EXPECT_EQ(std::get<std::vector<double>>(file.find("floats")->data), std::vector<double>{0.1});
  EXPECT_EQ(file.find_tensor("a")->shape, (Shape{3, 4}));
  EXPECT_EQ(file.find_tensor("q")->dtype, DType::q8_0);
  EXPECT_EQ(file.find_tensor("q")->offset, file.find_tensor("a")->offset + 64);
  EXPECT_EQ(file.find_tensor("none"), nullptr);
  EXPECT_FAILS(Code::kDataLoss, "'none' is missing", file.integer("none"));
  EXPECT_FAILS(Code::kDataLoss, "'words' must be a string, it is an array of string", file.text("words"));
  EXPECT_FAILS(Code::kDataLoss, "'n' must be an array of strings", file.texts("n"));
}

TEST(Gguf, EveryTruncationIsDataLoss) {
  MemoryFileSystem fs;
  const std::string whole = container(some_metadata(), {{"a", {4, 3}, 0, 0}, {"q", {64}, 8, 64}}, 64 + 68);
  for (size_t size = 0; size < whole.size(); ++size) {
    write_text(fs, "/cut", whole.substr(0, size));
    EXPECT_EQ(outcome_of([&] { GgufFile(fs, "/cut"); }).code, Code::kDataLoss) << size;
  }
}

TEST(Gguf, BitFlipsNeverReadPastTheFile) {
  MemoryFileSystem fs;
  const std::string whole = container(some_metadata(), {{"a", {4, 3}, 0, 0}, {"q", {64}, 8, 64}}, 64 + 68);
  int refused = 0;
  for (size_t bit = 0; bit < 8 * (whole.size() - 132); ++bit) {
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    write_text(fs, "/flip", damaged);
    const Outcome outcome = outcome_of([&] {
      const GgufFile file(fs, "/flip");
      for (const GgufTensor& tensor : file.tensors()) {
        std::vector<std::byte> bytes(static_cast<size_t>(byte_count(tensor.dtype, tensor.shape)));
        file.file().read_at(tensor.offset, bytes);
      }
    });
    if (outcome.code == Code::kOk) continue;
    ++refused;
    EXPECT_TRUE(outcome.code == Code::kDataLoss || outcome.code == Code::kUnimplemented) << outcome.message;
  }
  EXPECT_GT(refused, 700);
}

TEST(Gguf, RefusesHostileFiles) {
  MemoryFileSystem fs;
  const auto refused = [&](const std::string& bytes, Code code, const std::string& text) {
    write_text(fs, kFile, bytes);
    EXPECT_FAILS(code, text, GgufFile(fs, kFile));
  };
  const auto table = [&](const std::vector<Entry>& tensors, size_t data) {
    return container({}, tensors, data);
  };
  refused("GGML" + std::string(60, '\0'), Code::kDataLoss, "no GGUF file");
  const auto patched = [&](size_t at, uint64_t value, size_t width) {
    std::string bytes = container(some_metadata(), {}, 0);
    bytes.replace(at, width, reinterpret_cast<const char*>(&value), width);
    return bytes;
  };
  refused(patched(4, 1, 4), Code::kUnimplemented, "version 1");
  refused(patched(4, 3u << 24, 4), Code::kUnimplemented, "big-endian");
  refused(patched(8, uint64_t{1} << 60, 8), Code::kDataLoss, "tensor table");
  refused(patched(16, UINT64_MAX, 8), Code::kDataLoss, "metadata");
  refused(patched(24, uint64_t{1} << 62, 8), Code::kDataLoss, "a text");

  refused(table({{"a", {2}, 0, 0}, {"a", {2}, 0, 32}}, 64), Code::kDataLoss, "'a' appears twice");
  refused(container({{"k", gguf_u32(1)}, {"k", gguf_u32(1)}}, {}, 0), Code::kDataLoss, "'k' appears twice");
  refused(table({{"a", {}, 0, 0}}, 64), Code::kDataLoss, "dimensions");
  refused(table({{"a", {1, 1, 1, 1, 1}, 0, 0}}, 64), Code::kDataLoss, "dimensions");
  refused(table({{"a", {0}, 0, 0}}, 64), Code::kDataLoss, "size 0");
  refused(table({{"a", {uint64_t{1} << 62, 8}, 0, 0}}, 64), Code::kDataLoss, "too large");
  refused(table({{"a", {UINT64_MAX}, 0, 0}}, 64), Code::kDataLoss, "size 18446744073709551615");
  refused(table({{"a", {16}, 0, 4}}, 128), Code::kDataLoss, "alignment");
  refused(table({{"a", {16}, 0, 32}}, 64), Code::kDataLoss, "past the end");
  refused(table({{"a", {16}, 0, UINT64_MAX - 31}}, 64), Code::kDataLoss, "past the end");
  refused(table({{"a", {16}, 0, 0}, {"b", {16}, 0, 32}}, 128), Code::kDataLoss, "overlap");
  refused(table({{"a", {33}, 8, 0}}, 128), Code::kDataLoss, "multiple of 32");
  // Blocks of 256: a row that does not divide into them, and data that end inside the last block.
  const std::tuple<uint32_t, const char*, size_t> blocks[] = {
      {10, "q2_k", 84}, {11, "q3_k", 110}, {12, "q4_k", 144}, {13, "q5_k", 176}, {14, "q6_k", 210}};
  for (const auto& [type, name, bytes] : blocks) {
    refused(table({{"row", {256 + 32, 4}, type, 0}}, 8192), Code::kDataLoss, std::string("held as ") + name);
    refused(table({{"row", {256 + 32, 4}, type, 0}}, 8192), Code::kDataLoss, "'row'");
    refused(table({{"cut", {512, 3}, type, 0}}, 6 * bytes - 1), Code::kDataLoss, "'cut'");
    write_text(fs, kFile, table({{"whole", {512, 3}, type, 0}}, 6 * bytes));
    EXPECT_STREQ(dtype_name(GgufFile(fs, kFile).tensors()[0].dtype), name);
  }
  refused(table({{"a", {33}, 6, 0}}, 128), Code::kDataLoss, "multiple of 32");
  refused(table({{"a", {32, 2}, 6, 0}}, 43), Code::kDataLoss, "past the end");
  refused(table({{"a", {32, 2}, 7, 0}}, 47), Code::kDataLoss, "past the end");
  // What is not a type of weights, or not supported, by tensor and type.
  const std::pair<uint32_t, const char*> others[] = {
      {9, "Q8_1"},   {15, "Q8_K"},   {16, "IQ2_XXS"}, {17, "IQ2_XS"}, {18, "IQ3_XXS"}, {19, "IQ1_S"}, {20, "IQ4_NL"},
      {21, "IQ3_S"}, {22, "IQ2_S"},  {23, "IQ4_XS"},  {24, "I8"},     {25, "I16"},     {26, "I32"},   {27, "I64"},
      {28, "F64"},   {29, "IQ1_M"},  {34, "TQ1_0"},   {35, "TQ2_0"},  {39, "MXFP4"},   {40, "NVFP4"}, {41, "Q1_0"},
      {42, "Q2_0"}};
  for (const auto& [type, name] : others) {
    refused(table({{"w.1", {256}, type, 0}}, 4096), Code::kUnimplemented,
            std::string("'w.1' has type ") + name + ", which is not supported; supported are F32, F16");
  }
  refused(table({{"a", {256}, 4, 0}}, 256), Code::kDataLoss, "unknown type 4");
  refused(table({{"a", {256}, 43, 0}}, 256), Code::kDataLoss, "unknown type 43");
  refused(container({{"general.alignment", gguf_u32(48)}}, {}, 0), Code::kDataLoss, "power of two");
  refused(container({{"general.alignment", gguf_string("x")}}, {}, 0), Code::kDataLoss, "integer");

  std::string nested = container({{"k", gguf_i32s({1, 2})}}, {}, 64);
  nested[24 + 9 + 4] = 9;  // the type of the elements
  refused(nested, Code::kUnimplemented, "array of arrays");
  std::string boolean = container({{"k", gguf_bool(true)}}, {}, 0);
  boolean[24 + 9 + 4] = 2;
  refused(boolean, Code::kDataLoss, "boolean");
  std::string type = container({{"k", gguf_bool(true)}}, {}, 0);
  type[24 + 9] = 13;
  refused(type, Code::kDataLoss, "metadata type 13");
}

// 50,000 strings, as vocabularies have, cross the reading buffer many times.
TEST(Gguf, LongStringArrays) {
  MemoryFileSystem fs;
  std::vector<std::string> words;
  for (int i = 0; i < 50'000; ++i)
    words.push_back("word" + std::to_string(i * 7919) + std::string(static_cast<size_t>(i % 60), 'x'));
  write_text(fs, kFile, container({{"words", gguf_strings(words)}}, {}, 0));
  EXPECT_EQ(GgufFile(fs, kFile).texts("words"), words);
}

}  // namespace
}  // namespace inlaid::formats

#include "sdk/checkpoint/checkpoint.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <tuple>

#include "sdk/base/error.h"
#include "sdk/base/testing/memory_file_system.h"
#include "sdk/checkpoint/testing/error_of.h"
#include "sdk/checkpoint/testing/sample.h"
#include "sdk/formats/safetensors.h"

namespace inlaid::checkpoint {
namespace {

using inlaid::testing::MemoryFileSystem;
using testing::difference_from_sample;
using testing::error_of;
using testing::Sample;

class CheckpointTest : public ::testing::Test {
 protected:
  CheckpointTest() { fs_.make_folders("run"); }
  void save_sample(const std::string& folder, int64_t step = 7, uint64_t shard_bytes = 300) {
    const Sample sample(step);
    save(fs_, folder, sample.info(), sample.records(), nullptr, shard_bytes);
  }
  MemoryFileSystem fs_;
};

TEST_F(CheckpointTest, ReadsWhatWasSaved) {
  for (uint64_t shard_bytes : {uint64_t{1}, uint64_t{300}, uint64_t{1} << 30}) {
    const std::string folder = "run/a" + std::to_string(shard_bytes);
    save_sample(folder, 42, shard_bytes);
    EXPECT_EQ(difference_from_sample(fs_, folder, 42), "");
    EXPECT_NE(difference_from_sample(fs_, folder, 43), "");
    const Json report = verify(fs_, folder);
    EXPECT_EQ(to_text(report), R"({"ok":true,"tensors":9,"bytes":694,"problems":[]})");
  }
}

TEST_F(CheckpointTest, RecordsAreSortedAndHoldNoData) {
  save_sample("run/a");
  const auto reader = Reader::open(fs_, "run/a");
  const std::vector<Record>& records = reader->records();
  ASSERT_EQ(records.size(), 9u);
  for (size_t i = 1; i < records.size(); ++i) {
    EXPECT_TRUE(std::tie(records[i - 1].name, records[i - 1].role) < std::tie(records[i].name, records[i].role));
  }
  for (const Record& record : records) EXPECT_EQ(record.data, nullptr);
}

TEST_F(CheckpointTest, ShardsAreCutAtTheWantedSize) {
  save_sample("run/small", 1, 200);
  save_sample("run/large", 1, uint64_t{1} << 30);
  const auto shards = [&](const std::string& folder) {
    int64_t count = 0;
    for (const std::string& name : fs_.list(folder)) count += name.ends_with(".safetensors");
    return count;
  };
  EXPECT_EQ(shards("run/large"), 1);
  EXPECT_EQ(shards("run/small"), 4);  // 30 + 80 | 192 | 192 | 192 + 8, in the order of names
}

TEST_F(CheckpointTest, ShardsAreSafetensorsWithWeightsUnderTheirOwnNames) {
  save_sample("run/a", 7, uint64_t{1} << 30);
  const formats::SafetensorsFile file(fs_, "run/a/state-00000-00000.safetensors");
  std::vector<std::string> names;
  for (const formats::StoredTensor& tensor : file.tensors()) {
    names.push_back(tensor.name);
    if (tensor.name == "model.layers.0.mlp.down_proj.weight") {  // q4_1: 64 values are 2 blocks of 20 bytes
      EXPECT_EQ(tensor.dtype, DType::u8);
      EXPECT_EQ(tensor.shape, (Shape{2, 40}));
    }
  }
  EXPECT_EQ(names, (std::vector<std::string>{
                       "model.embed_tokens.weight", "model.layers.0.mlp.down_proj.weight",
                       "model.layers.0.self_attn.q_proj.lora_A.weight",
                       "model.layers.0.self_attn.q_proj.lora_A.weight@moment_1",
                       "model.layers.0.self_attn.q_proj.lora_A.weight@moment_2",
                       "model.layers.0.self_attn.q_proj.lora_B.weight",
                       "model.layers.0.self_attn.q_proj.lora_B.weight@moment_1",
                       "model.layers.0.self_attn.q_proj.lora_B.weight@moment_2", "scale"}));
  std::vector<std::byte> bytes(30);
  file.read(0, bytes);
  for (size_t i = 0; i < bytes.size(); ++i) EXPECT_EQ(bytes[i], testing::sample_byte(7, 6, i));
}

TEST_F(CheckpointTest, EmptyAndLargeTensors) {
  std::vector<std::byte> large(9 << 20);
  for (size_t i = 0; i < large.size(); ++i) large[i] = testing::sample_byte(3, 0, i);
  const std::vector<Record> records = {{"none", Role::kWeight, DType::f32, {0, 7}, nullptr},
                                       {"large", Role::kMoment1, DType::u8, {9 << 20}, large.data()}};
  save(fs_, "run/a", {}, records);
  const auto reader = Reader::open(fs_, "run/a");
  std::vector<std::byte> back(large.size());
  reader->read("large", Role::kMoment1, back);
  EXPECT_EQ(std::memcmp(back.data(), large.data(), large.size()), 0);
  EXPECT_NO_THROW(reader->read("none", Role::kWeight, {}));
  EXPECT_TRUE(verify(fs_, "run/a")["ok"].get<bool>());
}

TEST_F(CheckpointTest, EveryElementType) {
  std::vector<std::byte> bytes(2048);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = testing::sample_byte(1, 0, i);
  std::vector<Record> records;
  for (int i = 0; i < kernels::kDTypes; ++i) {
    const auto type = static_cast<DType>(i);
    records.push_back({std::string("w.") + dtype_name(type), Role::kWeight, type, {256}, bytes.data()});
  }
  save(fs_, "run/a", {}, records);
  EXPECT_TRUE(verify(fs_, "run/a")["ok"].get<bool>());
  const auto reader = Reader::open(fs_, "run/a");
  for (const Record& record : records) {
    std::vector<std::byte> back(static_cast<size_t>(byte_count(record.dtype, record.shape)));
    reader->read(record.name, Role::kWeight, back);
    EXPECT_EQ(std::memcmp(back.data(), bytes.data(), back.size()), 0) << record.name;
  }
  for (const auto& record : reader->records()) {
    EXPECT_EQ(record.name, std::string("w.") + dtype_name(record.dtype));
    EXPECT_EQ(record.shape, Shape{256});
  }
}

TEST_F(CheckpointTest, NoTensorsAndNoTexts) {
  save(fs_, "run/a", {}, {});
  const auto reader = Reader::open(fs_, "run/a");
  EXPECT_TRUE(reader->records().empty());
  EXPECT_TRUE(verify(fs_, "run/a")["ok"].get<bool>());
  EXPECT_TRUE(parse_json(reader->manifest_json(), "manifest")["config"].is_null());
}

TEST_F(CheckpointTest, ReadRefusesWhatIsNotThere) {
  save_sample("run/a");
  const auto reader = Reader::open(fs_, "run/a");
  std::byte room[8];
  EXPECT_EQ(error_of([&] { reader->read("scales", Role::kWeight, room); }).code(), Code::kNotFound);
  EXPECT_EQ(error_of([&] { reader->read("scale", Role::kMoment1, room); }).code(), Code::kNotFound);
  EXPECT_EQ(error_of([&] { reader->read("scale", Role::kWeight, std::span(room, 7)); }).code(), Code::kInvalidArgument);
}

TEST_F(CheckpointTest, RefusesAnExistingName) {
  save_sample("run/a", 1);
  EXPECT_EQ(error_of([&] { save_sample("run/a", 2); }).code(), Code::kAlreadyExists);
  EXPECT_EQ(error_of([&] { save_sample("run/a/", 2); }).code(), Code::kAlreadyExists);
  EXPECT_EQ(difference_from_sample(fs_, "run/a", 1), "");
}

TEST_F(CheckpointTest, RefusesBadInputBeforeTouchingTheDisk) {
  const Sample sample(1);
  const auto refused = [&](const Info& info, const std::vector<Record>& records) {
    const Error error = error_of([&] { save(fs_, "run/a", info, records); });
    EXPECT_TRUE(fs_.list("run").empty()) << error.what();
    return error.code();
  };
  const std::vector<Record>& good = sample.records();
  std::vector<Record> records = good;
  records.push_back(records[0]);
  EXPECT_EQ(refused({}, records), Code::kInvalidArgument);  // twice
  records = {good[0]};
  records[0].data = nullptr;
  EXPECT_EQ(refused({}, records), Code::kInvalidArgument);
  records[0] = good[0];
  records[0].name = "";
  EXPECT_EQ(refused({}, records), Code::kInvalidArgument);
  records[0] = good[0];
  records[0].role = static_cast<Role>(9);
  EXPECT_EQ(refused({}, records), Code::kInvalidArgument);
  records[0] = good[0];
  records[0].shape = {4, -6};
  EXPECT_EQ(refused({}, records), Code::kInvalidArgument);
  records[0].shape = Shape(9, 1);
  EXPECT_EQ(refused({}, records), Code::kInvalidArgument);
  records[0].shape = {int64_t{1} << 40, int64_t{1} << 40};
  EXPECT_EQ(refused({}, records), Code::kInvalidArgument);
  // A weight whose name is the key of another record's moment would overwrite it.
  records = {good[0], good[2]};
  records[0].name = good[2].name + "@moment_1";
  ASSERT_EQ(good[2].role, Role::kMoment1);
  EXPECT_EQ(refused({}, records), Code::kInvalidArgument);
  for (const char* name : {"", "..", ".hidden", "a/b", "/etc/passwd", "a\\b", "manifest.pb", "index-00000.pb",
                           "state-00000-00000.safetensors", "new\nline"}) {
    Info info;
    info.extra_files = {{name, "text"}};
    EXPECT_EQ(refused(info, good), Code::kInvalidArgument) << name;
  }
  Info info;
  info.config_json = "\xff\xfe";
  EXPECT_EQ(refused(info, good), Code::kInvalidArgument);  // not UTF-8
}

TEST_F(CheckpointTest, CancelLeavesNothingBehind) {
  save_sample("run/old", 1);
  std::atomic<bool> cancel = true;
  const Sample sample(2);
  const Error error = error_of([&] { save(fs_, "run/new", sample.info(), sample.records(), &cancel); });
  EXPECT_EQ(error.code(), Code::kCancelled);
  EXPECT_EQ(fs_.list("run"), std::vector<std::string>{"old"});
}

// Sets a flag at the n-th write.
class CancellingFileSystem : public MemoryFileSystem {
 public:
  std::unique_ptr<WritableFile> create(const std::string& path) override {
    if (countdown-- == 0) flag = true;
    return MemoryFileSystem::create(path);
  }
  int countdown = 0;
  std::atomic<bool> flag = false;
};

TEST_F(CheckpointTest, CancelAtAnyFileLeavesNothingBehind) {
  const Sample sample(2);
  for (int file = 0; file < 7; ++file) {
    CancellingFileSystem fs;
    fs.countdown = file;
    const Error error = error_of([&] { save(fs, "new", sample.info(), sample.records(), &fs.flag, 300); });
    ASSERT_TRUE(fs.flag) << "the save has fewer than " << file + 1 << " files";
    EXPECT_EQ(error.code(), Code::kCancelled) << file;
    EXPECT_TRUE(fs.list(".").empty()) << file;
  }
}

// Sets a flag at the first large write and counts bytes.
class LargeWriteFileSystem : public MemoryFileSystem {
 public:
  std::unique_ptr<WritableFile> create(const std::string& path) override {
    return std::make_unique<File>(MemoryFileSystem::create(path), this);
  }
  std::atomic<bool> flag = false;
  uint64_t written = 0;

 private:
  struct File : WritableFile {
    File(std::unique_ptr<WritableFile> file, LargeWriteFileSystem* fs) : base(std::move(file)), owner(fs) {}
    void write(std::span<const std::byte> bytes) override {
      base->write(bytes);
      owner->written += bytes.size();
      if (bytes.size() > 1 << 20) owner->flag = true;
    }
    void sync() override { base->sync(); }
    void close() override { base->close(); }
    std::unique_ptr<WritableFile> base;
    LargeWriteFileSystem* owner;
  };
};

TEST_F(CheckpointTest, CancelTakesEffectInsideALargeTensor) {
  LargeWriteFileSystem fs;
  const std::vector<std::byte> large(16 << 20);
  const std::vector<Record> records = {{"large", Role::kWeight, DType::u8, {16 << 20}, large.data()}};
  EXPECT_EQ(error_of([&] { save(fs, "new", {}, records, &fs.flag); }).code(), Code::kCancelled);
  EXPECT_LT(fs.written, uint64_t{8} << 20);
  EXPECT_TRUE(fs.list(".").empty());
}

TEST_F(CheckpointTest, LeftoverOfAnInterruptedSaveDoesNotDisturbTheNext) {
  fs_.make_folders("run/a.tmp");
  write_atomically(fs_, "run/a.tmp/tokenizer.json", "old");
  write_atomically(fs_, "run/a.tmp/strange", "old");
  save_sample("run/a");
  EXPECT_EQ(difference_from_sample(fs_, "run/a", 7), "");
  EXPECT_FALSE(fs_.exists("run/a/strange"));
  EXPECT_EQ(fs_.list("run"), std::vector<std::string>{"a"});
}

TEST_F(CheckpointTest, ManifestAsJson) {
  save_sample("run/a");
  const auto reader = Reader::open(fs_, "run/a");
  EXPECT_EQ(reader->manifest_bytes(), read_text(fs_, "run/a/manifest.pb"));
  const Json json = parse_json(reader->manifest_json(), "manifest");
  EXPECT_EQ(json["format_version"], 1);
  EXPECT_EQ(json["step"], 7);
  EXPECT_EQ(json["cursor"]["index"], 56);
  EXPECT_EQ(json["config"]["text"], "größer → 更大");
  EXPECT_EQ(json["adapters"][0]["config"]["r"], 4);
  EXPECT_EQ(json["trainer_state"]["tokens"], 7000);
  EXPECT_EQ(json["base"]["path"], "/models/base");
  EXPECT_EQ(json["extra_files"].size(), 2u);  // the empty one is not written
  EXPECT_EQ(json["writers"][0]["records"], 9);
  ASSERT_EQ(json["tensors"].size(), 9u);
  EXPECT_EQ(json["tensors"][1]["dtype"], "q4_1");
  EXPECT_EQ(json["tensors"][1]["shape"], (std::vector<int>{2, 64}));
  EXPECT_EQ(json["tensors"][3]["role"], "moment_1");
}

TEST_F(CheckpointTest, FolderThatIsNoCheckpoint) {
  fs_.make_folders("run/a");
  EXPECT_EQ(error_of([&] { Reader::open(fs_, "run/a"); }).code(), Code::kNotFound);
  EXPECT_EQ(error_of([&] { Reader::open(fs_, "run/b"); }).code(), Code::kNotFound);
  EXPECT_EQ(error_of([&] { verify(fs_, "run/b"); }).code(), Code::kNotFound);
  EXPECT_FALSE(verify(fs_, "run/a")["ok"].get<bool>());
}

}  // namespace
}  // namespace inlaid::checkpoint

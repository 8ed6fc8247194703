// Damaged and hostile checkpoints: nothing is accepted, the message names the file and the tensor, and no number of the file
// is trusted.
#include <gtest/gtest.h>

#include <functional>

#include "inlaid/checkpoint/v1/index.pb.h"
#include "sdk/base/hash.h"
#include "sdk/base/testing/memory_file_system.h"
#include "sdk/checkpoint/format.h"
#include "sdk/checkpoint/manifest_file.h"
#include "sdk/checkpoint/testing/error_of.h"
#include "sdk/checkpoint/testing/sample.h"

namespace inlaid::checkpoint {
namespace {

using inlaid::testing::MemoryFileSystem;
using testing::error_of;
using testing::Sample;

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

class DamageTest : public ::testing::Test {
 protected:
  DamageTest() { write(300); }

  void write(uint64_t shard_bytes) {
    const Sample sample(7);
    fs_.remove_all("c");
    save(fs_, "c", sample.info(), sample.records(), nullptr, shard_bytes);
  }
  void put(const std::string& name, const std::string& bytes) { write_atomically(fs_, join_path("c", name), bytes); }
  std::string get(const std::string& name) { return read_text(fs_, join_path("c", name)); }
  Error open_error() {
    return error_of([&] { Reader::open(fs_, "c"); });
  }
  Json problems() { return verify(fs_, "c")["problems"]; }

  // Changes the index and makes the manifest agree with it, as somebody who wants to harm would.
  Error open_with_index(const std::function<void(v1::Index&)>& change) {
    const std::string index_bytes = get("index-00000.pb"), manifest_bytes = get("manifest.pb");
    v1::Index index = parse_index(index_bytes, "index");
    change(index);
    v1::Manifest manifest = parse_manifest(manifest_bytes, "manifest");
    const std::string changed = index.SerializeAsString();
    manifest.mutable_writers(0)->set_index_bytes(changed.size());
    manifest.mutable_writers(0)->set_index_sha256(sha256_hex(changed));
    manifest.mutable_writers(0)->set_records(static_cast<uint64_t>(index.records_size()));
    put("index-00000.pb", changed);
    put("manifest.pb", seal_manifest(manifest));
    const Error error = open_error();
    EXPECT_EQ(verify(fs_, "c")["ok"].get<bool>(), error.code() == Code::kOk);
    put("index-00000.pb", index_bytes);
    put("manifest.pb", manifest_bytes);
    return error;
  }

  MemoryFileSystem fs_;
};

TEST_F(DamageTest, EveryTruncationOfManifestAndIndex) {
  for (const std::string name : {"manifest.pb", "index-00000.pb"}) {
    const std::string bytes = get(name);
    for (size_t size = 0; size < bytes.size(); ++size) {
      put(name, bytes.substr(0, size));
      const Error error = open_error();
      ASSERT_EQ(error.code(), Code::kDataLoss) << name << " " << size;
      ASSERT_TRUE(contains(error.message(), "c/" + name)) << error.message();
    }
    put(name, bytes);
  }
  EXPECT_EQ(open_error().code(), Code::kOk);
}

TEST_F(DamageTest, EveryFlippedBitOfManifestAndIndex) {
  for (const std::string name : {"manifest.pb", "index-00000.pb"}) {
    const std::string bytes = get(name);
    int64_t newer = 0;
    for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
      fs_.flip_bit("c/" + name, bit / 8, static_cast<int>(bit % 8));
      const Error error = open_error();
      newer += error.code() == Code::kFailedPrecondition;  // a bit of min_reader_version
      ASSERT_TRUE(error.code() == Code::kDataLoss || error.code() == Code::kFailedPrecondition) << name << " " << bit;
      ASSERT_TRUE(contains(error.message(), "c/" + name)) << error.message();
      fs_.flip_bit("c/" + name, bit / 8, static_cast<int>(bit % 8));
    }
    EXPECT_LT(newer, 40);
  }
  EXPECT_EQ(open_error().code(), Code::kOk);
}

TEST_F(DamageTest, EveryByteOfAShardIsCovered) {
  const auto reader = Reader::open(fs_, "c");
  const Json table = parse_json(reader->manifest_json(), "manifest")["tensors"];
  for (const std::string& file : fs_.list("c")) {
    if (!file.ends_with(".safetensors")) continue;
    const std::string path = "c/" + file;
    for (uint64_t byte = 0; byte < get(file).size(); ++byte) {
      fs_.flip_bit(path, byte, static_cast<int>(byte % 8));
      const Json found = problems();
      ASSERT_GE(found.size(), 1u) << path << " byte " << byte;
      const std::string text = found[0].get<std::string>();
      ASSERT_TRUE(contains(text, path)) << text;
      for (const Json& tensor : table) {
        const bool damaged = tensor["file"] == file && byte >= tensor["offset"].get<uint64_t>() &&
                             byte < tensor["offset"].get<uint64_t>() + tensor["bytes"].get<uint64_t>();
        if (damaged) {
          EXPECT_EQ(found.size(), 1u);
          const std::string name = tensor["name"], role = tensor["role"];
          ASSERT_TRUE(contains(text, "'" + name + "' (" + role + ")")) << text;
          std::vector<std::byte> room(tensor["bytes"].get<size_t>());
          const Role of = role == "weight" ? Role::kWeight : role == "moment_1" ? Role::kMoment1 : Role::kMoment2;
          const Error error = error_of([&] { reader->read(name, of, room); });
          ASSERT_EQ(error.code(), Code::kDataLoss);
          ASSERT_TRUE(contains(error.message(), path) && contains(error.message(), name)) << error.message();
        }
      }
      fs_.flip_bit(path, byte, static_cast<int>(byte % 8));
    }
  }
  EXPECT_TRUE(problems().empty());
}

TEST_F(DamageTest, ShardsAndFilesOfTheWrongSizeOrMissing) {
  for (const std::string name : {"state-00000-00001.safetensors", "tokenizer.json", "index-00000.pb"}) {
    const std::string bytes = get(name);
    for (const std::string& other : {bytes.substr(0, bytes.size() - 1), bytes.substr(0, bytes.size() / 2), std::string(),
                                     bytes + "x"}) {
      put(name, other);
      EXPECT_EQ(open_error().code(), Code::kDataLoss) << name << " " << other.size();
      EXPECT_TRUE(contains(open_error().message(), "c/" + name));
      EXPECT_TRUE(contains(to_text(problems()), "c/" + name));
    }
    fs_.remove_all("c/" + name);
    EXPECT_EQ(open_error().code(), Code::kDataLoss) << name;
    EXPECT_TRUE(contains(to_text(problems()), "c/" + name));
    fs_.make_folders("c/" + name);
    EXPECT_EQ(open_error().code(), Code::kDataLoss) << name;
    EXPECT_TRUE(contains(to_text(problems()), "c/" + name));
    fs_.remove_all("c/" + name);
    put(name, bytes);
  }
  EXPECT_EQ(open_error().code(), Code::kOk);
}

TEST_F(DamageTest, ExtraFileWithOtherBytes) {
  fs_.flip_bit("c/tokenizer.json", 3, 2);
  EXPECT_EQ(open_error().code(), Code::kDataLoss);
  EXPECT_TRUE(contains(open_error().message(), "c/tokenizer.json"));
  ASSERT_EQ(problems().size(), 1u);
  EXPECT_TRUE(contains(problems()[0].get<std::string>(), "c/tokenizer.json"));
}

// Shards of both moments of one parameter have the same size.
TEST_F(DamageTest, SwappedShards) {
  write(1);
  const Json table = parse_json(Reader::open(fs_, "c")->manifest_json(), "manifest")["tensors"];
  ASSERT_EQ(table[3]["role"], "moment_1");
  ASSERT_EQ(table[4]["role"], "moment_2");
  const std::string a = table[3]["file"], b = table[4]["file"];
  const std::string first = get(a), second = get(b);
  ASSERT_EQ(first.size(), second.size());
  put(a, second);
  put(b, first);
  EXPECT_EQ(problems().size(), 4u);  // header and tensor of each
  std::vector<std::byte> room(96);
  const auto reader = Reader::open(fs_, "c");
  EXPECT_EQ(error_of([&] { reader->read(table[3]["name"], Role::kMoment1, room); }).code(), Code::kDataLoss);
}

TEST_F(DamageTest, VerifyListsAllDamage) {
  fs_.flip_bit("c/tokenizer.json", 0, 0);
  fs_.flip_bit("c/state-00000-00000.safetensors", 20, 0);
  fs_.remove_all("c/state-00000-00001.safetensors");
  EXPECT_EQ(problems().size(), 3u);
}

TEST_F(DamageTest, IndexWithImpossibleContents) {
  using R = v1::TensorRecord;
  const auto index = [&](const std::function<void(v1::Index&)>& change) {
    const Error error = open_with_index(change);
    if (error.code() != Code::kOk) {
      EXPECT_TRUE(contains(error.message(), "c/")) << error.message();
    }
    return error.code();
  };
  const auto record = [&](const std::function<void(R&)>& change) {
    return index([&](v1::Index& i) { change(*i.mutable_records(2)); });
  };
  EXPECT_EQ(index([](v1::Index&) {}), Code::kOk);
  EXPECT_EQ(record([](R& r) { r.clear_name(); }), Code::kDataLoss);
  EXPECT_EQ(record([](R& r) { r.set_name(std::string(kMaxNameBytes + 1, 'n')); }), Code::kDataLoss);
  EXPECT_EQ(record([](R& r) { r.set_role(v1::ROLE_UNSPECIFIED); }), Code::kDataLoss);
  EXPECT_EQ(record([](R& r) { r.set_role(static_cast<v1::Role>(99)); }), Code::kFailedPrecondition);
  EXPECT_EQ(record([](R& r) { r.mutable_encoding()->set_dtype(v1::DATA_TYPE_UNSPECIFIED); }), Code::kDataLoss);
  EXPECT_EQ(record([](R& r) { r.mutable_encoding()->set_dtype(static_cast<v1::DataType>(99)); }),
            Code::kFailedPrecondition);
  EXPECT_EQ(record([](R& r) { r.mutable_encoding()->set_dtype(v1::DATA_TYPE_F16); }), Code::kDataLoss);  // other size
  EXPECT_EQ(record([](R& r) { r.mutable_encoding()->set_block(32); }), Code::kDataLoss);
  EXPECT_EQ(record([](R& r) { r.mutable_encoding()->add_companions("scales"); }), Code::kFailedPrecondition);
  EXPECT_EQ(record([](R& r) { r.set_merge(v1::MERGE_RULE_UNSPECIFIED); }), Code::kDataLoss);
  EXPECT_EQ(record([](R& r) { r.set_merge(v1::MERGE_RULE_MEAN); }), Code::kFailedPrecondition);
  EXPECT_EQ(record([](R& r) { r.set_merge(v1::MERGE_RULE_REPLICATED); }), Code::kOk);
  EXPECT_EQ(record([](R& r) { r.set_shape(0, -4); }), Code::kDataLoss);
  EXPECT_EQ(record([](R& r) { r.set_shape(0, INT64_MAX); }), Code::kDataLoss);
  EXPECT_EQ(record([](R& r) { r.set_shape(0, int64_t{1} << 61), r.set_bytes(0); }), Code::kDataLoss);
  EXPECT_EQ(record([](R& r) {
              while (r.shape_size() < 9) r.add_shape(1);
            }),
            Code::kDataLoss);
  EXPECT_EQ(record([](R& r) { r.mutable_box()->set_offset(0, 1); }), Code::kFailedPrecondition);
  EXPECT_EQ(record([](R& r) { r.mutable_box()->set_size(0, 2); }), Code::kFailedPrecondition);
  EXPECT_EQ(record([](R& r) { r.mutable_box()->clear_size(); }), Code::kFailedPrecondition);
  EXPECT_EQ(record([](R& r) { r.mutable_range()->set_end(5); }), Code::kFailedPrecondition);
  EXPECT_EQ(record([](R& r) { r.clear_box(), r.clear_range(); }), Code::kOk);  // absent = the whole
  EXPECT_EQ(record([](R& r) { r.set_shard(1000); }), Code::kDataLoss);
  EXPECT_EQ(record([](R& r) { r.set_shard(UINT32_MAX); }), Code::kDataLoss);
  EXPECT_EQ(record([](R& r) { r.set_offset(r.offset() + 8); }), Code::kDataLoss);
  EXPECT_EQ(record([](R& r) { r.set_offset(UINT64_MAX - 8); }), Code::kDataLoss);
  EXPECT_EQ(record([](R& r) { r.set_offset(0); }), Code::kDataLoss);  // inside the header
  EXPECT_EQ(record([](R& r) { r.set_bytes(r.bytes() + 1); }), Code::kDataLoss);
  EXPECT_EQ(index([](v1::Index& i) { *i.add_records() = i.records(0); }), Code::kDataLoss);
  EXPECT_EQ(index([](v1::Index& i) { i.mutable_records(3)->set_name("other"); }), Code::kOk);
  EXPECT_EQ(index([](v1::Index& i) {
              i.mutable_records(3)->set_role(i.records(2).role());
              i.mutable_records(3)->set_name(i.records(2).name());
            }),
            Code::kDataLoss);
  for (int removed = 0; removed < 9; ++removed) {  // bytes without a tensor, in the middle and at the end of a file
    EXPECT_EQ(index([&](v1::Index& i) { i.mutable_records()->DeleteSubrange(removed, 1); }), Code::kDataLoss) << removed;
  }
  EXPECT_EQ(index([](v1::Index& i) { i.set_rank(1); }), Code::kDataLoss);
  EXPECT_EQ(index([](v1::Index& i) { i.set_format_version(0); }), Code::kDataLoss);
  EXPECT_EQ(index([](v1::Index& i) { i.mutable_shards(0)->set_file("../c/state-00000-00000.safetensors"); }),
            Code::kDataLoss);
  EXPECT_EQ(index([](v1::Index& i) { i.mutable_shards(0)->set_file(i.shards(1).file()); }), Code::kDataLoss);
  EXPECT_EQ(index([](v1::Index& i) { i.mutable_shards(0)->set_header_bytes(UINT64_MAX); }), Code::kDataLoss);
  EXPECT_EQ(index([](v1::Index& i) { i.mutable_shards(0)->set_header_bytes(4); }), Code::kDataLoss);
  EXPECT_EQ(index([](v1::Index& i) { i.mutable_shards(0)->set_bytes(UINT64_MAX); }), Code::kDataLoss);
}

// Two writers, each with whole tensors of its own, are one checkpoint.
TEST_F(DamageTest, SecondWriterIsReadToo) {
  const float value = 1.5f;
  save(fs_, "d", {}, {{"other", Role::kWeight, DType::f32, {1}, &value}});
  v1::Index index = parse_index(read_text(fs_, "d/index-00000.pb"), "index");
  index.set_rank(1);
  index.mutable_shards(0)->set_file("state-00001-00000.safetensors");
  put("state-00001-00000.safetensors", read_text(fs_, "d/state-00000-00000.safetensors"));
  put("index-00001.pb", index.SerializeAsString());
  v1::Manifest manifest = parse_manifest(get("manifest.pb"), "manifest");
  v1::Writer* writer = manifest.add_writers();
  writer->set_rank(1);
  writer->set_index_file("index-00001.pb");
  writer->set_index_bytes(get("index-00001.pb").size());
  writer->set_index_sha256(sha256_hex(get("index-00001.pb")));
  writer->set_records(1);
  put("manifest.pb", seal_manifest(manifest));
  const auto reader = Reader::open(fs_, "c");
  EXPECT_EQ(reader->records().size(), 10u);
  float back = 0;
  reader->read("other", Role::kWeight, std::as_writable_bytes(std::span(&back, 1)));
  EXPECT_EQ(back, value);
  EXPECT_TRUE(problems().empty());
}

TEST_F(DamageTest, NewerReaderNeeded) {
  v1::Manifest manifest = parse_manifest(get("manifest.pb"), "manifest");
  manifest.set_min_reader_version(kReaderVersion + 1);
  put("manifest.pb", seal_manifest(manifest));
  EXPECT_EQ(open_error().code(), Code::kFailedPrecondition);
  EXPECT_EQ(problems().size(), 1u);
}

}  // namespace
}  // namespace inlaid::checkpoint

#include "sdk/base/quota_file_system.h"

#include <gtest/gtest.h>

#include "sdk/base/error.h"
#include "sdk/base/testing/counting_allocator.h"
#include "sdk/base/testing/fault_file_system.h"
#include "sdk/base/testing/memory_file_system.h"
#include "sdk/base/wiping_allocator.h"

namespace inlaid {
namespace {

using testing::FaultFileSystem;
using testing::MemoryFileSystem;

void put(FileSystem& fs, const std::string& path, size_t bytes) {
  const std::string text(bytes, 'x');
  const auto file = fs.create(path);
  file->write(std::as_bytes(std::span(text.data(), text.size())));
  file->close();
}

// Expects that an action is refused for want of room, naming file and limit.
template <typename Action>
void expect_full(const Action& action, const std::string& file) {
  try {
    action();
    ADD_FAILURE() << file << " was written";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kResourceExhausted) << error.message();
    EXPECT_NE(error.message().find(file), std::string::npos) << error.message();
    EXPECT_NE(error.message().find("disk limit of 100 bytes"), std::string::npos) << error.message();
    EXPECT_NE(error.details().find("\"limit\":100"), std::string::npos) << error.details();
  }
}

TEST(QuotaFileSystem, AWriteThatDoesNotFitLeavesTheFileAsItIs) {
  MemoryFileSystem disk;
  QuotaFileSystem fs(disk, 100);
  put(fs, "/a", 60);
  const auto file = fs.create("/b");
  const std::string text(41, 'y');
  expect_full([&] { file->write(std::as_bytes(std::span(text.data(), 41))); }, "/b");
  EXPECT_EQ(disk.open("/b")->size(), 0u) << "not even a part";
  file->write(std::as_bytes(std::span(text.data(), 40)));
  EXPECT_EQ(fs.used(), 100u);
  expect_full([&] { file->write(std::as_bytes(std::span(text.data(), 1))); }, "/b");
}

TEST(QuotaFileSystem, BytesComeBack) {
  MemoryFileSystem disk;
  QuotaFileSystem fs(disk, 100);
  put(fs, "/a", 60);
  put(fs, "/a", 70);  // written anew
  EXPECT_EQ(fs.used(), 70u);
  put(fs, "/a.tmp", 30);
  fs.rename("/a.tmp", "/a");
  EXPECT_EQ(fs.used(), 30u) << "what is replaced is gone";
  fs.make_folders("/d/e");
  put(fs, "/d/e/x", 10);
  put(fs, "/d/y", 10);
  put(fs, "/dd", 5);
  fs.rename("/d", "/f");
  EXPECT_EQ(fs.used(), 55u);
  fs.remove_all("/f/e");
  EXPECT_EQ(fs.used(), 45u);
  fs.remove_all("//f/");
  EXPECT_EQ(fs.used(), 35u) << "and /dd is still there";
  fs.remove_all("/nothing");
  EXPECT_EQ(fs.used(), 35u);
}

TEST(QuotaFileSystem, WhatWasThereBefore) {
  MemoryFileSystem disk;
  disk.make_folders("/out/checkpoints");
  put(disk, "/out/checkpoints/old", 50);
  put(disk, "/out/log", 20);
  put(disk, "/elsewhere", 1000);
  QuotaFileSystem fs(disk, 100);
  EXPECT_EQ(fs.used(), 0u);
  fs.count_folder("/out");
  fs.count_folder("/out");
  EXPECT_EQ(fs.used(), 70u);
  const auto log = fs.append("/out/log");
  EXPECT_EQ(fs.used(), 70u);
  const std::string text(31, 'z');
  expect_full([&] { log->write(std::as_bytes(std::span(text.data(), 31))); }, "/out/log");
  log->write(std::as_bytes(std::span(text.data(), 30)));
  fs.remove_all("/out/checkpoints");
  EXPECT_EQ(fs.used(), 50u);
  fs.count_folder("/there/is/none");
}

TEST(QuotaFileSystem, RoomIsAskedForBeforehand) {
  MemoryFileSystem disk;
  QuotaFileSystem fs(disk, 100);
  put(fs, "/a", 60);
  fs.require_room("/b", 40);
  expect_full([&] { fs.require_room("/b", 41); }, "/b");
  expect_full([&] { fs.require_room("/b", UINT64_MAX); }, "/b");
  EXPECT_EQ(fs.used(), 60u) << "asking takes nothing";
}

// The sum is never below what lies on the disk, whatever fails.
TEST(QuotaFileSystem, FaultsBelow) {
  for (int64_t n = 0; n < 12; ++n) {
    MemoryFileSystem disk;
    FaultFileSystem faulty(disk);
    QuotaFileSystem fs(faulty, 1000);
    faulty.fail_at(n, Code::kUnavailable);
    const auto attempt = [](const auto& action) {
      try {
        action();
      } catch (const Error&) {
      }
    };
    attempt([&] { put(fs, "/a", 60); });
    attempt([&] { put(fs, "/b", 40); });
    attempt([&] { fs.rename("/b", "/a"); });
    attempt([&] { fs.remove_all("/a"); });
    uint64_t there = 0;
    for (const std::string& name : disk.list("/")) there += disk.open("/" + name)->size();
    EXPECT_GE(fs.used(), there) << n;
    faulty.reset();
    fs.remove_all("/a");
    fs.remove_all("/b");
    EXPECT_EQ(fs.used(), 0u) << n;
  }
}

TEST(QuotaFileSystem, WithoutALimitNothingIsCounted) {
  MemoryFileSystem disk;
  QuotaFileSystem fs(disk, 0);
  put(fs, "/a", 60);
  fs.require_room("/b", UINT64_MAX);
  EXPECT_EQ(fs.used(), 0u);
}

// Memory that goes back is full of zeros, from the first to the last byte that the allocator gave.
TEST(WipingAllocator, WipesBlocks) {
  struct Watching : testing::CountingAllocator {
    void release(void* memory, uint64_t bytes) override {
      const auto* begin = static_cast<const unsigned char*>(memory);
      for (uint64_t i = 0; i < bytes; ++i) nonzero += begin[i] != 0;
      released += bytes;
      CountingAllocator::release(memory, bytes);
    }
    uint64_t nonzero = 0, released = 0;
  };
  for (const bool wipe : {true, false}) {
    const auto watching = std::make_shared<Watching>();
    const std::shared_ptr<SystemAllocator> wiping = std::make_shared<WipingAllocator>(watching);
    {
      const auto root = MemoryAccount::root("runtime", 0, wipe ? *wiping : *watching);
      const auto child = MemoryAccount::child(root, "model");
      Block a = root->allocate(Category::kWeights, 100, false);
      Block b = child->allocate(Category::kData, 1, true);
      a = std::move(b);
    }
    EXPECT_EQ(watching->released, 128u + 64u);
    EXPECT_EQ(watching->nonzero, wipe ? 0u : 128u + 63u);
  }
  WipingAllocator plain(nullptr);
  plain.release(plain.allocate(64, 64), 64);
}

}  // namespace
}  // namespace inlaid

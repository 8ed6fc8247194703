#include "sdk/base/memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <thread>
#include <vector>

#include "sdk/base/error.h"
#include "sdk/base/json.h"
#include "sdk/base/testing/counting_allocator.h"

namespace inlaid {
namespace {

using testing::CountingAllocator;

uint64_t current(const MemoryAccount& account, Category c) {
  return account.usage().current[static_cast<size_t>(c)];
}
uint64_t peak(const MemoryAccount& account, Category c) {
  return account.usage().peak[static_cast<size_t>(c)];
}

TEST(Memory, BlocksAreAlignedZeroedOnRequestAndGivenBack) {
  CountingAllocator allocator;
  auto account = MemoryAccount::root("runtime", 0, allocator);
  {
    Block zeroed = account->allocate(Category::kWeights, 1000, true);
    Block raw = account->allocate(Category::kWeights, 1, false);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(zeroed.data()) % 64, 0u);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(raw.data()) % 64, 0u);
    EXPECT_EQ(zeroed.size(), 1000u);
    EXPECT_TRUE(
        std::all_of(zeroed.data(), zeroed.data() + 1000, [](std::byte b) { return b == std::byte{0}; }));
    EXPECT_EQ(current(*account, Category::kWeights), 1001u);
  }
  EXPECT_EQ(account->usage().current_total, 0u);
  EXPECT_EQ(account->usage().peak_total, 1001u);
  EXPECT_EQ(allocator.live_blocks(), 0);
  EXPECT_EQ(allocator.wrong_releases(), 0u);
}

TEST(Memory, EmptyBlockTakesNothing) {
  CountingAllocator allocator;
  auto account = MemoryAccount::root("runtime", 1, allocator);
  Block block = account->allocate(Category::kData, 0, true);
  EXPECT_FALSE(block);
  EXPECT_EQ(allocator.requests(), 0);
}

TEST(Memory, MovesCarryOwnership) {
  CountingAllocator allocator;
  auto account = MemoryAccount::root("runtime", 0, allocator);
  Block a = account->allocate(Category::kData, 10, false);
  Block b = std::move(a);
  EXPECT_FALSE(a);
  EXPECT_TRUE(b);
  Block c = account->allocate(Category::kData, 20, false);
  c = std::move(b);
  EXPECT_EQ(current(*account, Category::kData), 10u) << "the overwritten block was given back";
  Block& same = c;
  c = std::move(same);
  EXPECT_EQ(c.size(), 10u) << "self-move keeps the block";
  c = Block();
  EXPECT_EQ(allocator.live_bytes(), 0u);
}

TEST(Memory, PeakOfTheSumIsNotTheSumOfPeaks) {
  auto account = MemoryAccount::root("runtime", 0, default_allocator());
  { Block a = account->allocate(Category::kWeights, 100, false); }
  { Block b = account->allocate(Category::kGradients, 70, false); }
  EXPECT_EQ(peak(*account, Category::kWeights), 100u);
  EXPECT_EQ(peak(*account, Category::kGradients), 70u);
  EXPECT_EQ(account->usage().peak_total, 100u);
}

TEST(Memory, LimitsHoldAtEveryLevelAndNothingIsTakenOnRefusal) {
  CountingAllocator allocator;
  auto root = MemoryAccount::root("runtime", 1000, allocator);
  auto first = MemoryAccount::child(root, "model", 600);
  auto second = MemoryAccount::child(root, "trainer");
  Block held = first->allocate(Category::kWeights, 500, false);
  EXPECT_EQ(root->usage().current_total, 500u);
  try {
    first->allocate(Category::kOptimizer, 101, false);
    FAIL() << "over the limit of the child";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kResourceExhausted);
    EXPECT_EQ(error.message(),
              "memory account 'model': 101 bytes of optimizer requested, 500 bytes in use, of a limit of 600 "
              "bytes");
    EXPECT_EQ(int_at(parse_json(error.details(), "details"), "requested", "details"), 101);
  }
  try {
    second->allocate(Category::kActivations, 501, false);
    FAIL() << "over the limit of the root";
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("'runtime'"), std::string::npos) << error.message();
  }
  EXPECT_EQ(allocator.requests(), 1);
  EXPECT_EQ(second->usage().peak_total, 0u) << "a refused request leaves no trace, not even in the peak";
  Block exact = second->allocate(Category::kActivations, 500, false);
  EXPECT_EQ(root->usage().current_total, 1000u);
}

// A system with one page: asking the real one for nearly the whole address space is an error of its own to
// sanitizers.
class OnePage : public SystemAllocator {
 public:
  void* allocate(uint64_t bytes, uint64_t align) override {
    return bytes <= 4096 ? default_allocator().allocate(bytes, align) : nullptr;
  }
  void release(void* memory, uint64_t bytes) override { default_allocator().release(memory, bytes); }
};

TEST(Memory, HugeRequestsDoNotOverflow) {
  OnePage allocator;
  auto account = MemoryAccount::root("runtime", 0, allocator);
  Block held = account->allocate(Category::kData, 64, false);
  for (uint64_t bytes : {UINT64_MAX, UINT64_MAX - 63, UINT64_MAX / 2 + 1, UINT64_MAX / 2 - 70}) {
    try {
      account->allocate(Category::kData, bytes, false);
      FAIL() << bytes;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::kResourceExhausted);
      EXPECT_NE(error.message().find("no memory"), std::string::npos) << error.message();
    }
  }
  EXPECT_EQ(account->usage().peak_total, 64u);
}

TEST(Memory, SystemWithoutMemoryIsReportedAndUndone) {
  CountingAllocator allocator;
  auto root = MemoryAccount::root("runtime", 0, allocator);
  auto child = MemoryAccount::child(root, "trainer");
  allocator.fail_at(1);
  Block first = child->allocate(Category::kWorkspace, 8, false);
  EXPECT_THROW(child->allocate(Category::kWorkspace, 80, false), Error);
  EXPECT_EQ(root->usage().current_total, 8u);
  EXPECT_EQ(root->usage().peak_total, 8u);
  EXPECT_TRUE(child->allocate(Category::kWorkspace, 80, false));
}

TEST(Memory, BlocksOutliveTheHandlesOfTheirAccounts) {
  CountingAllocator allocator;
  Block block;
  {
    auto root = MemoryAccount::root("runtime", 0, allocator);
    block = MemoryAccount::child(root, "model")->allocate(Category::kWeights, 5, true);
  }
  block = Block();
  EXPECT_EQ(allocator.live_blocks(), 0);
}

TEST(Memory, CountsAreExactUnderConcurrency) {
  CountingAllocator allocator;
  auto root = MemoryAccount::root("runtime", 10000, allocator);
  std::vector<std::thread> threads;
  std::atomic<int> refused{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      auto account = MemoryAccount::child(root, "job");
      std::vector<Block> blocks;
      for (int i = 0; i < 300; ++i) {
        try {
          blocks.push_back(account->allocate(static_cast<Category>(t), 100, false));
        } catch (const Error&) {
          ++refused;
          blocks.clear();
        }
        EXPECT_LE(root->usage().current_total, 10000u);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(refused, 0);
  EXPECT_EQ(root->usage().current_total, 0u);
  EXPECT_EQ(root->usage().peak_total, 10000u) << "somebody is refused only at the limit";
  EXPECT_EQ(allocator.live_blocks(), 0);
}

TEST(Memory, EveryCategoryHasItsName) {
  std::vector<std::string> names;
  for (int c = 0; c < kCategories; ++c) names.push_back(category_name(static_cast<Category>(c)));
  EXPECT_EQ(names, (std::vector<std::string>{"weights", "gradients", "optimizer", "activations", "workspace",
                                             "communication", "data"}));
}

}  // namespace
}  // namespace inlaid

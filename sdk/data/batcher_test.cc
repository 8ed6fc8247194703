#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "sdk/data/dataset.h"
#include "sdk/data/testing/support.h"

namespace inlaid::data {
namespace {

using testing::bytes;
using testing::error_of;
using testing::join;
using testing::kEnd;
using testing::World;

// Samples of `lengths` tokens each, the end token included.
std::shared_ptr<const Dataset> make(const std::vector<int>& lengths) {
  World w;
  std::string rows;
  for (size_t i = 0; i < lengths.size(); ++i) {
    const std::string text(static_cast<size_t>(lengths[i] - 1), static_cast<char>('A' + i % 26));
    rows += to_text({{"text", text}}) + "\n";
  }
  w.file("a.jsonl", rows);
  w.source("a.jsonl");
  return w.open();
}

BatchOptions in_order(int64_t tokens, int64_t size = 0) {
  BatchOptions options;
  options.shuffle = false;
  options.micro_batch_tokens = tokens;
  options.micro_batch_size = size;
  return options;
}

TEST(Batcher, PacksWholeSamplesInOrder) {
  const Batcher batcher(make({4, 5, 2, 3}), in_order(9));
  const MicroBatch first = batcher.next({2, 0});
  EXPECT_EQ(first.tokens, join({bytes("AAA"), {kEnd}, bytes("BBBB"), {kEnd}}));
  EXPECT_EQ(first.targets, join({bytes("AA"), {kEnd, kIgnore}, bytes("BBB"), {kEnd, kIgnore}}));
  EXPECT_EQ(first.positions, (std::vector<int32_t>{0, 1, 2, 3, 0, 1, 2, 3, 4}));
  EXPECT_EQ(first.cu_seqlens, (std::vector<int32_t>{0, 4, 9}));
  const int64_t epoch = int64_t{2} << 40;
  EXPECT_EQ(first.row_keys, (std::vector<int64_t>{epoch, epoch, epoch, epoch, epoch + 1, epoch + 1, epoch + 1,
                                                  epoch + 1, epoch + 1}));
  EXPECT_EQ(first.target_tokens, 7);
  EXPECT_EQ(first.next, (Cursor{2, 2}));
  EXPECT_FALSE(first.ends_epoch);
  const MicroBatch second = batcher.next(first.next);
  EXPECT_EQ(second.tokens, join({bytes("C"), {kEnd}, bytes("DD"), {kEnd}}));
  EXPECT_EQ(second.next, (Cursor{3, 0}));
  EXPECT_TRUE(second.ends_epoch);
  EXPECT_EQ(batcher.micro_batches(0), 2);
  EXPECT_EQ(batcher.row_capacity(), 9);
  EXPECT_EQ(batcher.document_capacity(), 4);  // 9 rows of at least 2 tokens
}

TEST(Batcher, CountsSamplesInstead) {
  const Batcher batcher(make({4, 5, 2, 3, 7}), in_order(1, 2));  // micro_batch_tokens has no meaning here
  EXPECT_EQ(batcher.next({0, 0}).cu_seqlens, (std::vector<int32_t>{0, 4, 9}));
  EXPECT_EQ(batcher.next({0, 2}).cu_seqlens, (std::vector<int32_t>{0, 2, 5}));
  EXPECT_EQ(batcher.next({0, 4}).cu_seqlens, (std::vector<int32_t>{0, 7}));
  EXPECT_TRUE(batcher.next({0, 4}).ends_epoch);
  EXPECT_EQ(batcher.micro_batches(0), 3);
  EXPECT_EQ(batcher.row_capacity(), 12);  // 7 + 5
  EXPECT_EQ(batcher.document_capacity(), 2);
}

std::vector<int> mixed_lengths(int count) {
  std::vector<int> lengths;
  for (int i = 0; i < count; ++i) lengths.push_back(2 + i * 7 % 23);
  return lengths;
}

class BatcherStream : public ::testing::TestWithParam<int64_t> {};  // micro_batch_size

// Every epoch has every sample once; micro-batches keep their bounds and do not cross an epoch's end.
TEST_P(BatcherStream, CoversEveryEpochExactly) {
  const auto dataset = make(mixed_lengths(61));
  BatchOptions options;
  options.micro_batch_tokens = 64;
  options.micro_batch_size = GetParam();
  const Batcher batcher(dataset, options);
  Cursor cursor;
  for (int64_t epoch = 0; epoch < 4; ++epoch) {
    std::multiset<int64_t> keys;
    int64_t batches = 0, rows = 0;
    bool ends = false;
    while (!ends) {
      const MicroBatch batch = batcher.next(cursor);
      ASSERT_LE(batch.rows(), batcher.row_capacity());
      ASSERT_LE(static_cast<int64_t>(batch.cu_seqlens.size()) - 1, batcher.document_capacity());
      ASSERT_EQ(batch.cu_seqlens.back(), batch.rows());
      for (size_t d = 0; d + 1 < batch.cu_seqlens.size(); ++d) {
        const size_t begin = static_cast<size_t>(batch.cu_seqlens[d]),
                     end = static_cast<size_t>(batch.cu_seqlens[d + 1]);
        ASSERT_EQ(batch.positions[begin], 0);
        ASSERT_EQ(batch.positions[end - 1], static_cast<int32_t>(end - begin - 1));
        ASSERT_EQ(batch.targets[end - 1], kIgnore);  // nothing is predicted across documents
        ASSERT_EQ(batch.row_keys[begin], batch.row_keys[end - 1]);
        keys.insert(batch.row_keys[begin]);
      }
      rows += batch.rows();
      ++batches;
      ends = batch.ends_epoch;
      cursor = batch.next;
    }
    EXPECT_EQ(cursor, (Cursor{epoch + 1, 0}));
    EXPECT_EQ(batches, batcher.micro_batches(epoch));
    EXPECT_EQ(rows, dataset->report().tokens);
    std::multiset<int64_t> expected;
    for (int64_t i = 0; i < 61; ++i) expected.insert((epoch << 40) ^ i);
    EXPECT_EQ(keys, expected);
  }
}

// Stop after any micro-batch, keep only the cursor, go on with a new batcher over a new data set: the same
// stream.
TEST_P(BatcherStream, ResumesAtEveryPosition) {
  BatchOptions options;
  options.micro_batch_tokens = 64;
  options.micro_batch_size = GetParam();
  const Batcher batcher(make(mixed_lengths(23)), options);
  std::vector<MicroBatch> stream;
  Cursor cursor;
  while (cursor.epoch < 3) {
    stream.push_back(batcher.next(cursor));
    cursor = stream.back().next;
  }
  const Batcher other(make(mixed_lengths(23)), options);
  for (size_t k = 0; k < stream.size(); ++k) {
    Cursor at = k == 0 ? Cursor{} : stream[k - 1].next;
    for (size_t i = k; i < stream.size(); ++i) {
      const MicroBatch batch = other.next(at);
      ASSERT_EQ(batch.tokens, stream[i].tokens);
      ASSERT_EQ(batch.targets, stream[i].targets);
      ASSERT_EQ(batch.row_keys, stream[i].row_keys);
      ASSERT_EQ(batch.cu_seqlens, stream[i].cu_seqlens);
      ASSERT_EQ(batch.ends_epoch, stream[i].ends_epoch);
      at = batch.next;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, BatcherStream, ::testing::Values(0, 1, 4));

TEST(Batcher, OrderIsAFunctionOfSeedAndEpoch) {
  const auto dataset = make(mixed_lengths(50));
  const auto order = [&](uint64_t seed, int64_t epoch, bool shuffle) {
    BatchOptions options;
    options.seed = seed;
    options.shuffle = shuffle;
    const Batcher batcher(dataset, options);
    std::vector<int64_t> out;
    for (int64_t i = 0; i < 50; ++i) out.push_back(batcher.at(epoch, i));
    return out;
  };
  EXPECT_EQ(order(1, 0, true), order(1, 0, true));
  EXPECT_NE(order(1, 0, true), order(1, 1, true));
  EXPECT_NE(order(1, 0, true), order(2, 0, true));
  const std::vector<int64_t> identity = order(1, 3, false);
  for (int64_t i = 0; i < 50; ++i) EXPECT_EQ(identity[static_cast<size_t>(i)], i);
}

TEST(Batcher, RefusesWhatCannotWork) {
  const auto dataset = make({4, 9, 2});
  EXPECT_EQ(error_of([&] { Batcher(dataset, in_order(8)); }).message(),
            "train.micro_batch_tokens 8 is less than the 9 tokens of the longest sample; raise it, or lower "
            "data.max_length "
            "with data.truncation");
  EXPECT_EQ(Batcher(dataset, in_order(9)).next({0, 1}).rows(), 9);
  EXPECT_EQ(error_of([&] { Batcher(dataset, in_order(0)); }).code(), Code::kInvalidArgument);
  EXPECT_EQ(error_of([&] { Batcher(dataset, in_order(int64_t{1} << 40)); }).code(), Code::kInvalidArgument);
  EXPECT_EQ(error_of([&] { Batcher(dataset, in_order(9, -1)); }).code(), Code::kInvalidArgument);
  const Batcher batcher(dataset, in_order(9));
  EXPECT_EQ(error_of([&] {
              batcher.next({0, 3});
            }).message(),
            "data cursor (epoch 0, index 3) is outside an epoch of 3 samples");
  EXPECT_EQ(error_of([&] { batcher.next({-1, 0}); }).code(), Code::kOutOfRange);
  EXPECT_EQ(error_of([&] { batcher.next({0, -1}); }).code(), Code::kOutOfRange);
}

// Two sources of 10 and 40 samples with these weights.
std::shared_ptr<const Dataset> make_mixture(double first, double second) {
  World w;
  int length = 2;
  for (const auto& [name, count] : {std::pair("a.jsonl", 10), std::pair("b.jsonl", 40)}) {
    std::string rows;
    for (int i = 0; i < count; ++i) rows += to_text({{"text", std::string(static_cast<size_t>(1 + length++ % 5), 'x')}}) + "\n";
    w.file(name, rows);
  }
  w.source("a.jsonl").weight = first;
  w.source("b.jsonl").weight = second;
  return w.open();
}

// How often each sample is drawn in some epochs.
std::vector<int> draws(const Batcher& batcher, int64_t first_epoch, int64_t epochs) {
  std::vector<int> counts(50);
  for (int64_t epoch = first_epoch; epoch < first_epoch + epochs; ++epoch) {
    for (int64_t i = 0; i < batcher.size(); ++i) ++counts[static_cast<size_t>(batcher.at(epoch, i))];
  }
  return counts;
}

TEST(Batcher, WeightsOfAMixture) {
  for (bool shuffle : {true, false}) {
    BatchOptions options = in_order(64);
    options.shuffle = shuffle;
    const Batcher batcher(make_mixture(2.5, 0.25), options);
    EXPECT_EQ(batcher.size(), 25 + 10);
    for (int64_t epoch : {0, 1, 7}) {
      const std::vector<int> counts = draws(batcher, epoch, 1);
      EXPECT_EQ(std::accumulate(counts.begin(), counts.begin() + 10, 0), 25);
      EXPECT_EQ(std::accumulate(counts.begin() + 10, counts.end(), 0), 10);
      EXPECT_GE(*std::min_element(counts.begin(), counts.begin() + 10), 2);
      EXPECT_LE(*std::max_element(counts.begin(), counts.end()), 4);
    }
    // Over four epochs: 100 draws of 10 samples, 40 of 40.
    const std::vector<int> four = draws(batcher, 0, 4);
    EXPECT_EQ(four, [] {
      std::vector<int> even(50, 1);
      std::fill(even.begin(), even.begin() + 10, 10);
      return even;
    }());
    // The sources are mixed, not one after the other.
    int64_t from_second = 0;
    for (int64_t i = 0; i < 18; ++i) from_second += batcher.at(0, i) >= 10;
    EXPECT_EQ(from_second > 0, shuffle);
  }
}

// Passes have different orders, sources too, and a draw is known by its pass: no two share their dropout.
TEST(Batcher, EveryDrawOfAMixtureHasAKeyOfItsOwn) {
  BatchOptions options;
  options.micro_batch_size = 3;
  const auto dataset = make_mixture(3, 1);
  const Batcher batcher(dataset, options);
  EXPECT_EQ(batcher.row_capacity(), 3 * dataset->longest());
  std::set<int64_t> keys;
  Cursor cursor;
  int64_t documents = 0;
  while (cursor.epoch < 3) {
    const MicroBatch batch = batcher.next(cursor);
    ASSERT_LE(batch.rows(), batcher.row_capacity());
    for (size_t d = 0; d + 1 < batch.cu_seqlens.size(); ++d, ++documents) {
      keys.insert(batch.row_keys[static_cast<size_t>(batch.cu_seqlens[d])]);
    }
    cursor = batch.next;
  }
  EXPECT_EQ(documents, 3 * 70);
  EXPECT_EQ(static_cast<int64_t>(keys.size()), documents);
  std::vector<int64_t> first, second;
  for (int64_t pass = 0; pass < 2; ++pass) {
    const Order order({{0, 10, 3}}, 42, true);
    for (int64_t i = 0; i < 30; ++i) {
      const Order::Draw draw = order.at(0, i);
      if (draw.pass == pass) (pass == 0 ? first : second).push_back(draw.sample);
    }
  }
  EXPECT_EQ(first.size(), 10u);
  EXPECT_NE(first, second);
}

TEST(Batcher, WeightsAreOnlyForTraining) {
  BatchOptions options = in_order(64);
  options.weighted = false;
  const Batcher batcher(make_mixture(3, 0.1), options);
  EXPECT_EQ(draws(batcher, 0, 1), std::vector<int>(50, 1));
  const Batcher equal(make_mixture(1, 1), BatchOptions());
  BatchOptions shuffled;
  shuffled.weighted = false;
  const Batcher plain(make_mixture(3, 0.1), shuffled);
  for (int64_t i = 0; i < 50; ++i) EXPECT_EQ(equal.at(3, i), plain.at(3, i));
  const Error huge = error_of([] { Batcher(make_mixture(1e12, 1), BatchOptions()); });
  EXPECT_EQ(huge.code(), Code::kInvalidArgument);
  EXPECT_NE(huge.message().find("weight"), std::string::npos);
}

// A source without usable rows has no part; a cached data set has the same parts.
TEST(Batcher, PartsOfADataSet) {
  World w;
  w.options.cache_folder = "cache";
  w.options.on_bad_row = "list";
  w.file("a.jsonl", "{\"text\": \"AA\"}\n{\"text\": \"BB\"}\n{\"text\": \"CC\"}\n");
  w.file("bad.jsonl", "{\"text\": 7}\n");
  w.file("c.jsonl", "{\"text\": 7}\n{\"text\": \"DD\"}\n");
  w.source("a.jsonl").limit = 2;
  w.source("bad.jsonl").weight = 5;
  w.source("[ac].jsonl").weight = 3;
  for (const char* state : {"built", "hit"}) {
    const auto dataset = w.open();
    EXPECT_EQ(dataset->cache_state(), state);
    ASSERT_EQ(dataset->parts().size(), 2u);
    EXPECT_EQ(dataset->parts()[0].begin, 0);
    EXPECT_EQ(dataset->parts()[0].end, 2);
    EXPECT_EQ(dataset->parts()[0].weight, 1);
    EXPECT_EQ(dataset->parts()[1].begin, 2);
    EXPECT_EQ(dataset->parts()[1].end, 6);
    EXPECT_EQ(dataset->parts()[1].weight, 3);
  }
}

}  // namespace
}  // namespace inlaid::data

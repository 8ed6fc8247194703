#include "sdk/data/token_cache.h"

#include <gtest/gtest.h>

#include "sdk/base/testing/fault_file_system.h"
#include "sdk/data/testing/support.h"

namespace inlaid::data {
namespace {

using testing::contents;
using testing::error_of;
using testing::World;

// Good, bad and dropped rows of several formats, cached in "cache".
void fill(World* w) {
  std::string rows;
  for (int i = 0; i < 40; ++i) {
    rows += to_text({{"messages",
                      Json::array({{{"role", "user"}, {"content", "question " + std::to_string(i)}},
                                   {{"role", "assistant"},
                                    {"content", std::string(static_cast<size_t>(1 + i % 50), 'a')}}})},
                     {"id", i}}) +
            "\n";
    if (i == 10) rows += "{broken\n";
  }
  w->file("a.jsonl", rows);
  w->file("b.txt", "some text\n\nmore text\n");
  w->source("a.jsonl");
  w->source("b.txt");
  w->options.on_bad_row = "list";
  w->options.truncation = "drop";
  w->options.max_length = 60;
  w->options.cache_folder = "cache";
}

std::string cache_file(World* w) {
  const std::vector<std::string> names = w->fs.list("cache");
  EXPECT_EQ(names.size(), 1u);
  return join_path("cache", names.at(0));
}

TEST(TokenCache, AHitIsTheSameDataSet) {
  World w;
  fill(&w);
  w.options.cache_folder = "";
  const auto plain = w.open();
  EXPECT_EQ(plain->cache_state(), "off");
  ASSERT_FALSE(plain->report().refused.empty());
  ASSERT_FALSE(plain->report().dropped.empty());
  w.options.cache_folder = "cache";
  const auto built = w.open();
  EXPECT_EQ(built->cache_state(), "built");
  EXPECT_EQ(contents(*built), contents(*plain));
  const auto hit = w.open();
  EXPECT_EQ(hit->cache_state(), "hit");
  EXPECT_EQ(contents(*hit), contents(*plain));
  EXPECT_EQ(hit->report(), plain->report());
  EXPECT_EQ(hit->longest(), plain->longest());
  EXPECT_EQ(hit->shortest(), plain->shortest());
}

// What a plan says about memory holds with and without a cache.
TEST(TokenCache, AHitTakesTheSameMemory) {
  World w;
  fill(&w);
  w.open();
  const MemoryAccount::Usage built = w.account->usage();
  w.account = MemoryAccount::root("hit", 0, default_allocator());
  EXPECT_EQ(w.open()->cache_state(), "hit");
  EXPECT_EQ(w.account->usage().peak, built.peak);
}

TEST(TokenCache, EverythingThatMattersIsInTheKey) {
  World w;
  fill(&w);
  w.open();
  const auto state_after = [&](auto change) {
    World other;
    fill(&other);
    other.open();
    change(&other);
    return other.open()->cache_state();
  };
  EXPECT_EQ(state_after([](World*) {}), "hit");
  EXPECT_EQ(state_after([](World* o) { o->options.loss_on = "all"; }), "built");
  EXPECT_EQ(state_after([](World* o) { o->options.max_length = 61; }), "built");
  EXPECT_EQ(state_after([](World* o) { o->options.truncation = "right"; }), "built");
  EXPECT_EQ(state_after([](World* o) { o->options.eval_fraction = 0.1; }), "built");
  EXPECT_EQ(state_after([](World* o) { o->options.eos_candidates = {"</s>", "<|im_end|>"}; }), "built");
  EXPECT_EQ(state_after([](World* o) { o->options.sources[0].limit = 5; }), "built");
  EXPECT_EQ(state_after([](World* o) { o->options.template_variables = {{"x", 1}}; }), "built");
  EXPECT_EQ(state_after([](World* o) { o->options.sources.pop_back(); }), "built");
  EXPECT_EQ(state_after([](World* o) { o->file("b.txt", "some text\n\nmore texts\n"); }), "built");
  EXPECT_EQ(state_after([](World* o) { o->tokenizer = testing::make_tokenizer(true); }), "built");
  EXPECT_EQ(state_after([](World* o) {
              o->chat_template =
                  text::ChatTemplate::compile(o->chat_template->source() + "\n", Json::object(), "t");
            }),
            "built");
}

// The same template with another special token renders other texts.
TEST(TokenCache, SpecialTokensOfATemplateAreInTheKey) {
  const std::string source = "{{ bos_token }}{% for m in messages %}{{ m['content'] }}<|im_end|>{% endfor %}";
  World w;
  fill(&w);
  w.chat_template = text::ChatTemplate::compile(source, {{"bos_token", "<s>"}}, "t");
  w.open();
  w.chat_template = text::ChatTemplate::compile(source, {{"bos_token", "</s>"}}, "t");
  EXPECT_EQ(w.open()->cache_state(), "built");
}

TEST(TokenCache, ADamagedFileIsBuiltAgain) {
  World w;
  fill(&w);
  const std::string expected = contents(*w.open());
  const std::string path = cache_file(&w);
  const uint64_t size = w.fs.open(path)->size();
  for (uint64_t byte = 0; byte < size; byte += 1 + size / 61) {
    w.fs.flip_bit(path, byte, static_cast<int>(byte % 8));
    const auto rebuilt = w.open();
    ASSERT_TRUE(rebuilt->cache_state().starts_with("rebuilt: token cache " + path)) << rebuilt->cache_state();
    ASSERT_EQ(contents(*rebuilt), expected);
    ASSERT_EQ(w.open()->cache_state(), "hit");
  }
  for (const uint64_t length : {uint64_t{0}, uint64_t{7}, uint64_t{100}, size / 2, size - 1}) {
    w.fs.truncate(path, length);
    const auto rebuilt = w.open();
    ASSERT_EQ(rebuilt->cache_state(), "rebuilt: token cache " + path + ": cut off");
    ASSERT_EQ(contents(*rebuilt), expected);
  }
  EXPECT_EQ(w.account->usage().current_total, 0u);
}

// Any failing operation of the save costs the cache, never the run; power may go at any point.
TEST(TokenCache, AFailingDiskCostsOnlyTheCache) {
  World clean;
  fill(&clean);
  const std::string expected = contents(*clean.open());
  const auto open_on = [](World* w, FileSystem& disk) {
    return Dataset::open(w->options, disk, w->pool, w->account, w->tokenizer, w->chat_template);
  };
  World counted;
  fill(&counted);
  inlaid::testing::FaultFileSystem counter(counted.fs);
  open_on(&counted, counter);
  const int64_t operations = counter.operations();
  ASSERT_EQ(operations, 5);  // folder, create, write, close, rename
  for (int64_t n = 0; n < operations; ++n) {
    World w;
    fill(&w);
    inlaid::testing::FaultFileSystem disk(w.fs);
    disk.fail_at(n, Code::kResourceExhausted);
    const auto dataset = open_on(&w, disk);
    EXPECT_EQ(contents(*dataset), expected);
    EXPECT_TRUE(dataset->cache_state().starts_with("not written: ")) << n << ": " << dataset->cache_state();
    const auto again = w.open();
    EXPECT_EQ(contents(*again), expected);
    EXPECT_TRUE(again->cache_state() == "built" || again->cache_state() == "hit") << again->cache_state();
  }
  for (const inlaid::testing::CrashOptions& crash : inlaid::testing::all_crash_options()) {
    for (int64_t n = 0; n < operations; ++n) {
      World w;
      fill(&w);
      w.fs.sync_everything();
      inlaid::testing::FaultFileSystem disk(w.fs);
      disk.cut_power_at(n);
      error_of([&] { open_on(&w, disk); });  // nothing can be read either, once power is off
      w.fs.crash(crash);
      const auto again = w.open();
      EXPECT_EQ(contents(*again), expected) << inlaid::testing::describe(crash) << ", operation " << n;
      EXPECT_EQ(w.open()->cache_state(), "hit");
    }
  }
}

// Many samples; the store's first segment is 64 KiB, about 140 of them.
void fill_much(World* w) {
  std::string rows;
  for (int i = 0; i < 600; ++i) rows += to_text({{"text", std::string(static_cast<size_t>(20 + i % 71), 'a')}}) + "\n";
  w->file("a.jsonl", rows);
  w->source("a.jsonl");
  w->options.cache_folder = "cache";
}

// A data set that is too large for memory is the same one, read from the file; it takes what it may, then the index alone.
TEST(TokenCache, BeyondMemorySamplesComeFromTheFile) {
  World w;
  fill_much(&w);
  const auto plain = w.open();
  ASSERT_TRUE(plain->resident());
  const uint64_t in_memory = w.account->usage().current_total;
  for (const char* state : {"built", "hit"}) {
    World large;
    fill_much(&large);
    large.options.resident_bytes = 100 << 10;
    auto dataset = large.open();
    if (std::string_view(state) == "hit") {
      dataset.reset();
      large.account = MemoryAccount::root("hit", 0, default_allocator());
      dataset = large.open();
    }
    EXPECT_EQ(dataset->cache_state(), state);
    EXPECT_FALSE(dataset->resident());
    EXPECT_EQ(contents(*dataset), contents(*plain));
    EXPECT_EQ(dataset->identity(), plain->identity());
    EXPECT_EQ(dataset->longest(), plain->longest());
    const MemoryAccount::Usage usage = large.account->usage();
    EXPECT_LT(usage.current_total, 50u << 10);  // one block of the index
    EXPECT_GT(usage.peak_total, 64u << 10);     // the first segment was there
    EXPECT_LE(usage.peak_total, (100u + 50u) << 10);
    EXPECT_LT(usage.current_total, in_memory);
    Batcher resident(plain, {}), streamed(dataset, {});
    for (Cursor at; at.epoch < 2;) {
      const MicroBatch batch = streamed.next(at);
      EXPECT_EQ(batch.tokens, resident.next(at).tokens);
      EXPECT_EQ(batch.row_keys, resident.next(at).row_keys);
      at = batch.next;
    }
  }
}

TEST(TokenCache, CountsWithoutKeeping) {
  World w;
  fill_much(&w);
  const auto plain = w.open();
  w.options.cache_folder = "";
  w.options.resident_bytes = 100 << 10;
  EXPECT_TRUE(w.open()->resident()) << "where else should they be";
  w.options.count_only = true;
  const auto counted = w.open();
  EXPECT_EQ(counted->identity(), plain->identity());
  for (int64_t i = 0; i < plain->size(); ++i) {
    ASSERT_EQ(counted->length(i), static_cast<int64_t>(plain->sample(i).tokens.size()));
  }
  EXPECT_EQ(error_of([&] { counted->sample(0); }).code(), Code::kFailedPrecondition);
}

// The file is read while training goes on: what was changed in it is named, never trained.
TEST(TokenCache, AFileThatChangesLater) {
  World w;
  fill_much(&w);
  w.options.resident_bytes = 1;
  const auto dataset = w.open();
  const std::string path = cache_file(&w);
  w.fs.flip_bit(path, w.fs.open(path)->size() / 2, 3);
  int64_t damaged = 0;
  for (int64_t i = 0; i < dataset->size(); ++i) {
    const Error error = error_of([&] { dataset->sample(i); });
    if (error.code() == Code::kOk) continue;
    ++damaged;
    EXPECT_EQ(error.code(), Code::kDataLoss);
    EXPECT_EQ(error.message().find("token cache " + path + ": the sample of row " + std::to_string(i)), 0u) << error.message();
  }
  EXPECT_EQ(damaged, 1);
}

// Samples that left memory need the file: then a full disk is an error.
TEST(TokenCache, BeyondMemoryTheDiskIsNeeded) {
  for (int64_t n = 0; n < 5; ++n) {
    World w;
    fill_much(&w);
    w.options.resident_bytes = 100 << 10;
    inlaid::testing::FaultFileSystem disk(w.fs);
    disk.fail_at(n, Code::kResourceExhausted);
    const Error error = error_of(
        [&] { Dataset::open(w.options, disk, w.pool, w.account, w.tokenizer, w.chat_template); });
    EXPECT_EQ(error.code(), Code::kResourceExhausted) << n;
    EXPECT_EQ(w.account->usage().current_total, 0u);
    EXPECT_TRUE(!w.fs.exists("cache") || w.fs.list("cache").empty());
  }
}

}  // namespace
}  // namespace inlaid::data

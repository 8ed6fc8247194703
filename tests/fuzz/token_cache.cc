// The token cache, with its checksum put right: what is behind it comes from a disk that others write to.
#include "sdk/data/token_cache.h"

#include <cstring>

#include "sdk/base/hash.h"
#include "sdk/base/testing/memory_file_system.h"
#include "tests/fuzz/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace inlaid;
  constexpr int32_t kVocabulary = 1000;
  testing::MemoryFileSystem fs;
  const std::string key(64, 'a');
  std::string bytes(reinterpret_cast<const char*>(data), size);
  const uint32_t crc = crc32c(0, std::as_bytes(std::span(bytes.data(), bytes.size())));
  bytes.append(reinterpret_cast<const char*>(&crc), sizeof crc);
  fuzz::put_file(fs, "in.cache", bytes);
  const auto account = MemoryAccount::root("fuzz", uint64_t{64} << 20, default_allocator());
  data::SampleStore store(account), again(account);
  data::CachedSamples cached;
  if (!fuzz::accepts([&] { cached = data::read_token_cache(fs, "in.cache", key, kVocabulary, &store); })) return 0;
  data::write_token_cache(fs, "out.cache", key, store, cached);
  const data::CachedSamples written = data::read_token_cache(fs, "out.cache", key, kVocabulary, &again);
  FUZZ_REQUIRE(written.report == cached.report && written.identity == cached.identity && again.size() == store.size());
  for (int64_t i = 0; i < store.size(); ++i) {
    const data::Sample a = store.at(i), b = again.at(i);
    for (const int32_t id : a.tokens) FUZZ_REQUIRE(id >= 0 && id < kVocabulary);
    FUZZ_REQUIRE(a.row == b.row && std::equal(a.tokens.begin(), a.tokens.end(), b.tokens.begin(), b.tokens.end()));
    FUZZ_REQUIRE(std::equal(a.targets.begin(), a.targets.end(), b.targets.begin(), b.targets.end()));
  }
  return 0;
}

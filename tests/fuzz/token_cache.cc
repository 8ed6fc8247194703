// The token cache, with its checksum put right: what is behind it comes from a disk that others write to.
#include "sdk/data/token_cache.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <string_view>

#include "sdk/base/hash.h"
#include "sdk/base/testing/memory_file_system.h"
#include "tests/fuzz/check.h"

// The input without what is computed: u32 bytes of records, the records, the trailer up to its number of samples. Head, place of the
// trailer and checksums are put right here.
std::string with_checksums(const uint8_t* data, size_t size, const std::string& key) {
  const auto crc_of = [](std::string_view part) {
    const uint32_t crc = inlaid::crc32c(0, std::as_bytes(std::span(part.data(), part.size())));
    return std::string(reinterpret_cast<const char*>(&crc), sizeof crc);
  };
  std::string_view input(reinterpret_cast<const char*>(data), size);
  uint32_t record_bytes = 0;
  std::memcpy(&record_bytes, input.data(), std::min(input.size(), sizeof record_bytes));
  input.remove_prefix(std::min(input.size(), sizeof record_bytes));
  std::string_view records = input.substr(0, record_bytes);
  std::string trailer(input.substr(records.size()));
  std::string bytes = "INLAIDTC" + key;
  while (!records.empty()) {
    uint64_t length = 0;
    if (records.size() >= 16) std::memcpy(&length, records.data() + 8, sizeof length);
    const std::string_view record = records.substr(0, 16 + 8 * std::min<uint64_t>(length, records.size()));
    bytes.append(record);
    bytes.append(crc_of(record));
    records.remove_prefix(record.size());
  }
  const uint64_t offset = bytes.size();
  trailer.append(reinterpret_cast<const char*>(&offset), sizeof offset);
  bytes.append(trailer);
  return bytes + crc_of(trailer);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace inlaid;
  constexpr int32_t kVocabulary = 1000;
  testing::MemoryFileSystem fs;
  const std::string key(64, 'a');
  fuzz::put_file(fs, "in.cache", with_checksums(data, size, key));
  const auto account = MemoryAccount::root("fuzz", uint64_t{64} << 20, default_allocator());
  data::SampleStore store(account), again(account, /*resident_bytes=*/1);  // from memory, from the file
  data::CachedSamples cached;
  if (!fuzz::accepts([&] { cached = data::read_token_cache(fs, "in.cache", key, kVocabulary, &store); })) return 0;
  data::TokenCacheWriter writer(fs, "out.cache", key);
  for (int64_t i = 0; i < store.size(); ++i) {
    const data::Sample sample = store.at(i);
    writer.append(sample.row, sample.tokens, sample.targets);
  }
  writer.finish(cached);
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

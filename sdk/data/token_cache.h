// The token cache: a tokenised data set in one file, so that a second run need not tokenise again.
//
// The name of the file is a hash of everything that its contents depend on: the files' bytes and names, the
// tokenizer, the template, the options and the version of this format. So a hit needs no further check of
// age, and the data set and its report are the same as if they had been built.
//
// A file is written under a temporary name and renamed. Its checksum is verified when it is read, and a
// damaged one is built again, so it is not synced: after a power cut a torn file costs one rebuild, whereas
// a sync may wait many seconds on a busy disk.
//
// Layout, little-endian:  "INLAIDTC" · key (64 hex digits) · u64 length, report as JSON · identity (64 hex
// digits) · u64 samples · per sample: i64 row, u64 length, i32 tokens, i32 targets · u32 CRC-32C of all
// before. Tests: token_cache_test.cc.
#ifndef INLAID_SDK_DATA_TOKEN_CACHE_H_
#define INLAID_SDK_DATA_TOKEN_CACHE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "sdk/base/file_system.h"
#include "sdk/data/dataset.h"
#include "sdk/data/sample_store.h"

namespace inlaid::data {

// Raise when the file's layout, or the meaning of any row under the same options, changes.
constexpr int kTokenCacheVersion = 1;

// `files`: path and SHA-256 of every file in order of reading.
std::string token_cache_key(const DatasetOptions& options,
                            const std::vector<std::pair<std::string, std::string>>& files,
                            const text::Tokenizer& tokenizer, const text::ChatTemplate* chat_template);
std::string token_cache_path(const DatasetOptions& options, const std::string& key);

struct CachedSamples {
  Report report;
  std::string identity;
};

// Reads a cache file into `store` (empty). kDataLoss naming the file and what is wrong with it: a checksum tells a damaged file, but
// not one that somebody else wrote, so ids are compared with the vocabulary's size and counts with each other, too.
CachedSamples read_token_cache(FileSystem& fs, const std::string& path, const std::string& key, int32_t vocabulary,
                               SampleStore* store);
// Writes one atomically; creates the folder.
void write_token_cache(FileSystem& fs, const std::string& path, const std::string& key,
                       const SampleStore& store, const CachedSamples& cached);

}  // namespace inlaid::data

#endif  // INLAID_SDK_DATA_TOKEN_CACHE_H_

// The token cache: a tokenised data set in one file, so that a second run need not tokenise again.
//
// The name of the file is a hash of everything that its contents depend on: the files' bytes and names, the
// tokenizer, the template, the options and the version of this format. So a hit needs no further check of
// age, and the data set and its report are the same as if they had been built.
//
// A file is written under a temporary name while the samples are made, and renamed at their end. Its checksums are verified when
// it is read, and a damaged one is built again, so it is not synced: after a power cut a torn file costs one rebuild, whereas
// a sync may wait many seconds on a busy disk.
//
// Layout, little-endian:  "INLAIDTC" · key (64 hex digits) · one record per sample (token_record.h) · the trailer: u64 length of
// the report, report as JSON, identity (64 hex digits), u64 samples, u64 offset of the trailer, u32 CRC-32C of the trailer before.
// Tests: token_cache_test.cc.
#ifndef INLAID_SDK_DATA_TOKEN_CACHE_H_
#define INLAID_SDK_DATA_TOKEN_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sdk/base/file_system.h"
#include "sdk/data/dataset.h"
#include "sdk/data/sample_store.h"

namespace inlaid::data {

// Raise when the file's layout, or the meaning of any row under the same options, changes.
constexpr int kTokenCacheVersion = 2;

// `files`: path and SHA-256 of every file in order of reading.
std::string token_cache_key(const DatasetOptions& options,
                            const std::vector<std::pair<std::string, std::string>>& files,
                            const text::Tokenizer& tokenizer, const text::ChatTemplate* chat_template);
std::string token_cache_path(const DatasetOptions& options, const std::string& key);

struct CachedSamples {
  Report report;
  std::string identity;
};

// Reads a cache file into `store` (empty), to which it is attached when the samples do not stay in memory. kDataLoss naming the
// file and what is wrong with it: a checksum tells a damaged file, but not one that somebody else wrote, so ids are compared with
// the vocabulary's size and counts with each other, too.
CachedSamples read_token_cache(FileSystem& fs, const std::string& path, const std::string& key, int32_t vocabulary,
                               SampleStore* store);

// Writes one, sample by sample. Nothing is at `path` before finish() has returned; without it the temporary file is removed.
class TokenCacheWriter {
 public:
  TokenCacheWriter(FileSystem& fs, const std::string& path, const std::string& key);  // creates the folder
  ~TokenCacheWriter();
  TokenCacheWriter(const TokenCacheWriter&) = delete;
  TokenCacheWriter& operator=(const TokenCacheWriter&) = delete;

  void append(int64_t row, std::span<const int32_t> tokens, std::span<const int32_t> targets);
  void finish(const CachedSamples& cached);

 private:
  void put(std::string_view text);
  void flush();

  FileSystem& fs_;
  std::string path_, temporary_;
  std::unique_ptr<WritableFile> file_;
  std::vector<std::byte> buffer_;
  uint64_t flushed_ = 0, samples_ = 0;
  bool finished_ = false;
};

}  // namespace inlaid::data

#endif  // INLAID_SDK_DATA_TOKEN_CACHE_H_

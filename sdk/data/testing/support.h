// What the tests of this layer share: a tokenizer and a template small enough to expect ids by hand, and
// files in memory.
#ifndef INLAID_SDK_DATA_TESTING_SUPPORT_H_
#define INLAID_SDK_DATA_TESTING_SUPPORT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sdk/base/error.h"
#include "sdk/base/testing/memory_file_system.h"
#include "sdk/data/dataset.h"

namespace inlaid::data::testing {

// Byte-level BPE: id of a byte = kByte + byte, so ids of any text can be written down; three merges make
// "yes" and " yes" one token each. Special tokens: <s> 0, <|im_start|> 1, <|im_end|> 2, </s> 3. With
// `add_bos` the tokenizer puts <s> in front.
constexpr int32_t kBos = 0, kStart = 1, kEnd = 2, kEos = 3, kByte = 10;
constexpr int32_t kYes = kByte + 257, kSpaceYes = kByte + 258;
std::shared_ptr<const text::Tokenizer> make_tokenizer(bool add_bos = false);

// ChatML: <|im_start|>ROLE\nCONTENT<|im_end|>\n for every message.
std::shared_ptr<const text::ChatTemplate> make_template();

// Ids of a text without merges: kByte + byte for each.
std::vector<int32_t> bytes(std::string_view text);
// Concatenation.
std::vector<int32_t> join(const std::vector<std::vector<int32_t>>& parts);

void write_file(FileSystem& fs, const std::string& path, std::string_view text);

// Runs `call`, which must throw an Error; gives it.
template <typename Call>
Error error_of(Call&& call) {
  try {
    call();
  } catch (const Error& e) {
    return e;
  }
  return Error(Code::kOk, "no error was thrown");
}

// A data set over files in memory.
struct World {
  explicit World(int threads = 2) : pool(threads) { options.eos_candidates = {"<|im_end|>"}; }

  void file(const std::string& path, std::string_view text) { write_file(fs, path, text); }
  // Adds a source; format auto.
  Source& source(const std::string& path) {
    options.sources.push_back({});
    options.sources.back().path = path;
    return options.sources.back();
  }
  std::shared_ptr<const Dataset> open() {
    return Dataset::open(options, fs, pool, account, tokenizer, chat_template);
  }

  inlaid::testing::MemoryFileSystem fs;
  ThreadPool pool;
  std::shared_ptr<MemoryAccount> account = MemoryAccount::root("test", 0, default_allocator());
  std::shared_ptr<const text::Tokenizer> tokenizer = make_tokenizer();
  std::shared_ptr<const text::ChatTemplate> chat_template = make_template();
  DatasetOptions options;
};

// Everything that a data set holds, for comparisons.
std::string contents(const Dataset& dataset);

}  // namespace inlaid::data::testing

#endif  // INLAID_SDK_DATA_TESTING_SUPPORT_H_

// Data of every format, as a file on disk. The first line says how it is read: the file's name, then loss_on, truncation and
// format; the rest is the file. Whatever is in it, every row is accounted for, and samples are fit to train on.
#include "sdk/base/testing/memory_file_system.h"
#include "sdk/data/testing/support.h"
#include "tests/fuzz/check.h"

namespace {

using namespace inlaid;
using data::Dataset;

constexpr int32_t kVocabulary = data::testing::kByte + 259;

struct Shared {
  ThreadPool pool{2};
  std::shared_ptr<MemoryAccount> account = MemoryAccount::root("fuzz", uint64_t{256} << 20, default_allocator());
  std::shared_ptr<const text::Tokenizer> tokenizer = data::testing::make_tokenizer();
  std::shared_ptr<const text::ChatTemplate> chat_template = data::testing::make_template();
};

void check(const Dataset& dataset, int64_t max_length) {
  const data::Report& report = dataset.report();
  const auto left_out = static_cast<int64_t>(report.refused.size() + report.dropped.size());
  FUZZ_REQUIRE(report.rows == report.used + left_out + report.held_out && report.used == dataset.size() && dataset.size() > 0);
  int64_t tokens = 0, targets = 0;
  for (int64_t i = 0; i < dataset.size(); ++i) {
    const data::Sample sample = dataset.sample(i);
    FUZZ_REQUIRE(!sample.tokens.empty() && sample.tokens.size() == sample.targets.size());
    FUZZ_REQUIRE(static_cast<int64_t>(sample.tokens.size()) <= max_length);
    tokens += static_cast<int64_t>(sample.tokens.size());
    for (size_t at = 0; at < sample.tokens.size(); ++at) {
      FUZZ_REQUIRE(sample.tokens[at] >= 0 && sample.tokens[at] < kVocabulary);
      if (sample.targets[at] == data::kIgnore) continue;
      ++targets;
      FUZZ_REQUIRE(at + 1 < sample.tokens.size() ? sample.targets[at] == sample.tokens[at + 1] : false);
    }
  }
  FUZZ_REQUIRE(tokens == report.tokens && targets == report.target_tokens && targets > 0);
  FUZZ_REQUIRE(data::Report::from_json(report.to_json()) == report);
  for (const data::Report::Row& row : report.refused) fuzz::check_error(Error(Code::kInvalidArgument, row.reason));
}

std::string word(std::string* line) {
  const size_t space = line->find(' ');
  const std::string out = line->substr(0, space);
  line->erase(0, space == line->npos ? line->size() : space + 1);
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static Shared shared;
  const std::string input(reinterpret_cast<const char*>(data), size);
  const size_t end = std::min(input.find('\n'), input.size());
  std::string line = input.substr(0, end);
  const std::string name = word(&line);
  if (name.empty() || name.find_first_of("/\0*?[", 0, 5) != name.npos || name == "." || name == "..") return 0;

  testing::MemoryFileSystem fs;
  fuzz::put_file(fs, name, std::string_view(input).substr(std::min(end + 1, input.size())));
  data::DatasetOptions options;
  options.sources.push_back({});
  options.sources[0].path = name;
  options.eos_candidates = {"<|im_end|>"};
  options.loss_on = word(&line);
  options.truncation = word(&line);
  options.sources[0].format = word(&line);
  options.max_length = 64;
  const auto open = [&] {
    check(*Dataset::open(options, fs, shared.pool, shared.account, shared.tokenizer, shared.chat_template), options.max_length);
  };
  fuzz::accepts(open);
  options.on_bad_row = "list";
  fuzz::accepts(open);
  return 0;
}

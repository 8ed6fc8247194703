#include "sdk/data/token_cache.h"

#include <algorithm>  // for min
#include <cstring>    // for memcpy
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "sdk/base/error.h"
#include "sdk/base/hash.h"
#include "sdk/data/token_record.h"

namespace inlaid::data {
namespace {

constexpr std::string_view kMagic = "INLAIDTC";
constexpr size_t kDigits = 64;
constexpr size_t kBufferBytes = size_t{1} << 20;

[[noreturn]] void damaged(const ReadableFile& file, const char* how) {
  fail(Code::kDataLoss, "token cache ", file.path(), ": ", how);
}

// A part of the file from its begin to its end, through one buffer.
class Input {
 public:
  Input(const ReadableFile& file, uint64_t begin, uint64_t end) : file_(file), offset_(begin), left_(end - begin) {}

  uint64_t left() const { return left_ + (filled_ - at_); }

  void read(std::span<std::byte> out) {
    if (out.size() > left()) damaged(file_, "cut off");
    for (size_t done = 0; done < out.size();) {
      if (at_ == filled_) refill();
      const size_t part = std::min(out.size() - done, filled_ - at_);
      std::memcpy(out.data() + done, buffer_.data() + at_, part);
      at_ += part;
      done += part;
    }
  }

 private:
  void refill() {
    filled_ = static_cast<size_t>(std::min<uint64_t>(kBufferBytes, left_));
    buffer_.resize(filled_);
    file_.read_at(offset_, std::span(buffer_));
    offset_ += filled_;
    left_ -= filled_;
    at_ = 0;
  }

  const ReadableFile& file_;
  std::vector<std::byte> buffer_;
  size_t at_ = 0, filled_ = 0;
  uint64_t offset_, left_;  // of what is not in the buffer
};

struct Trailer {
  std::string report;
  std::string identity;
  uint64_t samples = 0, offset = 0;
};

constexpr uint64_t kTrailerEndBytes = kDigits + 2 * sizeof(uint64_t) + sizeof(uint32_t);

std::string trailer_bytes(const Trailer& trailer) {
  std::string bytes;
  const auto put = [&bytes](const auto& value) { bytes.append(reinterpret_cast<const char*>(&value), sizeof value); };
  put(uint64_t{trailer.report.size()});
  bytes += trailer.report;
  bytes += trailer.identity;
  put(trailer.samples);
  put(trailer.offset);
  put(crc32c(0, std::as_bytes(std::span(bytes))));
  return bytes;
}

Trailer read_trailer(const ReadableFile& file) {
  const uint64_t size = file.size();
  if (size < kTokenCacheHeadBytes + sizeof(uint64_t) + kTrailerEndBytes) damaged(file, "cut off");
  Trailer trailer;
  file.read_at(size - sizeof(uint32_t) - sizeof(uint64_t), std::as_writable_bytes(std::span(&trailer.offset, 1)));
  if (trailer.offset < kTokenCacheHeadBytes || trailer.offset > size - kTrailerEndBytes - sizeof(uint64_t)) damaged(file, "cut off");
  std::string bytes(size - trailer.offset, '\0');
  file.read_at(trailer.offset, std::as_writable_bytes(std::span(bytes)));
  uint64_t length;
  std::memcpy(&length, bytes.data(), sizeof length);
  if (length != bytes.size() - sizeof length - kTrailerEndBytes) damaged(file, "cut off");
  trailer.report = bytes.substr(sizeof length, length);
  trailer.identity = bytes.substr(sizeof length + length, kDigits);
  std::memcpy(&trailer.samples, bytes.data() + sizeof length + length + kDigits, sizeof trailer.samples);
  if (trailer_bytes(trailer) != bytes) damaged(file, "checksum differs");
  return trailer;
}

// What a template writes depends on the special tokens that it was given, and perhaps on the date, which a
// small render shows.
std::string probe(const text::ChatTemplate& chat_template, const Json& variables) {
  const Json messages =
      Json::array({{{"role", "user"}, {"content", "q"}}, {{"role", "assistant"}, {"content", "a"}}});
  try {
    return chat_template.render(messages, /*add_generation_prompt=*/false, variables);
  } catch (const Error& e) {
    return e.message();
  }
}

// Rows add up, and the samples are some of them: whoever adds them again does not overflow.
bool is_consistent(const Report& report, int64_t last_row, int64_t samples) {
  constexpr int64_t kMostRows = int64_t{1} << 48;
  int64_t rows = 0;
  for (const Report::File& file : report.files) {
    if (file.rows < 0 || file.rows > kMostRows || rows > kMostRows) return false;
    rows += file.rows;
  }
  return rows == report.rows && last_row < rows && report.used == samples;
}

}  // namespace

std::string token_cache_key(const DatasetOptions& options,
                            const std::vector<std::pair<std::string, std::string>>& files,
                            const text::Tokenizer& tokenizer, const text::ChatTemplate* chat_template) {
  Json key = Json::object();
  key["version"] = kTokenCacheVersion;
  key["files"] = files;
  key["tokenizer"] = sha256_hex(tokenizer.json());
  if (chat_template != nullptr) {
    key["template"] = sha256_hex(chat_template->source());
    key["probe"] = sha256_hex(probe(*chat_template, options.template_variables));
  }
  for (const Source& source : options.sources) {
    key["sources"].push_back({{"path", source.path},
                              {"format", source.format},
                              {"columns", source.columns},
                              {"limit", source.limit}});
  }
  key["template_variables"] = options.template_variables;
  key["loss_on"] = options.loss_on;
  key["max_length"] = options.max_length;
  key["truncation"] = options.truncation;
  key["on_bad_row"] = options.on_bad_row;
  key["eval_fraction"] = options.eval_fraction;
  key["held_out"] = options.held_out;
  key["eos_candidates"] = options.eos_candidates;
  return sha256_hex(to_text(key));
}

std::string token_cache_path(const DatasetOptions& options, const std::string& key) {
  return join_path(options.cache_folder, "tokens-" + key + ".cache");
}

CachedSamples read_token_cache(FileSystem& fs, const std::string& path, const std::string& key, int32_t vocabulary,
                               SampleStore* store) {
  std::unique_ptr<ReadableFile> file = fs.open(path);
  std::string head(kTokenCacheHeadBytes, '\0');
  if (file->size() < head.size()) damaged(*file, "cut off");
  file->read_at(0, std::as_writable_bytes(std::span(head)));
  if (!head.starts_with(kMagic)) damaged(*file, "not a token cache");
  if (head.substr(kMagic.size()) != key) damaged(*file, "belongs to other data");
  const Trailer trailer = read_trailer(*file);
  Input in(*file, kTokenCacheHeadBytes, trailer.offset);
  std::vector<std::byte> record;
  Sample sample;
  int64_t last_row = -1;
  const auto is_id = [&](int32_t id) { return id >= 0 && id < vocabulary; };
  const auto is_target = [&](int32_t id) { return id == kIgnore || is_id(id); };
  for (uint64_t i = 0; i < trailer.samples; ++i) {
    record.resize(kRecordHeadBytes);
    in.read(record);
    uint64_t length;
    std::memcpy(&length, record.data() + sizeof sample.row, sizeof length);
    if (length == 0 || length > in.left() / (2 * sizeof(int32_t))) damaged(*file, "cut off");
    record.resize(record_bytes(length));
    in.read(std::span(record).subspan(kRecordHeadBytes));
    if (!take_record(record, &sample)) damaged(*file, "checksum differs");
    if (!std::all_of(sample.tokens.begin(), sample.tokens.end(), is_id) ||
        !std::all_of(sample.targets.begin(), sample.targets.end(), is_target)) {
      damaged(*file, "a sample holds what is no token of the vocabulary");
    }
    if (sample.row <= last_row) damaged(*file, "samples are out of order");
    last_row = sample.row;
    store->append(sample.row, sample.tokens, sample.targets);
  }
  if (in.left() != 0) damaged(*file, "holds more samples than it says");
  CachedSamples cached{Report::from_json(parse_json(trailer.report, path)), trailer.identity};
  if (!is_consistent(cached.report, last_row, store->size())) damaged(*file, "its report belongs to other samples");
  if (!store->resident()) store->attach(std::move(file));
  return cached;
}

TokenCacheWriter::TokenCacheWriter(FileSystem& fs, const std::string& path, const std::string& key)
    : fs_(fs), path_(path), temporary_(path + ".tmp") {
  fs_.make_folders(parent_path(path));
  file_ = fs_.create(temporary_);
  const std::string head = std::string(kMagic) + key;
  INLAID_CHECK(head.size() == kTokenCacheHeadBytes);
  put(head);
}

TokenCacheWriter::~TokenCacheWriter() {
  if (finished_) return;
  try {
    file_.reset();
    fs_.remove_all(temporary_);
  } catch (const Error&) {
    // What made the writer give up says more; the next one truncates what is left.
  }
}

void TokenCacheWriter::append(int64_t row, std::span<const int32_t> tokens, std::span<const int32_t> targets) {
  put_record(row, tokens, targets, &buffer_);
  ++samples_;
  if (buffer_.size() >= kBufferBytes) flush();
}

void TokenCacheWriter::flush() {
  file_->write(buffer_);
  flushed_ += buffer_.size();
  buffer_.clear();
}

void TokenCacheWriter::put(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
}

void TokenCacheWriter::finish(const CachedSamples& cached) {
  put(trailer_bytes({to_text(cached.report.to_json()), cached.identity, samples_, flushed_ + buffer_.size()}));
  flush();
  file_->close();
  fs_.rename(temporary_, path_);
  finished_ = true;
}

}  // namespace inlaid::data

#include "sdk/data/token_cache.h"

#include <algorithm>  // for min
#include <bit>        // for endian
#include <cstring>    // for memcpy
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "sdk/base/error.h"
#include "sdk/base/hash.h"

namespace inlaid::data {
namespace {

static_assert(std::endian::native == std::endian::little,
              "the cache file holds values as they lie in memory");

constexpr std::string_view kMagic = "INLAIDTC";
constexpr size_t kDigits = 64;
constexpr size_t kBufferBytes = size_t{1} << 20;

// Sequential reading with a checksum; every length is checked against the bytes that are left.
class Input {
 public:
  explicit Input(std::unique_ptr<ReadableFile> file) : file_(std::move(file)), left_(file_->size()) {}

  uint64_t left() const { return left_; }
  uint32_t crc() const { return crc_; }

  void read(void* out, uint64_t bytes) {
    if (bytes > left_) fail(Code::kDataLoss, "token cache ", file_->path(), ": cut off");
    const std::span<std::byte> target(static_cast<std::byte*>(out), bytes);
    for (uint64_t done = 0; done < bytes;) {
      if (at_ == filled_) refill();
      const size_t part = static_cast<size_t>(std::min<uint64_t>(bytes - done, filled_ - at_));
      std::memcpy(target.data() + done, buffer_.data() + at_, part);
      at_ += part;
      done += part;
    }
    left_ -= bytes;
    crc_ = crc32c(crc_, target);
  }

  template <typename T>
  T value() {
    T out;
    read(&out, sizeof(T));
    return out;
  }

  std::string text(uint64_t bytes) {
    if (bytes > left_) fail(Code::kDataLoss, "token cache ", file_->path(), ": cut off");
    std::string out(bytes, '\0');
    read(out.data(), bytes);
    return out;
  }

 private:
  void refill() {
    filled_ = static_cast<size_t>(std::min<uint64_t>(kBufferBytes, file_->size() - offset_));
    if (filled_ == 0) fail(Code::kDataLoss, "token cache ", file_->path(), ": cut off");
    buffer_.resize(filled_);
    file_->read_at(offset_, std::span(buffer_));
    offset_ += filled_;
    at_ = 0;
  }

  std::unique_ptr<ReadableFile> file_;
  std::vector<std::byte> buffer_;
  size_t at_ = 0, filled_ = 0;
  uint64_t offset_ = 0, left_;
  uint32_t crc_ = 0;
};

// Sequential writing with a checksum.
class Output {
 public:
  explicit Output(WritableFile* file) : file_(file) { buffer_.reserve(kBufferBytes); }

  void write(const void* data, size_t bytes) {
    const std::span<const std::byte> source(static_cast<const std::byte*>(data), bytes);
    crc_ = crc32c(crc_, source);
    buffer_.insert(buffer_.end(), source.begin(), source.end());
    if (buffer_.size() >= kBufferBytes) flush();
  }
  void text(std::string_view s) { write(s.data(), s.size()); }
  template <typename T>
  void value(T v) {
    write(&v, sizeof(T));
  }
  void flush() {
    file_->write(buffer_);
    buffer_.clear();
  }
  uint32_t crc() const { return crc_; }

 private:
  WritableFile* file_;
  std::vector<std::byte> buffer_;
  uint32_t crc_ = 0;
};

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
  Input in(fs.open(path));
  if (in.text(kMagic.size()) != kMagic) fail(Code::kDataLoss, "token cache ", path, ": not a token cache");
  if (in.text(kDigits) != key) fail(Code::kDataLoss, "token cache ", path, ": belongs to other data");
  CachedSamples out;
  const std::string report = in.text(in.value<uint64_t>());
  out.identity = in.text(kDigits);
  std::vector<int32_t> tokens, targets;
  int64_t last_row = -1;
  for (uint64_t left = in.value<uint64_t>(); left > 0; --left) {
    const int64_t row = in.value<int64_t>();
    const uint64_t length = in.value<uint64_t>();
    if (length == 0 || length > in.left() / (2 * sizeof(int32_t)))
      fail(Code::kDataLoss, "token cache ", path, ": cut off");
    tokens.resize(length);
    targets.resize(length);
    in.read(tokens.data(), length * sizeof(int32_t));
    in.read(targets.data(), length * sizeof(int32_t));
    const auto is_id = [&](int32_t id) { return id >= 0 && id < vocabulary; };
    if (!std::all_of(tokens.begin(), tokens.end(), is_id) ||
        !std::all_of(targets.begin(), targets.end(), [&](int32_t id) { return id == kIgnore || is_id(id); })) {
      fail(Code::kDataLoss, "token cache ", path, ": a sample holds what is no token of the vocabulary");
    }
    if (row < 0 || row <= last_row) fail(Code::kDataLoss, "token cache ", path, ": samples are out of order");
    last_row = row;
    store->append(row, tokens, targets);
  }
  const uint32_t expected = in.crc();
  if (in.value<uint32_t>() != expected || in.left() != 0)
    fail(Code::kDataLoss, "token cache ", path, ": checksum differs");
  out.report = Report::from_json(parse_json(report, path));
  if (!is_consistent(out.report, last_row, store->size())) {
    fail(Code::kDataLoss, "token cache ", path, ": its report belongs to other samples");
  }
  return out;
}

void write_token_cache(FileSystem& fs, const std::string& path, const std::string& key,
                       const SampleStore& store, const CachedSamples& cached) {
  fs.make_folders(parent_path(path));
  replace_file(fs, path, [&](WritableFile& file) {
    Output out(&file);
    const std::string report = to_text(cached.report.to_json());
    out.text(kMagic);
    out.text(key);
    out.value<uint64_t>(report.size());
    out.text(report);
    out.text(cached.identity);
    out.value<uint64_t>(static_cast<uint64_t>(store.size()));
    for (int64_t i = 0; i < store.size(); ++i) {
      const Sample sample = store.at(i);
      out.value<int64_t>(sample.row);
      out.value<uint64_t>(sample.tokens.size());
      out.write(sample.tokens.data(), sample.tokens.size_bytes());
      out.write(sample.targets.data(), sample.targets.size_bytes());
    }
    out.value<uint32_t>(out.crc());
    out.flush();
  });
}

}  // namespace inlaid::data

// Opening a data set. Rows are read one after the other, encoded on the pool in batches, and taken over in
// the order of the files, so that samples, report and the first error are the same for any number of threads.
#include "sdk/data/dataset.h"

#include <exception>
#include <map>
#include <optional>
#include <utility>

#include "sdk/base/error.h"
#include "sdk/base/hash.h"
#include "sdk/data/conversation.h"
#include "sdk/data/encode_row.h"
#include "sdk/data/glob.h"
#include "sdk/data/row_reader.h"
#include "sdk/data/sample_store.h"
#include "sdk/data/token_cache.h"
#include "sdk/base/utf8.h"

namespace inlaid::data {
namespace {

// Text held at a time; a single row may be longer.
constexpr size_t kBatchBytes = size_t{4} << 20;
constexpr size_t kBatchRows = 4096;
// Reasons and names come from files; reports stay readable.
constexpr size_t kMostReasonBytes = 500;
constexpr size_t kMostUnusedColumns = 1000;

struct InputFile {
  std::string path;
  const Source* source;
  Format format;  // kUnknown = told by the first row
};

// A row on its way: what was read, and what became of it.
struct Work {
  RawRow raw;
  Format format = Format::kUnknown;
  bool other_side = false;
  EncodedRow encoded;
  std::string bad;           // reason
  std::exception_ptr fault;  // an error that is not the row's
};

// Deterministic in the row's bytes alone: neither order nor other rows matter, and equal rows fall on the
// same side.
bool is_held_out(std::string_view row, double fraction) {
  const uint64_t hash = std::stoull(sha256_hex(row).substr(0, 16), nullptr, 16);
  return static_cast<double>(hash >> 11) * 0x1p-53 < fraction;
}

std::vector<InputFile> list_files(const DatasetOptions& options, FileSystem& fs) {
  if (options.sources.empty()) fail(Code::kInvalidArgument, "data: no source is given");
  std::vector<InputFile> files;
  for (const Source& source : options.sources) {
    const Format format = parse_format(source.format);
    check_renames(source.columns, "data source '" + source.path + "'");
    if (source.limit < 0) {
      fail(Code::kInvalidArgument, "data source '", source.path, "': limit ", source.limit,
           " must not be negative");
    }
    for (std::string& path : expand_glob(fs, source.path))
      files.push_back({std::move(path), &source, format});
  }
  return files;
}

void check_options(const DatasetOptions& options) {
  if (options.on_bad_row != "error" && options.on_bad_row != "list") {
    fail(Code::kInvalidArgument, "data.on_bad_row '", excerpt(options.on_bad_row),
         "' is not one of error, list");
  }
  if (!(options.eval_fraction >= 0 && options.eval_fraction < 1)) {
    fail(Code::kInvalidArgument, "data.eval_fraction ", options.eval_fraction, " must be from 0 to below 1");
  }
  if (options.held_out && options.eval_fraction == 0) {
    fail(Code::kInvalidArgument, "data.eval_fraction is 0: no row is held out");
  }
}

// The token cache that is written beside the building of a data set. As long as the samples are in memory the run does not need
// it, so a failure is only noted; afterwards it is where the samples are.
class CacheFile {
 public:
  CacheFile() = default;  // none
  CacheFile(FileSystem& fs, const std::string& path, const std::string& key) {
    attempt(/*needed=*/false, [&] { writer_ = std::make_unique<TokenCacheWriter>(fs, path, key); });
  }

  void append(int64_t row, std::span<const int32_t> tokens, std::span<const int32_t> targets, bool resident) {
    if (!resident && failure_) throw *failure_;
    if (writer_) attempt(!resident, [&] { writer_->append(row, tokens, targets); });
  }
  void finish(const CachedSamples& cached, bool resident) {
    if (writer_) attempt(!resident, [&] { writer_->finish(cached); });
    writer_.reset();
  }
  // Why there is no file; "" if there is one, or was none to be.
  std::string failure() const { return failure_ ? failure_->message() : ""; }

 private:
  template <typename F>
  void attempt(bool needed, const F& step) {
    try {
      step();
    } catch (const Error& e) {
      writer_.reset();
      if (needed) throw;
      failure_ = e;
    }
  }

  std::unique_ptr<TokenCacheWriter> writer_;
  std::optional<Error> failure_;
};

class Builder {
 public:
  Builder(const DatasetOptions& options, FileSystem& fs, ThreadPool& pool, const RowEncoder& encoder,
          SampleStore* store, CacheFile* cache)
      : options_(options), fs_(fs), pool_(pool), encoder_(encoder), store_(store), cache_(cache) {}

  void add(const InputFile& input, int64_t* left);
  CachedSamples finish();
  // SHA-256 of the files that were read to their end.
  const std::map<std::string, std::string>& hashes() const { return hashes_; }

 private:
  void decide_format(const InputFile& input, Work* work);
  void encode(const InputFile& input, bool plain_text, Work* work) const;
  void take(const Work& work);
  void refuse(int64_t row, const std::string& reason, bool always);
  void note_unused(const std::vector<std::string>& columns);
  void warn();

  const DatasetOptions& options_;
  FileSystem& fs_;
  ThreadPool& pool_;
  const RowEncoder& encoder_;
  SampleStore* store_;
  CacheFile* cache_;
  Report report_;
  Format format_ = Format::kUnknown;       // of the file that is being read
  std::map<std::string, int64_t> unused_;  // likewise
  int64_t chats_ = 0, chats_without_stop_ = 0;
  std::map<std::string, std::string> hashes_;
  Sha256 identity_;
};

void Builder::decide_format(const InputFile& input, Work* work) {
  if (format_ == Format::kUnknown && work->raw.error.empty()) {
    std::string keys;
    try {
      const Json row = parse_json(work->raw.text, "JSON");
      if (row.is_object()) format_ = detect_format(row, input.source->columns, &keys);
    } catch (const Error&) {
      // The row is bad, which encode() finds and reports; a later row may tell the format.
    }
    if (format_ != Format::kUnknown) {
      report_.files.back().decided_by = "row " + std::to_string(work->raw.number) + " has " + keys;
    }
  }
  work->format = format_;
}

void Builder::encode(const InputFile& input, bool plain_text, Work* work) const {
  if (!work->raw.error.empty()) {
    work->bad = work->raw.error;
    return;
  }
  try {
    if (options_.eval_fraction > 0 &&
        is_held_out(work->raw.text, options_.eval_fraction) != options_.held_out) {
      work->other_side = true;
      return;
    }
    work->encoded = encode_row(encoder_, work->format, plain_text, work->raw.text, input.source->columns);
  } catch (const Error& e) {
    if (e.code() == Code::kInvalidArgument) {
      work->bad = e.message();
    } else {
      work->fault = std::make_exception_ptr(
          Error(e.code(), input.path + ": row " + std::to_string(work->raw.number) + ": " + e.message(),
                e.details()));
    }
  } catch (...) {
    work->fault = std::current_exception();
  }
}

void Builder::refuse(int64_t row, const std::string& reason, bool always) {
  const Report::Row entry = {report_.files.back().file, row, excerpt(reason, kMostReasonBytes)};
  if (always || options_.on_bad_row == "error") {
    const Json details = {{"file", entry.file}, {"row", entry.row}, {"reason", entry.reason}};
    throw Error(Code::kInvalidArgument, entry.file + ": row " + std::to_string(row) + ": " + entry.reason,
                to_text(details));
  }
  report_.refused.push_back(entry);
}

void Builder::note_unused(const std::vector<std::string>& columns) {
  for (const std::string& column : columns) {
    const std::string name = excerpt(column, 200);
    const bool room = unused_.size() < kMostUnusedColumns || unused_.contains(name);
    ++unused_[room ? name : "(further columns)"];
  }
}

// Takes one row over; called in order of the rows.
void Builder::take(const Work& work) {
  const int64_t row = report_.rows++;
  ++report_.files.back().rows;
  if (work.fault) std::rethrow_exception(work.fault);
  if (!work.bad.empty()) return refuse(work.raw.number, work.bad, /*always=*/work.raw.ends_file);
  if (work.other_side) {
    ++report_.held_out;
    return;
  }
  const EncodedRow& e = work.encoded;
  note_unused(e.unused_columns);
  if (!e.dropped.empty()) {
    report_.dropped.push_back({report_.files.back().file, work.raw.number, e.dropped});
    return;
  }
  store_->append(row, e.tokens, e.targets);
  cache_->append(row, e.tokens, e.targets, store_->resident());
  const int64_t header[2] = {row, static_cast<int64_t>(e.tokens.size())};
  identity_.update(std::as_bytes(std::span(header)));
  identity_.update(std::as_bytes(std::span(e.tokens)));
  identity_.update(std::as_bytes(std::span(e.targets)));
  ++report_.used;
  report_.truncated += e.truncated;
  report_.tokens += header[1];
  report_.target_tokens += e.target_tokens;
  report_.boundary_tokens += e.boundary_tokens;
  chats_ += e.chat;
  chats_without_stop_ += e.chat && !e.trains_stop;
}

// Reads one file, of which at most *left rows are wanted.
void Builder::add(const InputFile& input, int64_t* left) {
  RowReader reader(fs_, input.path);
  const bool plain_text = reader.container() == Container::kText;
  format_ = plain_text ? Format::kText : input.format;
  if (plain_text && input.format != Format::kUnknown && input.format != Format::kText) {
    fail(Code::kInvalidArgument, input.path, ": a plain text file cannot have the format ",
         format_name(input.format));
  }
  report_.files.emplace_back();
  report_.files.back().file = input.path;
  report_.files.back().container = container_name(reader.container());
  report_.files.back().decided_by = input.format != Format::kUnknown ? "configured"
                                    : plain_text                     ? "a plain text file"
                                                                     : "";
  unused_.clear();
  bool ended = false;
  while (!ended && *left > 0) {
    std::vector<Work> batch;
    size_t bytes = 0;
    while (*left > 0 && batch.size() < kBatchRows && bytes < kBatchBytes) {
      Work work;
      if (!reader.next(&work.raw)) {
        ended = true;
        break;
      }
      if (!work.raw.ends_file) --*left;
      bytes += work.raw.text.size();
      decide_format(input, &work);
      batch.push_back(std::move(work));
    }
    pool_.run(static_cast<int64_t>(batch.size()),
              [&](int64_t task, int) { encode(input, plain_text, &batch[static_cast<size_t>(task)]); });
    for (const Work& work : batch) take(work);
  }
  if (ended) hashes_[input.path] = reader.sha256();
  report_.files.back().format = format_name(format_);
  report_.files.back().unused_columns.assign(unused_.begin(), unused_.end());
}

void Builder::warn() {
  const text::ChatTemplate* chat_template = encoder_.chat_template;
  if (chats_ > 0 && chat_template->reads_clock() && !options_.template_variables.contains("date")) {
    report_.warnings.push_back("the chat template writes the present date: another day gives other samples");
  }
  if (chats_without_stop_ > 0) {
    std::string names;
    for (const std::string& name : options_.eos_candidates) names += (names.empty() ? "" : ", ") + name;
    report_.warnings.push_back(std::to_string(chats_without_stop_) + " of " + std::to_string(chats_) +
                               " chat samples train no stop token (" +
                               (names.empty() ? "none is known" : names) +
                               "): from them the model does not learn to end its turn");
  }
  if (report_.boundary_tokens > 0) {
    report_.warnings.push_back(
        std::to_string(report_.boundary_tokens) +
        " tokens begin before a trained text and end inside it; they are not trained (does a prompt end with "
        "a space?)");
  }
}

CachedSamples Builder::finish() {
  if (report_.used == 0) {
    if (report_.held_out > 0 && report_.refused.empty() && report_.dropped.empty()) {
      fail(Code::kInvalidArgument, "data.eval_fraction ", options_.eval_fraction, " holds out ",
           options_.held_out ? "none" : "all", " of the ", report_.rows, " rows of '", report_.files[0].file,
           "'; change it, or name held-out files in data.eval");
    }
    const std::string first = report_.refused.empty() ? ""
                                                      : "; the first: " + report_.refused[0].file + ": row " +
                                                            std::to_string(report_.refused[0].row) + ": " +
                                                            report_.refused[0].reason;
    fail(Code::kInvalidArgument, "data: no sample in ", report_.files.size(), " file(s), first '",
         report_.files[0].file, "': ", report_.rows, " rows, ", report_.refused.size(), " refused, ",
         report_.dropped.size(), " dropped, ", report_.held_out,
         options_.held_out ? " for training" : " held out", first);
  }
  warn();
  return {std::move(report_), identity_.hex()};
}

// Which samples came from which source: the files of the report are some of `files`, in their order.
std::vector<Part> find_parts(const DatasetOptions& options, const std::vector<InputFile>& files, const Report& report,
                             const SampleStore& store) {
  std::vector<int64_t> rows(options.sources.size());
  size_t next = 0;
  for (const Report::File& file : report.files) {
    while (next < files.size() && files[next].path != file.file) ++next;
    if (next == files.size()) fail(Code::kDataLoss, "the report names ", file.file, ", which is no file of the data set");
    rows[static_cast<size_t>(files[next++].source - options.sources.data())] += file.rows;
  }
  std::vector<Part> parts;
  int64_t sample = 0, row = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    row += rows[i];
    const int64_t begin = sample;
    while (sample < store.size() && store.row(sample) < row) ++sample;
    if (sample > begin) parts.push_back({begin, sample, options.sources[i].weight});
  }
  return parts;
}

}  // namespace

struct Dataset::State {
  std::vector<Part> parts;
  std::unique_ptr<SampleStore> store;
  CachedSamples cached;
  std::string cache_state = "off";
};

Dataset::Dataset() : state_(std::make_unique<State>()) {}
Dataset::~Dataset() = default;

int64_t Dataset::size() const {
  return state_->store->size();
}
int64_t Dataset::longest() const {
  return state_->store->longest();
}
int64_t Dataset::shortest() const {
  return state_->store->shortest();
}
const std::vector<Part>& Dataset::parts() const {
  return state_->parts;
}
const Report& Dataset::report() const {
  return state_->cached.report;
}
const std::string& Dataset::identity() const {
  return state_->cached.identity;
}
const std::string& Dataset::cache_state() const {
  return state_->cache_state;
}

bool Dataset::resident() const {
  return state_->store->resident();
}

int64_t Dataset::length(int64_t index) const {
  return state_->store->length(index);
}

Sample Dataset::sample(int64_t index) const {
  if (index < 0 || index >= size()) fail(Code::kOutOfRange, "sample ", index, " of a data set of ", size());
  return state_->store->at(index);
}

std::shared_ptr<const Dataset> Dataset::open(const DatasetOptions& options, FileSystem& fs, ThreadPool& pool,
                                             std::shared_ptr<MemoryAccount> account,
                                             std::shared_ptr<const text::Tokenizer> tokenizer,
                                             std::shared_ptr<const text::ChatTemplate> chat_template) {
  check_options(options);
  const RowEncoder encoder(options, *tokenizer, chat_template.get());
  const std::vector<InputFile> files = list_files(options, fs);
  const std::shared_ptr<Dataset> dataset(new Dataset());
  State& state = *dataset->state_;
  std::vector<std::pair<std::string, std::string>> hashes;
  std::string key, path;
  if (!options.cache_folder.empty()) {
    for (const InputFile& file : files) hashes.emplace_back(file.path, sha256_file(fs, file.path));
    key = token_cache_key(options, hashes, *tokenizer, chat_template.get());
    path = token_cache_path(options, key);
    state.cache_state = "built";
    try {
      if (fs.exists(path)) {
        state.store = std::make_unique<SampleStore>(account, options.resident_bytes);
        state.cached = read_token_cache(fs, path, key, tokenizer->vocab_size(), state.store.get());
        state.parts = find_parts(options, files, state.cached.report, *state.store);
        state.cache_state = "hit";
        return dataset;
      }
    } catch (const Error& e) {
      if (e.code() == Code::kResourceExhausted) throw;  // of memory, which building would need as well
      state.cache_state = "rebuilt: " + e.message();
    }
  }
  const bool caching = !path.empty();
  state.store = std::make_unique<SampleStore>(account, caching || options.count_only ? options.resident_bytes : 0);
  CacheFile cache = caching ? CacheFile(fs, path, key) : CacheFile();
  Builder builder(options, fs, pool, encoder, state.store.get(), &cache);
  int64_t left = 0;
  const Source* source = nullptr;
  for (const InputFile& file : files) {
    if (file.source != source) left = file.source->limit > 0 ? file.source->limit : INT64_MAX;
    source = file.source;
    if (left > 0) builder.add(file, &left);
  }
  state.cached = builder.finish();
  for (const auto& [name, hash] : hashes) {
    const auto read = builder.hashes().find(name);
    if (read != builder.hashes().end() && read->second != hash) {
      fail(Code::kFailedPrecondition, name, ": changed while it was read");
    }
  }
  state.parts = find_parts(options, files, state.cached.report, *state.store);
  cache.finish(state.cached, state.store->resident());
  if (!cache.failure().empty()) state.cache_state = "not written: " + cache.failure();
  if (caching && !state.store->resident()) state.store->attach(fs.open(path));
  return dataset;
}

}  // namespace inlaid::data

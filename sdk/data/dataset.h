// Data sets for training and evaluation: rows of files become samples of token ids with a target per
// position.
#ifndef INLAID_SDK_DATA_DATASET_H_
#define INLAID_SDK_DATA_DATASET_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sdk/base/file_system.h"
#include "sdk/base/json.h"
#include "sdk/base/memory.h"
#include "sdk/base/thread_pool.h"
#include "sdk/data/order.h"
#include "sdk/text/chat_template.h"
#include "sdk/text/tokenizer.h"

namespace inlaid::data {

// Positions without a target.
constexpr int32_t kIgnore = -100;

struct Source {
  std::string path;  // file or glob (*, ?, [a-z] within one folder level); matches are read in byte order
  std::string format = "auto";    // auto, chat, prompt_completion, alpaca, text
  Json columns = Json::object();  // renames: our name to the file's, {"messages": "dialogue", ...}
  int64_t limit = 0;              // first rows only; 0 = all
  double weight = 1;              // draws per sample and epoch in training, see order.h
};

// The `data` part of a job, see config keys data.*.
struct DatasetOptions {
  std::vector<Source> sources;
  std::string loss_on = "assistant";  // assistant, last_assistant, completion, all
  int64_t max_length = 2048;
  std::string truncation = "error";  // error, right, left, drop
  std::string on_bad_row = "error";  // error, list
  // Rows whose hash falls below the fraction are held out: keep only those (held_out) or only the others.
  double eval_fraction = 0;
  bool held_out = false;
  std::vector<std::string> eos_candidates;  // contents of end-of-turn tokens
  // Variables of the chat template for all rows. A template that writes today's date (strftime_now) makes
  // other samples every day; {"date": "2025-01-31"} sets its clock, so that a resumed run finds the samples
  // of the first one.
  Json template_variables = Json::object();
  std::string cache_folder;  // "" = no token cache
  // Samples of more bytes than this are kept in the token cache file instead of memory; without a cache they stay in memory.
  uint64_t resident_bytes = uint64_t{1} << 30;
  // Only the lengths of the samples are wanted, as a plan does: beyond resident_bytes they are not kept anywhere.
  bool count_only = false;
};

// What became of every row: rows = used + refused + dropped + held_out. Nothing is left out silently.
struct Report {
  struct Row {
    std::string file;
    int64_t row;  // 1-based line (JSONL, text: the first line of the document) or element (JSON array)
    std::string reason;
    bool operator==(const Row&) const = default;
  };
  // One file that was read, in order of reading.
  struct File {
    std::string file;
    std::string container;   // jsonl, json, text
    std::string format;      // chat, prompt_completion, alpaca, text; "" when no row told it
    std::string decided_by;  // "configured", or the row and the keys that told the format
    int64_t rows = 0;
    std::vector<std::pair<std::string, int64_t>> unused_columns;  // name, in how many rows; by name
    bool operator==(const File&) const = default;
  };
  int64_t rows = 0, used = 0, truncated = 0;
  int64_t held_out = 0;  // rows on the other side of eval_fraction
  int64_t tokens = 0, target_tokens = 0;
  // Tokens that begin before a trained span and end inside it: not trained, see loss_mask.h. Usually a prompt
  // that ends with a space.
  int64_t boundary_tokens = 0;
  std::vector<File> files;
  std::vector<Row> refused, dropped;  // refused: bad; dropped: too long under truncation = drop
  std::vector<std::string> warnings;
  Json to_json() const;
  // The inverse, for the token cache; kInvalidArgument for another shape.
  static Report from_json(const Json& json);
  bool operator==(const Report&) const = default;
};

// One sample: targets[i] is the id to predict at position i (tokens[i+1] where that is trained, else
// kIgnore).
struct Sample {
  // Identity of the sample: the running number of its row over all files in order, bad and held-out rows
  // counted too. So it is stable under shuffling, packing and splitting, and does not depend on which other
  // rows are usable.
  int64_t row = 0;
  std::vector<int32_t> tokens, targets;
};

// Immutable after open; every const member may be called from any thread.
class Dataset {
 public:
  // Reads, renders, tokenises and masks every row, on the pool. kInvalidArgument naming file, row and reason
  // for a bad row under on_bad_row = error; for an empty result; for a file that matches nothing.
  static std::shared_ptr<const Dataset> open(const DatasetOptions& options, FileSystem& fs, ThreadPool& pool,
                                             std::shared_ptr<MemoryAccount> account,
                                             std::shared_ptr<const text::Tokenizer> tokenizer,
                                             std::shared_ptr<const text::ChatTemplate> chat_template);
  ~Dataset();

  int64_t size() const;
  // kDataLoss if it lies in the token cache file, and that was changed since.
  Sample sample(int64_t index) const;
  int64_t length(int64_t index) const;  // tokens of a sample, without reading it
  bool resident() const;                // the samples lie in memory, not in the token cache file
  int64_t longest() const;   // tokens of the longest sample
  int64_t shortest() const;  // tokens of the shortest sample
  // The samples of each source that has any, in order.
  const std::vector<Part>& parts() const;
  const Report& report() const;
  // sha256 over all samples: the identity that a resumed run must find again.
  const std::string& identity() const;
  // What the token cache did: "off", "hit", "built", "rebuilt: <why the old one was not used>", "not written:
  // <why>". Not part of the report, which is the same with and without a cache.
  const std::string& cache_state() const;

 private:
  Dataset();
  struct State;
  std::unique_ptr<State> state_;
};

// Position in the endless sequence of epochs; all there is to save.
struct Cursor {
  int64_t epoch = 0;
  int64_t index = 0;  // next position in this epoch's order
  bool operator==(const Cursor&) const = default;
};

// One micro-batch: whole samples one after the other, never a padding token: attention and positions are kept
// apart by cu_seqlens, so both ways to size a batch (tokens or samples) give the same layout. Vectors hold
// exactly the rows that exist.
struct MicroBatch {
  std::vector<int32_t> tokens, targets, positions;  // [rows]
  std::vector<int64_t> row_keys;                    // [rows] (pass << 40) ^ sample row: keys of dropout (pass: see order.h)
  std::vector<int32_t> cu_seqlens;                  // [documents + 1]
  int64_t target_tokens = 0;
  Cursor next;              // cursor after this micro-batch
  bool ends_epoch = false;  // the next one starts a new epoch
  int64_t rows() const { return static_cast<int64_t>(tokens.size()); }
};

struct BatchOptions {
  uint64_t seed = 42;
  bool shuffle = true;
  int64_t micro_batch_tokens = 1024;  // packing: as many whole samples as fit, in order (next fit)
  int64_t micro_batch_size = 0;       // instead, when > 0: this many samples
  bool weighted = true;               // false: every sample once per epoch, whatever its source's weight (evaluation)
};

// Cuts the order (order.h) into micro-batches; any position is reached in O(1). No micro-batch crosses the end of an epoch.
class Batcher {
 public:
  // kInvalidArgument if the longest sample does not fit into micro_batch_tokens; that lone check makes next()
  // total.
  Batcher(std::shared_ptr<const Dataset> dataset, const BatchOptions& options);
  MicroBatch next(const Cursor& cursor) const;
  // Rows that a micro-batch can have at most (the capacity of the step program) and documents. With
  // micro_batch_size these are the rows of that many longest samples.
  int64_t row_capacity() const;
  int64_t document_capacity() const;
  // Micro-batches of one epoch (O(samples)).
  int64_t micro_batches(int64_t epoch) const;
  // Sample index at a position of an epoch's order.
  int64_t at(int64_t epoch, int64_t index) const;
  // Positions of an epoch's order.
  int64_t size() const { return order_.size(); }

 private:
  Order::Draw draw(int64_t epoch, int64_t index) const;

  std::shared_ptr<const Dataset> dataset_;
  BatchOptions options_;
  Order order_;
  int64_t row_capacity_ = 0;
};

}  // namespace inlaid::data

#endif  // INLAID_SDK_DATA_DATASET_H_

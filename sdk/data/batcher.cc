// Micro-batches from the order of samples. Packing is next fit: samples in order until one does not fit,
// which then opens the next micro-batch. Better fits (best-fit decreasing) fill more, but need a window of
// samples whose state would belong to the cursor; with next fit the position in the order is all there is.
// The loss counts target tokens, so unequal fillings do not bias it.
#include <algorithm>   // for min, nth_element
#include <functional>  // for greater
#include <numeric>     // for accumulate

#include "sdk/base/error.h"
#include "sdk/data/dataset.h"
#include "sdk/data/permutation.h"

namespace inlaid::data {
namespace {

constexpr int kRowBits = 40;  // of a row key; the rest is the pass

void append(const Sample& sample, int64_t pass, MicroBatch* out) {
  const int64_t key = (pass << kRowBits) ^ sample.row;
  out->tokens.insert(out->tokens.end(), sample.tokens.begin(), sample.tokens.end());
  out->targets.insert(out->targets.end(), sample.targets.begin(), sample.targets.end());
  out->row_keys.insert(out->row_keys.end(), sample.tokens.size(), key);
  for (size_t i = 0; i < sample.tokens.size(); ++i) {
    out->positions.push_back(static_cast<int32_t>(i));
    out->target_tokens += sample.targets[i] != kIgnore;
  }
  out->cu_seqlens.push_back(static_cast<int32_t>(out->tokens.size()));
}

// Rows of the `count` longest samples.
int64_t longest_rows(const Dataset& dataset, int64_t count) {
  std::vector<int64_t> lengths(static_cast<size_t>(dataset.size()));
  for (int64_t i = 0; i < dataset.size(); ++i) {
    lengths[static_cast<size_t>(i)] = dataset.length(i);
  }
  const auto end = lengths.begin() + std::min(count, dataset.size());
  if (end != lengths.end()) std::nth_element(lengths.begin(), end, lengths.end(), std::greater<>());
  return std::accumulate(lengths.begin(), end, int64_t{0});
}

Order order_of(const Dataset& dataset, const BatchOptions& options) {
  std::vector<Part> parts = dataset.parts();
  if (!options.weighted) {
    for (Part& part : parts) part.weight = 1;
  }
  return Order(parts, options.seed, options.shuffle);
}

}  // namespace

Batcher::Batcher(std::shared_ptr<const Dataset> dataset, const BatchOptions& options)
    : dataset_(std::move(dataset)), options_(options), order_(order_of(*dataset_, options)) {
  constexpr int64_t kMostRows = int64_t{1} << 30;  // positions and offsets are 32-bit
  if (options_.micro_batch_size < 0) {
    fail(Code::kInvalidArgument, "train.micro_batch_size ", options_.micro_batch_size, " must be positive");
  }
  if (options_.micro_batch_size > 0) {
    // A micro-batch may hold the longest sample several times where samples repeat.
    row_capacity_ = order_.repeats() ? options_.micro_batch_size * dataset_->longest()
                                     : longest_rows(*dataset_, options_.micro_batch_size);
    if (row_capacity_ > kMostRows) {
      fail(Code::kInvalidArgument, "train.micro_batch_size ", options_.micro_batch_size, ": the ",
           options_.micro_batch_size, " longest samples have ", row_capacity_, " tokens, more than ",
           kMostRows);
    }
    return;
  }
  row_capacity_ = options_.micro_batch_tokens;
  if (row_capacity_ < 1 || row_capacity_ > kMostRows) {
    fail(Code::kInvalidArgument, "train.micro_batch_tokens ", row_capacity_, " must be from 1 to ",
         kMostRows);
  }
  if (dataset_->longest() > row_capacity_) {
    fail(Code::kInvalidArgument, "train.micro_batch_tokens ", row_capacity_, " is less than the ",
         dataset_->longest(),
         " tokens of the longest sample; raise it, or lower data.max_length with data.truncation");
  }
}

int64_t Batcher::row_capacity() const {
  return row_capacity_;
}

int64_t Batcher::document_capacity() const {
  const int64_t most =
      options_.micro_batch_size > 0 ? options_.micro_batch_size : row_capacity_ / dataset_->shortest();
  return std::min(most, order_.size());
}

Order::Draw Batcher::draw(int64_t epoch, int64_t index) const {
  if (epoch < 0 || epoch >= (int64_t{1} << (63 - kRowBits)) || index < 0 || index >= order_.size()) {
    fail(Code::kOutOfRange, "data cursor (epoch ", epoch, ", index ", index, ") is outside an epoch of ", order_.size(),
         " samples");
  }
  return order_.at(epoch, index);
}

int64_t Batcher::at(int64_t epoch, int64_t index) const {
  return draw(epoch, index).sample;
}

MicroBatch Batcher::next(const Cursor& cursor) const {
  MicroBatch out;
  out.cu_seqlens.push_back(0);
  int64_t index = cursor.index;
  do {
    const Order::Draw drawn = draw(cursor.epoch, index);
    const int64_t documents = index - cursor.index;
    const bool fits = options_.micro_batch_size > 0
                          ? documents < options_.micro_batch_size
                          : out.rows() + dataset_->length(drawn.sample) <= row_capacity_;
    if (!fits) break;
    append(dataset_->sample(drawn.sample), drawn.pass, &out);
    ++index;
  } while (index < order_.size());
  out.ends_epoch = index == order_.size();
  out.next = out.ends_epoch ? Cursor{cursor.epoch + 1, 0} : Cursor{cursor.epoch, index};
  return out;
}

int64_t Batcher::micro_batches(int64_t epoch) const {
  const int64_t samples = order_.size();
  if (options_.micro_batch_size > 0) return (samples - 1) / options_.micro_batch_size + 1;
  int64_t batches = 1, rows = 0;
  for (int64_t i = 0; i < samples; ++i) {
    const int64_t length = static_cast<int64_t>(dataset_->sample(at(epoch, i)).tokens.size());
    if (rows + length > row_capacity_) {
      ++batches;
      rows = 0;
    }
    rows += length;
  }
  return batches;
}

}  // namespace inlaid::data

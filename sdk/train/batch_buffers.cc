#include "sdk/train/batch_buffers.h"

#include <algorithm>

#include "sdk/base/error.h"

namespace inlaid::train {
namespace {

using autograd::Input;

uint64_t input_bytes(Input input, const autograd::Capacity& capacity) {
  const auto tokens = static_cast<uint64_t>(capacity.tokens);
  uint64_t bytes = 0;
  switch (input) {
    case Input::row_keys: bytes = tokens * sizeof(int64_t); break;
    case Input::cu_seqlens:
    case Input::cu_keys: bytes = (static_cast<uint64_t>(capacity.documents) + 1) * sizeof(int32_t); break;
    default: bytes = tokens * sizeof(int32_t); break;
  }
  return (bytes + 63) / 64 * 64;
}

void check(const data::MicroBatch& batch, const autograd::Capacity& capacity, int64_t vocabulary) {
  const size_t rows = batch.tokens.size();
  if (rows == 0) fail(Code::kInvalidArgument, "the micro-batch has no rows");
  if (batch.targets.size() != rows || batch.positions.size() != rows || batch.row_keys.size() != rows) {
    fail(Code::kInvalidArgument, "tokens, targets, positions and row_keys of a micro-batch must have equal lengths");
  }
  if (batch.rows() > capacity.tokens) {
    fail(Code::kInvalidArgument, "the micro-batch has ", rows, " tokens, the trainer was made for ", capacity.tokens,
         " (train.micro_batch_tokens)");
  }
  const std::vector<int32_t>& cu = batch.cu_seqlens;
  if (cu.size() < 2 || cu.front() != 0 || cu.back() != batch.rows() || !std::is_sorted(cu.begin(), cu.end())) {
    fail(Code::kInvalidArgument, "cu_seqlens must rise from 0 to the number of rows, ", rows);
  }
  if (static_cast<int64_t>(cu.size()) - 1 > capacity.documents) {
    fail(Code::kInvalidArgument, "the micro-batch has ", cu.size() - 1, " documents, the trainer was made for ",
         capacity.documents);
  }
  for (size_t i = 0; i < rows; ++i) {
    if (batch.tokens[i] < 0 || batch.tokens[i] >= vocabulary) {
      fail(Code::kInvalidArgument, "token id ", batch.tokens[i], " at row ", i, " is outside the vocabulary of ", vocabulary);
    }
    if (batch.targets[i] != data::kIgnore && (batch.targets[i] < 0 || batch.targets[i] >= vocabulary)) {
      fail(Code::kInvalidArgument, "target id ", batch.targets[i], " at row ", i, " is neither ", data::kIgnore,
           " nor inside the vocabulary of ", vocabulary);
    }
  }
}

}  // namespace

uint64_t BatchBuffers::bytes(const autograd::Capacity& capacity) {
  uint64_t total = 0;
  for (int i = 0; i < autograd::kInputs; ++i) total += input_bytes(static_cast<Input>(i), capacity);
  return total;
}

BatchBuffers::BatchBuffers(MemoryAccount& account, const autograd::Capacity& capacity) : capacity_(capacity) {
  uint64_t offset = 0;
  for (int i = 0; i < autograd::kInputs; ++i) {
    offset_[static_cast<size_t>(i)] = offset;
    offset += input_bytes(static_cast<Input>(i), capacity);
  }
  block_ = account.allocate(Category::kData, offset, true);
}

autograd::Extents BatchBuffers::load(const data::MicroBatch& batch, int64_t vocabulary, bool needs_target) {
  check(batch, capacity_, vocabulary);
  std::copy(batch.tokens.begin(), batch.tokens.end(), array<int32_t>(Input::tokens));
  std::copy(batch.positions.begin(), batch.positions.end(), array<int32_t>(Input::positions));
  std::copy(batch.row_keys.begin(), batch.row_keys.end(), array<int64_t>(Input::row_keys));
  std::copy(batch.cu_seqlens.begin(), batch.cu_seqlens.end(), array<int32_t>(Input::cu_seqlens));
  for (size_t i = 0; i + 1 < batch.cu_seqlens.size(); ++i) {
    const int32_t begin = batch.cu_seqlens[i], end = batch.cu_seqlens[i + 1];
    if (begin == end) continue;
    std::fill(array<int32_t>(Input::lengths) + begin, array<int32_t>(Input::lengths) + end,
              batch.positions[static_cast<size_t>(end) - 1] + 1);
  }
  autograd::Extents extents;
  extents.tokens = batch.rows();
  extents.documents = static_cast<int64_t>(batch.cu_seqlens.size()) - 1;
  for (int64_t row = 0; row < batch.rows(); ++row) {
    const int32_t target = batch.targets[static_cast<size_t>(row)];
    if (target == data::kIgnore) continue;
    array<int32_t>(Input::target_ids)[extents.targets] = target;
    array<int32_t>(Input::target_rows)[extents.targets] = static_cast<int32_t>(row);
    ++extents.targets;
  }
  if (needs_target && extents.targets == 0) fail(Code::kInvalidArgument, "the micro-batch has no target: every row is ignored");
  return extents;
}

autograd::Extents BatchBuffers::load_sequence(std::span<const int32_t> ids, int64_t past, int64_t length) {
  INLAID_CHECK(!ids.empty() && static_cast<int64_t>(ids.size()) <= capacity_.tokens);
  const auto rows = static_cast<int32_t>(ids.size());
  length = std::max(length, past + rows);
  for (int32_t row = 0; row < rows; ++row) {
    array<int32_t>(Input::tokens)[row] = ids[static_cast<size_t>(row)];
    array<int32_t>(Input::positions)[row] = static_cast<int32_t>(past) + row;
    array<int64_t>(Input::row_keys)[row] = 0;
    array<int32_t>(Input::lengths)[row] = static_cast<int32_t>(length);
  }
  array<int32_t>(Input::cu_seqlens)[0] = 0;
  array<int32_t>(Input::cu_seqlens)[1] = rows;
  array<int32_t>(Input::cu_keys)[0] = 0;
  array<int32_t>(Input::cu_keys)[1] = static_cast<int32_t>(past) + rows;
  array<int32_t>(Input::target_rows)[0] = rows - 1;
  return {rows, 1, 1, past};
}

void BatchBuffers::bind(autograd::Binding& binding) const {
  for (int i = 0; i < autograd::kInputs; ++i) {
    binding.inputs[static_cast<size_t>(i)] = block_.data() + offset_[static_cast<size_t>(i)];
  }
}

}  // namespace inlaid::train

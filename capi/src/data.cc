#include <limits>

#include "capi/include/inlaid.h"
#include "capi/src/dlpack.h"
#include "capi/src/guard.h"
#include "capi/src/handles.h"

using namespace inlaid;
using namespace inlaid::capi;

namespace {

std::vector<int32_t> &member(BatchState &batch, const std::string &name) {
  if (name == "tokens") return batch.tokens;
  if (name == "targets") return batch.targets;
  if (name == "cu_seqlens") return batch.cu_seqlens;
  fail(Code::kInvalidArgument, "unknown tensor '", name, "'; a batch has tokens, targets and cu_seqlens");
}

void put(BatchState &batch, const std::string &name, std::vector<int32_t> values) {
  std::vector<int32_t> &slot = member(batch, name);
  if (!slot.empty()) fail(Code::kAlreadyExists, "the batch already has '", name, "'");
  if (values.empty()) fail(Code::kInvalidArgument, "'", name, "' has no values");
  slot = std::move(values);
}

// The values of a host tensor of int32 or int64, one dimension.
std::vector<int32_t> read(const DLManagedTensorVersioned &managed, const std::string &name) {
  if (managed.version.major != 1) {
    fail(Code::kInvalidArgument, "'", name, "' is of DLPack version ", managed.version.major, "; 1 is supported");
  }
  const DLTensor &t = managed.dl_tensor;
  if (t.device.device_type != 1) fail(Code::kInvalidArgument, "'", name, "' must be in host memory");
  if (t.ndim != 1) fail(Code::kInvalidArgument, "'", name, "' has ", t.ndim, " dimensions, must have 1");
  if (t.dtype.code != 0 || (t.dtype.bits != 32 && t.dtype.bits != 64) || t.dtype.lanes != 1) {
    fail(Code::kInvalidArgument, "'", name, "' must be of int32 or int64");
  }
  if (t.strides != nullptr && t.shape[0] > 1 && t.strides[0] != 1) {
    fail(Code::kInvalidArgument, "'", name, "' must be contiguous");
  }
  if (t.shape[0] < 0 || t.shape[0] > (int64_t{1} << 30)) fail(Code::kInvalidArgument, "'", name, "' has ", t.shape[0], " values");
  std::vector<int32_t> values(static_cast<size_t>(t.shape[0]));
  const auto *bytes = static_cast<const std::byte *>(t.data) + t.byte_offset;
  for (size_t i = 0; i < values.size(); ++i) {
    const int64_t value = t.dtype.bits == 32 ? reinterpret_cast<const int32_t *>(bytes)[i]
                                             : reinterpret_cast<const int64_t *>(bytes)[i];
    if (value < std::numeric_limits<int32_t>::min() || value > std::numeric_limits<int32_t>::max()) {
      fail(Code::kInvalidArgument, "'", name, "'[", i, "] = ", value, " does not fit into 32 bits");
    }
    values[i] = static_cast<int32_t>(value);
  }
  return values;
}

}  // namespace

inlaid_error *inlaid_dataset_open(inlaid_model *m, const inlaid_config *c, const char *split,
                                  inlaid_dataset **out) INLAID_NOEXCEPT {
  if (out != nullptr) *out = nullptr;
  return guard([&] {
    required(out, "out");
    const std::shared_ptr<ModelState> &model = checked(m, "model").value;
    model->state->check_up();
    const std::string name = &required(split, "split");
    if (name != "train" && name != "eval") fail(Code::kInvalidArgument, "split '", name, "' is none of train, eval");
    std::shared_ptr<const data::Dataset> dataset =
        train::open_data(*checked(c, "config").value, *model->model, name == "eval");
    if (dataset == nullptr) {
      fail(Code::kNotFound, "the configuration has no data for '", name, "' (",
           name == "train" ? "data.train" : "data.eval or data.eval_fraction", ")");
    }
    *out = new inlaid_dataset(std::move(dataset), model->state);
  });
}

inlaid_error *inlaid_dataset_report(inlaid_dataset *d, inlaid_buffer **out_json) INLAID_NOEXCEPT {
  if (out_json != nullptr) *out_json = nullptr;
  return guard([&] {
    required(out_json, "out_json");
    *out_json = buffer(to_text(checked(d, "dataset").value->report().to_json()));
  });
}

uint64_t inlaid_dataset_size(const inlaid_dataset *d) INLAID_NOEXCEPT {
  return d == nullptr ? 0 : static_cast<uint64_t>(d->value->size());
}

inlaid_error *inlaid_dataset_sample(inlaid_dataset *d, uint64_t index, inlaid_buffer **out_json) INLAID_NOEXCEPT {
  if (out_json != nullptr) *out_json = nullptr;
  return guard([&] {
    required(out_json, "out_json");
    const data::Dataset &dataset = *checked(d, "dataset").value;
    if (index >= static_cast<uint64_t>(dataset.size())) {
      fail(Code::kOutOfRange, "sample ", index, " is past the end, ", dataset.size());
    }
    const data::Sample sample = dataset.sample(static_cast<int64_t>(index));
    Json json;
    json["row"] = sample.row;
    json["ids"] = std::vector<int32_t>(sample.tokens.begin(), sample.tokens.end());
    json["targets"] = std::vector<int32_t>(sample.targets.begin(), sample.targets.end());
    *out_json = buffer(to_text(json));
  });
}

void inlaid_dataset_release(inlaid_dataset *d) INLAID_NOEXCEPT { drop(d); }

inlaid_error *inlaid_batch_create(inlaid_batch **out) INLAID_NOEXCEPT {
  if (out != nullptr) *out = nullptr;
  return guard([&] {
    required(out, "out");
    *out = new inlaid_batch(std::make_shared<BatchState>());
  });
}

inlaid_error *inlaid_batch_add(inlaid_batch *b, const char *name, DLManagedTensorVersioned *t) INLAID_NOEXCEPT {
  return guard([&] {
    inlaid_batch &batch = checked(b, "batch");
    const Owner owner(batch, "batch");
    const std::string slot = &required(name, "name");
    put(*batch.value, slot, read(required(t, "t"), slot));
    if (t->deleter != nullptr) t->deleter(t);
  });
}

inlaid_error *inlaid_batch_add_int32(inlaid_batch *b, const char *name, const void *int32_values,
                                     uint64_t bytes) INLAID_NOEXCEPT {
  return guard([&] {
    inlaid_batch &batch = checked(b, "batch");
    const Owner owner(batch, "batch");
    if (bytes % sizeof(int32_t) != 0) fail(Code::kInvalidArgument, "bytes = ", bytes, " is no multiple of 4");
    if (int32_values == nullptr) fail(Code::kInvalidArgument, "int32_values must not be NULL");
    const auto *values = static_cast<const int32_t *>(int32_values);
    put(*batch.value, &required(name, "name"), {values, values + bytes / sizeof(int32_t)});
  });
}

void inlaid_batch_release(inlaid_batch *b) INLAID_NOEXCEPT { drop(b); }

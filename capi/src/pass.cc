#include "sdk/train/pass.h"

#include <cstring>

#include "capi/include/inlaid.h"
#include "capi/src/dlpack.h"
#include "capi/src/guard.h"
#include "capi/src/handles.h"
#include "sdk/base/json.h"

using namespace inlaid;
using namespace inlaid::capi;

namespace {

train::OutputSet parse_outputs(const char *text) {
  const Json json = text == nullptr ? Json::object() : parse_json(text, "json");
  if (!json.is_object()) fail(Code::kInvalidArgument, "json must be an object");
  train::OutputSet outputs{};
  bool any = false;
  for (const auto &[key, value] : json.items()) {
    if (key != "outputs") fail(Code::kInvalidArgument, "json: unknown key '", key, "'; did you mean 'outputs'?");
    if (value.is_null()) continue;
    if (!value.is_array() || value.empty()) fail(Code::kInvalidArgument, "json: outputs must be a list of names");
    for (const Json &name : value) {
      if (!name.is_string()) fail(Code::kInvalidArgument, "json: outputs must be a list of names");
      outputs[static_cast<size_t>(train::parse_output(name.get<std::string>()))] = any = true;
    }
  }
  if (!any) outputs[static_cast<size_t>(train::Output::log_probs)] = true;
  return outputs;
}

bool needs_targets(const train::OutputSet &outputs) { return outputs[static_cast<size_t>(train::Output::log_probs)]; }

inlaid_pass *new_pass(std::shared_ptr<RuntimeState> state, std::shared_ptr<TrainerState> trainer,
                      std::unique_ptr<train::Pass> pass) {
  auto value = std::make_shared<PassState>();
  value->state = std::move(state);
  value->trainer = std::move(trainer);
  value->pass = std::move(pass);
  return new inlaid_pass(std::move(value));
}

// An output as DLPack sees it; shares the memory.
struct SharedTensor {
  DLManagedTensorVersioned managed{};
  Tensor tensor;
  Shape shape, strides;
};

// The host's tensor without its owner: contiguous float32 in host memory.
Tensor view(const DLManagedTensorVersioned &managed, const std::string &name) {
  if (managed.version.major != 1) {
    fail(Code::kInvalidArgument, "the gradient of ", name, " is of DLPack version ", managed.version.major, "; 1 is supported");
  }
  const DLTensor &t = managed.dl_tensor;
  if (t.device.device_type != 1) fail(Code::kInvalidArgument, "the gradient of ", name, " must be in host memory");
  if (t.dtype.code != 2 || t.dtype.bits != 32 || t.dtype.lanes != 1) {
    fail(Code::kInvalidArgument, "the gradient of ", name, " must be of float32");
  }
  if (t.ndim < 0 || t.ndim > 8 || (t.ndim > 0 && t.shape == nullptr)) {
    fail(Code::kInvalidArgument, "the gradient of ", name, " has ", t.ndim, " dimensions");
  }
  const Shape shape(t.shape, t.shape + t.ndim);
  element_count(shape);
  int64_t stride = 1;
  for (size_t i = shape.size(); i > 0; --i) {
    if (t.strides != nullptr && shape[i - 1] > 1 && t.strides[i - 1] != stride) {
      fail(Code::kInvalidArgument, "the gradient of ", name, " must be contiguous");
    }
    stride *= shape[i - 1];
  }
  void *data = static_cast<std::byte *>(t.data) + t.byte_offset;
  if (t.data == nullptr || reinterpret_cast<uintptr_t>(data) % alignof(float) != 0) {
    fail(Code::kInvalidArgument, "the gradient of ", name, " has no data, or data that is not aligned");
  }
  return Tensor(nullptr, data, DType::f32, shape);
}

// A tensor of the host, let go with the last reference; until it is taken, the caller is its owner.
struct HostTensor {
  explicit HostTensor(DLManagedTensorVersioned *t) : managed(t) {}
  HostTensor(const HostTensor &) = delete;
  HostTensor &operator=(const HostTensor &) = delete;
  ~HostTensor() {
    if (taken && managed->deleter != nullptr) managed->deleter(managed);
  }
  DLManagedTensorVersioned *managed;
  bool taken = false;
};

// Null where there is none: for getters that cannot fail.
const Tensor *find_output(const inlaid_pass *p, const char *output) noexcept {
  if (p == nullptr || output == nullptr) return nullptr;
  for (int i = 0; i < train::kOutputs; ++i) {
    const auto candidate = static_cast<train::Output>(i);
    if (std::strcmp(output, train::output_name(candidate)) != 0) continue;
    const Tensor &tensor = p->value->pass->output(candidate);
    return tensor ? &tensor : nullptr;
  }
  return nullptr;
}

}  // namespace

inlaid_error *inlaid_trainer_forward(inlaid_trainer *t, const inlaid_batch *b, const char *json, inlaid_cancel *c_or_null,
                                     inlaid_pass **out) INLAID_NOEXCEPT {
  if (out != nullptr) *out = nullptr;
  return guard([&] {
    required(out, "out");
    const std::shared_ptr<TrainerState> &trainer = checked(t, "trainer").value;
    const Owner owner(*trainer, "trainer");
    trainer->check_idle();
    const train::OutputSet outputs = parse_outputs(json);
    const data::MicroBatch batch = micro_batch(*checked(b, "batch").value, needs_targets(outputs));
    *out = new_pass(trainer->state, trainer, trainer->trainer->forward(batch, outputs, flag(c_or_null)));
  });
}

inlaid_error *inlaid_forward(inlaid_model *m, inlaid_adapter *adapter_or_null, const inlaid_batch *b, const char *json,
                             inlaid_cancel *c_or_null, inlaid_pass **out) INLAID_NOEXCEPT {
  if (out != nullptr) *out = nullptr;
  return guard([&] {
    required(out, "out");
    const ModelState &model = *checked(m, "model").value;
    model.state->check_up();
    const train::OutputSet outputs = parse_outputs(json);
    const data::MicroBatch batch = micro_batch(*checked(b, "batch").value, needs_targets(outputs));
    *out = new_pass(model.state, nullptr, train::forward(*model.model, capi::adapter_or_null(adapter_or_null).get(), batch, outputs,
                                                         flag(c_or_null)));
  });
}

inlaid_error *inlaid_pass_output(inlaid_pass *p, const char *output, DLManagedTensorVersioned **out) INLAID_NOEXCEPT {
  if (out != nullptr) *out = nullptr;
  return guard([&] {
    required(out, "out");
    const train::Pass &pass = *checked(p, "pass").value->pass;
    auto shared = std::make_unique<SharedTensor>();
    shared->tensor = pass.requested(train::parse_output(&required(output, "output")));
    shared->shape = shared->tensor.shape();
    shared->strides.assign(shared->shape.size(), 1);
    for (size_t i = shared->shape.size(); i > 1; --i) shared->strides[i - 2] = shared->strides[i - 1] * shared->shape[i - 1];
    DLManagedTensorVersioned &managed = shared->managed;
    managed.version = {1, 0};
    managed.manager_ctx = shared.get();
    managed.deleter = [](DLManagedTensorVersioned *self) { delete static_cast<SharedTensor *>(self->manager_ctx); };
    managed.dl_tensor = {shared->tensor.data(),  {1, 0}, static_cast<int32_t>(shared->shape.size()), {2, 32, 1},
                         shared->shape.data(), shared->strides.data(), 0};
    *out = &shared.release()->managed;
  });
}

const float *inlaid_pass_data(const inlaid_pass *p, const char *output) INLAID_NOEXCEPT {
  const Tensor *tensor = find_output(p, output);
  return tensor == nullptr ? nullptr : tensor->as<float>();
}

uint64_t inlaid_pass_size(const inlaid_pass *p, const char *output) INLAID_NOEXCEPT {
  const Tensor *tensor = find_output(p, output);
  uint64_t values = tensor == nullptr ? 0 : sizeof(float);
  for (size_t i = 0; tensor != nullptr && i < tensor->shape().size(); ++i) values *= static_cast<uint64_t>(tensor->shape()[i]);
  return values;
}

inlaid_error *inlaid_pass_set_gradient(inlaid_pass *p, const char *output, DLManagedTensorVersioned *t) INLAID_NOEXCEPT {
  return guard([&] {
    inlaid_pass &pass = checked(p, "pass");
    const Owner owner(pass, "pass");
    const std::string name = &required(output, "output");
    const train::Output which = train::parse_output(name);
    const Tensor host = view(required(t, "t"), name);
    auto held = std::make_shared<HostTensor>(t);
    pass.value->pass->set_gradient(which, Tensor(held, host.data(), DType::f32, host.shape()));
    held->taken = true;
  });
}

inlaid_error *inlaid_pass_set_gradient_f32(inlaid_pass *p, const char *output, const void *f32_values,
                                           uint64_t bytes) INLAID_NOEXCEPT {
  return guard([&] {
    inlaid_pass &pass = checked(p, "pass");
    const Owner owner(pass, "pass");
    const std::string name = &required(output, "output");
    const train::Output which = train::parse_output(name);
    required(static_cast<const std::byte *>(f32_values), "f32_values");
    const Tensor &value = pass.value->pass->requested(which);
    if (bytes != static_cast<uint64_t>(value.bytes())) {
      fail(Code::kInvalidArgument, "the gradient of ", name, " has ", bytes, " bytes, the output has ", value.bytes());
    }
    pass.value->pass->copy_gradient(which, f32_values);
  });
}

inlaid_error *inlaid_backward(inlaid_pass *p, double count, inlaid_cancel *c_or_null) INLAID_NOEXCEPT {
  return guard([&] {
    inlaid_pass &pass = checked(p, "pass");
    const Owner owner(pass, "pass");
    PassState &state = *pass.value;
    if (state.trainer == nullptr) {
      state.pass->check_backward();
      fail(Code::kInternal, "a pass with gradients has no trainer");
    }
    const Owner trainer_owner(*state.trainer, "trainer");
    state.trainer->check_idle();
    state.trainer->trainer->backward(*state.pass, count, flag(c_or_null));
  });
}

void inlaid_pass_release(inlaid_pass *p) INLAID_NOEXCEPT { drop(p); }

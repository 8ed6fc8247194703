// Forward and backward for losses of the host's own, through the C API: tensors without copies, who frees what and when, the errors.
#include <cmath>
#include <cstring>
#include <limits>
#include <thread>

#include "support.h"

namespace capi_test {
namespace {

// DLPack 1.x, as its header lays it out.
struct DlTensor {
  uint32_t major = 1, minor = 0;
  void* context = nullptr;
  void (*deleter)(DlTensor*) = nullptr;
  uint64_t flags = 0;
  void* data = nullptr;
  int32_t device_type = 1, device_id = 0, ndim = 1;
  uint8_t type_code = 2, bits = 32;
  uint16_t lanes = 1;
  int64_t* shape = nullptr;
  int64_t* strides = nullptr;
  uint64_t byte_offset = 0;
};
DLManagedTensorVersioned* c_tensor(DlTensor* t) { return reinterpret_cast<DLManagedTensorVersioned*>(t); }

// A tensor of the host that counts how often it was let go.
struct Lent {
  explicit Lent(std::vector<int64_t> sizes) : shape(std::move(sizes)) {
    size_t count = 1;
    for (int64_t size : shape) count *= static_cast<size_t>(size);
    values.assign(count, -1.0f);
    tensor.context = this;
    tensor.deleter = [](DlTensor* self) { ++static_cast<Lent*>(self->context)->freed; };
    tensor.data = values.data();
    tensor.ndim = static_cast<int32_t>(shape.size());
    tensor.shape = shape.data();
  }
  std::vector<int64_t> shape;
  std::vector<float> values;
  DlTensor tensor;
  int freed = 0;
};

class PassTest : public testing::Test {
 protected:
  PassTest() {
    const int32_t tokens[] = {5, 6, 7, 8, 9, 10}, targets[] = {6, 7, -100, 9, 10, 11}, ends[] = {0, 3, 6};
    ok(inlaid_batch_add_int32(batch.get(), "tokens", tokens, sizeof tokens));
    ok(inlaid_batch_add_int32(batch.get(), "cu_seqlens", ends, sizeof ends));
    ok(inlaid_batch_add_int32(bare.get(), "tokens", tokens, sizeof tokens));
    ok(inlaid_batch_add_int32(batch.get(), "targets", targets, sizeof targets));
  }
  Pass forward(const char* options = nullptr) {
    return make<Pass>(inlaid_trainer_forward, trainer.get(), batch.get(), options, nullptr);
  }
  int64_t activations() {
    return parsed(inlaid_runtime_describe, runtime.get())["memory"]["activations"]["current"].get<int64_t>();
  }

  Folder folder;
  Runtime runtime = make_runtime(1);
  Config config = make_config(folder.job(""));
  Model model = make<Model>(inlaid_model_create, runtime.get(), config.get(), nullptr);
  Adapter adapter = make<Adapter>(inlaid_adapter_create, model.get(), config.get());
  Trainer trainer = make<Trainer>(inlaid_trainer_create, model.get(), adapter.get(), config.get());
  Batch batch = make<Batch>(inlaid_batch_create), bare = make<Batch>(inlaid_batch_create);
};

double value(const Event& event, const char* name) { return inlaid_event_metric(event.get(), name); }

TEST_F(PassTest, TheEnginesOwnLossWrittenByTheHostIsOneStepOfTheEngine) {
  const Adapter twin = make<Adapter>(inlaid_adapter_create, model.get(), config.get());
  const Trainer engine = make<Trainer>(inlaid_trainer_create, model.get(), twin.get(), config.get());
  const Event micro = make<Event>(inlaid_trainer_accumulate, engine.get(), batch.get(), nullptr);
  const Event expected = make<Event>(inlaid_trainer_apply, engine.get());

  const Pass pass = forward();
  const float* log_probs = inlaid_pass_data(pass.get(), "log_probs");
  ASSERT_EQ(inlaid_pass_size(pass.get(), "log_probs"), 6 * sizeof(float));
  double sum = 0;
  for (int row = 0; row < 6; ++row) sum -= double{log_probs[row]};
  EXPECT_EQ(sum / 5, value(micro, "loss"));
  EXPECT_EQ(log_probs[2], 0);
  const std::vector<float> gradient(6, -1.0f);
  ok(inlaid_pass_set_gradient_f32(pass.get(), "log_probs", gradient.data(), 24));
  ok(inlaid_backward(pass.get(), 5, nullptr));
  const Event got = make<Event>(inlaid_trainer_apply, trainer.get());
  EXPECT_EQ(value(got, "grad_norm"), value(expected, "grad_norm"));
  EXPECT_EQ(value(got, "tokens"), 6);
  EXPECT_EQ(value(got, "micro_batches"), 1);
  EXPECT_TRUE(std::isnan(value(got, "loss"))) << "the loss is the host's";
  ok(inlaid_adapter_save(adapter.get(), (folder / "a").c_str()));
  ok(inlaid_adapter_save(twin.get(), (folder / "b").c_str()));
  EXPECT_EQ(read_file(folder / "a/adapter_model.safetensors"), read_file(folder / "b/adapter_model.safetensors"));
}

TEST_F(PassTest, OutputsAreSharedNotCopiedAndOutliveEverything) {
  Pass pass = forward(R"({"outputs": ["logits", "hidden_states"]})");
  DLManagedTensorVersioned* out = nullptr;
  ok(inlaid_pass_output(pass.get(), "logits", &out));
  auto* logits = reinterpret_cast<DlTensor*>(out);
  EXPECT_EQ(logits->data, static_cast<const void*>(inlaid_pass_data(pass.get(), "logits")));
  EXPECT_EQ(logits->ndim, 2);
  EXPECT_EQ(logits->shape[0], 6);
  EXPECT_EQ(logits->shape[1], 600);
  EXPECT_EQ(logits->strides[0], 600);
  EXPECT_EQ(logits->strides[1], 1);
  EXPECT_EQ(logits->type_code, 2);
  EXPECT_EQ(logits->bits, 32);
  EXPECT_EQ(logits->device_type, 1);
  EXPECT_EQ(inlaid_pass_size(pass.get(), "hidden_states"), 6 * 32 * sizeof(float));
  EXPECT_EQ(inlaid_pass_data(pass.get(), "log_probs"), nullptr);
  EXPECT_EQ(inlaid_pass_size(pass.get(), "log_probs"), 0u);
  EXPECT_EQ(inlaid_pass_data(pass.get(), "nothing"), nullptr);
  const Pass evaluated = make<Pass>(inlaid_forward, model.get(), adapter.get(), batch.get(), R"({"outputs": ["log_probs", "logits"]})",
                                    nullptr);
  const float* row = inlaid_pass_data(evaluated.get(), "logits");
  double total = 0;
  for (int i = 0; i < 600; ++i) total += std::exp(double{row[i]});
  EXPECT_NEAR(inlaid_pass_data(evaluated.get(), "log_probs")[0], row[6] - std::log(total), 1e-5);
  const float first = static_cast<float*>(logits->data)[0];
  pass.reset();
  trainer.reset();
  adapter.reset();
  EXPECT_EQ(static_cast<float*>(logits->data)[0], first);
  std::thread([&] { logits->deleter(logits); }).join();
}

TEST_F(PassTest, GradientsAreTakenOnSuccessAndLetGoByBackwardOrRelease) {
  Lent read({6}), dropped({6}), replaced({6}), small({5});
  Pass pass = forward();
  EXPECT_TRUE(fails(inlaid_pass_set_gradient(pass.get(), "log_probs", c_tensor(&small.tensor)), INLAID_INVALID_ARGUMENT, {"[6]", "[5]"}));
  EXPECT_EQ(small.freed, 0) << "still the caller's";
  ok(inlaid_pass_set_gradient(pass.get(), "log_probs", c_tensor(&replaced.tensor)));
  ok(inlaid_pass_set_gradient(pass.get(), "log_probs", c_tensor(&read.tensor)));
  EXPECT_EQ(replaced.freed, 1);
  EXPECT_EQ(read.freed, 0);
  ok(inlaid_backward(pass.get(), 0, nullptr));
  EXPECT_EQ(read.freed, 1);
  pass = forward();
  ok(inlaid_pass_set_gradient(pass.get(), "log_probs", c_tensor(&dropped.tensor)));
  pass.reset();
  EXPECT_EQ(dropped.freed, 1);
  EXPECT_EQ(read.freed, 1);
}

TEST_F(PassTest, MemoryIsHeldForBackwardOnly) {
  forward();  // the first one makes the program
  const int64_t before = activations();
  Pass pass = forward();
  const int64_t held = activations() - before;
  EXPECT_GT(held, 256 * 32 * 4 * 10);
  const std::vector<float> gradient(6, 1.0f);
  ok(inlaid_pass_set_gradient_f32(pass.get(), "log_probs", gradient.data(), 24));
  ok(inlaid_backward(pass.get(), 0, nullptr));
  EXPECT_EQ(activations() - before, 24);
  pass.reset();
  EXPECT_EQ(activations(), before);
  pass = make<Pass>(inlaid_forward, model.get(), nullptr, batch.get(), nullptr, nullptr);
  EXPECT_EQ(activations() - before, 24);
}

TEST_F(PassTest, ErrorsOfForward) {
  const auto code = INLAID_INVALID_ARGUMENT;
  EXPECT_FAILS_OUT(inlaid_pass, code, {"NULL"}, inlaid_trainer_forward, nullptr, batch.get(), nullptr, nullptr);
  EXPECT_FAILS_OUT(inlaid_pass, code, {"NULL"}, inlaid_trainer_forward, trainer.get(), nullptr, nullptr, nullptr);
  EXPECT_FAILS_OUT(inlaid_pass, code, {"NULL"}, inlaid_forward, nullptr, adapter.get(), batch.get(), nullptr, nullptr);
  EXPECT_FAILS_OUT(inlaid_pass, code, {"NULL"}, inlaid_forward, model.get(), adapter.get(), nullptr, nullptr, nullptr);
  EXPECT_TRUE(fails(inlaid_trainer_forward(trainer.get(), batch.get(), nullptr, nullptr, nullptr), code, {"out"}));
  EXPECT_TRUE(fails(inlaid_forward(model.get(), nullptr, batch.get(), nullptr, nullptr, nullptr), code, {"out"}));
  const auto refused = [&](const char* options, std::initializer_list<std::string> words) {
    EXPECT_FAILS_OUT(inlaid_pass, code, words, inlaid_trainer_forward, trainer.get(), batch.get(), options, nullptr);
    EXPECT_FAILS_OUT(inlaid_pass, code, words, inlaid_forward, model.get(), nullptr, batch.get(), options, nullptr);
  };
  refused("[]", {"object"});
  refused("{", {});
  refused(R"({"output": ["logits"]})", {"'output'", "'outputs'"});
  refused(R"({"outputs": "logits"})", {"outputs", "list"});
  refused(R"({"outputs": []})", {"outputs", "list"});
  refused(R"({"outputs": [1]})", {"outputs", "list"});
  refused(R"({"outputs": ["entropy"]})", {"'entropy'", "log_probs", "logits", "hidden_states"});

  EXPECT_FAILS_OUT(inlaid_pass, code, {"targets"}, inlaid_trainer_forward, trainer.get(), bare.get(), nullptr, nullptr);
  make<Pass>(inlaid_trainer_forward, trainer.get(), bare.get(), R"({"outputs": ["logits"]})", nullptr);
  const Batch empty = make<Batch>(inlaid_batch_create), wild = make<Batch>(inlaid_batch_create);
  EXPECT_FAILS_OUT(inlaid_pass, code, {"tokens"}, inlaid_forward, model.get(), nullptr, empty.get(), nullptr, nullptr);
  const std::vector<int32_t> many(257, 5);
  ok(inlaid_batch_add_int32(wild.get(), "tokens", many.data(), many.size() * 4));
  ok(inlaid_batch_add_int32(wild.get(), "targets", many.data(), many.size() * 4));
  EXPECT_FAILS_OUT(inlaid_pass, code, {"micro_batch_tokens"}, inlaid_trainer_forward, trainer.get(), wild.get(), nullptr,
                   nullptr);

  const Cancel cancel = make<Cancel>(inlaid_cancel_create);
  inlaid_cancel_trigger(cancel.get());
  EXPECT_FAILS_OUT(inlaid_pass, INLAID_CANCELLED, {}, inlaid_trainer_forward, trainer.get(), batch.get(), nullptr, cancel.get());
  EXPECT_FAILS_OUT(inlaid_pass, INLAID_CANCELLED, {}, inlaid_forward, model.get(), nullptr, batch.get(), nullptr, cancel.get());

  const Model other = make<Model>(inlaid_model_create, runtime.get(), config.get(), nullptr);
  EXPECT_FAILS_OUT(inlaid_pass, code, {"another model"}, inlaid_forward, other.get(), adapter.get(), batch.get(), nullptr, nullptr);
  // Without a parameter that trains there is no trainer whose forward could be called.
  json frozen = folder.job("", false);
  frozen["model"]["trainable"] = json::array();
  EXPECT_FAILS_OUT(inlaid_config, code, {"model.trainable"}, inlaid_config_parse, frozen.dump().c_str(), nullptr);
  frozen["model"]["trainable"] = {"no_such_parameter"};
  EXPECT_FAILS_OUT(inlaid_trainer, code, {"no_such_parameter"}, inlaid_trainer_create, other.get(), nullptr,
                   make_config(frozen).get());
}

TEST_F(PassTest, ErrorsOfGradientsAndBackward) {
  const std::vector<float> gradient(6, 1.0f);
  const Pass pass = forward();
  EXPECT_TRUE(fails(inlaid_backward(nullptr, 0, nullptr), INLAID_INVALID_ARGUMENT, {"NULL"}));
  EXPECT_TRUE(fails(inlaid_backward(pass.get(), 0, nullptr), INLAID_FAILED_PRECONDITION, {"no output", "gradient"}));
  EXPECT_FAILS_OUT(DLManagedTensorVersioned, INLAID_INVALID_ARGUMENT, {"NULL"}, inlaid_pass_output, nullptr, "logits");
  EXPECT_FAILS_OUT(DLManagedTensorVersioned, INLAID_INVALID_ARGUMENT, {"NULL"}, inlaid_pass_output, pass.get(), nullptr);
  EXPECT_FAILS_OUT(DLManagedTensorVersioned, INLAID_INVALID_ARGUMENT, {"'logit'"}, inlaid_pass_output, pass.get(), "logit");
  EXPECT_FAILS_OUT(DLManagedTensorVersioned, INLAID_NOT_FOUND, {"'logits'"}, inlaid_pass_output, pass.get(), "logits");
  EXPECT_TRUE(fails(inlaid_pass_output(pass.get(), "log_probs", nullptr), INLAID_INVALID_ARGUMENT, {"out"}));

  const auto plain = [&](const char* output, const void* values, uint64_t bytes, inlaid_code code, const char* word) {
    EXPECT_TRUE(fails(inlaid_pass_set_gradient_f32(pass.get(), output, values, bytes), code, {word}));
  };
  plain(nullptr, gradient.data(), 24, INLAID_INVALID_ARGUMENT, "NULL");
  plain("log_probs", nullptr, 24, INLAID_INVALID_ARGUMENT, "NULL");
  plain("log_probs", gradient.data(), 20, INLAID_INVALID_ARGUMENT, "20");
  plain("entropy", gradient.data(), 24, INLAID_INVALID_ARGUMENT, "entropy");
  plain("logits", gradient.data(), 24, INLAID_NOT_FOUND, "logits");
  EXPECT_TRUE(fails(inlaid_pass_set_gradient_f32(nullptr, "log_probs", gradient.data(), 24), INLAID_INVALID_ARGUMENT, {"NULL"}));
  EXPECT_TRUE(fails(inlaid_pass_set_gradient(nullptr, "log_probs", nullptr), INLAID_INVALID_ARGUMENT, {"NULL"}));

  const auto refused = [&](auto&& change, std::initializer_list<std::string> words) {
    Lent lent({6});
    change(lent.tensor);
    EXPECT_TRUE(fails(inlaid_pass_set_gradient(pass.get(), "log_probs", c_tensor(&lent.tensor)), INLAID_INVALID_ARGUMENT, words));
    EXPECT_EQ(lent.freed, 0);
  };
  int64_t wide[] = {6, 1}, negative[] = {-6}, strides[] = {2}, huge[] = {int64_t{1} << 62, int64_t{1} << 62};
  EXPECT_TRUE(fails(inlaid_pass_set_gradient(pass.get(), "log_probs", nullptr), INLAID_INVALID_ARGUMENT, {"NULL"}));
  refused([](DlTensor& t) { t.major = 2; }, {"version 2"});
  refused([](DlTensor& t) { t.device_type = 2; }, {"host memory"});
  refused([](DlTensor& t) { t.bits = 64; }, {"float32"});
  refused([](DlTensor& t) { t.type_code = 0; }, {"float32"});
  refused([](DlTensor& t) { t.lanes = 2; }, {"float32"});
  refused([](DlTensor& t) { t.ndim = -1; }, {"dimensions"});
  refused([](DlTensor& t) { t.ndim = 9; }, {"dimensions"});
  refused([](DlTensor& t) { t.ndim = 0; }, {"[6]"});
  refused([](DlTensor& t) { t.data = nullptr; }, {"no data"});
  refused([](DlTensor& t) { t.byte_offset = 2; }, {"aligned"});
  refused([&](DlTensor& t) { t.ndim = 2, t.shape = wide; }, {"[6]", "[6, 1]"});
  refused([&](DlTensor& t) { t.shape = negative; }, {});
  refused([&](DlTensor& t) { t.ndim = 2, t.shape = huge; }, {});
  refused([&](DlTensor& t) { t.strides = strides; }, {"contiguous"});

  ok(inlaid_pass_set_gradient_f32(pass.get(), "log_probs", gradient.data(), 24));
  for (const double count : {-1.0, static_cast<double>(NAN), std::numeric_limits<double>::infinity()}) {
    EXPECT_TRUE(fails(inlaid_backward(pass.get(), count, nullptr), INLAID_INVALID_ARGUMENT, {"count"}));
  }
  ok(inlaid_backward(pass.get(), 0, nullptr));
  EXPECT_TRUE(fails(inlaid_backward(pass.get(), 0, nullptr), INLAID_FAILED_PRECONDITION, {"backward already"}));
  plain("log_probs", gradient.data(), 24, INLAID_FAILED_PRECONDITION, "backward already");

  const Pass stale = forward();
  ok(inlaid_pass_set_gradient_f32(stale.get(), "log_probs", gradient.data(), 24));
  make<Event>(inlaid_trainer_apply, trainer.get());
  EXPECT_TRUE(fails(inlaid_backward(stale.get(), 0, nullptr), INLAID_FAILED_PRECONDITION, {"weights have changed"}));

  const Pass evaluated = make<Pass>(inlaid_forward, model.get(), adapter.get(), batch.get(), nullptr, nullptr);
  ok(inlaid_pass_set_gradient_f32(evaluated.get(), "log_probs", gradient.data(), 24));
  EXPECT_TRUE(fails(inlaid_backward(evaluated.get(), 0, nullptr), INLAID_FAILED_PRECONDITION, {"without gradients"}));

  // A gradient that is not finite shows at the step, as any does.
  const std::vector<float> nan(6, NAN);
  Pass last = forward();
  ok(inlaid_pass_set_gradient_f32(last.get(), "log_probs", nan.data(), 24));
  ok(inlaid_backward(last.get(), 0, nullptr));
  EXPECT_FAILS_OUT(inlaid_event, INLAID_FAILED_PRECONDITION, {"not finite"}, inlaid_trainer_apply, trainer.get());
  const Cancel cancel = make<Cancel>(inlaid_cancel_create);
  inlaid_cancel_trigger(cancel.get());
  last = forward();
  ok(inlaid_pass_set_gradient_f32(last.get(), "log_probs", gradient.data(), 24));
  EXPECT_TRUE(fails(inlaid_backward(last.get(), 0, cancel.get()), INLAID_CANCELLED));
  EXPECT_FAILS_OUT(inlaid_event, INLAID_FAILED_PRECONDITION, {"nothing was accumulated"}, inlaid_trainer_apply, trainer.get());
}

TEST_F(PassTest, ARunThatTrainsKeepsOthersOut) {
  ok(inlaid_config_set(config.get(), "train.max_steps", "1000000"));
  trainer = make<Trainer>(inlaid_trainer_create, model.get(), adapter.get(), config.get());
  const Pass pass = forward();
  const std::vector<float> gradient(6, 1.0f);
  ok(inlaid_pass_set_gradient_f32(pass.get(), "log_probs", gradient.data(), 24));
  const Dataset data = make<Dataset>(inlaid_dataset_open, model.get(), config.get(), "train");
  ok(inlaid_trainer_set_dataset(trainer.get(), data.get()));
  const RunHandle run = make<RunHandle>(inlaid_run_start, trainer.get(), nullptr, nullptr);
  int32_t kind = 0;
  while (kind != INLAID_EVENT_STEP) kind = inlaid_event_kind(make<Event>(inlaid_run_next, run.get(), int64_t{-1}).get());
  EXPECT_TRUE(fails(inlaid_backward(pass.get(), 0, nullptr), INLAID_FAILED_PRECONDITION, {"busy"}));
  EXPECT_FAILS_OUT(inlaid_pass, INLAID_FAILED_PRECONDITION, {"busy"}, inlaid_trainer_forward, trainer.get(), batch.get(), nullptr,
                   nullptr);
  inlaid_run_cancel(run.get());
  EXPECT_TRUE(fails(inlaid_run_join(run.get(), -1), INLAID_CANCELLED));
  EXPECT_TRUE(fails(inlaid_backward(pass.get(), 0, nullptr), INLAID_FAILED_PRECONDITION, {"weights have changed"}));
}

TEST_F(PassTest, NothingRunsAfterShutdown) {
  const Pass pass = forward();
  const std::vector<float> gradient(6, 1.0f);
  ok(inlaid_pass_set_gradient_f32(pass.get(), "log_probs", gradient.data(), 24));
  ok(inlaid_runtime_shutdown(runtime.get(), 1000));
  EXPECT_TRUE(fails(inlaid_backward(pass.get(), 0, nullptr), INLAID_FAILED_PRECONDITION, {"shut down"}));
  EXPECT_FAILS_OUT(inlaid_pass, INLAID_FAILED_PRECONDITION, {"shut down"}, inlaid_forward, model.get(), nullptr, batch.get(), nullptr,
                   nullptr);
}

}  // namespace
}  // namespace capi_test

// Every documented error of every function: code, message, and out pointers that are NULL afterwards.
#include <filesystem>

#include "support.h"

namespace capi_test {
namespace {

using Words = std::initializer_list<std::string>;

// Everything that a call may need, once for all tests.
class Errors : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder = new Folder();
    runtime = make_runtime(1).release();
    config = make_config(folder->job("")).release();
    model = make<Model>(inlaid_model_create, runtime, config, nullptr).release();
    adapter = make<Adapter>(inlaid_adapter_create, model, config).release();
    train_data = make<Dataset>(inlaid_dataset_open, model, config, "train").release();
    tokenizer = make<Tokenizer>(inlaid_model_tokenizer, model).release();
    trainer = make<Trainer>(inlaid_trainer_create, model, adapter, config).release();
    ok(inlaid_trainer_set_dataset(trainer, train_data));
  }
  static void TearDownTestSuite() {
    inlaid_trainer_release(trainer);
    inlaid_tokenizer_release(tokenizer);
    inlaid_dataset_release(train_data);
    inlaid_adapter_release(adapter);
    inlaid_model_release(model);
    inlaid_config_release(config);
    inlaid_runtime_release(runtime);
    delete folder;
  }
  static std::string in(const std::string& name) { return *folder / name; }
  static inline Folder* folder;
  static inline inlaid_runtime* runtime;
  static inline inlaid_config* config;
  static inline inlaid_model* model;
  static inline inlaid_adapter* adapter;
  static inline inlaid_dataset* train_data;
  static inline inlaid_tokenizer* tokenizer;
  static inline inlaid_trainer* trainer;
};

inlaid_error* fresh_error() {
  inlaid_config* none = nullptr;
  return inlaid_config_parse("[", nullptr, &none);
}

TEST_F(Errors, ReleasesAndGettersTakeNull) {
  inlaid_error_release(nullptr);
  inlaid_buffer_release(nullptr);
  inlaid_runtime_release(nullptr);
  inlaid_cancel_release(nullptr);
  inlaid_config_release(nullptr);
  inlaid_tokenizer_release(nullptr);
  inlaid_decoder_release(nullptr);
  inlaid_model_release(nullptr);
  inlaid_adapter_release(nullptr);
  inlaid_dataset_release(nullptr);
  inlaid_batch_release(nullptr);
  inlaid_trainer_release(nullptr);
  inlaid_run_release(nullptr);
  inlaid_event_release(nullptr);
  inlaid_job_release(nullptr);
  inlaid_generator_release(nullptr);
  inlaid_pass_release(nullptr);
  EXPECT_EQ(inlaid_pass_data(nullptr, "logits"), nullptr);
  EXPECT_EQ(inlaid_pass_size(nullptr, "logits"), 0u);
  inlaid_cancel_trigger(nullptr);
  inlaid_run_cancel(nullptr);
  EXPECT_EQ(inlaid_has_feature(nullptr), 0);
  EXPECT_EQ(inlaid_error_code(nullptr), INLAID_OK);
  EXPECT_STREQ(inlaid_error_message(nullptr), "");
  EXPECT_STREQ(inlaid_error_details(nullptr), "{}");
  EXPECT_EQ(inlaid_buffer_data(nullptr), nullptr);
  EXPECT_EQ(inlaid_buffer_size(nullptr), 0u);
  EXPECT_EQ(inlaid_tokenizer_vocab_size(nullptr), 0u);
  EXPECT_EQ(inlaid_dataset_size(nullptr), 0u);
  EXPECT_EQ(inlaid_event_kind(nullptr), 0);
  EXPECT_EQ(inlaid_event_step(nullptr), 0u);
  EXPECT_EQ(inlaid_event_seq(nullptr), 0u);
  EXPECT_EQ(inlaid_event_metric_count(nullptr), 0u);
  EXPECT_EQ(inlaid_event_metric_name(nullptr, 0), nullptr);
  EXPECT_NE(inlaid_event_metric_value(nullptr, 0), inlaid_event_metric_value(nullptr, 0));  // NaN
  EXPECT_NE(inlaid_event_metric(nullptr, "loss"), inlaid_event_metric(nullptr, "loss"));
  EXPECT_STREQ(inlaid_event_text(nullptr), "");
}

TEST_F(Errors, HandlesMustNotBeNull) {
  const Words n = {"NULL"};
  const inlaid_code code = INLAID_INVALID_ARGUMENT;
  EXPECT_FAILS_OUT(inlaid_buffer, code, n, inlaid_runtime_describe, nullptr);
  EXPECT_TRUE(fails(inlaid_runtime_shutdown(nullptr, 0), code, n));
  EXPECT_TRUE(fails(inlaid_config_set(nullptr, "train.seed", "1"), code, n));
  EXPECT_FAILS_OUT(inlaid_buffer, code, n, inlaid_config_to_json, nullptr);
  EXPECT_FAILS_OUT(inlaid_buffer, code, n, inlaid_config_plan, nullptr, config);
  EXPECT_FAILS_OUT(inlaid_buffer, code, n, inlaid_config_plan, runtime, nullptr);
  EXPECT_FAILS_OUT(inlaid_tokenizer, code, n, inlaid_tokenizer_open, nullptr, "x");
  EXPECT_FAILS_OUT(inlaid_tokenizer, code, n, inlaid_tokenizer_open, runtime, nullptr);
  EXPECT_FAILS_OUT(inlaid_buffer, code, n, inlaid_tokenizer_encode, nullptr, "x", 1, 0);
  EXPECT_FAILS_OUT(inlaid_buffer, code, n, inlaid_tokenizer_encode, tokenizer, nullptr, 1, 0);
  EXPECT_FAILS_OUT(inlaid_buffer, code, n, inlaid_tokenizer_decode, nullptr, "abcd", 4, 0);
  EXPECT_FAILS_OUT(inlaid_buffer, code, n, inlaid_tokenizer_decode, tokenizer, nullptr, 4, 0);
  EXPECT_FAILS_OUT(inlaid_buffer, code, n, inlaid_tokenizer_render_chat, nullptr, "[]", nullptr);
  EXPECT_FAILS_OUT(inlaid_buffer, code, n, inlaid_tokenizer_render_chat, tokenizer, nullptr, nullptr);
  EXPECT_FAILS_OUT(inlaid_decoder, code, n, inlaid_decoder_create, nullptr, 0);
  EXPECT_FAILS_OUT(inlaid_buffer, code, n, inlaid_decoder_push, nullptr, 1);
  EXPECT_FAILS_OUT(inlaid_buffer, code, n, inlaid_decoder_finish, nullptr);
  EXPECT_FAILS_OUT(inlaid_model, code, n, inlaid_model_create, nullptr, config, nullptr);
  EXPECT_FAILS_OUT(inlaid_model, code, n, inlaid_model_create, runtime, nullptr, nullptr);
  EXPECT_FAILS_OUT(inlaid_model, code, n, inlaid_model_load, nullptr, "x", nullptr, nullptr);
  EXPECT_FAILS_OUT(inlaid_model, code, n, inlaid_model_load, runtime, nullptr, nullptr, nullptr);
  EXPECT_TRUE(fails(inlaid_model_export(nullptr, nullptr, "x", nullptr), code, n));
  EXPECT_TRUE(fails(inlaid_model_export(model, nullptr, nullptr, nullptr), code, n));
  EXPECT_FAILS_OUT(inlaid_buffer, code, n, inlaid_model_describe, nullptr);
  EXPECT_FAILS_OUT(inlaid_tokenizer, code, n, inlaid_model_tokenizer, nullptr);
  EXPECT_FAILS_OUT(DLManagedTensorVersioned, code, n, inlaid_model_get_tensor, nullptr, "x");
  EXPECT_FAILS_OUT(DLManagedTensorVersioned, code, n, inlaid_model_get_tensor, model, nullptr);
  EXPECT_FAILS_OUT(inlaid_adapter, code, n, inlaid_adapter_create, nullptr, config);
  EXPECT_FAILS_OUT(inlaid_adapter, code, n, inlaid_adapter_create, model, nullptr);
  EXPECT_FAILS_OUT(inlaid_adapter, code, n, inlaid_adapter_load, nullptr, "x");
  EXPECT_FAILS_OUT(inlaid_adapter, code, n, inlaid_adapter_load, model, nullptr);
  EXPECT_TRUE(fails(inlaid_adapter_save(nullptr, "x"), code, n));
  EXPECT_TRUE(fails(inlaid_adapter_save(adapter, nullptr), code, n));
  EXPECT_FAILS_OUT(inlaid_buffer, code, n, inlaid_adapter_describe, nullptr);
  EXPECT_FAILS_OUT(inlaid_dataset, code, n, inlaid_dataset_open, nullptr, config, "train");
  EXPECT_FAILS_OUT(inlaid_dataset, code, n, inlaid_dataset_open, model, nullptr, "train");
  EXPECT_FAILS_OUT(inlaid_dataset, code, n, inlaid_dataset_open, model, config, nullptr);
  EXPECT_FAILS_OUT(inlaid_buffer, code, n, inlaid_dataset_report, nullptr);
  EXPECT_FAILS_OUT(inlaid_buffer, code, n, inlaid_dataset_sample, nullptr, 0);
  const Batch batch = make<Batch>(inlaid_batch_create);
  EXPECT_TRUE(fails(inlaid_batch_add(nullptr, "tokens", nullptr), code, n));
  EXPECT_TRUE(fails(inlaid_batch_add(batch.get(), "tokens", nullptr), code, n));
  EXPECT_TRUE(fails(inlaid_batch_add_int32(nullptr, "tokens", "abcd", 4), code, n));
  EXPECT_TRUE(fails(inlaid_batch_add_int32(batch.get(), nullptr, "abcd", 4), code, n));
  EXPECT_TRUE(fails(inlaid_batch_add_int32(batch.get(), "tokens", nullptr, 4), code, n));
  EXPECT_FAILS_OUT(inlaid_trainer, code, n, inlaid_trainer_create, nullptr, adapter, config);
  EXPECT_FAILS_OUT(inlaid_trainer, code, n, inlaid_trainer_create, model, adapter, nullptr);
  EXPECT_TRUE(fails(inlaid_trainer_set_dataset(nullptr, train_data), code, n));
  EXPECT_TRUE(fails(inlaid_trainer_set_dataset(trainer, nullptr), code, n));
  EXPECT_FAILS_OUT(inlaid_event, code, n, inlaid_trainer_step, nullptr, nullptr);
  EXPECT_FAILS_OUT(inlaid_event, code, n, inlaid_trainer_accumulate, nullptr, batch.get(), nullptr);
  EXPECT_FAILS_OUT(inlaid_event, code, n, inlaid_trainer_accumulate, trainer, nullptr, nullptr);
  EXPECT_FAILS_OUT(inlaid_event, code, n, inlaid_trainer_apply, nullptr);
  EXPECT_FAILS_OUT(inlaid_event, code, n, inlaid_trainer_evaluate, nullptr, train_data, nullptr);
  EXPECT_FAILS_OUT(inlaid_event, code, n, inlaid_trainer_evaluate, trainer, nullptr, nullptr);
  EXPECT_FAILS_OUT(inlaid_run, code, n, inlaid_run_start, nullptr, nullptr, nullptr);
  EXPECT_FAILS_OUT(inlaid_event, code, n, inlaid_run_next, nullptr, 0);
  EXPECT_TRUE(fails(inlaid_run_request(nullptr, "stop"), code, n));
  EXPECT_TRUE(fails(inlaid_run_set(nullptr, "optim.learning_rate", "1"), code, n));
  EXPECT_TRUE(fails(inlaid_trainer_set(nullptr, "optim.learning_rate", "1"), code, n));
  EXPECT_TRUE(fails(inlaid_trainer_set(trainer, nullptr, "1"), code, n));
  EXPECT_TRUE(fails(inlaid_trainer_set(trainer, "optim.learning_rate", nullptr), code, n));
  EXPECT_FAILS_OUT(inlaid_buffer, code, n, inlaid_export_certificate, nullptr, "x");
  EXPECT_FAILS_OUT(inlaid_buffer, code, n, inlaid_export_certificate, runtime, nullptr);
  EXPECT_FAILS_OUT(inlaid_buffer, code, n, inlaid_job_list, nullptr, "x");
  EXPECT_FAILS_OUT(inlaid_buffer, code, n, inlaid_job_list, runtime, nullptr);
  EXPECT_FAILS_OUT(inlaid_buffer, code, n, inlaid_job_report, nullptr, "x");
  EXPECT_FAILS_OUT(inlaid_buffer, code, n, inlaid_job_verify, nullptr, "x");
  EXPECT_FAILS_OUT(inlaid_buffer, code, n, inlaid_job_verify, runtime, nullptr);
  EXPECT_FAILS_OUT(inlaid_buffer, code, n, inlaid_job_report, runtime, nullptr);
  EXPECT_TRUE(fails(inlaid_run_join(nullptr, 0), code, n));
  EXPECT_FAILS_OUT(inlaid_job, code, n, inlaid_job_create, nullptr, config);
  EXPECT_FAILS_OUT(inlaid_job, code, n, inlaid_job_create, runtime, nullptr);
  EXPECT_FAILS_OUT(inlaid_job, code, n, inlaid_job_resume, nullptr, "x");
  EXPECT_FAILS_OUT(inlaid_job, code, n, inlaid_job_resume, runtime, nullptr);
  EXPECT_FAILS_OUT(inlaid_run, code, n, inlaid_job_start, nullptr);
  EXPECT_FAILS_OUT(inlaid_trainer, code, n, inlaid_job_trainer, nullptr);
  EXPECT_FAILS_OUT(inlaid_buffer, code, n, inlaid_job_describe, nullptr);
  EXPECT_TRUE(fails(inlaid_checkpoint_save(nullptr, "x", nullptr), code, n));
  EXPECT_TRUE(fails(inlaid_checkpoint_save(trainer, nullptr, nullptr), code, n));
  EXPECT_TRUE(fails(inlaid_checkpoint_restore(nullptr, "x"), code, n));
  EXPECT_TRUE(fails(inlaid_checkpoint_restore(trainer, nullptr), code, n));
  EXPECT_FAILS_OUT(inlaid_buffer, code, n, inlaid_checkpoint_manifest, nullptr, "x", 1);
  EXPECT_FAILS_OUT(inlaid_buffer, code, n, inlaid_checkpoint_manifest, runtime, nullptr, 1);
  EXPECT_FAILS_OUT(inlaid_buffer, code, n, inlaid_checkpoint_verify, nullptr, "x");
  EXPECT_FAILS_OUT(inlaid_buffer, code, n, inlaid_checkpoint_verify, runtime, nullptr);
  EXPECT_FAILS_OUT(inlaid_event, code, n, inlaid_evaluate, nullptr, nullptr, train_data, nullptr);
  EXPECT_FAILS_OUT(inlaid_event, code, n, inlaid_evaluate, model, nullptr, nullptr, nullptr);
  EXPECT_FAILS_OUT(inlaid_generator, code, n, inlaid_generator_create, nullptr, nullptr, nullptr);
  EXPECT_TRUE(fails(inlaid_generator_prompt(nullptr, "abcd", 4), code, n));
}

TEST_F(Errors, OutPointersMustNotBeNull) {
  const Words n = {"must not be NULL"};
  const inlaid_code code = INLAID_INVALID_ARGUMENT;
  EXPECT_TRUE(fails(inlaid_runtime_create(nullptr, nullptr), code, n));
  EXPECT_TRUE(fails(inlaid_runtime_describe(runtime, nullptr), code, n));
  EXPECT_TRUE(fails(inlaid_cancel_create(nullptr), code, n));
  EXPECT_TRUE(fails(inlaid_config_parse("{}", nullptr, nullptr), code, n));
  EXPECT_TRUE(fails(inlaid_config_to_json(config, nullptr), code, n));
  EXPECT_TRUE(fails(inlaid_config_schema(nullptr), code, n));
  EXPECT_TRUE(fails(inlaid_config_plan(runtime, config, nullptr), code, n));
  EXPECT_TRUE(fails(inlaid_tokenizer_open(runtime, "x", nullptr), code, n));
  EXPECT_TRUE(fails(inlaid_tokenizer_encode(tokenizer, "x", 1, 0, nullptr), code, n));
  EXPECT_TRUE(fails(inlaid_tokenizer_decode(tokenizer, "abcd", 4, 0, nullptr), code, n));
  EXPECT_TRUE(fails(inlaid_tokenizer_render_chat(tokenizer, "[]", nullptr, nullptr), code, n));
  EXPECT_TRUE(fails(inlaid_decoder_create(tokenizer, 0, nullptr), code, n));
  const Decoder decoder = make<Decoder>(inlaid_decoder_create, tokenizer, 0);
  EXPECT_TRUE(fails(inlaid_decoder_push(decoder.get(), 1, nullptr), code, n));
  EXPECT_TRUE(fails(inlaid_decoder_finish(decoder.get(), nullptr), code, n));
  EXPECT_TRUE(fails(inlaid_model_create(runtime, config, nullptr, nullptr), code, n));
  EXPECT_TRUE(fails(inlaid_model_load(runtime, "x", nullptr, nullptr, nullptr), code, n));
  inlaid_model* some_model = reinterpret_cast<inlaid_model*>(0x10);
  inlaid_adapter* some_adapter = reinterpret_cast<inlaid_adapter*>(0x10);
  EXPECT_TRUE(fails(inlaid_result_open(runtime, "x", nullptr, nullptr, &some_model, nullptr), code, n));
  EXPECT_EQ(some_model, nullptr);
  EXPECT_TRUE(fails(inlaid_result_open(runtime, "x", nullptr, nullptr, nullptr, &some_adapter), code, n));
  EXPECT_EQ(some_adapter, nullptr);
  EXPECT_TRUE(fails(inlaid_model_describe(model, nullptr), code, n));
  EXPECT_TRUE(fails(inlaid_model_tokenizer(model, nullptr), code, n));
  EXPECT_TRUE(fails(inlaid_model_get_tensor(model, "x", nullptr), code, n));
  EXPECT_TRUE(fails(inlaid_adapter_create(model, config, nullptr), code, n));
  EXPECT_TRUE(fails(inlaid_adapter_load(model, "x", nullptr), code, n));
  EXPECT_TRUE(fails(inlaid_adapter_describe(adapter, nullptr), code, n));
  EXPECT_TRUE(fails(inlaid_dataset_open(model, config, "train", nullptr), code, n));
  EXPECT_TRUE(fails(inlaid_dataset_report(train_data, nullptr), code, n));
  EXPECT_TRUE(fails(inlaid_dataset_sample(train_data, 0, nullptr), code, n));
  EXPECT_TRUE(fails(inlaid_batch_create(nullptr), code, n));
  EXPECT_TRUE(fails(inlaid_trainer_create(model, adapter, config, nullptr), code, n));
  EXPECT_TRUE(fails(inlaid_trainer_step(trainer, nullptr, nullptr), code, n));
  EXPECT_TRUE(fails(inlaid_trainer_accumulate(trainer, nullptr, nullptr, nullptr), code, n));
  EXPECT_TRUE(fails(inlaid_trainer_apply(trainer, nullptr), code, n));
  EXPECT_TRUE(fails(inlaid_trainer_evaluate(trainer, train_data, nullptr, nullptr), code, n));
  EXPECT_TRUE(fails(inlaid_run_start(trainer, nullptr, nullptr, nullptr), code, n));
  EXPECT_TRUE(fails(inlaid_run_next(nullptr, 0, nullptr), code, n));
  EXPECT_TRUE(fails(inlaid_job_create(runtime, config, nullptr), code, n));
  EXPECT_TRUE(fails(inlaid_job_resume(runtime, "x", nullptr), code, n));
  EXPECT_TRUE(fails(inlaid_job_start(nullptr, nullptr), code, n));
  EXPECT_TRUE(fails(inlaid_job_trainer(nullptr, nullptr), code, {"NULL"}));
  EXPECT_TRUE(fails(inlaid_job_model(nullptr, &some_model, nullptr), code, n));
  EXPECT_TRUE(fails(inlaid_job_describe(nullptr, nullptr), code, {"NULL"}));
  EXPECT_TRUE(fails(inlaid_job_report(runtime, "x", nullptr), code, n));
  EXPECT_TRUE(fails(inlaid_export_certificate(runtime, "x", nullptr), code, n));
  EXPECT_TRUE(fails(inlaid_job_list(runtime, "x", nullptr), code, n));
  EXPECT_TRUE(fails(inlaid_checkpoint_manifest(runtime, "x", 1, nullptr), code, n));
  EXPECT_TRUE(fails(inlaid_checkpoint_verify(runtime, "x", nullptr), code, n));
  EXPECT_TRUE(fails(inlaid_evaluate(model, nullptr, train_data, nullptr, nullptr), code, n));
  EXPECT_TRUE(fails(inlaid_generator_create(model, nullptr, nullptr, nullptr), code, n));
  const Generator generator = make<Generator>(inlaid_generator_create, model, nullptr, nullptr);
  inlaid_buffer* piece = reinterpret_cast<inlaid_buffer*>(0x10);
  int32_t id = 9, done = 9;
  EXPECT_TRUE(fails(inlaid_generator_next(generator.get(), nullptr, &id, &piece, nullptr), code, n));
  EXPECT_EQ(piece, nullptr);
  EXPECT_EQ(id, 0);
  EXPECT_TRUE(fails(inlaid_generator_next(generator.get(), nullptr, nullptr, &piece, &done), code, n));
  EXPECT_EQ(done, 0);
}

TEST_F(Errors, RuntimeOptions) {
  inlaid_runtime_options options = INLAID_RUNTIME_OPTIONS_INIT;
  const auto refused = [&](inlaid_code code, Words words) {
    inlaid_runtime* out = reinterpret_cast<inlaid_runtime*>(0x10);
    EXPECT_TRUE(fails(inlaid_runtime_create(&options, &out), code, words));
    EXPECT_EQ(out, nullptr);
    options = INLAID_RUNTIME_OPTIONS_INIT;
  };
  options.struct_size = 0;
  refused(INLAID_INVALID_ARGUMENT, {"struct_size"});
  options.cpu_threads = -1;
  refused(INLAID_INVALID_ARGUMENT, {"cpu_threads", "-1"});
  options.next = &options;
  refused(INLAID_INVALID_ARGUMENT, {"next"});
  options.settings_json = R"({"memory_limt": 5})";
  refused(INLAID_INVALID_ARGUMENT, {"memory_limt", "memory_limit"});
  options.settings_json = R"({"memory_limit": "5"})";
  refused(INLAID_INVALID_ARGUMENT, {"memory_limit"});
  for (const char* limits : {R"({"disk_limit": 0})", R"({"disk_limit": 1.5})", R"({"wall_time_limit": 0})", R"({"wall_time_limit": "1 h"})",
                             R"({"zero_memory": 1})", R"({"memory_limit": -1})"}) {
    options.settings_json = limits;
    refused(INLAID_INVALID_ARGUMENT, {"_"});
  }
  options.settings_json = R"({"cpu_level": "sse9"})";
  refused(INLAID_INVALID_ARGUMENT, {"sse9", "portable"});
  options.settings_json = "{";
  refused(INLAID_INVALID_ARGUMENT, {"settings_json"});
  inlaid_allocator allocator = INLAID_ALLOCATOR_INIT;
  options.host_allocator = &allocator;
  refused(INLAID_INVALID_ARGUMENT, {"alloc"});
  inlaid_log_sink sink = INLAID_LOG_SINK_INIT;
  options.log_sink = &sink;
  refused(INLAID_INVALID_ARGUMENT, {"write"});
}

// A caller compiled against an older header has a smaller struct; what lies behind it is not read.
TEST_F(Errors, ASmallerStructIsAccepted) {
  inlaid_runtime_options options = INLAID_RUNTIME_OPTIONS_INIT;
  options.struct_size = offsetof(inlaid_runtime_options, host_allocator);
  options.cpu_threads = 1;
  options.host_allocator = reinterpret_cast<const inlaid_allocator*>(0x10);
  options.settings_json = "not read";
  const Runtime small = make<Runtime>(inlaid_runtime_create, &options);
  EXPECT_EQ(parsed(inlaid_runtime_describe, small.get())["cpu_threads"], 1);
}

TEST_F(Errors, Configuration) {
  const auto refused = [&](const char* text, Words words, inlaid_code code = INLAID_INVALID_ARGUMENT) {
    EXPECT_FAILS_OUT(inlaid_config, code, words, inlaid_config_parse, text, nullptr);
  };
  refused("{\"train\": ", {"configuration", "line 1"});
  refused("[]", {"object"});
  refused(R"({"optim": {"learning_rat": 1}})", {"optim.learning_rat", "learning_rate"});
  refused(R"({"trian": {}})", {"trian", "train"});
  refused(R"({"train": {"seed": "x"}})", {"train.seed"});
  refused(R"({"train": {"seed": -1}})", {"train.seed", "-1"});
  refused(R"({"train": {"seed": 1, "seed": 2}})", {"seed"});
  refused(R"({"adapter": {"lora_dropout": 1}})", {"adapter.lora_dropout"});
  refused(R"({"data": {"train": [{"pth": "x"}]}})", {"data.train", "pth"});
  refused(R"({"precision": {"mode": "fp8"}})", {"precision.mode"}, INLAID_UNIMPLEMENTED);
  refused("{\"output_dir\": \"\xff\"}", {});

  const Config own = make<Config>(inlaid_config_parse, R"({"train": {"seed": 5}})", nullptr);
  const std::string before = text(inlaid_config_to_json, own.get());
  EXPECT_TRUE(fails(inlaid_config_set(own.get(), "train.sed", "1"), INLAID_INVALID_ARGUMENT, {"train.sed", "seed"}));
  EXPECT_TRUE(fails(inlaid_config_set(own.get(), "train.seed", "x"), INLAID_INVALID_ARGUMENT));
  EXPECT_TRUE(fails(inlaid_config_set(own.get(), nullptr, "1"), INLAID_INVALID_ARGUMENT, {"path"}));
  EXPECT_EQ(text(inlaid_config_to_json, own.get()), before) << "a failed set changes nothing";
  // Equal configurations give equal bytes, however they came about.
  ok(inlaid_config_set(own.get(), "train.seed", "7"));
  const Config same = make<Config>(inlaid_config_parse, R"({"train": {"num_train_epochs": 1.0, "seed": 7}})", nullptr);
  EXPECT_EQ(text(inlaid_config_to_json, own.get()), text(inlaid_config_to_json, same.get()));
  // Relative paths follow the folder.
  const Config moved = make<Config>(inlaid_config_parse, R"({"output_dir": "out"})", "/some/where");
  EXPECT_EQ(parsed(inlaid_config_to_json, moved.get())["output_dir"], "/some/where/out");
}

TEST_F(Errors, Text) {
  EXPECT_FAILS_OUT(inlaid_tokenizer, INLAID_NOT_FOUND, {"nowhere"}, inlaid_tokenizer_open, runtime, in("nowhere").c_str());
  EXPECT_FAILS_OUT(inlaid_tokenizer, INLAID_NOT_FOUND, {"nowhere.json"}, inlaid_tokenizer_open, runtime,
                   in("nowhere.json").c_str());
  write_file(in("broken.json"), read_file(in("tokenizer/tokenizer.json")).substr(0, 999));
  EXPECT_FAILS_OUT(inlaid_tokenizer, INLAID_DATA_LOSS, {"broken.json"}, inlaid_tokenizer_open, runtime,
                   in("broken.json").c_str());
  EXPECT_FAILS_OUT(inlaid_buffer, INLAID_INVALID_ARGUMENT, {}, inlaid_tokenizer_encode, tokenizer, "\xff\xfe", 2, 0);
  EXPECT_FAILS_OUT(inlaid_buffer, INLAID_INVALID_ARGUMENT, {"4"}, inlaid_tokenizer_decode, tokenizer, "abcde", 5, 0);
  const int32_t past_the_end = 600, negative = -1;
  EXPECT_FAILS_OUT(inlaid_buffer, INLAID_INVALID_ARGUMENT, {"600"}, inlaid_tokenizer_decode, tokenizer, &past_the_end, 4, 0);
  EXPECT_FAILS_OUT(inlaid_buffer, INLAID_INVALID_ARGUMENT, {"-1"}, inlaid_tokenizer_decode, tokenizer, &negative, 4, 0);
  const Decoder decoder = make<Decoder>(inlaid_decoder_create, tokenizer, 0);
  EXPECT_FAILS_OUT(inlaid_buffer, INLAID_INVALID_ARGUMENT, {"600"}, inlaid_decoder_push, decoder.get(), 600);
  const char* chat = R"([{"role": "user", "content": "x"}])";
  EXPECT_FAILS_OUT(inlaid_buffer, INLAID_INVALID_ARGUMENT, {"messages_json"}, inlaid_tokenizer_render_chat, tokenizer, "[",
                   nullptr);
  EXPECT_FAILS_OUT(inlaid_buffer, INLAID_INVALID_ARGUMENT, {}, inlaid_tokenizer_render_chat, tokenizer, "{}", nullptr);
  EXPECT_FAILS_OUT(inlaid_buffer, INLAID_INVALID_ARGUMENT, {"add_generation_promt"}, inlaid_tokenizer_render_chat, tokenizer,
                   chat, R"({"add_generation_promt": true})");
  EXPECT_FAILS_OUT(inlaid_buffer, INLAID_INVALID_ARGUMENT, {"extra"}, inlaid_tokenizer_render_chat, tokenizer, chat,
                   R"({"extra": 1})");
  const Tokenizer bare = make<Tokenizer>(inlaid_tokenizer_open, runtime, in("tokenizer/tokenizer.json").c_str());
  EXPECT_FAILS_OUT(inlaid_buffer, INLAID_FAILED_PRECONDITION, {"template"}, inlaid_tokenizer_render_chat, bare.get(), chat,
                   nullptr);
}

TEST_F(Errors, ModelsAndAdapters) {
  int communicator = 0;
  auto* comm = reinterpret_cast<inlaid_comm*>(&communicator);
  EXPECT_FAILS_OUT(inlaid_model, INLAID_UNIMPLEMENTED, {"rank"}, inlaid_model_create, runtime, config, comm);
  EXPECT_FAILS_OUT(inlaid_model, INLAID_UNIMPLEMENTED, {"rank"}, inlaid_model_load, runtime, "x", nullptr, comm);
  EXPECT_FAILS_OUT(inlaid_model, INLAID_NOT_FOUND, {"nowhere"}, inlaid_model_load, runtime, in("nowhere").c_str(), nullptr,
                   nullptr);
  EXPECT_FAILS_OUT(inlaid_model, INLAID_INVALID_ARGUMENT, {"weights_dtyp"}, inlaid_model_load, runtime, "x",
                   R"({"weights_dtyp": "f32"})", nullptr);
  EXPECT_FAILS_OUT(inlaid_model, INLAID_INVALID_ARGUMENT, {"f33"}, inlaid_model_load, runtime, "x",
                   R"({"weights_dtype": "f33"})", nullptr);
  const Config empty = make<Config>(inlaid_config_parse, nullptr, nullptr);
  EXPECT_FAILS_OUT(inlaid_model, INLAID_INVALID_ARGUMENT, {"model.config"}, inlaid_model_create, runtime, empty.get(), nullptr);
  EXPECT_FAILS_OUT(inlaid_adapter, INLAID_INVALID_ARGUMENT, {"adapter.peft_type"}, inlaid_adapter_create, model, empty.get());
  inlaid_model* no_model = reinterpret_cast<inlaid_model*>(0x10);
  inlaid_adapter* no_adapter = reinterpret_cast<inlaid_adapter*>(0x10);
  EXPECT_TRUE(fails(inlaid_result_open(runtime, in("nowhere").c_str(), nullptr, nullptr, &no_model, &no_adapter),
                    INLAID_NOT_FOUND, {"nowhere"}));
  EXPECT_EQ(no_model, nullptr);
  EXPECT_EQ(no_adapter, nullptr);

  json unknown_target = folder->job("");
  unknown_target["adapter"]["target_modules"] = {"q_proj", "nothing_like_it"};
  EXPECT_FAILS_OUT(inlaid_adapter, INLAID_INVALID_ARGUMENT, {"nothing_like_it"}, inlaid_adapter_create, model,
                   make_config(unknown_target).get());
  json unknown_key = folder->job("");
  unknown_key["model"]["config"]["sliding_windoww"] = 5;
  EXPECT_FAILS_OUT(inlaid_model, INLAID_UNIMPLEMENTED, {"sliding_windoww"}, inlaid_model_create, runtime,
                   make_config(unknown_key).get(), nullptr);
  EXPECT_FAILS_OUT(DLManagedTensorVersioned, INLAID_NOT_FOUND, {"model.nose.weight"}, inlaid_model_get_tensor, model,
                   "model.nose.weight");

  const std::string target = in("exported");
  EXPECT_TRUE(fails(inlaid_model_export(model, nullptr, target.c_str(), R"({"format": "onnx"})"), INLAID_INVALID_ARGUMENT,
                    {"onnx"}));
  EXPECT_TRUE(fails(inlaid_model_export(model, nullptr, target.c_str(), R"({"dtype": "q8_0"})"), INLAID_INVALID_ARGUMENT,
                    {"q8_0", "huggingface"}));
  EXPECT_TRUE(fails(inlaid_model_export(model, nullptr, target.c_str(), R"({"typ": 1})"), INLAID_INVALID_ARGUMENT, {"typ"}));
  EXPECT_FALSE(std::filesystem::exists(target));
  ok(inlaid_model_export(model, adapter, target.c_str(), nullptr));
  EXPECT_TRUE(fails(inlaid_model_export(model, adapter, target.c_str(), nullptr), INLAID_ALREADY_EXISTS, {"exported"}));
  ok(inlaid_adapter_save(adapter, in("peft").c_str()));
  EXPECT_TRUE(fails(inlaid_adapter_save(adapter, in("peft").c_str()), INLAID_ALREADY_EXISTS, {"peft"}));
  EXPECT_FAILS_OUT(inlaid_adapter, INLAID_NOT_FOUND, {"nowhere"}, inlaid_adapter_load, model, in("nowhere").c_str());

  // An adapter of another base does not fit.
  json wider = folder->job("");
  wider["model"]["config"]["intermediate_size"] = 64;
  const Model other = make<Model>(inlaid_model_create, runtime, make_config(wider).get(), nullptr);
  EXPECT_FAILS_OUT(inlaid_adapter, INLAID_DATA_LOSS, {"mlp"}, inlaid_adapter_load, other.get(), in("peft").c_str());
  EXPECT_FAILS_OUT(inlaid_trainer, INLAID_INVALID_ARGUMENT, {"adapter"}, inlaid_trainer_create, other.get(), adapter, config);
  json bare = folder->job("");
  bare["model"].erase("tokenizer");
  const Model mute = make<Model>(inlaid_model_create, runtime, make_config(bare).get(), nullptr);
  EXPECT_FAILS_OUT(inlaid_tokenizer, INLAID_FAILED_PRECONDITION, {"tokenizer"}, inlaid_model_tokenizer, mute.get());
}

TEST_F(Errors, DataAndBatches) {
  EXPECT_FAILS_OUT(inlaid_dataset, INLAID_INVALID_ARGUMENT, {"test"}, inlaid_dataset_open, model, config, "test");
  json no_eval = folder->job("");
  no_eval["data"].erase("eval");
  EXPECT_FAILS_OUT(inlaid_dataset, INLAID_NOT_FOUND, {"data.eval"}, inlaid_dataset_open, model, make_config(no_eval).get(),
                   "eval");
  EXPECT_FAILS_OUT(inlaid_buffer, INLAID_OUT_OF_RANGE, {"24"}, inlaid_dataset_sample, train_data, 24);

  const Batch batch = make<Batch>(inlaid_batch_create);
  const int32_t ids[] = {5, 6, 7}, wild[] = {5, 600, 7};
  EXPECT_TRUE(fails(inlaid_batch_add_int32(batch.get(), "toke", ids, 12), INLAID_INVALID_ARGUMENT, {"toke", "tokens"}));
  EXPECT_TRUE(fails(inlaid_batch_add_int32(batch.get(), "tokens", ids, 11), INLAID_INVALID_ARGUMENT, {"11"}));
  EXPECT_TRUE(fails(inlaid_batch_add_int32(batch.get(), "tokens", ids, 0), INLAID_INVALID_ARGUMENT, {"tokens"}));
  EXPECT_FAILS_OUT(inlaid_event, INLAID_INVALID_ARGUMENT, {"tokens"}, inlaid_trainer_accumulate, trainer, batch.get(), nullptr);
  ok(inlaid_batch_add_int32(batch.get(), "tokens", wild, 12));
  EXPECT_TRUE(fails(inlaid_batch_add_int32(batch.get(), "tokens", ids, 12), INLAID_ALREADY_EXISTS, {"tokens"}));
  EXPECT_FAILS_OUT(inlaid_event, INLAID_INVALID_ARGUMENT, {"targets"}, inlaid_trainer_accumulate, trainer, batch.get(), nullptr);
  ok(inlaid_batch_add_int32(batch.get(), "targets", ids, 12));
  EXPECT_FAILS_OUT(inlaid_event, INLAID_INVALID_ARGUMENT, {"600"}, inlaid_trainer_accumulate, trainer, batch.get(), nullptr);

  const auto refused = [&](std::vector<int32_t> tokens, std::vector<int32_t> targets, std::vector<int32_t> ends) {
    const Batch one = make<Batch>(inlaid_batch_create);
    ok(inlaid_batch_add_int32(one.get(), "tokens", tokens.data(), tokens.size() * 4));
    ok(inlaid_batch_add_int32(one.get(), "targets", targets.data(), targets.size() * 4));
    if (!ends.empty()) ok(inlaid_batch_add_int32(one.get(), "cu_seqlens", ends.data(), ends.size() * 4));
    EXPECT_FAILS_OUT(inlaid_event, INLAID_INVALID_ARGUMENT, {}, inlaid_trainer_accumulate, trainer, one.get(), nullptr);
  };
  refused({5, 6, 7}, {6, 7}, {});                                            // lengths differ
  refused({5, 6, 7}, {6, 7, 601}, {});                                       // no such id
  refused({5, 6, 7}, {6, 7, -5}, {});                                        // only -100 stands for none
  refused({5, 6, 7}, {-100, -100, -100}, {});                                // nothing to learn
  refused({5, 6, 7}, {6, 7, 8}, {0, 2});                                     // boundaries end too early
  refused({5, 6, 7}, {6, 7, 8}, {0, 2, 1, 3});                               // and go backwards
  refused({5, 6, 7}, {6, 7, 8}, {1, 3});                                     // and do not start at 0
  refused(std::vector<int32_t>(257, 5), std::vector<int32_t>(257, 6), {});   // beyond micro_batch_tokens
  EXPECT_FAILS_OUT(inlaid_event, INLAID_FAILED_PRECONDITION, {"accumulated"}, inlaid_trainer_apply, trainer);
}

TEST_F(Errors, TrainersAndRuns) {
  const Adapter fresh = make<Adapter>(inlaid_adapter_create, model, config);
  const Config short_job = make_config(folder->job(""));
  ok(inlaid_config_set(short_job.get(), "train.max_steps", "1"));
  const Trainer own = make<Trainer>(inlaid_trainer_create, model, fresh.get(), short_job.get());
  EXPECT_FAILS_OUT(inlaid_event, INLAID_FAILED_PRECONDITION, {"data"}, inlaid_trainer_step, own.get(), nullptr);
  ok(inlaid_trainer_set_dataset(own.get(), train_data));
  make<Event>(inlaid_trainer_step, own.get(), nullptr);
  EXPECT_FAILS_OUT(inlaid_event, INLAID_OUT_OF_RANGE, {"1"}, inlaid_trainer_step, own.get(), nullptr);

  const auto refused = [&](const char* options, Words words) {
    EXPECT_FAILS_OUT(inlaid_run, INLAID_INVALID_ARGUMENT, words, inlaid_run_start, own.get(), nullptr, options);
  };
  refused("[1]", {"object"});
  refused(R"({"untill": 3})", {"untill", "until"});
  refused(R"({"until": -3})", {"until"});
  refused(R"({"until": "3"})", {"until"});

  refused(R"({"keep_best": -1})", {"keep_best"});
  refused(R"({"early_stopping_patience": 1.5})", {"early_stopping_patience"});
  refused(R"({"early_stopping_threshold": -1})", {"early_stopping_threshold"});

  EXPECT_TRUE(fails(inlaid_trainer_set(own.get(), "train.seed", "1"), INLAID_FAILED_PRECONDITION, {"train.seed", "optim.learning_rate"}));
  EXPECT_TRUE(fails(inlaid_trainer_set(own.get(), "optim.learnin_rate", "1"), INLAID_INVALID_ARGUMENT, {"optim.learning_rate"}));
  EXPECT_TRUE(fails(inlaid_trainer_set(own.get(), "optim.learning_rate", "-1"), INLAID_INVALID_ARGUMENT, {"at least 0"}));
  EXPECT_TRUE(fails(inlaid_trainer_set(own.get(), "optim.learning_rate", "fast"), INLAID_INVALID_ARGUMENT));

  const RunHandle run = make<RunHandle>(inlaid_run_start, own.get(), nullptr, nullptr);
  EXPECT_TRUE(fails(inlaid_run_set(run.get(), "model.recompute", "\"full\""), INLAID_FAILED_PRECONDITION, {"model.recompute"}));
  EXPECT_TRUE(fails(inlaid_run_set(run.get(), "optim.max_grad_norm", "true"), INLAID_INVALID_ARGUMENT, {"optim.max_grad_norm"}));
  EXPECT_TRUE(fails(inlaid_run_request(run.get(), "dance"), INLAID_INVALID_ARGUMENT, {"dance", "pause"}));
  EXPECT_TRUE(fails(inlaid_run_request(run.get(), nullptr), INLAID_INVALID_ARGUMENT, {"NULL"}));
  EXPECT_EQ(watch(run.get()).end, "done");
  EXPECT_FAILS_OUT(inlaid_event, INLAID_OUT_OF_RANGE, {"ended"}, inlaid_run_next, run.get(), -1);
  ok(inlaid_run_join(run.get(), 0));
  ok(inlaid_run_join(run.get(), -1));
}

TEST_F(Errors, Jobs) {
  EXPECT_FAILS_OUT(inlaid_job, INLAID_NOT_FOUND, {"nowhere"}, inlaid_job_resume, runtime, in("nowhere").c_str());
  EXPECT_FAILS_OUT(inlaid_buffer, INLAID_NOT_FOUND, {"nowhere"}, inlaid_job_report, runtime, in("nowhere").c_str());
  EXPECT_FAILS_OUT(inlaid_buffer, INLAID_NOT_FOUND, {"nowhere"}, inlaid_job_list, runtime, in("nowhere").c_str());
  EXPECT_FAILS_OUT(inlaid_buffer, INLAID_NOT_FOUND, {"nowhere"}, inlaid_job_verify, runtime, in("nowhere").c_str());
  train(runtime, folder->job("taken"));
  EXPECT_FAILS_OUT(inlaid_job, INLAID_ALREADY_EXISTS, {"taken"}, inlaid_job_create, runtime,
                   make_config(folder->job("taken")).get());
  const Config empty = make<Config>(inlaid_config_parse, "{}", nullptr);
  EXPECT_FAILS_OUT(inlaid_job, INLAID_INVALID_ARGUMENT, {"model"}, inlaid_job_create, runtime, empty.get());
  json no_data = folder->job("no_data");
  no_data.erase("data");
  EXPECT_FAILS_OUT(inlaid_job, INLAID_INVALID_ARGUMENT, {"data.train"}, inlaid_job_create, runtime,
                   make_config(no_data).get());
  EXPECT_FALSE(std::filesystem::exists(in("no_data"))) << "a job that is refused leaves nothing behind";
}

TEST_F(Errors, Checkpoints) {
  const std::string saved = in("checkpoint");
  ok(inlaid_checkpoint_save(trainer, saved.c_str(), nullptr));
  EXPECT_TRUE(fails(inlaid_checkpoint_save(trainer, saved.c_str(), nullptr), INLAID_ALREADY_EXISTS, {"checkpoint"}));
  const Cancel cancel = make<Cancel>(inlaid_cancel_create);
  inlaid_cancel_trigger(cancel.get());
  EXPECT_TRUE(fails(inlaid_checkpoint_save(trainer, in("cancelled").c_str(), cancel.get()), INLAID_CANCELLED));
  EXPECT_FALSE(std::filesystem::exists(in("cancelled")));
  EXPECT_TRUE(fails(inlaid_checkpoint_restore(trainer, in("nowhere").c_str()), INLAID_NOT_FOUND, {"nowhere"}));
  EXPECT_FAILS_OUT(inlaid_buffer, INLAID_NOT_FOUND, {"nowhere"}, inlaid_checkpoint_manifest, runtime, in("nowhere").c_str(), 1);
  EXPECT_FAILS_OUT(inlaid_buffer, INLAID_NOT_FOUND, {"nowhere"}, inlaid_checkpoint_verify, runtime, in("nowhere").c_str());

  json other = folder->job("");
  other["adapter"]["r"] = 2;
  const Config other_config = make_config(other);
  const Adapter narrow = make<Adapter>(inlaid_adapter_create, model, other_config.get());
  const Trainer unlike = make<Trainer>(inlaid_trainer_create, model, narrow.get(), other_config.get());
  EXPECT_TRUE(fails(inlaid_checkpoint_restore(unlike.get(), saved.c_str()), INLAID_FAILED_PRECONDITION, {"adapter"}));

  // Damage: verify reports it, restore refuses it.
  EXPECT_EQ(parsed(inlaid_checkpoint_verify, runtime, saved.c_str())["ok"], true);
  for (const auto& entry : std::filesystem::directory_iterator(saved)) {
    if (entry.path().extension() != ".safetensors") continue;
    std::string bytes = read_file(entry.path());
    bytes[bytes.size() / 2] ^= 1;
    write_file(entry.path(), bytes);
  }
  const json report = parsed(inlaid_checkpoint_verify, runtime, saved.c_str());
  EXPECT_EQ(report["ok"], false);
  EXPECT_FALSE(report["problems"].empty());
  EXPECT_TRUE(fails(inlaid_checkpoint_restore(trainer, saved.c_str()), INLAID_DATA_LOSS, {"checkpoint"}));
  write_file(saved + "/manifest.pb", "no manifest");
  EXPECT_TRUE(fails(inlaid_checkpoint_restore(trainer, saved.c_str()), INLAID_DATA_LOSS, {"manifest.pb"}));
}

TEST_F(Errors, Generation) {
  const auto refused = [&](const char* options, Words words) {
    EXPECT_FAILS_OUT(inlaid_generator, INLAID_INVALID_ARGUMENT, words, inlaid_generator_create, model, nullptr, options);
  };
  refused("{", {});
  refused(R"({"temprature": 1})", {"temprature", "temperature"});
  refused(R"({"temperature": -1})", {"temperature"});
  refused(R"({"top_p": 0})", {"top_p"});
  refused(R"({"max_new_tokens": -1})", {"max_new_tokens"});
  const Generator generator = make<Generator>(inlaid_generator_create, model, nullptr, R"({"max_new_tokens": 1})");
  inlaid_buffer* piece = reinterpret_cast<inlaid_buffer*>(0x10);
  int32_t id = 9, done = 9;
  EXPECT_TRUE(fails(inlaid_generator_next(generator.get(), nullptr, &id, &piece, &done), INLAID_FAILED_PRECONDITION,
                    {"prompt"}));
  EXPECT_EQ(piece, nullptr);
  const int32_t ids[] = {5, 6}, wild[] = {5, 600};
  EXPECT_TRUE(fails(inlaid_generator_prompt(generator.get(), ids, 7), INLAID_INVALID_ARGUMENT, {"7"}));
  EXPECT_TRUE(fails(inlaid_generator_prompt(generator.get(), ids, 0), INLAID_INVALID_ARGUMENT));
  EXPECT_TRUE(fails(inlaid_generator_prompt(generator.get(), wild, 8), INLAID_INVALID_ARGUMENT, {"600"}));
  ok(inlaid_generator_prompt(generator.get(), ids, 8));
  const Cancel cancel = make<Cancel>(inlaid_cancel_create);
  inlaid_cancel_trigger(cancel.get());
  EXPECT_TRUE(fails(inlaid_generator_next(generator.get(), cancel.get(), &id, &piece, &done), INLAID_CANCELLED));
  ok(inlaid_generator_next(generator.get(), nullptr, &id, &piece, &done));
  inlaid_buffer_release(piece);
  EXPECT_EQ(done, 1);
  EXPECT_TRUE(fails(inlaid_generator_next(generator.get(), nullptr, &id, &piece, &done), INLAID_OUT_OF_RANGE));
}

TEST_F(Errors, AfterShutdown) {
  const Runtime own = make_runtime(1);
  const Config job = make_config(folder->job(""));
  const Model lone = make<Model>(inlaid_model_create, own.get(), job.get(), nullptr);
  ok(inlaid_runtime_shutdown(own.get(), 1000));
  ok(inlaid_runtime_shutdown(own.get(), 0));
  EXPECT_FAILS_OUT(inlaid_model, INLAID_FAILED_PRECONDITION, {"shut down"}, inlaid_model_create, own.get(), job.get(), nullptr);
  EXPECT_FAILS_OUT(inlaid_dataset, INLAID_FAILED_PRECONDITION, {"shut down"}, inlaid_dataset_open, lone.get(), job.get(),
                   "train");
  EXPECT_FAILS_OUT(inlaid_trainer, INLAID_FAILED_PRECONDITION, {"shut down"}, inlaid_trainer_create, lone.get(), nullptr,
                   job.get());
  EXPECT_FAILS_OUT(inlaid_generator, INLAID_FAILED_PRECONDITION, {"shut down"}, inlaid_generator_create, lone.get(), nullptr,
                   nullptr);
  EXPECT_FAILS_OUT(inlaid_job, INLAID_FAILED_PRECONDITION, {"shut down"}, inlaid_job_create, own.get(), job.get());
}

TEST_F(Errors, DetailsAreMachineReadable) {
  inlaid_config* none = nullptr;
  inlaid_error* error = inlaid_config_parse(R"({"optim": {"learning_rat": 1}})", nullptr, &none);
  const json details = json::parse(inlaid_error_details(error));
  EXPECT_EQ(details["key"], "optim.learning_rat");
  EXPECT_EQ(details["nearest"], "optim.learning_rate");
  inlaid_error_release(error);
  inlaid_error_release(fresh_error());
}

}  // namespace
}  // namespace capi_test

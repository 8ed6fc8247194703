/* Calls every function of inlaid.h once, with success, from plain C99. Ends with 0, or says which call failed. */
#define _POSIX_C_SOURCE 200809L /* mkdtemp, posix_memalign */
#include <inlaid.h>
#include <inlaid_plugin.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(inlaid_error *error, const char *call) {
  if (error == NULL) return;
  fprintf(stderr, "%s\n  code %d: %s %s\n", call, (int)inlaid_error_code(error), inlaid_error_message(error),
          inlaid_error_details(error));
  inlaid_error_release(error);
  exit(1);
}
#define OK(call) check(call, #call)

static void require(int condition, const char *what) {
  if (condition) return;
  fprintf(stderr, "not true: %s\n", what);
  exit(1);
}
#define REQUIRE(condition) require(condition, #condition)

/* Takes the buffer, returns its text, valid until the next call but one. */
static const char *text_of(inlaid_buffer *buffer) {
  static char text[2][1 << 16];
  static int turn = 0;
  turn = 1 - turn;
  REQUIRE(inlaid_buffer_data(buffer) != NULL && inlaid_buffer_size(buffer) < sizeof text[0]);
  memcpy(text[turn], inlaid_buffer_data(buffer), (size_t)inlaid_buffer_size(buffer) + 1);
  REQUIRE(text[turn][inlaid_buffer_size(buffer)] == 0);
  inlaid_buffer_release(buffer);
  return text[turn];
}

static char path_text[8][1024];
static const char *path(int slot, const char *folder, const char *name) {
  snprintf(path_text[slot], sizeof path_text[slot], "%s/%s", folder, name);
  return path_text[slot];
}

/* DLPack 1.x, as its header lays it out. */
typedef struct tensor {
  uint32_t major, minor;
  void *context;
  void (*deleter)(struct tensor *self);
  uint64_t flags;
  void *data;
  int32_t device_type, device_id, ndim;
  uint8_t type_code, bits;
  uint16_t lanes;
  int64_t *shape, *strides;
  uint64_t byte_offset;
} tensor;
static int deleted = 0;
static void count_deletion(tensor *self) { ++deleted, free(self); }

static void *allocate(void *user, uint64_t bytes, uint64_t align) {
  void *memory = NULL;
  ++*(int *)user;
  align = align < sizeof(void *) ? sizeof(void *) : align;
  bytes = (bytes + align - 1) / align * align;
  (void)posix_memalign(&memory, (size_t)align, (size_t)bytes);
  return memory;
}
static void release(void *user, void *memory, uint64_t bytes) {
  (void)bytes;
  --*(int *)user;
  free(memory);
}
static void sink(void *user, int32_t level, const char *component, const char *text, uint64_t size) {
  (void)user, (void)level, (void)component, (void)text, (void)size;
}

static void versions_and_errors(void) {
  inlaid_config *none = NULL;
  inlaid_error *error = inlaid_config_parse("{\"train\": {\"sed\": 1}}", NULL, &none);
  REQUIRE(inlaid_abi_version() == INLAID_ABI_VERSION);
  REQUIRE(strncmp(inlaid_version_string(), "Inlaid ", 7) == 0);
  REQUIRE(inlaid_has_feature("lora") == 1 && inlaid_has_feature("no such thing") == 0);
  REQUIRE(error != NULL && none == NULL);
  REQUIRE(inlaid_error_code(error) == INLAID_INVALID_ARGUMENT);
  REQUIRE(strstr(inlaid_error_message(error), "train.sed") != NULL);
  REQUIRE(inlaid_error_details(error)[0] == '{');
  inlaid_error_release(error);
}

static void texts(inlaid_runtime *runtime, const char *tokenizer_json, inlaid_tokenizer *tokenizer) {
  const int32_t *ids;
  inlaid_buffer *buffer = NULL, *piece = NULL;
  inlaid_tokenizer *opened = NULL;
  inlaid_decoder *decoder = NULL;
  char joined[64] = "";
  uint64_t i;
  OK(inlaid_tokenizer_open(runtime, tokenizer_json, &opened));
  REQUIRE(inlaid_tokenizer_vocab_size(opened) == 600);
  OK(inlaid_tokenizer_encode(opened, "Hello, world!", 13, 0, &buffer));
  REQUIRE(inlaid_buffer_size(buffer) == 4 * sizeof(int32_t));
  OK(inlaid_tokenizer_decode(opened, inlaid_buffer_data(buffer), inlaid_buffer_size(buffer), 1, &piece));
  REQUIRE(strcmp(text_of(piece), "Hello, world!") == 0);
  OK(inlaid_decoder_create(opened, 1, &decoder));
  ids = inlaid_buffer_data(buffer);
  for (i = 0; i < inlaid_buffer_size(buffer) / sizeof(int32_t); ++i) {
    OK(inlaid_decoder_push(decoder, ids[i], &piece));
    strcat(joined, text_of(piece));
  }
  OK(inlaid_decoder_finish(decoder, &piece));
  strcat(joined, text_of(piece));
  REQUIRE(strcmp(joined, "Hello, world!") == 0);
  inlaid_buffer_release(buffer);
  inlaid_decoder_release(decoder);
  inlaid_tokenizer_release(opened);
  OK(inlaid_tokenizer_render_chat(tokenizer, "[{\"role\": \"user\", \"content\": \"Hi\"}]",
                                  "{\"add_generation_prompt\": true}", &buffer));
  REQUIRE(strstr(text_of(buffer), "<|im_start|>user\\nHi<|im_end|>") != NULL);
}

/* A loss of our own: the sum of log-probabilities, and of hidden states, whose gradients are ones. */
static void passes(inlaid_model *model, inlaid_adapter *adapter, inlaid_trainer *trainer) {
  static const int32_t tokens[] = {5, 6, 7, 8}, targets[] = {6, 7, -100, 9};
  static const float ones[4] = {1, 1, 1, 1};
  static float hidden_gradient[4 * 32];
  inlaid_batch *batch = NULL;
  inlaid_pass *pass = NULL, *reference = NULL;
  inlaid_event *event = NULL;
  struct DLManagedTensorVersioned *output = NULL;
  int64_t shape[] = {4, 32};
  tensor *given = calloc(1, sizeof *given);
  const int before = deleted;
  OK(inlaid_batch_create(&batch));
  OK(inlaid_batch_add_int32(batch, "tokens", tokens, sizeof tokens));
  OK(inlaid_batch_add_int32(batch, "targets", targets, sizeof targets));
  OK(inlaid_forward(model, adapter, batch, "{\"outputs\": [\"logits\"]}", NULL, &reference));
  REQUIRE(inlaid_pass_size(reference, "logits") == 4 * 600 * sizeof(float));
  REQUIRE(inlaid_pass_data(reference, "log_probs") == NULL);
  inlaid_pass_release(reference);
  OK(inlaid_trainer_forward(trainer, batch, "{\"outputs\": [\"log_probs\", \"hidden_states\"]}", NULL, &pass));
  OK(inlaid_pass_output(pass, "log_probs", &output));
  REQUIRE(((tensor *)output)->data == (void *)(uintptr_t)inlaid_pass_data(pass, "log_probs"));
  REQUIRE(((const float *)((tensor *)output)->data)[0] < 0 && ((const float *)((tensor *)output)->data)[2] == 0);
  given->major = 1, given->deleter = count_deletion, given->data = hidden_gradient, given->device_type = 1, given->ndim = 2;
  given->type_code = 2, given->bits = 32, given->lanes = 1, given->shape = shape;
  OK(inlaid_pass_set_gradient(pass, "hidden_states", (struct DLManagedTensorVersioned *)given));
  OK(inlaid_pass_set_gradient_f32(pass, "log_probs", ones, sizeof ones));
  REQUIRE(deleted == before);
  OK(inlaid_backward(pass, 3, NULL));
  REQUIRE(deleted == before + 1);
  inlaid_pass_release(pass);
  ((tensor *)output)->deleter((tensor *)output);
  OK(inlaid_trainer_apply(trainer, &event));
  REQUIRE(inlaid_event_metric(event, "grad_norm") > 0);
  inlaid_event_release(event);
  inlaid_batch_release(batch);
}

static void steps(inlaid_runtime *runtime, inlaid_model *model, inlaid_adapter *adapter, inlaid_config *config,
                  inlaid_dataset *train, inlaid_dataset *eval, inlaid_cancel *cancel, const char *out) {
  static const int32_t tokens[] = {5, 6, 7, 8}, ends[] = {0, 4};
  static int32_t targets[] = {6, 7, 8, -100};
  static int64_t shape[] = {4};
  const char *checkpoint = path(3, out, "checkpoint");
  inlaid_trainer *trainer = NULL;
  inlaid_batch *batch = NULL;
  inlaid_event *event = NULL;
  inlaid_buffer *buffer = NULL;
  tensor *t = calloc(1, sizeof *t);
  t->major = 1;
  t->deleter = count_deletion;
  t->data = targets;
  t->device_type = 1;
  t->ndim = 1;
  t->bits = 32;
  t->lanes = 1;
  t->shape = shape;

  OK(inlaid_trainer_create(model, adapter, config, &trainer));
  OK(inlaid_trainer_set_dataset(trainer, train));
  OK(inlaid_trainer_step(trainer, cancel, &event));
  REQUIRE(inlaid_event_kind(event) == INLAID_EVENT_STEP && inlaid_event_step(event) == 1);
  inlaid_event_release(event);
  OK(inlaid_batch_create(&batch));
  OK(inlaid_batch_add_int32(batch, "tokens", tokens, sizeof tokens));
  OK(inlaid_batch_add(batch, "targets", (struct DLManagedTensorVersioned *)t));
  REQUIRE(deleted == 1);
  OK(inlaid_batch_add_int32(batch, "cu_seqlens", ends, sizeof ends));
  OK(inlaid_trainer_accumulate(trainer, batch, NULL, &event));
  REQUIRE(inlaid_event_metric(event, "target_tokens") == 3);
  inlaid_event_release(event);
  inlaid_batch_release(batch);
  OK(inlaid_trainer_apply(trainer, &event));
  REQUIRE(inlaid_event_step(event) == 2);
  inlaid_event_release(event);
  OK(inlaid_trainer_set(trainer, "optim.learning_rate", "1e-4"));
  OK(inlaid_trainer_evaluate(trainer, eval, NULL, &event));
  REQUIRE(inlaid_event_metric(event, "eval_loss") > 0);
  inlaid_event_release(event);

  passes(model, adapter, trainer);
  OK(inlaid_checkpoint_save(trainer, checkpoint, NULL));
  OK(inlaid_checkpoint_restore(trainer, checkpoint));
  OK(inlaid_checkpoint_manifest(runtime, checkpoint, 1, &buffer));
  REQUIRE(text_of(buffer)[0] == '{');
  OK(inlaid_checkpoint_verify(runtime, checkpoint, &buffer));
  REQUIRE(strstr(text_of(buffer), "\"ok\":true") != NULL);
  inlaid_trainer_release(trainer);
}

static void watch(inlaid_run *run) {
  int32_t kind = 0;
  uint32_t i;
  while (kind != INLAID_EVENT_DONE) {
    inlaid_event *event = NULL;
    OK(inlaid_run_next(run, -1, &event));
    kind = inlaid_event_kind(event);
    REQUIRE(inlaid_event_seq(event) < 1000 && inlaid_event_json(event)[0] == '{');
    for (i = 0; i < inlaid_event_metric_count(event); ++i) {
      REQUIRE(inlaid_event_metric(event, inlaid_event_metric_name(event, i)) == inlaid_event_metric_value(event, i));
    }
    if (kind == INLAID_EVENT_DONE) REQUIRE(strcmp(inlaid_event_text(event), "done") == 0);
    inlaid_event_release(event);
  }
  OK(inlaid_run_join(run, -1));
}

static void results(inlaid_runtime *runtime, inlaid_model *model, inlaid_adapter *adapter, inlaid_dataset *eval,
                    const char *out) {
  static const int32_t prompt[] = {5, 6, 7};
  const char *folder = path(4, out, "adapter"), *merged = path(5, out, "merged");
  inlaid_adapter *loaded = NULL, *none = NULL;
  inlaid_model *reopened = NULL;
  inlaid_generator *generator = NULL;
  inlaid_event *event = NULL;
  inlaid_buffer *buffer = NULL;
  struct DLManagedTensorVersioned *weights = NULL;
  int32_t id = -1, done = 0;

  OK(inlaid_evaluate(model, adapter, eval, NULL, &event));
  REQUIRE(inlaid_event_metric(event, "eval_rows") == 1);
  inlaid_event_release(event);
  OK(inlaid_generator_create(model, adapter, "{\"max_new_tokens\": 2}", &generator));
  OK(inlaid_generator_prompt(generator, prompt, sizeof prompt));
  OK(inlaid_generator_next(generator, NULL, &id, &buffer, &done));
  REQUIRE(id >= 0 && id < 600);
  inlaid_buffer_release(buffer);
  inlaid_generator_release(generator);

  OK(inlaid_adapter_save(adapter, folder));
  OK(inlaid_adapter_load(model, folder, &loaded));
  OK(inlaid_adapter_describe(loaded, &buffer));
  REQUIRE(strstr(text_of(buffer), "LORA") != NULL);
  inlaid_adapter_release(loaded);
  OK(inlaid_model_describe(model, &buffer));
  REQUIRE(strstr(text_of(buffer), "model.norm.weight") != NULL);
  OK(inlaid_model_get_tensor(model, "model.norm.weight", &weights));
  REQUIRE(((tensor *)weights)->shape[0] == 32);
  ((tensor *)weights)->deleter((tensor *)weights);
  OK(inlaid_model_export(model, adapter, merged, "{\"format\": \"huggingface\", \"dtype\": \"f32\"}"));
  OK(inlaid_export_certificate(runtime, merged, &buffer));
  inlaid_buffer_release(buffer);
  OK(inlaid_result_open(runtime, merged, NULL, NULL, &reopened, &none));
  REQUIRE(none == NULL);
  inlaid_model_release(reopened);
  OK(inlaid_model_load(runtime, merged, "{\"weights_dtype\": \"bf16\"}", NULL, &reopened));
  inlaid_model_release(reopened);
}

static void job(inlaid_runtime *runtime, inlaid_config *config, const char *out) {
  inlaid_job *created = NULL, *resumed = NULL;
  inlaid_trainer *trainer = NULL;
  inlaid_model *model = NULL;
  inlaid_adapter *adapter = NULL;
  inlaid_run *run = NULL;
  inlaid_buffer *buffer = NULL;
  OK(inlaid_job_create(runtime, config, &created));
  OK(inlaid_job_start(created, &run));
  OK(inlaid_run_request(run, "save"));
  OK(inlaid_run_set(run, "optim.weight_decay", "0.1"));
  watch(run);
  inlaid_run_cancel(run); /* after the end: nothing */
  inlaid_run_release(run);
  OK(inlaid_job_trainer(created, &trainer));
  OK(inlaid_run_start(trainer, NULL, "{\"until\": 1}", &run));
  watch(run);
  inlaid_run_release(run);
  inlaid_trainer_release(trainer);
  OK(inlaid_job_model(created, &model, &adapter));
  REQUIRE(adapter != NULL);
  inlaid_adapter_release(adapter);
  inlaid_model_release(model);
  inlaid_job_release(created);
  OK(inlaid_job_list(runtime, out, &buffer));
  REQUIRE(strcmp(text_of(buffer), "[]") == 0);
  OK(inlaid_job_report(runtime, out, &buffer));
  REQUIRE(strncmp(text_of(buffer), "<!doctype html>", 15) == 0);
  OK(inlaid_job_verify(runtime, out, &buffer));
  REQUIRE(strstr(text_of(buffer), "\"ok\":true") != NULL);
  OK(inlaid_job_resume(runtime, out, &resumed));
  OK(inlaid_job_describe(resumed, &buffer));
  REQUIRE(strstr(text_of(buffer), "\"steps_done\":2") != NULL);
  inlaid_job_release(resumed);
}

int main(void) {
  static const char *const row =
      "{\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}, {\"role\": \"assistant\", \"content\": \"Ho\"}]}\n";
  const char *source = getenv("INLAID_SOURCE"), *temporary = getenv("TMPDIR");
  char folder[512], config_text[4096], out[600];
  int blocks = 0;
  FILE *data;
  inlaid_runtime_options options = INLAID_RUNTIME_OPTIONS_INIT;
  inlaid_allocator allocator = INLAID_ALLOCATOR_INIT;
  inlaid_log_sink log = INLAID_LOG_SINK_INIT;
  inlaid_runtime *runtime = NULL;
  inlaid_config *config = NULL;
  inlaid_cancel *cancel = NULL;
  inlaid_model *model = NULL;
  inlaid_tokenizer *tokenizer = NULL;
  inlaid_adapter *adapter = NULL;
  inlaid_dataset *train = NULL, *eval = NULL;
  inlaid_buffer *buffer = NULL;
  REQUIRE(source != NULL);
  snprintf(folder, sizeof folder, "%s/every-XXXXXX", temporary == NULL ? "/tmp" : temporary);
  REQUIRE(mkdtemp(folder) != NULL);
  data = fopen(path(0, folder, "data.jsonl"), "w");
  REQUIRE(data != NULL && fputs(row, data) >= 0 && fclose(data) == 0);
  snprintf(out, sizeof out, "%s/out", folder);
  snprintf(config_text, sizeof config_text,
           "{\"model\": {\"config\": {\"model_type\": \"llama\", \"vocab_size\": 600, \"hidden_size\": 32,"
           " \"intermediate_size\": 48, \"num_hidden_layers\": 1, \"num_attention_heads\": 4,"
           " \"num_key_value_heads\": 2, \"max_position_embeddings\": 128, \"eos_token_id\": 2},"
           " \"tokenizer\": \"%s/tests/golden/text/tokenizers/byte_bpe.json\"},"
           " \"adapter\": {\"peft_type\": \"LORA\", \"r\": 2, \"target_modules\": \"all-linear\"},"
           " \"data\": {\"train\": [{\"path\": \"data.jsonl\"}], \"eval\": [{\"path\": \"data.jsonl\"}],"
           "  \"chat_template\": \"%s/tests/golden/text/templates/chatml.jinja\"},"
           " \"train\": {\"micro_batch_tokens\": 128}, \"output_dir\": \"out\"}", source, source);

  versions_and_errors();
  allocator.user = &blocks;
  allocator.alloc = allocate;
  allocator.free = release;
  log.write = sink;
  options.cpu_threads = 1;
  options.host_allocator = &allocator;
  options.log_sink = &log;
  OK(inlaid_runtime_create(&options, &runtime));
  OK(inlaid_cancel_create(&cancel));
  OK(inlaid_config_schema(&buffer));
  REQUIRE(strstr(text_of(buffer), "learning_rate") != NULL);
  OK(inlaid_config_parse(config_text, folder, &config));
  OK(inlaid_config_set(config, "train.max_steps", "2"));
  OK(inlaid_config_to_json(config, &buffer));
  REQUIRE(strstr(text_of(buffer), "\"max_steps\":2") != NULL);
  OK(inlaid_config_plan(runtime, config, &buffer));
  REQUIRE(strstr(text_of(buffer), "\"refused\":[]") != NULL);

  OK(inlaid_model_create(runtime, config, NULL, &model));
  OK(inlaid_model_tokenizer(model, &tokenizer));
  snprintf(path_text[1], sizeof path_text[1], "%s/tests/golden/text/tokenizers/byte_bpe.json", source);
  texts(runtime, path_text[1], tokenizer);
  OK(inlaid_dataset_open(model, config, "train", &train));
  OK(inlaid_dataset_open(model, config, "eval", &eval));
  REQUIRE(inlaid_dataset_size(train) == 1);
  OK(inlaid_dataset_report(train, &buffer));
  REQUIRE(strstr(text_of(buffer), "\"used\":1") != NULL);
  OK(inlaid_dataset_sample(train, 0, &buffer));
  REQUIRE(strstr(text_of(buffer), "\"targets\":[-100") != NULL);
  OK(inlaid_adapter_create(model, config, &adapter));
  steps(runtime, model, adapter, config, train, eval, cancel, folder);
  results(runtime, model, adapter, eval, folder);
  job(runtime, config, out);
  OK(inlaid_runtime_describe(runtime, &buffer));
  REQUIRE(strstr(text_of(buffer), "\"cpu_threads\":1") != NULL);
  OK(inlaid_runtime_shutdown(runtime, -1));

  inlaid_cancel_trigger(cancel);
  inlaid_cancel_release(cancel);
  inlaid_dataset_release(eval);
  inlaid_dataset_release(train);
  inlaid_adapter_release(adapter);
  inlaid_tokenizer_release(tokenizer);
  inlaid_model_release(model);
  inlaid_config_release(config);
  REQUIRE(blocks >= 0);
  inlaid_runtime_release(runtime);
  REQUIRE(blocks == 0);
  return 0;
}

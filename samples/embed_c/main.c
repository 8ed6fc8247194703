/* Fine-tunes a language model from a C program: starts a job in the background, watches its events, saves
 * and ends on Ctrl-C, writes the adapter. samples/embed_c/run builds it and runs it on quick-start data. */
#include <inlaid.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static volatile sig_atomic_t interrupted = 0;
static void interrupt(int signal_number) { (void)signal_number, interrupted = 1; }

/* Every function that can fail returns an error, NULL on success. */
static void check(inlaid_error *error) {
  if (error == NULL) return;
  fprintf(stderr, "error %d: %s\n", (int)inlaid_error_code(error), inlaid_error_message(error));
  inlaid_error_release(error);
  exit(1);
}

int main(int argc, char **argv) {
  inlaid_runtime *runtime = NULL;
  inlaid_config *config = NULL;
  inlaid_job *job = NULL;
  inlaid_run *run = NULL;
  inlaid_model *model = NULL;
  inlaid_adapter *adapter = NULL;
  int asked = 0, going = 1;
  char json[4096], adapter_folder[1024];
  if (argc != 5) {
    fprintf(stderr, "usage: %s MODEL DATA.jsonl OUT STEPS\n", argv[0]);
    return 2;
  }
  snprintf(json, sizeof json,
           "{\"model\": {\"path\": \"%s\"}, \"data\": {\"train\": [{\"path\": \"%s\"}]},"
           " \"output_dir\": \"%s\", \"train\": {\"micro_batch_tokens\": 256, \"max_steps\": %d},"
           " \"adapter\": {\"peft_type\": \"LORA\", \"r\": 8, \"target_modules\": \"all-linear\"},"
           " \"optim\": {\"learning_rate\": 1e-3}}",
           argv[1], argv[2], argv[3], atoi(argv[4]));
  check(inlaid_runtime_create(NULL, &runtime));
  check(inlaid_config_parse(json, ".", &config));
  check(inlaid_job_create(runtime, config, &job));
  signal(SIGINT, interrupt); /* the library installs no handler of its own */
  check(inlaid_job_start(job, &run));

  while (going) {
    inlaid_event *event = NULL;
    if (interrupted && !asked) {
      check(inlaid_run_request(run, "stop")); /* after this step; saves (inlaid_run_cancel does not) */
      asked = 1;
    }
    check(inlaid_run_next(run, 100, &event)); /* NULL after 100 ms without an event */
    switch (inlaid_event_kind(event)) {
      case INLAID_EVENT_STEP:
        printf("step %llu  loss %.3f  %.0f tokens/s\n", (unsigned long long)inlaid_event_step(event),
               inlaid_event_metric(event, "loss"), inlaid_event_metric(event, "tokens_per_second"));
        break;
      case INLAID_EVENT_CHECKPOINT: printf("saved %s\n", inlaid_event_text(event)); break;
      case INLAID_EVENT_WARNING: printf("warning: %s\n", inlaid_event_text(event)); break;
      case INLAID_EVENT_DONE: printf("%s\n", inlaid_event_text(event)), going = 0; break;
    }
    inlaid_event_release(event);
  }
  check(inlaid_run_join(run, -1));

  snprintf(adapter_folder, sizeof adapter_folder, "%s/adapter", argv[3]);
  check(inlaid_job_model(job, &model, &adapter));
  check(inlaid_adapter_save(adapter, adapter_folder));
  printf("wrote %s\n", adapter_folder);
  inlaid_adapter_release(adapter); /* in any order: children keep their parents alive */
  inlaid_model_release(model);
  inlaid_run_release(run);
  inlaid_job_release(job);
  inlaid_config_release(config);
  inlaid_runtime_release(runtime);
  return 0;
}

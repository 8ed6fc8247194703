/* A loss of one's own in C: reinforcement learning. The rule that is rewarded is plain to see: words that begin with "s". Each step
 * the model answers a request several times; log-probabilities of what it said, weighted by how much better than the average answer
 * it was, are the loss (REINFORCE, with the mean of the step as baseline); backward starts from its gradient.
 * samples/own_loss_c/run builds it and runs it on the model of the quick start. */
#include <inlaid.h>

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 8, TOKENS = 14, PROMPT = 64, ROWS = SAMPLES * (PROMPT + TOKENS) };

static const char request[] =
    "<|im_start|>user\nSay something about the sea.<|im_end|>\n<|im_start|>assistant\n";

static void check(inlaid_error *error) {
  if (error == NULL) return;
  fprintf(stderr, "error %d: %s\n", (int)inlaid_error_code(error), inlaid_error_message(error));
  inlaid_error_release(error);
  exit(1);
}

static double reward(const char *text) {
  int words = 0, good = 0;
  char before = ' ';
  for (; *text != 0; before = *text++) {
    if (!isspace((unsigned char)before) || isspace((unsigned char)*text)) continue;
    ++words;
    good += tolower((unsigned char)*text) == 's';
  }
  return (double)good / (words < 4 ? 4 : words);
}

/* One micro-batch: a document for each sample. Row t predicts the id after t; only ids of the answer are targets. */
typedef struct {
  int32_t tokens[ROWS], targets[ROWS], ends[SAMPLES + 1], rows;
  char text[SAMPLES][512];
} samples;

static void sample(inlaid_model *model, inlaid_adapter *adapter, const int32_t *prompt, int32_t prompt_size, int seed, int index,
                   samples *s) {
  inlaid_generator *generator = NULL;
  char options[128];
  int32_t i, id = 0, done = 0;
  snprintf(options, sizeof options, "{\"temperature\": 1, \"seed\": %d, \"max_new_tokens\": %d, \"max_length\": %d}", seed, TOKENS,
           PROMPT + TOKENS);
  check(inlaid_generator_create(model, adapter, options, &generator));
  check(inlaid_generator_prompt(generator, prompt, (uint64_t)prompt_size * sizeof *prompt));
  for (i = 0; i < prompt_size; ++i, ++s->rows) s->tokens[s->rows] = prompt[i], s->targets[s->rows] = -100;
  s->text[index][0] = 0;
  while (!done) {
    inlaid_buffer *piece = NULL;
    check(inlaid_generator_next(generator, NULL, &id, &piece, &done));
    strncat(s->text[index], inlaid_buffer_data(piece), sizeof s->text[index] - strlen(s->text[index]) - 1);
    inlaid_buffer_release(piece);
    s->targets[s->rows - 1] = id;
    if (!done) s->tokens[s->rows] = id, s->targets[s->rows++] = -100;
  }
  s->ends[index + 1] = s->rows;
  inlaid_generator_release(generator);
}

/* The loss is -mean over samples of advantage * sum of log_probs, so its gradient is -advantage at each row. */
static void learn(inlaid_trainer *trainer, const samples *s, const double *advantage) {
  static float gradient[ROWS];
  inlaid_batch *batch = NULL;
  inlaid_pass *pass = NULL;
  inlaid_event *event = NULL;
  int i;
  int32_t row;
  check(inlaid_batch_create(&batch));
  check(inlaid_batch_add_int32(batch, "tokens", s->tokens, (uint64_t)s->rows * sizeof(int32_t)));
  check(inlaid_batch_add_int32(batch, "targets", s->targets, (uint64_t)s->rows * sizeof(int32_t)));
  check(inlaid_batch_add_int32(batch, "cu_seqlens", s->ends, sizeof s->ends));
  check(inlaid_trainer_forward(trainer, batch, NULL, NULL, &pass));
  for (i = 0; i < SAMPLES; ++i) {
    for (row = s->ends[i]; row < s->ends[i + 1]; ++row) gradient[row] = (float)-advantage[i];
  }
  check(inlaid_pass_set_gradient_f32(pass, "log_probs", gradient, (uint64_t)s->rows * sizeof(float)));
  check(inlaid_backward(pass, SAMPLES, NULL));
  check(inlaid_trainer_apply(trainer, &event));
  inlaid_event_release(event);
  inlaid_pass_release(pass);
  inlaid_batch_release(batch);
}

int main(int argc, char **argv) {
  static samples s;
  inlaid_runtime *runtime = NULL;
  inlaid_config *config = NULL;
  inlaid_model *model = NULL;
  inlaid_adapter *adapter = NULL;
  inlaid_trainer *trainer = NULL;
  inlaid_tokenizer *tokenizer = NULL;
  inlaid_buffer *prompt = NULL;
  int32_t prompt_size;
  int step, steps, i;
  char json[512];
  if (argc != 3) {
    fprintf(stderr, "usage: %s MODEL STEPS\n", argv[0]);
    return 2;
  }
  steps = atoi(argv[2]);
  snprintf(json, sizeof json,
           "{\"adapter\": {\"peft_type\": \"LORA\", \"r\": 8, \"target_modules\": \"all-linear\"},"
           " \"train\": {\"max_steps\": %d, \"micro_batch_tokens\": %d},"
           " \"optim\": {\"learning_rate\": 2e-3, \"lr_scheduler_type\": \"constant\"}}",
           steps, (int)ROWS);
  check(inlaid_runtime_create(NULL, &runtime));
  check(inlaid_config_parse(json, NULL, &config));
  check(inlaid_model_load(runtime, argv[1], "{\"weights_dtype\": \"as_stored\"}", NULL, &model));
  check(inlaid_adapter_create(model, config, &adapter));
  check(inlaid_trainer_create(model, adapter, config, &trainer));
  check(inlaid_model_tokenizer(model, &tokenizer));
  check(inlaid_tokenizer_encode(tokenizer, request, strlen(request), 0, &prompt));
  prompt_size = (int32_t)(inlaid_buffer_size(prompt) / sizeof(int32_t));
  if (prompt_size > PROMPT) return 2;

  for (step = 0; step < steps; ++step) {
    double rewards[SAMPLES], mean = 0, spread = 0;
    int best = 0;
    s.rows = 0;
    for (i = 0; i < SAMPLES; ++i) {
      sample(model, adapter, inlaid_buffer_data(prompt), prompt_size, step * SAMPLES + i, i, &s);
      rewards[i] = reward(s.text[i]);
      mean += rewards[i] / SAMPLES;
      if (rewards[i] > rewards[best]) best = i;
    }
    for (i = 0; i < SAMPLES; ++i) spread += (rewards[i] - mean) * (rewards[i] - mean) / SAMPLES;
    spread = sqrt(spread);
    printf("step %d  reward %.3f  best: %s\n", step + 1, mean, s.text[best]);
    fflush(stdout);
    if (spread == 0) continue; /* nothing to prefer */
    for (i = 0; i < SAMPLES; ++i) rewards[i] = (rewards[i] - mean) / spread;
    learn(trainer, &s, rewards);
  }

  inlaid_buffer_release(prompt);
  inlaid_tokenizer_release(tokenizer);
  inlaid_trainer_release(trainer);
  inlaid_adapter_release(adapter);
  inlaid_model_release(model);
  inlaid_config_release(config);
  inlaid_runtime_release(runtime);
  return 0;
}

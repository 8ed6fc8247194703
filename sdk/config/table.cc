#include "sdk/config/table.h"

#include <algorithm>

namespace inlaid::config {
namespace {

constexpr double kInt32 = 2147483647;

// Laid out by hand: one or two lines of facts, then the help.
// clang-format off
constexpr Key kTable[] = {
    {.path = "model.path", .type = Type::kPath, .empty = false,
     .help = "Hugging Face folder, GGUF file, or Inlaid model folder."},
    {.path = "model.config", .type = Type::kObject,
     .help = "Instead of model.path: an inline config.json, to train from scratch."},
    {.path = "model.tokenizer", .type = Type::kPath, .empty = false,
     .help = "Tokenizer file or folder. Default: the one of model.path."},
    {.path = "model.weights_dtype", .type = Type::kText, .preset = "\"f32\"",
     .values = "f32|bf16|f16|as_stored",
     .help = "How weights are held. Weights that train are held as f32; as_stored keeps frozen weights as "
             "the file has them, quantised ones too."},
    {.path = "model.trainable", .type = Type::kTexts, .empty = false,
     .help = "Regular expressions searched in parameter names; what matches trains, the rest is frozen. "
             "Default: everything trains; with an adapter, nothing but the adapter."},
    {.path = "model.recompute", .type = Type::kText, .preset = "\"auto\"", .values = "none|full|auto",
     .later = "selective",
     .help = "Activations computed again in the backward pass instead of kept. auto: full only where "
             "runtime.memory_limit asks for it."},

    {.path = "adapter.peft_type", .type = Type::kText, .values = "LORA",
     .later = "IA3|PROMPT_TUNING|PREFIX_TUNING|P_TUNING|LOHA|LOKR|ADALORA",
     .help = "Trains a small adapter on the frozen model instead of the model."},
    {.path = "adapter.r", .type = Type::kInteger, .preset = "8", .min = 1, .max = 65536,
     .help = "Rank of the update."},
    {.path = "adapter.lora_alpha", .type = Type::kNumber, .preset = "8.0", .above = 0,
     .help = "The update is scaled by lora_alpha / r."},
    {.path = "adapter.lora_dropout", .type = Type::kNumber, .preset = "0.0", .min = 0, .below = 1,
     .help = "Dropout on the input of the update."},
    {.path = "adapter.target_modules", .type = Type::kTextOrTexts, .empty = false,
     .help = "Module names, a regular expression, or \"all-linear\". Default: PEFT's for the model family, "
             "q_proj and v_proj for the Llama family."},
    {.path = "adapter.exclude_modules", .type = Type::kTexts,
     .help = "Modules that are not targets after all."},
    {.path = "adapter.use_rslora", .type = Type::kFlag, .preset = "false",
     .help = "Scale by lora_alpha / sqrt(r) (arXiv 2312.03732)."},
    {.path = "adapter.use_dora", .type = Type::kFlag, .preset = "false", .fixed = true,
     .help = "Weight-decomposed adapter (arXiv 2402.09353)."},
    {.path = "adapter.modules_to_save", .type = Type::kTexts,
     .help = "Modules that train in full beside the adapter and are saved with it."},
    {.path = "adapter.bias", .type = Type::kText, .preset = "\"none\"", .values = "none",
     .later = "all|lora_only",
     .help = "Biases that train."},
    {.path = "adapter.init_lora_weights", .type = Type::kFlagOrText, .preset = "true", .values = "gaussian",
     .later = "eva|olora|pissa|corda|loftq|orthogonal",
     .help = "true: A uniform as in PEFT, B zero. gaussian: A normal, B zero. false: A and B random, so "
             "that the adapter changes the model from the start."},
    {.path = "adapter.rank_pattern", .type = Type::kIntegers, .preset = "{}", .min = 1, .max = 65536,
     .help = "Rank of single modules: regular expression to rank."},
    {.path = "adapter.alpha_pattern", .type = Type::kNumbers, .preset = "{}", .above = 0,
     .help = "lora_alpha of single modules: regular expression to value."},
    {.path = "adapter.path", .type = Type::kPath, .empty = false,
     .help = "Continue from this PEFT adapter folder; its own settings hold."},

    {.path = "data.train", .type = Type::kSources, .empty = false,
     .help = "Training data: list of {path, format, columns, weight, limit}."},
    {.path = "data.eval", .type = Type::kSources, .empty = false, .help = "Evaluation data, likewise."},
    {.path = "data.eval_fraction", .type = Type::kNumber, .preset = "0.0", .min = 0, .below = 1,
     .help = "Share of data.train held out for evaluation, by hash of the row, when data.eval is absent."},
    {.path = "data.chat_template", .type = Type::kTemplate, .empty = false,
     .help = "File, or inline text (anything with '{' or a line break). Default: the model's."},
    {.path = "data.loss_on", .type = Type::kText, .preset = "\"assistant\"",
     .values = "assistant|last_assistant|completion|all",
     .help = "Which tokens are targets."},
    {.path = "data.max_length", .type = Type::kInteger, .min = 2, .max = kInt32,
     .help = "Tokens per sample. Default: what the model has positions for, at most 2048."},
    {.path = "data.truncation", .type = Type::kText, .preset = "\"error\"", .values = "error|right|left|drop",
     .help = "What happens to longer samples; drop lists them in the report."},
    {.path = "data.packing", .type = Type::kFlag,
     .help = "Several samples per micro-batch up to train.micro_batch_tokens, each attending to itself "
             "only. Default: true, or false with train.micro_batch_size."},
    {.path = "data.shuffle", .type = Type::kFlag, .preset = "true",
     .help = "The order is a function of (train.seed, epoch, index)."},
    {.path = "data.on_bad_row", .type = Type::kText, .preset = "\"error\"", .values = "error|list",
     .help = "list: skip the row and name it in the report."},
    {.path = "data.cache_dir", .type = Type::kPath,
     .help = "Folder of the token cache. Default: cache in output_dir; \"\" = no cache."},
    {.path = "data.resident_bytes", .type = Type::kInteger, .preset = "1073741824", .min = 0,
     .help = "Token ids and targets that are held in memory; a larger data set is read from the token cache file, sample by "
             "sample. 0 = all in memory."},

    {.path = "train.seed", .type = Type::kInteger, .preset = "42", .min = 0,
     .help = "Seed of everything random."},
    {.path = "train.num_train_epochs", .type = Type::kNumber, .preset = "1.0", .max = 1e6, .above = 0,
     .help = "Passes over the data, unless train.max_steps says otherwise."},
    {.path = "train.max_steps", .type = Type::kInteger, .min = 1, .help = "Instead: optimizer steps."},
    {.path = "train.micro_batch_tokens", .type = Type::kInteger, .preset = "1024", .min = 2, .max = kInt32,
     .help = "Token capacity of one micro-batch."},
    {.path = "train.micro_batch_size", .type = Type::kInteger, .min = 1, .max = 1 << 20,
     .help = "Instead: samples per micro-batch."},
    {.path = "train.gradient_accumulation_steps", .type = Type::kInteger, .preset = "1", .min = 1, .max = 1e6,
     .help = "Micro-batches per optimizer step and data-parallel rank."},
    {.path = "train.global_batch_tokens", .type = Type::kInteger, .min = 2,
     .help = "Token capacity of one optimizer step; gives train.gradient_accumulation_steps."},
    {.path = "train.global_batch_size", .type = Type::kInteger, .min = 1,
     .help = "Samples of one optimizer step, with train.micro_batch_size; gives "
             "train.gradient_accumulation_steps."},
    {.path = "train.eval_steps", .type = Type::kInteger, .min = 1,
     .help = "Evaluate every so many steps. Default: at the end."},
    {.path = "train.eval_on_start", .type = Type::kFlag, .preset = "true",
     .help = "Evaluate before the first step."},
    {.path = "train.early_stopping_patience", .type = Type::kInteger, .min = 1,
     .help = "Stop after so many evaluations in a row without a new best train.metric_for_best_model."},
    {.path = "train.early_stopping_threshold", .type = Type::kNumber, .min = 0,
     .help = "What a new best must be better by. Default: 0."},
    {.path = "train.metric_for_best_model", .type = Type::kText, .preset = "\"eval_loss\"",
     .values = "eval_loss",
     .help = "What makes a checkpoint the best one."},

    {.path = "optim.name", .type = Type::kText, .preset = "\"adamw\"", .values = "adamw",
     .later = "sgd|adafactor|lamb|lion|onebit_adam|zero_one_adam|onebit_lamb",
     .help = "The optimizer."},
    {.path = "optim.learning_rate", .type = Type::kNumber, .min = 0,
     .help = "Peak learning rate. Default: 5e-5, or 2e-4 with an adapter."},
    {.path = "optim.weight_decay", .type = Type::kNumber, .preset = "0.0", .min = 0,
     .help = "Decoupled weight decay; norms and biases do not decay."},
    {.path = "optim.adam_beta1", .type = Type::kNumber, .preset = "0.9", .min = 0, .below = 1,
     .help = "Decay of the first moment."},
    {.path = "optim.adam_beta2", .type = Type::kNumber, .preset = "0.999", .min = 0, .below = 1,
     .help = "Decay of the second moment."},
    {.path = "optim.adam_epsilon", .type = Type::kNumber, .preset = "1e-8", .above = 0,
     .help = "Added to the root of the second moment."},
    {.path = "optim.max_grad_norm", .type = Type::kNumber, .preset = "1.0", .min = 0,
     .help = "Gradients are scaled down to this norm; 0 = never."},
    {.path = "optim.lr_scheduler_type", .type = Type::kText, .preset = "\"linear\"",
     .values = "constant|linear|cosine|cosine_with_min_lr|inverse_sqrt|warmup_stable_decay",
     .help = "Course of the learning rate, with the formulas of transformers."},
    {.path = "optim.warmup_steps", .type = Type::kInteger, .preset = "0", .min = 0,
     .help = "Steps of linear warm-up."},
    {.path = "optim.warmup_ratio", .type = Type::kNumber, .preset = "0.0", .min = 0, .max = 1,
     .help = "Instead: share of all steps, rounded up."},
    {.path = "optim.lr_scheduler_kwargs.min_lr", .type = Type::kNumber, .min = 0,
     .help = "cosine_with_min_lr: last learning rate."},
    {.path = "optim.lr_scheduler_kwargs.min_lr_rate", .type = Type::kNumber, .min = 0, .max = 1,
     .help = "cosine_with_min_lr: instead, as a share of optim.learning_rate."},
    {.path = "optim.lr_scheduler_kwargs.num_decay_steps", .type = Type::kInteger, .min = 1,
     .help = "warmup_stable_decay: steps of the decay at the end; needed."},
    {.path = "optim.lr_scheduler_kwargs.min_lr_ratio", .type = Type::kNumber, .min = 0, .max = 1,
     .help = "warmup_stable_decay: share of optim.learning_rate at both ends. Default: 0."},
    {.path = "optim.lr_scheduler_kwargs.timescale", .type = Type::kInteger, .min = 1,
     .help = "inverse_sqrt: steps. Default: the warm-up steps, or 10000 without warm-up."},
    {.path = "optim.state_dtype", .type = Type::kText, .preset = "\"f32\"", .values = "f32", .later = "bf16",
     .help = "How optimizer state is held."},

    {.path = "precision.mode", .type = Type::kText, .preset = "\"f32\"", .values = "f32",
     .later = "bf16|f16|fp8",
     .help = "Arithmetic of forward and backward pass."},
    {.path = "precision.fp8", .type = Type::kObject, .preset = "{}", .fixed = true,
     .help = "Recipe of precision.mode fp8."},

    {.path = "parallel.tensor", .type = Type::kInteger, .preset = "1", .min = 1, .fixed = true,
     .help = "Mesh size."},
    {.path = "parallel.pipeline", .type = Type::kInteger, .preset = "1", .min = 1, .fixed = true,
     .help = "Mesh size."},
    {.path = "parallel.context", .type = Type::kInteger, .preset = "1", .min = 1, .fixed = true,
     .help = "Mesh size."},
    {.path = "parallel.expert", .type = Type::kInteger, .preset = "1", .min = 1, .fixed = true,
     .help = "Mesh size."},
    {.path = "parallel.expert_tensor", .type = Type::kInteger, .preset = "1", .min = 1, .fixed = true,
     .help = "Mesh size."},
    {.path = "parallel.data", .type = Type::kInteger, .preset = "1", .min = 1, .fixed = true,
     .help = "Mesh size."},
    {.path = "parallel.zero_stage", .type = Type::kInteger, .preset = "0", .min = 0, .max = 3, .fixed = true,
     .help = "What data-parallel ranks share out: 1 optimizer state, 2 gradients too, 3 weights too."},
    {.path = "parallel.offload", .type = Type::kText, .preset = "\"none\"", .values = "none",
     .later = "host|file",
     .help = "Where optimizer state and weights rest."},
    {.path = "parallel.schedule", .type = Type::kText, .preset = "\"1f1b\"", .values = "1f1b",
     .later = "gpipe|interleaved_1f1b|zb1p|zbv|dualpipev",
     .help = "Pipeline schedule; with one stage there is nothing to schedule."},
    {.path = "parallel.virtual_stages", .type = Type::kInteger, .preset = "1", .min = 1, .fixed = true,
     .help = "Pipeline stages per rank."},
    {.path = "parallel.stage_split", .type = Type::kText, .preset = "\"auto\"", .values = "auto",
     .help = "Layers of each stage."},
    {.path = "parallel.deterministic_reduction", .type = Type::kFlag, .preset = "false",
     .help = "Ordered reduction: the same bits for any number of ranks. With one rank both are the same."},

    {.path = "checkpoint.save_steps", .type = Type::kInteger, .min = 1,
     .help = "Save every so many steps. Default: at the end."},
    {.path = "checkpoint.save_total_limit", .type = Type::kInteger, .preset = "3", .min = 1,
     .help = "Checkpoints kept: the latest ones."},
    {.path = "checkpoint.keep_best", .type = Type::kInteger, .min = 0, .max = 1000,
     .help = "After an evaluation that is among so many best ones, save, and keep these checkpoints beside "
             "the latest. Default: 0, or 1 with train.early_stopping_patience."},
    {.path = "checkpoint.async", .type = Type::kFlag, .preset = "false", .fixed = true,
     .help = "Write while training goes on."},
    {.path = "checkpoint.staging_bytes", .type = Type::kInteger, .preset = "268435456", .min = 1,
     .fixed = true,
     .help = "Memory that an asynchronous save may hold."},

    {.path = "logging.logging_steps", .type = Type::kInteger, .preset = "1", .min = 1,
     .help = "A step event every so many steps."},
    {.path = "logging.writers", .type = Type::kTexts, .preset = "[\"jsonl\",\"html\"]",
     .values = "jsonl|csv|tensorboard|html", .empty = false,
     .help = "Files that events are written to, in output_dir: events.jsonl; steps.csv and evals.csv; "
             "events/ for TensorBoard; report.html, which is made from events.jsonl."},
    {.path = "logging.sample_prompts", .type = Type::kTexts, .preset = "[]",
     .help = "Questions to which the model's greedy answers are recorded before the first step and after the "
             "last one."},
    {.path = "logging.sample_max_new_tokens", .type = Type::kInteger, .preset = "64", .min = 1,
     .max = 65536, .help = "Tokens of such an answer at most."},

    {.path = "runtime.cpu_threads", .type = Type::kInteger, .min = 1, .max = 4096,
     .help = "Default: one per processor."},
    {.path = "runtime.memory_limit", .type = Type::kInteger, .min = 1,
     .help = "Bytes that the job's buffers may take; a hard limit. Default: none."},
    {.path = "runtime.disk_limit", .type = Type::kInteger, .min = 1,
     .help = "Bytes that the files of the job may take on disk; a hard limit. Default: none."},
    {.path = "runtime.zero_memory", .type = Type::kFlag, .preset = "false",
     .help = "Buffers are filled with zeros before their memory is given back."},
    {.path = "runtime.devices", .type = Type::kText, .preset = "\"auto\"", .values = "auto|cpu",
     .later = "cuda",
     .help = "Where the job runs; auto is the processor in this build."},
    {.path = "runtime.wall_time_limit", .type = Type::kNumber, .above = 0,
     .help = "Seconds after which a run ends, within a step too: the job saves the last whole step, says so, and can be "
             "resumed. Default: none."},

    {.path = "output_dir", .type = Type::kPath, .empty = false,
     .help = "Where job, events, checkpoints and results go."},
};

constexpr Key kSourceTable[] = {
    {.path = "path", .type = Type::kPath, .empty = false, .help = "File or glob; needed."},
    {.path = "format", .type = Type::kText, .preset = "\"auto\"",
     .values = "auto|chat|prompt_completion|alpaca|text", .later = "classification|preference",
     .help = "Shape of a row."},
    {.path = "columns", .type = Type::kTextMap, .preset = "{}",
     .help = "Our name of a column to the file's."},
    {.path = "weight", .type = Type::kNumber, .preset = "1.0", .max = 1e6, .above = 0,
     .help = "How often training draws each sample in an epoch: 0.5 = every second one, the others in the "
             "next epoch; 2 = twice."},
    {.path = "limit", .type = Type::kInteger, .min = 1, .help = "First rows only. Default: all."},
};
// clang-format on

}  // namespace

std::span<const Key> table() {
  return kTable;
}
std::span<const Key> source_table() {
  return kSourceTable;
}

const Key* find_key(std::string_view path) {
  const Key* end = std::end(kTable);
  const Key* found = std::find_if(std::begin(kTable), end, [&](const Key& key) { return key.path == path; });
  return found == end ? nullptr : found;
}

bool is_section(std::string_view path) {
  return std::any_of(std::begin(kTable), std::end(kTable), [&](const Key& key) {
    return key.path.size() > path.size() && key.path.starts_with(path) && key.path[path.size()] == '.';
  });
}

std::vector<std::string> split_values(std::string_view values) {
  std::vector<std::string> parts;
  while (!values.empty()) {
    const size_t bar = std::min(values.find('|'), values.size());
    parts.emplace_back(values.substr(0, bar));
    values.remove_prefix(std::min(bar + 1, values.size()));
  }
  return parts;
}

std::vector<std::string> names_in(std::string_view section) {
  std::vector<std::string> names;
  for (const Key& key : kTable) {
    std::string_view rest = key.path;
    if (!section.empty()) {
      if (!rest.starts_with(section) || rest.size() <= section.size() || rest[section.size()] != '.')
        continue;
      rest.remove_prefix(section.size() + 1);
    }
    const std::string_view name = rest.substr(0, rest.find('.'));
    if (names.empty() || names.back() != name) names.emplace_back(name);  // keys of a section stand together
  }
  return names;
}

}  // namespace inlaid::config

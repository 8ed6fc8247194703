#include "sdk/train/job.h"

#include <algorithm>

#include "sdk/base/clock.h"
#include "sdk/base/error.h"
#include "sdk/base/hash.h"
#include "sdk/train/audit.h"
#include "sdk/train/job_list.h"
#include "sdk/train/output_folder.h"

namespace inlaid::train {
namespace {

std::vector<std::string> strings(const Json& list) {
  std::vector<std::string> result;
  if (!list.is_array()) return result;
  for (const Json& entry : list) result.push_back(entry.get<std::string>());
  return result;
}

// Threads, memory and disk belong to the runtime, which exists before the job: a job whose quotas it exceeds is refused.
void check_quotas(const Runtime& runtime, const config::Config& config) {
  const auto threads = config.optional_integer("runtime.cpu_threads");
  if (threads && runtime.pool.threads() > *threads) {
    fail(Code::kFailedPrecondition, "runtime.cpu_threads is ", *threads, ", the runtime has ", runtime.pool.threads(),
         " threads; create it with at most that many");
  }
  const auto memory = config.optional_integer("runtime.memory_limit");
  const uint64_t limit = runtime.memory->limit();
  if (memory && (limit == 0 || limit > static_cast<uint64_t>(*memory))) {
    fail(Code::kFailedPrecondition, "runtime.memory_limit is ", *memory, " bytes, the runtime's limit is ",
         limit == 0 ? "none" : std::to_string(limit), "; create it with at most that limit");
  }
  const auto disk = config.optional_integer("runtime.disk_limit");
  const uint64_t disk_limit = runtime.files.limit();
  if (disk && (disk_limit == 0 || disk_limit > static_cast<uint64_t>(*disk))) {
    fail(Code::kFailedPrecondition, "runtime.disk_limit is ", *disk, " bytes, the runtime's limit is ",
         disk_limit == 0 ? "none" : std::to_string(disk_limit), "; create it with at most that disk_limit");
  }
  if (config.flag("runtime.zero_memory") && !runtime.duties.zero_memory) {
    fail(Code::kFailedPrecondition, "runtime.zero_memory is true, but the runtime was created without zero_memory");
  }
}

std::string job_record(const Job& job) {
  const Trainer& trainer = *job.trainer();
  const formats::ModelFiles& files = trainer.model()->files();
  Json json;
  json["inlaid_version"] = INLAID_VERSION;
  json["created"] = job.clock();
  json["model_identity"] = files.identity;
  json["tokenizer_sha256"] = files.tokenizer_json.empty() ? "" : sha256_hex(files.tokenizer_json);
  json["chat_template_sha256"] = files.chat_template.empty() ? "" : sha256_hex(files.chat_template);
  json["train_data_identity"] = job.train_data() ? job.train_data()->identity() : "";
  json["eval_data_identity"] = job.eval_data() ? job.eval_data()->identity() : "";
  json["config"] = parse_json(job.config().to_json(), "canonical configuration");
  return json.dump(2) + "\n";
}

// The output folder of a job that could not be created, which did not exist before: its token cache is all that it can hold.
void remove_what_failed(FileSystem& files, const std::string& output) {
  try {
    if (files.exists(output) && !files.exists(join_path(output, kJobFile))) files.remove_all(output);
  } catch (const Error&) {
    // The failure that is on its way says more.
  }
}

std::string restore(Trainer& trainer, const std::string& checkpoint) {
  try {
    return trainer.restore(checkpoint);
  } catch (const Error& e) {
    if (e.code() != Code::kDataLoss) throw;
    throw Error(e.code(),
                e.message() + "; to go on from the checkpoint before it, or from the beginning if there is none, move " +
                    checkpoint + " away",
                e.details());
  }
}

}  // namespace

models::LoadOptions load_options(FileSystem& files, const config::Config& config) {
  models::LoadOptions options;
  options.weights_dtype = config.text("model.weights_dtype");
  options.tokenizer = config.optional_text("model.tokenizer").value_or("");
  options.chat_template = config.optional_text("data.chat_template").value_or("");
  const bool inline_text = options.chat_template.find_first_of("{\n") != std::string::npos;
  if (!options.chat_template.empty() && !inline_text) {
    options.chat_template = read_text(files, options.chat_template, uint64_t{1} << 20);
  }
  return options;
}

nn::AdapterConfig adapter_config(const config::Config& config) {
  nn::AdapterConfig adapter;
  adapter.r = config.integer("adapter.r");
  adapter.lora_alpha = config.number("adapter.lora_alpha");
  adapter.lora_dropout = config.number("adapter.lora_dropout");
  adapter.target_modules = config.value("adapter.target_modules");
  // PEFT's default for the Llama family.
  if (adapter.target_modules.is_null()) adapter.target_modules = {"q_proj", "v_proj"};
  adapter.exclude_modules = strings(config.value("adapter.exclude_modules"));
  adapter.modules_to_save = strings(config.value("adapter.modules_to_save"));
  adapter.use_rslora = config.flag("adapter.use_rslora");
  if (config.value("adapter.rank_pattern").is_object()) adapter.rank_pattern = config.value("adapter.rank_pattern");
  if (config.value("adapter.alpha_pattern").is_object()) adapter.alpha_pattern = config.value("adapter.alpha_pattern");
  const Json& init = config.value("adapter.init_lora_weights");
  if (init.is_boolean()) adapter.init = init.get<bool>() ? "true" : "false";
  if (init.is_string()) adapter.init = init.get<std::string>();
  return adapter;
}

data::DatasetOptions dataset_options(const config::Config& config, const models::Model& model, bool evaluation) {
  data::DatasetOptions options;
  const bool own_sources = evaluation && config.has("data.eval");
  const Json& sources = config.value(own_sources ? "data.eval" : "data.train");
  if (sources.is_array()) {
    for (const Json& entry : sources) {
      data::Source source;
      source.path = entry.at("path").get<std::string>();
      if (entry.contains("format") && entry["format"].is_string()) source.format = entry["format"].get<std::string>();
      if (entry.contains("columns") && entry["columns"].is_object()) source.columns = entry["columns"];
      if (entry.contains("limit") && entry["limit"].is_number_integer()) source.limit = entry["limit"].get<int64_t>();
      source.weight = entry.value("weight", 1.0);
      options.sources.push_back(std::move(source));
    }
  }
  options.loss_on = config.text("data.loss_on");
  options.max_length = config.optional_integer("data.max_length")
                           .value_or(std::min<int64_t>(2048, model.config().max_position_embeddings));
  options.truncation = config.text("data.truncation");
  options.on_bad_row = config.text("data.on_bad_row");
  if (!config.has("data.eval")) options.eval_fraction = config.number("data.eval_fraction");
  options.held_out = evaluation && !own_sources;
  options.resident_bytes = static_cast<uint64_t>(config.integer("data.resident_bytes"));
  options.eos_candidates = model.stop_tokens();
  if (const auto cache = config.optional_text("data.cache_dir")) {
    options.cache_folder = *cache;
  } else if (const auto output = config.optional_text("output_dir"); output && model.runtime()->files.is_folder(*output)) {
    // A plan or a check of the data does not make the folder of a job that does not exist.
    options.cache_folder = join_path(*output, "cache");
  }
  return options;
}

std::shared_ptr<const data::Dataset> open_data(const config::Config& config, const models::Model& model, bool evaluation,
                                               const DataUse& use) {
  data::DatasetOptions options = dataset_options(config, model, evaluation);
  options.count_only = use.count_only;
  options.template_variables = clock_variables(model.chat_template().get(), use.clock);
  if (options.sources.empty()) return nullptr;
  if (evaluation && options.held_out && options.eval_fraction == 0) return nullptr;
  Runtime& runtime = *model.runtime();
  try {
    return data::Dataset::open(options, runtime.files, runtime.pool, use.account ? use.account : runtime.memory,
                               model.tokenizer(), model.chat_template());
  } catch (const Error& e) {
    // Lets a host tell bad data from a bad configuration.
    throw Error(e.code(), e.message(), R"({"origin":"data"})");
  }
}

autograd::Capacity job_capacity(const config::Config& config, const std::shared_ptr<const data::Dataset>& train,
                                const std::shared_ptr<const data::Dataset>& evaluation) {
  data::BatchOptions options;
  options.micro_batch_size = config.optional_integer("train.micro_batch_size").value_or(0);
  // Without data at hand, samples may be as long as data.max_length.
  options.micro_batch_tokens =
      config.optional_integer("train.micro_batch_tokens")
          .value_or(options.micro_batch_size * config.optional_integer("data.max_length").value_or(2048));
  autograd::Capacity capacity{options.micro_batch_tokens, options.micro_batch_tokens};
  if (train != nullptr) {
    const data::Batcher batcher(train, options);
    capacity = {batcher.row_capacity(), batcher.document_capacity()};
  }
  if (evaluation != nullptr) {
    data::BatchOptions packed;
    packed.weighted = false;
    packed.micro_batch_tokens = capacity.tokens = std::max(capacity.tokens, evaluation->longest());
    capacity.documents = std::max(capacity.documents, data::Batcher(evaluation, packed).document_capacity());
  }
  return capacity;
}

std::shared_ptr<Job> Job::open(std::shared_ptr<Runtime> runtime, const config::Config& config, const std::string& clock) {
  config.check_job();
  check_quotas(*runtime, config);
  if (const auto output = config.optional_text("output_dir")) runtime->files.count_folder(*output);
  std::shared_ptr<Job> job(new Job());
  job->config_ = config;
  job->clock_ = clock;
  const models::LoadOptions options = load_options(runtime->files, config);
  const auto seed = static_cast<uint64_t>(config.integer("train.seed"));
  const std::shared_ptr<models::Model> model =
      config.has("model.path") ? models::Model::load(runtime, config.text("model.path"), options)
                               : models::Model::create(runtime, config.value("model.config"), seed, options);
  std::shared_ptr<models::Adapter> adapter;
  if (config.has("adapter.path")) {
    adapter = models::Adapter::load(model, config.text("adapter.path"));
  } else if (config.has("adapter.peft_type")) {
    adapter = models::Adapter::create(model, adapter_config(config), seed);
  }
  job->train_data_ = open_data(config, *model, false, {.clock = clock});
  job->eval_data_ = open_data(config, *model, true, {.clock = clock});
  job->samples_ = sample_prompts(config, *model, clock);
  job->trainer_ = Trainer::create(model, adapter, config, job_capacity(config, job->train_data_, job->eval_data_));
  if (job->train_data_ != nullptr) job->trainer_->set_train_data(job->train_data_);
  return job;
}

std::shared_ptr<Job> Job::create(std::shared_ptr<Runtime> runtime, const config::Config& config) {
  FileSystem& files = runtime->files;
  const auto output = config.optional_text("output_dir");
  if (output && files.exists(join_path(*output, kJobFile))) {
    fail(Code::kAlreadyExists, *output, " already holds a job; resume it, or choose another output_dir");
  }
  const bool fresh = output && !files.exists(*output);
  try {
    if (output) files.make_folders(*output);
    std::shared_ptr<Job> job = open(runtime, config, utc_text(unix_ms_now() / 1000));
    if (output) {
      Json report;
      if (job->train_data_) report["train"] = job->train_data_->report().to_json();
      if (job->eval_data_) report["eval"] = job->eval_data_->report().to_json();
      write_atomically(files, join_path(*output, kDataReportFile), report.dump(2) + "\n");
      write_audit(*job, *output);
      write_atomically(files, join_path(*output, kJobFile), job_record(*job));
    }
    return job;
  } catch (...) {
    if (fresh) remove_what_failed(files, *output);
    throw;
  }
}

std::shared_ptr<Job> Job::resume(std::shared_ptr<Runtime> runtime, const std::string& output_dir) {
  FileSystem& files = runtime->files;
  const std::string path = join_path(output_dir, kJobFile);
  if (!files.exists(path)) fail(Code::kNotFound, output_dir, " holds no job: there is no ", kJobFile);
  check_not_running(files, output_dir);
  const Json record = parse_json(read_text(files, path), path);
  config::Config config = config::Config::parse(to_text(at(record, "config", path)));
  // The folder may have been moved since.
  config.set("output_dir", to_text(Json(output_dir)));
  check_inputs(*runtime, output_dir);
  std::shared_ptr<Job> job = open(runtime, config, string_at(record, "created", path));
  const std::string folder = join_path(output_dir, kCheckpointsFolder);
  std::string latest = checkpoint::latest_checkpoint(files, folder);
  if (latest.empty() && files.exists(folder)) {
    // None is whole. Starting over in silence would lose work: restoring the last one says what is damaged.
    for (const std::string& name : files.list(folder)) {
      if (name.starts_with("step-") && !name.ends_with(".tmp")) latest = join_path(folder, name);
    }
  }
  if (!latest.empty()) {
    job->resumed_state_ = restore(*job->trainer_, latest);
    job->resumed_from_ = latest;
  }
  return job;
}

std::shared_ptr<Run> Job::start() {
  RunOptions options;
  options.eval_every = config_.optional_integer("train.eval_steps").value_or(0);
  options.eval_on_start = config_.flag("train.eval_on_start");
  options.save_every = config_.optional_integer("checkpoint.save_steps").value_or(0);
  options.save_total_limit = config_.integer("checkpoint.save_total_limit");
  options.logging_every = config_.integer("logging.logging_steps");
  options.keep_best = config_.integer("checkpoint.keep_best");
  options.patience = config_.optional_integer("train.early_stopping_patience").value_or(0);
  options.threshold = config_.optional_number("train.early_stopping_threshold").value_or(0);
  options.samples = samples_;
  options.wall_time_limit = config_.optional_number("runtime.wall_time_limit").value_or(0);
  if (const auto output = config_.optional_text("output_dir")) {
    options.checkpoint_folder = join_path(*output, kCheckpointsFolder);
    options.output_folder = *output;
    options.lock = lock_job(trainer_->model()->runtime()->files, *output);
    options.writers = strings(config_.value("logging.writers"));
  }
  options.eval_data = eval_data_;
  options.resumed_state = resumed_state_;
  return Run::start(trainer_, std::move(options));
}

Json Job::describe() const {
  int64_t parameters = 0, trained = 0;
  for (const auto& parameter : trainer_->model()->parameters().all()) parameters += element_count(parameter->spec.shape);
  for (const auto& [name, gradient] : trainer_->gradients()) trained += gradient.elements();
  Json json;
  json["output_dir"] = config_.optional_text("output_dir").value_or("");
  json["model"] = trainer_->model()->files().path;
  json["parameters"] = parameters;
  json["trained_parameters"] = trained;
  json["train_rows"] = train_data_ ? train_data_->size() : 0;
  json["eval_rows"] = eval_data_ ? eval_data_->size() : 0;
  json["total_steps"] = trainer_->total_steps().value_or(0);
  json["steps_done"] = trainer_->steps_done();
  json["resumed_from"] = resumed_from_;
  json["capacity_tokens"] = trainer_->capacity().tokens;
  return json;
}

}  // namespace inlaid::train

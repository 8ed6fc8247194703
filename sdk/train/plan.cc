// Prediction of a job from the same step program that the run replays.
#include <algorithm>
#include <cstdio>
#include <numeric>

#include "sdk/base/error.h"
#include "sdk/train/job.h"

namespace inlaid::train {
namespace {

// Floating-point operations of the matrix products of one full micro-batch: 2 per weight and row in each direction, as
// reference: forward, gradient of inputs, and gradient of weights where they train; attention counted as causal (half).
double flops(const Programs& programs, const models::DecoderConfig& model) {
  double weights = 0, trained = 0;
  for (const autograd::ParameterUse& use : programs.train.parameters) {
    if (use.shape.size() < 2) continue;
    const bool embedding = use.name == "model.embed_tokens.weight";
    if (embedding && !model.tie_word_embeddings) continue;  // a look-up, no product
    const auto size = static_cast<double>(element_count(use.shape));
    weights += size;
    if (use.trainable) trained += size;
  }
  const auto rows = static_cast<double>(programs.capacity.tokens);
  const double again = programs.recompute ? 1.0 : 0.0;
  const double attention = 12.0 * static_cast<double>(model.num_hidden_layers * model.num_attention_heads * model.head_dim) *
                           rows * rows / 2.0;
  return 2.0 * rows * ((2.0 + again) * weights + trained) + attention;
}

Json memory_json(const std::array<uint64_t, kCategories>& bytes, uint64_t total) {
  Json json;
  for (int i = 0; i < kCategories; ++i) json[category_name(static_cast<Category>(i))] = bytes[static_cast<size_t>(i)];
  json["total"] = total;
  return json;
}

uint64_t weight_bytes(const nn::ParameterSet& parameters) {
  uint64_t bytes = 0;
  for (const auto& parameter : parameters.all()) {
    bytes += static_cast<uint64_t>(byte_count(parameter->value.dtype(), parameter->spec.shape));
  }
  return bytes;
}

std::string mebibytes(uint64_t bytes) {
  char text[64];
  std::snprintf(text, sizeof text, "%.1f MiB (%llu bytes)", static_cast<double>(bytes) / 1048576.0,
                static_cast<unsigned long long>(bytes));
  return text;
}

Json predict(std::shared_ptr<Runtime> runtime, const config::Config& config) {
  // Without data.train the plan is that of a host that brings its own batches.
  if (!config.has("model.path") && !config.has("model.config")) {
    fail(Code::kInvalidArgument, "model.path or model.config is missing: there is nothing to plan");
  }
  const models::LoadOptions options = load_options(runtime->files, config);
  const std::shared_ptr<models::Model> model =
      config.has("model.path") ? models::Model::outline(runtime, config.text("model.path"), options)
                               : models::Model::create_outline(runtime, config.value("model.config"), options);
  std::shared_ptr<models::Adapter> adapter;
  if (config.has("adapter.path")) {
    adapter = models::Adapter::load(model, config.text("adapter.path"));
  } else if (config.has("adapter.peft_type")) {
    adapter = models::Adapter::outline(model, adapter_config(config));
  }
  DataUse use;
  use.count_only = true;
  use.account = MemoryAccount::child(runtime->memory, "data of the plan", 0);
  const std::shared_ptr<const data::Dataset> train = open_data(config, *model, false, use);
  const std::shared_ptr<const data::Dataset> evaluation = open_data(config, *model, true, use);
  // While it is opened a data set may take more than it keeps: data.resident_bytes.
  const MemoryAccount::Usage data_usage = use.account->usage();
  const uint64_t data = data_usage.current_total, data_peak = data_usage.peak_total;

  const std::set<std::string> trainable = trainable_names(model->parameters(), config, adapter != nullptr);
  const nn::Modules modules(model->parameters(), adapter ? &adapter->parameters() : nullptr,
                            adapter ? &adapter->layout() : nullptr, trainable,
                            static_cast<uint64_t>(config.integer("train.seed")));
  uint64_t weights = weight_bytes(model->parameters());
  if (adapter != nullptr) weights += weight_bytes(adapter->parameters());
  const Programs programs = record_programs(*runtime, model->config(), modules, job_capacity(config, train, evaluation),
                                            config.text("model.recompute"), weights + data);

  // The generator of sample answers lives beside all of the trainer's buffers.
  const SamplePrompts samples = sample_prompts(config, *model, "");
  GeneratorPrograms generator;
  if (!samples.prompts.empty()) generator = record_generator(*model, modules, samples.options);

  std::array<uint64_t, kCategories> bytes{};
  bytes[static_cast<size_t>(Category::kWeights)] = weights;
  bytes[static_cast<size_t>(Category::kGradients)] = programs.gradient_bytes;
  bytes[static_cast<size_t>(Category::kOptimizer)] = programs.optimizer_bytes;
  bytes[static_cast<size_t>(Category::kActivations)] = programs.activation_bytes() + generator.activation_bytes();
  bytes[static_cast<size_t>(Category::kWorkspace)] = programs.workspace_bytes() + generator.workspace_bytes();
  bytes[static_cast<size_t>(Category::kData)] = data + programs.data_bytes() + (samples.prompts.empty() ? 0 : generator.data_bytes());

  const uint64_t while_training = std::accumulate(bytes.begin(), bytes.end(), uint64_t{0});
  uint64_t& data_bytes = bytes[static_cast<size_t>(Category::kData)];
  data_bytes = std::max(data_bytes, data_peak);

  Json json;
  json["memory"] = memory_json(bytes, std::max(while_training, weights + data_peak));
  int64_t parameters = 0, trained = 0;
  for (const auto& parameter : model->parameters().all()) parameters += element_count(parameter->spec.shape);
  for (const autograd::ParameterUse& use : programs.train.parameters) {
    if (use.trainable) trained += element_count(use.shape);
  }
  json["parameters"] = parameters;
  json["trained_parameters"] = trained;
  json["capacity_tokens"] = programs.capacity.tokens;
  json["recompute"] = programs.recompute ? "full" : "none";
  json["train_rows"] = train ? train->size() : 0;
  json["eval_rows"] = evaluation ? evaluation->size() : 0;
  json["flops_per_micro_batch"] = flops(programs, model->config());
  json["refused"] = Json::array();
  const uint64_t total = json["memory"]["total"].get<uint64_t>();
  const uint64_t limit = runtime->memory->limit();
  if (limit > 0 && total > limit) {
    json["refused"].push_back("the job needs " + mebibytes(total) + ", the memory limit is " + mebibytes(limit));
  }
  return json;
}

}  // namespace

Json plan(std::shared_ptr<Runtime> runtime, const config::Config& config) {
  try {
    return predict(std::move(runtime), config);
  } catch (const Error& e) {
    if (e.code() != Code::kInvalidArgument && e.code() != Code::kUnimplemented) throw;
    Json json;
    json["refused"] = Json::array({e.message()});
    return json;
  }
}

}  // namespace inlaid::train

#include "script.h"

#include <chrono>
#include <cstdio>
#include <memory>
#include <new>
#include <thread>
#include <vector>

#include "capi/src/handles.h"
#include "sdk/base/hash.h"
#include "tests/capi/owned.h"

namespace faults {
namespace {

using inlaid::Json;

struct Failure {
  inlaid_code code;
  std::string message, details;
};

using namespace capi_test;
using Run = RunHandle;
using Error = Owned<inlaid_error, inlaid_error_release>;

void ok(inlaid_error* raw) {
  if (raw == nullptr) return;
  const Error error(raw);
  throw Failure{inlaid_error_code(raw), inlaid_error_message(raw), inlaid_error_details(raw)};
}

template <typename O, typename F, typename... Args>
O make(F function, Args... args) {
  typename O::pointer out = nullptr;
  ok(function(args..., &out));
  return O(out);
}

template <typename F, typename... Args>
std::string text(F function, Args... args) {
  const Buffer buffer = make<Buffer>(function, args...);
  return {static_cast<const char*>(inlaid_buffer_data(buffer.get())), static_cast<size_t>(inlaid_buffer_size(buffer.get()))};
}

std::string exact(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%a", value);
  return text;
}

const char* const kJob = R"({
  "model": {"tokenizer": "/in/tokenizer", "config": {"model_type": "llama", "vocab_size": 600, "hidden_size": 32,
    "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "initializer_range": 0.1,
    "max_position_embeddings": 256, "tie_word_embeddings": true}},
  "adapter": {"peft_type": "LORA", "r": 2, "lora_alpha": 4, "lora_dropout": 0.1, "target_modules": "all-linear"},
  "data": {"train": [{"path": "/in/train.jsonl"}], "eval": [{"path": "/in/eval.jsonl"}]},
  "train": {"micro_batch_tokens": 128, "max_steps": 4, "eval_steps": 2, "eval_on_start": false},
  "optim": {"learning_rate": 0.01},
  "checkpoint": {"save_steps": 2, "save_total_limit": 1, "keep_best": 1},
  "logging": {"writers": ["jsonl", "csv", "tensorboard", "html"], "sample_prompts": ["Define lamp 0"],
    "sample_max_new_tokens": 2},
  "output_dir": "/jobs/one"})";
const std::string kOut = "/jobs/one";

class Script {
 public:
  Script(Rig& rig, inlaid_runtime* runtime, Outcome* outcome) : rig_(rig), runtime_(runtime), outcome_(*outcome) {}

  void all() {
    config_ = make<Config>(inlaid_config_parse, kJob, nullptr);
    text(inlaid_config_plan, runtime_, config_.get());
    train();
    use();
    by_hand();
    look();
    outcome_.bits = bits_;
  }

 private:
  void note(const std::string& what) { bits_ += what + "\n"; }
  void note_files(const std::string& folder) {
    for (const std::string& name : rig_.disk.list(folder)) {
      const std::string path = inlaid::join_path(folder, name);
      if (!rig_.disk.is_folder(path)) note(path + " " + inlaid::sha256_file(rig_.disk, path));
    }
  }

  void watch(inlaid_run* run) {
    for (;;) {
      const Event event = make<Event>(inlaid_run_next, run, int64_t{60000});
      if (event == nullptr) throw Failure{INLAID_DEADLINE_EXCEEDED, "the run hangs", "{}"};
      if (inlaid_event_kind(event.get()) == INLAID_EVENT_STEP) {
        outcome_.steps[inlaid_event_step(event.get())] =
            exact(inlaid_event_metric(event.get(), "loss")) + " " + exact(inlaid_event_metric(event.get(), "grad_norm"));
      }
      if (inlaid_event_kind(event.get()) == INLAID_EVENT_DONE) break;
    }
    ok(inlaid_run_join(run, 60000));
  }

  // Two steps in a job that is then forgotten, the rest in one that goes on from the checkpoint.
  void train() {
    inlaid_job* raw = nullptr;
    inlaid_error* error = inlaid_job_create(runtime_, config_.get(), &raw);
    if (error != nullptr && inlaid_error_code(error) == INLAID_ALREADY_EXISTS) {
      inlaid_error_release(error);
    } else {
      ok(error);
      const Job job(raw);
      const Trainer trainer = make<Trainer>(inlaid_job_trainer, job.get());
      const char* options = R"({"until": 2, "checkpoint_dir": "/jobs/one/checkpoints"})";
      watch(make<Run>(inlaid_run_start, trainer.get(), nullptr, options).get());
    }
    const Job job = make<Job>(inlaid_job_resume, runtime_, kOut.c_str());
    text(inlaid_job_describe, job.get());
    watch(make<Run>(inlaid_job_start, job.get()).get());
    const Trainer trainer = make<Trainer>(inlaid_job_trainer, job.get());
    inlaid_model* model = nullptr;
    inlaid_adapter* adapter = nullptr;
    ok(inlaid_job_model(job.get(), &model, &adapter));
    const Model own_model(model);
    const Adapter own_adapter(adapter);
    const Dataset data = make<Dataset>(inlaid_dataset_open, model, config_.get(), "eval");
    const Event event = make<Event>(inlaid_trainer_evaluate, trainer.get(), data.get(), nullptr);
    note("evaluation " + exact(inlaid_event_metric(event.get(), "eval_loss")));
    const std::string target = kOut + "/copy";
    if (!rig_.disk.exists(target)) ok(inlaid_checkpoint_save(trainer.get(), target.c_str(), nullptr));
    ok(inlaid_checkpoint_restore(trainer.get(), target.c_str()));
    for (const std::string& name : rig_.disk.list(target)) {
      if (name.ends_with(".safetensors")) note(name + " " + inlaid::sha256_file(rig_.disk, target + "/" + name));
    }
  }

  void use() {
    inlaid_model* model = nullptr;
    inlaid_adapter* adapter = nullptr;
    ok(inlaid_result_open(runtime_, kOut.c_str(), nullptr, nullptr, &model, &adapter));
    const Model own_model(model);
    const Adapter own_adapter(adapter);
    note("answer " + answer(model, adapter));
    if (!rig_.disk.exists("/exports/peft")) {
      rig_.disk.make_folders("/exports");
      ok(inlaid_adapter_save(adapter, "/exports/peft"));
    }
    note_files("/exports/peft");
    if (!rig_.disk.exists("/exports/hf")) ok(inlaid_model_export(model, adapter, "/exports/hf", nullptr));
    note_files("/exports/hf");
    if (!rig_.disk.exists("/exports/model.gguf")) {
      ok(inlaid_model_export(model, adapter, "/exports/model.gguf", R"({"format": "gguf", "dtype": "q8_0"})"));
    }
    note_files("/exports");
    for (const char* path : {"/exports/hf", "/exports/model.gguf"}) {
      const Model exported = make<Model>(inlaid_model_load, runtime_, path, R"({"weights_dtype": "as_stored"})", nullptr);
      note(std::string(path) + " answers " + answer(exported.get(), nullptr));
    }
    const Adapter again = make<Adapter>(inlaid_adapter_load, model, "/exports/peft");
    text(inlaid_adapter_describe, again.get());
    text(inlaid_model_describe, model);
  }

  std::string answer(inlaid_model* model, inlaid_adapter* adapter) {
    const Tokenizer tokenizer = make<Tokenizer>(inlaid_model_tokenizer, model);
    const Json chat = inlaid::parse_json(text(inlaid_tokenizer_render_chat, tokenizer.get(),
                                              R"([{"role": "user", "content": "Define river 2"}])",
                                              R"({"add_generation_prompt": true})"), "chat");
    const auto ids = chat.at("ids").get<std::vector<int32_t>>();
    const Generator generator = make<Generator>(inlaid_generator_create, model, adapter, R"({"max_new_tokens": 3})");
    ok(inlaid_generator_prompt(generator.get(), ids.data(), ids.size() * sizeof(int32_t)));
    std::string result;
    for (int32_t done = 0; done == 0;) {
      int32_t id = 0;
      inlaid_buffer* piece = nullptr;
      ok(inlaid_generator_next(generator.get(), nullptr, &id, &piece, &done));
      inlaid_buffer_release(piece);
      result += std::to_string(id) + " ";
    }
    return result;
  }

  // A loop of the host's own on a model of its own.
  void by_hand() {
    const Model model = make<Model>(inlaid_model_create, runtime_, config_.get(), nullptr);
    const Adapter adapter = make<Adapter>(inlaid_adapter_create, model.get(), config_.get());
    const Trainer trainer = make<Trainer>(inlaid_trainer_create, model.get(), adapter.get(), config_.get());
    const int32_t tokens[] = {5, 6, 7}, targets[] = {6, 7, 8};
    const Batch batch = make<Batch>(inlaid_batch_create);
    ok(inlaid_batch_add_int32(batch.get(), "tokens", tokens, sizeof tokens));
    ok(inlaid_batch_add_int32(batch.get(), "targets", targets, sizeof targets));
    make<Event>(inlaid_trainer_accumulate, trainer.get(), batch.get(), nullptr);
    ok(inlaid_trainer_set(trainer.get(), "optim.weight_decay", "0.5"));
    const Event event = make<Event>(inlaid_trainer_apply, trainer.get());
    note("by hand " + exact(inlaid_event_metric(event.get(), "loss")));
  }

  // What tools ask about a job. Trouble is content of two of these answers; the script takes it for an error.
  void look() {
    const Json jobs = inlaid::parse_json(text(inlaid_job_list, runtime_, "/jobs"), "jobs");
    const Json& job = jobs.at(0);
    if (job.at("state") != "done") throw Failure{INLAID_UNAVAILABLE, "job list: " + inlaid::to_text(job), "{}"};
    const std::string latest = job.at("latest_checkpoint").get<std::string>();
    note("latest " + latest + ", best " + job.at("best_checkpoint").get<std::string>());
    const Json report = inlaid::parse_json(text(inlaid_checkpoint_verify, runtime_, latest.c_str()), "report");
    if (report.at("ok") != true) throw Failure{INLAID_UNAVAILABLE, "verify: " + inlaid::to_text(report), "{}"};
    text(inlaid_checkpoint_manifest, runtime_, latest.c_str(), 1);
    text(inlaid_job_report, runtime_, kOut.c_str());
    text(inlaid_runtime_describe, runtime_);
  }

  Rig& rig_;
  inlaid_runtime* runtime_;
  Outcome& outcome_;
  Config config_;
  std::string bits_;
};

}  // namespace

Outcome run_script(Rig& rig) {
  Outcome outcome;
  try {
    const Runtime runtime(rig.new_runtime());
    try {
      Script(rig, runtime.get(), &outcome).all();
    } catch (const Failure& failure) {
      outcome.code = failure.code;
      outcome.message = failure.message;
      outcome.details = failure.details;
    }
    // A run's thread lets go of its trainer a moment after the run has ended.
    const auto left = [&] { return runtime->value->runtime->memory->usage().current_total; };
    for (int i = 0; i < 10000 && left() != 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    outcome.memory_left = left();
  } catch (const std::bad_alloc&) {
    // The script's own memory, not the library's.
    outcome.code = INLAID_RESOURCE_EXHAUSTED;
  } catch (const inlaid::Error& error) {
    // From the rig, which stands in the place of inlaid_runtime_create or reads the disk behind the library.
    outcome.code = static_cast<inlaid_code>(error.code());
    outcome.message = error.message();
  }
  return outcome;
}

}  // namespace faults

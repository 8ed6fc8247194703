#include "entries.h"

#include <cstdint>

namespace faults {
namespace {

void drop(inlaid_runtime* h) { inlaid_runtime_release(h); }
void drop(inlaid_cancel* h) { inlaid_cancel_release(h); }
void drop(inlaid_buffer* h) { inlaid_buffer_release(h); }
void drop(inlaid_tokenizer* h) { inlaid_tokenizer_release(h); }
void drop(inlaid_decoder* h) { inlaid_decoder_release(h); }
void drop(inlaid_model* h) { inlaid_model_release(h); }
void drop(inlaid_adapter* h) { inlaid_adapter_release(h); }
void drop(inlaid_dataset* h) { inlaid_dataset_release(h); }
void drop(inlaid_batch* h) { inlaid_batch_release(h); }
void drop(inlaid_trainer* h) { inlaid_trainer_release(h); }
void drop(inlaid_pass* h) { inlaid_pass_release(h); }
void drop(inlaid_run* h) { inlaid_run_release(h); }
void drop(inlaid_event* h) { inlaid_event_release(h); }
void drop(inlaid_job* h) { inlaid_job_release(h); }
void drop(inlaid_generator* h) { inlaid_generator_release(h); }
// A tensor that comes out of the library has its deleter in its fourth word (DLPack 1.x: version, context, deleter).
void drop(DLManagedTensorVersioned* h) {
  struct Head {
    uint32_t major, minor;
    void* context;
    void (*deleter)(DLManagedTensorVersioned*);
  };
  if (h != nullptr) reinterpret_cast<Head*>(h)->deleter(h);
}

// The call's last parameter is the out pointer of type T.
template <typename T, typename Call>
inlaid_error* out(const Call& call) {
  T* result = nullptr;
  inlaid_error* error = call(&result);
  drop(result);
  return error;
}

inlaid_error* models_out(const Handles& h, inlaid_error* (*call)(const Handles&, inlaid_model**, inlaid_adapter**)) {
  inlaid_model* model = nullptr;
  inlaid_adapter* adapter = nullptr;
  inlaid_error* error = call(h, &model, &adapter);
  drop(adapter);
  drop(model);
  return error;
}

constexpr int32_t kIds[] = {5, 6, 7};

#define ENTRY(name, type, ...) \
  { #name, [](const Handles& h) { return out<type>([&](type** o) { return name(__VA_ARGS__, o); }); }, true }
#define PLAIN(name, ...) \
  { #name, [](const Handles& h) { return name(__VA_ARGS__); }, true }
// Without a handle.
#define FREE(name, type, ...) \
  { #name, [](const Handles&) { return out<type>([&](type** o) { return name(__VA_ARGS__); }); }, false }

// Likewise; the work is on JSON (new_faults.h), so nothing is to be given out, which ends the call at once.
#define NOTHING(name, ...) \
  { #name, [](const Handles&) { return name(__VA_ARGS__); }, false }

const Entry kEntries[] = {
    FREE(inlaid_runtime_create, inlaid_runtime, nullptr, o),
    ENTRY(inlaid_runtime_describe, inlaid_buffer, h.runtime),
    FREE(inlaid_cancel_create, inlaid_cancel, o),
    NOTHING(inlaid_config_parse, "{}", nullptr, nullptr),
    PLAIN(inlaid_config_set, h.config, "train.seed", "7"),
    ENTRY(inlaid_config_to_json, inlaid_buffer, h.config),
    NOTHING(inlaid_config_schema, nullptr),
    ENTRY(inlaid_config_plan, inlaid_buffer, h.runtime, h.config),
    ENTRY(inlaid_tokenizer_open, inlaid_tokenizer, h.runtime, "/there is no such file"),
    ENTRY(inlaid_tokenizer_encode, inlaid_buffer, h.tokenizer, "lamp", 4, 0),
    ENTRY(inlaid_tokenizer_decode, inlaid_buffer, h.tokenizer, kIds, sizeof kIds, 0),
    ENTRY(inlaid_tokenizer_render_chat, inlaid_buffer, h.tokenizer, R"([{"role": "user", "content": "x"}])", nullptr),
    ENTRY(inlaid_decoder_create, inlaid_decoder, h.tokenizer, 0),
    ENTRY(inlaid_decoder_push, inlaid_buffer, h.decoder, 5),
    ENTRY(inlaid_decoder_finish, inlaid_buffer, h.decoder),
    ENTRY(inlaid_model_create, inlaid_model, h.runtime, h.config, nullptr),
    ENTRY(inlaid_model_load, inlaid_model, h.runtime, "/there is no such folder", nullptr, nullptr),
    {"inlaid_result_open",
     [](const Handles& h) {
       return models_out(h, [](const Handles& handles, inlaid_model** m, inlaid_adapter** a) {
         return inlaid_result_open(handles.runtime, "/there is no such folder", nullptr, nullptr, m, a);
       });
     }, true},
    PLAIN(inlaid_model_export, h.model, h.adapter, (h.folder + "/export").c_str(), nullptr),
    ENTRY(inlaid_export_certificate, inlaid_buffer, h.runtime, "/there is no such export"),
    ENTRY(inlaid_model_describe, inlaid_buffer, h.model),
    ENTRY(inlaid_model_tokenizer, inlaid_tokenizer, h.model),
    ENTRY(inlaid_model_get_tensor, DLManagedTensorVersioned, h.model, "model.norm.weight"),
    ENTRY(inlaid_adapter_create, inlaid_adapter, h.model, h.config),
    ENTRY(inlaid_adapter_load, inlaid_adapter, h.model, "/there is no such folder"),
    PLAIN(inlaid_adapter_save, h.adapter, (h.folder + "/peft").c_str()),
    ENTRY(inlaid_adapter_describe, inlaid_buffer, h.adapter),
    ENTRY(inlaid_dataset_open, inlaid_dataset, h.model, h.config, "train"),
    ENTRY(inlaid_dataset_report, inlaid_buffer, h.dataset),
    ENTRY(inlaid_dataset_sample, inlaid_buffer, h.dataset, 0),
    FREE(inlaid_batch_create, inlaid_batch, o),
    PLAIN(inlaid_batch_add, h.batch, "tokens", nullptr),
    PLAIN(inlaid_batch_add_int32, h.batch, "a tensor of another name", kIds, sizeof kIds),
    ENTRY(inlaid_trainer_create, inlaid_trainer, h.model, h.adapter, h.config),
    PLAIN(inlaid_trainer_set_dataset, h.trainer, h.dataset),
    ENTRY(inlaid_trainer_step, inlaid_event, h.trainer, nullptr),
    ENTRY(inlaid_trainer_accumulate, inlaid_event, h.trainer, h.batch, nullptr),
    ENTRY(inlaid_trainer_apply, inlaid_event, h.trainer),
    PLAIN(inlaid_trainer_set, h.trainer, "optim.weight_decay", "0.25"),
    ENTRY(inlaid_trainer_evaluate, inlaid_event, h.trainer, h.dataset, nullptr),
    ENTRY(inlaid_trainer_forward, inlaid_pass, h.trainer, h.batch, nullptr, nullptr),
    ENTRY(inlaid_forward, inlaid_pass, h.model, h.adapter, h.batch, nullptr, nullptr),
    ENTRY(inlaid_pass_output, DLManagedTensorVersioned, h.pass, "log_probs"),
    PLAIN(inlaid_pass_set_gradient, h.pass, "log_probs", nullptr),
    PLAIN(inlaid_pass_set_gradient_f32, h.pass, "log_probs", kIds, sizeof kIds),
    PLAIN(inlaid_backward, h.pass, 0.0, nullptr),
    ENTRY(inlaid_run_start, inlaid_run, h.trainer, nullptr, nullptr),
    ENTRY(inlaid_run_next, inlaid_event, h.run, 0),
    PLAIN(inlaid_run_request, h.run, "no such verb"),
    PLAIN(inlaid_run_set, h.run, "optim.weight_decay", "0.5"),
    PLAIN(inlaid_run_join, h.run, 0),
    ENTRY(inlaid_job_create, inlaid_job, h.runtime, h.config),
    ENTRY(inlaid_job_resume, inlaid_job, h.runtime, "/there is no such folder"),
    ENTRY(inlaid_job_list, inlaid_buffer, h.runtime, "/there is no such folder"),
    ENTRY(inlaid_job_start, inlaid_run, h.job),
    ENTRY(inlaid_job_trainer, inlaid_trainer, h.job),
    {"inlaid_job_model",
     [](const Handles& h) {
       return models_out(h, [](const Handles& handles, inlaid_model** m, inlaid_adapter** a) {
         return inlaid_job_model(handles.job, m, a);
       });
     }, true},
    ENTRY(inlaid_job_describe, inlaid_buffer, h.job),
    ENTRY(inlaid_job_report, inlaid_buffer, h.runtime, "/there is no such folder"),
    ENTRY(inlaid_job_verify, inlaid_buffer, h.runtime, "/there is no such folder"),
    PLAIN(inlaid_checkpoint_save, h.trainer, (h.folder + "/checkpoint").c_str(), nullptr),
    PLAIN(inlaid_checkpoint_restore, h.trainer, "/there is no such folder"),
    ENTRY(inlaid_checkpoint_manifest, inlaid_buffer, h.runtime, "/there is no such folder", 1),
    ENTRY(inlaid_checkpoint_verify, inlaid_buffer, h.runtime, "/there is no such folder"),
    ENTRY(inlaid_evaluate, inlaid_event, h.model, h.adapter, h.dataset, nullptr),
    ENTRY(inlaid_generator_create, inlaid_generator, h.model, h.adapter, nullptr),
    PLAIN(inlaid_generator_prompt, h.generator, kIds, sizeof kIds),
    {"inlaid_generator_next",
     [](const Handles& h) {
       int32_t id = 0, done = 0;
       return out<inlaid_buffer>([&](inlaid_buffer** o) { return inlaid_generator_next(h.generator, nullptr, &id, o, &done); });
     }, true},
    // The last one: with live handles it ends the runtime.
    PLAIN(inlaid_runtime_shutdown, h.runtime, 1000),
};

}  // namespace

std::span<const Entry> entries() { return kEntries; }

}  // namespace faults

// What stands behind the opaque types of inlaid.h.
#ifndef INLAID_CAPI_SRC_HANDLES_H_
#define INLAID_CAPI_SRC_HANDLES_H_

#include <atomic>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "capi/src/handle.h"
#include "sdk/config/config.h"
#include "sdk/data/dataset.h"
#include "sdk/models/model.h"
#include "sdk/train/generator.h"
#include "sdk/train/job.h"

namespace inlaid::capi {

// A runtime and the runs that go on in it.
struct RuntimeState {
  std::shared_ptr<Runtime> runtime;
  std::string settings;

  // Runs that may still be going: shutdown cancels and joins them; afterwards none can start.
  std::mutex mutex;
  using Runs = std::list<std::weak_ptr<train::Run>>;
  Runs runs;
  bool down = false;

  void check_up();
  // `place` is one element, made before the run starts: once it has, nothing may fail, for nobody would hold it.
  void add(const std::shared_ptr<train::Run> &run, Runs place) noexcept;
};

// Every object below keeps the runtime's state alive.
template <typename T>
struct Owned {
  std::shared_ptr<RuntimeState> state;
  std::shared_ptr<T> object;
};

struct TokenizerState {
  std::shared_ptr<const text::Tokenizer> tokenizer;
  std::shared_ptr<const text::ChatTemplate> chat_template;
  std::vector<std::string> stop_tokens;
};

// The weights of a model may be changed by one trainer at a time, and not while an adapter trains on them.
struct ModelState {
  std::shared_ptr<RuntimeState> state;
  std::shared_ptr<models::Model> model;
  std::atomic<int> trainers{0};  // -1: its own weights train; n > 0: n adapters train on it
};

struct TrainerState {
  std::shared_ptr<RuntimeState> state;
  std::shared_ptr<ModelState> model;
  std::shared_ptr<train::Trainer> trainer;
  std::weak_ptr<train::Run> run;  // busy while it has not ended
  bool counted = false;
  std::atomic<bool> busy{false};  // owned by one call at a time, whichever handle it came through
  void check_idle() const;
  ~TrainerState();
};

std::shared_ptr<TrainerState> make_trainer_state(std::shared_ptr<ModelState> model, std::shared_ptr<train::Trainer> trainer);

struct JobState {
  std::shared_ptr<RuntimeState> state;
  std::shared_ptr<train::Job> job;
  std::shared_ptr<TrainerState> trainer;
};

struct BatchState {
  std::vector<int32_t> tokens, targets, cu_seqlens;
};

// kInvalidArgument for a batch without tokens, or without targets where they are needed (elsewhere: no row has one).
data::MicroBatch micro_batch(const BatchState &state, bool needs_targets);

struct PassState {
  std::shared_ptr<RuntimeState> state;
  std::shared_ptr<TrainerState> trainer;  // null: without gradients
  std::unique_ptr<train::Pass> pass;
};

}  // namespace inlaid::capi

struct inlaid_runtime : inlaid::capi::Handle<inlaid::capi::RuntimeState> {
  using Handle::Handle;
};
struct inlaid_config : inlaid::capi::Handle<inlaid::config::Config> {
  using Handle::Handle;
};
struct inlaid_tokenizer : inlaid::capi::Handle<inlaid::capi::Owned<inlaid::capi::TokenizerState>> {
  using Handle::Handle;
};
struct inlaid_decoder : inlaid::capi::Handle<inlaid::capi::Owned<inlaid::text::DecodeStream>> {
  using Handle::Handle;
};
struct inlaid_model : inlaid::capi::Handle<inlaid::capi::ModelState> {
  using Handle::Handle;
};
struct inlaid_adapter : inlaid::capi::Handle<inlaid::models::Adapter> {
  inlaid_adapter(std::shared_ptr<inlaid::models::Adapter> adapter, std::shared_ptr<inlaid::capi::ModelState> base)
      : Handle(std::move(adapter)), model(std::move(base)) {}
  std::shared_ptr<inlaid::capi::ModelState> model;
};
struct inlaid_dataset : inlaid::capi::Handle<const inlaid::data::Dataset> {
  inlaid_dataset(std::shared_ptr<const inlaid::data::Dataset> dataset, std::shared_ptr<inlaid::capi::RuntimeState> s)
      : Handle(std::move(dataset)), state(std::move(s)) {}
  std::shared_ptr<inlaid::capi::RuntimeState> state;
};
struct inlaid_batch : inlaid::capi::Handle<inlaid::capi::BatchState> {
  using Handle::Handle;
};
struct inlaid_trainer : inlaid::capi::Handle<inlaid::capi::TrainerState> {
  using Handle::Handle;
};
struct inlaid_pass : inlaid::capi::Handle<inlaid::capi::PassState> {
  using Handle::Handle;
};
struct inlaid_job : inlaid::capi::Handle<inlaid::capi::JobState> {
  using Handle::Handle;
};
struct inlaid_generator : inlaid::capi::Handle<inlaid::train::Generator> {
  inlaid_generator(std::shared_ptr<inlaid::train::Generator> generator, std::shared_ptr<inlaid::capi::ModelState> base)
      : Handle(std::move(generator)), model(std::move(base)) {}
  std::shared_ptr<inlaid::capi::ModelState> model;
};
struct inlaid_run : inlaid::capi::Handle<inlaid::train::Run> {
  inlaid_run(std::shared_ptr<inlaid::train::Run> run, std::shared_ptr<inlaid::capi::TrainerState> t)
      : Handle(std::move(run)), trainer(std::move(t)) {}
  std::shared_ptr<inlaid::capi::TrainerState> trainer;
};
struct inlaid_cancel {
  std::atomic<bool> flag{false};
};
struct inlaid_event {
  std::shared_ptr<const inlaid::train::Event> event;
  std::string json;
};
struct inlaid_buffer {
  std::string bytes;
};

namespace inlaid::capi {

inline const std::atomic<bool> *flag(const inlaid_cancel *cancel) { return cancel == nullptr ? nullptr : &cancel->flag; }
inline inlaid_buffer *buffer(std::string bytes) { return new inlaid_buffer{std::move(bytes)}; }
inline inlaid_event *event(std::shared_ptr<const train::Event> e) {
  std::string json = e->json();
  return new inlaid_event{std::move(e), std::move(json)};
}
// The adapter behind a handle that may be NULL.
inline std::shared_ptr<models::Adapter> adapter_or_null(inlaid_adapter *a) {
  return a == nullptr ? nullptr : checked(a, "adapter").value;
}
inline std::string text_or(const char *text, const char *otherwise) { return text == nullptr ? otherwise : text; }
// kUnimplemented unless NULL: this version has one rank.
void check_one_rank(const inlaid_comm *comm);

}  // namespace inlaid::capi

#endif  // INLAID_CAPI_SRC_HANDLES_H_

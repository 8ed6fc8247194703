#include "sdk/train/trainer.h"

#include "capi/include/inlaid.h"
#include "capi/src/guard.h"
#include "capi/src/handles.h"
#include "sdk/train/evaluate.h"

namespace inlaid::capi {

void TrainerState::check_idle() const {
  state->check_up();
  const std::shared_ptr<train::Run> going = run.lock();
  if (going != nullptr && !going->ended()) {
    fail(Code::kFailedPrecondition, "the trainer is busy: a run uses it");
  }
}

TrainerState::~TrainerState() {
  if (!counted) return;
  if (trainer->adapter() == nullptr) {
    model->trainers.store(0);
  } else {
    model->trainers.fetch_sub(1);
  }
}

std::shared_ptr<TrainerState> make_trainer_state(std::shared_ptr<ModelState> model, std::shared_ptr<train::Trainer> trainer) {
  auto state = std::make_shared<TrainerState>();
  state->state = model->state;
  const bool full = trainer->adapter() == nullptr;
  int now = model->trainers.load();
  do {
    if (now < 0) fail(Code::kFailedPrecondition, "another trainer trains the weights of this model");
    if (full && now > 0) fail(Code::kFailedPrecondition, "adapters are being trained on this model; its weights must not change");
  } while (!model->trainers.compare_exchange_weak(now, full ? -1 : now + 1));
  state->counted = true;
  state->model = std::move(model);
  state->trainer = std::move(trainer);
  return state;
}

namespace {

double mean(double sum, int64_t count) { return sum / static_cast<double>(count); }

std::shared_ptr<const train::Event> step_event(int64_t step, const train::LossSums &sums,
                                               std::vector<std::pair<std::string, double>> more) {
  auto event = std::make_shared<train::Event>();
  event->kind = train::EventKind::step;
  event->step = step;
  if (sums.target_tokens > 0) {  // none where every gradient came from a loss of the host's own
    event->metrics = {{"loss", mean(sums.loss, sums.target_tokens)},
                      {"mean_token_accuracy", mean(static_cast<double>(sums.correct), sums.target_tokens)}};
  }
  event->metrics.emplace_back("tokens", static_cast<double>(sums.tokens));
  event->metrics.emplace_back("target_tokens", static_cast<double>(sums.target_tokens));
  event->metrics.insert(event->metrics.end(), more.begin(), more.end());
  return event;
}

std::shared_ptr<const train::Event> step_event(const train::StepResult &result) {
  return step_event(result.step, result.sums,
                    {{"grad_norm", result.grad_norm},
                     {"learning_rate", result.learning_rate},
                     {"epoch", result.epoch},
                     {"micro_batches", static_cast<double>(result.micro_batches)}});
}

std::shared_ptr<const train::Event> eval_event(int64_t step, const train::LossSums &sums) {
  auto event = std::make_shared<train::Event>();
  event->kind = train::EventKind::eval;
  event->step = step;
  event->metrics = {{"eval_loss", mean(sums.loss, sums.target_tokens)},
                    {"eval_mean_token_accuracy", mean(static_cast<double>(sums.correct), sums.target_tokens)},
                    {"eval_target_tokens", static_cast<double>(sums.target_tokens)},
                    {"eval_rows", static_cast<double>(sums.documents)}};
  return event;
}

}  // namespace

data::MicroBatch micro_batch(const BatchState &state, bool needs_targets) {
  if (state.tokens.empty()) fail(Code::kInvalidArgument, "the batch has no 'tokens'");
  if (state.targets.empty() && needs_targets) fail(Code::kInvalidArgument, "the batch has no 'targets'");
  data::MicroBatch batch;
  batch.tokens = state.tokens;
  batch.targets = state.targets;
  if (batch.targets.empty()) batch.targets.assign(batch.tokens.size(), data::kIgnore);
  batch.cu_seqlens = state.cu_seqlens;
  if (batch.cu_seqlens.empty()) batch.cu_seqlens = {0, static_cast<int32_t>(state.tokens.size())};
  batch.positions.resize(batch.tokens.size());
  batch.row_keys.resize(batch.tokens.size());
  for (size_t document = 0; document + 1 < batch.cu_seqlens.size(); ++document) {
    const int32_t begin = batch.cu_seqlens[document], end = batch.cu_seqlens[document + 1];
    for (int32_t row = std::max(begin, 0); row < end && row < static_cast<int32_t>(batch.tokens.size()); ++row) {
      batch.positions[static_cast<size_t>(row)] = row - begin;
      batch.row_keys[static_cast<size_t>(row)] = static_cast<int64_t>(document);
    }
  }
  return batch;
}

}  // namespace inlaid::capi

using namespace inlaid;
using namespace inlaid::capi;

inlaid_error *inlaid_trainer_create(inlaid_model *m, inlaid_adapter *adapter_or_null, const inlaid_config *c,
                                    inlaid_trainer **out) INLAID_NOEXCEPT {
  if (out != nullptr) *out = nullptr;
  return guard([&] {
    required(out, "out");
    const std::shared_ptr<ModelState> &model = checked(m, "model").value;
    model->state->check_up();
    const config::Config &config = *checked(c, "config").value;
    std::shared_ptr<train::Trainer> trainer = train::Trainer::create(
        model->model, capi::adapter_or_null(adapter_or_null), config, train::job_capacity(config, nullptr, nullptr));
    *out = new inlaid_trainer(make_trainer_state(model, std::move(trainer)));
  });
}

inlaid_error *inlaid_trainer_set_dataset(inlaid_trainer *t, inlaid_dataset *d) INLAID_NOEXCEPT {
  return guard([&] {
    inlaid_trainer &trainer = checked(t, "trainer");
    const Owner owner(*trainer.value, "trainer");
    trainer.value->check_idle();
    trainer.value->trainer->set_train_data(checked(d, "dataset").value);
  });
}

inlaid_error *inlaid_trainer_step(inlaid_trainer *t, inlaid_cancel *c_or_null, inlaid_event **out) INLAID_NOEXCEPT {
  if (out != nullptr) *out = nullptr;
  return guard([&] {
    required(out, "out");
    inlaid_trainer &trainer = checked(t, "trainer");
    const Owner owner(*trainer.value, "trainer");
    trainer.value->check_idle();
    *out = event(step_event(trainer.value->trainer->step(flag(c_or_null))));
  });
}

inlaid_error *inlaid_trainer_accumulate(inlaid_trainer *t, const inlaid_batch *b, inlaid_cancel *c_or_null,
                                        inlaid_event **out) INLAID_NOEXCEPT {
  if (out != nullptr) *out = nullptr;
  return guard([&] {
    required(out, "out");
    inlaid_trainer &trainer = checked(t, "trainer");
    const Owner owner(*trainer.value, "trainer");
    trainer.value->check_idle();
    const data::MicroBatch batch = micro_batch(*checked(b, "batch").value, true);
    const train::LossSums sums = trainer.value->trainer->accumulate(batch, flag(c_or_null));
    *out = event(step_event(trainer.value->trainer->steps_done(), sums, {}));
  });
}

inlaid_error *inlaid_trainer_apply(inlaid_trainer *t, inlaid_event **out) INLAID_NOEXCEPT {
  if (out != nullptr) *out = nullptr;
  return guard([&] {
    required(out, "out");
    inlaid_trainer &trainer = checked(t, "trainer");
    const Owner owner(*trainer.value, "trainer");
    trainer.value->check_idle();
    *out = event(step_event(trainer.value->trainer->apply()));
  });
}

inlaid_error *inlaid_trainer_set(inlaid_trainer *t, const char *key, const char *json) INLAID_NOEXCEPT {
  return guard([&] {
    inlaid_trainer &trainer = checked(t, "trainer");
    const Owner owner(*trainer.value, "trainer");
    trainer.value->check_idle();
    trainer.value->trainer->set(&required(key, "key"), &required(json, "json"));
  });
}

inlaid_error *inlaid_trainer_evaluate(inlaid_trainer *t, inlaid_dataset *d, inlaid_cancel *c_or_null,
                                      inlaid_event **out) INLAID_NOEXCEPT {
  if (out != nullptr) *out = nullptr;
  return guard([&] {
    required(out, "out");
    inlaid_trainer &trainer = checked(t, "trainer");
    const Owner owner(*trainer.value, "trainer");
    trainer.value->check_idle();
    const train::LossSums sums = trainer.value->trainer->evaluate(*checked(d, "dataset").value, flag(c_or_null));
    *out = event(eval_event(trainer.value->trainer->steps_done(), sums));
  });
}

void inlaid_trainer_release(inlaid_trainer *t) INLAID_NOEXCEPT { drop(t); }

inlaid_error *inlaid_checkpoint_save(inlaid_trainer *t, const char *dir, inlaid_cancel *c_or_null) INLAID_NOEXCEPT {
  return guard([&] {
    inlaid_trainer &trainer = checked(t, "trainer");
    const Owner owner(*trainer.value, "trainer");
    trainer.value->check_idle();
    trainer.value->trainer->save(&required(dir, "dir"), "{}", flag(c_or_null));
  });
}

inlaid_error *inlaid_checkpoint_restore(inlaid_trainer *t, const char *dir) INLAID_NOEXCEPT {
  return guard([&] {
    inlaid_trainer &trainer = checked(t, "trainer");
    const Owner owner(*trainer.value, "trainer");
    trainer.value->check_idle();
    trainer.value->trainer->restore(&required(dir, "dir"));
  });
}

inlaid_error *inlaid_evaluate(inlaid_model *m, inlaid_adapter *adapter_or_null, inlaid_dataset *d, inlaid_cancel *c_or_null,
                              inlaid_event **out) INLAID_NOEXCEPT {
  if (out != nullptr) *out = nullptr;
  return guard([&] {
    required(out, "out");
    const ModelState &model = *checked(m, "model").value;
    model.state->check_up();
    const train::LossSums sums = train::evaluate(*model.model, capi::adapter_or_null(adapter_or_null).get(),
                                                 *checked(d, "dataset").value, flag(c_or_null));
    *out = event(eval_event(0, sums));
  });
}

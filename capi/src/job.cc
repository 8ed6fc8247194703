#include "sdk/train/job.h"

#include "capi/include/inlaid.h"
#include "capi/src/guard.h"
#include "capi/src/handles.h"
#include "sdk/train/audit.h"
#include "sdk/train/job_list.h"
#include "sdk/train/report/report.h"

using namespace inlaid;
using namespace inlaid::capi;

namespace {

std::shared_ptr<JobState> own(const std::shared_ptr<RuntimeState> &state, std::shared_ptr<train::Job> job) {
  auto model = std::make_shared<ModelState>();
  model->state = state;
  model->model = job->trainer()->model();
  auto owned = std::make_shared<JobState>();
  owned->state = state;
  owned->trainer = make_trainer_state(std::move(model), job->trainer());
  owned->job = std::move(job);
  return owned;
}

}  // namespace

inlaid_error *inlaid_job_create(inlaid_runtime *rt, const inlaid_config *c, inlaid_job **out) INLAID_NOEXCEPT {
  if (out != nullptr) *out = nullptr;
  return guard([&] {
    required(out, "out");
    const std::shared_ptr<RuntimeState> &state = checked(rt, "runtime").value;
    state->check_up();
    *out = new inlaid_job(own(state, train::Job::create(state->runtime, *checked(c, "config").value)));
  });
}

inlaid_error *inlaid_job_resume(inlaid_runtime *rt, const char *output_dir, inlaid_job **out) INLAID_NOEXCEPT {
  if (out != nullptr) *out = nullptr;
  return guard([&] {
    required(out, "out");
    const std::shared_ptr<RuntimeState> &state = checked(rt, "runtime").value;
    state->check_up();
    *out = new inlaid_job(own(state, train::Job::resume(state->runtime, &required(output_dir, "output_dir"))));
  });
}

inlaid_error *inlaid_job_list(inlaid_runtime *rt, const char *dir, inlaid_buffer **out_json) INLAID_NOEXCEPT {
  if (out_json != nullptr) *out_json = nullptr;
  return guard([&] {
    required(out_json, "out_json");
    Runtime &runtime = *checked(rt, "runtime").value->runtime;
    *out_json = buffer(to_text(train::list_jobs(runtime.files, &required(dir, "dir"))));
  });
}

inlaid_error *inlaid_job_report(inlaid_runtime *rt, const char *output_dir, inlaid_buffer **out_html) INLAID_NOEXCEPT {
  if (out_html != nullptr) *out_html = nullptr;
  return guard([&] {
    required(out_html, "out_html");
    Runtime &runtime = *checked(rt, "runtime").value->runtime;
    *out_html = buffer(train::report_html(runtime.files, &required(output_dir, "output_dir")));
  });
}

inlaid_error *inlaid_job_verify(inlaid_runtime *rt, const char *output_dir, inlaid_buffer **out_json) INLAID_NOEXCEPT {
  if (out_json != nullptr) *out_json = nullptr;
  return guard([&] {
    required(out_json, "out_json");
    Runtime &runtime = *checked(rt, "runtime").value->runtime;
    *out_json = buffer(to_text(train::verify_job(runtime, &required(output_dir, "output_dir"))));
  });
}

inlaid_error *inlaid_job_start(inlaid_job *j, inlaid_run **out) INLAID_NOEXCEPT {
  if (out != nullptr) *out = nullptr;
  return guard([&] {
    required(out, "out");
    inlaid_job &job = checked(j, "job");
    const Owner owner(job, "job");
    job.value->state->check_up();
    job.value->trainer->check_idle();
    auto handle = std::make_unique<inlaid_run>(nullptr, job.value->trainer);
    RuntimeState::Runs place(1);
    handle->value = job.value->job->start();
    job.value->trainer->run = handle->value;
    job.value->state->add(handle->value, std::move(place));
    *out = handle.release();
  });
}

inlaid_error *inlaid_job_trainer(inlaid_job *j, inlaid_trainer **out) INLAID_NOEXCEPT {
  if (out != nullptr) *out = nullptr;
  return guard([&] {
    required(out, "out");
    *out = new inlaid_trainer(checked(j, "job").value->trainer);
  });
}

inlaid_error *inlaid_job_model(inlaid_job *j, inlaid_model **out_model, inlaid_adapter **out_adapter) INLAID_NOEXCEPT {
  if (out_model != nullptr) *out_model = nullptr;
  if (out_adapter != nullptr) *out_adapter = nullptr;
  return guard([&] {
    required(out_model, "out_model");
    required(out_adapter, "out_adapter");
    const TrainerState &trainer = *checked(j, "job").value->trainer;
    std::unique_ptr<inlaid_adapter> adapter;
    if (trainer.trainer->adapter() != nullptr) {
      adapter = std::make_unique<inlaid_adapter>(trainer.trainer->adapter(), trainer.model);
    }
    *out_model = new inlaid_model(trainer.model);
    *out_adapter = adapter.release();
  });
}

inlaid_error *inlaid_job_describe(inlaid_job *j, inlaid_buffer **out_json) INLAID_NOEXCEPT {
  if (out_json != nullptr) *out_json = nullptr;
  return guard([&] {
    required(out_json, "out_json");
    *out_json = buffer(to_text(checked(j, "job").value->job->describe()));
  });
}

void inlaid_job_release(inlaid_job *j) INLAID_NOEXCEPT { drop(j); }

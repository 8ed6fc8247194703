// Owners of the C API's handles, for tests.
#ifndef INLAID_TESTS_CAPI_OWNED_H_
#define INLAID_TESTS_CAPI_OWNED_H_

#include <inlaid.h>

#include <memory>

namespace capi_test {

template <typename T, void (*Release)(T*)>
struct Releaser {
  void operator()(T* handle) const { Release(handle); }
};
template <typename T, void (*Release)(T*)>
using Owned = std::unique_ptr<T, Releaser<T, Release>>;

using Runtime = Owned<inlaid_runtime, inlaid_runtime_release>;
using Cancel = Owned<inlaid_cancel, inlaid_cancel_release>;
using Config = Owned<inlaid_config, inlaid_config_release>;
using Buffer = Owned<inlaid_buffer, inlaid_buffer_release>;
using Tokenizer = Owned<inlaid_tokenizer, inlaid_tokenizer_release>;
using Decoder = Owned<inlaid_decoder, inlaid_decoder_release>;
using Model = Owned<inlaid_model, inlaid_model_release>;
using Adapter = Owned<inlaid_adapter, inlaid_adapter_release>;
using Dataset = Owned<inlaid_dataset, inlaid_dataset_release>;
using Batch = Owned<inlaid_batch, inlaid_batch_release>;
using Trainer = Owned<inlaid_trainer, inlaid_trainer_release>;
using RunHandle = Owned<inlaid_run, inlaid_run_release>;
using Event = Owned<inlaid_event, inlaid_event_release>;
using Job = Owned<inlaid_job, inlaid_job_release>;
using Pass = Owned<inlaid_pass, inlaid_pass_release>;
using Generator = Owned<inlaid_generator, inlaid_generator_release>;

}  // namespace capi_test

#endif  // INLAID_TESTS_CAPI_OWNED_H_

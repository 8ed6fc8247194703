#include "sdk/train/generator.h"

#include "capi/include/inlaid.h"
#include "capi/src/guard.h"
#include "capi/src/handles.h"

using namespace inlaid;
using namespace inlaid::capi;

inlaid_error *inlaid_generator_create(inlaid_model *m, inlaid_adapter *adapter_or_null, const char *json,
                                      inlaid_generator **out) INLAID_NOEXCEPT {
  if (out != nullptr) *out = nullptr;
  return guard([&] {
    required(out, "out");
    const std::shared_ptr<ModelState> &model = checked(m, "model").value;
    model->state->check_up();
    *out = new inlaid_generator(
        std::make_shared<train::Generator>(model->model, capi::adapter_or_null(adapter_or_null),
                                           train::GenerationOptions::parse(text_or(json, ""))),
        model);
  });
}

inlaid_error *inlaid_generator_prompt(inlaid_generator *g, const void *int32_ids, uint64_t bytes) INLAID_NOEXCEPT {
  return guard([&] {
    inlaid_generator &generator = checked(g, "generator");
    const Owner owner(generator, "generator");
    if (bytes % sizeof(int32_t) != 0) fail(Code::kInvalidArgument, "bytes = ", bytes, " is no multiple of 4");
    if (int32_ids == nullptr && bytes != 0) fail(Code::kInvalidArgument, "int32_ids must not be NULL");
    generator.value->prompt({static_cast<const int32_t *>(int32_ids), static_cast<size_t>(bytes / sizeof(int32_t))});
  });
}

inlaid_error *inlaid_generator_next(inlaid_generator *g, inlaid_cancel *c_or_null, int32_t *out_id, inlaid_buffer **out_utf8,
                                    int32_t *out_done) INLAID_NOEXCEPT {
  if (out_id != nullptr) *out_id = 0;
  if (out_utf8 != nullptr) *out_utf8 = nullptr;
  if (out_done != nullptr) *out_done = 0;
  return guard([&] {
    required(out_id, "out_id");
    required(out_utf8, "out_utf8");
    required(out_done, "out_done");
    inlaid_generator &generator = checked(g, "generator");
    const Owner owner(generator, "generator");
    generator.model->state->check_up();
    const train::Generator::Next next = generator.value->next(flag(c_or_null));
    *out_utf8 = buffer(generator.value->text());
    *out_id = next.id;
    *out_done = next.done;
  });
}

void inlaid_generator_release(inlaid_generator *g) INLAID_NOEXCEPT { drop(g); }

#include "sdk/checkpoint/checkpoint.h"

#include "capi/include/inlaid.h"
#include "capi/src/guard.h"
#include "capi/src/handles.h"
#include "sdk/train/job.h"

using namespace inlaid;
using namespace inlaid::capi;

inlaid_error *inlaid_checkpoint_manifest(inlaid_runtime *rt, const char *dir, int32_t as_json,
                                         inlaid_buffer **out) INLAID_NOEXCEPT {
  if (out != nullptr) *out = nullptr;
  return guard([&] {
    required(out, "out");
    Runtime &runtime = *checked(rt, "runtime").value->runtime;
    const std::string folder = train::checkpoint_of(runtime.files, &required(dir, "dir"));
    const std::unique_ptr<checkpoint::Reader> reader = checkpoint::Reader::open(runtime.files, folder);
    *out = buffer(as_json != 0 ? reader->manifest_json() : reader->manifest_bytes());
  });
}

inlaid_error *inlaid_checkpoint_verify(inlaid_runtime *rt, const char *dir, inlaid_buffer **out_json) INLAID_NOEXCEPT {
  if (out_json != nullptr) *out_json = nullptr;
  return guard([&] {
    required(out_json, "out_json");
    Runtime &runtime = *checked(rt, "runtime").value->runtime;
    *out_json = buffer(to_text(checkpoint::verify(runtime.files, train::checkpoint_of(runtime.files, &required(dir, "dir")))));
  });
}

#include "sdk/config/config.h"

#include "capi/include/inlaid.h"
#include "capi/src/guard.h"
#include "capi/src/handles.h"

using namespace inlaid;
using namespace inlaid::capi;

inlaid_error *inlaid_config_parse(const char *json, const char *folder, inlaid_config **out) INLAID_NOEXCEPT {
  if (out != nullptr) *out = nullptr;
  return guard([&] {
    required(out, "out");
    *out = new inlaid_config(std::make_shared<config::Config>(
        config::Config::parse(text_or(json, "{}"), text_or(folder, ""))));
  });
}

inlaid_error *inlaid_config_set(inlaid_config *c, const char *path, const char *json_value) INLAID_NOEXCEPT {
  return guard([&] {
    inlaid_config &config = checked(c, "config");
    const Owner owner(config, "config");
    config.value->set(&required(path, "path"), text_or(json_value, "null"));
  });
}

inlaid_error *inlaid_config_to_json(const inlaid_config *c, inlaid_buffer **out) INLAID_NOEXCEPT {
  if (out != nullptr) *out = nullptr;
  return guard([&] {
    required(out, "out");
    *out = buffer(checked(c, "config").value->to_json());
  });
}

inlaid_error *inlaid_config_schema(inlaid_buffer **out_json_schema) INLAID_NOEXCEPT {
  if (out_json_schema != nullptr) *out_json_schema = nullptr;
  return guard([&] {
    required(out_json_schema, "out_json_schema");
    *out_json_schema = buffer(config::Config::schema());
  });
}

inlaid_error *inlaid_config_plan(inlaid_runtime *rt, const inlaid_config *c, inlaid_buffer **out_json) INLAID_NOEXCEPT {
  if (out_json != nullptr) *out_json = nullptr;
  return guard([&] {
    required(out_json, "out_json");
    *out_json = buffer(to_text(train::plan(checked(rt, "runtime").value->runtime, *checked(c, "config").value)));
  });
}

void inlaid_config_release(inlaid_config *c) INLAID_NOEXCEPT { drop(c); }

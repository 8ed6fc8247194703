#include "sdk/models/model.h"

#include <algorithm>
#include <span>

#include "capi/include/inlaid.h"
#include "capi/src/dlpack.h"
#include "capi/src/guard.h"
#include "capi/src/handles.h"
#include "sdk/formats/gguf_types.h"
#include "sdk/train/certificate.h"

using namespace inlaid;
using namespace inlaid::capi;

namespace {

// `best` takes the key "checkpoint" of inlaid_result_open; null where there is no such key.
models::LoadOptions parse_load_options(const char *text, bool *best = nullptr) {
  models::LoadOptions options;
  const std::string what = "json";
  const Json json = text == nullptr ? Json::object() : parse_json(text, what);
  if (!json.is_object()) fail(Code::kInvalidArgument, what, " must be an object");
  for (const auto &[key, value] : json.items()) {
    if (value.is_null()) continue;
    if (key == "weights_dtype") {
      options.weights_dtype = string_at(json, key, what);
      const std::string &name = options.weights_dtype;
      if (name != "f32" && name != "bf16" && name != "f16" && name != "as_stored") {
        fail(Code::kInvalidArgument, what, ": weights_dtype '", name, "' is none of f32, bf16, f16, as_stored");
      }
    } else if (key == "tokenizer") {
      options.tokenizer = string_at(json, key, what);
    } else if (key == "chat_template") {
      options.chat_template = string_at(json, key, what);
    } else if (key == "checkpoint" && best != nullptr) {
      const std::string name = string_at(json, key, what);
      if (name != "latest" && name != "best") {
        fail(Code::kInvalidArgument, what, ": checkpoint '", name, "' is none of latest, best");
      }
      *best = name == "best";
    } else {
      std::vector<std::string> known = {"weights_dtype", "tokenizer", "chat_template"};
      if (best != nullptr) known.push_back("checkpoint");
      const std::string near = nearest(key, known);
      fail(Code::kInvalidArgument, what, ": unknown key '", key, "'", near.empty() ? "" : "; did you mean '" + near + "'?");
    }
  }
  return options;
}

struct ExportOptions {
  std::string format = "huggingface";
  DType dtype = DType::f32;
  bool certificate = true;
  Json data;  // the section `data` of a configuration whose evaluation data the certificate is to use; null = none
};

// The type that a format may hold, by name; the message lists those that it may.
DType export_dtype(const std::string &name, const std::string &format, std::span<const DType> types, const std::string &what) {
  std::string known;
  for (const DType type : types) {
    if (name == dtype_name(type)) return type;
    known += (known.empty() ? "" : ", ") + std::string(dtype_name(type));
  }
  fail(Code::kInvalidArgument, what, ": dtype '", name, "' cannot be exported as ", format, "; ", known, " can");
}

ExportOptions parse_export_options(const char *text) {
  static constexpr DType kPlain[] = {DType::f32, DType::bf16, DType::f16};
  ExportOptions options;
  const std::string what = "export options";
  std::string dtype = "f32";
  const Json json = text == nullptr ? Json::object() : parse_json(text, what);
  if (!json.is_object()) fail(Code::kInvalidArgument, what, " must be an object");
  for (const auto &[key, value] : json.items()) {
    if (value.is_null()) continue;
    if (key == "format") {
      options.format = string_at(json, key, what);
    } else if (key == "dtype") {
      dtype = string_at(json, key, what);
    } else if (key == "certificate") {
      if (!value.is_boolean()) fail(Code::kInvalidArgument, what, ": certificate must be true or false");
      options.certificate = value.get<bool>();
    } else if (key == "data") {
      if (!value.is_object()) fail(Code::kInvalidArgument, what, ": data must be an object, as in a configuration");
      options.data = value;
    } else {
      fail(Code::kInvalidArgument, what, ": unknown key '", key, "'; there are format, dtype, certificate and data");
    }
  }
  if (options.format != "huggingface" && options.format != "gguf") {
    fail(Code::kInvalidArgument, what, ": format '", options.format, "' is none of huggingface, gguf");
  }
  const bool gguf = options.format == "gguf";
  options.dtype = export_dtype(dtype, options.format, gguf ? formats::gguf_export_types() : std::span<const DType>(kPlain), what);
  return options;
}

// The evaluation data that an export is certified on; may be none.
std::shared_ptr<const data::Dataset> held_out_data(const models::Model &model, const ExportOptions &options) {
  if (options.data.is_null()) return nullptr;
  return train::open_data(config::Config::parse(to_text({{"data", options.data}}), ""), model, /*evaluation=*/true);
}

// What train::certify_model says of the written path, with the format and dtype that were asked for.
formats::Certify certify_with(const models::Model &model, const models::Adapter *adapter, const ExportOptions &options,
                              const data::Dataset *held_out) {
  if (!options.certificate) return nullptr;
  return [&model, adapter, &options, held_out](const std::string &path) {
    Json certificate = {{"format", options.format}, {"dtype", dtype_name(options.dtype)}};
    certificate.update(train::certify_model(model, adapter, path, held_out));
    return to_text(certificate);
  };
}

std::shared_ptr<ModelState> own(const std::shared_ptr<RuntimeState> &state, std::shared_ptr<models::Model> model) {
  auto owned = std::make_shared<ModelState>();
  owned->state = state;
  owned->model = std::move(model);
  return owned;
}

Json tensor_table(const nn::ParameterSet &parameters) {
  Json table = Json::array();
  for (const auto &parameter : parameters.all()) {
    table.push_back({{"name", parameter->spec.name},
                     {"dtype", dtype_name(parameter->value.dtype())},
                     {"shape", parameter->spec.shape}});
  }
  return table;
}

int64_t count(const nn::ParameterSet &parameters) {
  int64_t total = 0;
  for (const auto &parameter : parameters.all()) total += element_count(parameter->spec.shape);
  return total;
}

// A DLPack tensor that owns its values.
struct ExportedTensor {
  DLManagedTensorVersioned managed{};
  std::vector<float> values;
  std::vector<int64_t> shape, strides;
};

}  // namespace

inlaid_error *inlaid_model_create(inlaid_runtime *rt, const inlaid_config *c, inlaid_comm *comm_or_null,
                                  inlaid_model **out) INLAID_NOEXCEPT {
  if (out != nullptr) *out = nullptr;
  return guard([&] {
    required(out, "out");
    check_one_rank(comm_or_null);
    const std::shared_ptr<RuntimeState> &state = checked(rt, "runtime").value;
    state->check_up();
    const config::Config &config = *checked(c, "config").value;
    if (!config.has("model.config")) fail(Code::kInvalidArgument, "model.config is missing in the configuration");
    *out = new inlaid_model(own(state, models::Model::create(state->runtime, config.value("model.config"),
                                                             static_cast<uint64_t>(config.integer("train.seed")),
                                                             train::load_options(state->runtime->files, config))));
  });
}

inlaid_error *inlaid_model_load(inlaid_runtime *rt, const char *path, const char *json, inlaid_comm *comm_or_null,
                                inlaid_model **out) INLAID_NOEXCEPT {
  if (out != nullptr) *out = nullptr;
  return guard([&] {
    required(out, "out");
    check_one_rank(comm_or_null);
    const std::shared_ptr<RuntimeState> &state = checked(rt, "runtime").value;
    state->check_up();
    *out = new inlaid_model(
        own(state, models::Model::load(state->runtime, &required(path, "path"), parse_load_options(json))));
  });
}

inlaid_error *inlaid_result_open(inlaid_runtime *rt, const char *path, const char *json, inlaid_comm *comm_or_null,
                                 inlaid_model **out_model, inlaid_adapter **out_adapter) INLAID_NOEXCEPT {
  if (out_model != nullptr) *out_model = nullptr;
  if (out_adapter != nullptr) *out_adapter = nullptr;
  return guard([&] {
    required(out_model, "out_model");
    required(out_adapter, "out_adapter");
    check_one_rank(comm_or_null);
    const std::shared_ptr<RuntimeState> &state = checked(rt, "runtime").value;
    state->check_up();
    bool best = false;
    const models::LoadOptions options = parse_load_options(json, &best);
    const train::Result result = train::open_result(state->runtime, &required(path, "path"), options, best);
    const std::shared_ptr<ModelState> model = own(state, result.model);
    std::unique_ptr<inlaid_adapter> adapter;
    if (result.adapter != nullptr) adapter = std::make_unique<inlaid_adapter>(result.adapter, model);
    *out_model = new inlaid_model(model);
    *out_adapter = adapter.release();
  });
}

inlaid_error *inlaid_model_export(inlaid_model *m, inlaid_adapter *adapter_or_null, const char *path,
                                  const char *json) INLAID_NOEXCEPT {
  return guard([&] {
    inlaid_model &model = checked(m, "model");
    const std::shared_ptr<models::Adapter> adapter = adapter_or_null == nullptr ? nullptr : checked(adapter_or_null, "adapter").value;
    const ExportOptions options = parse_export_options(json);
    const std::string target = &required(path, "path");
    const models::Model &source = *model.value->model;
    const std::shared_ptr<const data::Dataset> held_out = options.certificate ? held_out_data(source, options) : nullptr;
    const formats::Certify certify = certify_with(source, adapter.get(), options, held_out.get());
    if (options.format == "gguf") {
      models::export_gguf(source, adapter.get(), target, options.dtype, certify);
    } else {
      models::export_hugging_face(source, adapter.get(), target, options.dtype, certify);
    }
  });
}

inlaid_error *inlaid_model_describe(inlaid_model *m, inlaid_buffer **out_json) INLAID_NOEXCEPT {
  if (out_json != nullptr) *out_json = nullptr;
  return guard([&] {
    required(out_json, "out_json");
    const models::Model &model = *checked(m, "model").value->model;
    Json json;
    json["path"] = model.files().path;
    json["identity"] = model.files().identity;
    json["config"] = model.files().config;
    json["parameters"] = count(model.parameters());
    json["weights_dtype"] = model.weights_dtype();
    json["stop_tokens"] = model.stop_tokens();
    json["tensors"] = tensor_table(model.parameters());
    *out_json = buffer(to_text(json));
  });
}

inlaid_error *inlaid_model_tokenizer(inlaid_model *m, inlaid_tokenizer **out) INLAID_NOEXCEPT {
  if (out != nullptr) *out = nullptr;
  return guard([&] {
    required(out, "out");
    const ModelState &model = *checked(m, "model").value;
    auto text = std::make_shared<TokenizerState>();
    text->tokenizer = model.model->tokenizer();
    text->chat_template = model.model->chat_template();
    text->stop_tokens = model.model->stop_tokens();
    *out = new inlaid_tokenizer(
        std::make_shared<Owned<TokenizerState>>(Owned<TokenizerState>{model.state, std::move(text)}));
  });
}

inlaid_error *inlaid_model_get_tensor(inlaid_model *m, const char *name,
                                      DLManagedTensorVersioned **out) INLAID_NOEXCEPT {
  if (out != nullptr) *out = nullptr;
  return guard([&] {
    required(out, "out");
    const models::Model &model = *checked(m, "model").value->model;
    const nn::Parameter *parameter = model.parameters().find(&required(name, "name"));
    if (parameter == nullptr) fail(Code::kNotFound, "the model has no tensor '", name, "'");
    auto tensor = std::make_unique<ExportedTensor>();
    tensor->shape = parameter->spec.shape;
    tensor->strides.resize(tensor->shape.size());
    int64_t stride = 1;
    for (size_t i = tensor->shape.size(); i > 0; --i) {
      tensor->strides[i - 1] = stride;
      stride *= tensor->shape[i - 1];
    }
    tensor->values.resize(static_cast<size_t>(stride));
    kernels::ConvertArgs args;
    args.src = args.dst = parameter->value.view();
    args.dst.data = tensor->values.data();
    args.dst.dtype = DType::f32;
    model.runtime()->kernels.convert({&model.runtime()->pool.executor(), nullptr, 0}, args);
    DLManagedTensorVersioned &managed = tensor->managed;
    managed.version = {1, 0};
    managed.manager_ctx = tensor.get();
    managed.deleter = [](DLManagedTensorVersioned *self) { delete static_cast<ExportedTensor *>(self->manager_ctx); };
    managed.flags = 2;  // DLPACK_FLAG_BITMASK_IS_COPIED
    managed.dl_tensor = {tensor->values.data(), {1, 0}, static_cast<int32_t>(tensor->shape.size()), {2, 32, 1},
                         tensor->shape.data(), tensor->strides.data(), 0};
    *out = &tensor.release()->managed;
  });
}

inlaid_error *inlaid_export_certificate(inlaid_runtime *rt, const char *path, inlaid_buffer **out_json) INLAID_NOEXCEPT {
  if (out_json != nullptr) *out_json = nullptr;
  return guard([&] {
    required(out_json, "out_json");
    Runtime &runtime = *checked(rt, "runtime").value->runtime;
    *out_json = buffer(to_text(train::read_certificate(runtime.files, &required(path, "path"))));
  });
}

void inlaid_model_release(inlaid_model *m) INLAID_NOEXCEPT { drop(m); }

inlaid_error *inlaid_adapter_create(inlaid_model *m, const inlaid_config *c, inlaid_adapter **out) INLAID_NOEXCEPT {
  if (out != nullptr) *out = nullptr;
  return guard([&] {
    required(out, "out");
    const std::shared_ptr<ModelState> &model = checked(m, "model").value;
    const config::Config &config = *checked(c, "config").value;
    if (!config.has("adapter.peft_type")) fail(Code::kInvalidArgument, "adapter.peft_type is missing in the configuration");
    *out = new inlaid_adapter(models::Adapter::create(model->model, train::adapter_config(config),
                                                      static_cast<uint64_t>(config.integer("train.seed"))),
                              model);
  });
}

inlaid_error *inlaid_adapter_load(inlaid_model *m, const char *path, inlaid_adapter **out) INLAID_NOEXCEPT {
  if (out != nullptr) *out = nullptr;
  return guard([&] {
    required(out, "out");
    const std::shared_ptr<ModelState> &model = checked(m, "model").value;
    *out = new inlaid_adapter(models::Adapter::load(model->model, &required(path, "path")), model);
  });
}

inlaid_error *inlaid_adapter_save(inlaid_adapter *a, const char *path) INLAID_NOEXCEPT {
  return guard([&] {
    const models::Adapter &adapter = *checked(a, "adapter").value;
    models::export_peft(adapter, &required(path, "path"), [&adapter](const std::string &folder) {
      Json certificate = {{"format", "peft"}, {"dtype", "f32"}};
      certificate.update(train::certify_adapter(adapter, folder));
      return to_text(certificate);
    });
  });
}

inlaid_error *inlaid_adapter_describe(inlaid_adapter *a, inlaid_buffer **out_json) INLAID_NOEXCEPT {
  if (out_json != nullptr) *out_json = nullptr;
  return guard([&] {
    required(out_json, "out_json");
    const models::Adapter &adapter = *checked(a, "adapter").value;
    Json json;
    json["config"] = adapter.config().to_peft();
    json["parameters"] = count(adapter.parameters());
    json["tensors"] = tensor_table(adapter.parameters());
    *out_json = buffer(to_text(json));
  });
}

void inlaid_adapter_release(inlaid_adapter *a) INLAID_NOEXCEPT { drop(a); }

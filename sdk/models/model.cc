#include "sdk/models/model.h"

#include <algorithm>
#include <map>
#include <set>

#include "sdk/base/error.h"
#include "sdk/formats/hugging_face.h"

namespace inlaid::models {
namespace {

// Stored tensors that carry nothing: buffers of older writers.
bool is_buffer(const std::string& name) { return name.ends_with(".rotary_emb.inv_freq"); }

std::string names_text(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < names.size() && i < 5; ++i) text += (i ? ", " : "") + names[i];
  if (names.size() > 5) text += " and " + std::to_string(names.size() - 5) + " more";
  return text;
}

// Reads one stored tensor and converts it to `dtype`.
Tensor read_tensor(Runtime& runtime, MemoryAccount& account, const formats::WeightSource& source, size_t index, DType dtype) {
  const formats::StoredTensor& stored = source.tensors()[index];
  check_stored_dtype(stored);
  Tensor value(account, Category::kWeights, dtype, stored.shape, false);
  const auto bytes = static_cast<size_t>(byte_count(stored.dtype, stored.shape));
  if (stored.dtype == dtype) {
    source.read(index, {value.as<std::byte>(), bytes});
    return value;
  }
  std::vector<std::byte> raw(bytes);
  source.read(index, raw);
  const int64_t columns = stored.shape.empty() ? 1 : stored.shape.back();
  const int64_t rows = columns == 0 ? 0 : element_count(stored.shape) / columns;
  const kernels::Context context{&runtime.pool.executor(), nullptr, 0};
  kernels::ConvertArgs args;
  args.src = kernels::view2(raw.data(), stored.dtype, rows, columns);
  args.dst = kernels::view2(value.data(), dtype, rows, columns);
  if (dtype != DType::f32 && stored.dtype != DType::f32) {
    std::vector<float> wide(static_cast<size_t>(rows * columns));
    kernels::ConvertArgs widen = args;
    widen.dst = kernels::view2(wide.data(), DType::f32, rows, columns);
    runtime.kernels.convert(context, widen);
    args.src = widen.dst;
    runtime.kernels.convert(context, args);
    return value;
  }
  runtime.kernels.convert(context, args);
  return value;
}

bool same_bytes(const formats::WeightSource& source, size_t a, size_t b) {
  const formats::StoredTensor& left = source.tensors()[a];
  const formats::StoredTensor& right = source.tensors()[b];
  if (left.dtype != right.dtype || left.shape != right.shape) return false;
  const auto bytes = static_cast<size_t>(byte_count(left.dtype, left.shape));
  std::vector<std::byte> x(bytes), y(bytes);
  source.read(a, x);
  source.read(b, y);
  return x == y;
}

}  // namespace

void check_stored_dtype(const formats::StoredTensor& stored) {
  if (kernels::storage_type(stored.dtype)) return;
  fail(Code::kUnimplemented, stored.file, ": tensor ", stored.name, " is of type ", dtype_name(stored.dtype),
       "; weights may be f32, f16, bf16 or quantised blocks");
}

DType held_dtype(const nn::ParameterSpec& spec, const std::string& weights_dtype, DType stored) {
  if (spec.shape.size() < 2) return DType::f32;
  if (weights_dtype == "as_stored") return kernels::storage_type(stored) ? stored : DType::f32;
  return parse_dtype(weights_dtype);
}

std::shared_ptr<Model> Model::load(std::shared_ptr<Runtime> runtime, const std::string& path, const LoadOptions& options) {
  return open(std::move(runtime), path, options, true);
}

std::shared_ptr<Model> Model::outline(std::shared_ptr<Runtime> runtime, const std::string& path,
                                      const LoadOptions& options) {
  return open(std::move(runtime), path, options, false);
}

std::shared_ptr<Model> Model::open(std::shared_ptr<Runtime> runtime, const std::string& path, const LoadOptions& options,
                                   bool weights) {
  std::shared_ptr<Model> model(new Model());
  model->runtime_ = runtime;
  model->memory_ = MemoryAccount::child(runtime->memory, "model");
  model->files_ = formats::open_model(runtime->files, path, options.tokenizer.empty());
  model->weights_dtype_ = options.weights_dtype;
  model->config_ = DecoderConfig::parse(model->files_.config, path + ": config");
  model->set_text(options);

  const formats::WeightSource& source = *model->files_.weights;
  std::map<std::string, size_t> stored;
  for (size_t i = 0; i < source.tensors().size(); ++i) stored[source.tensors()[i].name] = i;

  std::vector<std::string> missing;
  std::set<std::string> used;
  for (const nn::ParameterSpec& spec : decoder_parameters(model->config_)) {
    const auto found = stored.find(spec.name);
    if (found == stored.end()) {
      missing.push_back(spec.name);
      continue;
    }
    used.insert(spec.name);
    const formats::StoredTensor& tensor = source.tensors()[found->second];
    if (tensor.shape != spec.shape) {
      fail(Code::kDataLoss, tensor.file, ": tensor ", spec.name, " has shape ", shape_text(tensor.shape),
           ", the configuration asks for ", shape_text(spec.shape));
    }
    nn::Parameter parameter;
    parameter.spec = spec;
    const DType held = held_dtype(spec, options.weights_dtype, tensor.dtype);
    parameter.value = weights ? read_tensor(*runtime, *model->memory_, source, found->second, held)
                              : Tensor(nullptr, nullptr, held, spec.shape);
    model->parameters_.add(std::move(parameter));
  }
  if (!missing.empty()) fail(Code::kDataLoss, path, ": missing tensors: ", names_text(missing));

  std::vector<std::string> extra;
  for (const auto& [name, index] : stored) {
    if (used.contains(name) || is_buffer(name)) continue;
    // A tied head may be stored a second time, as long as it says the same.
    if (name == "lm_head.weight" && model->config_.tie_word_embeddings &&
        same_bytes(source, index, stored.at("model.embed_tokens.weight"))) {
      continue;
    }
    extra.push_back(name);
  }
  if (!extra.empty()) {
    fail(Code::kDataLoss, path, ": tensors that the model does not use: ", names_text(extra));
  }
  model->files_.weights.reset();
  return model;
}

std::shared_ptr<Model> Model::from_config(std::shared_ptr<Runtime> runtime, const Json& config,
                                          const LoadOptions& options) {
  std::shared_ptr<Model> model(new Model());
  model->memory_ = MemoryAccount::child(runtime->memory, "model");
  model->runtime_ = std::move(runtime);
  model->files_.config = config;
  model->files_.generation_config = Json::object();
  model->files_.tokenizer_config = Json::object();
  model->weights_dtype_ = "f32";
  model->config_ = DecoderConfig::parse(config, "model.config");
  model->set_text(options);
  return model;
}

std::shared_ptr<Model> Model::create_outline(std::shared_ptr<Runtime> runtime, const Json& config,
                                             const LoadOptions& options) {
  std::shared_ptr<Model> model = from_config(std::move(runtime), config, options);
  for (const nn::ParameterSpec& spec : decoder_parameters(model->config_)) {
    model->parameters_.add({spec, Tensor(nullptr, nullptr, DType::f32, spec.shape)});
  }
  return model;
}

std::shared_ptr<Model> Model::create(std::shared_ptr<Runtime> runtime, const Json& config, uint64_t seed,
                                     const LoadOptions& options) {
  std::shared_ptr<Model> model = from_config(std::move(runtime), config, options);
  for (const nn::ParameterSpec& spec : decoder_parameters(model->config_)) {
    nn::Parameter parameter{spec, Tensor(*model->memory_, Category::kWeights, DType::f32, spec.shape, false)};
    nn::initialise(spec, seed, {parameter.value.as<float>(), static_cast<size_t>(parameter.value.elements())});
    model->parameters_.add(std::move(parameter));
  }
  return model;
}

void Model::set_text(const LoadOptions& options) {
  if (!options.tokenizer.empty()) {
    FileSystem& fs = runtime_->files;
    const bool folder = fs.is_folder(options.tokenizer);
    const std::string root = folder ? options.tokenizer : parent_path(options.tokenizer);
    formats::ModelFiles named;
    formats::read_hugging_face_tokenizer(fs, root, named, folder);
    files_.tokenizer_json = folder ? named.tokenizer_json : read_text(fs, options.tokenizer);
    if (files_.tokenizer_json.empty()) {
      fail(Code::kNotFound, options.tokenizer, ": there is neither a tokenizer.json nor a tokenizer.model");
    }
    if (!named.tokenizer_config.empty()) files_.tokenizer_config = std::move(named.tokenizer_config);
    if (!named.chat_template.empty()) files_.chat_template = std::move(named.chat_template);
  }
  if (!options.chat_template.empty()) files_.chat_template = options.chat_template;
  if (files_.tokenizer_json.empty()) return;
  tokenizer_ = text::Tokenizer::from_json(files_.tokenizer_json, files_.path + ": tokenizer");

  Json special = Json::object();
  for (const char* key : {"bos_token", "eos_token", "unk_token", "pad_token"}) {
    const auto found = files_.tokenizer_config.find(key);
    if (found == files_.tokenizer_config.end()) continue;
    if (found->is_string()) special[key] = *found;
  }
  if (!files_.chat_template.empty()) {
    chat_template_ = text::ChatTemplate::compile(files_.chat_template, special, files_.path + ": chat template");
  }

  const auto add = [&](int64_t number) {
    const auto id = static_cast<int32_t>(number);
    if (number != id || std::find(stop_ids_.begin(), stop_ids_.end(), id) != stop_ids_.end()) return;
    const auto token = tokenizer_->id_to_token(id);
    if (!token) return;
    stop_ids_.push_back(id);
    stop_tokens_.push_back(*token);
  };
  if (special.contains("eos_token")) {
    const auto id = tokenizer_->token_to_id(special["eos_token"].get<std::string>());
    if (id) add(*id);
  }
  for (const Json* source : {&files_.generation_config, &files_.config}) {
    const auto eos = source->find("eos_token_id");
    if (eos == source->end()) continue;
    if (eos->is_number_integer()) add(eos->get<int64_t>());
    if (eos->is_array()) {
      for (const Json& id : *eos) {
        if (id.is_number_integer()) add(id.get<int64_t>());
      }
    }
  }
}

std::shared_ptr<const text::Tokenizer> Model::tokenizer() const {
  if (tokenizer_ == nullptr) {
    fail(Code::kFailedPrecondition, files_.path.empty() ? "the model" : files_.path,
         " has no tokenizer; name one with model.tokenizer");
  }
  return tokenizer_;
}

std::shared_ptr<const text::ChatTemplate> Model::chat_template() const { return chat_template_; }

}  // namespace inlaid::models

#include <algorithm>
#include <map>
#include <string_view>

#include "sdk/base/error.h"
#include "sdk/models/model.h"

namespace inlaid::models {
namespace {

// PEFT writes "base_model.model." before the module path.
constexpr std::string_view kPrefix = "base_model.model.";

std::vector<nn::ParameterSpec> base_specs(const Model& base) { return decoder_parameters(base.config()); }

// PEFT knows q, k and v of phi3 as one module, and gate and up too: an adapter on a part could never be written.
void check_fused(const Model& base, const nn::AdapterLayout& layout) {
  if (base.config().family != "phi3") return;
  for (const auto& [module, lora] : layout.modules) {
    if (module.ends_with(".o_proj") || module.ends_with(".down_proj")) continue;
    fail(Code::kUnimplemented, "adapter.target_modules: an adapter on ", module, " of phi3 is not supported, because phi3 stores",
         " it fused with others and PEFT has no name for it; o_proj and down_proj can be named");
  }
}

}  // namespace

std::shared_ptr<Adapter> Adapter::allocate(std::shared_ptr<Model> base, const nn::AdapterConfig& config,
                                           bool weights) {
  std::shared_ptr<Adapter> adapter(new Adapter());
  adapter->memory_ = MemoryAccount::child(base->runtime()->memory, "adapter");
  adapter->config_ = config;
  adapter->config_.base_model = base->files().path;
  adapter->layout_ = nn::lay_out(config, decoder_linears(base->config()), base_specs(*base));
  check_fused(*base, adapter->layout_);
  for (const nn::ParameterSpec& spec : adapter->layout_.parameters) {
    nn::Parameter parameter;
    parameter.spec = spec;
    parameter.value = weights ? Tensor(*adapter->memory_, Category::kWeights, DType::f32, spec.shape, false)
                              : Tensor(nullptr, nullptr, DType::f32, spec.shape);
    adapter->parameters_.add(std::move(parameter));
  }
  adapter->base_ = std::move(base);
  return adapter;
}

std::shared_ptr<Adapter> Adapter::outline(std::shared_ptr<Model> base, const nn::AdapterConfig& config) {
  return allocate(std::move(base), config, false);
}

std::shared_ptr<Adapter> Adapter::create(std::shared_ptr<Model> base, const nn::AdapterConfig& config, uint64_t seed) {
  std::shared_ptr<Adapter> adapter = allocate(std::move(base), config, true);
  Runtime& runtime = *adapter->base_->runtime();
  const kernels::Context context{&runtime.pool.executor(), nullptr, 0};
  for (const auto& parameter : adapter->parameters_.all()) {
    const nn::Parameter* original = adapter->base_->parameters().find(parameter->spec.name);
    if (original != nullptr) {  // modules_to_save starts from the base's values
      kernels::ConvertArgs args;
      args.src = original->value.view();
      args.dst = parameter->value.view();
      runtime.kernels.convert(context, args);
      continue;
    }
    nn::initialise(parameter->spec, seed,
                   {parameter->value.as<float>(), static_cast<size_t>(parameter->value.elements())});
  }
  return adapter;
}

std::shared_ptr<Adapter> Adapter::load(std::shared_ptr<Model> base, const std::string& folder) {
  Runtime& runtime = *base->runtime();
  const formats::PeftAdapter files = formats::open_peft(runtime.files, folder);
  const std::string what = join_path(folder, "adapter_config.json");
  std::shared_ptr<Adapter> adapter = allocate(std::move(base), nn::AdapterConfig::from_peft(files.config, what), true);

  std::map<std::string, size_t> stored;
  for (size_t i = 0; i < files.weights->tensors().size(); ++i) stored[files.weights->tensors()[i].name] = i;
  const kernels::Context context{&runtime.pool.executor(), nullptr, 0};
  std::string problems;
  for (const auto& parameter : adapter->parameters_.all()) {
    const auto found = stored.find(std::string(kPrefix) + parameter->spec.name);
    if (found == stored.end()) {
      problems += " missing " + std::string(kPrefix) + parameter->spec.name + ";";
      continue;
    }
    const formats::StoredTensor& tensor = files.weights->tensors()[found->second];
    if (tensor.shape != parameter->spec.shape) {
      fail(Code::kDataLoss, tensor.file, ": tensor ", tensor.name, " has shape ", shape_text(tensor.shape),
           ", the base and adapter_config.json ask for ", shape_text(parameter->spec.shape));
    }
    check_stored_dtype(tensor);
    std::vector<std::byte> raw(static_cast<size_t>(byte_count(tensor.dtype, tensor.shape)));
    files.weights->read(found->second, raw);
    kernels::ConvertArgs args;
    args.src = parameter->value.view();
    args.src.data = raw.data();
    args.src.dtype = tensor.dtype;
    args.dst = parameter->value.view();
    runtime.kernels.convert(context, args);
    stored.erase(found);
  }
  for (const auto& [name, index] : stored) problems += " unmatched " + name + ";";
  if (!problems.empty()) {
    fail(Code::kDataLoss, folder, ": keys of the adapter do not fit the base model:", problems.substr(0, 600));
  }
  return adapter;
}

}  // namespace inlaid::models

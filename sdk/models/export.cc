// Exports: values are produced tensor by tensor, so that an export needs memory for one tensor only.
#include <algorithm>
#include <map>

#include "sdk/base/error.h"
#include "sdk/formats/gguf_types.h"
#include "sdk/models/model.h"

namespace inlaid::models {
namespace {

void widen(const Runtime& runtime, const Tensor& source, std::span<float> values) {
  const kernels::Context context{&kernels::serial_executor(), nullptr, 0};
  kernels::ConvertArgs args;
  args.src = source.view();
  args.dst = source.view();
  args.dst.data = values.data();
  args.dst.dtype = DType::f32;
  runtime.kernels.convert(context, args);
}

// values += scale * B A, with the sum of each element in f64 and one rounding.
void merge(const nn::Parameter& a, const nn::Parameter& b, double scale, std::span<float> values) {
  const int64_t out = b.spec.shape[0], r = b.spec.shape[1], in = a.spec.shape[1];
  const float* left = b.value.as<float>();
  const float* right = a.value.as<float>();
  std::vector<double> row(static_cast<size_t>(in));
  for (int64_t o = 0; o < out; ++o) {
    std::fill(row.begin(), row.end(), 0.0);
    for (int64_t k = 0; k < r; ++k) {
      const double factor = left[o * r + k];
      for (int64_t i = 0; i < in; ++i) row[static_cast<size_t>(i)] += factor * static_cast<double>(right[k * in + i]);
    }
    for (int64_t i = 0; i < in; ++i) {
      float& value = values[static_cast<size_t>(o * in + i)];
      value = static_cast<float>(static_cast<double>(value) + scale * row[static_cast<size_t>(i)]);
    }
  }
}

using TypeOf = DType (*)(DType wanted, const Shape& shape);

std::vector<formats::ExportTensor> merged_tensors(const Model& model, const Adapter* adapter, DType dtype, TypeOf type_of) {
  if (adapter != nullptr && adapter->base().get() != &model) {
    fail(Code::kInvalidArgument, "the adapter belongs to another model");
  }
  std::vector<formats::ExportTensor> tensors;
  for (const auto& owned : model.parameters().all()) {
    const nn::Parameter* parameter = owned.get();
    const nn::Lora* lora = nullptr;
    if (adapter != nullptr) {
      const nn::Parameter* saved = adapter->parameters().find(parameter->spec.name);
      if (saved != nullptr) parameter = saved;
      const std::string& name = owned->spec.name;
      if (name.ends_with(".weight")) {
        const auto found = adapter->layout().modules.find(name.substr(0, name.size() - 7));
        if (found != adapter->layout().modules.end()) lora = &found->second;
      }
    }
    formats::ExportTensor tensor;
    tensor.name = owned->spec.name;
    tensor.shape = owned->spec.shape;
    tensor.dtype = type_of(dtype, tensor.shape);
    tensor.values = [&model, adapter, parameter, lora](std::span<float> values) {
      widen(*model.runtime(), parameter->value, values);
      if (lora != nullptr) {
        merge(*adapter->parameters().find(lora->a), *adapter->parameters().find(lora->b), lora->scale, values);
      }
    };
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

// Says which matrices have another type than the one that was asked for.
void log_fallbacks(const Log& log, const std::string& path, DType wanted, const std::vector<formats::ExportTensor>& tensors) {
  std::map<DType, int64_t> counts;
  for (const formats::ExportTensor& tensor : tensors) {
    if (tensor.shape.size() > 1 && tensor.dtype != wanted) ++counts[tensor.dtype];
  }
  for (const auto& [dtype, count] : counts) {
    log.write(LogLevel::kWarning, "export",
              path + ": " + std::to_string(count) + " tensors are stored as " + dtype_name(dtype) +
                  ", because their rows do not divide into the blocks of " +
                  std::to_string(kernels::dtype_info(wanted).block) + " values of " + dtype_name(wanted));
  }
}

}  // namespace

void export_hugging_face(const Model& model, const Adapter* adapter, const std::string& folder, DType dtype,
                         const formats::Certify& certify) {
  formats::write_hugging_face(model.runtime()->files, folder, model.files(),
                              merged_tensors(model, adapter, dtype, [](DType wanted, const Shape&) { return wanted; }),
                              formats::kShardBytes, certify);
}

void export_gguf(const Model& model, const Adapter* adapter, const std::string& path, DType dtype,
                 const formats::Certify& certify) {
  const std::vector<formats::ExportTensor> tensors = merged_tensors(model, adapter, dtype, formats::gguf_export_type);
  formats::write_gguf(model.runtime()->files, path, model.files(), tensors, certify);
  log_fallbacks(model.runtime()->log, path, dtype, tensors);
}

void export_peft(const Adapter& adapter, const std::string& folder, const formats::Certify& certify) {
  std::vector<formats::ExportTensor> tensors;
  for (const auto& parameter : adapter.parameters().all()) {
    formats::ExportTensor tensor;
    tensor.name = "base_model.model." + parameter->spec.name;
    tensor.shape = parameter->spec.shape;
    tensor.dtype = DType::f32;
    tensor.values = [&parameter = *parameter](std::span<float> values) {
      const float* data = parameter.value.as<float>();
      std::copy(data, data + values.size(), values.begin());
    };
    tensors.push_back(std::move(tensor));
  }
  formats::write_peft(adapter.base()->runtime()->files, folder, adapter.config().to_peft(), tensors, certify);
}

}  // namespace inlaid::models

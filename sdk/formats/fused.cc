#include "sdk/formats/fused.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "sdk/base/error.h"
#include "sdk/formats/llama_geometry.h"

namespace inlaid::formats {
namespace {

struct Part {
  const char* module;
  int64_t rows;
};
struct Fused {
  const char* module;
  std::vector<Part> parts;
};

std::vector<Fused> fused_modules(const Json& config) {
  const auto type = config.find("model_type");
  if (type == config.end() || *type != "phi3") return {};
  const LlamaGeometry g = parse_llama_shapes(config, "config.json");
  const int64_t q = g.heads * g.head_size, kv = g.kv_heads * g.head_size;
  return {{".self_attn.qkv_proj.weight",
           {{".self_attn.q_proj.weight", q}, {".self_attn.k_proj.weight", kv}, {".self_attn.v_proj.weight", kv}}},
          {".mlp.gate_up_proj.weight",
           {{".mlp.gate_proj.weight", g.intermediate}, {".mlp.up_proj.weight", g.intermediate}}}};
}

std::string with_end(const std::string& name, std::string_view end, const char* other) {
  return name.substr(0, name.size() - end.size()) + other;
}

class SplitSource : public WeightSource {
 public:
  SplitSource(std::unique_ptr<WeightSource> source, const std::vector<Fused>& modules) : source_(std::move(source)) {
    std::vector<std::pair<StoredTensor, Place>> found;
    for (size_t i = 0; i < source_->tensors().size(); ++i) {
      const StoredTensor& whole = source_->tensors()[i];
      const auto fused = std::find_if(modules.begin(), modules.end(),
                                      [&](const Fused& f) { return whole.name.ends_with(f.module); });
      if (fused == modules.end()) {
        found.push_back({whole, {i, 0}});
        continue;
      }
      int64_t rows = 0;
      for (const Part& part : fused->parts) rows += part.rows;
      if (whole.shape.size() != 2 || whole.shape[0] != rows) {
        fail(Code::kDataLoss, whole.file, ": tensor ", whole.name, " has shape ", shape_text(whole.shape),
             ", the configuration asks for ", rows, " rows");
      }
      int64_t first = 0;
      for (const Part& part : fused->parts) {
        StoredTensor tensor = whole;
        tensor.name = with_end(whole.name, fused->module, part.module);
        tensor.shape[0] = part.rows;
        found.push_back({std::move(tensor), {i, first}});
        first += part.rows;
      }
    }
    std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first.name < b.first.name; });
    for (auto& [tensor, place] : found) {
      if (!tensors_.empty() && tensors_.back().name == tensor.name) {
        fail(Code::kDataLoss, tensor.file, ": tensor '", tensor.name, "' is there twice, alone and in a fused matrix");
      }
      tensors_.push_back(std::move(tensor));
      places_.push_back(place);
    }
  }

  const std::vector<StoredTensor>& tensors() const override { return tensors_; }

  void read(size_t index, std::span<std::byte> out) const override {
    const Place& place = places_.at(index);
    const StoredTensor& whole = source_->tensors()[place.tensor];
    const auto bytes = static_cast<size_t>(byte_count(whole.dtype, whole.shape));
    if (out.size() == bytes) return source_->read(place.tensor, out);
    std::vector<std::byte> all(bytes);
    source_->read(place.tensor, all);
    const size_t row = bytes / static_cast<size_t>(whole.shape[0]);
    std::memcpy(out.data(), all.data() + static_cast<size_t>(place.first_row) * row, out.size());
  }

 private:
  struct Place {
    size_t tensor;
    int64_t first_row;
  };
  std::unique_ptr<WeightSource> source_;
  std::vector<StoredTensor> tensors_;
  std::vector<Place> places_;
};

}  // namespace

std::unique_ptr<WeightSource> split_fused(std::unique_ptr<WeightSource> source, const Json& config) {
  const std::vector<Fused> modules = fused_modules(config);
  if (modules.empty()) return source;
  return std::make_unique<SplitSource>(std::move(source), modules);
}

std::vector<ExportTensor> join_fused(const std::vector<ExportTensor>& tensors, const Json& config) {
  std::vector<ExportTensor> out;
  const std::vector<Fused> modules = fused_modules(config);
  std::map<std::string_view, const ExportTensor*> given;
  for (const ExportTensor& tensor : tensors) given[tensor.name] = &tensor;
  for (const ExportTensor& tensor : tensors) {
    const Fused* fused = nullptr;
    const Part* part = nullptr;
    for (const Fused& f : modules) {
      for (const Part& p : f.parts) {
        if (tensor.name.ends_with(p.module)) fused = &f, part = &p;
      }
    }
    if (fused == nullptr) {
      out.push_back(tensor);
      continue;
    }
    if (part != &fused->parts[0]) continue;  // comes with the first
    ExportTensor joined = tensor;
    joined.name = with_end(tensor.name, part->module, fused->module);
    joined.shape[0] = 0;
    std::vector<const ExportTensor*> parts;
    for (const Part& p : fused->parts) {
      const std::string name = with_end(tensor.name, part->module, p.module);
      const auto found = given.find(name);
      if (found == given.end()) fail(Code::kInvalidArgument, "tensor '", name, "' of the model is missing");
      parts.push_back(found->second);
      joined.shape[0] += found->second->shape[0];
    }
    joined.values = [parts](std::span<float> values) {
      size_t begin = 0;
      for (const ExportTensor* p : parts) {
        const auto count = static_cast<size_t>(element_count(p->shape));
        p->values(values.subspan(begin, count));
        begin += count;
      }
    };
    out.push_back(std::move(joined));
  }
  return out;
}

}  // namespace inlaid::formats

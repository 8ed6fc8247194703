#include <algorithm>
#include <map>

#include "sdk/base/error.h"
#include "sdk/formats/encode.h"
#include "sdk/formats/gguf_file.h"
#include "sdk/formats/gguf_tokenizer.h"
#include "sdk/formats/gguf_types.h"
#include "sdk/formats/llama_geometry.h"
#include "sdk/formats/staged.h"

namespace inlaid::formats {
namespace {

// What is written for one tensor: values in f32 of `source`, or `fixed`.
struct Planned {
  std::string name;
  Shape shape;
  DType dtype;
  RowOrder rows = RowOrder::kSame;
  const ExportTensor* source = nullptr;
  std::vector<float> fixed;
};

// Whether some layer looks at a part of the text only. Mistral without the key has a window of 4096; qwen has one only where
// use_sliding_window says so.
bool has_window(const Json& config, const std::string& type) {
  if (type.starts_with("qwen")) return config.value("use_sliding_window", Json(false)) == true;
  const auto window = config.find("sliding_window");
  return window == config.end() ? type == "mistral" : !window->is_null();
}

// Model types that the architectures of GGUF can say. Others with other tensor names, rotary order or options would be wrong.
void check_architecture(const Json& config) {
  const std::string type = string_at(config, "model_type", "config.json");
  if (type != "llama" && type != "mistral" && type != "qwen2" && type != "qwen3") {
    fail(Code::kUnimplemented, "a GGUF file of model_type '", type, "' is not supported; llama, mistral, qwen2 and qwen3 are");
  }
  if (has_window(config, type)) {
    fail(Code::kUnimplemented, "a GGUF file of model_type '", type, "' with a sliding window is not supported");
  }
  const Json activation = config.value("hidden_act", Json("silu"));
  if (activation != "silu" && activation != "swish") {
    fail(Code::kUnimplemented, "a GGUF file cannot say hidden_act = ", to_text(activation), "; it means silu");
  }
  if (type == "qwen3" && config.value("attention_bias", Json(false)) == true) {
    fail(Code::kUnimplemented, "a GGUF file of model_type 'qwen3' with attention_bias is not supported");
  }
}

// Every tensor of the model exactly once, with its shape, in the order of computation.
std::vector<Planned> plan(const LlamaGeometry& geometry, const std::vector<ExportTensor>& tensors) {
  std::map<std::string_view, const ExportTensor*> given;
  for (const ExportTensor& tensor : tensors) {
    if (!given.emplace(tensor.name, &tensor).second) {
      fail(Code::kInvalidArgument, "tensor '", tensor.name, "' is given twice");
    }
  }
  std::vector<Planned> out;
  for (const std::string& name : llama_tensor_names(geometry.parts)) {
    const auto found = given.find(name);
    if (found == given.end()) fail(Code::kInvalidArgument, "tensor '", name, "' of the model is missing");
    const ExportTensor& tensor = *found->second;
    const Shape wanted = geometry.shape_of(name);
    if (tensor.shape != wanted) {
      fail(Code::kInvalidArgument, "tensor '", name, "' has shape ", shape_text(tensor.shape),
           ", the configuration says ", shape_text(wanted));
    }
    const auto stored = gguf_name(name);
    INLAID_CHECK(stored.has_value());
    // Readers of GGUF expect vectors (norms, biases) in f32.
    const DType dtype = tensor.shape.size() == 1 ? DType::f32 : tensor.dtype;
    try {
      byte_count(dtype, tensor.shape);
    } catch (const Error& error) {
      fail(Code::kInvalidArgument, "tensor '", name, "': ", error.message());
    }
    out.push_back({stored->name, tensor.shape, dtype, geometry.rows_of(stored->rows), &tensor, {}});
    given.erase(found);
  }
  if (!given.empty()) {
    fail(Code::kInvalidArgument, "tensor '", given.begin()->first,
         "' is not part of the model that the configuration describes");
  }
  if (geometry.rope.kind == Rope::Kind::kLlama3) {
    Planned factors{"rope_freqs.weight", {geometry.head_size / 2}, DType::f32, RowOrder::kSame, nullptr, {}};
    factors.fixed = llama3_factors(geometry.rope, geometry.head_size);
    out.push_back(std::move(factors));
  }
  return out;
}

// general.file_type: what most bytes are.
int64_t file_type(const std::vector<Planned>& tensors) {
  std::map<DType, int64_t> bytes;
  for (const Planned& tensor : tensors) bytes[tensor.dtype] += byte_count(tensor.dtype, tensor.shape);
  const auto most = std::max_element(bytes.begin(), bytes.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  return gguf_file_type(most->first);
}

GgufEntries general_entries(const ModelFiles& files, const std::string& path, const std::string& architecture,
                            const std::vector<Planned>& tensors) {
  std::string name = base_name(path);
  if (name.ends_with(".gguf")) name.resize(name.size() - 5);
  if (const auto given = files.config.find("_name_or_path");
      given != files.config.end() && given->is_string()) {
    if (!given->get<std::string>().empty()) name = base_name(given->get<std::string>());
  }
  GgufEntries out;
  out.emplace_back("general.architecture", gguf_string(architecture));
  out.emplace_back("general.type", gguf_string("model"));
  out.emplace_back("general.name", gguf_string(name));
  out.emplace_back("general.alignment", gguf_u32(kGgufAlignment));
  out.emplace_back("general.file_type", gguf_u32(file_type(tensors)));
  const bool quantised = std::any_of(tensors.begin(), tensors.end(), [](const Planned& tensor) {
    return kernels::dtype_info(tensor.dtype).block > 1;
  });
  if (quantised) out.emplace_back("general.quantization_version", gguf_u32(2));
  return out;
}

uint64_t aligned(uint64_t position) {
  return (position + kGgufAlignment - 1) / kGgufAlignment * kGgufAlignment;
}

std::string header_bytes(const GgufEntries& entries, const std::vector<Planned>& tensors) {
  std::string out;
  append_number(out, kGgufMagic);
  append_number(out, kGgufVersion);
  append_number(out, uint64_t{tensors.size()});
  append_number(out, uint64_t{entries.size()});
  for (const auto& [key, value] : entries) {
    append_text(out, key);
    append_value(out, value);
  }
  uint64_t offset = 0;
  for (const Planned& tensor : tensors) {
    append_text(out, tensor.name);
    append_number(out, static_cast<uint32_t>(tensor.shape.size()));
    for (size_t d = tensor.shape.size(); d-- > 0;) append_number(out, static_cast<uint64_t>(tensor.shape[d]));
    append_number(out, ggml_of_dtype(tensor.dtype));
    append_number(out, offset);
    offset = aligned(offset + static_cast<uint64_t>(byte_count(tensor.dtype, tensor.shape)));
  }
  out.resize(aligned(out.size()), '\0');
  return out;
}

void write_tensor(WritableFile& file, const Planned& tensor, int64_t head_size) {
  if (tensor.source == nullptr) {
    file.write(std::as_bytes(std::span(tensor.fixed)));
  } else {
    std::function<int64_t(int64_t)> row_of;
    if (tensor.rows != RowOrder::kSame)
      row_of = [head_size](int64_t row) { return half_split_row(row, head_size); };
    encode_tensor(*tensor.source, tensor.dtype, row_of,
                  [&](std::span<const std::byte> bytes) { file.write(bytes); });
  }
  const uint64_t bytes = static_cast<uint64_t>(byte_count(tensor.dtype, tensor.shape));
  const std::vector<std::byte> padding(aligned(bytes) - bytes);
  file.write(padding);
}

void write_file(FileSystem& fs, const std::string& path, const std::string& header, const std::vector<Planned>& planned,
                int64_t head_size) {
  const auto file = fs.create(path);
  file->write(std::as_bytes(std::span(header)));
  for (const Planned& tensor : planned) write_tensor(*file, tensor, head_size);
  file->sync();
  file->close();
}

// A copy whose first bytes are `header` instead.
void copy_with_header(FileSystem& fs, const std::string& from, const std::string& to, const std::string& header) {
  const auto source = fs.open(from);
  const auto file = fs.create(to);
  file->write(std::as_bytes(std::span(header)));
  std::vector<std::byte> buffer(size_t{1} << 20);
  for (uint64_t at = header.size(); at < source->size();) {
    const auto part = std::span(buffer).first(std::min<uint64_t>(buffer.size(), source->size() - at));
    source->read_at(at, part);
    file->write(part);
    at += part.size();
  }
  file->sync();
  file->close();
}

}  // namespace

void write_gguf(FileSystem& fs, const std::string& path, const ModelFiles& files,
                const std::vector<ExportTensor>& tensors, const Certify& certify) {
  check_architecture(files.config);
  const LlamaGeometry geometry = parse_llama_geometry(files.config, "config.json");
  const std::vector<Planned> planned = plan(geometry, tensors);
  GgufEntries entries = general_entries(files, path, geometry.architecture, planned);
  for (auto& entry : gguf_architecture(geometry)) entries.push_back(std::move(entry));
  for (auto& entry : gguf_tokenizer_entries(files, geometry.vocabulary)) entries.push_back(std::move(entry));
  if (certify) entries.emplace_back(kCertificateKey, gguf_string(std::string(kCertificateBytes, ' ')));
  const std::string header = header_bytes(entries, planned);

  StagedOutput output(fs, path, StagedOutput::Kind::kFile);
  if (!certify) {
    write_file(fs, output.path(), header, planned, geometry.head_size);
  } else {
    StagedOutput plain(fs, output.path() + "-uncertified", StagedOutput::Kind::kFile);  // never committed
    write_file(fs, plain.path(), header, planned, geometry.head_size);
    std::string certificate = certify(plain.path());
    INLAID_CHECK(certificate.size() <= kCertificateBytes);
    certificate.resize(kCertificateBytes, ' ');
    entries.back().second = gguf_string(certificate);
    copy_with_header(fs, plain.path(), output.path(), header_bytes(entries, planned));
    plain.discard();
  }
  output.commit();
}

}  // namespace inlaid::formats

// A GGUF file: container, metadata, tokenizer and weights; what can be exported is read back with the same values.
#include "sdk/formats/gguf_file.h"

#include <algorithm>

#include "kernels/storage/storage.h"
#include "sdk/base/testing/memory_file_system.h"
#include "sdk/formats/gguf_tokenizer.h"
#include "sdk/formats/weight_source.h"
#include "sdk/models/decoder_config.h"
#include "sdk/text/tokenizer.h"
#include "tests/fuzz/check.h"

namespace {

using namespace inlaid;
using formats::GgufFile;
using formats::WeightSource;

std::vector<float> values_of(const WeightSource& source, size_t index) {
  const formats::StoredTensor& tensor = source.tensors()[index];
  std::vector<std::byte> bytes(static_cast<size_t>(byte_count(tensor.dtype, tensor.shape)));
  source.read(index, bytes);
  std::vector<float> out(static_cast<size_t>(element_count(tensor.shape)));
  kernels::portable::to_f32(tensor.dtype, bytes.data(), static_cast<int64_t>(out.size()), out.data());
  return out;
}

bool same(float a, float b) { return a == b || (a != a && b != b); }

// A value of metadata, written and read again, has the same bytes.
void check_metadata(FileSystem& fs, const GgufFile& file) {
  for (const auto& [key, value] : file.metadata()) {
    std::string bytes;
    formats::append_value(bytes, value);
    fuzz::put_file(fs, "value", bytes);
    const auto stored = fs.open("value");
    formats::GgufCursor cursor(*stored);
    std::string again;
    formats::append_value(again, cursor.value());
    FUZZ_REQUIRE(again == bytes && cursor.left() == 0);
  }
}

void check_weights(const WeightSource& source) {
  for (size_t i = 0; i < source.tensors().size(); ++i) {
    if (kernels::storage_type(source.tensors()[i].dtype)) values_of(source, i);
  }
}

// Written as f32 and opened again: the same values under the same names.
void check_export(FileSystem& fs, const formats::ModelFiles& model) {
  const WeightSource& source = *model.weights;
  std::vector<formats::ExportTensor> tensors;
  for (size_t i = 0; i < source.tensors().size(); ++i) {
    if (!kernels::storage_type(source.tensors()[i].dtype)) return;
    tensors.push_back({source.tensors()[i].name, source.tensors()[i].shape, DType::f32, [&source, i](std::span<float> out) {
                         const std::vector<float> values = values_of(source, i);
                         std::copy(values.begin(), values.end(), out.begin());
                       }});
  }
  if (!fuzz::accepts([&] { formats::write_gguf(fs, "out.gguf", model, tensors); })) return;
  const formats::ModelFiles again = formats::open_model(fs, "out.gguf");
  FUZZ_REQUIRE(again.weights->tensors().size() == tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    FUZZ_REQUIRE(again.weights->tensors()[i].name == tensors[i].name && again.weights->tensors()[i].shape == tensors[i].shape);
    const std::vector<float> a = values_of(source, i), b = values_of(*again.weights, i);
    FUZZ_REQUIRE(std::equal(a.begin(), a.end(), b.begin(), b.end(), same));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  testing::MemoryFileSystem fs;
  fuzz::put_file(fs, "in.gguf", {reinterpret_cast<const char*>(data), size});
  if (!fuzz::accepts([&] { check_metadata(fs, GgufFile(fs, "in.gguf")); })) return 0;
  fuzz::accepts([&] {
    const GgufFile file(fs, "in.gguf");
    const std::string json = formats::gguf_tokenizer_json(file);
    formats::gguf_tokenizer_config(file);
    text::Tokenizer::from_json(json, "tokenizer of in.gguf");
  });
  formats::ModelFiles model;
  if (!fuzz::accepts([&] { model = formats::open_model(fs, "in.gguf"); })) return 0;
  fuzz::accepts([&] { check_weights(*model.weights); });
  fuzz::accepts([&] { models::DecoderConfig::parse(model.config, "in.gguf: config"); });
  check_export(fs, model);
  return 0;
}

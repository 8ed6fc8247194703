// A folder as published: config.json, model.safetensors (or an index and one shard), generation_config.json,
// tokenizer_config.json, special_tokens_map.json. Parts in this order; where the index is not empty the weights are its shard.
#include "sdk/base/testing/memory_file_system.h"
#include "sdk/formats/weight_source.h"
#include "sdk/models/decoder_config.h"
#include "tests/fuzz/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace inlaid;
  const std::vector<std::string> parts = fuzz::parts_of(data, size, 6);
  testing::MemoryFileSystem fs;
  const auto put = [&](const char* name, const std::string& text) {
    if (!text.empty()) fuzz::put_file(fs, std::string("model/") + name, text);
  };
  put("config.json", parts[0]);
  put("generation_config.json", parts[1]);
  put("tokenizer_config.json", parts[2]);
  put("special_tokens_map.json", parts[3]);
  put("model.safetensors.index.json", parts[4]);
  put(parts[4].empty() ? "model.safetensors" : "model-00001-of-00001.safetensors", parts[5]);
  fuzz::accepts([&] {
    const formats::ModelFiles model = formats::open_model(fs, "model");
    for (size_t i = 0; i < model.weights->tensors().size(); ++i) {
      const formats::StoredTensor& tensor = model.weights->tensors()[i];
      std::vector<std::byte> bytes(static_cast<size_t>(byte_count(tensor.dtype, tensor.shape)));
      model.weights->read(i, bytes);
    }
    models::DecoderConfig::parse(model.config, "model: config");
  });
  return 0;
}

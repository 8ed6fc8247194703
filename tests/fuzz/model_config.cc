// config.json of a model: shapes, rotary settings and the forms in which exports write them.
#include <cmath>

#include "sdk/formats/llama_geometry.h"
#include "sdk/models/decoder.h"
#include "sdk/models/decoder_config.h"
#include "tests/fuzz/check.h"

namespace {

using namespace inlaid;

// Tables that the decoder makes grow with the model, as they must; here models are small.
bool is_small(const models::DecoderConfig& config) { return config.head_dim <= 4096 && config.num_hidden_layers <= 64; }

void check(const models::DecoderConfig& config) {
  FUZZ_REQUIRE(config.num_attention_heads % config.num_key_value_heads == 0);
  FUZZ_REQUIRE(static_cast<int64_t>(config.windows.size()) == config.num_hidden_layers);
  FUZZ_REQUIRE(std::isfinite(config.attention_scale) && std::isfinite(config.embedding_scale));
  if (!is_small(config)) return;
  const auto frequencies = config.rotary.frequencies(config.head_dim);
  FUZZ_REQUIRE(static_cast<int64_t>(frequencies.inv_freq.size()) == config.rotary.channels(config.head_dim) / 2);
  for (const double frequency : frequencies.inv_freq) FUZZ_REQUIRE(std::isfinite(frequency));
  for (const nn::ParameterSpec& spec : models::decoder_parameters(config)) FUZZ_REQUIRE(element_count(spec.shape) > 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Json json;
  if (!fuzz::accepts([&] { json = parse_json({reinterpret_cast<const char*>(data), size}, "config.json"); })) return 0;
  fuzz::accepts([&] { check(models::DecoderConfig::parse(json, "config.json")); });
  fuzz::accepts([&] { formats::parse_llama_geometry(json, "config.json"); });
  fuzz::accepts([&] { formats::parse_llama_geometry(formats::with_rope_of_version_4(json), "config.json"); });
  return 0;
}

// The configuration that a GGUF file's metadata stands for, in the words of Hugging Face's config.json, and
// back.
//
//   {arch}.block_count             num_hidden_layers       {arch}.attention.head_count                heads
//   {arch}.embedding_length        hidden_size             {arch}.attention.head_count_kv key/value heads
//   {arch}.feed_forward_length     intermediate_size       {arch}.attention.key_length, value_length head_dim
//   {arch}.context_length          max_position_...        {arch}.attention.layer_norm_rms_epsilon
//   rms_norm_eps {arch}.rope.freq_base          rope_theta              {arch}.rope.scaling.{type,factor}
//   linear scaling
// No output.weight means tied embeddings; rope_freqs.weight means llama3 scaling (llama_geometry.h). Metadata
// that changes the computation and has no counterpart here is refused by name, as is every architecture but
// `llama`, `qwen2` and `qwen3`. Of rotary scaling linear, llama3 and yarn (rope.scaling.original_context_length,
// yarn_beta_fast, yarn_beta_slow) can be said.
//
// Numerics: f32 metadata (1e-5 is stored as 9.99999975e-06) becomes the shortest decimal that gives the same
// f32. Tests: gguf_config_test.cc, golden_test.cc.
#ifndef INLAID_SDK_FORMATS_GGUF_CONFIG_H_
#define INLAID_SDK_FORMATS_GGUF_CONFIG_H_

#include <string>
#include <utility>
#include <vector>

#include "sdk/formats/gguf_file.h"
#include "sdk/formats/llama_geometry.h"

namespace inlaid::formats {

Json gguf_config(const GgufFile& file);

using GgufEntries = std::vector<std::pair<std::string, GgufValue>>;
// Architecture metadata of a model to be written.
GgufEntries gguf_architecture(const LlamaGeometry& geometry);

// Values for entries.
GgufValue gguf_u32(int64_t value);
GgufValue gguf_f32(double value);
GgufValue gguf_bool(bool value);
GgufValue gguf_string(std::string value);
GgufValue gguf_strings(std::vector<std::string> values);
GgufValue gguf_i32s(std::vector<int64_t> values);

}  // namespace inlaid::formats

#endif  // INLAID_SDK_FORMATS_GGUF_CONFIG_H_

// What a file format must know of a llama-like model: the numbers that name, shape and order its tensors,
// read from a config.json (written by whomever) in either spelling of the rotary keys:
//   transformers 4: rope_theta, rope_scaling {rope_type or type, factor, ...};   5: rope_parameters
//   {rope_theta, rope_type, ...}
//
// GGUF states `llama3` scaling not by its parameters but by a tensor rope_freqs.weight of D/2 factors that
// divide the frequencies f_i = theta^(-2i/D). With wavelength w = 2 pi / f_i and n the original context
// length:
//   w < n/high: 1;   w > n/low: factor;   else 1 / ((1 - s)/factor + s),  s = (n/w - low)/(high - low)
// (source of the formula: transformers' modeling_rope_utils and llama.cpp's converter.)
//
// Tests: llama_geometry_test.cc.
#ifndef INLAID_SDK_FORMATS_LLAMA_GEOMETRY_H_
#define INLAID_SDK_FORMATS_LLAMA_GEOMETRY_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sdk/base/json.h"
#include "sdk/formats/llama_names.h"
#include "sdk/tensor/tensor.h"

namespace inlaid::formats {

struct Rope {
  enum class Kind { kDefault, kLinear, kLlama3, kYarn };
  double theta = 10000.0;
  Kind kind = Kind::kDefault;
  double factor = 1.0;              // linear, llama3, yarn
  double low = 1.0, high = 4.0;     // llama3
  double beta_fast = 32.0, beta_slow = 1.0;  // yarn
  int64_t original_context = 8192;  // llama3, yarn
};

struct LlamaGeometry {
  std::string architecture;  // of GGUF: llama (also of mistral), qwen2, qwen3; else the model_type
  LlamaParts parts;
  int64_t hidden = 0, intermediate = 0, heads = 0, kv_heads = 0, head_size = 0, vocabulary = 0, context = 0;
  double rms_eps = 0;
  Rope rope;

  // Shape of a tensor by Hugging Face name; empty for a name that this model does not have.
  Shape shape_of(std::string_view name) const;
  // How the rows of a tensor lie in GGUF: interleaved only where the architecture rotates neighbouring channels, as llama does.
  RowOrder rows_of(RowOrder rows) const { return architecture == "llama" ? rows : RowOrder::kSame; }
  // Heads whose rows the formats order differently; 0 for kSame.
  int64_t heads_of(RowOrder rows) const;
};

// Rotary settings of a config.json as far as a GGUF file can say them; what it cannot is kUnimplemented by name.
Rope parse_rope(const Json& config, std::string_view what);
// The same in the spelling of transformers 4, which every reader knows: rope_parameters becomes rope_theta, rope_scaling and
// partial_rotary_factor. (For phi3 it asks for exactly the keys type, short_factor and long_factor.)
Json with_rope_of_version_4(Json config);

// kInvalidArgument naming `what` and the key for values that are missing or contradict each other.
LlamaGeometry parse_llama_geometry(const Json& config, std::string_view what);
// The same without the rotary settings.
LlamaGeometry parse_llama_shapes(const Json& config, std::string_view what);

// The factors of rope_freqs.weight.
std::vector<float> llama3_factors(const Rope& rope, int64_t head_size);

}  // namespace inlaid::formats

#endif  // INLAID_SDK_FORMATS_LLAMA_GEOMETRY_H_

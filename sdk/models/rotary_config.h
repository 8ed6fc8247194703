// Rotary position embedding (arXiv 2104.09864): which kind of scaling a config.json asks for, and the frequencies of that kind.
//
// With R rotated channels and base frequencies f_i = theta^(-2i/R) (source of the formulas: transformers' modeling_rope_utils):
//   linear    f_i / factor
//   llama3    long wavelengths divided by factor, short ones kept, those between interpolated
//   yarn      (arXiv 2309.00071) from the channel that turns beta_fast times within the original context to the one that turns
//             beta_slow times, a linear ramp from f_i to f_i / factor; cos and sin are multiplied by an attention factor, by
//             default 0.1 ln(factor) + 1
//   dynamic   (NTK) f_i, and for texts longer than max_position_embeddings those of a larger theta that grows with the length
//   longrope  (arXiv 2402.13753) f_i / short_factor[i], and for texts longer than the original context f_i / long_factor[i];
//             cos and sin are multiplied by an attention factor, by default sqrt(1 + ln(factor) / ln(original context))
//
// Length. For dynamic and longrope the length that decides is that of a text on its own: of a document, never of the packed rows
// that it stands in, so packed and unpacked training are the same. In generation it is the length up to and including the tokens
// at hand, for the whole prompt at once (as transformers); keys that are in the cache stay rotated as they were. transformers does
// the same for dynamic; for phi3 it throws the cache away at the one step where the text outgrows the original context.
#ifndef INLAID_SDK_MODELS_ROTARY_CONFIG_H_
#define INLAID_SDK_MODELS_ROTARY_CONFIG_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sdk/base/json.h"
#include "sdk/ops/ops.h"

namespace inlaid::models {

struct RotaryConfig {
  enum class Kind { plain, linear, llama3, yarn, dynamic, longrope } kind = Kind::plain;
  double theta = 10000.0;
  double partial = 1.0;  // share of the channels of a head that is rotated
  double factor = 1.0;
  double attention_factor = 1.0;                         // yarn, longrope
  double low_freq_factor = 1.0, high_freq_factor = 4.0;  // llama3
  double beta_fast = 32.0, beta_slow = 1.0;              // yarn
  bool truncate = true;                                  // yarn: the ramp begins and ends at whole channels
  std::vector<double> short_factor, long_factor;         // longrope
  int64_t original_context = 8192;                       // llama3, yarn, longrope
  int64_t max_position = 2048;                           // dynamic

  int64_t channels(int64_t head_size) const;
  ops::RotaryFrequencies frequencies(int64_t head_size) const;

  // Reads rope_theta, rope_scaling and partial_rotary_factor (transformers 4) or rope_parameters (transformers 5). `family` is the
  // model_type: what only some of them know is refused for the others.
  static RotaryConfig parse(const Json& config, std::string_view what, const std::string& family, int64_t head_size,
                            int64_t max_position);
};

}  // namespace inlaid::models

#endif  // INLAID_SDK_MODELS_ROTARY_CONFIG_H_

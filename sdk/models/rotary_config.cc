#include "sdk/models/rotary_config.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <set>

#include "sdk/models/config_reader.h"

namespace inlaid::models {
namespace {

using Kind = RotaryConfig::Kind;

// Reads the keys of the object that describes the scaling and remembers which.
class Scaling {
 public:
  Scaling(const Json& object, std::string where) : object_(object), where_(std::move(where)) {
    if (!object.is_object()) fail(Code::kInvalidArgument, where_, " must be an object");
  }

  const Json* optional(const char* key) {
    read_.insert(key);
    return find(object_, key);
  }
  void require(const char* key) {
    if (optional(key) == nullptr) fail(Code::kInvalidArgument, where_, ": key '", key, "' is missing");
  }
  double positive(const char* key, double otherwise) {
    optional(key);
    return positive_at(object_, key, where_, otherwise);
  }
  double required_positive(const char* key) {
    require(key);
    return positive(key, 1.0);
  }
  int64_t size(const char* key, int64_t otherwise) {
    optional(key);
    return size_at(object_, key, where_, otherwise);
  }
  std::string text(const char* key, std::string otherwise) {
    return optional(key) == nullptr ? otherwise : string_at(object_, key, where_);
  }
  bool flag(const char* key, bool otherwise) {
    optional(key);
    return flag_at(object_, key, where_, otherwise);
  }
  std::vector<double> factors(const char* key, int64_t count) {
    require(key);
    const Json& list = *find(object_, key);
    if (!list.is_array() || static_cast<int64_t>(list.size()) != count) {
      fail(Code::kInvalidArgument, where_, ": ", key, " must be a list of ", count, " numbers, one per pair of channels");
    }
    std::vector<double> values;
    for (const Json& value : list) {
      if (!value.is_number() || !is_sensible(value.get<double>())) {
        fail(Code::kInvalidArgument, where_, ": ", key, " must hold positive numbers, not ", to_text(value));
      }
      values.push_back(value.get<double>());
    }
    return values;
  }
  void refuse_others() const {
    for (const auto& [key, value] : object_.items()) {
      if (read_.contains(key) || value.is_null()) continue;
      refuse(where_, key, value, "remove the key or use a supported rope_type");
    }
  }
  const std::string& where() const { return where_; }

 private:
  const Json& object_;
  std::string where_;
  std::set<std::string> read_;
};

// The published scale of the attention scores for a context that is `factor` times as long (yarn).
double yarn_scale(double factor, double mscale) { return factor <= 1 ? 1.0 : 0.1 * mscale * std::log(factor) + 1.0; }

void parse_llama3(Scaling& scaling, RotaryConfig& rotary) {
  rotary.kind = Kind::llama3;
  rotary.factor = scaling.required_positive("factor");
  rotary.low_freq_factor = scaling.required_positive("low_freq_factor");
  rotary.high_freq_factor = scaling.required_positive("high_freq_factor");
  scaling.require("original_max_position_embeddings");
  rotary.original_context = scaling.size("original_max_position_embeddings", 8192);
  if (rotary.high_freq_factor <= rotary.low_freq_factor) {
    fail(Code::kInvalidArgument, scaling.where(), ": high_freq_factor must be larger than low_freq_factor");
  }
}

void parse_yarn(Scaling& scaling, RotaryConfig& rotary) {
  if (rotary.theta <= 1) fail(Code::kInvalidArgument, scaling.where(), ": yarn needs a rope_theta over 1, not ", rotary.theta);
  rotary.kind = Kind::yarn;
  rotary.factor = scaling.required_positive("factor");
  rotary.original_context = scaling.size("original_max_position_embeddings", rotary.max_position);
  rotary.beta_fast = scaling.positive("beta_fast", 32);
  rotary.beta_slow = scaling.positive("beta_slow", 1);
  rotary.truncate = scaling.flag("truncate", true);
  const bool both = scaling.optional("mscale") != nullptr && scaling.optional("mscale_all_dim") != nullptr;
  const double mscale = scaling.positive("mscale", 1), all = scaling.positive("mscale_all_dim", 1);
  const double published =
      both ? yarn_scale(rotary.factor, mscale) / yarn_scale(rotary.factor, all) : yarn_scale(rotary.factor, 1);
  rotary.attention_factor = scaling.positive("attention_factor", published);
}

void parse_longrope(Scaling& scaling, RotaryConfig& rotary, int64_t pairs, int64_t original_context) {
  rotary.kind = Kind::longrope;
  rotary.short_factor = scaling.factors("short_factor", pairs);
  rotary.long_factor = scaling.factors("long_factor", pairs);
  const int64_t own = scaling.size("original_max_position_embeddings", rotary.max_position);
  rotary.original_context = original_context > 0 ? original_context : own;
  const double n = static_cast<double>(rotary.original_context);
  rotary.factor = scaling.positive("factor", static_cast<double>(rotary.max_position) / n);
  if (rotary.factor > 1 && rotary.original_context < 2) {
    fail(Code::kInvalidArgument, scaling.where(), ": original_max_position_embeddings must be over 1");
  }
  const double published = rotary.factor <= 1 ? 1.0 : std::sqrt(1 + std::log(rotary.factor) / std::log(n));
  rotary.attention_factor = scaling.positive("attention_factor", published);
}

// Channel, counted in pairs, that turns `turns` times within the original context.
double yarn_channel(const RotaryConfig& c, double turns, double channels) {
  const double n = static_cast<double>(c.original_context);
  return channels * std::log(n / (turns * 2 * std::numbers::pi)) / (2 * std::log(c.theta));
}

// How much of frequency i is interpolated, from 0 to 1.
double yarn_ramp(const RotaryConfig& c, double i, double channels) {
  double low = yarn_channel(c, c.beta_fast, channels), high = yarn_channel(c, c.beta_slow, channels);
  if (c.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, channels - 1);
  if (low == high) high += 0.001;
  return std::clamp((i - low) / (high - low), 0.0, 1.0);
}

double llama3_frequency(const RotaryConfig& c, double base) {
  const double n = static_cast<double>(c.original_context);
  const double wavelength = 2.0 * std::numbers::pi / base;
  if (wavelength > n / c.low_freq_factor) return base / c.factor;
  if (wavelength < n / c.high_freq_factor) return base;
  const double smooth = (n / wavelength - c.low_freq_factor) / (c.high_freq_factor - c.low_freq_factor);
  return (1.0 - smooth) * base / c.factor + smooth * base;
}

}  // namespace

int64_t RotaryConfig::channels(int64_t head_size) const {
  return static_cast<int64_t>(static_cast<double>(head_size) * partial);
}

ops::RotaryFrequencies RotaryConfig::frequencies(int64_t head_size) const {
  const auto width = static_cast<double>(channels(head_size));
  ops::RotaryFrequencies result;
  result.scale = attention_factor;
  for (size_t i = 0; i < static_cast<size_t>(channels(head_size) / 2); ++i) {
    const double base = std::pow(theta, -2.0 * static_cast<double>(i) / width);
    double value = base;
    if (kind == Kind::linear) value = base / factor;
    if (kind == Kind::llama3) value = llama3_frequency(*this, base);
    if (kind == Kind::yarn) {
      const double ramp = yarn_ramp(*this, static_cast<double>(i), width);
      value = ramp * base / factor + (1 - ramp) * base;
    }
    if (kind == Kind::longrope) {
      value = base / short_factor[i];
      result.long_inv_freq.push_back(base / long_factor[i]);
    }
    result.inv_freq.push_back(value);
  }
  if (kind == Kind::longrope) result.long_after = original_context;
  if (kind == Kind::dynamic) {
    result.long_after = max_position;
    result.ntk_factor = factor;
  }
  return result;
}

RotaryConfig RotaryConfig::parse(const Json& config, std::string_view what, const std::string& family, int64_t head_size,
                                 int64_t max_position) {
  const bool phi3 = family == "phi3";
  RotaryConfig rotary;
  rotary.max_position = max_position;
  rotary.theta = positive_at(config, "rope_theta", what, 10000.0);
  rotary.partial = positive_at(config, "partial_rotary_factor", what, 1.0);
  const int64_t phi3_context = phi3 ? size_at(config, "original_max_position_embeddings", what, 4096) : 0;
  const Json* v4 = find(config, "rope_scaling");
  const Json* v5 = find(config, "rope_parameters");
  if (v4 != nullptr && v5 != nullptr && *v4 != *v5) {
    fail(Code::kInvalidArgument, what, ": rope_scaling and rope_parameters are both given and differ");
  }
  const Json none = Json::object();
  const Json* object = v5 != nullptr ? v5 : v4 != nullptr ? v4 : &none;
  Scaling scaling(*object, std::string(what) + (v5 != nullptr ? ": rope_parameters" : ": rope_scaling"));
  std::string kind = scaling.text("rope_type", scaling.text("type", "default"));
  rotary.theta = scaling.positive("rope_theta", rotary.theta);
  rotary.partial = scaling.positive("partial_rotary_factor", rotary.partial);
  if (rotary.partial != 1.0 && !phi3) {
    const bool inside = scaling.optional("partial_rotary_factor") != nullptr;
    refuse(inside ? scaling.where() : std::string(what), "partial_rotary_factor", rotary.partial,
           "phi3 alone rotates a part of a head; use 1");
  }
  const int64_t width = rotary.partial <= 1.0 ? rotary.channels(head_size) : 0;
  if (width < 2 || width % 2 != 0) {
    fail(Code::kInvalidArgument, what, ": partial_rotary_factor ", rotary.partial, " of head_dim ", head_size,
         " must be an even number of channels, from 2 to all");
  }
  if (phi3 && (kind == "su" || kind == "yarn")) kind = "longrope";  // names of early versions
  if (phi3 && kind != "default" && kind != "longrope") {
    fail(Code::kUnimplemented, scaling.where(), ": rope_type '", kind, "' is not one of phi3; default and longrope are");
  }
  if (kind == "linear" || kind == "dynamic") {
    rotary.kind = kind == "linear" ? Kind::linear : Kind::dynamic;
    rotary.factor = scaling.required_positive("factor");
    if (rotary.kind == Kind::dynamic && width < 4) {
      fail(Code::kInvalidArgument, scaling.where(), ": rope_type 'dynamic' needs more than 2 channels");
    }
    // Below 1 the base would shrink to nothing for long texts.
    if (rotary.kind == Kind::dynamic && rotary.factor < 1) {
      fail(Code::kInvalidArgument, scaling.where(), ": factor must be at least 1");
    }
  } else if (kind == "llama3") {
    parse_llama3(scaling, rotary);
  } else if (kind == "yarn") {
    parse_yarn(scaling, rotary);
  } else if (kind == "longrope") {
    parse_longrope(scaling, rotary, width / 2, phi3_context);
  } else if (kind != "default") {
    fail(Code::kUnimplemented, scaling.where(), ": rope_type '", kind,
         "' is not supported; default, linear, dynamic, yarn, longrope and llama3 are");
  }
  scaling.refuse_others();
  return rotary;
}

}  // namespace inlaid::models

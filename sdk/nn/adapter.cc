#include "sdk/nn/adapter.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sdk/base/error.h"
#include "sdk/nn/pattern.h"

namespace inlaid::nn {
namespace {

constexpr int64_t kMaxRank = int64_t{1} << 20;

// PEFT's pattern keys match a module when the regex matches its whole name or its end after a dot.
class PatternValues {
 public:
  PatternValues(const Json& patterns, const char* key) {
    for (const auto& [pattern, value] : patterns.items()) {
      if (!value.is_number()) fail(Code::kInvalidArgument, key, ": the value of '", pattern, "' must be a number");
      entries_.emplace_back(Pattern("(.*\\.)?(" + pattern + ")", key), value.get<double>());
    }
  }
  double of(const std::string& module, double otherwise) const {
    for (const auto& [pattern, value] : entries_) {
      if (pattern.matches(module)) return value;
    }
    return otherwise;
  }

 private:
  std::vector<std::pair<Pattern, double>> entries_;
};

int64_t checked_rank(double rank, const std::string& module) {
  if (!(rank >= 1 && rank <= static_cast<double>(kMaxRank)) || rank != std::floor(rank)) {
    fail(Code::kInvalidArgument, "adapter: the rank of ", module, " is ", rank, ", it must be a whole number from 1 to ", kMaxRank);
  }
  return static_cast<int64_t>(rank);
}

std::vector<std::string> strings(const Json& list, std::string_view what, const std::string& key) {
  std::vector<std::string> result;
  if (list.is_null()) return result;
  if (!list.is_array()) fail(Code::kInvalidArgument, what, ": ", key, " must be a list of names");
  for (const Json& entry : list) {
    if (!entry.is_string()) fail(Code::kInvalidArgument, what, ": ", key, " must be a list of names");
    result.push_back(entry.get<std::string>());
  }
  return result;
}

std::string list_text(const std::vector<LinearModule>& linears) {
  std::vector<std::string> ends;
  for (const LinearModule& linear : linears) {
    std::string end = linear.name.substr(linear.name.rfind('.') + 1);
    if (std::find(ends.begin(), ends.end(), end) == ends.end()) ends.push_back(end);
  }
  std::string text;
  for (const std::string& end : ends) text += (text.empty() ? "" : ", ") + end;
  return text;
}

// Which of the linear layers the configuration targets; every entry of a list must match something.
std::vector<char> targeted(const AdapterConfig& config, const std::vector<LinearModule>& linears) {
  std::vector<char> hit(linears.size(), 0);
  const Json& targets = config.target_modules;
  if (targets.is_string() && targets.get<std::string>() == "all-linear") {
    for (size_t i = 0; i < linears.size(); ++i) hit[i] = !linears[i].head;
  } else if (targets.is_string()) {
    const Pattern pattern(targets.get<std::string>(), "adapter.target_modules");
    for (size_t i = 0; i < linears.size(); ++i) hit[i] = pattern.matches(linears[i].name);
  } else {
    for (const std::string& name : strings(targets, "adapter", "target_modules")) {
      bool found = false;
      for (size_t i = 0; i < linears.size(); ++i) {
        if (module_matches(linears[i].name, name)) hit[i] = found = true;
      }
      if (!found) {
        fail(Code::kInvalidArgument, "adapter.target_modules: '", name, "' matches no linear layer; there are ",
             list_text(linears));
      }
    }
  }
  for (const std::string& name : config.exclude_modules) {
    for (size_t i = 0; i < linears.size(); ++i) {
      if (module_matches(linears[i].name, name)) hit[i] = 0;
    }
  }
  if (std::find(hit.begin(), hit.end(), 1) == hit.end()) {
    fail(Code::kInvalidArgument, "adapter.target_modules: ", to_text(targets), " matches no linear layer; there are ",
         list_text(linears));
  }
  return hit;
}

}  // namespace

bool module_matches(const std::string& module, const std::string& name) {
  if (module == name) return true;
  return module.size() > name.size() && module.ends_with(name) && module[module.size() - name.size() - 1] == '.';
}

AdapterLayout lay_out(const AdapterConfig& config, const std::vector<LinearModule>& linears,
                      const std::vector<ParameterSpec>& base) {
  AdapterLayout layout;
  const std::vector<char> hit = targeted(config, linears);
  const PatternValues ranks(config.rank_pattern, "adapter.rank_pattern");
  const PatternValues alphas(config.alpha_pattern, "adapter.alpha_pattern");
  for (size_t i = 0; i < linears.size(); ++i) {
    if (!hit[i]) continue;
    const LinearModule& linear = linears[i];
    const int64_t r = checked_rank(ranks.of(linear.name, static_cast<double>(config.r)), linear.name);
    const double alpha = alphas.of(linear.name, config.lora_alpha);
    Lora lora;
    lora.a = linear.name + ".lora_A.weight";
    lora.b = linear.name + ".lora_B.weight";
    lora.scale = alpha / (config.use_rslora ? std::sqrt(static_cast<double>(r)) : static_cast<double>(r));
    lora.dropout = config.lora_dropout;
    Init a{Init::Kind::kaiming_uniform, 0}, b{Init::Kind::zeros, 0};
    if (config.init == "gaussian") a = {Init::Kind::normal, 1.0 / static_cast<double>(r)};
    if (config.init == "false") b = {Init::Kind::kaiming_uniform, 0};
    layout.parameters.push_back({lora.a, {r, linear.in}, a});
    layout.parameters.push_back({lora.b, {linear.out, r}, b});
    layout.modules.emplace(linear.name, std::move(lora));
  }
  for (const std::string& name : config.modules_to_save) {
    bool found = false;
    for (const ParameterSpec& spec : base) {
      const std::string module = spec.name.substr(0, spec.name.rfind('.'));
      if (!module_matches(module, name)) continue;
      if (layout.modules.contains(module)) {
        fail(Code::kInvalidArgument, "adapter.modules_to_save: '", module, "' is also a target of the adapter");
      }
      layout.parameters.push_back(spec);
      found = true;
    }
    if (!found) {
      fail(Code::kInvalidArgument, "adapter.modules_to_save: '", name,
           "' matches no module of the model (a tied head cannot be saved apart from its embedding)");
    }
  }
  return layout;
}

AdapterConfig AdapterConfig::from_peft(const Json& config, std::string_view what) {
  if (!config.is_object()) fail(Code::kDataLoss, what, ": must be an object");
  AdapterConfig result;
  const std::string type = string_at(config, "peft_type", what);
  if (type != "LORA") fail(Code::kUnimplemented, what, ": peft_type '", type, "' is not supported; LORA is");
  // Values under which a key means nothing; any other value would change what is computed.
  const std::vector<std::pair<const char*, Json>> neutral = {
      {"use_dora", false},          {"bias", "none"},         {"fan_in_fan_out", false}, {"layers_to_transform", nullptr},
      {"layers_pattern", nullptr},  {"lora_bias", false},     {"target_parameters", nullptr},
      {"trainable_token_indices", nullptr}, {"layer_replication", nullptr}, {"loftq_config", Json::object()},
      {"megatron_config", nullptr}, {"use_qalora", false}, {"use_bdlora", nullptr}, {"alora_invocation_tokens", nullptr},
      {"arrow_config", nullptr}, {"corda_config", nullptr}, {"eva_config", nullptr}, {"lora_ga_config", nullptr}};
  for (const auto& [key, expected] : neutral) {
    const auto found = config.find(key);
    if (found == config.end() || found->is_null() || *found == expected || (found->is_array() && found->empty())) continue;
    fail(Code::kUnimplemented, what, ": ", key, " = ", to_text(*found), " is not supported");
  }
  if (config.contains("r")) result.r = int_at(config, "r", what);
  if (config.contains("lora_alpha")) result.lora_alpha = number_at(config, "lora_alpha", what);
  if (config.contains("lora_dropout")) result.lora_dropout = number_at(config, "lora_dropout", what);
  if (!(result.lora_dropout >= 0 && result.lora_dropout < 1)) {
    fail(Code::kInvalidArgument, what, ": lora_dropout is ", result.lora_dropout, ", it must be from 0 to below 1");
  }
  if (config.contains("use_rslora")) result.use_rslora = bool_at(config, "use_rslora", what);
  result.target_modules = at(config, "target_modules", what);
  if (config.contains("exclude_modules")) result.exclude_modules = strings(config["exclude_modules"], what, "exclude_modules");
  if (config.contains("modules_to_save")) result.modules_to_save = strings(config["modules_to_save"], what, "modules_to_save");
  if (config.contains("rank_pattern") && config["rank_pattern"].is_object()) result.rank_pattern = config["rank_pattern"];
  if (config.contains("alpha_pattern") && config["alpha_pattern"].is_object()) result.alpha_pattern = config["alpha_pattern"];
  if (config.contains("base_model_name_or_path") && config["base_model_name_or_path"].is_string()) {
    result.base_model = config["base_model_name_or_path"].get<std::string>();
  }
  return result;
}

Json AdapterConfig::to_peft() const {
  Json json;
  json["peft_type"] = "LORA";
  json["task_type"] = "CAUSAL_LM";
  json["base_model_name_or_path"] = base_model;
  json["r"] = r;
  json["lora_alpha"] = lora_alpha;
  json["lora_dropout"] = lora_dropout;
  json["target_modules"] = target_modules;
  json["exclude_modules"] = exclude_modules.empty() ? Json() : Json(exclude_modules);
  json["use_rslora"] = use_rslora;
  json["use_dora"] = false;
  json["modules_to_save"] = modules_to_save.empty() ? Json() : Json(modules_to_save);
  json["rank_pattern"] = rank_pattern;
  json["alpha_pattern"] = alpha_pattern;
  json["bias"] = "none";
  json["fan_in_fan_out"] = false;
  json["init_lora_weights"] = true;
  json["inference_mode"] = true;
  return json;
}

}  // namespace inlaid::nn

// Low-rank adapters (LoRA, arXiv 2106.09685; rsLoRA, arXiv 2312.03732) as PEFT defines them.
//
// An adapter is a set of small trainable parameters beside an immutable base: for each targeted linear layer A [r,in] and B
// [out,r], added as y += scale * dropout(x) A^T B^T, and full copies of the modules listed in modules_to_save.
#ifndef INLAID_SDK_NN_ADAPTER_H_
#define INLAID_SDK_NN_ADAPTER_H_

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "sdk/base/json.h"
#include "sdk/nn/parameter.h"

namespace inlaid::nn {

struct AdapterConfig {
  int64_t r = 8;
  double lora_alpha = 8;
  double lora_dropout = 0;
  Json target_modules;                  // list of names, a regex, or "all-linear"
  std::vector<std::string> exclude_modules;
  bool use_rslora = false;
  std::vector<std::string> modules_to_save;
  Json rank_pattern = Json::object();   // regex -> r
  Json alpha_pattern = Json::object();  // regex -> alpha
  std::string init = "true";            // true (kaiming A, zero B), false (both random), gaussian (normal A, zero B)
  std::string base_model;               // base_model_name_or_path

  // From adapter_config.json of PEFT. Keys that change the computation and are not supported are kUnimplemented by name.
  static AdapterConfig from_peft(const Json& config, std::string_view what);
  Json to_peft() const;
};

// Shape of one linear layer that may be targeted: module name and weight shape [out, in].
struct LinearModule {
  std::string name;
  int64_t out, in;
  bool head;  // the output head, which "all-linear" leaves out
};

// The low-rank pair of one module.
struct Lora {
  std::string a, b;  // parameter names: module + ".lora_A.weight", ".lora_B.weight"
  double scale, dropout;
};

struct AdapterLayout {
  std::unordered_map<std::string, Lora> modules;  // by module name
  std::vector<ParameterSpec> parameters;          // A and B of every module, then copies for modules_to_save
};

// Matches targets against the model's modules. kInvalidArgument for a target or module_to_save that matches nothing (naming
// what there is), or for no match at all. `base` lists the base's parameters, for modules_to_save; the copy of a tied
// "lm_head" takes the shape of the embedding.
AdapterLayout lay_out(const AdapterConfig& config, const std::vector<LinearModule>& linears,
                      const std::vector<ParameterSpec>& base);

// True if `module` is meant by `name` as PEFT matches list entries: equal, or its end after a dot.
bool module_matches(const std::string& module, const std::string& name);

}  // namespace inlaid::nn

#endif  // INLAID_SDK_NN_ADAPTER_H_

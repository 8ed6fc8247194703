// adapter_config.json of PEFT: read, laid out over the layers of a small model, written and read again.
#include "sdk/base/json.h"
#include "sdk/nn/adapter.h"
#include "tests/fuzz/check.h"

namespace {

using namespace inlaid;

std::vector<nn::LinearModule> linears() {
  std::vector<nn::LinearModule> out;
  for (const char* layer : {"model.layers.0", "model.layers.1", "model.layers.11"}) {
    for (const char* name : {".self_attn.q_proj", ".self_attn.v_proj", ".mlp.down_proj"}) {
      out.push_back({std::string(layer) + name, 8, 16, false});
    }
  }
  out.push_back({"lm_head", 32, 16, true});
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::vector<nn::LinearModule> modules = linears();
  std::vector<nn::ParameterSpec> base;
  for (const nn::LinearModule& module : modules) base.push_back({module.name + ".weight", {module.out, module.in}, {}});
  fuzz::accepts([&] {
    const Json json = parse_json({reinterpret_cast<const char*>(data), size}, "adapter_config.json");
    const nn::AdapterConfig config = nn::AdapterConfig::from_peft(json, "adapter_config.json");
    const Json written = config.to_peft();
    FUZZ_REQUIRE(nn::AdapterConfig::from_peft(written, "written").to_peft() == written);
    const nn::AdapterLayout layout = nn::lay_out(config, modules, base);
    FUZZ_REQUIRE(!layout.modules.empty());
    for (const nn::ParameterSpec& spec : layout.parameters) FUZZ_REQUIRE(element_count(spec.shape) > 0);
  });
  return 0;
}

#include "sdk/base/error.h"
#include "sdk/formats/hugging_face.h"
#include "sdk/formats/staged.h"
#include "sdk/formats/weight_source.h"

namespace inlaid::formats {
namespace {

constexpr std::string_view kPrefix = "base_model.model.";

// LoRA and its relatives say "LORA"; every other method computes something else.
void check_config(const Json& config, const std::string& what) {
  const std::string type = string_at(config, "peft_type", what);
  if (type != "LORA") {
    fail(Code::kUnimplemented, what, ": peft_type '", type, "' is not supported; supported is LORA");
  }
}

}  // namespace

PeftAdapter open_peft(FileSystem& fs, const std::string& folder) {
  if (!fs.exists(folder)) fail(Code::kNotFound, folder, ": there is no such folder");
  const std::string config = join_path(folder, "adapter_config.json");
  const std::string weights = join_path(folder, "adapter_model.safetensors");
  if (!fs.exists(config))
    fail(Code::kNotFound, config, " is not there; a PEFT adapter is a folder that has it");
  PeftAdapter out;
  out.config = read_json_object(fs, config, true);
  check_config(out.config, config);
  if (!fs.exists(weights)) {
    if (fs.exists(join_path(folder, "adapter_model.bin"))) {
      fail(Code::kUnimplemented, join_path(folder, "adapter_model.bin"),
           ": weights in Python's pickle format are not read, since such a file can run code; convert them "
           "to safetensors");
    }
    fail(Code::kNotFound, weights, " is not there");
  }
  out.weights = open_safetensors(fs, weights);
  out.tensors = out.weights->tensors();
  for (const StoredTensor& tensor : out.tensors) {
    if (!tensor.name.starts_with(kPrefix)) {
      fail(Code::kDataLoss, weights, ": tensor '", tensor.name, "' does not begin with '", kPrefix,
           "': this is no adapter of PEFT");
    }
  }
  return out;
}

void write_peft(FileSystem& fs, const std::string& folder, const Json& config,
                const std::vector<ExportTensor>& tensors, const Certify& certify) {
  check_config(config, "adapter_config.json");
  for (const ExportTensor& tensor : tensors) {
    if (!tensor.name.starts_with(kPrefix)) {
      fail(Code::kInvalidArgument, "adapter tensor '", tensor.name, "' must begin with '", kPrefix, "'");
    }
  }
  StagedOutput output(fs, folder, StagedOutput::Kind::kFolder);
  output.write_text("adapter_config.json", pretty_text(config));
  write_safetensors(fs, join_path(output.path(), "adapter_model.safetensors"), tensors);
  if (certify) output.write_text(kCertificateFile, certify(output.path()));
  output.commit();
}

}  // namespace inlaid::formats

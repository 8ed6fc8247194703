// Opening what training made, whatever form it has.
#include "sdk/base/error.h"
#include "sdk/train/job.h"
#include "sdk/train/output_folder.h"

namespace inlaid::train {
namespace {

// Overwrites the parameters that a checkpoint holds.
void read_weights(const checkpoint::Reader& reader, const std::string& folder, nn::ParameterSet& parameters) {
  for (const checkpoint::Record& record : reader.records()) {
    if (record.role != checkpoint::Role::kWeight) continue;
    nn::Parameter* parameter = parameters.find(record.name);
    if (parameter == nullptr) fail(Code::kDataLoss, folder, ": tensor ", record.name, " belongs to no parameter of the model");
    if (parameter->spec.shape != record.shape || parameter->value.dtype() != record.dtype) {
      fail(Code::kDataLoss, folder, ": tensor ", record.name, " is ", dtype_name(record.dtype), " ",
           shape_text(record.shape), ", the model holds ", dtype_name(parameter->value.dtype()), " ",
           shape_text(parameter->spec.shape));
    }
    reader.read(record.name, record.role,
                {parameter->value.as<std::byte>(), static_cast<size_t>(parameter->value.bytes())});
  }
}

Result open_checkpoint(std::shared_ptr<Runtime> runtime, const std::string& folder) {
  const std::unique_ptr<checkpoint::Reader> reader = checkpoint::Reader::open(runtime->files, folder);
  const checkpoint::Info& info = reader->info();
  const config::Config config = config::Config::parse(info.config_json);
  models::LoadOptions options = load_options(runtime->files, config);
  Result result;
  if (!info.base_path.empty()) {
    if (!runtime->files.exists(info.base_path)) {
      fail(Code::kNotFound, folder, " needs its base model ", info.base_path, ", which is not there");
    }
    result.model = models::Model::load(runtime, info.base_path, options);
    if (result.model->files().identity != info.base_identity) {
      fail(Code::kFailedPrecondition, folder, ": the base model ", info.base_path,
           " changed since the checkpoint was written");
    }
  } else {
    result.model = models::Model::create(runtime, parse_json(info.model_config_json, folder + ": model configuration"),
                                         static_cast<uint64_t>(config.integer("train.seed")), options);
  }
  if (info.adapter_config_json.empty()) {
    read_weights(*reader, folder, result.model->parameters());
  } else {
    const Json peft = parse_json(info.adapter_config_json, folder + ": adapter configuration");
    result.adapter = models::Adapter::create(result.model, nn::AdapterConfig::from_peft(peft, folder), 0);
    read_weights(*reader, folder, result.adapter->parameters());
  }
  return result;
}

}  // namespace

std::string checkpoint_of(FileSystem& files, const std::string& path, bool best) {
  if (files.exists(join_path(path, checkpoint::kManifestFile)) || !files.exists(join_path(path, kJobFile))) return path;
  const std::string folder = join_path(path, kCheckpointsFolder);
  const std::string chosen = best ? checkpoint::best_checkpoint(files, folder) : checkpoint::latest_checkpoint(files, folder);
  if (chosen.empty() && best) {
    fail(Code::kNotFound, path, " has no best checkpoint; checkpoint.keep_best makes a job record one");
  }
  if (chosen.empty()) fail(Code::kNotFound, path, " is a job without a whole checkpoint");
  return chosen;
}

Result open_result(std::shared_ptr<Runtime> runtime, const std::string& path, const models::LoadOptions& options, bool best) {
  FileSystem& files = runtime->files;
  if (!files.exists(path)) fail(Code::kNotFound, path, " is not there");
  const std::string folder = checkpoint_of(files, path, best);
  if (files.exists(join_path(folder, checkpoint::kManifestFile))) return open_checkpoint(std::move(runtime), folder);
  if (files.exists(join_path(path, "adapter_config.json"))) {
    const std::string file = join_path(path, "adapter_config.json");
    const std::string base = string_at(parse_json(read_text(files, file), file), "base_model_name_or_path", file);
    if (!files.exists(base)) fail(Code::kNotFound, path, " needs its base model '", base, "', which is not there");
    Result result;
    result.model = models::Model::load(runtime, base, options);
    result.adapter = models::Adapter::load(result.model, path);
    return result;
  }
  return {models::Model::load(std::move(runtime), path, options), nullptr};
}

}  // namespace inlaid::train

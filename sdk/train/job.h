// A whole job from its configuration: model, adapter, data, trainer, output folder; and everything that reads such a folder.
#ifndef INLAID_SDK_TRAIN_JOB_H_
#define INLAID_SDK_TRAIN_JOB_H_

#include <memory>
#include <string>

#include "sdk/train/run.h"
#include "sdk/train/trainer.h"

namespace inlaid::train {

models::LoadOptions load_options(FileSystem& files, const config::Config& config);
nn::AdapterConfig adapter_config(const config::Config& config);
data::DatasetOptions dataset_options(const config::Config& config, const models::Model& model, bool evaluation);
struct DataUse {
  // What a chat template shows that writes the date (YYYY-MM-DDThh:mm:ss, UTC); "" = now.
  std::string clock = "";
  // The lengths of the samples are enough.
  bool count_only = false;
  // Where the samples are counted; nullptr = the runtime's account.
  std::shared_ptr<MemoryAccount> account = nullptr;
};
// The data set of data.train, or of data.eval / data.eval_fraction; nullptr when the configuration has none.
std::shared_ptr<const data::Dataset> open_data(const config::Config& config, const models::Model& model, bool evaluation,
                                               const DataUse& use = {});
// What a micro-batch of this job can hold at most.
autograd::Capacity job_capacity(const config::Config& config, const std::shared_ptr<const data::Dataset>& train,
                                const std::shared_ptr<const data::Dataset>& evaluation);

class Job {
 public:
  // Opens everything. With output_dir: creates it (kAlreadyExists if it holds another job), writes job.json and data_report.json.
  static std::shared_ptr<Job> create(std::shared_ptr<Runtime> runtime, const config::Config& config);
  // Opens the job of an output folder and restores its latest checkpoint; from the beginning when there is none yet.
  static std::shared_ptr<Job> resume(std::shared_ptr<Runtime> runtime, const std::string& output_dir);

  const config::Config& config() const { return config_; }
  const std::string& clock() const { return clock_; }
  const std::shared_ptr<Trainer>& trainer() const { return trainer_; }
  const std::shared_ptr<const data::Dataset>& train_data() const { return train_data_; }
  const std::shared_ptr<const data::Dataset>& eval_data() const { return eval_data_; }
  std::shared_ptr<Run> start();
  // Rows, steps, parameters, capacity, where it was resumed: for people and tools.
  Json describe() const;

 private:
  Job() = default;
  static std::shared_ptr<Job> open(std::shared_ptr<Runtime> runtime, const config::Config& config, const std::string& clock);

  config::Config config_;
  std::string clock_;  // when the job was created: its samples stay the same on the day it is resumed
  std::shared_ptr<const data::Dataset> train_data_, eval_data_;
  std::shared_ptr<Trainer> trainer_;
  SamplePrompts samples_;
  std::string resumed_state_;
  std::string resumed_from_;
};

// Predicts a job without allocating what it trains: peak bytes per memory category, parameters, steps, floating-point
// operations per step; and refusals with their reasons ({"refused": [...]}, empty when the job would run).
Json plan(std::shared_ptr<Runtime> runtime, const config::Config& config);

// The checkpoint that a path means: the latest (or best) whole one of a job's output folder, else the path itself. kNotFound if
// the job has none.
std::string checkpoint_of(FileSystem& files, const std::string& path, bool best = false);

// A model with what was trained on it.
struct Result {
  std::shared_ptr<models::Model> model;
  std::shared_ptr<models::Adapter> adapter;  // may be null
};
// Opens what training made, whatever form it has: an output folder of a job or a checkpoint (latest weights over the base), a
// PEFT folder (with its base), a Hugging Face folder or a GGUF file.
// `best` chooses the best checkpoint of an output folder instead of the latest; kNotFound if none is recorded.
Result open_result(std::shared_ptr<Runtime> runtime, const std::string& path, const models::LoadOptions& options,
                   bool best = false);

}  // namespace inlaid::train

#endif  // INLAID_SDK_TRAIN_JOB_H_

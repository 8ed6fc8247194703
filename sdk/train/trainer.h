// The trainer: gradients, optimizer and schedule around one model (or one adapter on a shared base), one step at a time.
//
// Loss and gradients are normalised by the number of target tokens of the whole optimizer step: micro-batches add
// un-normalised gradients, apply() multiplies once. So k micro-batches equal one large batch, ragged ones included, and
// accumulate x k + apply is bit for bit one step of k micro-batches.
#ifndef INLAID_SDK_TRAIN_TRAINER_H_
#define INLAID_SDK_TRAIN_TRAINER_H_

#include <atomic>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sdk/autograd/replay.h"
#include "sdk/checkpoint/checkpoint.h"
#include "sdk/config/config.h"
#include "sdk/data/dataset.h"
#include "sdk/models/model.h"
#include "sdk/optim/schedule.h"
#include "sdk/train/batch_buffers.h"
#include "sdk/train/pass.h"

namespace inlaid::train {

// Sums over target tokens; divide by target_tokens for means.
struct LossSums {
  double loss = 0;
  int64_t correct = 0;
  int64_t target_tokens = 0;
  int64_t tokens = 0;
  int64_t documents = 0;
  void add(const LossSums& other);
};

struct StepResult {
  int64_t step = 0;  // optimizer steps done, this one included
  LossSums sums;
  int64_t micro_batches = 0;
  double grad_norm = 0;  // of the normalised gradient, before clipping
  double learning_rate = 0;
  double epoch = 0;
};

// The programs of a job and what they need, before anything is allocated: what `plan` reports and what Trainer allocates.
struct Programs {
  autograd::Capacity capacity;
  bool recompute = false;
  autograd::Program train, evaluate;
  uint64_t gradient_bytes = 0, optimizer_bytes = 0;
  uint64_t activation_bytes() const;
  uint64_t workspace_bytes() const;
  uint64_t data_bytes() const;  // micro-batch buffers
  uint64_t total_bytes() const;
};

// Names of the base parameters that train under model.trainable (empty set with an adapter). kInvalidArgument for a pattern that
// matches nothing, and for a parameter that would train but is not held as f32.
std::set<std::string> trainable_names(const nn::ParameterSet& base, const config::Config& config, bool adapter);

// Records the training and the evaluation program under model.recompute: none, full, or auto, which recomputes blocks only if
// the runtime's memory limit would be exceeded without. `in_use` is what the job has taken before.
Programs record_programs(const Runtime& runtime, const models::DecoderConfig& model, const nn::Modules& modules,
                         const autograd::Capacity& capacity, const std::string& recompute, uint64_t in_use);

class Trainer {
 public:
  // adapter may be null: then the model's own parameters train. Throws kResourceExhausted before anything is allocated
  // partially. `capacity` is what one micro-batch can hold at most.
  static std::shared_ptr<Trainer> create(std::shared_ptr<models::Model> model, std::shared_ptr<models::Adapter> adapter,
                                         const config::Config& config, const autograd::Capacity& capacity);

  // Attaches the training data; its batcher must fit the capacity. Sets the number of steps when train.max_steps is absent.
  void set_train_data(std::shared_ptr<const data::Dataset> dataset);
  const std::shared_ptr<const data::Dataset>& train_data() const { return dataset_; }

  // Forward and backward of one micro-batch. On kCancelled all gradients accumulated since the last apply() are dropped.
  LossSums accumulate(const data::MicroBatch& batch, const std::atomic<bool>* cancel);
  // Forward for a host that has a loss of its own, with dropout as in accumulate(); the pass holds what its backward needs.
  std::unique_ptr<Pass> forward(const data::MicroBatch& batch, const OutputSet& outputs, const std::atomic<bool>* cancel);
  // Backward of such a pass of this trainer from the gradients that were set; adds to the gradients as accumulate() does, without
  // any factor. `count` goes to the normaliser: apply() divides the sum of all gradients by the sum of the counts, where
  // accumulate() counts its target tokens, and by nothing when that is 0. kFailedPrecondition also when the weights have changed
  // since; on kCancelled as accumulate().
  void backward(Pass& pass, double count, const std::atomic<bool>* cancel);
  // Clip, optimizer, schedule; zeroes the gradients. kFailedPrecondition if nothing was accumulated, or if a gradient is not
  // finite (naming the parameter); the weights are then unchanged.
  StepResult apply();
  // The next micro-batches of the training data (train.gradient_accumulation_steps of them, fewer at the end of an epoch), then
  // apply(). kOutOfRange when all steps are done. On kCancelled everything is as before the step.
  StepResult step(const std::atomic<bool>* cancel);

  // Sums over a data set; weights, cursor and gradients untouched.
  LossSums evaluate(const data::Dataset& dataset, const std::atomic<bool>* cancel);

  // Steps that the schedule is made for; nothing while neither data nor train.max_steps is there.
  std::optional<int64_t> total_steps() const { return total_steps_; }
  int64_t steps_done() const { return steps_done_; }
  const data::Cursor& cursor() const { return cursor_; }
  double epochs_done() const;
  const autograd::Capacity& capacity() const { return programs_.capacity; }
  const config::Config& config() const { return config_; }
  const std::shared_ptr<models::Model>& model() const { return model_; }
  const std::shared_ptr<models::Adapter>& adapter() const { return adapter_; }
  const std::shared_ptr<MemoryAccount>& memory() const { return memory_; }

  // Changes a key of the configuration for all steps to come. Few can be changed: optim.learning_rate, optim.weight_decay and
  // optim.max_grad_norm; others are kFailedPrecondition. `json` is the value as JSON text, checked like any configuration. A
  // checkpoint carries what was changed, and restore() changes it again.
  void set(const std::string& key, const std::string& json);
  // What set() would do to this configuration; throws as it does. For a caller that must know before the step is reached.
  static void change(config::Config* config, const std::string& key, const std::string& json);

  // Names and gradients accumulated so far (un-normalised sums over target tokens), for tests and hosts.
  std::vector<std::pair<std::string, TensorView>> gradients() const;

  // Checkpoint of everything that training needs to go on bit for bit. `state` is free text kept with it.
  void save(const std::string& folder, const std::string& state, const std::atomic<bool>* cancel) const;
  // kFailedPrecondition naming what differs: base, tokenizer, template, data; kDataLoss for damage.
  std::string restore(const std::string& folder);

 private:
  Trainer() = default;
  void allocate();
  autograd::Binding bind(const autograd::Program& program) const;
  Device device() const;
  double squared_norm(const TensorView& gradient) const;
  void drop_gradients();
  void check_finite(double norm) const;
  checkpoint::Info info() const;
  std::vector<checkpoint::Record> records() const;
  void plan_steps();

  // One trained parameter with its slices of the gradient and optimizer arenas.
  struct Trained {
    nn::Parameter* parameter;
    TensorView value, gradient, m, v;  // flat
    bool decays;
  };

  std::shared_ptr<Runtime> runtime_;
  std::shared_ptr<models::Model> model_;
  std::shared_ptr<models::Adapter> adapter_;
  std::shared_ptr<MemoryAccount> memory_;
  config::Config config_;
  Json live_ = Json::object();  // keys that set() has changed, with their values
  std::set<std::string> trainable_;
  std::unique_ptr<nn::Modules> modules_;
  Programs programs_;
  Block gradients_, optimizer_, activations_, workspace_;
  std::unique_ptr<BatchBuffers> batch_;
  std::vector<Trained> trained_;
  autograd::Binding train_binding_, evaluate_binding_;
  std::shared_ptr<const data::Dataset> dataset_;
  std::unique_ptr<data::Batcher> batcher_;
  std::optional<int64_t> total_steps_;
  std::optional<optim::LearningRateSchedule> schedule_;
  int64_t steps_done_ = 0;
  data::Cursor cursor_;
  LossSums pending_;
  int64_t pending_micro_batches_ = 0;
  double pending_count_ = 0;     // what the pending gradients are divided by
  int64_t weights_version_ = 0;  // changes with the weights
  std::shared_ptr<const autograd::Program> pass_program_;  // made by the first forward()
};

}  // namespace inlaid::train

#endif  // INLAID_SDK_TRAIN_TRAINER_H_

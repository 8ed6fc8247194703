#include "sdk/config/rules.h"

#include <algorithm>
#include <array>

namespace inlaid::config {
namespace {

class Rules {
 public:
  explicit Rules(Values* values) : values_(*values) {}

  void apply() {
    model();
    adapter();
    data();
    steps();
    batch();
    learning_rate();
    records();
  }

 private:
  bool set(std::string_view path) const { return values_.find(path) != values_.end(); }

  // The value of a key: as set, or its default.
  Json value(std::string_view path) const {
    const auto found = values_.find(path);
    return found != values_.end() ? found->second : parse_json(find_key(path)->preset, "table of keys");
  }

  void put(std::string_view path, Json value) {
    values_.insert_or_assign(std::string(path), std::move(value));
  }

  static std::string quoted(std::string_view path) {
    std::string out(1, '\'');
    out += path;
    out += '\'';
    return out;
  }

  // "(5)"
  static std::string bracketed(int64_t number) {
    std::string out(1, '(');
    out += std::to_string(number);
    out += ')';
    return out;
  }

  void not_both(std::string_view a, std::string_view b) const {
    if (set(a) && set(b))
      refuse(b, "excludes " + quoted(a) + ": set one of both and leave the other out, or null");
  }

  // What one writer reads another one must write.
  void records() {
    const Json writers = value("logging.writers");
    const auto has = [&](const char* name) { return std::find(writers.begin(), writers.end(), name) != writers.end(); };
    if (has("html") && !has("jsonl")) refuse("logging.writers", "needs \"jsonl\" beside \"html\", which is made from it");
    if (!set("checkpoint.keep_best")) put("checkpoint.keep_best", set("train.early_stopping_patience") ? 1 : 0);
    if (set("train.early_stopping_threshold") && !set("train.early_stopping_patience")) {
      refuse("train.early_stopping_threshold", "has no effect without 'train.early_stopping_patience'");
    }
  }

  void model() { not_both("model.path", "model.config"); }

  // Keys of an adapter without one would be ignored, and an adapter read from a folder brings its own.
  void adapter() {
    const bool loaded = set("adapter.path");
    for (const Key& key : table()) {
      if (!key.path.starts_with("adapter.") || key.path == "adapter.path" || key.path == "adapter.peft_type")
        continue;
      if (set(key.path) && loaded)
        refuse(key.path, "excludes 'adapter.path': the settings in that folder hold");
      if (set(key.path) && !set("adapter.peft_type")) {
        refuse(key.path, "has no effect without an adapter: set 'adapter.peft_type' to \"LORA\"");
      }
      if (loaded || !set("adapter.peft_type")) put(key.path, nullptr);
    }
    if (has_adapter() && set("model.trainable")) {
      refuse("model.trainable",
             "excludes an adapter, beside which the model is frozen: for whole modules that train too, use "
             "'adapter.modules_to_save'");
    }
  }

  bool has_adapter() const { return set("adapter.peft_type") || set("adapter.path"); }

  void data() {
    if (set("data.eval")) {
      const Json sources = value("data.eval");
      for (size_t i = 0; i < sources.size(); ++i) {
        if (sources[i]["weight"] != 1.0) {
          refuse("data.eval[" + std::to_string(i) + "].weight", "has no effect: an evaluation takes every row once");
        }
      }
    }
    if (set("data.eval") && value("data.eval_fraction").get<double>() > 0) {
      refuse("data.eval_fraction", "excludes 'data.eval': evaluation data are given, or held out, not both");
    }
    if (set("data.packing")) {
      const bool packing = value("data.packing").get<bool>();
      if (packing && set("train.micro_batch_size")) {
        refuse("data.packing",
               "true fills micro-batches to 'train.micro_batch_tokens', so 'train.micro_batch_size' cannot "
               "be set");
      }
      if (!packing && !set("train.micro_batch_size")) {
        refuse("data.packing", "false needs 'train.micro_batch_size', the samples of a micro-batch");
      }
    }
    put("data.packing", !set("train.micro_batch_size"));
  }

  void steps() {
    not_both("train.num_train_epochs", "train.max_steps");
    if (set("train.max_steps")) put("train.num_train_epochs", nullptr);
    if (value("optim.warmup_steps").get<int64_t>() > 0 && value("optim.warmup_ratio").get<double>() > 0) {
      refuse("optim.warmup_ratio", "excludes 'optim.warmup_steps': set one of both");
    }
  }

  // micro-batch x gradient_accumulation_steps x ranks (1) = global batch; any two give the third.
  void batch() {
    not_both("train.micro_batch_tokens", "train.micro_batch_size");
    not_both("train.global_batch_tokens", "train.global_batch_size");
    if (set("train.global_batch_size") && !set("train.micro_batch_size")) {
      refuse("train.global_batch_size",
             "counts samples and needs 'train.micro_batch_size'; with packing, set "
             "'train.global_batch_tokens'");
    }
    if (set("train.global_batch_tokens") && set("train.micro_batch_size")) {
      refuse("train.global_batch_tokens",
             "counts tokens and excludes 'train.micro_batch_size'; set 'train.global_batch_size'");
    }
    triangle("train.micro_batch_tokens", "train.global_batch_tokens");
    triangle("train.micro_batch_size", "train.global_batch_size");
    if (set("train.micro_batch_size")) put("train.micro_batch_tokens", nullptr);
  }

  void triangle(std::string_view micro, std::string_view global) {
    constexpr std::string_view kSteps = "train.gradient_accumulation_steps";
    if (!set(global)) return;
    const int64_t whole = value(global).get<int64_t>(), part = value(micro).get<int64_t>();
    const std::string factor = quoted(micro) + " " + bracketed(part);
    if (whole % part != 0) refuse(global, bracketed(whole) + " must be a multiple of " + factor);
    const int64_t steps = whole / part;
    if (set(kSteps) && value(kSteps).get<int64_t>() != steps) {
      refuse(global, bracketed(whole) + " must be " + factor + " times " + quoted(kSteps) + " " +
                         bracketed(value(kSteps).get<int64_t>()));
    }
    if (static_cast<double>(steps) > find_key(kSteps)->max) {
      refuse(global, "asks for " + std::to_string(steps) + " micro-batches per step, which is too many");
    }
    put(kSteps, steps);
  }

  void learning_rate() {
    if (!set("optim.learning_rate")) put("optim.learning_rate", has_adapter() ? 2e-4 : 5e-5);
    const std::string type = value("optim.lr_scheduler_type").get<std::string>();
    struct Argument {
      std::string_view path, type;
    };
    constexpr std::string_view kMin = "optim.lr_scheduler_kwargs.min_lr",
                               kRate = "optim.lr_scheduler_kwargs.min_lr_rate",
                               kDecay = "optim.lr_scheduler_kwargs.num_decay_steps";
    constexpr std::array<Argument, 5> kArguments = {
        {{kMin, "cosine_with_min_lr"},
         {kRate, "cosine_with_min_lr"},
         {kDecay, "warmup_stable_decay"},
         {"optim.lr_scheduler_kwargs.min_lr_ratio", "warmup_stable_decay"},
         {"optim.lr_scheduler_kwargs.timescale", "inverse_sqrt"}}};
    for (const Argument& argument : kArguments) {
      if (set(argument.path) && type != argument.type) {
        refuse(argument.path, "belongs to 'optim.lr_scheduler_type' \"" + std::string(argument.type) +
                                  "\", not \"" + type + "\"");
      }
    }
    if (type == "cosine_with_min_lr") {
      not_both(kMin, kRate);
      if (!set(kMin) && !set(kRate))
        refuse("optim.lr_scheduler_kwargs", "needs min_lr or min_lr_rate for \"cosine_with_min_lr\"");
      const double peak = value("optim.learning_rate").get<double>();
      if (set(kMin) && value(kMin).get<double>() > peak) {
        refuse(kMin,
               "must be at most 'optim.learning_rate' (" + to_text(peak) + "), not " + to_text(value(kMin)));
      }
    }
    if (type == "warmup_stable_decay" && !set(kDecay))
      refuse(kDecay, "is needed for \"warmup_stable_decay\"");
  }

  Values& values_;
};

}  // namespace

void apply_rules(Values* values) {
  Rules(values).apply();
}

}  // namespace inlaid::config

// What the trainer guarantees: bits that do not depend on threads, interruption or the cut into micro-batches; sums that do not
// depend on packing; the same answers from cache, adapter and merged weights.
#include "sdk/train/logits.h"
#include "sdk/train/trainer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "sdk/base/error.h"
#include "sdk/train/generator.h"
#include "sdk/train/testing/golden_file.h"
#include "sdk/train/testing/rig.h"

namespace inlaid::train {
namespace {

constexpr int32_t kVocabulary = 64;
const std::string kTokenizer = INLAID_SOURCE_DIR "/tests/golden/text/tokenizers/byte_bpe.json";

std::shared_ptr<models::Model> tiny(const std::shared_ptr<Runtime>& runtime, Json config = tiny_config()) {
  return models::Model::create(runtime, config, 5, {});
}

std::shared_ptr<models::Adapter> tiny_adapter(const std::shared_ptr<models::Model>& model, double dropout) {
  nn::AdapterConfig config;
  config.r = 4;
  config.lora_alpha = 8;
  config.lora_dropout = dropout;
  config.init = "false";  // B is random too: a zero B would hide the adapter
  config.target_modules = "all-linear";
  return models::Adapter::create(model, config, 9);
}

struct Fixture {
  std::shared_ptr<models::Model> model;
  std::shared_ptr<models::Adapter> adapter;
  std::shared_ptr<Trainer> trainer;
};

Fixture make(int threads, bool lora, double dropout = 0, std::vector<std::pair<std::string, std::string>> changes = {}) {
  Fixture setup;
  setup.model = tiny(make_runtime(threads));
  if (lora) {
    setup.adapter = tiny_adapter(setup.model, dropout);
    changes.emplace_back("adapter.peft_type", "\"LORA\"");
  }
  setup.trainer = Trainer::create(setup.model, setup.adapter, make_config(changes), {256, 16});
  return setup;
}

const std::vector<std::vector<int32_t>>& documents() {
  static const std::vector<std::vector<int32_t>> kDocuments = {
      make_document(1, 37, kVocabulary), make_document(2, 5, kVocabulary), make_document(3, 64, kVocabulary),
      make_document(4, 18, kVocabulary)};
  return kDocuments;
}

std::vector<double> gradient_values(const Trainer& trainer) {
  std::vector<double> values;
  for (const auto& [name, gradient] : trainer.gradients()) {
    values.insert(values.end(), gradient.as<float>(), gradient.as<float>() + gradient.elements());
  }
  return values;
}

TEST(Trainer, BitsDoNotDependOnTheNumberOfThreads) {
  for (bool lora : {false, true}) {
    std::vector<float> expected;
    for (int threads : {1, 2, 3, 7}) {
      Fixture setup = make(threads, lora, 0.2);
      for (int i = 0; i < 3; ++i) {
        setup.trainer->accumulate(make_batch(documents()), nullptr);
        setup.trainer->apply();
      }
      const std::vector<float> values = trained_values(*setup.trainer);
      if (expected.empty()) expected = values;
      EXPECT_EQ(values, expected) << threads << " threads";
    }
  }
}

TEST(Trainer, PackedEqualsUnpackedAndOneBatchEqualsMany) {
  for (bool lora : {false, true}) {
    for (double dropout : {0.0, 0.3}) {
      Fixture packed = make(1, lora, dropout), alone = make(1, lora, dropout);
      const LossSums together = packed.trainer->accumulate(make_batch(documents()), nullptr);
      LossSums sum;
      for (const auto& document : documents()) sum.add(alone.trainer->accumulate(make_batch({document}), nullptr));
      EXPECT_EQ(together.target_tokens, sum.target_tokens);
      EXPECT_NEAR(together.loss, sum.loss, 1e-5 * sum.loss);
      EXPECT_LT(relative_error(gradient_values(*packed.trainer), gradient_values(*alone.trainer)), 1e-5);
      // The step is normalised by all target tokens of the step, however they were cut: not a mean of means.
      const StepResult one = packed.trainer->apply(), many = alone.trainer->apply();
      EXPECT_NEAR(one.grad_norm, many.grad_norm, 1e-5 * one.grad_norm);
      EXPECT_EQ(many.micro_batches, 4);
    }
  }
}

TEST(Trainer, LossIsTheMeanOverTargetTokens) {
  Fixture setup = make(1, false);
  data::MicroBatch batch = make_batch({documents()[0]});
  for (size_t i = 0; i < batch.targets.size(); i += 2) batch.targets[i] = data::kIgnore;
  const LossSums sums = setup.trainer->accumulate(batch, nullptr);
  const std::vector<float> logits = all_logits(*setup.model, nullptr, batch);
  double expected = 0;
  int64_t count = 0;
  for (size_t row = 0; row < batch.targets.size(); ++row) {
    if (batch.targets[row] == data::kIgnore) continue;
    double sum = 0;
    for (int32_t v = 0; v < kVocabulary; ++v) sum += std::exp(static_cast<double>(logits[row * kVocabulary + static_cast<size_t>(v)]));
    expected += std::log(sum) - static_cast<double>(logits[row * kVocabulary + static_cast<size_t>(batch.targets[row])]);
    ++count;
  }
  EXPECT_EQ(sums.target_tokens, count);
  EXPECT_NEAR(sums.loss, expected, 1e-5 * expected);
}

TEST(Trainer, WeightDecayIsDecoupledAndSkipsVectors) {
  Fixture setup = make(1, false, 0, {{"optim.weight_decay", "0.5"}, {"optim.learning_rate", "0.01"}});
  Fixture plain = make(1, false, 0, {{"optim.learning_rate", "0.01"}});
  for (Fixture* s : {&setup, &plain}) {
    s->trainer->accumulate(make_batch(documents()), nullptr);
    s->trainer->apply();
  }
  const Fixture start = make(1, false);
  for (const auto& parameter : setup.model->parameters().all()) {
    const std::string& name = parameter->spec.name;
    const float* with = parameter->value.as<float>();
    const float* without = plain.model->parameters().find(name)->value.as<float>();
    const float* before = start.model->parameters().find(name)->value.as<float>();
    for (int64_t i = 0; i < parameter->value.elements(); ++i) {
      const double decay = parameter->spec.shape.size() > 1 ? 0.01 * 0.5 * static_cast<double>(before[i]) : 0.0;
      EXPECT_NEAR(with[i], static_cast<double>(without[i]) - decay, 2e-7) << name << "[" << i << "]";
    }
  }
}

TEST(Trainer, ClippingScalesToTheNormAndReportsTheNormBefore) {
  Fixture clipped = make(1, false, 0, {{"optim.max_grad_norm", "0.1"}, {"optim.adam_epsilon", "100"}, {"optim.learning_rate", "1"}});
  Fixture free = make(1, false, 0, {{"optim.adam_epsilon", "100"}, {"optim.learning_rate", "1"}});
  StepResult results[2];
  int i = 0;
  for (Fixture* s : {&clipped, &free}) {
    s->trainer->accumulate(make_batch(documents()), nullptr);
    results[i++] = s->trainer->apply();
  }
  EXPECT_EQ(results[0].grad_norm, results[1].grad_norm);
  EXPECT_GT(results[0].grad_norm, 0.2);
  // With a large epsilon the first step is nearly proportional to the gradient.
  const Fixture start = make(1, false);
  const std::vector<float> a = trained_values(*clipped.trainer), b = trained_values(*free.trainer), c = trained_values(*start.trainer);
  double small = 0, large = 0;
  for (size_t k = 0; k < a.size(); ++k) {
    small += std::pow(static_cast<double>(a[k] - c[k]), 2);
    large += std::pow(static_cast<double>(b[k] - c[k]), 2);
  }
  EXPECT_NEAR(std::sqrt(small / large) * results[0].grad_norm / 0.1, 1, 0.01);
}

TEST(Trainer, AGradientThatIsNotFiniteChangesNothingAndNamesTheParameter) {
  Fixture setup = make(1, false);
  const std::vector<float> before = trained_values(*setup.trainer);
  setup.model->parameters().find("model.layers.1.mlp.up_proj.weight")->value.as<float>()[0] =
      std::numeric_limits<float>::infinity();
  const std::vector<float> broken = trained_values(*setup.trainer);
  setup.trainer->accumulate(make_batch(documents()), nullptr);
  try {
    setup.trainer->apply();
    FAIL() << "applied";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kFailedPrecondition);
    EXPECT_NE(e.message().find("the gradient of model."), std::string::npos) << e.message();
  }
  const std::vector<float> after = trained_values(*setup.trainer);
  EXPECT_EQ(0, std::memcmp(after.data(), broken.data(), after.size() * sizeof(float)));
  EXPECT_EQ(setup.trainer->steps_done(), 0);
  EXPECT_THROW(setup.trainer->apply(), Error);  // nothing is accumulated any more
}

TEST(Trainer, CancelledAccumulationLeavesTheTrainerAsBefore) {
  Fixture cancelled = make(1, true, 0.2), straight = make(1, true, 0.2);
  const std::atomic<bool> cancel{true};
  EXPECT_THROW(cancelled.trainer->accumulate(make_batch(documents()), &cancel), Error);
  for (Fixture* s : {&cancelled, &straight}) {
    s->trainer->accumulate(make_batch(documents()), nullptr);
    s->trainer->apply();
  }
  EXPECT_EQ(trained_values(*cancelled.trainer), trained_values(*straight.trainer));
}

TEST(Trainer, BadMicroBatchesAreRefusedByReason) {
  Fixture setup = make(1, false);
  const auto refused = [&](data::MicroBatch batch, const char* reason) {
    try {
      setup.trainer->accumulate(batch, nullptr);
      ADD_FAILURE() << "accepted: " << reason;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Code::kInvalidArgument);
      EXPECT_NE(e.message().find(reason), std::string::npos) << e.message();
    }
  };
  const data::MicroBatch good = make_batch(documents());
  data::MicroBatch bad = good;
  bad.tokens[3] = kVocabulary;
  refused(bad, "token id 64 at row 3");
  bad = good;
  bad.targets[0] = -7;
  refused(bad, "target id -7 at row 0");
  bad = good;
  std::fill(bad.targets.begin(), bad.targets.end(), data::kIgnore);
  refused(bad, "no target");
  bad = good;
  bad.cu_seqlens.back() -= 1;
  refused(bad, "cu_seqlens");
  refused(make_batch({make_document(1, 257, kVocabulary)}), "made for 256");
  EXPECT_THROW(setup.trainer->apply(), Error);
}

TEST(Trainer, MemoryIsWhatThePlanSays) {
  for (bool lora : {false, true}) {
    Fixture setup = make(2, lora, 0.1);
    for (int i = 0; i < 2; ++i) {
      setup.trainer->accumulate(make_batch(documents()), nullptr);
      setup.trainer->apply();
    }
    const std::set<std::string> trainable = trainable_names(setup.model->parameters(), setup.trainer->config(), lora);
    const nn::Modules modules(setup.model->parameters(), lora ? &setup.adapter->parameters() : nullptr,
                              lora ? &setup.adapter->layout() : nullptr, trainable, 42);
    const Programs programs = record_programs(*setup.model->runtime(), setup.model->config(), modules, {256, 16}, "none", 0);
    const MemoryAccount::Usage usage = setup.trainer->memory()->usage();
    EXPECT_EQ(usage.peak[static_cast<size_t>(Category::kGradients)], programs.gradient_bytes);
    EXPECT_EQ(usage.peak[static_cast<size_t>(Category::kOptimizer)], programs.optimizer_bytes);
    EXPECT_EQ(usage.peak[static_cast<size_t>(Category::kActivations)], programs.activation_bytes());
    EXPECT_EQ(usage.peak[static_cast<size_t>(Category::kWorkspace)], programs.workspace_bytes());
    EXPECT_EQ(usage.peak[static_cast<size_t>(Category::kData)], programs.data_bytes());
  }
}

TEST(Trainer, AMemoryLimitSwitchesRecomputationOnAndIsNeverExceeded) {
  const auto measure = [](uint64_t limit) {
    const auto runtime = make_runtime(1, limit);
    Json config = tiny_config();
    config["num_hidden_layers"] = 8;
    const auto model = models::Model::create(runtime, config, 5, {});
    const auto trainer = Trainer::create(model, nullptr, make_config({}), {256, 16});
    trainer->accumulate(make_batch(documents()), nullptr);
    trainer->apply();
    return std::pair{runtime->memory->usage().peak_total, trained_values(*trainer)};
  };
  const auto [unlimited, expected] = measure(0);
  const auto [limited, values] = measure(unlimited * 6 / 10);
  EXPECT_LE(limited, unlimited * 6 / 10);
  EXPECT_EQ(values, expected);
  try {
    measure(unlimited / 10);
    FAIL() << "a tenth of the memory was enough";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kResourceExhausted);
  }
}

TEST(Generator, CacheGivesTheLogitsOfAFullForwardPass) {
  const auto runtime = make_runtime(2);
  models::LoadOptions options;
  options.tokenizer = kTokenizer;
  Json config = tiny_config();
  const int32_t vocabulary = text::Tokenizer::from_json(read_text(runtime->files, kTokenizer), "tokenizer")->vocab_size();
  config["vocab_size"] = vocabulary;
  const auto model = models::Model::create(runtime, config, 5, options);
  const auto adapter = tiny_adapter(model, 0);
  for (const std::shared_ptr<models::Adapter>& with : {std::shared_ptr<models::Adapter>(), adapter}) {
    GenerationOptions generation;
    generation.max_new_tokens = 12;
    generation.max_length = 400;
    Generator generator(model, with, generation);
    // Longer than one pass of the model takes, so that the prompt itself is cut; then a second sequence in the same cache.
    for (int64_t length : {300, 7}) {
      std::vector<int32_t> ids = make_document(3, length, vocabulary);
      generator.prompt(ids);
      for (bool done = false; !done;) {
        const Generator::Next next = generator.next(nullptr);
        const std::vector<double> cached(generator.logits().begin(), generator.logits().end());
        const std::vector<float> full = all_logits(*model, with.get(), make_batch({ids}));
        const std::vector<double> last(full.end() - vocabulary, full.end());
        ASSERT_LT(relative_error(cached, last), 1e-5) << "after " << ids.size() << " tokens";
        EXPECT_EQ(next.id, std::max_element(last.begin(), last.end()) - last.begin());
        ids.push_back(next.id);
        done = next.done;
      }
      EXPECT_THROW(generator.next(nullptr), Error);
    }
  }
}

TEST(Export, MergedWeightsAnswerAsTheAdapterDoes) {
  const auto model = tiny(make_runtime(1));
  const auto adapter = tiny_adapter(model, 0);
  TemporaryFolder folder;
  models::export_hugging_face(*model, adapter.get(), folder / "merged", DType::f32);
  models::export_peft(*adapter, folder / "adapter");
  const auto merged = models::Model::load(make_runtime(1), folder / "merged", {});
  const auto again = models::Adapter::load(model, folder / "adapter");
  const data::MicroBatch batch = make_batch(documents());
  const std::vector<float> expected = all_logits(*model, adapter.get(), batch);
  const std::vector<float> base = all_logits(*model, nullptr, batch);
  const auto error = [&](const std::vector<float>& logits) {
    return relative_error({logits.begin(), logits.end()}, {expected.begin(), expected.end()});
  };
  EXPECT_GT(error(base), 1e-3);
  EXPECT_LT(error(all_logits(*merged, nullptr, batch)), 1e-5);
  EXPECT_EQ(all_logits(*model, again.get(), batch), expected);
}

}  // namespace
}  // namespace inlaid::train

// Passes for hosts with a loss of their own: the engine's loss, written by the host, gives the engine's gradients bit for bit; other
// losses give what finite differences say; memory is held as long as backward needs it and no longer.
#include "sdk/train/pass.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "sdk/base/error.h"
#include "sdk/train/logits.h"
#include "sdk/train/testing/golden_file.h"
#include "sdk/train/testing/rig.h"
#include "sdk/train/trainer.h"

namespace inlaid::train {
namespace {

constexpr OutputSet kLogProbs = {true, false, false}, kAll = {true, true, true};

Json capped_config() {
  Json json = tiny_config();
  for (const auto& [key, value] : std::initializer_list<std::pair<const char*, Json>>{
           {"model_type", "gemma2"}, {"head_dim", 8}, {"query_pre_attn_scalar", 8}, {"sliding_window", 16},
           {"attn_logit_softcapping", 2.0}, {"final_logit_softcapping", 1.5}}) {
    json[key] = value;
  }
  return json;
}

struct Case {
  std::string name;
  bool lora = false, capped = false, recompute = false;
  double dropout = 0;
};

struct Fixture {
  explicit Fixture(const Case& c, int threads = 2) {
    runtime = make_runtime(threads);
    model = models::Model::create(runtime, c.capped ? capped_config() : tiny_config(), 5, {});
    std::vector<std::pair<std::string, std::string>> changes;
    if (c.recompute) changes.emplace_back("model.recompute", "\"full\"");
    if (c.lora) {
      nn::AdapterConfig config;
      config.r = 4;
      config.lora_alpha = 8;
      config.lora_dropout = c.dropout;
      config.init = "false";
      config.target_modules = "all-linear";
      adapter = models::Adapter::create(model, config, 9);
      changes.emplace_back("adapter.peft_type", "\"LORA\"");
    }
    trainer = Trainer::create(model, adapter, make_config(changes), {384, 16});
  }
  std::shared_ptr<Runtime> runtime;
  std::shared_ptr<models::Model> model;
  std::shared_ptr<models::Adapter> adapter;
  std::shared_ptr<Trainer> trainer;
};

// Packed documents, with more target rows than a chunk of the head has, and rows without a target.
data::MicroBatch packed() {
  data::MicroBatch batch = make_batch({make_document(1, 137, 64), make_document(2, 5, 64), make_document(3, 180, 64)});
  for (size_t row = 3; row < batch.targets.size(); row += 19) batch.targets[row] = data::kIgnore;
  return batch;
}

int64_t targets(const data::MicroBatch& batch) {
  return static_cast<int64_t>(batch.targets.size()) - std::count(batch.targets.begin(), batch.targets.end(), data::kIgnore);
}

std::vector<double> gradient_values(const Trainer& trainer) {
  std::vector<double> values;
  for (const auto& [name, gradient] : trainer.gradients()) {
    values.insert(values.end(), gradient.as<float>(), gradient.as<float>() + gradient.elements());
  }
  return values;
}

// A tensor of the host's own.
Tensor lend(std::vector<float> values, Shape shape) {
  auto owned = std::make_shared<std::vector<float>>(std::move(values));
  void* data = owned->data();
  return Tensor(owned, data, DType::f32, std::move(shape));
}

// d/d log_probs of -sum of log_probs.
Tensor minus_ones(const Pass& pass) { return lend(std::vector<float>(static_cast<size_t>(pass.rows()), -1.0f), {pass.rows()}); }

// softmax - one-hot of each row with a target: the gradient of cross-entropy with respect to the logits.
std::vector<float> cross_entropy_gradient(const Pass& pass, const data::MicroBatch& batch) {
  const Tensor& logits = pass.output(Output::logits);
  const auto columns = static_cast<size_t>(logits.shape()[1]);
  std::vector<float> gradient(static_cast<size_t>(logits.elements()), 0.0f);
  for (size_t row = 0; row < batch.targets.size(); ++row) {
    if (batch.targets[row] == data::kIgnore) continue;
    const float* y = logits.as<float>() + row * columns;
    double sum = 0;
    for (size_t c = 0; c < columns; ++c) sum += std::exp(double{y[c]});
    for (size_t c = 0; c < columns; ++c) gradient[row * columns + c] = static_cast<float>(std::exp(double{y[c]}) / sum);
    gradient[row * columns + static_cast<size_t>(batch.targets[row])] -= 1;
  }
  return gradient;
}

template <typename Body>
void expect_error(Code code, const std::string& part, Body&& body) {
  try {
    body();
    ADD_FAILURE() << "no error; expected " << part;
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), code) << e.message();
    EXPECT_NE(e.message().find(part), std::string::npos) << e.message();
  }
}

class PassGradient : public testing::TestWithParam<Case> {};

TEST_P(PassGradient, OfTheEnginesOwnLossIsTheEnginesBitForBit) {
  Fixture own(GetParam()), engine(GetParam());
  const data::MicroBatch batch = packed();
  const LossSums sums = engine.trainer->accumulate(batch, nullptr);
  const std::unique_ptr<Pass> pass = own.trainer->forward(batch, kLogProbs, nullptr);
  double loss = 0;
  for (size_t row = 0; row < batch.targets.size(); ++row) {
    const float log_prob = pass->output(Output::log_probs).as<float>()[row];
    if (batch.targets[row] == data::kIgnore) {
      EXPECT_EQ(log_prob, 0);
    }
    loss -= double{log_prob};
  }
  EXPECT_EQ(loss, sums.loss);
  pass->set_gradient(Output::log_probs, minus_ones(*pass));
  own.trainer->backward(*pass, static_cast<double>(targets(batch)), nullptr);
  EXPECT_EQ(gradient_values(*own.trainer), gradient_values(*engine.trainer));
  EXPECT_EQ(own.trainer->apply().grad_norm, engine.trainer->apply().grad_norm);
  EXPECT_EQ(trained_values(*own.trainer), trained_values(*engine.trainer));
}

TEST_P(PassGradient, OfLogitsGoesThroughTheSoftCap) {
  Fixture own(GetParam()), engine(GetParam());
  const data::MicroBatch batch = packed();
  engine.trainer->accumulate(batch, nullptr);
  const std::unique_ptr<Pass> pass = own.trainer->forward(batch, {false, true, false}, nullptr);
  pass->set_gradient(Output::logits, lend(cross_entropy_gradient(*pass, batch), {pass->rows(), 64}));
  own.trainer->backward(*pass, 0, nullptr);
  EXPECT_LT(relative_error(gradient_values(*own.trainer), gradient_values(*engine.trainer)), 2e-6);
}

// The gradient g of a host's loss: along g, the loss rises by |g| for each unit of length.
TEST_P(PassGradient, OfALossOnAllOutputsIsItsSlope) {
  Case c = GetParam();
  c.dropout = 0;  // a difference of losses needs the same network
  Fixture fixture(c);
  const data::MicroBatch batch = packed();
  const auto loss = [&](Pass* pass) {
    double sum = 0;
    const auto add = [&](Output output, double scale) {
      const Tensor& value = pass->output(output);
      std::vector<float> gradient(static_cast<size_t>(value.elements()));
      for (size_t i = 0; i < gradient.size(); ++i) {
        const double x = value.as<float>()[i];
        sum += scale * x * x / 2;
        gradient[i] = static_cast<float>(scale * x);
      }
      return lend(std::move(gradient), value.shape());
    };
    const Tensor log_probs = add(Output::log_probs, 0.01), logits = add(Output::logits, 0.02);
    const Tensor hidden = add(Output::hidden_states, 0.03);
    return std::tuple(sum, log_probs, logits, hidden);
  };
  const std::unique_ptr<Pass> pass = fixture.trainer->forward(batch, kAll, nullptr);
  const auto [at, log_probs, logits, hidden] = loss(pass.get());
  pass->set_gradient(Output::log_probs, log_probs);
  pass->set_gradient(Output::logits, logits);
  pass->set_gradient(Output::hidden_states, hidden);
  fixture.trainer->backward(*pass, 0, nullptr);
  const std::vector<double> gradient = gradient_values(*fixture.trainer);
  double norm = 0;
  for (const double g : gradient) norm += g * g;
  norm = std::sqrt(norm);
  ASSERT_GT(norm, 0);
  const auto moved = [&](double length) {
    Fixture other(c);
    size_t i = 0;
    for (const auto& [name, view] : other.trainer->gradients()) {
      nn::Parameter* parameter = other.adapter != nullptr ? other.adapter->parameters().find(name) : nullptr;
      if (parameter == nullptr) parameter = other.model->parameters().find(name);
      float* values = parameter->value.as<float>();
      for (int64_t k = 0; k < view.elements(); ++k) values[k] += static_cast<float>(length / norm * gradient[i++]);
    }
    const std::unique_ptr<Pass> there = other.trainer->forward(batch, kAll, nullptr);
    return std::get<0>(loss(there.get()));
  };
  constexpr double kStep = 2e-3;
  const double slope = (moved(kStep) - moved(-kStep)) / (2 * kStep);
  EXPECT_NEAR(slope, norm, 2e-3 * norm);
}

INSTANTIATE_TEST_SUITE_P(Options, PassGradient,
                         testing::Values(Case{"full"}, Case{"lora", true, false, false, 0.3}, Case{"full_capped", false, true},
                                         Case{"lora_capped", true, true}, Case{"full_recompute", false, false, true},
                                         Case{"lora_recompute", true, false, true, 0.3}),
                         [](const auto& info) { return info.param.name; });

TEST(Pass, LogitsAndHiddenStatesAreThoseOfEvaluation) {
  for (bool capped : {false, true}) {
    Fixture fixture({"", true, capped});
    const data::MicroBatch batch = packed();
    const std::unique_ptr<Pass> pass = forward(*fixture.model, fixture.adapter.get(), batch, kAll, nullptr);
    const Tensor& logits = pass->output(Output::logits);
    const std::vector<float> expected = all_logits(*fixture.model, fixture.adapter.get(), batch);
    EXPECT_EQ(std::vector<float>(logits.as<float>(), logits.as<float>() + logits.elements()), expected);
    // The head, by hand, from the hidden states that were handed out.
    const Tensor& hidden = pass->output(Output::hidden_states);
    const nn::Parameter* head = fixture.model->parameters().find(capped ? "model.embed_tokens.weight" : "lm_head.weight");
    ASSERT_NE(head, nullptr);
    for (int64_t row = 0; row < hidden.shape()[0]; row += 41) {
      for (int64_t column = 0; column < 64; column += 9) {
        double z = 0;
        for (int64_t k = 0; k < 32; ++k) z += double{hidden.as<float>()[row * 32 + k]} * head->value.as<float>()[column * 32 + k];
        if (capped) z = 1.5 * std::tanh(z / 1.5);
        EXPECT_NEAR(logits.as<float>()[row * 64 + column], z, 1e-5);
      }
    }
    EXPECT_FALSE(forward(*fixture.model, nullptr, batch, kLogProbs, nullptr)->output(Output::logits));
  }
}

TEST(Pass, BitsDoNotDependOnTheNumberOfThreads) {
  for (bool lora : {false, true}) {
    std::vector<double> expected;
    for (int threads : {1, 2, 3, 7}) {
      Fixture fixture({"", lora, true, false, 0}, threads);
      const data::MicroBatch batch = packed();
      const std::unique_ptr<Pass> pass = fixture.trainer->forward(batch, kAll, nullptr);
      for (int i = 0; i < kOutputs; ++i) pass->set_gradient(static_cast<Output>(i), pass->output(static_cast<Output>(i)));
      fixture.trainer->backward(*pass, 0, nullptr);
      const std::vector<double> values = gradient_values(*fixture.trainer);
      if (expected.empty()) expected = values;
      EXPECT_EQ(values, expected) << threads << " threads";
    }
  }
}

TEST(Pass, SeveralInFlightDoNotDisturbEachOtherOrTheTrainer) {
  Fixture interleaved({"", true}), ordered({"", true});
  const data::MicroBatch first = packed(), second = make_batch({make_document(7, 90, 64)});
  const data::MicroBatch third = make_batch({make_document(8, 40, 64)});
  const std::unique_ptr<Pass> a = interleaved.trainer->forward(first, kLogProbs, nullptr);
  const std::unique_ptr<Pass> b = interleaved.trainer->forward(second, kLogProbs, nullptr);
  a->set_gradient(Output::log_probs, minus_ones(*a));
  b->set_gradient(Output::log_probs, minus_ones(*b));
  interleaved.trainer->accumulate(third, nullptr);
  interleaved.trainer->backward(*a, static_cast<double>(targets(first)), nullptr);
  interleaved.trainer->backward(*b, static_cast<double>(targets(second)), nullptr);
  for (const data::MicroBatch* batch : {&third, &first, &second}) ordered.trainer->accumulate(*batch, nullptr);
  EXPECT_EQ(gradient_values(*interleaved.trainer), gradient_values(*ordered.trainer));
  const StepResult got = interleaved.trainer->apply(), want = ordered.trainer->apply();
  EXPECT_EQ(got.grad_norm, want.grad_norm);
  EXPECT_EQ(got.micro_batches, want.micro_batches);
  EXPECT_EQ(got.sums.tokens, want.sums.tokens);
}

TEST(Pass, GradientsAreTakenAsTheyAreUnlessThereIsACount) {
  const data::MicroBatch batch = packed();
  const auto norm = [&](std::vector<double> counts) {
    Fixture fixture({"", true});
    for (const double count : counts) {
      const std::unique_ptr<Pass> pass = fixture.trainer->forward(batch, kLogProbs, nullptr);
      pass->set_gradient(Output::log_probs, minus_ones(*pass));
      fixture.trainer->backward(*pass, count, nullptr);
    }
    double squares = 0;
    for (const double g : gradient_values(*fixture.trainer)) squares += g * g;
    return std::pair(fixture.trainer->apply().grad_norm, std::sqrt(squares));
  };
  const auto [plain, sum] = norm({0});
  EXPECT_NEAR(plain, sum, 1e-6 * sum);
  EXPECT_NEAR(norm({8}).first, sum / 8, 1e-6 * sum);
  EXPECT_NEAR(norm({3, 5}).first, 2 * sum / 8, 1e-6 * sum);
  EXPECT_NEAR(norm({0, 5}).first, 2 * sum / 5, 1e-6 * sum);
}

TEST(Pass, MemoryIsHeldUntilBackwardAndOutputsAsLongAsSomebodyHoldsThem) {
  Fixture fixture({"", true});
  const data::MicroBatch batch = packed();
  const auto used = [&] { return fixture.runtime->memory->usage().current_total; };
  const uint64_t rows = batch.tokens.size(), log_probs = (rows * 4 + 63) / 64 * 64, logits = rows * 64 * 4;
  {  // The first one makes the program, and may enlarge the workspace for good.
    fixture.trainer->forward(batch, kAll, nullptr);
  }
  const uint64_t before = used();
  std::unique_ptr<Pass> pass = fixture.trainer->forward(batch, {true, true, false}, nullptr);
  const uint64_t activations = fixture.trainer->memory()->usage().current[static_cast<size_t>(Category::kActivations)];
  EXPECT_GT(used() - before, log_probs + logits + 100000);  // the activations of a micro-batch
  EXPECT_GT(activations, 100000u);
  pass->set_gradient(Output::log_probs, minus_ones(*pass));
  fixture.trainer->backward(*pass, 0, nullptr);
  EXPECT_LE(used() - before, log_probs + logits + 128);
  EXPECT_GE(used() - before, rows * 4 + logits);
  const Tensor kept = pass->output(Output::logits);
  const float first = kept.as<float>()[0];
  pass.reset();
  EXPECT_LE(used() - before, logits + 64);
  EXPECT_EQ(kept.as<float>()[0], first);

  pass = forward(*fixture.model, fixture.adapter.get(), batch, kLogProbs, nullptr);
  EXPECT_LE(used() - before, logits + 64 + log_probs + 64);  // no gradients: nothing but the output
  pass = fixture.trainer->forward(batch, kLogProbs, nullptr);
  pass.reset();
  EXPECT_LE(used() - before, logits + 64);
}

TEST(Pass, MisuseIsNamed) {
  Fixture fixture({"", true});
  const data::MicroBatch batch = packed();
  const auto make = [&] { return fixture.trainer->forward(batch, {true, false, true}, nullptr); };
  const auto rows = static_cast<int64_t>(batch.tokens.size());
  const auto values = [&](int64_t count) { return std::vector<float>(static_cast<size_t>(count), 1.0f); };

  std::unique_ptr<Pass> pass = make();
  expect_error(Code::kFailedPrecondition, "no output of this pass was given a gradient",
               [&] { fixture.trainer->backward(*pass, 0, nullptr); });
  expect_error(Code::kNotFound, "no output 'logits'", [&] { pass->set_gradient(Output::logits, lend(values(64), {1, 64})); });
  expect_error(Code::kInvalidArgument, "must be f32 [" + std::to_string(rows) + "]",
               [&] { pass->set_gradient(Output::log_probs, lend(values(rows - 1), {rows - 1})); });
  expect_error(Code::kInvalidArgument, "must be f32", [&] {
    pass->set_gradient(Output::log_probs, Tensor(nullptr, nullptr, DType::f64, {rows}));
  });
  pass->set_gradient(Output::log_probs, minus_ones(*pass));
  for (const double count : {-1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    expect_error(Code::kInvalidArgument, "count", [&] { fixture.trainer->backward(*pass, count, nullptr); });
  }
  fixture.trainer->backward(*pass, 0, nullptr);
  expect_error(Code::kFailedPrecondition, "backward already", [&] { fixture.trainer->backward(*pass, 0, nullptr); });
  expect_error(Code::kFailedPrecondition, "backward already", [&] { pass->set_gradient(Output::log_probs, minus_ones(*pass)); });

  pass = make();
  pass->set_gradient(Output::log_probs, minus_ones(*pass));
  fixture.trainer->apply();
  expect_error(Code::kFailedPrecondition, "weights have changed", [&] { fixture.trainer->backward(*pass, 0, nullptr); });

  pass = forward(*fixture.model, fixture.adapter.get(), batch, kLogProbs, nullptr);
  pass->set_gradient(Output::log_probs, minus_ones(*pass));
  expect_error(Code::kFailedPrecondition, "without gradients", [&] { fixture.trainer->backward(*pass, 0, nullptr); });

  data::MicroBatch bare = batch;
  std::fill(bare.targets.begin(), bare.targets.end(), data::kIgnore);
  expect_error(Code::kInvalidArgument, "no target", [&] { fixture.trainer->forward(bare, kLogProbs, nullptr); });
  pass = fixture.trainer->forward(bare, {false, true, true}, nullptr);  // logits need none
  pass->set_gradient(Output::hidden_states, pass->output(Output::hidden_states));
  fixture.trainer->backward(*pass, 0, nullptr);

  expect_error(Code::kInvalidArgument, "'entropy' is none of log_probs, logits, hidden_states", [] { parse_output("entropy"); });
}

TEST(Pass, CancellingDropsTheGradients) {
  Fixture fixture({"", true});
  const data::MicroBatch batch = packed();
  const std::atomic<bool> cancel{true};
  expect_error(Code::kCancelled, "cancelled", [&] { fixture.trainer->forward(batch, kLogProbs, &cancel); });
  fixture.trainer->accumulate(batch, nullptr);
  const std::unique_ptr<Pass> pass = fixture.trainer->forward(batch, kLogProbs, nullptr);
  pass->set_gradient(Output::log_probs, minus_ones(*pass));
  expect_error(Code::kCancelled, "cancelled", [&] { fixture.trainer->backward(*pass, 0, &cancel); });
  const std::vector<double> gradient = gradient_values(*fixture.trainer);
  EXPECT_EQ(gradient, std::vector<double>(gradient.size(), 0.0));
  expect_error(Code::kFailedPrecondition, "nothing was accumulated", [&] { fixture.trainer->apply(); });
}

}  // namespace
}  // namespace inlaid::train

// The open head in f64 on the reference kernels: a loss of a host's own, made of all outputs, against central differences.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "sdk/autograd/replay.h"
#include "sdk/ops/ops.h"

namespace inlaid::ops {
namespace {

using autograd::Extent;

struct Case {
  std::string name;
  double soft_cap = 0;
  bool train_x = true, train_weight = true;
  bool loss = true, logits = true, hidden = true;  // outputs of which the host's loss is made
};

constexpr int64_t kRows = 300, kWidth = 5, kVocabulary = 7;  // more rows than a chunk has

std::vector<double> random_values(size_t count, uint32_t seed, double size) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal(0, size);
  std::vector<double> values(count);
  for (double& value : values) value = normal(random);
  return values;
}

// x is an embedding of as many tokens as there are rows, so that the gradient of its table is the gradient of x.
class Harness {
 public:
  explicit Harness(const Case& c) : case_(c) {
    autograd::Recorder recorder({kRows + 4, 2}, DType::f64, true);
    const ValueId table = recorder.parameter({"x", {kRows, kWidth}, DType::f64, c.train_x});
    const ValueId weight = recorder.parameter({"weight", {kVocabulary, kWidth}, DType::f64, c.train_weight});
    const ValueId x = embedding(recorder, table, 1.0);
    program_ = recorder.finish({open_head(recorder, x, {weight, c.soft_cap})}, kernels::reference_kernels(), 1);
    for (int64_t row = 0; row < kRows; ++row) {
      tokens_.push_back(static_cast<int32_t>(row));
      if (row % 10 == 3) continue;  // no target there
      target_rows_.push_back(static_cast<int32_t>(row));
      target_ids_.push_back(static_cast<int32_t>(row * 5 % kVocabulary));
    }
    activations_.resize(program_.activation_bytes + 64);
    workspace_.resize(program_.workspace_bytes + 64);
  }

  // The host's loss: sums of losses, logits and rows of x with the weights given_*.
  double run(bool backward) {
    std::fill(activations_.begin(), activations_.end(), std::byte{0xAB});
    std::vector<double> logits(static_cast<size_t>(kRows * kVocabulary), NAN);
    const std::vector<int32_t> cu = {0, static_cast<int32_t>(kRows)};
    autograd::Binding binding;
    binding.activations = activations_.data();
    binding.inputs[static_cast<size_t>(autograd::Input::tokens)] = tokens_.data();
    binding.inputs[static_cast<size_t>(autograd::Input::cu_seqlens)] = cu.data();
    binding.inputs[static_cast<size_t>(autograd::Input::target_ids)] = target_ids_.data();
    binding.inputs[static_cast<size_t>(autograd::Input::target_rows)] = target_rows_.data();
    for (int i = 0; i < 2; ++i) {
      binding.parameters.push_back(parameters[i].data());
      gradients[i].assign(parameters[i].size(), 0.0);
      binding.gradients.push_back((i == 0 ? case_.train_x : case_.train_weight) ? gradients[i].data() : nullptr);
    }
    binding.host = {case_.logits ? logits.data() : nullptr, nullptr, nullptr, nullptr};
    Device device = Device::cpu(kernels::reference_kernels(), kernels::serial_executor(), workspace_.data(), workspace_.size());
    const autograd::Extents extents{kRows, static_cast<int64_t>(target_rows_.size()), 1, 0};
    autograd::Replay replay(program_, device, binding, extents, nullptr);
    replay.forward();
    double sum = 0;
    const auto* losses = replay.view(program_.outputs[0]).as<double>();
    for (size_t i = 0; case_.loss && i < target_rows_.size(); ++i) sum += given_loss_[i] * losses[i];
    for (size_t i = 0; case_.logits && i < logits.size(); ++i) sum += given_logits_[i] * logits[i];
    for (size_t i = 0; case_.hidden && i < given_hidden_.size(); ++i) sum += given_hidden_[i] * parameters[0][i];
    if (!backward) return sum;
    binding.host[kLossGradient] = case_.loss ? given_loss_.data() : nullptr;
    binding.host[kLogitsGradient] = case_.logits ? given_logits_.data() : nullptr;
    binding.host[kHiddenGradient] = case_.hidden ? given_hidden_.data() : nullptr;
    replay.backward();
    return sum;
  }

  std::vector<double> parameters[2] = {random_values(kRows * kWidth, 1, 1), random_values(kVocabulary * kWidth, 2, 1)};
  std::vector<double> gradients[2];

 private:
  Case case_;
  autograd::Program program_;
  std::vector<int32_t> tokens_, target_rows_, target_ids_;
  std::vector<std::byte> activations_, workspace_;
  std::vector<double> given_loss_ = random_values(kRows, 3, 1), given_logits_ = random_values(kRows * kVocabulary, 4, 1),
                      given_hidden_ = random_values(kRows * kWidth, 5, 1);
};

class OpenHeadGradient : public testing::TestWithParam<Case> {};

TEST_P(OpenHeadGradient, EqualsCentralDifferences) {
  Harness harness(GetParam());
  harness.run(true);
  const std::vector<double> analytic[2] = {harness.gradients[0], harness.gradients[1]};
  const bool trains[2] = {GetParam().train_x, GetParam().train_weight};
  constexpr double kStep = 1e-5;
  for (int p = 0; p < 2; ++p) {
    if (!trains[p]) {
      EXPECT_EQ(analytic[p], std::vector<double>(analytic[p].size(), 0.0));
      continue;
    }
    for (size_t i = 0; i < analytic[p].size(); i += p == 0 ? 37 : 3) {
      double& value = harness.parameters[p][i];
      const double saved = value;
      value = saved + kStep;
      const double above = harness.run(false);
      value = saved - kStep;
      const double below = harness.run(false);
      value = saved;
      const double numeric = (above - below) / (2 * kStep);
      EXPECT_NEAR(analytic[p][i], numeric, 1e-6 * (1 + std::abs(numeric))) << (p == 0 ? "x" : "weight") << "[" << i << "]";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Options, OpenHeadGradient,
    testing::Values(Case{"all"}, Case{"all_capped", 1.5}, Case{"loss", 0, true, true, true, false, false},
                    Case{"loss_capped", 1.5, true, true, true, false, false},
                    Case{"logits", 0, true, true, false, true, false},
                    Case{"logits_capped", 1.5, true, true, false, true, false},
                    Case{"hidden", 0, true, true, false, false, true}, Case{"head_frozen", 1.5, true, false},
                    Case{"head_alone", 0, false, true}, Case{"head_alone_capped", 1.5, false, true}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace inlaid::ops

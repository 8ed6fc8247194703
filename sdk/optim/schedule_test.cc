#include "sdk/optim/schedule.h"

#include <gtest/gtest.h>

#include <vector>

#include "sdk/base/error.h"
#include "sdk/base/file_system.h"

namespace inlaid::optim {
namespace {

LearningRateSchedule schedule(const std::string& optim, int64_t total) {
  return LearningRateSchedule(config::Config::parse("{\"optim\":" + optim + "}"), total);
}

TEST(Schedule, EqualsTransformers) {
  const std::string path = INLAID_SOURCE_DIR "/tests/golden/schedule/schedules.json";
  const Json golden = parse_json(read_text(posix_file_system(), path), path);
  ASSERT_EQ(golden["cases"].size(), 15u);
  for (const Json& c : golden["cases"]) {
    const LearningRateSchedule ours = schedule(to_text(c["optim"]), c["total_steps"].get<int64_t>());
    const std::vector<double> theirs = c["factors"].get<std::vector<double>>();
    for (size_t step = 0; step < theirs.size(); ++step) {
      EXPECT_NEAR(ours.multiplier(static_cast<int64_t>(step)), theirs[step], 1e-15)
          << to_text(c["optim"]) << " step " << step;
    }
  }
}

TEST(Schedule, WarmupRatioRoundsUp) {
  EXPECT_EQ(schedule(R"({"warmup_ratio":0.1})", 100).warmup_steps(), 10);
  EXPECT_EQ(schedule(R"({"warmup_ratio":0.1})", 101).warmup_steps(), 11);
  EXPECT_EQ(schedule(R"({"warmup_ratio":0.001})", 5).warmup_steps(), 1);
  EXPECT_EQ(schedule(R"({"warmup_steps":7})", 5).warmup_steps(), 7);
  EXPECT_EQ(schedule("{}", 5).warmup_steps(), 0);
}

TEST(Schedule, RefusesPhasesThatDoNotFit) {
  const char* wsd = R"({"lr_scheduler_type":"warmup_stable_decay","warmup_steps":3,)"
                    R"("lr_scheduler_kwargs":{"num_decay_steps":5}})";
  EXPECT_NO_THROW(schedule(wsd, 8));
  EXPECT_THROW(schedule(wsd, 7), Error);
  EXPECT_THROW(schedule(wsd, 2), Error);
  EXPECT_THROW(schedule("{}", 0), Error);
}

TEST(Schedule, ZeroLearningRateIsNoDivision) {
  const auto zero = schedule(
      R"({"learning_rate":0,"lr_scheduler_type":"cosine_with_min_lr","lr_scheduler_kwargs":{"min_lr":0}})",
      4);
  EXPECT_EQ(zero.multiplier(0), 1.0);
}

TEST(Decay, MatricesDecayNormsAndBiasesDoNot) {
  using Shape = std::vector<int64_t>;
  EXPECT_TRUE(decays("model.layers.0.self_attn.q_proj.weight", Shape{4, 4}));
  EXPECT_TRUE(decays("model.embed_tokens.weight", Shape{9, 4}));
  EXPECT_TRUE(decays("experts.weight", Shape{2, 4, 4}));
  EXPECT_FALSE(decays("model.norm.weight", Shape{4}));
  EXPECT_FALSE(decays("model.layers.0.self_attn.q_proj.bias", Shape{4}));
  EXPECT_FALSE(decays("scale", Shape{}));
}

}  // namespace
}  // namespace inlaid::optim

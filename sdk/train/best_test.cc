#include "sdk/train/best.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "sdk/base/error.h"

namespace inlaid::train {
namespace {

using Entries = std::vector<BestEvaluations::Entry>;

TEST(BestEvaluations, KeepsTheBestInOrder) {
  BestEvaluations best(2, 0);
  EXPECT_TRUE(best.add(1, 3.0));
  EXPECT_TRUE(best.add(2, 2.0));
  EXPECT_FALSE(best.add(3, 4.0));
  EXPECT_TRUE(best.add(4, 2.5));
  EXPECT_EQ(best.entries(), (Entries{{2, 2.0}, {4, 2.5}}));
  EXPECT_FALSE(best.add(5, 2.5)) << "of equal ones the earlier is better";
  EXPECT_FALSE(best.add(6, std::numeric_limits<double>::quiet_NaN()));
  EXPECT_EQ(best.entries(), (Entries{{2, 2.0}, {4, 2.5}}));
  EXPECT_EQ(best.since_best(), 4);
}

// Many small improvements below the threshold together do not reset patience one by one, but do once they exceed it.
TEST(BestEvaluations, Threshold) {
  BestEvaluations best(1, 0.1);
  best.add(1, 2.0);
  best.add(2, 1.95);
  EXPECT_EQ(best.since_best(), 1);
  EXPECT_EQ(best.entries(), (Entries{{2, 1.95}})) << "still the best one to keep";
  best.add(3, 1.91);
  EXPECT_EQ(best.since_best(), 2);
  best.add(4, 1.89);
  EXPECT_EQ(best.since_best(), 0);
}

TEST(BestEvaluations, StateGoesThroughJson) {
  BestEvaluations best(3, 0.01);
  for (int step = 1; step < 8; ++step) {
    best.add(step, 1.0 / 3 + std::sin(step));
    const Json state = parse_json(to_text(best.to_json()), "state");
    BestEvaluations again = BestEvaluations::from_json(state, BestEvaluations(3, 0.01));
    EXPECT_EQ(again.entries(), best.entries());
    EXPECT_EQ(again.since_best(), best.since_best());
    BestEvaluations there = best;
    EXPECT_EQ(again.add(100, 0.2), there.add(100, 0.2));
    EXPECT_EQ(again.entries(), there.entries());
    EXPECT_EQ(again.since_best(), there.since_best());
  }
  EXPECT_EQ(BestEvaluations::from_json(best.to_json(), BestEvaluations(1, 0)).entries().size(), 1u) << "fewer are kept now";
  for (const char* bad : {"[]", "{}", R"({"entries": 1, "best": null, "since_best": 0})",
                          R"({"entries": [{"step": 1}], "best": null, "since_best": 0})"}) {
    try {
      BestEvaluations::from_json(parse_json(bad, "state"), best);
      ADD_FAILURE() << bad;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::kDataLoss) << bad;
    }
  }
}

}  // namespace
}  // namespace inlaid::train

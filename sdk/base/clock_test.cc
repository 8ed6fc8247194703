#include "sdk/base/clock.h"

#include <gtest/gtest.h>

namespace inlaid {
namespace {

TEST(Clock, UtcText) {
  EXPECT_EQ(utc_text(0), "1970-01-01T00:00:00");
  EXPECT_EQ(utc_text(-1), "1969-12-31T23:59:59");
  EXPECT_EQ(utc_text(951827696), "2000-02-29T12:34:56");
  EXPECT_EQ(utc_text(1767225599), "2025-12-31T23:59:59");
  EXPECT_EQ(utc_text(253402300799), "9999-12-31T23:59:59");
  EXPECT_EQ(utc_text(253402300800), "");
  EXPECT_EQ(utc_text(-62167219200), "0000-01-01T00:00:00");
  EXPECT_EQ(utc_text(-62167219201), "");
  EXPECT_EQ(utc_text(INT64_MAX), "");
}

}  // namespace
}  // namespace inlaid

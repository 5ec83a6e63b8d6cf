#include "weir/base/log_limit.hpp"

#include <gtest/gtest.h>

namespace weir {
namespace {

TEST(LogLimit, SaysALineAtOnce_ThenOneInTheTime_WithTheNumberOfThoseLeftOut) {
  LogLimit limit(5s);
  Instant now{1h};
  EXPECT_EQ(limit.due(now), 0);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(limit.due(now += 1s), std::nullopt);
  EXPECT_EQ(limit.due(now += 2s), 3);
  EXPECT_EQ(limit.due(now += 10s), 0);
}

}  // namespace
}  // namespace weir

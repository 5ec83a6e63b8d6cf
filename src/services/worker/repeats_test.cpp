#include "repeats.hpp"

#include <gtest/gtest.h>

namespace weir::worker {
namespace {

using enum restart::StreamErrorCode;

TEST(Repeats, TheFirstOfACode_IsNews_AndTheRestIsCountedEveryFiveMinutes) {
  Repeats repeats;
  Instant now{1h};
  EXPECT_EQ(repeats.failed(tcp_timeout, now), 1);
  for (int i = 1; i < 10; ++i) EXPECT_EQ(repeats.failed(tcp_timeout, now += 30s), 0) << i;
  EXPECT_EQ(repeats.failed(tcp_timeout, now += 30s), 11);
  EXPECT_EQ(repeats.failed(tcp_timeout, now += 30s), 0);
  EXPECT_EQ(repeats.failed(tcp_refused, now), 1);
  EXPECT_EQ(repeats.failed(tcp_timeout, now), 1);
}

TEST(Repeats, AfterASuccess_TheSameCodeIsNewsAgain) {
  Repeats repeats;
  EXPECT_EQ(repeats.failed(stalled, Instant{1h}), 1);
  EXPECT_EQ(repeats.failed(stalled, Instant{1h}), 0);
  repeats.succeeded();
  EXPECT_EQ(repeats.failed(stalled, Instant{1h}), 1);
}

}  // namespace
}  // namespace weir::worker

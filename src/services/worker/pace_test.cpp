#include "pace.hpp"

#include <gtest/gtest.h>

namespace weir::worker {
namespace {

constexpr Duration kFrame = 40ms;

// How many of `pictures`, one every 40 ms, are due from `from` on.
int due_of(Pace& pace, int pictures, Duration from, Instant& now, double max_fps, Duration apart = kFrame) {
  int due = 0;
  for (int i = 0; i < pictures; ++i, now += kFrame) due += pace.due(from + i * apart, now, max_fps);
  return due;
}

TEST(Pace, TakesAsManyAsAllowed_EvenlySpaced) {
  Pace pace;
  Instant now{100s};
  EXPECT_EQ(due_of(pace, 250, 0s, now, 5), 50);
  Pace all;
  EXPECT_EQ(due_of(all, 250, -3s, now, 25), 250);
}

TEST(Pace, LatePictures_ThatCameAllAtOnce_AreTakenByTheirOwnTimes) {
  Pace pace;
  Instant now{100s};
  int due = 0;
  for (int i = 0; i < 50; ++i) due += pace.due(i * kFrame, now, 5);
  EXPECT_EQ(due, 10);
}

TEST(Pace, ReceivedOutOfOrder_CostsNothing) {
  Pace pace;
  int due = 0;
  for (int i = 0; i < 99; ++i) {
    int arrived = i % 3 == 0 ? i - 2 : i + 1;  // the P-frame before its two B-frames
    due += pace.due(i * kFrame, Instant(100s + arrived * kFrame), 25);
  }
  EXPECT_EQ(due, 99);
}

TEST(Pace, TimeThatJumps_EitherWay_NeitherStopsItNorOpensIt) {
  for (Duration to : {Duration(-1h), Duration(1h)}) {
    Pace pace;
    Instant now{100s};
    due_of(pace, 100, 10s, now, 5);
    int due = due_of(pace, 250, to, now, 5);
    EXPECT_GE(due, 50) << seconds(to);
    EXPECT_LE(due, 52) << seconds(to);
  }
}

TEST(Pace, TimeThatStandsStill_IsLookedAtNowAndThen) {
  Pace pace;
  Instant now{100s};
  EXPECT_GE(due_of(pace, 250, 0s, now, 5, 0ms), 7);
}

}  // namespace
}  // namespace weir::worker

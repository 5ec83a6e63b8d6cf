#include "weir/forward/keep_up.hpp"

#include <gtest/gtest.h>

namespace weir::forward {
namespace {

// A stream of 25 pictures a second, each leaving `late` after its time; the worker waits for none that is late.
struct Stream {
  KeepUp keep_up;
  Duration pts = 7s;
  Instant now{1000s};
  bool run(Duration for_long, Duration late, Duration later_each = {}) {
    for (Duration until = pts + for_long; pts < until; pts += 40ms, now += 40ms, late += later_each) {
      keep_up.left(pts, now + late, late == 0s);
      if (keep_up.passing(now + late)) return false;
    }
    return true;
  }
};

TEST(KeepUp, WhoeverWaitsForTheInput_IsUpToDate_HoweverLateItComes) {
  Stream stream;
  for (Duration late = 0s; late < 20s; late += 40ms, stream.pts += 40ms, stream.now += 40ms) {
    stream.keep_up.left(stream.pts, stream.now + late, true);
    EXPECT_EQ(stream.keep_up.lag(), 0s);
  }
}

TEST(KeepUp, AShortHiccup_IsForgiven_ALastingLagIsNot) {
  Stream stream;
  EXPECT_TRUE(stream.run(5s, 0s));
  EXPECT_TRUE(stream.run(2s, 2s));
  EXPECT_TRUE(stream.run(5s, 100ms));
  Instant begun = stream.now;
  EXPECT_FALSE(stream.run(10s, 2s));
  EXPECT_GE(stream.now - begun, 2900ms);
  EXPECT_LE(stream.now - begun, 3100ms);
}

TEST(KeepUp, WorkThatFallsBehindStepByStep_GivesWay) {
  Stream stream;
  EXPECT_FALSE(stream.run(60s, 0s, 10ms)) << "each picture takes 50 ms";
}

TEST(KeepUp, AfterARest_ItTriesAgain_AndRestsLongerWhereThatFails) {
  Stream stream;
  ASSERT_TRUE(stream.run(1s, 0s));
  ASSERT_FALSE(stream.run(10s, 2s));
  Instant rested = stream.now;
  stream.keep_up.left(stream.pts, stream.now, true);
  EXPECT_EQ(stream.keep_up.lag(), 2s) << "what led to the rest";
  EXPECT_TRUE(stream.keep_up.passing(rested + 59s));
  EXPECT_FALSE(stream.keep_up.passing(rested + 63s));
  stream.now = rested + 63s;
  stream.pts += 63s;
  ASSERT_TRUE(stream.run(1s, 0s));
  ASSERT_FALSE(stream.run(10s, 2s));
  EXPECT_TRUE(stream.keep_up.passing(stream.now + 110s)) << "the second rest is twice as long";
  EXPECT_FALSE(stream.keep_up.passing(stream.now + 123s));
}

TEST(KeepUp, AnotherInput_HasTimesOfItsOwn) {
  Stream stream;
  ASSERT_TRUE(stream.run(5s, 100ms));
  stream.keep_up.begin_input();
  stream.pts -= 1h;
  EXPECT_TRUE(stream.run(10s, 100ms));
}

}  // namespace
}  // namespace weir::forward

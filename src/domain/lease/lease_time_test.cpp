#include "weir/lease/lease_time.hpp"

#include "weir/lease/version.hpp"

#include <gtest/gtest.h>

namespace weir::lease {

namespace {
const WallTime kStart{std::chrono::hours(24 * 20000)};

StoreState running() {
  StoreState state;
  state.mark = kStart;
  state.lease_now = LeaseTime(100s);
  return state;
}
}  // namespace

TEST(LeaseTime, FollowsTheClock_WhileSomebodyTicks) {
  StoreState state = running();
  for (int n = 1; n <= 40; ++n) EXPECT_FALSE(tick(state, kStart + n * kTickEvery, 6s));
  EXPECT_EQ(state.lease_now, LeaseTime(110s));
  EXPECT_EQ(lease_time(state, state.mark + 100ms), LeaseTime(110s + 100ms));
}

TEST(LeaseTime, StandsStillThroughAnOutage_AndOpensAHold) {
  StoreState state = running();
  EXPECT_TRUE(tick(state, kStart + 60s, 6s));
  EXPECT_EQ(state.lease_now, LeaseTime(100s + kStepMax));
  EXPECT_EQ(state.hold_until, state.lease_now + 6s / 3 + 2s);
}

TEST(LeaseTime, NeverBelievesAStepOfTheClock) {
  for (Duration step : {Duration(-3600s), Duration(-1ms), Duration(3600s), Duration(24h * 365)}) {
    StoreState state = running();
    LeaseTime before = state.lease_now;
    EXPECT_TRUE(tick(state, kStart + step, 6s)) << step.count();
    EXPECT_GE(state.lease_now, before);
    EXPECT_LE(state.lease_now - before, kStepMax);
    EXPECT_EQ(lease_time(state, kStart + step), state.lease_now);
  }
}

TEST(LeaseTime, OpensAtMostOneHoldAMinute) {
  StoreState state = running();
  EXPECT_TRUE(tick(state, kStart + 10s, 6s));
  LeaseTime until = state.hold_until;
  EXPECT_FALSE(tick(state, kStart + 20s, 6s));
  EXPECT_EQ(state.hold_until, until);
  WallTime clock = kStart + 20s;
  for (int n = 0; n < 240; ++n) tick(state, clock += kTickEvery, 6s);
  EXPECT_TRUE(tick(state, clock + 10s, 6s));
}

TEST(LeaseTime, NewEpoch_LiesAboveEveryEarlierVersion_AndClosesTheStoreForAWhile) {
  StoreState state = running();
  state.counter = (std::int64_t{1} << kCounterBits) - 1;
  Version last = Version::make(state.epoch, state.counter);
  open_epoch(state, state.lease_now, 60s);
  EXPECT_GT(Version::make(state.epoch, 0), last);
  EXPECT_EQ(state.closed_until, state.lease_now + 60s);
  EXPECT_LT(Version::make(kEpochMax, state.counter).n, std::int64_t{1} << 53);
}

}  // namespace weir::lease

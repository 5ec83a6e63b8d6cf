#include "weir/runner/drain.hpp"

#include "parts_testing.hpp"

namespace weir::runner {
namespace {

using namespace testing;

struct DrainTest : ::testing::Test {
  DrainTest() {
    for (int i = 0; i < 5; ++i) add_held(cameras, fmt::format("c{}", i));
  }
  void order(DrainMode mode, bool room_elsewhere = true) { drain.order(mode, room_elsewhere, cameras, turn); }
  long leaving() const {
    return std::ranges::count_if(cameras, [](const auto& each) { return each.second.leaving; });
  }
  // What leaves is released at once.
  void release() {
    for (auto& [id, camera] : cameras)
      if (camera.leaving) camera.lease.holder.phase = lease::Phase::idle;
  }
  std::optional<End> ended() {
    auto ends = only<End>(turn.take());
    return ends.empty() ? std::nullopt : std::optional(ends[0]);
  }

  Turn turn = turn_at(kNow, {.drain_batch = 2, .drain_interval = 1s, .pickup_limit = 10s});
  Cameras cameras;
  Drain drain;
};

TEST_F(DrainTest, WithoutAnOrder_NobodyLeaves) {
  EXPECT_FALSE(drain.active());
  EXPECT_FALSE(drain.step(cameras, turn));
  EXPECT_EQ(leaving(), 0);
}

TEST_F(DrainTest, Soft_TheNextWaveFollowsWhenOthersHaveTakenThisOne) {
  order(DrainMode::soft);
  EXPECT_FALSE(drain.step(cameras, turn));
  EXPECT_EQ(leaving(), 2);
  release();
  pass(turn, 5s);
  drain.step(cameras, turn);
  EXPECT_EQ(leaving(), 2) << "nobody has them yet";
  for (const char* name : {"c0", "c1"}) drain.picked_up(cam(name));
  drain.step(cameras, turn);
  EXPECT_EQ(leaving(), 4);
}

TEST_F(DrainTest, Soft_AWaveThatNobodyTakes_IsWaitedForOnlySoLong_AndNotAtAllWhereNobodyHasRoom) {
  for (bool room_elsewhere : {true, false}) {
    SCOPED_TRACE(room_elsewhere);
    drain = {};
    for (auto& [id, camera] : cameras) camera.leaving = false, camera.lease.holder.phase = lease::Phase::holding;
    order(DrainMode::soft, room_elsewhere);
    drain.step(cameras, turn);
    pass(turn, 10s);
    drain.step(cameras, turn);
    EXPECT_EQ(leaving(), 2) << "they are not even released yet";
    release();
    drain.step(cameras, turn);
    EXPECT_EQ(leaving(), 4);
    release();
    pass(turn, 1s);
    drain.step(cameras, turn);
    EXPECT_EQ(leaving(), room_elsewhere ? 4 : 5);
  }
}

TEST_F(DrainTest, Soft_ACameraThatStreams_StaysWhileItsNextOwnerMayNotDialIt) {
  for (auto& [id, camera] : cameras) camera.voice.on = 1;
  order(DrainMode::soft);
  drain.step(cameras, turn);
  EXPECT_EQ(leaving(), 0);
  drain.hear({SiteId::trusted("s"), 1}, turn);
  drain.step(cameras, turn);
  EXPECT_EQ(leaving(), 1);
}

TEST_F(DrainTest, Hard_AllLeaveAtOnce_AndWorkersAreNotWaitedFor) {
  order(DrainMode::hard);
  EXPECT_TRUE(drain.step(cameras, turn));
  EXPECT_EQ(leaving(), 5);
}

TEST_F(DrainTest, CalledOff_EverybodyStays_UnlessTheRunnerStops) {
  order(DrainMode::soft);
  drain.step(cameras, turn);
  order(DrainMode::none);
  EXPECT_EQ(leaving(), 0);
  drain.step(cameras, turn);
  order(DrainMode::soft);
  pass(turn, 1s);
  drain.step(cameras, turn);
  drain.stop(kNow + 1h, turn);
  order(DrainMode::none);
  EXPECT_EQ(leaving(), 2);
  EXPECT_TRUE(drain.active());
}

TEST_F(DrainTest, AStop_IsHardAtItsDeadline) {
  drain.stop(kNow + 5s, turn);
  drain.stop(kNow + 1h, turn);
  pass(turn, 4999ms);
  EXPECT_FALSE(drain.step(cameras, turn));
  pass(turn, 1ms);
  EXPECT_TRUE(drain.step(cameras, turn)) << "the first word counts";
}

TEST_F(DrainTest, AStop_EndsTheRunnerWhenNothingIsLeft) {
  drain.end_if_done({}, false, turn);
  EXPECT_FALSE(ended()) << "nobody asked it to stop";
  drain.stop(kNow + 5s, turn);
  drain.end_if_done(cameras, false, turn);
  EXPECT_FALSE(ended());
  drain.end_if_done({}, true, turn);
  EXPECT_FALSE(ended()) << "a worker is left";
  drain.end_if_done({}, false, turn);
  auto end = ended();
  ASSERT_TRUE(end);
  EXPECT_EQ(end->code, 0);
  drain.end_if_done({}, false, turn);
  EXPECT_FALSE(ended()) << "once";
}

TEST_F(DrainTest, AStopThatNobodyAnswers_EndsALeasesTimeAfterItsDeadline) {
  drain.stop(kNow + 5s, turn);
  pass(turn, 5s + turn.policy.lease.ttl - 1ms);
  drain.end_if_done(cameras, true, turn);
  EXPECT_FALSE(ended());
  pass(turn, 1ms);
  drain.end_if_done(cameras, true, turn);
  auto end = ended();
  ASSERT_TRUE(end);
  EXPECT_EQ(end->code, 40);
}

}  // namespace
}  // namespace weir::runner

// Drains, stops, cordons, and cameras that cannot be reached: how a runner lets go of what it has, or takes no more.
#include "brain_testing.hpp"

namespace weir::runner {
namespace {

using testing::Bench;
using testing::cameras;

TEST(Brain, SoftDrain_HandsOverInBatches_AndWaitsForOthers) {
  Bench bench({.drain_batch = 2});
  bench.list(cameras(6));
  bench.pass(1s);
  bench.feed(FlagsHeard{.drain = DrainMode::soft});
  bench.pass(500ms);
  EXPECT_EQ(bench.brain.summary().owned, 4);
  bench.pass(2s);
  EXPECT_EQ(bench.brain.summary().owned, 4) << "nobody has picked the first two up yet";
  for (const char* name : {"c00", "c01"})
    bench.feed(LeaseNews{.camera = CameraId::trusted(name), .runner = RunnerId::trusted("r2")});
  bench.pass(500ms);
  EXPECT_EQ(bench.brain.summary().owned, 2);
  bench.pass(20s);
  EXPECT_EQ(bench.brain.summary().owned, 0) << "where nobody has room it goes on";
  EXPECT_EQ(bench.workers_alive(), 0);
  EXPECT_EQ(bench.killed, 0) << "the idle worker, too, ends by itself";
  EXPECT_FALSE(bench.ended) << "a drained runner stays, until it is stopped";
  bench.feed(FlagsHeard{});
  bench.pass(5s);
  EXPECT_EQ(bench.brain.summary().owned, 6);
}

TEST(Brain, SoftDrain_WaitsForNobody_WhereNobodyHasRoom) {
  Bench bench({.drain_batch = 2, .pickup_limit = 60s});
  bench.list(cameras(6));
  bench.pass(1s);
  bench.feed(FlagsHeard{.drain = DrainMode::soft, .spare = 0});
  bench.pass(4s);
  EXPECT_EQ(bench.brain.summary().owned, 0);
}

TEST(Brain, HardDrain_LetsGoOfEverythingAtOnce) {
  Bench bench;
  bench.list(cameras(6));
  bench.pass(1s);
  bench.feed(FlagsHeard{.drain = DrainMode::hard});
  bench.pass(300ms);
  EXPECT_EQ(bench.brain.summary().owned, 0);
  EXPECT_EQ(bench.workers_alive(), 0);
}

TEST(Brain, Stop_DrainsAndEnds_AndItsDeadlineMakesItHard) {
  Bench bench({.drain_batch = 1, .pickup_limit = 60s});
  bench.list(cameras(3));
  bench.pass(1s);
  bench.feed(StopAsked{bench.now + 5s});
  bench.pass(4s);
  EXPECT_FALSE(bench.ended);
  bench.pass(2s);
  ASSERT_TRUE(bench.ended);
  EXPECT_EQ(bench.ended->code, 0);
  for (const auto& [camera, row] : bench.rows) EXPECT_EQ(row.owner, "");
}

TEST(Brain, Cordoned_KeepsWhatItHasAndTakesNothing) {
  Bench bench;
  bench.list(cameras(2));
  bench.pass(1s);
  bench.feed(FlagsHeard{.cordoned = true});
  bench.list(cameras(4));
  bench.pass(10s);
  EXPECT_EQ(bench.brain.summary().owned, 2);
  EXPECT_EQ(bench.brain.summary().why_not, "cordoned");
}

TEST(Brain, AnUnreachableCamera_IsOfferedToOthers_AndKeptWhereNobodyCan) {
  Bench bench;
  bench.keep_unreachable = true;
  CameraId id = CameraId::trusted("c00");
  bench.seen[id] = {.camera = id, .failures = 3, .error = restart::StreamErrorCode::tcp_refused};
  bench.list(cameras(1));
  bench.pass(3s);
  EXPECT_TRUE(bench.noted("camera.unreachable"));
  EXPECT_EQ(bench.brain.summary().owned, 1);
  EXPECT_NE(bench.speaker("c00"), 0) << "it goes on trying";
  size_t asked = std::ranges::count_if(bench.notes, [](const Note& n) { return n.event == "camera.unreachable"; });
  bench.pass(30s);
  EXPECT_EQ(std::ranges::count_if(bench.notes, [](const Note& n) { return n.event == "camera.unreachable"; }),
            static_cast<std::ptrdiff_t>(asked)) << "not again within a minute";
}

TEST(Brain, AWrongPassword_StaysWithItsOwner) {
  Bench bench;
  CameraId id = CameraId::trusted("c00");
  bench.seen[id] = {.camera = id, .failures = 30, .error = restart::StreamErrorCode::rtsp_auth_failed};
  bench.list(cameras(1));
  bench.pass(5s);
  EXPECT_FALSE(bench.noted("camera.unreachable"));
}

}  // namespace
}  // namespace weir::runner

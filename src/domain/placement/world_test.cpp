#include "testing.hpp"

#include <gtest/gtest.h>

namespace weir::placement {
namespace {

using namespace testing;

TEST(Circuit, OpensAfterFailuresInARow_AndLeavesTheWorkerAloneForAGrowingTime) {
  CircuitPolicy policy;
  Circuit circuit;
  Instant now = kNow;
  circuit.failed(now, policy);
  circuit.failed(now, policy);
  EXPECT_EQ(circuit.admits(now), Admits::everything);
  for (Duration pause : {10s, 20s, 40s, 80s, 160s, 300s, 300s}) {
    circuit.failed(now, policy);
    EXPECT_EQ(circuit.admits(now + pause - 1us), Admits::nothing);
    EXPECT_EQ(circuit.admits(now + pause), Admits::one);
    now += pause;
  }
}

TEST(Circuit, FailureDuringThePause_DoesNotProlongIt) {
  CircuitPolicy policy;
  Circuit circuit;
  for (int n = 0; n < 50; ++n) circuit.failed(kNow, policy);
  EXPECT_EQ(circuit.admits(kNow + 10s), Admits::one);
}

TEST(Circuit, SuccessClosesIt_AndForgetsTheFailures) {
  CircuitPolicy policy;
  Circuit circuit;
  for (int n = 0; n < 3; ++n) circuit.failed(kNow, policy);
  circuit.succeeded();
  circuit.failed(kNow, policy);
  circuit.failed(kNow, policy);
  EXPECT_EQ(circuit.admits(kNow), Admits::everything);
}

TEST(World, ConfirmedAssignmentIsActive_AndItsWorkersCircuitCloses) {
  World world = world_of(1, 1);
  world.workers[url(0)].circuit = {.openings = 2, .until = kNow};
  planned(world);
  EXPECT_EQ(world.assignments[name(0)].status, Status::pending);
  EXPECT_TRUE(confirm(world, name(0), kNow + 1s));
  EXPECT_EQ(world.assignments[name(0)].status, Status::active);
  EXPECT_EQ(world.assignments[name(0)].since, kNow + 1s);
  EXPECT_EQ(world.workers[url(0)].circuit, Circuit{});
  EXPECT_TRUE(confirm(world, name(0), kNow + 9s));
  EXPECT_EQ(world.assignments[name(0)].since, kNow + 1s) << "a second report changes nothing";
  EXPECT_FALSE(confirm(world, "unknown;unknown", kNow));
  EXPECT_FALSE(refuse(world, "unknown;unknown", "", kNow, {}));
}

TEST(World, RefusedAssignmentRecovers_AndCountsItsAttempts) {
  World world = world_of(1, 1);
  planned(world);
  ASSERT_TRUE(refuse(world, name(0), "not reported", kNow + 5s, {}));
  EXPECT_EQ(world.assignments[name(0)].status, Status::recovering);
  EXPECT_EQ(world.assignments[name(0)].attempts, 1);
  EXPECT_EQ(world.workers[url(0)].circuit.failures, 1);
  EXPECT_FALSE(refuse(world, name(0), "again", kNow + 6s, {})) << "no worker is on it";
  EXPECT_FALSE(confirm(world, name(0), kNow + 6s)) << "too late: it looks for another place";
}

TEST(World, AttemptsOfAnAssignmentThatRanStably_BeginAnew) {
  for (Duration ran : {59s, 60s}) {
    World world = world_of(1, 1);
    planned(world);
    world.assignments[name(0)].attempts = 3;
    confirm(world, name(0), kNow);
    refuse(world, name(0), "gone", kNow + ran, {});
    EXPECT_EQ(world.assignments[name(0)].attempts, ran < 60s ? 4 : 1);
  }
}

TEST(World, SetOfOnlineWorkers_ChangesWithWhoIsOnline) {
  World world = world_of(2, 0);
  std::uint64_t both = workers_online(world);
  world.workers[url(0)].cpu_percent = 50;
  EXPECT_EQ(workers_online(world), both);
  world.workers[url(0)].online = false;
  EXPECT_NE(workers_online(world), both);
}

}  // namespace
}  // namespace weir::placement

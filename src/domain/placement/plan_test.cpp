#include "testing.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace weir::placement {
namespace {

using namespace testing;

TEST(PlacementScore, WeighsLoadCpuAndMemory_AndCountsUnknownAsNothing) {
  EXPECT_DOUBLE_EQ(score(100, 100, 100), 100);
  EXPECT_DOUBLE_EQ(score(50, 20, 40), 20 + 7 + 10);
  EXPECT_DOUBLE_EQ(score(50, std::nullopt, std::nullopt), 20);
  EXPECT_DOUBLE_EQ(score(50, std::nan(""), std::nan("")), 20);
  EXPECT_DOUBLE_EQ(score(0, -5000, 5000), 25) << "a worker cannot talk itself out of the range";
}

TEST(PlacementPlan, EachPlacementRaisesTheLoadThatTheNextOneSees) {
  World world = world_of(3, 9);
  Plan made = planned(world);
  EXPECT_EQ(made.assign.size(), 9u);
  for (int n = 0; n < 3; ++n) EXPECT_EQ(load_of(world, url(n)), 3);
  EXPECT_EQ(made.assign[0], (Assign{name(0), "", url(0), Why::added})) << "equal scores go by URL";
}

TEST(PlacementPlan, LoadCountsInPercentOfTheCapacity) {
  World world = world_of(2, 30);
  world.workers[url(0)].capacity = 200;
  planned(world);
  EXPECT_EQ(load_of(world, url(0)), 20);
  EXPECT_EQ(load_of(world, url(1)), 10);
}

TEST(PlacementPlan, BusyProcessorCountsAsLoad) {
  World world = world_of(2, 40);
  world.workers[url(0)].cpu_percent = 20;  // 7 points: as much as 17.5 subscriptions
  planned(world);
  EXPECT_EQ(load_of(world, url(0)), 11);
  EXPECT_EQ(load_of(world, url(1)), 29);
}

TEST(PlacementPlan, WhatDoesNotFit_WaitsWithAReason) {
  World world = world_of(2, 5, 2);
  Plan made = planned(world);
  EXPECT_EQ(made.assign.size(), 4u);
  ASSERT_EQ(made.wait.size(), 1u);
  EXPECT_EQ(made.wait[0], (Wait{name(4), "", "every online worker is full", Status::pending}));
  EXPECT_TRUE(planned(world, kNow + 30s).empty()) << "what still waits for the same reason is not repeated";
  world.desired.erase(name(0));
  made = planned(world, kNow + 60s);
  EXPECT_EQ(made.drop, (std::vector<Drop>{{name(0), url(0)}}));
  EXPECT_EQ(made.assign, (std::vector<Assign>{{name(4), "", url(0), Why::added}}));
}

TEST(PlacementPlan, WithoutWorkers_NewSubscriptionsWait_AndThoseThatRanFail) {
  World world = world_of(1, 1);
  planned(world);
  confirm_all(world);
  world.workers[url(0)].online = false;
  world.desired[name(1)] = {.revision = 1};
  Plan made = planned(world);
  EXPECT_EQ(made.fail, (std::vector<Fail>{{name(0), url(0), "no worker is online"}}));
  EXPECT_EQ(made.wait, (std::vector<Wait>{{name(1), "", "no worker is online", Status::pending}}));
  EXPECT_TRUE(planned(world, kNow + 1h).empty());
  world.workers[url(0)].online = true;
  made = planned(world);
  EXPECT_EQ(made.assign.size(), 2u);
  EXPECT_EQ(made.assign[0].subscription, name(0)) << "what ran before goes first";
}

TEST(PlacementPlan, OrphansGetTheLastPlaces) {
  World world = world_of(2, 4, 4);
  planned(world);
  confirm_all(world);
  world.desired["a;a"] = {.revision = 1};  // before all others by name
  world.workers[url(0)].online = false;
  world.workers[url(1)].capacity = 4;
  Plan made = planned(world);
  ASSERT_EQ(made.assign.size(), 2u);
  for (const Assign& each : made.assign) {
    EXPECT_EQ(each.why, Why::orphaned);
    EXPECT_EQ(each.from, url(0));
    EXPECT_EQ(each.worker, url(1));
  }
  ASSERT_EQ(made.wait.size(), 1u);
  EXPECT_EQ(made.wait[0].subscription, "a;a");
}

TEST(PlacementPlan, ChangedSubscription_IsToldToItsWorkerAgain) {
  World world = world_of(2, 2);
  planned(world);
  confirm_all(world);
  world.desired[name(0)].revision = 2;
  Plan made = planned(world, kNow + 1s);
  EXPECT_EQ(made.assign, (std::vector<Assign>{{name(0), url(0), url(0), Why::changed}}));
  EXPECT_EQ(world.assignments[name(0)].status, Status::pending);
  EXPECT_TRUE(planned(world, kNow + 1s).empty());
}

TEST(PlacementPlan, NewMaster_AdoptsWhatWorkersRun) {
  World world = world_of(3, 3);
  world.workers[url(2)].reported = {name(0), name(1), "nobody;wants"};
  world.workers[url(1)].reported = {name(1)};
  Plan made = planned(world);
  EXPECT_EQ(made.assign[0], (Assign{name(1), "", url(1), Why::adopted})) << "two run it: the first by URL keeps it";
  EXPECT_EQ(made.assign[1], (Assign{name(0), "", url(2), Why::adopted}));
  EXPECT_EQ(made.assign[2], (Assign{name(2), "", url(0), Why::added}));
}

TEST(PlacementPlan, RefusedSubscription_GoesElsewhere_AndBackOnlyWhereThereIsNoOther) {
  World world = world_of(2, 1);
  planned(world);
  refuse(world, name(0), "not reported", kNow, {});
  world.workers[url(1)].cpu_percent = 100;
  Plan made = planned(world);
  EXPECT_EQ(made.assign, (std::vector<Assign>{{name(0), url(0), url(1), Why::retried}}));
  refuse(world, name(0), "not reported", kNow, {});
  world.workers[url(0)].online = false;
  made = planned(world);
  EXPECT_EQ(made.assign, (std::vector<Assign>{{name(0), url(1), url(1), Why::retried}}));
}

// One subscription that no worker runs, planned until its attempts are used up.
World exhausted() {
  World world = world_of(2, 1);
  Policy policy;
  policy.circuit.tolerated = 100;
  for (int n = 0; n < policy.attempts_max; ++n) {
    EXPECT_EQ(planned(world, kNow, policy).assign.size(), 1u);
    refuse(world, name(0), "not reported", kNow, policy);
  }
  return world;
}

TEST(PlacementPlan, SubscriptionWhoseAttemptsAreUsedUp_FailsUntilSomethingChanges) {
  World world = exhausted();
  Plan made = planned(world);
  ASSERT_EQ(made.fail.size(), 1u);
  EXPECT_EQ(made.fail[0].reason, "5 attempts failed; the last one: not reported");
  EXPECT_EQ(made.fail[0].from, url(0));
  EXPECT_TRUE(planned(world, kNow + 1h).empty());
  World row_changed = world, worker_came = world, worker_left = world;
  row_changed.desired[name(0)].revision = 2;
  worker_came.workers[url(7)] = {.online = true};
  worker_left.workers[url(0)].online = false;
  for (World* changed : {&row_changed, &worker_came, &worker_left}) {
    made = planned(*changed, kNow + 1h);
    ASSERT_EQ(made.assign.size(), 1u);
    EXPECT_EQ(changed->assignments[name(0)].attempts, 0);
  }
}

TEST(PlacementPlan, WorkerThatKeepsFailing_IsLeftAlone_ThenTriedWithOne) {
  World world = world_of(1, 5);
  planned(world);
  for (int n = 0; n < 3; ++n) refuse(world, name(n), "not reported", kNow, {});
  Plan made = planned(world, kNow + 9s);
  EXPECT_TRUE(made.assign.empty());
  ASSERT_EQ(made.wait.size(), 3u);
  EXPECT_EQ(made.wait[0].status, Status::recovering);
  EXPECT_NE(made.wait[0].reason.find("left alone"), std::string::npos);
  confirm_all(world, kNow + 9s);
  world.workers[url(0)].circuit = {.openings = 1, .until = kNow + 10s};
  made = planned(world, kNow + 10s);
  EXPECT_EQ(made.assign.size(), 1u) << "on trial";
  EXPECT_TRUE(planned(world, kNow + 11s).empty());
  confirm_all(world, kNow + 12s);
  EXPECT_EQ(planned(world, kNow + 12s).assign.size(), 2u);
}

TEST(PlacementPlan, SubscriptionsThatNobodyCanRun_DoNotTakeTheTrialFromOthers) {
  World world = world_of(1, 4);
  planned(world);
  for (int n = 0; n < 4; ++n) refuse(world, name(n), "not reported", kNow, {});  // the worker's pause begins
  world.desired["z;z"] = {.revision = 1};                                        // after all others by name
  EXPECT_TRUE(planned(world).assign.empty());
  EXPECT_EQ(planned(world, kNow + 10s).assign, (std::vector<Assign>{{"z;z", "", url(0), Why::added}}));
  confirm(world, "z;z", kNow + 11s);
  EXPECT_EQ(planned(world, kNow + 11s).assign.size(), 4u) << "its success ended the trial";
}

TEST(PlacementPlan, WorkerWhoseCapacityShrank_LosesItsLastSubscriptionsOnly) {
  World world = world_of(2, 8);
  planned(world);
  confirm_all(world);
  world.workers[url(0)].capacity = 2;
  Plan made = planned(world);
  EXPECT_EQ(made.assign, (std::vector<Assign>{{name(4), url(0), url(1), Why::crowded},
                                              {name(6), url(0), url(1), Why::crowded}}));
}

TEST(PlacementMoves, AddedWorker_TakesLoadInBoundedSteps) {
  World world = world_of(2, 100);
  planned(world);
  confirm_all(world);
  world.workers[url(2)] = {.online = true};
  Policy policy{.gain_min = 1};
  EXPECT_TRUE(planned(world, kNow + 59s, policy).empty()) << "the cooldown of what was just placed";
  Instant now = kNow;
  for (int round = 1; round <= 3; ++round) {
    now += 60s;
    Plan made = planned(world, now, policy);
    EXPECT_EQ(made.move.size(), 10u);
    for (const Move& each : made.move) EXPECT_EQ(each.worker, url(2));
    EXPECT_TRUE(planned(world, now + 59s, policy).empty()) << "the cooldown after moves";
    confirm_all(world, now);
  }
  EXPECT_TRUE(planned(world, now + 60s, policy).move.size() <= 2);
  EXPECT_NEAR(load_of(world, url(2)), 33, 3);
}

TEST(PlacementMoves, GainUnderTheThreshold_MovesNothing) {
  World world = world_of(2, 20);
  planned(world);
  confirm_all(world);
  world.workers[url(2)] = {.online = true};
  EXPECT_TRUE(planned(world, kNow + 1h).empty()) << "10 of 100 are 4 points, less than 10";
  world.workers[url(0)].cpu_percent = 60;
  EXPECT_FALSE(planned(world, kNow + 1h).move.empty());
}

TEST(PlacementMoves, SubscriptionThatIsNotActive_IsNotMoved) {
  World world = world_of(1, 40, 40);
  planned(world);
  world.workers[url(1)] = {.online = true};
  EXPECT_TRUE(planned(world, kNow + 1h).empty());
  confirm(world, name(3), kNow + 1h);
  Plan made = planned(world, kNow + 2h);
  ASSERT_EQ(made.move.size(), 1u);
  EXPECT_EQ(made.move[0].subscription, name(3));
}

}  // namespace
}  // namespace weir::placement

#include "weir/stream/memory.hpp"

#include "testing.hpp"

namespace weir::stream {
namespace {

using testing::forwarding_settings;
using testing::World;
using Orders = std::vector<std::string>;

// The orchestrator is replaced: the next one has the stored text, the children that live, and another clock.
World restarted(const World& before, Instant now, bool children_live = true) {
  World world = before;
  Memory memory = remember(before.state, before.now);
  auto read = read_memory(*json::parse_text(json::to_text(write_memory(memory))));
  EXPECT_TRUE(read);
  EXPECT_EQ(*read, memory);
  world.now = now;
  world.state = recall(*read, now);
  world.held = world.silent = world.asked_lease = world.asked_fresh = world.asked_release = false;
  world.orders.clear();
  world.feed(SettingsChanged{before.state.settings});
  EXPECT_TRUE(world.last.empty()) << "nothing is done before the children are known";
  if (!children_live) world.processes.clear();
  ChildrenFound found;
  for (const testing::Process& each : world.processes) {
    Found process{each.run_id, each.instance, each.version, now, {}};
    (each.role == Role::worker ? found.worker : found.forwarder) = process;
  }
  world.feed(found);
  return world;
}

TEST(StreamMemory, AnOrchestratorThatIsBack_AdoptsItsChildren_AndInterruptsNothing) {
  World before = World::running();
  World world = restarted(before, Instant{7s});
  EXPECT_EQ(world.orders, (Orders{"acquire"}));
  EXPECT_TRUE(world.recorded(Change::child_adopted));
  EXPECT_EQ(world.state.phase, Phase::running);
  EXPECT_EQ(world.state.run_id, before.state.run_id);
  world.feed(LeaseGranted{{world.version}});  // the same lease, renewed
  world.look("s1", true);
  world.live_through(1h);
  EXPECT_EQ(world.orders, (Orders{"acquire"}));
}

TEST(StreamMemory, AVersionThatWasGivenBefore_IsNotGivenAgain) {
  World world = restarted(World::running(), Instant{7s}, false);
  world.asked_lease = false;
  world.held = true;
  world.feed(LeaseGranted{{world.version}});
  EXPECT_EQ(world.orders, (Orders{"acquire", "fresh"}));
  world.answer();
  EXPECT_EQ(world.state.phase, Phase::running);
}

TEST(StreamMemory, CountsDegradedAndOrders_AreKept) {
  World world = World::running(false);
  for (int i = 0; i < 6; ++i) {
    world.exit(Role::worker, 139);
    world.live_through(31s);
  }
  World next = restarted(world, Instant{3s});
  next.answer();
  next.exit(Role::worker, 139);
  EXPECT_NE(next.state.degraded, "") << "the six restarts of before count";
  next = restarted(next, Instant{1s});
  EXPECT_NE(next.state.degraded, "");
  next.answer();
  EXPECT_EQ(next.find(Role::worker), nullptr);

  world = World::running();
  world.feed(ForwardOrdered{false});
  world.feed(StopOrdered{});
  World stopping = restarted(world, Instant{2s});
  EXPECT_EQ(stopping.state.phase, Phase::stopping);
  stopping.answer();
  EXPECT_EQ(stopping.state.phase, Phase::stopped);
  EXPECT_EQ(stopping.orders.back(), "release");
  World stopped = restarted(stopping, Instant{2s});
  stopped.look("s1");
  stopped.live_through(1h);
  EXPECT_EQ(stopped.state.phase, Phase::stopped);
  EXPECT_EQ(stopped.state.orders.forward, false);
}

TEST(StreamMemory, APublisherThatWentMeanwhile_IsMissedByTheLook_AndTheSessionEnds) {
  World world = restarted(World::running(), Instant{7s});
  world.answer();
  world.look(std::nullopt);
  EXPECT_TRUE(world.recorded(Change::grace_begun)->missed);
  world.live_through(11s);
  EXPECT_EQ(world.state.phase, Phase::idle);
  EXPECT_FALSE(world.held);
}

TEST(StreamMemory, AChildOfAnotherSession_IsEnded_BeforeAnythingStarts) {
  World world = World::running(false);
  world.processes[0].run_id = "another";
  world = restarted(world, Instant{7s});
  EXPECT_EQ(world.orders, (Orders{"kill worker", "acquire"}));
  world.answer();
  EXPECT_EQ(world.state.phase, Phase::running);
}

TEST(StreamMemory, AChildWithoutAMemory_IsAdoptedWithItsRun) {
  World world = World::running(false);
  std::string run = world.state.run_id;
  world.state = {.id = world.state.id, .surveyed = false};
  world.held = false;
  world.feed(ChildrenFound{Found{run, world.processes[0].instance, world.processes[0].version, world.now, {}}, {}});
  EXPECT_EQ(world.state.run_id, run);
  world.answer();
  world.look("s1");
  EXPECT_EQ(world.state.phase, Phase::running);
  EXPECT_EQ(world.starts[Role::worker], 1);
}

TEST(StreamMemory, ChildrenWhoseLeaseAnotherHasByNow_AreKilled) {
  World world = restarted(World::running(), Instant{7s});
  world.feed(LeaseHeld{"The orchestrator on host b has this stream."});
  EXPECT_EQ(world.orders, (Orders{"acquire", "kill worker", "kill forwarder"}));
}

TEST(StreamMemory, WhatIsNoMemory_IsAnError) {
  for (const char* text : {"{}", "[]", R"({"stream_id":"../x"})", R"({"stream_id":"a","gone_for_us":-1})",
                           R"({"stream_id":"a","worker":{"window":{"restart_ages_us":["x"]}}})"})
    EXPECT_FALSE(read_memory(*json::parse_text(text))) << text;
  EXPECT_TRUE(read_memory(*json::parse_text(R"({"stream_id":"a"})"))) << "what is not there has its default";
}

}  // namespace
}  // namespace weir::stream

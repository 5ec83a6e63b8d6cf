#include "testing.hpp"

namespace weir::stream {
namespace {

using testing::forwarding_settings;
using testing::World;
using Orders = std::vector<std::string>;

TEST(StreamMachine, APublisher_GetsALeaseThenAWorker_AndAForwarderOnceThereIsAnOutput) {
  World world;
  world.feed(SettingsChanged{forwarding_settings()});
  world.ready();
  EXPECT_EQ(world.state.phase, Phase::starting);
  EXPECT_FALSE(world.state.run_id.empty());
  world.grant();
  world.up(Role::worker);
  EXPECT_EQ(world.state.phase, Phase::running);
  EXPECT_EQ(world.orders, (Orders{"acquire", "start worker"}));
  world.look("s1", false);
  EXPECT_TRUE(world.quiet()) << "the forwarder waits for the output";
  world.look("s1", true);
  EXPECT_EQ(world.orders, (Orders{"acquire", "start worker", "start forwarder"})) << "under the version of the grant";
}

// The owner before may keep its worker's connection until this one's takes its place, and its forwarder as long.
TEST(StreamMachine, AForwarder_WaitsUntilAnotherPublishesOut_ThanBeforeTheWorkerWasStarted) {
  World world;
  auto look = [&](const std::string& publisher) {
    world.now += 1ms;
    world.feed(Looked{world.now, Source{"rtmpConn", "s1", {}}, true, publisher});
  };
  world.feed(SettingsChanged{forwarding_settings()});
  world.ready();
  look("theirs");
  world.grant();
  world.up(Role::worker);
  look("theirs");
  EXPECT_EQ(world.starts[Role::forwarder], 0);
  look("ours");
  EXPECT_EQ(world.starts[Role::forwarder], 1);
}

TEST(StreamMachine, WithoutForwarding_NoForwarderStarts) {
  World world = World::running(false);
  world.look("s1", true);
  EXPECT_TRUE(world.orders.empty());
}

TEST(StreamMachine, ReadyTwice_StartsOneWorker) {
  World world;
  for (int i = 0; i < 3; ++i) world.ready();
  world.answer();
  for (int i = 0; i < 3; ++i) world.ready();
  world.answer();
  EXPECT_EQ(world.starts[Role::worker], 1);
}

TEST(StreamMachine, NotReadyWhileIdle_DoesNothing) {
  World world;
  world.gone();
  EXPECT_TRUE(world.last.empty());
  EXPECT_EQ(world.state.phase, Phase::idle);
}

TEST(StreamMachine, ReadyWithinTheGrace_ContinuesTheRun_AlsoOfANewPublisher) {
  for (std::string back : {"s1", "s2", ""}) {
    World world = World::running();
    std::string run = world.state.run_id;
    world.gone("s1");
    EXPECT_TRUE(world.recorded(Change::grace_begun));
    world.pass(9900ms);
    world.ready(back);
    EXPECT_TRUE(world.recorded(Change::session_resumed));
    world.live_through(60s);
    EXPECT_EQ(world.state.run_id, run);
    EXPECT_EQ(world.state.phase, Phase::running);
    EXPECT_TRUE(world.orders.empty()) << "nothing was started or stopped";
  }
}

TEST(StreamMachine, AfterTheGrace_ForwarderWorkerAndLeaseAreGivenUp_InThisOrder) {
  World world = World::running();
  world.gone();
  world.pass(10s);
  EXPECT_EQ(world.state.phase, Phase::stopping);
  EXPECT_EQ(world.orders, (Orders{"stop forwarder"}));
  world.exit(Role::forwarder);
  world.exit(Role::worker);
  EXPECT_EQ(world.orders, (Orders{"stop forwarder", "stop worker", "release"}));
  EXPECT_EQ(world.state.phase, Phase::stopping) << "until the lease is released";
  world.release();
  EXPECT_EQ(world.state.phase, Phase::idle);
  std::vector<Phase> through;
  for (const Action& action : world.last)
    if (const auto* record = std::get_if<Record>(&action)) through.push_back(*record->to);
  EXPECT_EQ(through, (std::vector{Phase::stopped, Phase::idle}));
}

TEST(StreamMachine, ANewSession_GetsANewRun_AlsoWhenItComesWhileStopping) {
  World world = World::running();
  std::string run = world.state.run_id;
  world.gone();
  world.pass(10s);
  world.ready("s2");
  EXPECT_EQ(world.state.phase, Phase::stopping) << "what has begun is completed";
  world.answer();
  EXPECT_EQ(world.state.phase, Phase::running);
  EXPECT_NE(world.state.run_id, run);
}

TEST(StreamMachine, TheEndOfAnOldPublisher_DoesNotStopTheNewOne) {
  World world = World::running();
  world.ready("s2");
  world.gone("s1");
  EXPECT_TRUE(world.quiet());
  EXPECT_TRUE(world.recorded(Change::gone_ignored));
  world.live_through(60s);
  EXPECT_EQ(world.state.phase, Phase::running);
  EXPECT_TRUE(world.orders.empty());
  world.gone("");
  EXPECT_TRUE(world.recorded(Change::grace_begun)) << "an unknown id may be anybody's";
}

TEST(StreamMachine, MissedHooks_AreMendedByALook_AndMarkedAsMissed) {
  World world;
  world.look("s1");
  ASSERT_TRUE(world.recorded(Change::phase));
  EXPECT_TRUE(world.recorded(Change::phase)->missed);
  world.answer();
  world.ready("s1");
  EXPECT_TRUE(world.last.empty()) << "the hook came after all";
  world.pass(1s);
  world.look("s2", true);
  EXPECT_TRUE(world.recorded(Change::session_resumed)->missed);
  world.look(std::nullopt);
  EXPECT_TRUE(world.recorded(Change::grace_begun)->missed);
  world.live_through(10s);
  EXPECT_EQ(world.state.phase, Phase::idle);
}

TEST(StreamMachine, ALookThatIsOlderThanAHook_DoesNotContradictIt) {
  World world;
  Instant asked = world.now;
  world.pass(1s);
  world.ready("s2");
  world.feed(Looked{asked, Source{"rtmpConn", "s1", {}}, false});
  EXPECT_EQ(world.state.publisher.source.id, "s2");
  world.feed(Looked{asked, std::nullopt, false});
  EXPECT_TRUE(world.state.publisher.live);
}

TEST(StreamMachine, AWorkerThatCrashes_IsStartedAgainUnderAFreshVersion_WithTheRunKept) {
  World world = World::running();
  std::string run = world.state.run_id, instance = world.state.worker.instance;
  world.exit(Role::worker, 139);
  EXPECT_EQ(world.state.phase, Phase::starting);
  EXPECT_EQ(world.recorded(Change::restart_scheduled)->delay, 500ms);
  EXPECT_TRUE(world.orders.empty());
  world.pass(500ms);
  EXPECT_EQ(world.orders, (Orders{"fresh"}));
  world.answer();
  EXPECT_EQ(world.orders, (Orders{"fresh", "start worker"}));
  EXPECT_EQ(world.state.phase, Phase::running);
  EXPECT_EQ(world.state.run_id, run);
  EXPECT_NE(world.state.worker.instance, instance);
}

TEST(StreamMachine, AForwarderThatFails_NeverTouchesTheWorker) {
  World world = World::running();
  std::string worker = world.state.worker.instance;
  for (int i = 0; i < 30; ++i) {
    if (world.find(Role::forwarder) != nullptr) world.exit(Role::forwarder, i % 2 == 0 ? 40 : 137);
    world.live_through(20s);
    world.look("s1", true);
    world.answer();
  }
  EXPECT_EQ(world.state.worker.instance, worker);
  EXPECT_EQ(world.state.phase, Phase::running);
  EXPECT_EQ(world.starts[Role::worker], 1);
  EXPECT_GT(world.starts[Role::forwarder], 6);
}

TEST(StreamMachine, AForwarderOverItsLimit_Rests_AndStartsAgain) {
  World world = World::running();
  for (int i = 0; i < 6; ++i) {
    world.exit(Role::forwarder, 40);
    EXPECT_FALSE(world.recorded(Change::forwarder_cooling));
    world.live_through(31s);
  }
  world.exit(Role::forwarder, 40);
  EXPECT_EQ(world.recorded(Change::forwarder_cooling)->delay, 60s);
  world.live_through(59s);
  EXPECT_EQ(world.find(Role::forwarder), nullptr);
  world.live_through(1s);
  EXPECT_NE(world.find(Role::forwarder), nullptr);
}

TEST(StreamMachine, AForwarderWithoutInput_WaitsForTheOutput_Uncounted) {
  World world = World::running();
  for (int i = 0; i < 20; ++i) {
    world.pass(1s);
    world.exit(Role::forwarder, 20);
    world.live_through(10s);
    EXPECT_EQ(world.find(Role::forwarder), nullptr) << "nobody has seen the output since";
    world.look("s1", true);
    world.answer();
    ASSERT_NE(world.find(Role::forwarder), nullptr);
  }
  EXPECT_EQ(world.state.forwarder.window.restarts, 0);
}

TEST(StreamMachine, ADeniedForwarder_IsTriedOnceMore_AndStaysAwayUntilSomethingChanges) {
  auto denied = [] {
    World world = World::running();
    world.exit(Role::forwarder, 30);
    world.live_through(5s);
    world.exit(Role::forwarder, 30);
    EXPECT_TRUE(world.recorded(Change::child_given_up));
    world.live_through(1h);
    EXPECT_EQ(world.find(Role::forwarder), nullptr);
    EXPECT_EQ(world.state.phase, Phase::running);
    EXPECT_EQ(world.state.degraded, "");
    return world;
  };
  World world = denied();
  world.feed(SettingsChanged{{.forward = true, .destination = Secret("rtmp://other.example/app/canary-2")}});
  world.answer();
  EXPECT_NE(world.find(Role::forwarder), nullptr);
  world = denied();
  world.feed(ForwardOrdered{true});
  world.answer();
  EXPECT_NE(world.find(Role::forwarder), nullptr);
}

World degraded() {
  World world = World::running(false);
  for (int i = 0; i < 7; ++i) {
    EXPECT_EQ(world.state.degraded, "");
    world.exit(Role::worker, 139);
    world.live_through(31s);
  }
  return world;
}

TEST(StreamMachine, AWorkerOverItsLimit_DegradesTheStream_WhichKeepsItsLeaseAndSaysWhy) {
  World world = degraded();
  EXPECT_NE(world.state.degraded.find("6 times within 10 minutes"), std::string::npos) << world.state.degraded;
  EXPECT_NE(world.state.degraded.find("signal 11"), std::string::npos);
  world.orders.clear();
  world.live_through(2h);
  EXPECT_TRUE(world.orders.empty());
  EXPECT_TRUE(world.held);
  world.ready("s1");
  world.live_through(1min);
  EXPECT_TRUE(world.orders.empty()) << "the same session";
}

TEST(StreamMachine, ANewSessionOrAnOperator_EndsDegraded) {
  World world = degraded();
  world.gone();
  world.live_through(11s);
  EXPECT_EQ(world.state.phase, Phase::idle);
  EXPECT_EQ(world.state.degraded, "");
  world.ready("s2");
  world.answer();
  EXPECT_EQ(world.state.phase, Phase::running);

  world = degraded();
  std::string run = world.state.run_id;
  world.feed(RestartOrdered{});
  EXPECT_TRUE(world.recorded(Change::recovered));
  world.answer();
  EXPECT_EQ(world.state.phase, Phase::running);
  EXPECT_EQ(world.state.run_id, run);
}

TEST(StreamMachine, ALostLease_KillsBothChildrenAtOnce) {
  World world = World::running();
  world.feed(LeaseLost{});
  EXPECT_EQ(world.orders, (Orders{"kill worker", "kill forwarder", "acquire"}));
  world.grant();
  EXPECT_EQ(world.starts[Role::worker], 1) << "not before the old one has ended";
  world.answer();
  EXPECT_EQ(world.state.phase, Phase::running);
  EXPECT_EQ(world.state.worker.window.restarts, 0) << "it was not the worker's fault";
}

TEST(StreamMachine, ALeaseThatAnotherHas_IsWaitedFor) {
  World world;
  world.ready();
  world.feed(LeaseHeld{"The orchestrator on host b has this stream."});
  EXPECT_TRUE(world.recorded(Change::lease_blocked));
  EXPECT_EQ(world.state.lease.blocked, "The orchestrator on host b has this stream.");
  world.feed(LeaseHeld{"The orchestrator on host b has this stream."});
  EXPECT_TRUE(world.last.empty()) << "said once";
  world.answer();
  EXPECT_EQ(world.state.phase, Phase::running);
  EXPECT_EQ(world.state.lease.blocked, "");
}

TEST(StreamMachine, ASilentControlPlane_StopsNothing_StartsNothing_AndEndsTheChildrenAfterTheOutageGrace) {
  World world = World::running();
  world.feed(LeaseSilent{});
  world.pass(120s);
  EXPECT_TRUE(world.orders.empty());
  world.exit(Role::forwarder, 40);
  world.pass(100s);
  EXPECT_TRUE(world.orders.empty()) << "a start needs a lease that is certain";
  World back = world;
  back.grant();
  EXPECT_EQ(back.orders, (Orders{"start forwarder"}));
  world.pass(80s);
  EXPECT_EQ(world.orders, (Orders{"kill worker"}));
  EXPECT_TRUE(world.recorded(Change::outage_ended_children));
  world.exit(Role::worker, 137);
  world.pass(1h);
  EXPECT_EQ(world.orders, (Orders{"kill worker"}));
  world.grant();
  world.answer();
  EXPECT_EQ(world.state.phase, Phase::running);
}

TEST(StreamMachine, AnOperatorsStop_HoldsForTheSession_AndARestartEndsIt) {
  World world = World::running();
  std::string run = world.state.run_id;
  world.feed(StopOrdered{});
  world.answer();
  EXPECT_EQ(world.orders, (Orders{"stop forwarder", "stop worker", "release"}));
  EXPECT_EQ(world.state.phase, Phase::stopped);
  world.orders.clear();
  world.ready("s1");
  world.look("s1");
  world.gone("s1");
  world.pass(5s);
  world.ready("s2");
  world.live_through(1h);
  EXPECT_TRUE(world.orders.empty());
  EXPECT_EQ(world.state.phase, Phase::stopped);
  World other = world;
  world.feed(RestartOrdered{});
  world.answer();
  EXPECT_EQ(world.state.phase, Phase::running);
  EXPECT_NE(world.state.run_id, run);

  other.gone("s2");
  other.live_through(10s);
  EXPECT_EQ(other.state.phase, Phase::idle);
  other.ready("s3");
  other.answer();
  EXPECT_EQ(other.state.phase, Phase::running) << "the publisher was away for longer than the grace";
}

TEST(StreamMachine, ARestart_ReplacesBothChildren_Uncounted) {
  World world = World::running();
  std::string run = world.state.run_id;
  world.feed(RestartOrdered{});
  EXPECT_EQ(world.orders, (Orders{"stop forwarder", "stop worker"}));
  world.answer();
  world.look("s1", true);
  world.answer();
  EXPECT_EQ(world.state.run_id, run);
  EXPECT_EQ(world.starts[Role::worker], 2);
  EXPECT_EQ(world.starts[Role::forwarder], 2);
  EXPECT_EQ(world.state.worker.window.restarts, 0);
}

TEST(StreamMachine, ForwardingCanBeSwitched_WithoutTouchingTheWorker) {
  World world = World::running();
  world.feed(ForwardOrdered{false});
  world.answer();
  EXPECT_EQ(world.orders, (Orders{"stop forwarder"}));
  world.feed(ForwardOrdered{std::nullopt});
  world.answer();
  EXPECT_EQ(world.orders, (Orders{"stop forwarder", "fresh", "start forwarder"}));
}

TEST(StreamMachine, AnotherDestination_ReachesTheForwarderAtOnce_AndOtherSettingsTheNextWorker) {
  World world = World::running();
  Settings changed = forwarding_settings();
  changed.worker.mode = Mode::passthrough;
  world.feed(SettingsChanged{changed});
  EXPECT_TRUE(world.orders.empty());
  changed.destination = Secret("rtmp://other.example/app/canary-2");
  world.feed(SettingsChanged{changed});
  world.answer();
  EXPECT_EQ(world.orders, (Orders{"stop forwarder", "fresh", "start forwarder"}));
  EXPECT_EQ(world.state.worker_settings.mode, Mode::annotate);
  world.exit(Role::worker, 40);
  world.live_through(1s);
  EXPECT_EQ(world.state.worker_settings.mode, Mode::passthrough);
}

TEST(StreamMachine, AChildThatDoesNotEnd_IsKilled) {
  World world = World::running();
  world.feed(ForwardOrdered{false});
  world.pass(15s);
  EXPECT_EQ(world.orders, (Orders{"stop forwarder", "kill forwarder"}));
  world.pass(1h);
  EXPECT_EQ(world.orders.size(), 2u);
}

TEST(StreamMachine, AStartThatFails_CountsAsAFailure) {
  World world;
  world.ready();
  world.grant();
  std::string instance = world.find(Role::worker)->instance;
  world.processes.clear();
  world.feed(ChildStartFailed{Role::worker, instance, "the program is not there"});
  EXPECT_TRUE(world.recorded(Change::restart_scheduled));
  EXPECT_EQ(world.state.last_error, "The worker could not be started: the program is not there.");
}

}  // namespace
}  // namespace weir::stream

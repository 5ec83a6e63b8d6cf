#include "weir/runner/shards.hpp"

#include "parts_testing.hpp"

namespace weir::runner {
namespace {

using namespace testing;

struct ShardsTest : ::testing::Test {
  // One step of what the brain does with them; every worker that was started is up after it.
  std::vector<StartWorker> step(bool spare = false) {
    shards.plan(fleet.cameras, turn);
    shards.man(fleet, turn);
    shards.roll_out(fleet, turn);
    shards.keep_spare(spare, fleet, turn);
    actions = turn.take();
    auto starts = only<StartWorker>(actions);
    for (const StartWorker& each : starts) fleet.workers.find(each.worker)->process.up(turn.now);
    return starts;
  }
  void gone(WorkerNumber worker, bool crash) {
    fleet.workers.remove(worker);
    shards.worker_gone(worker, crash, 1s, fleet, turn);
  }
  void pay(Camera& camera) {
    TokenHeard token{.grant = camera.lease.right->grant, .granted = true};
    camera.payment.hear(token, token.grant, turn);
  }
  // The worker has the camera, which speaks there and streams.
  void put(Camera& camera, WorkerNumber on) {
    pay(camera);
    camera.voice.on = on;
    camera.voice.joined = true;
    show(camera, on);
  }
  void show(const Camera& camera, WorkerNumber on) {
    Worker& worker = *fleet.workers.find(on);
    worker.sources[camera.id()] = {camera.wish.version, camera.wish.config.model};
    worker.streaming.insert(camera.id());
    worker.looked_at = true;
  }
  WorkerNumber target(const char* name) const {
    return shards.target_of(fleet.cameras.at(cam(name)), fleet.workers, turn);
  }

  Turn turn = turn_at(kNow, {.shard_size = 2});
  Fleet fleet;
  Shards shards;
  std::vector<Action> actions;
};

TEST_F(ShardsTest, EveryShardOfThePlan_GetsOneWorker) {
  for (const char* name : {"a", "b", "c"}) add_held(fleet.cameras, name);
  EXPECT_EQ(step().size(), 2u);
  EXPECT_TRUE(step().empty());
  EXPECT_EQ(target("a"), target("b"));
  EXPECT_NE(target("a"), target("c"));
  EXPECT_NE(target("c"), 0);
}

TEST_F(ShardsTest, AShardWithoutCameras_LosesItsWorker_ButNotWhileThatSpeaks) {
  Camera& camera = add_held(fleet.cameras, "a");
  WorkerNumber worker = step().at(0).worker;
  put(camera, worker);
  camera.leaving = true;
  step();
  EXPECT_TRUE(actions.empty());
  camera.voice.on = 0;
  step();
  EXPECT_EQ(only<Tell>(actions).at(0).what, Message::drain);
  EXPECT_EQ(shards.count(), 0);
}

TEST_F(ShardsTest, TheIdleWorker_TakesTheShardOfOneThatEnded_AndAnotherIsKeptReady) {
  add_held(fleet.cameras, "a");
  auto starts = step(true);
  ASSERT_EQ(starts.size(), 2u);
  auto [first, spare] = std::pair(starts[0], starts[1]);
  EXPECT_NE(first.shard, spare.shard);
  EXPECT_EQ(target("a"), first.worker);
  gone(first.worker, true);
  EXPECT_EQ(step(true).size(), 1u) << "the next one to be kept ready";
  EXPECT_EQ(target("a"), spare.worker);
  EXPECT_EQ(shards.shard_of(cam("a")), spare.shard) << "its label is the shard's number now";
}

TEST_F(ShardsTest, AWorkerThatKeepsCrashing_IsStartedLaterAndLater_AndThatIsSaid) {
  add_held(fleet.cameras, "a");
  int starts = 0;
  bool capped = false;
  for (int i = 0; i < 400; ++i) {
    for (const StartWorker& each : step()) {
      ++starts;
      gone(each.worker, true);
      capped |= noted(turn.take(), "worker.capped");
    }
    pass(turn, 500ms);
  }
  EXPECT_LE(starts, turn.policy.crashes.most);
  EXPECT_TRUE(capped);
}

TEST_F(ShardsTest, AKilledWorkerThatTheKernelHolds_DoesNotKeepItsShard) {
  add_held(fleet.cameras, "a");
  WorkerNumber held = step().at(0).worker;
  fleet.workers.kill(held, "test", turn);
  EXPECT_TRUE(step().empty());
  EXPECT_EQ(target("a"), 0);
  pass(turn, 2s);
  EXPECT_EQ(step().size(), 1u);
  EXPECT_NE(target("a"), 0);
}

TEST_F(ShardsTest, AnotherProgram_ComesWithAGreen_ThatTakesOverWhenItShowsWhatBlueShows) {
  Camera& camera = add_held(fleet.cameras, "a");
  WorkerNumber blue = step().at(0).worker;
  put(camera, blue);
  step();
  fleet.workers.install();
  auto started = step();
  ASSERT_EQ(started.size(), 1u);
  EXPECT_TRUE(started[0].standby);
  EXPECT_EQ(started[0].sources.size(), 1u);
  WorkerNumber green = started[0].worker;
  step();
  EXPECT_EQ(target("a"), blue) << "nothing is seen of green yet";
  show(camera, green);
  step();
  EXPECT_TRUE(noted(actions, "rollout.moving"));
  EXPECT_EQ(target("a"), green);
  camera.voice.on = green;
  step();
  EXPECT_EQ(only<Tell>(actions).at(0).worker, blue);
  gone(blue, false);
  EXPECT_TRUE(noted(turn.take(), "rollout.done"));
  EXPECT_EQ(target("a"), green);
}

TEST_F(ShardsTest, AGreenThatEnds_LeavesItsCamerasToBlue) {
  Camera& camera = add_held(fleet.cameras, "a");
  WorkerNumber blue = step().at(0).worker;
  put(camera, blue);
  fleet.workers.install();
  gone(step().at(0).worker, true);
  EXPECT_TRUE(noted(turn.take(), "rollout.given_up"));
  EXPECT_EQ(target("a"), blue);
  EXPECT_TRUE(step().empty()) << "the next try waits";
}

TEST_F(ShardsTest, BlueGreen_ACameraThatJoins_WaitsForTheNextGreen_UnlessItWasHereAlready) {
  turn.policy.rollout = rollout::Mode::bluegreen;
  WorkerNumber blue = 0;
  {
    Camera& first = add_held(fleet.cameras, "a");
    blue = step().at(0).worker;
    put(first, blue);
    step();
  }
  Camera& second = add_held(fleet.cameras, "b");
  shards.plan(fleet.cameras, turn);
  EXPECT_EQ(target("b"), 0);
  second.voice.joined = true;
  EXPECT_EQ(target("b"), blue);
  second.voice.joined = false;
  pay(second);
  EXPECT_EQ(step().size(), 1u) << "a green is started for it";
}

TEST_F(ShardsTest, ACameraThatRefusesGreenWhileBlueStreams_IsTakenFromGreen) {
  Camera& camera = add_held(fleet.cameras, "a");
  WorkerNumber blue = step().at(0).worker;
  put(camera, blue);
  step();
  fleet.workers.install();
  WorkerNumber green = step().at(0).worker;
  shards.learn_sessions({.worker = green, .cameras = {{.camera = cam("a")}}}, {}, fleet, turn);
  EXPECT_FALSE(camera.few()) << "it has not even been tried";
  shards.learn_sessions({.worker = green, .cameras = {{.camera = cam("a"), .failures = 1}}}, {}, fleet, turn);
  EXPECT_TRUE(camera.few());
  actions = turn.take();
  EXPECT_EQ(only<Tell>(actions).at(0).worker, green);
  EXPECT_EQ(only<Tell>(actions).at(0).what, Message::remove);
}

}  // namespace
}  // namespace weir::runner

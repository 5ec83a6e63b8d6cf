// Rollouts: which workers are replaced, when the new one is good enough, and what it has loaded by then.
#include "brain_testing.hpp"

namespace weir::runner {

using testing::Bench;
using testing::cameras;

namespace {

// Two shards of two cameras; `c00` shares one with `c01`.
struct TwoShards : Bench {
  TwoShards() : Bench({.shard_size = 2, .spare = false}) {
    list(cameras(4));
    pass(1s);
    for (const char* name : {"c00", "c01", "c02", "c03"}) before[name] = speaker(name);
    EXPECT_EQ(before["c00"], before["c01"]);
    EXPECT_EQ(before["c02"], before["c03"]);
    EXPECT_NE(before["c00"], before["c02"]);
    told.clear();
  }
  std::map<std::string, WorkerNumber> before;
};

}  // namespace

TEST(BrainRollout, AnotherModelByName_ReplacesTheWorkerOfItsShard_AndTheOtherIsToldNothing) {
  TwoShards bench;
  std::vector<Wish> changed = cameras(4);
  changed[0].config.model.name = "another";
  changed[0].version = "v2";
  bench.list(changed);
  bench.pass(3s);
  EXPECT_NE(bench.speaker("c00"), bench.before["c00"]);
  EXPECT_EQ(bench.speaker("c00"), bench.speaker("c01"));
  for (const char* name : {"c02", "c03"}) EXPECT_EQ(bench.speaker(name), bench.before[name]);
  for (const auto& each : bench.told)
    if (each.worker == bench.before["c02"]) {
      EXPECT_EQ(each.what, Message::extend) << each.camera.str();
    }
}

TEST(BrainRollout, AnotherProgram_ComesToOneShardAfterTheOther) {
  TwoShards bench;
  bench.feed(BinaryChanged{});
  for (int tenths = 0; tenths < 100; ++tenths) {
    bench.pass(100ms);
    EXPECT_LE(bench.workers_alive(), 3) << "two new workers stand by at once";
  }
  for (const auto& [name, worker] : bench.before) EXPECT_NE(bench.speaker(name), worker) << name;
}

TEST(BrainRollout, GreenIsReady_WithTheQuorumOfWhatBlueDelivers_AndNotBefore) {
  struct Case {
    int quorum_pct, delivered;
    bool moves;
  };
  for (auto [quorum_pct, delivered, moves] : {Case{80, 7, false}, {80, 8, true}, {50, 4, false}, {50, 5, true}}) {
    Bench bench({.rollout_times = {.ready_within = 30s}, .quorum_pct = quorum_pct, .spare = false});
    bench.list(cameras(10));
    bench.pass(1s);
    WorkerNumber blue = bench.speaker("c00");
    bench.greens_get_ready = false;
    bench.feed(BinaryChanged{});
    bench.pass(1s);
    auto& green = bench.processes.rbegin()->second;
    ASSERT_TRUE(green.standby);
    for (int n = delivered; n < 10; ++n) green.blind.insert(CameraId::trusted(fmt::format("c{:02}", n)));
    green.ready = true;
    bench.pass(5s);
    EXPECT_EQ(bench.speaker("c00") != blue, moves) << delivered << " of 10, of which " << quorum_pct << " % are enough";
  }
}

TEST(BrainRollout, GreenIsNotReady_BeforeBlueHasAnsweredSinceTheRolloutBegan) {
  Bench bench({.rollout_times = {.ready_within = 30s}, .spare = false});
  bench.list(cameras(2));
  bench.pass(1s);
  WorkerNumber blue = bench.speaker("c00");
  bench.processes.at(blue).computes = true;
  bench.processes.at(blue).answers = false;
  bench.pass(100ms);
  bench.feed(BinaryChanged{});
  bench.pass(1500ms);
  EXPECT_EQ(bench.speaker("c00"), blue) << "what it delivers now is not known";
  bench.processes.at(blue).answers = true;
  bench.pass(3s);
  EXPECT_NE(bench.speaker("c00"), blue);
}

// Found by the simulator: green was given up in the middle of an outage, and with it went the only voice of what it
// had.
TEST(BrainRollout, AnOutageInTheMiddle_LeavesEachCameraWithTheWorkerThatSpeaksForIt) {
  Bench bench({.rollout_times = {.ready_within = 30s}, .quorum_pct = 50, .spare = false});
  bench.list(cameras(2));
  bench.pass(1s);
  WorkerNumber blue = bench.speaker("c00");
  bench.greens_get_ready = false;
  bench.feed(BinaryChanged{});
  bench.pass(1s);
  auto& [green, process] = *bench.processes.rbegin();
  process.blind.insert(CameraId::trusted("c01"));
  process.ready = true;
  bench.pass(3s);
  ASSERT_EQ(bench.speaker("c00"), green);
  ASSERT_EQ(bench.speaker("c01"), blue);
  bench.plane_answers = false;
  bench.pass(2min);
  EXPECT_EQ(bench.speaker("c00"), green);
  EXPECT_EQ(bench.speaker("c01"), blue);
  bench.plane_answers = true;
  process.blind.clear();
  bench.pass(5s);
  for (const char* name : {"c00", "c01"}) EXPECT_EQ(bench.speaker(name), green) << name;
  EXPECT_FALSE(bench.processes.at(blue).alive);
}

TEST(BrainRollout, TheIdleWorker_IsStartedWithTheModelsInUse) {
  Bench bench;
  std::vector<Wish> wanted = cameras(2);
  wanted[1].config.model.name = "another";
  bench.list(wanted);
  bench.pass(1s);
  std::set<std::string> loaded;
  for (const camera::Model& model : bench.started.at(bench.processes.rbegin()->first).models) loaded.insert(model.name);
  EXPECT_TRUE(loaded.contains("another")) << "it would be loaded when a worker has died";
  EXPECT_TRUE(loaded.contains(wanted[0].config.model.name));
}

TEST(Brain, ANewModel_ComesWithANewWorker_AndNobodySpeaksTwice) {
  Bench bench;
  bench.list(cameras(3));
  bench.pass(1s);
  WorkerNumber blue = bench.speaker("c00");
  std::vector<Wish> changed = cameras(3);
  changed[1].config.model.detector = "onnx";
  changed[1].version = "v2";
  bench.told.clear();
  bench.list(changed);
  bench.pass(3s);
  EXPECT_FALSE(bench.processes.at(blue).alive) << "the old worker was drained";
  WorkerNumber green = bench.speaker("c00");
  EXPECT_NE(green, blue);
  for (const char* name : {"c00", "c01", "c02"}) EXPECT_EQ(bench.speaker(name), green);
  int activated = 0;
  for (const auto& each : bench.told)
    if (each.what == Message::activate) {
      ++activated;
      EXPECT_TRUE(each.after) << "green must know what blue said last";
    }
  EXPECT_EQ(activated, 3);
}

TEST(Brain, AGreenWhoseDetectorIsNotLoaded_IsWaitedFor_ButNotForEver) {
  for (bool loads : {true, false}) {
    Bench bench;
    bench.list(cameras(1));
    bench.pass(1s);
    WorkerNumber blue = bench.speaker("c00");
    CameraId camera = CameraId::trusted("c00");
    bench.seen[camera] = {.camera = camera, .streaming = true, .inferred = false};
    bench.feed(BinaryChanged{});
    bench.pass(5s);
    EXPECT_EQ(bench.speaker("c00"), blue) << "it would be blind meanwhile";
    bench.seen[camera].inferred = loads;
    bench.pass(loads ? 500ms : 8s);
    EXPECT_NE(bench.speaker("c00"), blue);
  }
}

TEST(Brain, AGreenThatDoesNotGetReady_LeavesEverythingToBlue) {
  Bench bench({.rollout_times = {.ready_within = 5s}});
  bench.list(cameras(2));
  bench.pass(1s);
  WorkerNumber blue = bench.speaker("c00");
  bench.greens_get_ready = false;
  bench.feed(BinaryChanged{});
  bench.pass(20s);
  EXPECT_EQ(bench.speaker("c00"), blue);
  EXPECT_TRUE(bench.noted("rollout.given_up"));
}

TEST(Brain, BlueGreen_AddedCamerasJoinWithTheNextGreen) {
  Bench bench({.rollout = rollout::Mode::bluegreen});
  bench.list(cameras(2));
  bench.pass(1s);
  WorkerNumber blue = bench.speaker("c00");
  bench.list(cameras(3));
  bench.pass(3s);
  WorkerNumber green = bench.speaker("c02");
  EXPECT_NE(green, 0);
  EXPECT_NE(green, blue);
  EXPECT_EQ(bench.speaker("c00"), green);
}

TEST(Brain, ACameraWithOneSession_IsHandedOverInOrder) {
  Bench bench;
  std::vector<Wish> list = cameras(2);
  list[0].config.max_sessions = 1;
  bench.list(list);
  bench.pass(1s);
  WorkerNumber blue = bench.speaker("c00");
  bench.told.clear();
  bench.feed(BinaryChanged{});
  bench.pass(3s);
  WorkerNumber green = bench.speaker("c00");
  ASSERT_NE(green, blue);
  std::vector<Message> order;
  for (const auto& each : bench.told)
    if (each.camera.str() == "c00" && each.what != Message::extend) order.push_back(each.what);
  EXPECT_EQ(order, (std::vector<Message>{Message::remove, Message::add})) << "never two connections";
  EXPECT_EQ(std::ranges::count(bench.notes, "camera.handed_over", &Note::event), 1) << "its gap is reported";
}

TEST(Brain, ACameraThatRefusesASecondConnection_IsLearnedAndHandedOver) {
  Bench bench;
  bench.list(cameras(2));
  bench.pass(1s);
  WorkerNumber blue = bench.speaker("c00");
  bench.feed(BinaryChanged{});
  auto green = std::ranges::find_if(bench.processes, [](const auto& each) { return each.second.standby; });
  ASSERT_NE(green, bench.processes.end());
  green->second.ready = false;
  bench.feed(WorkerHeard{.worker = green->first, .cameras = {{.camera = CameraId::trusted("c00"), .failures = 1}}});
  EXPECT_TRUE(bench.noted("camera.few_sessions"));
  green->second.ready = true;
  bench.pass(3s);
  EXPECT_NE(bench.speaker("c00"), blue);
  EXPECT_NE(bench.speaker("c00"), 0);
}

TEST(Brain, ACameraThatGreenDoesNotShowYet_StaysWithBlueALittleLonger) {
  Bench bench;
  bench.list(cameras(10));
  bench.pass(1s);
  WorkerNumber blue = bench.speaker("c00");
  bench.feed(BinaryChanged{});
  CameraId late = CameraId::trusted("c00");
  auto look = [&](bool shows) {
    for (auto& [number, process] : bench.processes) {
      if (!process.alive || !process.standby) continue;
      WorkerHeard heard{.worker = number};
      for (const CameraId& camera : process.sources)
        heard.cameras.push_back({.camera = camera, .streaming = shows || camera != late});
      bench.feed(heard);
    }
  };
  look(false);
  EXPECT_EQ(bench.speaker("c00"), blue) << "it would be dark until green has a picture";
  EXPECT_NE(bench.speaker("c01"), blue) << "the others have moved";
  look(true);
  EXPECT_NE(bench.speaker("c00"), blue);
}

// Found by the simulator: the broken camera's green never got ready, so the runner never found out that the camera
// was broken here.
TEST(Brain, BlueGreen_ACameraThatDeliversNothing_DoesNotHoldTheOthersUp) {
  Bench bench({.rollout = rollout::Mode::bluegreen});
  bench.list(cameras(1));
  bench.pass(1s);
  CameraId broken = CameraId::trusted("c01");
  bench.seen[broken] = {.camera = broken};
  bench.list(cameras(3));
  bench.pass(5s);
  EXPECT_NE(bench.speaker("c01"), 0) << "it is tried like any other";
  EXPECT_NE(bench.speaker("c02"), 0);
}

// Found by the simulator: green published what it had seen while other runners had the camera.
TEST(Brain, ACameraLostWhileGreenStandsBy_IsTakenFromGreen) {
  Bench bench;
  bench.greens_get_ready = false;
  bench.list(cameras(2));
  bench.pass(1s);
  std::vector<Wish> changed = cameras(2);
  changed[1].config.model.detector = "onnx";
  changed[1].version = "v2";
  bench.list(changed);
  bench.pass(1s);
  WorkerNumber green = bench.processes.rbegin()->first;
  const CameraId lost = CameraId::trusted("c00");
  ASSERT_TRUE(bench.processes.at(green).standby);
  ASSERT_TRUE(bench.processes.at(green).sources.contains(lost));
  bench.rows[lost] = {"other", {++bench.counter}, {}};
  bench.feed(LeaseNews{.camera = lost, .free = true, .version = {bench.counter}});
  bench.pass(1s);
  EXPECT_FALSE(bench.processes.at(green).sources.contains(lost));
}

}  // namespace weir::runner

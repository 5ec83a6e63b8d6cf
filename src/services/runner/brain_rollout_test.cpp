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

// Found by the simulator: green was given up in the middle of an outage, and with it went the only voice of what it had.
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

}  // namespace weir::runner

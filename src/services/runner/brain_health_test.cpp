// Workers that do not start, or hang; and cameras that come back.
#include "brain_testing.hpp"

namespace weir::runner {
namespace {

using testing::Bench;
using testing::cameras;

// What was started last ends before it answers.
void fail_start(Bench& bench, int code) {
  for (auto& [number, process] : bench.processes)
    if (process.alive && !process.up) {
      process.alive = false;
      bench.feed(WorkerGone{number, code});
      return;
    }
}

TEST(Brain, WhereNoWorkerStarts_CamerasAreOfferedToOthers_AndNoMoreAreTaken) {
  for (int code : {127, 10, 0}) {
    Bench bench;
    bench.auto_start = false;
    bench.list(cameras(3));
    for (int i = 0; i < 100; ++i) bench.pass(100ms), fail_start(bench, code);
    EXPECT_TRUE(bench.noted("runner.no_workers"));
    EXPECT_EQ(bench.brain.summary().owned, 0) << "an owner that cannot is not an owner";
    EXPECT_EQ(bench.brain.summary().why_not, "no worker starts here");
    EXPECT_LT(bench.processes.size(), 20u) << "it is not tried without a pause";

    bench.auto_start = true;
    bench.pass(400s);
    EXPECT_TRUE(bench.noted("runner.workers_start"));
    EXPECT_NE(bench.speaker("c00"), 0) << "and takes them when workers start again";
  }
}

TEST(Brain, WhereNoWorkerStarts_AndNobodyElseHasRoom_TheCamerasAreKept) {
  Bench bench;
  bench.keep_unreachable = true;
  bench.auto_start = false;
  bench.list(cameras(3));
  for (int i = 0; i < 100; ++i) bench.pass(100ms), fail_start(bench, 127);
  EXPECT_EQ(bench.brain.summary().owned, 3);
  bench.auto_start = true;
  bench.pass(400s);
  for (const char* camera : {"c00", "c01", "c02"}) EXPECT_NE(bench.speaker(camera), 0) << camera;
}

TEST(Brain, AWorkerThatDoesNotGetReady_CountsAsOneThatDoesNotStart) {
  Bench bench;
  bench.auto_start = false;
  bench.list(cameras(1));
  bench.pass(200s);
  EXPECT_TRUE(bench.noted("runner.no_workers"));
  EXPECT_EQ(bench.brain.summary().owned, 0);
}

TEST(Brain, AWorkerWithAThreadThatHangs_IsReplaced_AndItsCameraIsTheCulprit) {
  Bench bench;
  bench.list(cameras(2));
  bench.pass(1s);
  WorkerNumber hung = bench.speaker("c00");
  auto look = [&](const char* stuck) {
    bench.feed(WorkerHeard{.worker = hung, .cameras = {{.camera = CameraId::trusted("c00"), .streaming = true},
                                                       {.camera = CameraId::trusted("c01"), .streaming = true}},
                           .stuck = CameraId::trusted(stuck)});
  };
  for (int i = 0; i < 3; ++i) look("c01");
  look("");
  for (int i = 0; i < 3; ++i) look("c01");
  EXPECT_TRUE(bench.processes.at(hung).alive) << "for a moment is not for ever";
  for (int i = 0; i < 6; ++i) look("c01");
  EXPECT_FALSE(bench.processes.at(hung).alive);
  EXPECT_EQ(bench.crashes, std::vector<CameraId>{CameraId::trusted("c01")});
  bench.pass(2s);
  for (const char* camera : {"c00", "c01"}) EXPECT_NE(bench.speaker(camera), 0) << camera;
}

TEST(Brain, BlueGreen_ACameraThatOnlyComesBack_NeedsNoNewWorker) {
  Bench bench({.rollout = rollout::Mode::bluegreen});
  bench.keep_unreachable = true;
  CameraId id = CameraId::trusted("c00");
  bench.seen[id] = {.camera = id, .failures = 3, .error = restart::StreamErrorCode::tcp_refused};
  bench.list(cameras(3));
  bench.pass(200s);
  EXPECT_TRUE(bench.noted("camera.unreachable"));
  EXPECT_NE(bench.speaker("c00"), 0) << "it goes on trying";
  EXPECT_FALSE(bench.noted("rollout.warming")) << "and the others keep their worker";
}

TEST(Brain, BlueGreen_AGreenThatDiesWhileItMoves_LeavesTheCameraOfOneSessionToBlue) {
  Bench bench({.rollout = rollout::Mode::bluegreen});
  std::vector<Wish> wishes = cameras(6);
  wishes[0].config.max_sessions = 1;
  bench.list(wishes);
  bench.pass(5s);
  WorkerNumber blue = bench.speaker("c05");
  bench.feed(BinaryChanged{});
  for (auto& [number, process] : bench.processes)
    if (process.standby) process.blind.insert(CameraId::trusted("c05"));  // so that it stays with blue for a while
  for (int i = 0; i < 100 && bench.speaker("c00") == blue; ++i) bench.pass(100ms);
  WorkerNumber green = bench.speaker("c00");
  ASSERT_NE(green, blue);
  ASSERT_EQ(bench.speaker("c05"), blue);
  bench.kill(green);
  bench.pass(1s);
  EXPECT_EQ(bench.speaker("c00"), blue);
}

}  // namespace
}  // namespace weir::runner

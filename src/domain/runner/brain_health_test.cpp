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

TEST(Brain, AWorkerThatIsFrozen_IsReplacedWithinSeconds_AndOneThatIsSlowIsNot) {
  Bench bench;
  bench.list(cameras(3));
  bench.pass(5s);
  WorkerNumber first = bench.speaker("c00");
  bench.processes.at(first).answers = false;
  bench.pass(10s);
  EXPECT_EQ(bench.speaker("c00"), first) << "it computes: it may answer again";
  EXPECT_GE(bench.brain.summary().cameras[0].silent, 9s);
  EXPECT_EQ(bench.brain.summary().workers_silent, 1);
  bench.processes.at(first).answers = true;
  bench.pass(1s);
  EXPECT_EQ(bench.brain.summary().workers_silent, 0);

  bench.processes.at(first).answers = bench.processes.at(first).computes = false;
  bench.pass(2s);
  EXPECT_FALSE(bench.noted("worker.frozen"));
  bench.pass(1500ms);
  EXPECT_TRUE(bench.noted("worker.frozen"));
  EXPECT_NE(bench.speaker("c00"), first);
  EXPECT_NE(bench.speaker("c00"), 0) << "the idle worker has it";
}

TEST(Brain, AWorkerThatNeverAnswers_IsReplacedThoughItComputes) {
  Bench bench;
  bench.list(cameras(1));
  bench.pass(5s);
  WorkerNumber first = bench.speaker("c00");
  bench.processes.at(first).answers = false;
  bench.pass(25s);
  EXPECT_NE(bench.speaker("c00"), first);
}

// A runner that was stopped together with its workers has no reason to complain of them.
TEST(Brain, WhoSleptHimself_DoesNotCallHisWorkersFrozen) {
  Bench bench;
  bench.list(cameras(1));
  bench.pass(5s);
  WorkerNumber first = bench.speaker("c00");
  bench.feed(WorkerSilent{first, bench.processes.at(first).cpu});
  bench.now += 30s;
  bench.feed(WorkerSilent{first, bench.processes.at(first).cpu});
  bench.pass(1s);
  EXPECT_FALSE(bench.noted("worker.frozen"));
}

TEST(Brain, AWorkerAllOfWhoseCamerasStandStill_IsReplaced_AndOneWithACameraThatGoesOnIsNot) {
  for (bool one_goes_on : {true, false}) {
    Bench bench;
    bench.list(cameras(2));
    bench.pass(5s);
    WorkerNumber first = bench.speaker("c00");
    for (const char* name : {"c00", "c01"}) {
      CameraId id = CameraId::trusted(name);
      bool goes_on = one_goes_on && id.str() == "c01";
      bench.seen[id] = {.camera = id, .streaming = true, .frame_age = goes_on ? Duration(100ms) : Duration(6s)};
    }
    bench.pass(300ms);
    EXPECT_EQ(bench.noted("worker.frozen"), !one_goes_on);
    if (!one_goes_on) bench.seen.clear();
    bench.pass(1s);
    EXPECT_EQ(bench.speaker("c00") == first, one_goes_on);
  }
}

TEST(Brain, ARunnerThatDoesNotKeepUp_TakesNoFurtherCameras_UntilItDoesAgain) {
  Bench bench;
  bench.list(cameras(2));
  bench.pass(5s);
  CameraId id = CameraId::trusted("c00");
  bench.seen[id] = {.camera = id, .streaming = true, .behind = true};
  bench.pass(5s);
  EXPECT_TRUE(bench.brain.summary().acquiring) << "it may pass";
  bench.pass(6s);
  EXPECT_EQ(bench.brain.summary().why_not, "1 of its cameras is looked at less often than wanted");
  EXPECT_TRUE(bench.noted("runner.behind"));
  bench.list(cameras(3));
  bench.pass(5s);
  EXPECT_EQ(bench.brain.summary().owned, 2);
  EXPECT_NE(bench.speaker("c00"), 0) << "what it has, it keeps";

  bench.seen.clear();
  bench.pass(15s);
  EXPECT_EQ(bench.brain.summary().owned, 3);
}

TEST(Brain, ACameraThatGotNoToken_SaysThatItWaitsForTheBudget) {
  Bench bench;
  bench.tokens = false;
  bench.list(cameras(1));
  bench.pass(2s);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(bench.brain.summary().cameras[0].phase, CameraPhase::budget);
    bench.pass(100ms);
  }
  bench.tokens = true;
  bench.pass(2s);
  EXPECT_EQ(bench.brain.summary().cameras[0].phase, CameraPhase::running);
}

}  // namespace
}  // namespace weir::runner

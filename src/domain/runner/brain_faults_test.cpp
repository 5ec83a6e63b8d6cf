// Faults that meet a rollout, a drain or an outage half way: no camera is left without a worker because of them.
#include "brain_testing.hpp"

namespace weir::runner {
namespace {

using namespace testing;

TEST(BrainFaults, ANewProgramDuringAnOutage_WaitsForItsEnd) {
  Bench bench;
  bench.list(cameras(3));
  bench.pass(1s);
  WorkerNumber blue = bench.speaker("c00");
  bench.plane_answers = false;
  bench.pass(3s);
  bench.feed(BinaryChanged{});
  bench.pass(60s);
  for (const char* name : {"c00", "c01", "c02"}) EXPECT_EQ(bench.speaker(name), blue) << name;
  EXPECT_FALSE(bench.noted("rollout.given_up"));
  bench.plane_answers = true;
  bench.pass(10s);
  for (const char* name : {"c00", "c01", "c02"}) EXPECT_GT(bench.speaker(name), blue) << name;
}

// Green gets ready when the outage has lasted for so long. At once: no renewal has failed yet, and that the store is
// away is known only to who asks it.
TEST(BrainFaults, AnOutageThatBeginsBeforeGreenIsReady_LeavesEveryCameraWithBlue_UntilItsEnd) {
  for (Duration outage : {Duration(3s), Duration(0)}) {
    Bench bench;
    bench.greens_get_ready = false;
    bench.list(cameras(3));
    bench.pass(1s);
    WorkerNumber blue = bench.speaker("c00");
    bench.feed(BinaryChanged{});
    bench.pass(1500ms);
    bench.plane_answers = false;
    bench.pass(outage);
    bench.greens_get_ready = true;
    for (auto& [number, process] : bench.processes) process.ready = true;
    bench.pass(60s);
    for (const char* name : {"c00", "c01", "c02"}) EXPECT_EQ(bench.speaker(name), blue) << name;
    bench.plane_answers = true;
    bench.pass(15s);
    for (const char* name : {"c00", "c01", "c02"}) EXPECT_GT(bench.speaker(name), blue) << name;
  }
}

TEST(BrainFaults, ACameraThatMustBeAloneInAnOutage_StaysWhereItIsUntilItsEnd) {
  Bench bench;
  bench.list(cameras(2));
  bench.pass(1s);
  WorkerNumber shared = bench.speaker("c00");
  bench.plane_answers = false;
  std::vector<Wish> wishes = cameras(2);
  wishes[0].crashes = 2;
  bench.list(wishes);
  bench.pass(60s);
  for (const char* name : {"c00", "c01"}) EXPECT_EQ(bench.speaker(name), shared) << name;
  bench.plane_answers = true;
  bench.pass(10s);
  EXPECT_NE(bench.speaker("c00"), 0);
  EXPECT_NE(bench.speaker("c00"), bench.speaker("c01"));
}

TEST(BrainFaults, AKilledWorkerThatTheKernelHolds_IsReplacedWhenItsRightHasRunOut) {
  Bench bench;
  bench.list(cameras(2));
  bench.pass(1s);
  WorkerNumber held = bench.speaker("c00");
  bench.reaps = false;
  bench.processes.at(held).answers = false;
  while (bench.killed == 0) bench.pass(1s);
  bench.pass(12s);
  for (const char* name : {"c00", "c01"}) EXPECT_GT(bench.speaker(name), held) << name;
  bench.feed(WorkerGone{held, 137});
  bench.pass(5s);
  for (const char* name : {"c00", "c01"}) EXPECT_NE(bench.speaker(name), 0) << name;
}

TEST(BrainFaults, BlueGreen_ACameraThatJoinsWhileGreensFail_JoinsTheRunningWorker) {
  Bench bench({.rollout = rollout::Mode::bluegreen});
  bench.list(cameras(2));
  bench.pass(1s);
  WorkerNumber blue = bench.speaker("c00");
  bench.greens_get_ready = false;
  bench.list(cameras(3));
  bench.pass(60s);
  EXPECT_EQ(bench.speaker("c02"), blue);
  EXPECT_EQ(bench.speaker("c00"), blue);
}

TEST(BrainFaults, ACameraThatWaitsForItsToken_HoldsNoRolloutUp) {
  Bench bench;
  bench.list(cameras(2));
  bench.pass(1s);
  WorkerNumber blue = bench.speaker("c00");
  bench.tokens = false;
  bench.list(cameras(3));
  bench.feed(BinaryChanged{});
  bench.pass(20s);
  EXPECT_GT(bench.speaker("c00"), blue);
  EXPECT_TRUE(bench.noted("rollout.done"));
  EXPECT_FALSE(bench.noted("rollout.given_up"));
  bench.tokens = true;
  bench.pass(6s);
  EXPECT_EQ(bench.speaker("c02"), bench.speaker("c00"));
}

TEST(BrainFaults, ACameraThatIsOffDuringARollout_IsNotTakenForOneWithFewSessions) {
  Bench bench;
  bench.list(cameras(2));
  bench.pass(1s);
  CameraId off = CameraId::trusted("c00");
  bench.seen[off] = {.camera = off, .failures = 3, .error = restart::StreamErrorCode::tcp_timeout};
  bench.pass(1s);
  bench.feed(BinaryChanged{});
  bench.pass(10s);
  EXPECT_TRUE(bench.noted("rollout.done"));
  EXPECT_FALSE(bench.noted("camera.few_sessions"));
}

TEST(BrainFaults, AStopWhileNobodyAnswers_EndsAfterItsDeadlineAndALeasesTime) {
  Bench bench;
  bench.list(cameras(2));
  bench.pass(1s);
  bench.plane_answers = false;
  bench.feed(StopAsked{bench.now + 5s});
  bench.pass(10s);
  EXPECT_FALSE(bench.ended) << "the answer may still come";
  bench.pass(5s);
  ASSERT_TRUE(bench.ended);
  EXPECT_NE(bench.ended->code, 0) << "not everything was given back";
}

TEST(BrainFaults, ACameraWhoseConfigurationCannotBeRead_StaysAsItIs_AndNoOtherSuffers) {
  Bench bench;
  bench.list(cameras(2));
  bench.pass(1s);
  CamerasListed listed{.cameras = {wish("c00"), wish("c02")},
                       .unreadable = {CameraId::trusted("c01"), CameraId::trusted("c03")}};
  bench.feed(listed);
  bench.pass(2s);
  EXPECT_EQ(bench.brain.summary().owned, 3) << "c01 as before, c02 is new, and of c03 nothing is known";
  bench.feed(CamerasListed{.cameras = {wish("c00"), wish("c02")}});
  bench.pass(2s);
  EXPECT_EQ(bench.brain.summary().owned, 2) << "gone from the list";
}

TEST(BrainFaults, ADrainThatIsCalledOffWhileTheRunnerStops_GoesOn) {
  Bench bench({.drain_batch = 1});
  bench.list(cameras(2));
  bench.pass(1s);
  WorkerNumber worker = bench.speaker("c00");
  bench.processes.at(worker).confirms = false;
  bench.feed(FlagsHeard{.drain = DrainMode::soft, .spare = 0});
  bench.feed(StopAsked{bench.now + 60s});
  bench.feed(FlagsHeard{.drain = DrainMode::none, .spare = 0});
  bench.processes.at(worker).confirms = true;
  bench.pass(20s);
  ASSERT_TRUE(bench.ended);
  EXPECT_EQ(bench.ended->code, 0);
  EXPECT_EQ(bench.killed, 0);
}

}  // namespace
}  // namespace weir::runner

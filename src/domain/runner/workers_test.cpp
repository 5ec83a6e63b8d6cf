#include "weir/runner/workers.hpp"

#include "parts_testing.hpp"

namespace weir::runner {
namespace {

using namespace testing;

struct WorkersTest : ::testing::Test {
  std::vector<KillWorker> kills() {
    workers.check(turn);
    actions = turn.take();
    return only<KillWorker>(actions);
  }
  WorkerHeard look(WorkerNumber number, Duration frame_age, CameraId stuck = {}) {
    WorkerHeard heard{.worker = number, .stuck = std::move(stuck)};
    for (const auto& [id, camera] : cameras)
      heard.cameras.push_back({.camera = id, .streaming = true, .frame_age = frame_age});
    return heard;
  }

  Turn turn = turn_at(kNow);
  Cameras cameras;
  Workers workers;
  std::vector<Action> actions;
};

TEST_F(WorkersTest, ANumber_NamesOneProcessForEver) {
  WorkerNumber first = start_running(workers, turn);
  EXPECT_TRUE(workers.running(first));
  workers.remove(first);
  EXPECT_FALSE(workers.running(first));
  EXPECT_NE(start_running(workers, turn), first);
}

TEST_F(WorkersTest, OneThatDoesNotGetReady_IsKilledOnce) {
  workers.start({}, {}, turn);
  pass(turn, turn.policy.start_grace);
  EXPECT_TRUE(kills().empty());
  pass(turn, 1ms);
  ASSERT_EQ(kills().size(), 1u);
  EXPECT_EQ(only<KillWorker>(actions)[0].why, "the worker did not get ready in time");
  EXPECT_TRUE(kills().empty());
}

TEST_F(WorkersTest, OneAllOfWhoseCamerasStandStill_IsKilled_UnlessTheyAreSnapshotsThatTakeTheirTime) {
  for (bool snapshots : {false, true}) {
    WorkerNumber number = start_running(workers, turn);
    for (const char* name : {"a", "b"}) {
      Camera& camera = add_held(cameras, name);
      camera.wish.config.snapshot.reset();
      if (snapshots) camera.wish.config.snapshot.emplace().interval_s = 10;
    }
    for (int i = 0; i < 2; ++i) workers.hear(look(number, turn.policy.stall + 1001ms), cameras, turn);
    EXPECT_EQ(kills().size(), snapshots ? 0u : 1u);
    EXPECT_EQ(noted(actions, "worker.frozen"), !snapshots);
    workers.remove(number);
  }
}

TEST_F(WorkersTest, OneWithAThreadThatHangs_IsKilled_AndItsCameraIsNamed) {
  WorkerNumber number = start_running(workers, turn);
  add_held(cameras, "a");
  for (int i = 0; i < 6; ++i) workers.hear(look(number, 0s, cam("a")), cameras, turn);
  ASSERT_EQ(kills().size(), 1u);
  auto notes = only<Note>(actions);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(notes[0].event, "worker.hung");
  EXPECT_EQ(notes[0].camera, cam("a"));
  EXPECT_EQ(workers.find(number)->process.killed_for(), restart::Fault::hung);
}

TEST_F(WorkersTest, Dismissed_OneThatIsUpIsAskedToEnd_AndOneThatIsNotIsKilled) {
  WorkerNumber up = start_running(workers, turn), starting = workers.start({}, {}, turn);
  turn.take();
  for (int i = 0; i < 2; ++i)
    for (WorkerNumber number : {up, starting}) workers.dismiss(number, turn);
  workers.dismiss(99, turn);
  actions = turn.take();
  ASSERT_EQ(actions.size(), 2u) << "each once";
  EXPECT_EQ(only<Tell>(actions).at(0).worker, up);
  EXPECT_EQ(only<Tell>(actions).at(0).what, Message::drain);
  EXPECT_EQ(only<KillWorker>(actions).at(0).worker, starting);
  EXPECT_FALSE(workers.running(up));
}

TEST_F(WorkersTest, AMessage_IsAnsweredOnce_AndNotAfterItsWorkersEnd) {
  WorkerNumber one = start_running(workers, turn), other = start_running(workers, turn);
  auto first = workers.tell(one, Message::silence, {{cam("a")}}, turn);
  auto second = workers.tell(one, Message::remove, {{cam("b")}}, turn);
  auto third = workers.tell(other, Message::remove, {{cam("c")}}, turn);
  auto sent = workers.answered(first);
  ASSERT_TRUE(sent);
  EXPECT_EQ(sent->what, Message::silence);
  EXPECT_FALSE(workers.answered(first));
  auto gone = workers.remove(one);
  ASSERT_EQ(gone.unanswered.size(), 1u);
  EXPECT_EQ(gone.unanswered.at(second).items.at(0).camera, cam("b"));
  EXPECT_FALSE(workers.answered(second));
  EXPECT_TRUE(workers.answered(third));
}

TEST_F(WorkersTest, WhatALookShows_ReplacesWhatTheLastOneShowed) {
  WorkerNumber number = start_running(workers, turn);
  for (const char* name : {"a", "b"}) add_held(cameras, name);
  cameras.at(cam("b")).wish.config.model.detector = "none";
  workers.hear({.worker = number,
                .cameras = {{.camera = cam("a"), .streaming = true, .inferred = false, .behind = true},
                            {.camera = cam("b"), .inferred = false}}},
               cameras, turn);
  const Worker& worker = *workers.find(number);
  EXPECT_EQ(worker.streaming, std::set{cam("a")});
  EXPECT_EQ(worker.behind, std::set{cam("a")});
  EXPECT_EQ(worker.unseen, std::set{cam("a")}) << "the other has no detector to wait for";
  workers.hear({.worker = number}, cameras, turn);
  EXPECT_TRUE(worker.streaming.empty() && worker.behind.empty() && worker.unseen.empty());
}

TEST_F(WorkersTest, ThoseThatWereStartedBeforeAnotherProgramWasInstalled_AreOld) {
  WorkerNumber before = start_running(workers, turn);
  EXPECT_FALSE(workers.old(*workers.find(before)));
  workers.install();
  EXPECT_TRUE(workers.old(*workers.find(before)));
  EXPECT_FALSE(workers.old(*workers.find(start_running(workers, turn))));
}

}  // namespace
}  // namespace weir::runner

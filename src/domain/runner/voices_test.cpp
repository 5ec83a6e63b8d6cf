#include "weir/runner/voices.hpp"

#include "parts_testing.hpp"

namespace weir::runner {
namespace {

using namespace testing;

struct VoicesTest : ::testing::Test {
  VoicesTest() { camera.lease.granted_at = turn.wall; }
  Tell told() {
    auto tells = only<Tell>(turn.take());
    EXPECT_EQ(tells.size(), 1u);
    return tells.empty() ? Tell{} : tells[0];
  }
  void answer(bool ok, std::map<CameraId, WallTime> last = {}) {
    hear_told({.message = camera.voice.busy, .ok = ok, .last_capture = std::move(last)}, fleet, turn);
  }
  void give() {
    hand_over(camera, worker, fleet, turn);
    answer(true);
    turn.take();
  }

  Turn turn = turn_at(kNow);
  Fleet fleet;
  Camera& camera = add_held(fleet.cameras, "a");
  WorkerNumber worker = start_running(fleet.workers, turn), other = start_running(fleet.workers, turn);
  std::vector<Action> started = turn.take();
};

TEST_F(VoicesTest, AHandOver_UsesTheFreshVersionUp_AndCountsWhenItIsConfirmed) {
  hand_over(camera, worker, fleet, turn);
  Tell tell = told();
  EXPECT_EQ(tell.what, Message::add);
  EXPECT_TRUE(tell.items.at(0).config);
  EXPECT_EQ(camera.voice.busy, tell.message);
  EXPECT_EQ(camera.voice.on, 0);
  EXPECT_FALSE(camera.lease.fresh());
  answer(true);
  EXPECT_EQ(camera.voice.on, worker);
  EXPECT_EQ(camera.voice.busy, 0u);
}

TEST_F(VoicesTest, AWorkerThatStandsBy_IsOnlyActivated) {
  fleet.workers.find(worker)->sources[camera.id()] = {"v1", {}};
  hand_over(camera, worker, fleet, turn);
  Tell tell = told();
  EXPECT_EQ(tell.what, Message::activate);
  EXPECT_FALSE(tell.items.at(0).config);
}

TEST_F(VoicesTest, AHandOverWithoutAnAnswer_CountsAsArrived_AndMustBeTakenBack) {
  hand_over(camera, worker, fleet, turn);
  answer(false);
  EXPECT_EQ(camera.voice.on, worker);
  EXPECT_TRUE(camera.voice.silence_asked);
  EXPECT_GT(camera.voice.retry_at, turn.now);
}

TEST_F(VoicesTest, WhoIsSilenced_CountsAsTheSpeaker_UntilItHasConfirmed_AndTellsItsLastWord) {
  give();
  take_away(camera, Message::silence, fleet, turn);
  EXPECT_EQ(camera.voice.on, worker);
  answer(true, {{camera.id(), turn.wall + 1s}});
  EXPECT_EQ(camera.voice.on, 0);
  EXPECT_FALSE(camera.voice.silence_asked);
  EXPECT_EQ(camera.voice.after, turn.wall + 1s);
}

TEST_F(VoicesTest, ALastWordFromBeforeTheGrant_DoesNotCount) {
  give();
  take_away(camera, Message::silence, fleet, turn);
  answer(true, {{camera.id(), turn.wall - 1s}});
  EXPECT_EQ(camera.voice.on, 0);
  EXPECT_FALSE(camera.voice.after);
}

TEST_F(VoicesTest, AWorkerThatDoesNotConfirm_IsKilledSoonWhereAllItsCamerasMove_ElseAfterItsRight) {
  Camera& stays = add_held(fleet.cameras, "b");
  for (bool all_move : {true, false}) {
    camera.lease.right->fresh = true;
    camera.voice = {};
    stays.voice.on = all_move ? 0 : other;
    WorkerNumber speaker = all_move ? worker : other;
    hand_over(camera, speaker, fleet, turn);
    answer(true);
    take_away(camera, Message::silence, fleet, turn);
    pass(turn, 1s);
    answer(false);
    EXPECT_EQ(fleet.workers.find(speaker)->process.killed(), all_move);
    if (all_move) continue;
    take_away(camera, Message::silence, fleet, turn);
    pass(turn, 1min);
    answer(false);
    EXPECT_TRUE(fleet.workers.find(speaker)->process.killed());
    EXPECT_EQ(camera.voice.on, speaker) << "it may still write";
    take_away(camera, Message::silence, fleet, turn);
    answer(false);
    EXPECT_EQ(camera.voice.on, 0) << "it was killed, and its right has run out";
    EXPECT_EQ(camera.voice.after, turn.wall);
  }
}

TEST_F(VoicesTest, AWorkerThatEnded_SpeaksForNothing_AndWhatItMayHaveSaidIsNotKnown) {
  hand_over(camera, worker, fleet, turn);
  camera.voice.after = turn.wall;
  auto gone = fleet.workers.remove(worker);
  forget_worker(worker, gone.unanswered, fleet.cameras);
  EXPECT_TRUE(camera.at_rest());
  EXPECT_FALSE(camera.voice.after) << "the message may have arrived";
}

TEST_F(VoicesTest, ARight_IsExtendedWhereItHasMoved_AndNotForWhoWasAskedToBeSilent) {
  give();
  extend_rights(fleet, turn);
  EXPECT_TRUE(turn.take().empty());
  camera.lease.right->valid_until += 2s;
  extend_rights(fleet, turn);
  Tell tell = told();
  EXPECT_EQ(tell.what, Message::extend);
  extend_rights(fleet, turn);
  EXPECT_TRUE(turn.take().empty()) << "one at a time";
  hear_told({.message = tell.message, .ok = false}, fleet, turn);
  extend_rights(fleet, turn);
  EXPECT_TRUE(turn.take().empty()) << "after a pause";
  pass(turn, 200ms);
  camera.voice.silence_asked = turn.now;
  extend_rights(fleet, turn);
  EXPECT_TRUE(turn.take().empty());
  camera.voice.silence_asked.reset();
  extend_rights(fleet, turn);
  hear_told({.message = told().message, .ok = true}, fleet, turn);
  EXPECT_EQ(camera.voice.told_until, camera.lease.right->valid_until);
}

TEST_F(VoicesTest, WhatAWorkerHasByMistake_IsTakenAway_AndWhatItForgotIsAskedBackAfterThreeLooks) {
  give();
  compare_with({.worker = worker, .cameras = {{.camera = camera.id()}, {.camera = cam("stranger")}}}, fleet, turn);
  EXPECT_EQ(told().items.at(0).camera, cam("stranger"));
  for (int look = 1; look <= 3; ++look) {
    EXPECT_FALSE(camera.voice.silence_asked) << look;
    compare_with({.worker = worker}, fleet, turn);
  }
  EXPECT_TRUE(camera.voice.silence_asked);
  EXPECT_TRUE(noted(turn.take(), "camera.missing"));
}

}  // namespace
}  // namespace weir::runner

// How the publisher falls silent, and how it begins to publish after another worker.
#include "publisher_rig.hpp"

namespace weir::worker {

// A cutover compares moments of the wall clock, which somebody may set meanwhile.
TEST(Publisher, ClockSetBackBeforeACutover_WhatWasSeenBeforeIsNotSaid_WhatIsSeenNowIs) {
  Rig rig;
  rig.pass(10s);
  rig.see(1);
  rig.clock.step_wall(-1s);
  rig.pass(300ms);
  rig.lease(11, 10s, kTenure, {}, rig.clock.wall());
  rig.pass(1ms);
  rig.see(2);
  EXPECT_EQ(rig.heard(), (Ids{"2"}));
  EXPECT_EQ(rig.dropped(Drop::before_cutover), 1u);
}

TEST(Publisher, SilenceBehindARequestThatHangs_ComesWhenItsTimeIsUp) {
  Rig rig;
  const CameraId other = CameraId::trusted("other");
  rig.lease(11);
  rig.lease(12, 10s, kTenure, {}, {}, other);
  rig.bus.script = {Fate::hang};
  rig.say(1, event::Kind::detection, other);
  rig.say(2);
  auto silence = rig.silence();
  rig.pass(rig.settings.close_within);
  EXPECT_TRUE(silence->done);
  EXPECT_EQ(rig.spooled(), (Ids{"2"}));
}

TEST(Publisher, CutoverAtAMomentToCome_MutesNobody) {
  Rig rig;
  rig.lease(11, 10s, kTenure, {}, rig.clock.wall() + 1h);
  rig.pass(1ms);
  rig.see(1);
  EXPECT_EQ(rig.heard(), (Ids{"1"}));
}

TEST(Publisher, ExtensionThatComesAfterTheOrderToBeSilent_DoesNotGiveTheVoiceBack) {
  Rig rig;
  rig.lease(11, 1h);
  rig.say(1);
  auto silence = rig.silence();
  rig.pass(1ms);
  ASSERT_TRUE(silence->done);
  // A new grant of the same runner: its extension was sent before that order, and overtaken by it.
  const lease::Tenure again{kTenure.boot, {12}};
  rig.publisher->set_lease(kCam, {12}, again, rig.clock.now() + 10s, kTenure, {}, true);
  rig.pass(1ms);
  rig.say(2);
  EXPECT_EQ(rig.heard(), (Ids{"1"}));
  rig.publisher->set_lease(kCam, {13}, again, rig.clock.now() + 10s, kTenure);  // wanted here again
  rig.pass(1ms);
  rig.say(3);
  EXPECT_EQ(rig.heard(), (Ids{"1", "3"}));
}

TEST(Publisher, Silence_SendsWhatWaits_AndTellsTheLastCapture) {
  Rig rig;
  rig.bus.answers_after = 100ms;
  rig.lease(11, 1h);
  rig.say(5);
  rig.say(6);
  rig.say(7, event::Kind::status);
  auto silence = rig.silence();
  EXPECT_FALSE(silence->done) << "5 is in flight";
  rig.say(8);
  rig.pass(150ms);
  EXPECT_FALSE(silence->done) << "6 and the last status are in flight";
  rig.pass(1s);
  EXPECT_TRUE(silence->done);
  EXPECT_EQ(silence->last, WallTime(Duration(6)));
  EXPECT_EQ(rig.heard(), (Ids{"5", "6", "7"}));
  EXPECT_EQ(rig.dropped(Drop::silent), 1u);
  rig.publisher->set_lease(kCam, {11}, kTenure, Instant::max());
  rig.say(9);
  EXPECT_EQ(rig.heard().size(), 3u) << "only a version that nobody was given ends the silence";
  rig.lease(12);
  rig.say(10);
  EXPECT_EQ(rig.heard(), (Ids{"5", "6", "7", "10"}));
}

TEST(Publisher, SilenceWhileTheBusIsDown_LeavesTheRestOnDisk_ForTheNextProcess) {
  Rig rig;
  rig.lease(11, 1h);
  rig.say(1);
  rig.bus.decide = [] { return Fate::refuse_connection; };
  rig.say(2);
  rig.say(3);
  auto silence = rig.silence();
  EXPECT_TRUE(silence->done);
  EXPECT_EQ(silence->last, WallTime(Duration(2)));
  EXPECT_EQ(rig.spooled(), (Ids{"2", "3"}));
  rig.bus.decide = {};
  auto blue_spool = std::move(rig.spool);
  auto blue = std::move(rig.publisher);
  rig.start();
  rig.lease(12, 1h, kTenure, {}, silence->last);
  rig.say(3 + 100);
  EXPECT_EQ(rig.heard(), (Ids{"1", "2", "3", "103"}));
}

TEST(Publisher, AfterACutover_NoFrameOfTheOthersTimeIsSaid) {
  Rig rig;
  event::Event blue{"t", "k", "blue", "{}", event::Kind::detection, WallTime(Duration(7))};
  rig.disk.logs[{kCam, kTenure}].events.push_back(blue);
  rig.lease(12, 1h, kTenure, {}, WallTime(Duration(5)));
  for (int n : {4, 5, 6, 7, 8}) rig.say(n);
  rig.say(3, event::Kind::status);
  rig.say(2);
  EXPECT_EQ(rig.heard(), (Ids{"blue", "8", "3", "2"})) << "a wall clock set back later mutes nobody";
  EXPECT_EQ(rig.dropped(Drop::before_cutover), 4u);
}

// Between blue's last event and green's version lie tens of milliseconds, in which pictures are taken.
TEST(Publisher, AfterACutover_WhatWasSeenWhileStandingBy_IsSaid_FromTheMomentTheOtherFellSilent) {
  Rig rig;
  for (int n = 1; n <= 100; ++n) rig.say(n);
  EXPECT_EQ(rig.bus.requests, 0) << "without a version nothing is said";
  rig.lease(12, 1h, kTenure, {}, WallTime(Duration(97)));
  rig.say(101);
  EXPECT_EQ(rig.heard(), (Ids{"98", "99", "100", "101"}));
  EXPECT_EQ(rig.dropped(Drop::no_lease) + rig.dropped(Drop::before_cutover), 97u);
}

}  // namespace weir::worker

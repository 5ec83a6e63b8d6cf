#include "publisher_testing.hpp"

#include "weir/worker/publisher_thread.hpp"

#include <gtest/gtest.h>

namespace weir::worker {

namespace {

const CameraId kCam = CameraId::trusted("cam-1");
const lease::Tenure kTenure{BootId::trusted("boot"), {10}};
const lease::Tenure kOther{BootId::trusted("boot"), {20}};
using Ids = std::vector<std::string>;

// A publisher in virtual time; `start` again is another process on the same disk.
struct Rig {
  Rig() {
    settings.retry.jitter = 0;
    start();
  }
  void start() {
    spool = std::make_unique<FakeSpool>(disk);
    PublisherHooks hooks{[this](const CameraId&, lease::Version v) { stale.push_back(v.n); },
                         [this](Duration d) { handed.push_back(d); }};
    publisher = std::make_unique<Publisher>(io, clock, bus, *spool, settings, hooks);
    asio::co_spawn(io, publisher->run(), [this](std::exception_ptr) { ended = true; });
  }
  void pass(Duration time = {}) { clock.run(clock.now() + time); }
  void say(int n, EventKind kind = EventKind::detection, const CameraId& camera = kCam) {
    Outgoing event{.camera = camera,
                   .topic = "t",
                   .routing_key = "k",
                   .event_id = fmt::format("{}", n),
                   .payload = "{\"n\":1}",
                   .captured = WallTime(Duration(n)),
                   .kind = kind};
    publisher->publish(std::move(event));
    pass();
  }
  // Now, by both clocks.
  void see(int n) {
    publisher->publish({.camera = kCam, .topic = "t", .routing_key = "k", .event_id = fmt::to_string(n), .payload = "{}",
                        .captured = clock.wall(), .decoded = clock.now()});
    pass();
  }
  void lease(int version, Duration lasts = 10s, lease::Tenure tenure = kTenure, std::optional<lease::Tenure> adopt = {},
             std::optional<WallTime> after = {}, const CameraId& camera = kCam) {
    publisher->set_lease(camera, {version}, tenure, clock.now() + lasts, adopt, after);
    pass();
  }
  struct Silence {
    bool done = false;
    std::optional<WallTime> last;
  };
  std::shared_ptr<Silence> silence() {
    auto heard = std::make_shared<Silence>();
    asio::co_spawn(io, publisher->silence(kCam), [heard](std::exception_ptr, std::optional<WallTime> last) {
      *heard = {true, last};
    });
    pass();
    return heard;
  }
  void stop(Duration within) {
    asio::co_spawn(io, publisher->flush_and_stop(clock.now() + within), asio::detached);
    pass(within);
  }
  std::uint64_t dropped(Drop why) { return publisher->counters().dropped_for(why); }
  Ids spooled(lease::Tenure tenure = kTenure) {
    Ids ids;
    if (auto at = disk.logs.find({kCam, tenure}); at != disk.logs.end())
      for (const CameraEvent& event : at->second.events) ids.push_back(event.event_id);
    return ids;
  }
  Ids heard() { return bus.ids(kCam); }

  asio::io_context io;
  VirtualClock clock{io};
  FakeBus bus{clock};
  FakeDisk disk;
  PublisherSettings settings;
  std::unique_ptr<FakeSpool> spool;
  std::unique_ptr<Publisher> publisher;
  std::vector<std::int64_t> stale;
  std::vector<Duration> handed;
  bool ended = false;
};

}  // namespace

TEST(Publisher, LeasedEvent_GoesOutAtOnce_StampedWithVersionAndDeadline) {
  Rig rig;
  rig.lease(11);
  rig.say(1);
  ASSERT_EQ(rig.bus.accepted.size(), 1u);
  EXPECT_EQ(rig.bus.accepted[0].payload, R"({"n":1,"lease_version":11})");
  EXPECT_EQ(rig.bus.accepted[0].stamp->deadline, Instant(10s));
  EXPECT_EQ(rig.publisher->counters().published, 1u);
  EXPECT_EQ(rig.clock.now(), Instant{});
}

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
  rig.say(1, EventKind::detection, other);
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

TEST(Publisher, WithoutALease_NothingIsSaid_TheLatestStatusGoesFirstLater) {
  Rig rig;
  rig.say(1);
  rig.say(2, EventKind::status);
  rig.say(3, EventKind::status);
  rig.say(4, EventKind::error);
  rig.pass(10s);
  EXPECT_EQ(rig.bus.requests, 0);
  rig.disk.logs[{kCam, kTenure}].events.push_back({EventKind::detection, "t", "k", "old", "{}"});
  rig.lease(11);
  rig.say(5);
  EXPECT_EQ(rig.heard(), (Ids{"3", "old", "5"}));
  EXPECT_EQ(rig.dropped(Drop::no_lease), 2u);
}

TEST(Publisher, TenureWithoutAVersion_Spools) {
  Rig rig;
  rig.lease(0);
  rig.say(1);
  rig.say(2, EventKind::status);
  EXPECT_EQ(rig.spooled(), (Ids{"1", "2"}));
  EXPECT_EQ(rig.bus.requests, 0);
  rig.lease(11);
  EXPECT_EQ(rig.heard(), (Ids{"1", "2"}));
}

TEST(Publisher, DeadlineBetweenAcceptanceAndBytes_WritesNothing_SpoolsAndFollowsInOrder) {
  Rig rig;
  rig.lease(11, 1s);
  rig.pass(900ms);
  rig.bus.blocks = 200ms;
  rig.say(1);
  rig.say(2);
  rig.pass(5s);
  EXPECT_EQ(rig.heard(), Ids{});
  EXPECT_EQ(rig.spooled(), (Ids{"1", "2"}));
  rig.say(3);
  rig.pass(5s);
  EXPECT_EQ(rig.bus.requests, 1);
  rig.bus.blocks = 0s;
  rig.publisher->extend(kCam, {11}, rig.clock.now() + 1s);
  rig.say(4);
  rig.pass(10ms);
  rig.say(5);
  EXPECT_EQ(rig.heard(), (Ids{"1", "2", "3", "4", "5"}));
  EXPECT_TRUE(rig.disk.logs.empty());
}

TEST(Publisher, DeadlineWhileInFlight_WhatIsConfirmedIsNotSpooled) {
  Rig rig;
  rig.bus.answers_after = 2s;
  rig.lease(11, 1s);
  rig.say(1);
  rig.pass(1500ms);
  rig.say(2);
  EXPECT_EQ(rig.spooled(), Ids{});
  rig.pass(1s);
  EXPECT_EQ(rig.heard(), (Ids{"1"}));
  EXPECT_EQ(rig.spooled(), (Ids{"2"}));
}

TEST(Publisher, ExtensionOfAnotherVersion_ChangesNothing) {
  Rig rig;
  rig.lease(11, 1s);
  rig.publisher->extend(kCam, {10}, Instant(1h));
  rig.publisher->extend(kCam, {12}, Instant(1h));
  rig.pass(2s);
  rig.say(1);
  EXPECT_EQ(rig.bus.requests, 0);
  rig.lease(10, 1h);
  EXPECT_EQ(rig.bus.requests, 0) << "a lower version is one that was overtaken";
}

TEST(Publisher, OtherTenure_DropsTheSpool_AndCounts) {
  Rig rig;
  rig.lease(11, 1s);
  rig.pass(2s);
  rig.say(1);
  rig.say(2);
  rig.lease(21, 10s, kOther);
  rig.say(3);
  EXPECT_EQ(rig.heard(), (Ids{"3"}));
  EXPECT_EQ(rig.dropped(Drop::other_tenure), 2u);
  EXPECT_TRUE(rig.disk.logs.empty());
}

TEST(Publisher, AdoptedTenure_IsPublishedBeforeTheFirstLiveEvent) {
  for (bool same_process : {true, false}) {
    Rig rig;
    rig.lease(11, 1s);
    rig.pass(2s);
    rig.say(1);
    rig.say(2);
    if (!same_process) {
      rig.stop(1s);
      rig.start();
    }
    rig.lease(21, 10s, kOther, kTenure);
    rig.say(3);
    EXPECT_EQ(rig.heard(), (Ids{"1", "2", "3"}));
    EXPECT_EQ(rig.bus.accepted[0].stamp->version.n, 21);
  }
}

TEST(Publisher, BusDown_Spools_RetriesWithBackoff_AndFollowsInOrder) {
  Rig rig;
  rig.lease(11, 1h);
  rig.bus.decide = [] { return Fate::refuse_connection; };
  for (int n = 0; n < 30; ++n) {
    rig.say(n);
    rig.pass(1s);
  }
  EXPECT_GT(rig.bus.requests, 15);
  EXPECT_LT(rig.bus.requests, 40);
  EXPECT_EQ(rig.spooled().size(), 30u);
  EXPECT_FALSE(rig.spool->unflushed);
  EXPECT_GT(rig.spool->flushes, 10);
  rig.bus.decide = {};
  rig.pass(2s);
  rig.say(30);
  Ids expected;
  for (int n = 0; n <= 30; ++n) expected.push_back(fmt::format("{}", n));
  EXPECT_EQ(rig.heard(), expected);
}

TEST(Publisher, AmbiguousBatch_IsSentAgain_FromTheLowestUnconfirmed) {
  for (Fate fate : {Fate::lose_reply, Fate::hang_after, Fate::hang}) {
    Rig rig;
    rig.lease(11, 1h);
    rig.bus.script = {fate};
    rig.say(1);
    rig.say(2);
    rig.pass(10s);
    rig.say(3);
    EXPECT_EQ(rig.heard(), (Ids{"1", "2", "3"}));
    EXPECT_EQ(rig.publisher->counters().published, 3u);
    EXPECT_EQ(rig.publisher->counters().bus_errors, 1u);
  }
}

TEST(Publisher, StaleVersion_StopsTheCamera_SpoolsUntilTheAnswer) {
  Rig rig;
  rig.bus.row[kCam] = {12};
  rig.lease(11, 1h);
  rig.say(1);
  rig.say(2);
  rig.pass(10s);
  EXPECT_EQ(rig.stale, std::vector<std::int64_t>{11});
  EXPECT_EQ(rig.bus.requests, 1);
  EXPECT_EQ(rig.spooled(), (Ids{"1", "2"}));
  rig.lease(12, 1h);
  EXPECT_EQ(rig.heard(), (Ids{"1", "2"}));
  EXPECT_EQ(rig.bus.accepted[0].payload, R"({"n":1,"lease_version":12})");
}

TEST(Publisher, StaleAnswerToAnOldVersion_IsStampedAnewAndSentAgain) {
  Rig rig;
  rig.bus.row[kCam] = {12};
  rig.bus.answers_after = 100ms;
  rig.lease(11, 1h);
  rig.say(1);
  rig.lease(12, 1h);
  rig.say(2);
  rig.pass(1s);
  EXPECT_TRUE(rig.stale.empty());
  EXPECT_EQ(rig.heard(), (Ids{"1", "2"}));
}

TEST(Publisher, Loss_DropsQueueAndSpool_AndCounts) {
  Rig rig;
  rig.lease(11, 1s);
  rig.pass(2s);
  rig.say(1);
  rig.say(2);
  rig.publisher->lost(kCam);
  rig.pass();
  EXPECT_EQ(rig.dropped(Drop::lost), 2u);
  EXPECT_TRUE(rig.disk.logs.empty());
  rig.lease(12, 1h, kOther);
  rig.say(3);
  EXPECT_EQ(rig.heard(), (Ids{"3"}));
}

TEST(Publisher, LossWhileInFlight_TouchesNothingOfTheNextLease) {
  Rig rig;
  rig.bus.answers_after = 100ms;
  rig.lease(11, 1h);
  rig.say(1);
  rig.publisher->lost(kCam);
  rig.lease(12, 1h, kOther);
  rig.say(2);
  rig.pass(1s);
  EXPECT_EQ(rig.heard(), (Ids{"1", "2"}));
}

TEST(Publisher, Silence_SendsWhatWaits_AndTellsTheLastCapture) {
  Rig rig;
  rig.bus.answers_after = 100ms;
  rig.lease(11, 1h);
  rig.say(5);
  rig.say(6);
  rig.say(7, EventKind::status);
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
  CameraEvent blue{EventKind::detection, "t", "k", "blue", "{}", WallTime(Duration(7))};
  rig.disk.logs[{kCam, kTenure}].events.push_back(blue);
  rig.lease(12, 1h, kTenure, {}, WallTime(Duration(5)));
  for (int n : {4, 5, 6, 7, 8}) rig.say(n);
  rig.say(3, EventKind::status);
  rig.say(2);
  EXPECT_EQ(rig.heard(), (Ids{"blue", "8", "3", "2"})) << "a wall clock set back later mutes nobody";
  EXPECT_EQ(rig.dropped(Drop::before_cutover), 4u);
}

// Between blue's last word and green's version lie tens of milliseconds, and pictures.
TEST(Publisher, AfterACutover_WhatWasSeenWhileStandingBy_IsSaid_FromTheMomentTheOtherFellSilent) {
  Rig rig;
  for (int n = 1; n <= 100; ++n) rig.say(n);
  EXPECT_EQ(rig.bus.requests, 0) << "without a version nothing is said";
  rig.lease(12, 1h, kTenure, {}, WallTime(Duration(97)));
  rig.say(101);
  EXPECT_EQ(rig.heard(), (Ids{"98", "99", "100", "101"}));
  EXPECT_EQ(rig.dropped(Drop::no_lease) + rig.dropped(Drop::before_cutover), 97u);
}

TEST(Publisher, SlowBus_DropsTheOldestDetections_KeepsStatus) {
  Rig rig;
  rig.bus.answers_after = 4s;
  rig.lease(11, 1h);
  rig.say(0);
  rig.say(1, EventKind::status);
  for (int n = 2; n < 400; ++n) rig.say(n);
  rig.say(400, EventKind::status);
  EXPECT_EQ(rig.publisher->counters().queued, 256u);
  EXPECT_EQ(rig.dropped(Drop::queue_full), 401u - 256u);
  rig.pass(1h);
  Ids heard = rig.heard();
  EXPECT_EQ(rig.bus.largest, 255u) << "all that waited in one request";
  ASSERT_EQ(heard.size(), 256u);
  EXPECT_EQ(heard[0], "0");
  EXPECT_EQ(heard[1], "1");
  EXPECT_EQ(heard[2], "147");
  EXPECT_EQ(heard.back(), "400");
}

TEST(Publisher, FullDisk_KeepsABoundedQueueInMemory_AndRecovers) {
  Rig rig;
  rig.lease(11, 1h);
  rig.disk.full = true;
  rig.bus.decide = [] { return Fate::refuse_connection; };
  for (int n = 0; n < 300; ++n) rig.say(n);
  EXPECT_TRUE(rig.publisher->counters().disk_trouble);
  EXPECT_EQ(rig.dropped(Drop::queue_full), 44u);
  rig.disk.full = false;
  rig.say(300);
  EXPECT_EQ(rig.spooled().size(), 256u) << "what memory held goes to the disk";
  rig.bus.decide = {};
  rig.pass(1h);
  EXPECT_EQ(rig.heard().front(), "45");
  EXPECT_EQ(rig.heard().back(), "300");
  EXPECT_EQ(rig.heard().size(), 256u);
}

TEST(Publisher, DiskThatFillsUpLater_KeepsTheOrderOfDiskAndMemory) {
  Rig rig;
  rig.lease(11, 1h);
  rig.bus.decide = [] { return Fate::refuse_connection; };
  for (int n = 0; n < 120; ++n) rig.say(n);
  rig.disk.full = true;
  for (int n = 120; n < 130; ++n) rig.say(n);
  EXPECT_EQ(rig.spooled().size(), 120u);
  EXPECT_EQ(rig.publisher->counters().queued, 10u);
  rig.bus.decide = {};
  rig.pass(1h);
  Ids expected;
  for (int n = 0; n < 130; ++n) expected.push_back(fmt::format("{}", n));
  EXPECT_EQ(rig.heard(), expected);
}

TEST(Publisher, LiveEventsBehindALongSpool_GoToTheDisk_AndNoneIsDropped) {
  Rig rig;
  rig.lease(11, 1h);
  rig.bus.script = {Fate::refuse_connection};
  for (int n = 0; n < 1000; ++n) rig.say(n);
  rig.bus.answers_after = 1s;
  for (int n = 1000; n < 1400; ++n) {
    rig.say(n);
    rig.pass(10ms);
  }
  EXPECT_LT(rig.heard().size(), 1000u);
  rig.pass(1h);
  EXPECT_EQ(rig.heard().size(), 1400u);
  EXPECT_EQ(rig.dropped(Drop::queue_full), 0u);
}

TEST(Publisher, AnswerToAnEndedTenure_TakesNothingOffTheNewOne) {
  Rig rig;
  rig.bus.answers_after = 100ms;
  rig.lease(11, 1h);
  rig.say(1);
  rig.lease(21, 1h, kOther);
  rig.say(2);
  rig.pass(1s);
  EXPECT_EQ(rig.heard(), (Ids{"1", "2"}));
}

TEST(Publisher, WrongEvent_IsFoundAndDropped_TheOthersArrive) {
  Rig rig;
  rig.bus.wrong = "40";
  CameraId other = CameraId::trusted("cam-2");
  rig.lease(11, 1h);
  rig.lease(12, 1h, kTenure, {}, {}, other);
  rig.bus.script = {Fate::refuse_connection};
  for (int n = 0; n < 100; ++n) rig.say(n, EventKind::detection, n % 2 == 0 ? kCam : other);
  rig.pass(1h);
  EXPECT_EQ(rig.heard().size(), 49u);
  EXPECT_EQ(rig.bus.ids(other).size(), 50u);
  EXPECT_EQ(rig.dropped(Drop::refused), 1u);
  EXPECT_LT(rig.bus.requests, 60);
}

TEST(Publisher, Batches_AreBounded_OneAtATime_AndFair) {
  Rig rig;
  rig.bus.script = {Fate::refuse_connection};
  CameraId other = CameraId::trusted("cam-2");
  rig.lease(11, 1h);
  rig.lease(12, 1h, kTenure, {}, {}, other);
  for (int n = 0; n < 2000; ++n) rig.say(n);
  rig.bus.answers_after = 10ms;
  rig.pass(110ms);
  rig.say(5000, EventKind::detection, other);
  rig.pass(30ms);
  EXPECT_EQ(rig.bus.ids(other).size(), 1u) << "a camera with a long spool does not hold up another";
  EXPECT_LT(rig.heard().size(), 2000u);
  rig.pass(1h);
  EXPECT_EQ(rig.heard().size(), 2000u);
  EXPECT_LE(rig.bus.largest, 256u);
  EXPECT_EQ(rig.bus.at_once, 1);
}

TEST(Publisher, Summaries_AreSentLive_ButNeverSpooled) {
  Rig rig;
  rig.lease(11, 1s);
  rig.say(1, EventKind::summary);
  rig.pass(2s);
  rig.say(2, EventKind::summary);
  rig.say(3, EventKind::error);
  EXPECT_EQ(rig.heard(), (Ids{"1"}));
  EXPECT_EQ(rig.spooled(), (Ids{"3"}));
  EXPECT_EQ(rig.dropped(Drop::summary), 1u);
}

TEST(Publisher, Stop_SendsWhatItCan_SpoolsTheRest_AndFlushes) {
  Rig rig;
  rig.bus.answers_after = 1s;
  rig.lease(11, 1h);
  rig.say(1);
  rig.say(2);
  rig.stop(1500ms);
  EXPECT_TRUE(rig.ended);
  EXPECT_EQ(rig.spooled(), (Ids{"2"})) << "in flight at the deadline: it may be sent again";
  EXPECT_FALSE(rig.spool->unflushed);
  rig.say(3);
  EXPECT_EQ(rig.dropped(Drop::stopped), 1u);
  EXPECT_TRUE(rig.silence()->done);
}

TEST(Publisher, StopWithNothingToSay_EndsAtOnce) {
  Rig rig;
  rig.lease(11, 1s);
  rig.pass(2s);
  rig.say(1);
  asio::co_spawn(rig.io, rig.publisher->flush_and_stop(Instant(1h)), asio::detached);
  rig.pass();
  EXPECT_TRUE(rig.ended);
  EXPECT_EQ(rig.spooled(), (Ids{"1"}));
}

TEST(Publisher, Forget_KeepsTheSpoolOnDisk_AlsoWhatIsInFlight) {
  Rig rig;
  rig.lease(11, 1h);
  rig.bus.script = {Fate::hang};
  rig.say(1);
  rig.say(2);
  rig.publisher->forget(kCam);
  rig.pass(10s);
  EXPECT_EQ(rig.spooled(), (Ids{"1", "2"}));
  rig.lease(12, 1h);
  rig.pass();
  EXPECT_EQ(rig.heard(), (Ids{"1", "2"}));
}

TEST(Publisher, TimeFromDecodedToBus_IsObserved) {
  Rig rig;
  rig.lease(11, 1h);
  rig.pass(5s);
  Outgoing event{.camera = kCam, .event_id = "1", .payload = "{}"};
  event.decoded = rig.clock.now() - 3ms;
  rig.publisher->publish(std::move(event));
  rig.pass();
  EXPECT_EQ(rig.handed, std::vector<Duration>{3ms});
}

TEST(PublisherThread, EventsOfManyThreads_ArriveInTheOrderOfEach) {
  RealClock clock;
  FakeDisk disk;
  FakeBus* bus = nullptr;
  auto make_bus = [&](asio::io_context&) {
    auto made = std::make_unique<FakeBus>(clock);
    bus = made.get();
    return made;
  };
  std::map<CameraId, Ids> expected, heard;
  {
    PublisherThread thread(make_bus, std::make_unique<FakeSpool>(disk));
    std::vector<std::thread> cameras;
    for (int c = 0; c < 4; ++c) {
      CameraId camera = CameraId::trusted(fmt::format("cam-{}", c));
      for (int n = 0; n < 200; ++n) expected[camera].push_back(fmt::format("{}-{}", c, n));
      cameras.emplace_back([&publisher = thread.publisher(), camera, ids = expected[camera]] {
        publisher.set_lease(camera, {11}, kTenure, boot_now() + 1h);
        for (const std::string& id : ids)
          publisher.publish({.camera = camera, .topic = "t", .routing_key = "k", .event_id = id, .payload = "{}"});
      });
    }
    for (auto& each : cameras) each.join();
    asio::io_context mine;
    asio::co_spawn(mine, thread.publisher().flush_and_stop(boot_now() + 20s), asio::detached);
    mine.run();
    for (const auto& [camera, ids] : expected) heard[camera] = bus->ids(camera);
    EXPECT_EQ(thread.publisher().counters().published, 800u);
  }
  EXPECT_EQ(heard, expected);
}

}  // namespace weir::worker

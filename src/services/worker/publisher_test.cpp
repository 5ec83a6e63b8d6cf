#include "publisher_rig.hpp"

#include "stall.hpp"
#include "weir/worker/publisher_thread.hpp"

namespace weir::worker {

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

TEST(Publisher, WithoutALease_NothingIsSaid_TheLatestStatusGoesFirstLater) {
  Rig rig;
  rig.say(1);
  rig.say(2, event::Kind::status);
  rig.say(3, event::Kind::status);
  rig.say(4, event::Kind::error);
  rig.pass(10s);
  EXPECT_EQ(rig.bus.requests, 0);
  rig.disk.logs[{kCam, kTenure}].events.push_back({"t", "k", "old", "{}"});
  rig.lease(11);
  rig.say(5);
  EXPECT_EQ(rig.heard(), (Ids{"3", "old", "5"}));
  EXPECT_EQ(rig.dropped(Drop::no_lease), 2u);
}

TEST(Publisher, TenureWithoutAVersion_Spools) {
  Rig rig;
  rig.lease(0);
  rig.say(1);
  rig.say(2, event::Kind::status);
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
  rig.publisher->set_lease(kCam, {11}, kTenure, rig.clock.now() + 1s, {}, {}, true);
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

TEST(Publisher, ExtensionOfALowerVersion_ChangesNothing) {
  Rig rig;
  rig.lease(11, 1s);
  rig.publisher->set_lease(kCam, {10}, kTenure, Instant(1h), {}, {}, true);
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

TEST(Publisher, SlowBus_DropsTheOldestDetections_KeepsStatus) {
  Rig rig;
  rig.bus.answers_after = 4s;
  rig.lease(11, 1h);
  rig.say(0);
  rig.say(1, event::Kind::status);
  for (int n = 2; n < 400; ++n) rig.say(n);
  rig.say(400, event::Kind::status);
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
  for (int n = 0; n < 100; ++n) rig.say(n, event::Kind::detection, n % 2 == 0 ? kCam : other);
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
  rig.say(5000, event::Kind::detection, other);
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
  rig.say(1, event::Kind::summary);
  rig.pass(2s);
  rig.say(2, event::Kind::summary);
  rig.say(3, event::Kind::error);
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
  rig.publisher->publish(kCam, {.event_id = "1", .payload = "{}"}, rig.clock.now() - 3ms);
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
          publisher.publish(camera, {"t", "k", id, "{}"});
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

TEST(PublisherThread, WhoseDiskHangs_IsStuck_UntilItAnswers) {
  FakeDisk disk;
  RealClock clock;
  auto make_bus = [&](asio::io_context&) { return std::make_unique<FakeBus>(clock); };
  PublisherThread thread(make_bus, std::make_unique<FakeSpool>(disk), {.disk_within = 200ms});
  thread.publisher().set_lease(CameraId::trusted("a"), {11}, kTenure, boot_now() + 1h);
  Instant since = boot_now();
  ASSERT_TRUE(test::eventually(10s, [&] { return boot_now() > since + 600ms; }));
  EXPECT_FALSE(thread.stuck());
  disk.hangs = true;
  thread.publisher().set_lease(CameraId::trusted("b"), {12}, kTenure, boot_now() + 1h);
  EXPECT_TRUE(test::eventually(10s, [&] { return thread.stuck(); }));
  disk.hangs = false;
  disk.hangs.notify_all();
  EXPECT_TRUE(test::eventually(10s, [&] { return !thread.stuck(); }));
}

}  // namespace weir::worker

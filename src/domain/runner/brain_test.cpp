// Leases, tokens and workers: what a runner that has all it needs does with its cameras.
#include "brain_testing.hpp"

namespace weir::runner {
namespace {

using testing::Bench;
using testing::cameras;
using testing::wish;

TEST(Brain, EveryCamera_GetsItsLeaseItsTokenAndOneWorker) {
  Bench bench;
  bench.list(cameras(5));
  bench.pass(1s);
  for (int i = 0; i < 5; ++i) EXPECT_NE(bench.speaker(fmt::format("c{:02}", i)), 0);
  EXPECT_EQ(bench.token_questions, 5);
  EXPECT_EQ(bench.workers_alive(), 2) << "one works, one is kept ready";
  bench.pass(30s);
  EXPECT_EQ(bench.token_questions, 5) << "renewals cost no token";
}

TEST(Brain, ACameraThatSomebodyElseHas_IsAskedForSlowlyAndTakenWhenItIsFree) {
  Bench bench;
  bench.rows[CameraId::trusted("c00")].owner = "other";
  bench.list(cameras(1));
  bench.pass(5s);
  EXPECT_EQ(bench.speaker("c00"), 0);
  bench.rows[CameraId::trusted("c00")].owner = "";
  bench.feed(LeaseNews{.camera = CameraId::trusted("c00"), .free = true});
  bench.pass(300ms);
  EXPECT_NE(bench.speaker("c00"), 0);
}

TEST(Brain, CamerasThatWereTakenAwayAndAreFreeAgain_AreTakenSoon) {
  Bench bench;
  bench.list(cameras(5));
  bench.pass(1s);
  // Deleted and registered again between two looks at the list.
  for (auto& [id, row] : bench.rows) {
    row = {"", {++bench.counter}, row.grant};
    bench.feed(LeaseNews{.camera = id, .free = true, .version = row.version});
  }
  bench.pass(1600ms);
  for (int i = 0; i < 5; ++i) EXPECT_NE(bench.speaker(fmt::format("c{:02}", i)), 0) << i;
}

TEST(Brain, NeverMoreThanItsCapacity) {
  Bench bench({.capacity = 3});
  bench.list(cameras(8));
  bench.pass(10s);
  EXPECT_EQ(bench.brain.summary().owned, 3);
  EXPECT_EQ(bench.brain.summary().pending, 5);
  bench.feed(FlagsHeard{.capacity = 5});
  bench.pass(10s);
  EXPECT_EQ(bench.brain.summary().owned, 5);
}

TEST(Brain, WithoutABoundOnWorkers_TheyFollowTheCapacity_AlsoWhereAnOperatorRaisesIt) {
  for (auto [workers_max, room] : {std::pair{0, 9}, {2, 4}}) {
    Bench bench({.capacity = 3, .shard_size = 2, .workers_max = workers_max});
    bench.feed(FlagsHeard{.capacity = 9});
    bench.list(cameras(12));
    bench.pass(10s);
    EXPECT_EQ(bench.brain.summary().owned, room);
  }
}

TEST(Brain, Pending_IsWhatNobodyHas) {
  Bench bench({.capacity = 1});
  for (const char* name : {"c00", "c01"}) bench.rows[CameraId::trusted(name)].owner = "other";
  bench.list(cameras(4));
  bench.pass(10s);
  EXPECT_EQ(bench.brain.summary().owned, 1);
  EXPECT_EQ(bench.brain.summary().pending, 1) << "two are another runner's";
  bench.feed(LeaseNews{.camera = CameraId::trusted("c00"), .free = true});
  EXPECT_EQ(bench.brain.summary().pending, 2);
  bench.feed(LeaseNews{.camera = CameraId::trusted("c00"), .runner = RunnerId::trusted("other")});
  EXPECT_EQ(bench.brain.summary().pending, 1);
}

TEST(Brain, WhatOthersHold_IsNotPending_AlsoForWhoeverDoesNotAsk) {
  Bench bench({.capacity = 1});
  for (const char* name : {"c01", "c02"}) bench.rows[CameraId::trusted(name)] = {"other", {40}, {40}};
  bench.list(cameras(4));
  EXPECT_EQ(bench.brain.summary().pending, 3) << "nothing was heard of the others' yet";
  HoldersHeard held{{{CameraId::trusted("c01"), {40}}, {CameraId::trusted("c02"), {40}}}};
  bench.feed(held);
  EXPECT_EQ(bench.brain.summary().pending, 1);
  bench.feed(LeaseNews{.camera = CameraId::trusted("c01"), .free = true, .version = {41}});
  bench.feed(held);
  EXPECT_EQ(bench.brain.summary().pending, 2) << "the list is older than the news";
}

TEST(Brain, WhatAnotherTook_IsNotPending_WhenTheStoreSaysItIsLost) {
  Bench bench;
  bench.list(cameras(1));
  bench.pass(1s);
  bench.rows[CameraId::trusted("c00")] = {"other", {++bench.counter}, {}};
  bench.feed(
      LeaseNews{.camera = CameraId::trusted("c00"), .runner = RunnerId::trusted("other"), .version = {bench.counter}});
  while (bench.brain.summary().owned > 0) bench.pass(100ms);
  EXPECT_EQ(bench.brain.summary().pending, 0);
}

TEST(Brain, ManyCameras_AreAskedForInBatchesThatTheControlPlaneReads) {
  Bench bench({.capacity = 2000, .workers_max = 200});
  size_t asked = 0;
  for (const Action& action : bench.brain.handle(CamerasListed{cameras(1200)}, {bench.now, {}})) {
    const auto* ask = std::get_if<AskLeases>(&action);
    if (ask == nullptr) continue;
    EXPECT_LE(ask->questions.size(), 1000u);
    asked += ask->questions.size();
  }
  EXPECT_EQ(asked, 1200u);
}

TEST(Brain, WithoutAToken_NothingIsDialled) {
  Bench bench;
  bench.tokens = false;
  bench.list(cameras(1));
  bench.pass(3s);
  EXPECT_EQ(bench.speaker("c00"), 0);
  EXPECT_EQ(bench.brain.summary().cameras[0].phase, CameraPhase::budget);
  EXPECT_LT(bench.token_questions, 10);
  bench.tokens = true;
  bench.pass(1s);
  EXPECT_NE(bench.speaker("c00"), 0);
}

TEST(Brain, AKilledWorker_IsReplacedAtOnceUnderFreshVersions) {
  Bench bench;
  bench.list(cameras(4));
  bench.pass(1s);
  WorkerNumber before = bench.speaker("c00");
  bench.kill(before);
  bench.pass(200ms);
  for (int i = 0; i < 4; ++i) {
    WorkerNumber after = bench.speaker(fmt::format("c{:02}", i));
    EXPECT_NE(after, 0);
    EXPECT_NE(after, before);
  }
  EXPECT_EQ(bench.token_questions, 4) << "the grant is the same";
  EXPECT_EQ(bench.processes.size(), 3u) << "the idle worker took over, and one more was started to be ready";
}

TEST(Brain, AWorkerThatKeepsCrashing_IsStartedLessAndLessOften) {
  Bench bench({.spare = false});
  bench.list(cameras(1));
  int starts = 0;
  for (int i = 0; i < 200; ++i) {
    bench.pass(500ms);
    if (WorkerNumber worker = bench.speaker("c00"); worker != 0) {
      ++starts;
      bench.kill(worker);
    }
  }
  EXPECT_LE(starts, 10);
  EXPECT_TRUE(bench.noted("worker.capped"));
}

TEST(Brain, ACameraThatCrashedItsWorkerTwice_GetsOneOfItsOwn) {
  Bench bench;
  bench.list(cameras(3));
  bench.pass(1s);
  for (int i = 0; i < 2; ++i) {
    bench.kill(bench.speaker("c01"), "c01");
    bench.pass(5s);
  }
  EXPECT_EQ(bench.crashes.size(), 2u);
  EXPECT_TRUE(bench.noted("camera.alone"));
  EXPECT_NE(bench.speaker("c01"), bench.speaker("c00"));
  EXPECT_EQ(bench.speaker("c00"), bench.speaker("c02"));
}

TEST(Brain, ARemovedCamera_IsSilencedBeforeItsLeaseIsReleased) {
  Bench bench;
  bench.list(cameras(2));
  bench.pass(1s);
  bench.told.clear();
  bench.list(cameras(1));
  bench.pass(200ms);
  EXPECT_EQ(bench.speaker("c01"), 0);
  EXPECT_EQ(bench.rows[CameraId::trusted("c01")].owner, "");
  EXPECT_NE(bench.speaker("c00"), 0);
  for (const auto& each : bench.told)
    EXPECT_TRUE(each.what == Message::extend || each.camera.str() == "c01")
        << "a camera was touched that did not change";
}

TEST(Brain, AnAddedCamera_TouchesNoOther) {
  Bench bench;
  bench.list(cameras(3));
  bench.pass(1s);
  bench.told.clear();
  bench.list(cameras(4));
  bench.pass(500ms);
  EXPECT_EQ(bench.speaker("c03"), bench.speaker("c00"));
  for (const auto& each : bench.told)
    EXPECT_TRUE(each.what == Message::extend || each.camera.str() == "c03");
}

TEST(Brain, AChangedConfiguration_GoesToTheRunningWorkerUnderTheSameVersion) {
  Bench bench;
  bench.list(cameras(1));
  bench.pass(1s);
  lease::Version before = bench.rows[CameraId::trusted("c00")].version;
  WorkerNumber worker = bench.speaker("c00");
  bench.told.clear();
  bench.list({wish("c00", "s", "v2")});
  bench.pass(500ms);
  EXPECT_EQ(bench.speaker("c00"), worker);
  EXPECT_EQ(bench.rows[CameraId::trusted("c00")].version, before);
  EXPECT_TRUE(std::ranges::any_of(bench.told, [](const auto& t) { return t.what == Message::add; }));
}

TEST(Brain, ARevokedLease_StopsTheCameraAsSoonAsTheStoreSaysSo) {
  Bench bench;
  bench.list(cameras(1));
  bench.pass(1s);
  bench.rows[CameraId::trusted("c00")] = {"other", {++bench.counter}, {}};
  bench.feed(LeaseNews{.camera = CameraId::trusted("c00"), .free = true, .version = {bench.counter}});
  bench.pass(100ms);
  EXPECT_EQ(bench.speaker("c00"), 0);
  EXPECT_TRUE(std::ranges::any_of(bench.told, [](const auto& t) { return t.what == Message::lose; }));
}

TEST(Brain, ARevocationHeardWhileARenewalIsUnderWay_IsAskedAboutWithItsAnswer) {
  Bench bench;
  bench.list(cameras(1));
  bench.pass(1s);
  CameraId camera = CameraId::trusted("c00");
  auto question = [&](const Event& event) -> std::optional<lease::Question> {
    for (const Action& action : bench.brain.handle(event, {bench.now, {}}))
      if (const auto* ask = std::get_if<AskLeases>(&action)) return ask->questions.front();
    return std::nullopt;
  };
  std::optional<lease::Question> renewal;
  while (!renewal) {
    bench.now += 100ms;
    renewal = question(TimePassed{});
  }
  lease::Answer renewed{camera};
  renewed.outcome = lease::Outcome::renewed;
  renewed.ttl = 6s;
  renewed.version = bench.rows[camera].version;
  renewed.grant = bench.rows[camera].grant;
  EXPECT_FALSE(question(LeaseNews{.camera = camera, .free = true, .version = {renewed.version.n + 1}}));
  EXPECT_TRUE(question(LeasesHeard{{{camera, lease::Answered{renewal->id, renewed}}}}))
      << "the answer is older than the news";
}

TEST(Brain, AnUnansweredControlPlane_StopsNothing) {
  Bench bench;
  bench.list(cameras(2));
  bench.pass(1s);
  bench.plane_answers = false;
  bench.pass(120s);
  EXPECT_NE(bench.speaker("c00"), 0);
  bench.plane_answers = true;
  bench.pass(5s);
  EXPECT_NE(bench.speaker("c00"), 0);
  EXPECT_FALSE(bench.noted("camera.lost"));
}

TEST(Brain, AboveItsMark_KeepsWhatItHas_TakesNothing_AndSaysWhy_UntilItIsBelow) {
  Bench bench;
  bench.list(cameras(2));
  bench.pass(1s);
  WorkerNumber worker = bench.speaker("c00");
  for (int beat = 0; beat < 2; ++beat) bench.feed(LoadHeard{true, "memory is short"});
  bench.list(cameras(4));
  for (const char* name : {"c02", "c03"}) bench.feed(LeaseNews{.camera = CameraId::trusted(name), .free = true});
  bench.pass(10s);
  EXPECT_EQ(bench.brain.summary().owned, 2);
  EXPECT_EQ(bench.brain.summary().why_not, "memory is short");
  for (const char* name : {"c00", "c01"}) EXPECT_EQ(bench.speaker(name), worker) << name;
  for (const char* name : {"c02", "c03"}) EXPECT_EQ(bench.rows[CameraId::trusted(name)].owner, "") << name;
  auto said = [&](const std::string& event) { return std::ranges::count(bench.notes, event, &Note::event); };
  EXPECT_EQ(said("runner.overloaded"), 1) << "once, not every second";
  EXPECT_EQ(said("runner.load_normal"), 0);

  bench.kill(worker);
  bench.pass(1s);
  for (const char* name : {"c00", "c01"})
    EXPECT_NE(bench.speaker(name), 0) << "what it holds it also replaces: " << name;

  bench.feed(LoadHeard{});
  bench.pass(3s);
  EXPECT_EQ(bench.brain.summary().owned, 4);
  EXPECT_EQ(said("runner.load_normal"), 1);
}

TEST(Brain, ANewGrant_BeginsWithoutTheMomentWhereTheOldOneEnded) {
  Bench bench;
  bench.list(cameras(1));
  bench.pass(1s);
  const CameraId id = CameraId::trusted("c00");
  bench.rows[id] = {"other", {++bench.counter}, {}};
  bench.feed(LeaseNews{.camera = id, .free = true, .version = {bench.counter}});
  bench.pass(1s);
  bench.told.clear();
  bench.rows[id].owner = "";
  bench.feed(LeaseNews{.camera = id, .free = true, .version = {bench.counter}});
  bench.pass(3s);
  auto added = std::ranges::find_if(bench.told, [](const auto& t) { return t.what == Message::add; });
  ASSERT_NE(added, bench.told.end());
  EXPECT_FALSE(added->after) << "others may have spoken since";
}

}  // namespace
}  // namespace weir::runner

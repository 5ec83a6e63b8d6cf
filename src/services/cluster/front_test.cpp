// Several processes of a cluster that share one Redis, as their products see them.
#include "backend_rig.hpp"

#include "weir/cluster/announcement.hpp"
#include "weir/cluster/records.hpp"

#include <numeric>

namespace weir::cluster::testing {
namespace {

class FrontTest : public BackendTest {
 protected:
  // A master and so many other processes; the worker of d1;c1 runs it, and everybody knows everybody.
  void start_cluster(int others) {
    want("d1;c1");
    start("one");
    ASSERT_TRUE(within(15s, [&] { return master().is_master() && runs("d1;c1"); }));
    for (int n = 0; n < others; ++n) start(n == 0 ? "two" : "three");
    ASSERT_TRUE(within(15s, [&] {
      return state(master()).at("totalSlaves").to_number<int>() == others + 1;
    }));
    pass(2s);
  }
  Backend& master() { return *backends_.at("one"); }
  Backend& two() { return *backends_.at("two"); }
  void see_many(int from, int to) {
    for (int n = from; n <= to; ++n) see("d1;c1", n);
  }
  static std::vector<int> numbers(int from, int to) {
    std::vector<int> out(static_cast<size_t>(to - from + 1));
    std::iota(out.begin(), out.end(), from);
    return out;
  }
  void say(std::string_view channel, std::int64_t epoch, Saying what) {
    auto text = write_announcement({.epoch = epoch, .timestamp = clock_.wall(), .what = std::move(what)});
    ASSERT_TRUE(ask(redis_.kept().tell(std::string(channel), std::move(text))));
  }
};

TEST_F(FrontTest, ListenersAtAnyProcess_AreToldEveryDetectionOnce_InOrder) {
  start_cluster(2);
  Ear at_master(master()), at_two(two()), at_three(*backends_.at("three"));
  pass(1s);
  see_many(1, 50);
  ASSERT_TRUE(within(5s, [&] { return at_three.numbers.size() == 50 && at_two.numbers.size() == 50; }));
  pass(1s);
  for (Ear* each : {&at_master, &at_two, &at_three}) {
    EXPECT_EQ(each->numbers, numbers(1, 50));
    EXPECT_EQ(each->lost, 0);
    ASSERT_EQ(each->events["worker:detection_result"].size(), 50u);
    EXPECT_EQ(json::to_text(each->events["worker:detection_result"][0]),
              R"({"url":"cluster-managed","cameraId":"d1;c1","detections":1})");
  }
  EXPECT_EQ(at_two.ids, at_three.ids);
}

TEST_F(FrontTest, AListenerThatWasAway_IsToldWhatFollowedFirst_OrThatItIsLost) {
  start_cluster(1);
  {
    Ear early(two());
    pass(1s);
    see_many(1, 5);
    ASSERT_TRUE(within(5s, [&] { return early.numbers.size() == 5; }));
  }
  see_many(6, 500);
  pass(8s);
  Ear back(two(), "5-0");
  see_many(501, 520);
  EXPECT_TRUE(within(5s, [&] { return back.numbers.size() == 515; })) << back.numbers.size();
  EXPECT_EQ(back.numbers, numbers(6, 520));
  EXPECT_EQ(back.lost, 0);
  EXPECT_TRUE(back.begins.empty());
  Ear fresh(two());
  ASSERT_TRUE(within(5s, [&] { return fresh.begins.size() == 1; })) << "an id to name when it comes again";
  fresh.hearing.reset();
  see_many(521, 523);
  pass(2s);
  Ear again(two(), fresh.begins[0]);
  EXPECT_TRUE(within(5s, [&] { return again.numbers == numbers(521, 523); }));
  Ear stranger(master(), "77777-0"), broken(master(), "no id");
  EXPECT_TRUE(within(5s, [&] { return stranger.lost == 1 && broken.lost == 1; }));
  EXPECT_TRUE(within(5s, [&] { return stranger.numbers.size() == 523; })) << "with the oldest that is kept";
}

TEST_F(FrontTest, WhatAListenerHasMissed_WaitsForItsRoom_AndNothingOfItIsLost) {
  start_cluster(1);
  {
    Ear early(two());
    pass(1s);
    see_many(1, 3);
    ASSERT_TRUE(within(5s, [&] { return early.numbers.size() == 3; }));
  }
  see_many(4, 400);
  pass(6s);
  bool room = false;
  Ear back(two(), "3-0", [&room] { return room; });
  pass(3s);
  EXPECT_TRUE(back.numbers.empty()) << "it takes nothing yet";
  see_many(401, 1'000);
  pass(8s);
  room = true;
  EXPECT_TRUE(within(5s, [&] { return back.numbers.size() == 997; })) << back.numbers.size();
  room = false;
  see_many(1'001, 1'010);
  EXPECT_TRUE(within(5s, [&] { return back.numbers.size() == 1'007; })) << "what comes waits for nobody";
  EXPECT_EQ(back.numbers, numbers(4, 1'010));
  Ear gone(two(), "3-0", [&room] { return room; });
  pass(1s);
  gone.hearing.reset();
  pass(1s);
  EXPECT_TRUE(gone.numbers.empty());
}

TEST_F(FrontTest, WithRedisAway_TheMastersListenersGoOn_AndAllIsDeliveredInOrderAfterwards) {
  start_cluster(1);
  Ear here(master()), there(two());
  pass(1s);
  see_many(1, 3);
  ASSERT_TRUE(within(3s, [&] { return there.numbers.size() == 3; }));
  redis_.set_away(true);
  see_many(4, 30);
  ASSERT_TRUE(within(3s, [&] { return here.numbers.size() == 30; }));
  EXPECT_EQ(here.numbers, numbers(1, 30));
  EXPECT_EQ(here.ids.back(), "") << "it is not kept yet";
  EXPECT_EQ(there.numbers.size(), 3u);
  redis_.set_away(false);
  ASSERT_TRUE(within(5s, [&] { return there.numbers.size() == 30; })) << there.numbers.size();
  EXPECT_EQ(there.numbers, numbers(1, 30));
}

TEST_F(FrontTest, AnEmptiedRedis_IsFilledAgain_AndNoEpochChanges) {
  start_cluster(1);
  std::int64_t before = epoch(master()).as_int64();
  SharedTable desired = table(ClusterTable::desired), routes = table(ClusterTable::assignments);
  ASSERT_EQ(desired.size(), 1u);
  redis_.empty();
  EXPECT_TRUE(within(12s, [&] {
    return table(ClusterTable::desired) == desired && table(ClusterTable::assignments) == routes &&
           table(ClusterTable::actual).size() == 1 && table(ClusterTable::connections).size() == 2 &&
           table(ClusterTable::slaves).size() == 2;
  }));
  EXPECT_EQ(*ask(redis_.kept().epoch()), before);
  EXPECT_EQ(epoch(master()).as_int64(), before);
  Ear there(two());
  pass(1s);
  see_many(1, 3);
  EXPECT_TRUE(within(3s, [&] { return there.numbers == numbers(1, 3); }));
}

TEST_F(FrontTest, WithoutAnAnsweredRenewal_NoEpochIsOpened) {
  start_cluster(1);
  planes_["one"]->up = false;
  redis_.empty();
  ways_["one"]->written.clear();
  pass(4s);
  EXPECT_EQ(*ask(redis_.kept().epoch()), std::nullopt) << "the control plane has not confirmed the lease";
  EXPECT_TRUE(ways_["one"]->written.empty());
}

TEST_F(FrontTest, AMasterPastItsDeadline_WritesNothing_AndItsSuccessorRaisesTheEpoch) {
  start_cluster(1);
  std::int64_t before = epoch(master()).as_int64();
  planes_["one"]->up = false;
  ASSERT_TRUE(within(8s, [&] { return !master().is_master(); }));
  ways_["one"]->written.clear();
  ASSERT_TRUE(within(10s, [&] { return two().is_master(); }));
  Ear there(two());
  ASSERT_TRUE(within(10s, [&] { return ask(redis_.kept().epoch())->value_or(0) > before; }));
  pass(5s);
  see_many(1, 3);
  EXPECT_TRUE(within(5s, [&] { return there.numbers == numbers(1, 3); }));
  EXPECT_TRUE(ways_["one"]->written.empty());
  EXPECT_GT(ask(redis_.kept().epoch())->value_or(0), before);
}

TEST_F(FrontTest, ARotatedLease_OpensItsEpoch) {
  start_cluster(1);
  Ear there(two());
  std::int64_t before = epoch(master()).as_int64();
  want("d2;c2", before);
  ASSERT_TRUE(within(5s, [&] { return ask(redis_.kept().epoch())->value_or(0) > before; }));
  see_many(1, 3);
  EXPECT_TRUE(within(5s, [&] { return there.numbers == numbers(1, 3); }));
  EXPECT_EQ(epoch(two()).as_int64(), epoch(master()).as_int64());
}

TEST_F(FrontTest, ALaterEpochInRedis_SilencesTheMaster_ButDoesNotEndItsTerm) {
  start_cluster(1);
  ASSERT_TRUE(ask(redis_.kept().open_epoch(std::int64_t{1} << 52)));
  pass(3s);
  ways_["one"]->written.clear();
  pass(10s);
  EXPECT_TRUE(ways_["one"]->written.empty());
  EXPECT_TRUE(master().is_master()) << "the lease decides";
}

TEST_F(FrontTest, WhatCarriesALowerEpoch_IsDropped) {
  start_cluster(1);
  Ear there(two());
  pass(1s);
  std::int64_t now = epoch(master()).as_int64();
  ImageDetection seen{.subscription = *Identifier::parse("d1;c1"), .timestamp = clock_.wall(), .model_id = 7,
                      .model_name = "cars", .boxes = {{"car", 0.5, {9, 9, 9, 9}}}};
  say(kEvents, now - 1, ClusterHappened{"worker:stale", {}});
  say(slave_channel("two"), now - 1, DetectionRouted{kA, seen});
  say(kEvents, now, ClusterHappened{"worker:fresh", {}});
  ASSERT_TRUE(within(3s, [&] { return there.events.contains("worker:fresh"); }));
  EXPECT_FALSE(there.events.contains("worker:stale"));
  EXPECT_TRUE(there.numbers.empty());
}

TEST_F(FrontTest, SlavesAreRegistered_GetTheirShare_AndAreRemovedWhenTheyAreGone) {
  start_cluster(0);
  Ear ear(master());
  pass(1s);
  Backend& other = start("two");
  ASSERT_TRUE(within(10s, [&] { return ear.events.contains("slave-registered"); }));
  EXPECT_EQ(ear.events["slave-registered"][0].at("slaveId"), "two");
  EXPECT_TRUE(within(5s, [&] {
    SharedTable routes = table(ClusterTable::assignments);
    return routes.size() == 2 && routes.at(kA) != routes.at(kB);
  }));
  EXPECT_TRUE(within(8s, [&] { return read_slave_state(table(ClusterTable::slaves)["two"])->workload == 1; }));
  ways_["two"]->set_away(true);  // and so cut off from everybody
  EXPECT_TRUE(within(20s, [&] { return ear.events.contains("slave-removed"); }));
  EXPECT_TRUE(within(3s, [&] { return table(ClusterTable::assignments).at(kA) == "one"; }));
  EXPECT_FALSE(table(ClusterTable::slaves).contains("two"));
  ways_["two"]->set_away(false);
  ASSERT_TRUE(within(10s, [&] { return ear.events["slave-registered"].size() == 2; }));
  stop("two");
  EXPECT_FALSE(table(ClusterTable::slaves).contains("two")) << "stopped in good order";
  EXPECT_TRUE(within(3s, [&] { return ear.events["slave-removed"].size() == 2; }));
  EXPECT_FALSE(other.is_master());
}

TEST_F(FrontTest, WhatHappensToWorkers_IsToldEverywhere) {
  start_cluster(1);
  Ear there(two());
  ASSERT_TRUE(within(10s, [&] { return there.events.contains("worker:state_report"); }));
  EXPECT_EQ(there.events["worker:state_report"][0].at("report").at("memoryUsage").to_number<int>(), 20);
  link_.workers.at(kA)->up = false;
  ASSERT_TRUE(within(5s, [&] { return there.events.contains("worker:offline"); }));
  EXPECT_EQ(there.events["worker:offline"][0].at("url"), kA);
  link_.workers.at(kA)->up = true;
  ASSERT_TRUE(within(15s, [&] { return there.events.contains("worker:online"); }));
  EXPECT_TRUE(there.events.contains("worker:connecting"));
  EXPECT_TRUE(there.events.contains("worker:connected"));
  EXPECT_FALSE(there.events["worker:websocket_error"].empty());
}

TEST_F(FrontTest, ASessionThatAnyProcessSets_ReachesEveryWorker) {
  start_cluster(1);
  ASSERT_TRUE(ask(two().set_session("d1", 9)));
  for (const auto& [url, worker] : link_.workers) EXPECT_EQ(worker->times("session d1=9"), 1u) << url;
  ASSERT_TRUE(ask(master().set_session("d1", std::nullopt)));
  for (const auto& [url, worker] : link_.workers) EXPECT_EQ(worker->times("session d1=0"), 1u) << url;
}

TEST_F(FrontTest, WithoutAMaster_ARequestEndsWithAnError) {
  start_cluster(1);
  ways_["one"]->set_away(true);
  auto said = ask(two().set_session("d1", 9));
  ASSERT_FALSE(said);
  EXPECT_EQ(said.error().reason, "no_master");
}

TEST_F(FrontTest, AChangeOfASession_IsAnsweredByTheFirstListener) {
  start_cluster(1);
  FakeWorker& worker = worker_with("d1;c1");
  worker.say(PatchSession{7, json::object{{"plate", "AB 1"}}});
  ASSERT_TRUE(within(1s, [&] { return worker.times("patched 7 false") == 1; })) << "nobody listens";
  Ear there(two());
  pass(1s);
  worker.say(PatchSession{8, json::object{{"plate", "AB 2"}}});
  ASSERT_TRUE(within(2s, [&] { return there.patches.size() == 1; }));
  EXPECT_EQ(there.patches[0].session, 8);
  EXPECT_EQ(there.patches[0].data.at("plate"), "AB 2");
  ASSERT_TRUE(ask(two().answer_patch({8, true, "done"})));
  EXPECT_EQ(worker.times("patched 8 true"), 1u);
  auto second = ask(two().answer_patch({8, false}));
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().reason, "patch_over");
  worker.say(PatchSession{9, nullptr});
  EXPECT_FALSE(within(4s, [&] { return worker.times("patched 9 false") > 0; }));
  EXPECT_TRUE(within(2s, [&] { return worker.times("patched 9 false") == 1; }));
}

TEST_F(FrontTest, ARegenerationThatAnyProcessAsksFor_IsOnTheWireAtOnce) {
  start_cluster(1);
  wishes_->push_back({.subscription = wanted("d2;c2"), .site = SiteId::trusted("s1")});
  ASSERT_TRUE(ask(two().regenerate("rebalance")));
  EXPECT_TRUE(within(500ms, [&] { return runs("d2;c2"); }));
}

TEST_F(FrontTest, EveryProcess_ShowsTheSameState) {
  start_cluster(1);
  const std::string quoted = R"(d"2;c\2)";
  want(quoted);
  pass(15s);
  json::object here = state(master()), there = state(two());
  EXPECT_EQ(here.at("isMaster"), true);
  EXPECT_EQ(there.at("isMaster"), false);
  EXPECT_EQ(there.at("slaveId"), "two");
  for (const char* each : {"totalWorkers", "totalSlaves", "assignments", "subscriptions", "epoch", "cluster"})
    EXPECT_EQ(json::to_text(here.at(each)), json::to_text(there.at(each))) << each;
  for (const std::string& each : {std::string("d1;c1"), quoted})
    EXPECT_EQ(there.at("subscriptions").as_object().at(each).at("status"), "active") << each;
  ASSERT_EQ(there.at("workers").as_array().size(), 2u);
  for (const char* each : {"url", "processId", "online", "cpuUsage", "subscriptionCount", "subscriptions"})
    EXPECT_EQ(json::to_text(here.at("workers").at(0).at(each)), json::to_text(there.at("workers").at(0).at(each))) << each;
  auto workers = ask(two().workers_of("c1"));
  ASSERT_TRUE(workers);
  EXPECT_EQ(*workers, *ask(master().workers_of("c1")));
  EXPECT_EQ(workers->size(), 1u);
}

TEST_F(FrontTest, NoDetectionWaitsForAnothersAnswer) {
  start_cluster(1);
  Ear there(two());
  pass(1s);
  ways_["one"]->slow = 500ms;
  see_many(1, 100);  // the worker says one every 10 ms
  EXPECT_TRUE(within(2s, [&] { return there.numbers.size() == 100; })) << there.numbers.size();
  EXPECT_EQ(there.numbers, numbers(1, 100));
}

TEST_F(FrontTest, WhatWaitsForRedis_IsBounded_AndTheNewestStay) {
  start_cluster(0);
  Ear here(master());
  pass(1s);
  redis_.set_away(true);
  auto& worker = worker_with("d1;c1");
  see_many(1, 10'200);
  ASSERT_TRUE(within(150s, [&] { return worker.outbox.empty() && here.numbers.size() == 10'200; })) << here.numbers.size();
  EXPECT_EQ(here.numbers.back(), 10'200);
  redis_.set_away(false);
  pass(5s);
  auto kept = ask(redis_.kept().detections_after("0-0", 20'000));
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->items.size(), 10'000u);
  EXPECT_NE(metrics_.text().find("weir_cluster_results_lost_total{why=\"redis_queue_full\"} 20"), std::string::npos);
}

TEST_F(FrontTest, WithRedisAway_AStateIsShownEmpty_NotRefused) {
  start_cluster(1);
  ways_["two"]->set_away(true);
  json::object there = state(two());
  EXPECT_EQ(there.at("processId"), "two");
  EXPECT_TRUE(there.at("workers").as_array().empty());
}

}  // namespace
}  // namespace weir::cluster::testing

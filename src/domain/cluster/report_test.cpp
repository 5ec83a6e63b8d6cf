#include "weir/cluster/report.hpp"

#include "weir/placement/plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace weir::cluster {
namespace {

using placement::Status;

const Instant kNow{1000s};
const std::string kMine = "ws://mine", kOther = "ws://other";

// A master with two workers, which has assigned what `assign` says.
struct Master {
  placement::World world = {};
  DesiredSubscriptions desired = {};
  std::set<std::string> given = {};

  void want(const std::string& id, std::int64_t model = 1) {
    desired[id] = {.id = *Identifier::parse(id), .model_id = model};
  }
  void assign(const std::string& id, const std::string& worker, Duration ago = 1h, Status status = Status::active) {
    want(id);
    world.assignments[id] = {.worker = worker, .status = status, .since = kNow - ago, .placed = kNow - ago};
    if (worker == kMine) given.insert(id);
  }
  ReportJudgement judge(const std::vector<CameraConnection>& cameras) const {
    return judge_report(kMine, {.cameras = cameras}, world, desired, given, kNow);
  }
};
CameraConnection runs(const std::string& id, std::int64_t model = 1) {
  return {.subscription = *Identifier::parse(id), .model_id = model};
}
using List = std::vector<std::string>;

TEST(Report, ConfirmsWhatRunsAsWanted_AndMissesTheRest) {
  Master master;
  master.assign("a;1", kMine);
  master.assign("b;2", kMine, 1h, Status::pending);
  master.assign("c;3", kMine);
  ReportJudgement judged = master.judge({runs("a;1"), runs("b;2"), runs("a;1")});
  EXPECT_EQ(judged.confirmed, (List{"a;1", "b;2"}));
  EXPECT_EQ(judged.missing, (List{"c;3"}));
  EXPECT_TRUE(judged.unwanted.empty() && judged.never_given.empty() && judged.differing.empty() && judged.over.empty());
}

TEST(Report, SubscriptionYoungerThanFiveSeconds_IsNotMissing) {
  for (Duration age : {Duration(0), Duration(5s - 1us), Duration(5s)}) {
    Master master;
    master.assign("a;1", kMine, age, Status::pending);
    EXPECT_EQ(master.judge({}).missing.size(), age < 5s ? 0u : 1u);
  }
}

TEST(Report, OtherModelOrCrop_IsADifference_ExceptJustAfterTheSubscriptionWasGiven) {
  Master master;
  master.assign("a;1", kMine);
  master.assign("b;2", kMine);
  master.assign("c;3", kMine, 1s);
  master.desired["b;2"].crop = Crop{0, 0, 10, 10};
  CameraConnection cropped = runs("b;2");
  cropped.crop = Crop{0, 0, 20, 20};
  ReportJudgement judged = master.judge({runs("a;1", 2), cropped, runs("c;3", 2)});
  EXPECT_EQ(judged.differing, (List{"a;1", "b;2"}));
  EXPECT_TRUE(judged.confirmed.empty() && judged.missing.empty() && judged.unwanted.empty());
  cropped.crop.reset();
  EXPECT_EQ(master.judge({runs("a;1"), cropped, runs("c;3")}).confirmed.size(), 3u)
      << "a worker need not report the crop";
}

TEST(Report, WhatIsNobodysOrAnothers_IsUnwanted) {
  Master master;
  master.assign("moved;1", kOther);
  master.given.insert("moved;1");
  master.given.insert("dropped;2");
  master.assign("failed;3", "", 1h, Status::failed);
  master.assign("refused;4", kMine, 1h, Status::recovering);
  master.want("new;5");
  ReportJudgement judged = master.judge(
      {runs("moved;1"), runs("dropped;2"), runs("failed;3"), runs("refused;4"), runs("new;5"), runs("invented;6")});
  EXPECT_EQ(judged.unwanted, (List{"moved;1", "dropped;2", "refused;4", "invented;6"}))
      << "what nobody has and somebody wants is for the next plan to adopt";
  EXPECT_EQ(judged.never_given, (List{"invented;6"}));
}

TEST(Report, WhatWasGivenOnceAndRunsNoMore_MayBeForgotten) {
  Master master;
  master.assign("moved;1", kOther);
  master.given = {"moved;1", "dropped;2"};
  EXPECT_EQ(master.judge({}).over, (List{"dropped;2", "moved;1"}));
  EXPECT_EQ(master.judge({runs("moved;1")}).over, (List{"dropped;2"}));
}

TEST(Results, AreAcceptedFromTheAssignedWorkerOnly) {
  Master master;
  master.assign("a;1", kMine);
  EXPECT_EQ(judge_result(kMine, "a;1", master.world), ResultVerdict::accepted);
  EXPECT_EQ(judge_result(kOther, "a;1", master.world), ResultVerdict::not_its);
  EXPECT_EQ(judge_result(kMine, "never;2", master.world), ResultVerdict::unwanted);
  master.world.assignments["a;1"].status = Status::pending;
  EXPECT_EQ(judge_result(kMine, "a;1", master.world), ResultVerdict::accepted) << "its first result may come first";
  master.world.assignments["a;1"].status = Status::recovering;
  EXPECT_EQ(judge_result(kMine, "a;1", master.world), ResultVerdict::not_its) << "it is being taken away";
}

// Workers that do what they are told, or do not, or lie; a master that plans after every report. Once the lies end,
// every subscription that is wanted runs on the one worker that it is assigned to, and nothing else runs anywhere.
struct Play {
  explicit Play(unsigned seed) : random(seed) {}

  void tell_workers(const placement::Plan& plan) {
    for (const auto& each : plan.drop) stop(each.worker, each.subscription);
    for (const auto& each : plan.fail) stop(each.from, each.subscription);
    for (const auto& each : plan.wait) stop(each.from, each.subscription);
    for (const auto& each : plan.assign) start(each.from, each.worker, each.subscription);
    for (const auto& each : plan.move) start(each.from, each.worker, each.subscription);
  }
  void stop(const std::string& worker, const std::string& id) { running[worker].erase(id); }
  void start(const std::string& from, const std::string& worker, const std::string& id) {
    if (from != worker) stop(from, id);
    given[worker].insert(id);
    if (!lies || below(4) != 0) running[worker].insert(id);
  }
  void report(const std::string& worker) {
    StateReport said;
    for (const std::string& id : running[worker]) said.cameras.push_back(runs(id));
    if (lies && below(5) == 0) said.cameras.push_back(runs(fmt::format("lie;{}", below(30))));
    world.workers[worker].reported.clear();
    for (const auto& each : said.cameras) world.workers[worker].reported.push_back(each.subscription.text());
    ReportJudgement judged = judge_report(worker, said, world, desired, given[worker], now);
    for (const std::string& id : judged.confirmed) placement::confirm(world, id, now);
    for (const std::string& id : judged.missing) placement::refuse(world, id, "not reported", now, policy);
    for (const std::string& id : judged.unwanted) stop(worker, id);
    for (const std::string& id : judged.over) given[worker].erase(id);
  }
  void turn() {
    now += 2s;
    for (auto& [url, worker] : world.workers)
      if (worker.online) report(url);
    placement::Plan plan = placement::plan(world, now, policy);
    placement::apply(world, plan, now);
    tell_workers(plan);
  }
  void something_changes() {
    std::string id = fmt::format("d{};c", below(20)), url = fmt::format("ws://w{}", below(4));
    if (below(3) == 0) {
      placement::Worker& worker = world.workers[url];
      worker.online = !worker.online;
      if (below(2) == 0) running[url].clear();  // it was started anew
    } else if (below(3) == 0) {
      desired.erase(id);
      world.desired.erase(id);
    } else {
      desired[id] = {.id = *Identifier::parse(id), .model_id = 1};
      world.desired[id] = {.revision = 1};
    }
  }
  int below(int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); }

  std::mt19937 random;
  bool lies = true;
  Instant now = kNow;
  placement::Policy policy = {};
  placement::World world = {};
  DesiredSubscriptions desired = {};
  std::map<std::string, std::set<std::string>> given = {}, running = {};
};

TEST(Report, DesiredAndActualMeet_OnceNothingChangesAnyMore) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    Play play(seed);
    for (int turn = 0; turn < 60; ++turn) {
      if (play.below(2) == 0) play.something_changes();
      play.turn();
    }
    play.lies = false;
    for (int n = 0; n < 4; ++n) play.world.workers[fmt::format("ws://w{}", n)].online = true;
    play.world.workers["ws://new"].online = true;  // what has failed is tried again
    for (int turn = 0; turn < 200; ++turn) play.turn();
    size_t active = 0;
    for (const auto& [url, ids] : play.running)
      for (const std::string& id : ids) {
        ++active;
        ASSERT_TRUE(play.world.assignments.contains(id)) << "seed " << seed << ": " << id << " runs for nobody";
        ASSERT_EQ(play.world.assignments.at(id).worker, url) << "seed " << seed;
      }
    ASSERT_EQ(active, play.desired.size()) << "seed " << seed;
    for (const auto& [id, assignment] : play.world.assignments) ASSERT_EQ(assignment.status, Status::active) << id;
  }
}

}  // namespace
}  // namespace weir::cluster

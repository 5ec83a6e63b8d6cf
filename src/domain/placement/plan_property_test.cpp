// The promises of the plan's header, over random clusters whose workers come, go, fail and lie, and whose subscriptions
// come, go and change.
#include "testing.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace weir::placement {
namespace {

using namespace testing;

class Cluster {
 public:
  explicit Cluster(unsigned seed) : random_(seed) {
    policy.moves_max = below(6);
    policy.gain_min = below(15);
    policy.attempts_max = 1 + below(4);
    for (int n = below(6); n > 0; --n) worker_moves();
    for (int n = below(40); n > 0; --n) subscription_moves();
  }

  void something_happens() {
    now += Duration(std::chrono::milliseconds(below(40'000)));
    for (int n = 1 + below(8); n > 0; --n) (one_in(3) ? worker_moves() : subscription_moves());
    for (auto& [id, assignment] : world.assignments) {
      if (one_in(6)) refuse(world, id, "not reported", now, policy);
      else if (one_in(2)) confirm(world, id, now);
    }
  }

  World world;
  Policy policy;
  Instant now = kNow;

 private:
  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  bool one_in(int n) { return below(n) == 0; }
  std::optional<double> percent() { return one_in(4) ? std::nullopt : std::optional<double>(below(101)); }

  void worker_moves() {
    std::string which = url(below(8));
    if (one_in(10)) {
      world.workers.erase(which);
      return;
    }
    Worker& worker = world.workers[which];
    worker.online = !one_in(4);
    worker.capacity = below(12);
    worker.cpu_percent = percent();
    worker.memory_percent = percent();
    worker.reported.clear();
    for (int n = below(4); n > 0; --n) worker.reported.push_back(name(below(60)));
  }
  void subscription_moves() {
    std::string which = name(below(60));
    if (one_in(4)) world.desired.erase(which);
    else world.desired[which].revision = static_cast<std::uint64_t>(1 + below(3));
  }

  std::mt19937 random_;
};

void every_subscription_is_in_one_list_at_most(const Plan& made) {
  std::set<std::string> named;
  auto once = [&](const auto& list) {
    for (const auto& each : list) EXPECT_TRUE(named.insert(each.subscription).second) << each.subscription;
  };
  once(made.drop);
  once(made.assign);
  once(made.move);
  once(made.fail);
  once(made.wait);
}

void none_is_lost_and_none_is_left_over(const World& world) {
  ASSERT_EQ(world.assignments.size(), world.desired.size());
  for (const auto& [id, wanted] : world.desired) {
    ASSERT_TRUE(world.assignments.contains(id)) << id;
    EXPECT_EQ(world.assignments.at(id).revision, wanted.revision) << id;
  }
}

void workers_hold_what_they_can(const World& world) {
  for (const auto& [id, assignment] : world.assignments) {
    bool placed = assignment.status == Status::pending || assignment.status == Status::active;
    if (assignment.worker.empty()) {
      EXPECT_NE(assignment.status, Status::active) << id;
      EXPECT_FALSE(assignment.reason.empty()) << id << " waits, and nobody says why";
      continue;
    }
    EXPECT_TRUE(placed) << id;
    ASSERT_TRUE(world.workers.contains(assignment.worker)) << id;
    EXPECT_TRUE(world.workers.at(assignment.worker).online) << id;
  }
  for (const auto& [name, worker] : world.workers) EXPECT_LE(load_of(world, name), worker.capacity) << name;
}

void nobody_waits_beside_a_free_place(const World& world, Instant now) {
  bool waits = false, room = false;
  for (const auto& [id, assignment] : world.assignments)
    waits |= assignment.worker.empty() && assignment.status != Status::failed;
  for (const auto& [name, worker] : world.workers)
    room |= worker.online && worker.circuit.admits(now) == Admits::everything && load_of(world, name) < worker.capacity;
  EXPECT_FALSE(waits && room);
}

void worker_in_its_pause_is_given_nothing(const World& world, const Plan& made, Instant now) {
  for (const Assign& each : made.assign) {
    if (each.why == Why::adopted || each.from == each.worker) continue;
    EXPECT_NE(world.workers.at(each.worker).circuit.admits(now), Admits::nothing) << each.worker;
  }
  for (const Move& each : made.move)
    EXPECT_NE(world.workers.at(each.worker).circuit.admits(now), Admits::nothing) << each.worker;
}

void moves_are_bounded(const World& before, const Plan& made, Instant now, const Policy& policy) {
  EXPECT_LE(std::ssize(made.move), policy.moves_max);
  bool cooling = before.moved && now - *before.moved < policy.cooldown;
  EXPECT_TRUE(made.move.empty() || !cooling);
  for (const Move& each : made.move) {
    const Assignment& had = before.assignments.at(each.subscription);
    EXPECT_GT(each.gain, policy.gain_min);
    EXPECT_EQ(had.status, Status::active);
    EXPECT_EQ(had.worker, each.from);
    EXPECT_NE(each.from, each.worker);
    EXPECT_GE(now - had.placed, policy.cooldown);
  }
}

// The plan in words; "" where it is empty.
std::string told(const Plan& made) {
  std::string out;
  auto each = [&out](std::string_view what, const auto& list, auto where) {
    for (const auto& one : list) out += fmt::format("{} {} {}; ", what, one.subscription, where(one));
  };
  each("drop", made.drop, [](const Drop& d) { return d.worker; });
  each("assign", made.assign, [](const Assign& a) { return fmt::format("{} to {}", name_of(a.why), a.worker); });
  each("move", made.move, [](const Move& m) { return fmt::format("from {} to {}", m.from, m.worker); });
  each("fail", made.fail, [](const Fail& f) { return f.reason; });
  each("wait", made.wait, [](const Wait& w) { return w.reason; });
  return out;
}

TEST(PlacementPlan, KeepsItsPromises_InAnyCluster) {
  int plans = 0, moves = 0, waits = 0, fails = 0;
  for (unsigned seed = 0; seed < 400 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Cluster cluster(seed);
    for (int round = 0; round < 40 && !::testing::Test::HasFailure(); ++round) {
      cluster.something_happens();
      World before = cluster.world;
      Plan made = planned(cluster.world, cluster.now, cluster.policy);
      EXPECT_EQ(plan(before, cluster.now, cluster.policy), made);
      EXPECT_EQ(told(plan(cluster.world, cluster.now, cluster.policy)), "") << "by a second plan";
      every_subscription_is_in_one_list_at_most(made);
      none_is_lost_and_none_is_left_over(cluster.world);
      workers_hold_what_they_can(cluster.world);
      nobody_waits_beside_a_free_place(cluster.world, cluster.now);
      worker_in_its_pause_is_given_nothing(before, made, cluster.now);
      moves_are_bounded(before, made, cluster.now, cluster.policy);
      ++plans;
      moves += static_cast<int>(made.move.size());
      waits += static_cast<int>(made.wait.size());
      fails += static_cast<int>(made.fail.size());
    }
  }
  EXPECT_TRUE(::testing::Test::HasFailure() || (moves > 100 && waits > 1000 && fails > 1000))
      << "the clusters were too quiet: " << plans << " plans with " << moves << " moves, " << waits << " waits, "
      << fails << " failures";
}

// Whatever happened: once nothing more does, everything runs that the workers have room for, within a bounded time.
TEST(PlacementPlan, QuietCluster_RunsEverythingThatFits) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    Cluster cluster(seed);
    for (int round = 0; round < 10; ++round) {
      cluster.something_happens();
      planned(cluster.world, cluster.now, cluster.policy);
    }
    for (int n = 0; n < 8; ++n) cluster.world.workers[url(n)] = {.online = true, .capacity = 8};
    cluster.world.workers[url(100)] = {.online = true};  // whatever has failed is tried again
    for (int look = 0; look < 2; ++look) {
      planned(cluster.world, cluster.now, cluster.policy);
      confirm_all(cluster.world, cluster.now);
      cluster.now += 30s;
    }
    for (const auto& [id, assignment] : cluster.world.assignments) EXPECT_EQ(assignment.status, Status::active) << id;
  }
}

}  // namespace
}  // namespace weir::placement

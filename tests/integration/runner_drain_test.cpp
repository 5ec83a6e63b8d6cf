// A runner that is drained hands every camera to another one, batch by batch, and its workers end cleanly.
#include "fleet.hpp"
#include "stall.hpp"

#include "weir/base/clock.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <ranges>

namespace weir::test {
namespace {

class RunnerDrain : public FleetTest {
 protected:
  void SetUp() override {
    FleetTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    fleet_ = std::make_unique<RunnerFleet>(FleetOptions{.cameras = 6,
                                                        .profile = "width=384,height=288,fps=5,keyframe_s=1,seconds=10",
                                                        .camera = {{"model", {{"detector", "none"}}}},
                                                        .runner_flags = {"--status-summary-interval-s", "0.5"},
                                                        .postgres = postgres()});
  }
  // The cameras are at r1; r2 has room for them all, and both have an idle worker.
  void start(std::vector<std::string> flags = {}) {
    fleet_->add("r1", std::move(flags));
    ASSERT_TRUE(fleet_->all_stream(20s)) << fleet_->report();
    Runner& r2 = fleet_->add("r2", {"--deployment-version", "next"});
    ASSERT_TRUE(eventually(10s, [&] { return r2.has_worker_up(); })) << fleet_->report();
    ASSERT_TRUE(eventually(10s, [&] {
      return fleet_->runner("r1").logged("\"event\":\"worker.spawned\",\"shard_id\":\"shard-1\"");
    })) << "the idle one is not ready";
    before_ = fleet_->versions();
    stalled_before_ = StallMonitor::get().total();
    ASSERT_TRUE(eventually(10s, [&] {
      fleet_->history().read(fleet_->plane());
      return std::ranges::none_of(fleet_->cameras(),
                                  [&](const auto& camera) { return fleet_->history().captures(camera).empty(); });
    }));
  }
  WallTime drain(const std::string& mode) {
    WallTime now = wall_now();
    Reply asked = fleet_->plane().call(net::Method::patch, "/v1/runners/r1", {{"drain_mode", mode}},
                                       fleet_->plane().token("admin"));
    EXPECT_EQ(asked.status, 200) << asked.text;
    return now;
  }
  // When leases ended at r1 ("lease.released") or began at r2 ("lease.granted"), by camera.
  std::map<std::string, WallTime> times_of(const std::string& kind, const std::string& runner) {
    fleet_->history().read(fleet_->plane());
    std::map<std::string, WallTime> times;
    for (const Accepted& event : fleet_->history().events())
      if (event.kind == kind && event.runner == runner) times[event.camera] = event.stored;
    return times;
  }
  // Two by two, no sooner than the interval after the two before, and only when r2 has taken those.
  void expect_batches_of_two(Duration interval) {
    auto released = times_of("lease.released", "r1"), taken = times_of("lease.granted", "r2");
    ASSERT_EQ(released.size(), 6u);
    ASSERT_EQ(taken.size(), 6u);
    std::vector<std::pair<WallTime, WallTime>> each;
    for (const auto& [camera, time] : released) each.emplace_back(time, taken.at(camera));
    std::ranges::sort(each);
    for (const auto& [left, then] : each)
      std::printf("drain: released after %.2f s, taken after %.2f s\n", seconds(left - each[0].first),
                  seconds(then - each[0].first));
    for (size_t batch = 2; batch < each.size(); batch += 2) {
      EXPECT_GT(seconds(each[batch].first - each[batch - 2].first), seconds(interval) - 0.3);
      EXPECT_GT(each[batch].first, std::max(each[batch - 2].second, each[batch - 1].second)) << "nobody had taken it";
    }
    for (size_t batch = 0; batch < each.size(); batch += 2)
      EXPECT_TRUE(within(seconds(each[batch + 1].first - each[batch].first), seconds(interval) / 2, stalled_before_))
          << "not a batch";
  }
  // From the last picture that the old owner spoke of to the new owner's STREAMING.
  void expect_small_gaps() {
    // A worker is seen to stream a moment before its word of it has arrived.
    EXPECT_TRUE(eventually(10s, [&] {
      fleet_->history().read(fleet_->plane());
      return std::ranges::all_of(fleet_->cameras(), [&](const std::string& camera) {
        return fleet_->history().streaming_above(camera, before_.at(camera)).has_value();
      });
    }));
    fleet_->history().expect_one_voice();
    std::vector<double> gaps;
    for (const std::string& camera : fleet_->cameras()) {
      WallTime last{};
      for (const Accepted& event : fleet_->history().events())
        if (event.camera == camera && event.runner == "r1" && event.captured) last = std::max(last, *event.captured);
      auto again = fleet_->history().streaming_above(camera, before_.at(camera));
      ASSERT_TRUE(again) << camera;
      gaps.push_back(seconds(*again - last));
    }
    std::ranges::sort(gaps);
    std::printf("drain: %zu cameras, gap median %.2f s, most %.2f s\n", gaps.size(), gaps[gaps.size() / 2],
                gaps.back());
    EXPECT_TRUE(within(gaps.back(), 3, stalled_before_));
  }
  // Workers that had cameras end with 0; a worker that still starts when it is not needed any more is killed.
  void expect_clean_exits(const std::vector<int>& workers) {
    Runner& r1 = fleet_->runner("r1");
    EXPECT_EQ(workers.size(), 2u);
    for (int pid : workers) EXPECT_TRUE(r1.logged(fmt::format("\"pid\":{},\"exit_code\":0", pid))) << r1.log();
  }
  std::map<std::string, std::int64_t> before_;
  Duration stalled_before_{};
};

// The new version has joined; the old one is drained, and stopped afterwards.
TEST_P(RunnerDrain, Soft_HandsEverythingOver_AndTheRunnerStaysWithoutCameras_UntilItIsStopped) {
  ASSERT_NO_FATAL_FAILURE(start({"--drain-batch", "2", "--drain-interval-s", "1.5"}));
  std::vector<int> workers = fleet_->runner("r1").workers();
  drain("soft");
  ASSERT_TRUE(fleet_->all_stream(25s, {"r2"})) << fleet_->report();
  Runner& r1 = fleet_->runner("r1");
  EXPECT_TRUE(eventually(20s, [&] { return r1.workers().empty(); })) << fleet_->report();
  EXPECT_EQ(r1.told()["owned"], 0);
  EXPECT_TRUE(eventually(5s, [&] { return r1.logged("\"event\":\"runner.drained\""); })) << r1.log();
  drain("none");
  EXPECT_TRUE(eventually(5s, [&] { return r1.logged("\"event\":\"runner.drain_ended\""); })) << r1.log();
  signal_all({r1.parent()}, SIGTERM);
  EXPECT_EQ(r1.wait(5s), 0) << r1.log();
  expect_batches_of_two(1500ms);
  expect_clean_exits(workers);
  expect_small_gaps();
}

// All six could go at once; their next owner may dial two, and then one every other second.
TEST_P(RunnerDrain, Soft_OfASiteWhoseBudgetIsShort_KeepsEachCameraUntilTheOtherMayDialIt) {
  ASSERT_NO_FATAL_FAILURE(start({"--drain-batch", "6"}));
  Reply set = fleet_->plane().call(net::Method::put, "/v1/sites/s1/budget",
                                   {{"capacity", 2}, {"refill_rate", 30}, {"tokens", 2}}, fleet_->plane().token("admin"));
  ASSERT_EQ(set.status, 200) << set.text;
  drain("soft");
  ASSERT_TRUE(fleet_->all_stream(25s, {"r2"})) << fleet_->report();
  EXPECT_TRUE(fleet_->runner("r1").logged("\"event\":\"runner.drain_waits\"")) << fleet_->report();
  expect_small_gaps();
}

INSTANTIATE_TEST_SUITE_P(Stores, RunnerDrain, ::testing::Values("Sqlite", "Postgres"), store_name);

class RunnerDrainOnSqlite : public RunnerDrain {};

TEST_P(RunnerDrainOnSqlite, Sigterm_HandsEverythingOver_AndEndsWithZero) {
  ASSERT_NO_FATAL_FAILURE(start());
  Runner& r1 = fleet_->runner("r1");
  std::vector<int> processes = r1.processes(), workers = r1.workers();
  signal_all({r1.parent()}, SIGTERM);
  EXPECT_EQ(r1.wait(40s), 0) << fleet_->report();
  for (int pid : processes) EXPECT_TRUE(ended(pid));
  EXPECT_TRUE(fleet_->all_stream(5s, {"r2"})) << "not all were taken over when it ended\n" << fleet_->report();
  expect_clean_exits(workers);
  expect_small_gaps();
}

// As a service manager does.
TEST_P(RunnerDrainOnSqlite, SigtermToEveryProcessAtOnce_EndsThemAllWithZero_AndNothingIsHeld) {
  ASSERT_NO_FATAL_FAILURE(start());
  Runner& r1 = fleet_->runner("r1");
  std::vector<int> workers = r1.workers();
  signal_all(r1.processes(), SIGTERM);
  EXPECT_EQ(r1.wait(40s), 0) << fleet_->report();
  EXPECT_TRUE(std::ranges::all_of(r1.processes(), ended)) << "left behind";
  for (const std::string& camera : fleet_->cameras()) EXPECT_NE(fleet_->owner_of(camera), "r1") << camera;
  EXPECT_TRUE(fleet_->all_stream(5s, {"r2"})) << fleet_->report();
  expect_clean_exits(workers);
  fleet_->history().read(fleet_->plane());
  fleet_->history().expect_one_voice();
}

// In batches it would take almost a minute.
TEST_P(RunnerDrainOnSqlite, Hard_LetsGoOfEverythingAtOnce) {
  ASSERT_NO_FATAL_FAILURE(start({"--drain-batch", "1", "--drain-interval-s", "10"}));
  WallTime asked = drain("hard");
  std::map<std::string, WallTime> released;
  ASSERT_TRUE(eventually(3s, [&] { return (released = times_of("lease.released", "r1")).size() == 6; }))
      << fleet_->report();
  auto [first, last] = std::ranges::minmax(released | std::views::values);
  std::printf("hard drain: released after %.2f to %.2f s\n", seconds(first - asked), seconds(last - asked));
  EXPECT_TRUE(within(seconds(last - asked), 3, stalled_before_));
  ASSERT_TRUE(fleet_->all_stream(10s, {"r2"})) << fleet_->report();
  EXPECT_TRUE(eventually(5s, [&] { return fleet_->runner("r1").workers().empty(); }));
  fleet_->history().read(fleet_->plane());
  fleet_->history().expect_one_voice();
}

INSTANTIATE_TEST_SUITE_P(Stores, RunnerDrainOnSqlite, ::testing::Values("Sqlite"), store_name);

}  // namespace
}  // namespace weir::test

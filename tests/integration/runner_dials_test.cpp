// No dial storm: first connects keep to the site's bucket, reconnects to the limiter.
#include "fleet.hpp"
#include "stall.hpp"

#include "weir/base/clock.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace weir::test {
namespace {

// Light enough for a hundred of them.
const std::string kTiny = "width=192,height=144,fps=2,keyframe_s=1,seconds=10";

class RunnerDials : public FleetTest {
 protected:
  void start(int cameras, int capacity, double refill_per_min) {
    fleet_ = std::make_unique<RunnerFleet>(FleetOptions{.cameras = cameras,
                                                        .profile = kTiny,
                                                        .camera = {{"model", {{"detector", "none"}}}},
                                                        .runner_flags = {"--capacity-streams", "40"},
                                                        .refill_per_min = refill_per_min,
                                                        .capacity = capacity,
                                                        .postgres = postgres()});
  }
};

TEST_P(RunnerDials, HundredCamerasOfOneSite_AreDialledWithinTheSitesBudget) {
  start(100, 10, 120);
  std::int64_t began = wall_now().time_since_epoch().count();
  for (const char* id : {"r1", "r2", "r3"}) fleet_->add(id);
  std::vector<double> first;
  EXPECT_TRUE(eventually(60s,
                         [&] {
                           between_looks();
                           boost::json::value all = fleet_->camsim().dials();
                           first.clear();
                           for (const auto& dial : all.at("dials").as_array())
                             if (dial.at("first").as_bool())
                               first.push_back(static_cast<double>(dial.at("at_us").as_int64() - began) / 1e6);
                           return first.size() >= 35;
                         }))
      << "the budget is not used\n"
      << fleet_->report();
  std::ranges::sort(first);
  for (size_t i = 0; i < first.size(); ++i)
    EXPECT_LE(static_cast<double>(i + 1), 10 + 2 * first[i]) << "dial " << i + 1 << " after " << first[i] << " s";
  ASSERT_FALSE(first.empty());
  std::printf("dials: %zu first connects in %.2f s, the first after %.2f s\n", first.size(), first.back(), first[0]);
  std::int64_t owned = 0;
  for (const char* id : {"r1", "r2", "r3"}) {
    boost::json::object told = fleet_->runner(id).told();
    ASSERT_TRUE(told.contains("owned")) << fleet_->report();
    owned += told["owned"].to_number<std::int64_t>();
  }
  EXPECT_EQ(owned, 100) << "leases do not wait for the budget";
}

INSTANTIATE_TEST_SUITE_P(Stores, RunnerDials, ::testing::Values("Sqlite", "Postgres"), store_name);

class RunnerReboot : public RunnerDials {
 protected:
  void stream_forty(std::vector<std::string> more = {}) {
    start(40, 1000, 6000);
    fleet_->add("r1", std::move(more));
    ASSERT_TRUE(fleet_->all_stream(30s)) << fleet_->report();
    fleet_->camsim().child().call(net::Method::del, "/v1/dials");
  }
  void fault(const char* kind, double for_s) {
    fleet_->camsim().recorder_fault("recorder-1", {{"kind", kind}, {"for_s", for_s}});
  }
  // The most dials at once until the recorder plays all of its cameras again.
  std::int64_t peak() {
    boost::json::value all;
    EXPECT_TRUE(eventually(45s, [&] {
      all = fleet_->camsim().dials();
      return std::ranges::count_if(all.at("dials").as_array(),
                                   [](const auto& dial) { return dial.at("outcome") == "playing"; }) >= 40;
    })) << fleet_->report();
    auto most = all.at("peak_concurrent_connects").at("recorder-1").to_number<std::int64_t>();
    std::printf("dials: %zu after the fault, at most %lld at once\n", all.at("dials").as_array().size(),
                static_cast<long long>(most));
    return most;
  }
};

// One that comes back slowly accepts connections long before it answers.
TEST_P(RunnerReboot, Of40CamerasRecorder_SeesNoMoreDialsAtOnceThanTheLimiterAllows) {
  ASSERT_NO_FATAL_FAILURE(stream_forty());
  fault("reboot", 60);
  let_last(2s);
  fault("black_hole", 5);
  EXPECT_EQ(peak(), 8);
  EXPECT_TRUE(fleet_->all_stream(20s)) << fleet_->report();
}

INSTANTIATE_TEST_SUITE_P(Stores, RunnerReboot, ::testing::Values("Sqlite", "Postgres"), store_name);

class RunnerRebootOnSqlite : public RunnerReboot {};

TEST_P(RunnerRebootOnSqlite, Of40CamerasRecorderThatFallsSilent_SeesNoMoreDialsAtOnceThanTheLimiterAllows) {
  ASSERT_NO_FATAL_FAILURE(stream_forty());
  fault("black_hole", 6);
  EXPECT_EQ(peak(), 8);
  EXPECT_TRUE(fleet_->all_stream(20s)) << fleet_->report();
}

// Shows that the other tests see the limiter, not a runner or a recorder that is slow by itself.
TEST_P(RunnerRebootOnSqlite, Of40CamerasRecorder_IsStormed_WhereTheLimitIsAsHigh) {
  ASSERT_NO_FATAL_FAILURE(stream_forty({"--dial-concurrency", "40"}));
  fault("black_hole", 6);
  EXPECT_GT(peak(), 20);
}

INSTANTIATE_TEST_SUITE_P(Stores, RunnerRebootOnSqlite, ::testing::Values("Sqlite"), store_name);

}  // namespace
}  // namespace weir::test

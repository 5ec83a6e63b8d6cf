// What an operator is told when cameras stream and yet not all is well: a machine that cannot keep up, a worker that is
// frozen, a site whose budget is used up.
#include "fleet.hpp"
#include "stall.hpp"
#include "where.hpp"

#include "weir/base/clock.hpp"
#include "weir/base/json.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>

namespace weir::test {
namespace {

class RunnerLoad : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!fleet_needs().empty()) GTEST_SKIP() << fleet_needs();
  }
  // `weir status --json`, as a person would ask.
  boost::json::object status() {
    std::string file = fleet_->folder().path() + "/status";
    std::string command = fmt::format("WEIR_URL={} WEIR_TOKEN={} '{}' status --json >{}", fleet_->plane().url(),
                                      fleet_->plane().token("admin").reveal(), WEIR_BINARY, file);
    EXPECT_EQ(std::system(command.c_str()), 0);
    auto parsed = json::parse_text(text_in_file(file));
    return parsed && parsed->is_object() ? parsed->get_object() : boost::json::object{{"verdict", "unreadable"}};
  }
  std::string verdict() { return std::string(status()["verdict"].as_string()); }
  bool says(Duration limit, std::string_view words) {
    return eventually(limit, [&] { return verdict().find(words) != std::string::npos; });
  }
  void change(const std::string& camera, const boost::json::object& fields) {
    Reply changed = fleet_->plane().call(net::Method::patch, "/v1/cameras/" + camera, fields, fleet_->plane().token("admin"));
    ASSERT_EQ(changed.status, 200) << changed.text;
  }
  std::unique_ptr<RunnerFleet> fleet_;
};

// More pictures than one inference thread can look at, on whatever machine: each costs it milliseconds.
TEST_F(RunnerLoad, MoreThanTheMachineCanLookAt_IsNeverCalledAllRight_AndNoMoreIsTaken_UntilItFits) {
  boost::json::array list;
  for (int n = 1; n <= 5; ++n)
    list.push_back({{"name", fmt::format("cam-{}", n)}, {"profile", "width=384,height=288,fps=60,keyframe_s=1,seconds=20"}});
  boost::json::object greedy{{"max_fps", 60}, {"decode", "full"}, {"motion_gating", {{"enabled", false}}}};
  fleet_ = std::make_unique<RunnerFleet>(
      FleetOptions{.cameras = 0, .camera = greedy, .recorders = {{{"name", "recorder-1"}, {"cameras", std::move(list)}}}});
  for (int n = 1; n <= 4; ++n) fleet_->register_camera(fmt::format("cam-{}", n));
  Runner& runner = fleet_->add("r1", {"--inference-threads", "1", "--capacity-streams", "9"});
  // Asked from before the first camera streams on, the status never says "all right".
  std::string said;
  ASSERT_TRUE(eventually(50s, [&] {
    said = verdict();
    EXPECT_EQ(said.find("all right"), std::string::npos) << said;
    return said.find("4 cameras are looked at less often than wanted: ") != std::string::npos;
  })) << said << fleet_->report();
  boost::json::object seen = status();
  const auto& first = seen["looked_at_too_seldom"].as_array().at(0);
  EXPECT_LT(first.at("looked_fps").to_number<double>(), 0.75 * first.at("wanted_fps").to_number<double>());
  EXPECT_GT(first.at("wanted_fps").to_number<double>(), 20);
  // The runner's worker is sure a few seconds later.
  auto counts_four = [&] { return runner.get("/metrics").text.find("weir_runner_cameras_behind 4") != std::string::npos; };
  EXPECT_TRUE(eventually(20s, counts_four)) << fleet_->report();
  std::string page = runner.get("/workers/" + std::string(runner.camera("cam-1")["shard_id"].as_string()) + "/metrics").text;
  EXPECT_NE(page.find("weir_camera_behind{camera_uuid=\"cam-1\"} 1"), std::string::npos) << page;
  Reply told;
  EXPECT_TRUE(eventually(5s, [&] {
    told = fleet_->plane().get("/v1/events?pattern=stream.status.%23&after=0&follow=false&limit=1000");
    return told.text.find("\"code\":\"OVERLOADED\"") != std::string::npos;
  })) << told.text;

  ASSERT_TRUE(eventually(20s, [&] { return runner.told()["acquiring"] == false; })) << fleet_->report();
  fleet_->register_camera("cam-5");
  EXPECT_TRUE(says(5s, "no runner takes further cameras: r1: 4 of its cameras are looked at less often than wanted"))
      << verdict();
  EXPECT_EQ(fleet_->owner_of("cam-5"), "");
  for (int n = 1; n <= 5; ++n) ASSERT_NO_FATAL_FAILURE(change(fmt::format("cam-{}", n), {{"max_fps", 1}}));
  EXPECT_TRUE(says(40s, "everything is all right: all 5 enabled cameras stream")) << verdict() << fleet_->report();
  EXPECT_TRUE(runner.logged("\"event\":\"runner.keeps_up\""));
}

TEST_F(RunnerLoad, AWorkerThatIsFrozen_IsToldWithinSeconds_AndReplacedWithinEight) {
  fleet_ = std::make_unique<RunnerFleet>(FleetOptions{.cameras = 3});
  Runner& runner = fleet_->add("r1");
  ASSERT_TRUE(fleet_->all_stream(20s)) << fleet_->report();
  ASSERT_TRUE(says(10s, "everything is all right")) << verdict();
  auto versions = fleet_->versions();
  Duration stalled_before = StallMonitor::get().total();
  Instant frozen = boot_now();
  signal_all({runner.worker_of("cam-1")}, SIGSTOP);
  EXPECT_TRUE(says(4s, "their worker does not answer")) << verdict();
  auto again = [&] {
    return std::ranges::all_of(fleet_->cameras(), [&](const std::string& camera) {
      return fleet_->version_of(camera) > versions[camera] && runner.streams(camera);
    });
  };
  ASSERT_TRUE(eventually(20s, again)) << fleet_->report();
  double took = seconds(boot_now() - frozen);
  std::printf("NOTE: a frozen worker's cameras streamed again after %.1f s\n", took);
  EXPECT_TRUE(within(took, 8, stalled_before));
  EXPECT_TRUE(runner.logged("\"event\":\"worker.frozen\"")) << runner.log();
  EXPECT_TRUE(says(15s, "everything is all right")) << verdict();
  fleet_->history().read(fleet_->plane());
  fleet_->history().expect_one_voice();
}

TEST_F(RunnerLoad, CamerasThatWaitForTheirSitesBudget_SaySo_AndForHowLong) {
  fleet_ = std::make_unique<RunnerFleet>(FleetOptions{
      .cameras = 3, .camera = {{"model", {{"detector", "none"}}}}, .refill_per_min = 6, .capacity = 1});
  fleet_->add("r1");
  ASSERT_TRUE(says(15s, "2 of 3 cameras do not stream: waiting for their site's budget")) << verdict() << fleet_->report();
  std::string reason(status()["not_streaming"].as_array().at(1).at("reason").as_string());
  EXPECT_TRUE(reason.starts_with("waits for its site's budget, about ")) << reason;
  Reply more = fleet_->plane().call(net::Method::put, "/v1/sites/s1/budget", {{"capacity", 10}, {"refill_rate", 6000}},
                                    fleet_->plane().token("admin"));
  ASSERT_EQ(more.status, 200) << more.text;
  EXPECT_TRUE(says(20s, "everything is all right")) << verdict() << fleet_->report();
}

}  // namespace
}  // namespace weir::test

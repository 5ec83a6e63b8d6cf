// What an operator, the machine or a setting forbids a runner: which cameras it may take, and which it must let go of.
#include "fleet.hpp"
#include "stall.hpp"
#include "where.hpp"

#include "weir/base/clock.hpp"

#include <gtest/gtest.h>

#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>

namespace weir::test {
namespace {

// Cameras that the simulator shows; none of them is registered yet.
FleetOptions unregistered(int cameras, std::vector<std::string> runner_flags) {
  boost::json::array list;
  for (int n = 1; n <= cameras; ++n)
    list.push_back({{"name", fmt::format("cam-{}", n)},
                    {"profile", "width=384,height=288,fps=10,keyframe_s=1,seconds=10"}});
  return {.cameras = 0,
          .camera = {{"model", {{"detector", "none"}}}},
          .runner_flags = std::move(runner_flags),
          .recorders = {{{"name", "recorder-1"}, {"cameras", std::move(list)}}}};
}

class RunnerOrders : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!fleet_needs().empty()) GTEST_SKIP() << fleet_needs();
  }
  // As a person would say it.
  void weir(const std::string& words) {
    std::string command = fmt::format("WEIR_URL={} WEIR_TOKEN={} '{}' {} >>{}/said 2>&1", fleet_->plane().url(),
                                      fleet_->plane().token("admin").reveal(), WEIR_BINARY, words,
                                      fleet_->folder().path());
    EXPECT_EQ(std::system(command.c_str()), 0) << words;
  }
  std::string why_not(const std::string& runner) {
    boost::json::object state = fleet_->runner(runner).state();
    return state.contains("why_not_acquiring") ? std::string(state["why_not_acquiring"].as_string()) : "?";
  }
  void wait_until_it_says(const std::string& runner, const std::string& why) {
    EXPECT_TRUE(eventually(5s, [&] { return why_not(runner) == why; })) << runner << ": " << why_not(runner);
  }
  void expect_unowned(const std::string& camera, Duration time) {
    for (Instant until = boot_now() + time; boot_now() < until; between_looks())
      ASSERT_EQ(fleet_->owner_of(camera), "") << camera << fleet_->report();
  }
  double refused() {
    Reply metrics = get_from(fleet_->plane().url(), "/metrics");
    const std::string sample = "weir_lease_operations_total{operation=\"acquire\",result=\"refused\"} ";
    size_t at = metrics.text.find(sample);
    return at == std::string::npos ? 0 : std::strtod(metrics.text.c_str() + at + sample.size(), nullptr);
  }
  bool hung_up(const std::string& camera, size_t dial) {
    size_t seen = 0;
    boost::json::value all = fleet_->camsim().dials();
    for (const auto& each : all.at("dials").as_array())
      if (each.at("camera").as_string() == camera && seen++ == dial)
        return each.at("outcome").as_string() == "playing, closed";
    return false;
  }

  std::unique_ptr<RunnerFleet> fleet_;
};

TEST_F(RunnerOrders, CordonFullMachineAndCapacity_KeepNewCamerasAway_AndARevokedOneGoesToAnother) {
  fleet_ = std::make_unique<RunnerFleet>(unregistered(4, {"--lease-retry-interval-s", "0.5"}));
  for (const char* camera : {"cam-1", "cam-2"}) fleet_->register_camera(camera);
  Runner& first = fleet_->add("r1");
  ASSERT_TRUE(fleet_->all_stream(20s)) << fleet_->report();
  auto versions = fleet_->versions();
  Runner& second = fleet_->add("r2", {"--capacity-streams", "1"});
  // Every machine uses more than a hundredth of its memory, and this one of its processors; ten heartbeats say so.
  fleet_->add("r3", {"--mem-high-pct", "1", "--heartbeat-interval-s", "0.1"});
  fleet_->add("r4", {"--cpu-high-pct", "1", "--heartbeat-interval-s", "0.3"});
  wait_until_it_says("r3", "this machine's memory is nearly used up");
  wait_until_it_says("r4", "this machine's processors are busy");
  for (const char* id : {"r3", "r4"}) {
    EXPECT_TRUE(fleet_->runner(id).logged("runner.overloaded")) << fleet_->runner(id).log();
    EXPECT_NE(fleet_->runner(id).get("/metrics").text.find("weir_runner_acquiring 0"), std::string::npos) << id;
  }
  weir("node cordon r1");
  wait_until_it_says("r1", "cordoned");

  fleet_->register_camera("cam-3");
  ASSERT_TRUE(fleet_->all_stream(10s)) << fleet_->report();
  EXPECT_EQ(fleet_->owner_of("cam-3"), "r2") << "the only one that may";
  fleet_->register_camera("cam-4");
  expect_unowned("cam-4", 2s);
  for (const char* camera : {"cam-1", "cam-2"}) {
    EXPECT_EQ(fleet_->owner_of(camera), "r1") << "a cordoned runner keeps what it has";
    EXPECT_EQ(fleet_->version_of(camera), versions[camera]) << camera;
  }
  weir("node uncordon r1");
  ASSERT_TRUE(fleet_->all_stream(10s)) << fleet_->report();
  EXPECT_EQ(fleet_->owner_of("cam-4"), "r1");

  Reply raised = fleet_->plane().call(net::Method::patch, "/v1/runners/r2", {{"capacity_streams", 4}},
                                      fleet_->plane().token("admin"));
  ASSERT_EQ(raised.status, 200) << raised.text;
  // While the only one that may take it does not answer, its former owner asks in vain.
  versions = fleet_->versions();
  signal_all({second.manager()}, SIGSTOP);
  double refused_before = refused();
  Instant told = boot_now();
  Duration stalled_before = StallMonitor::get().total();
  weir("lease revoke cam-1");
  ASSERT_TRUE(eventually(5s, [&] { return hung_up("cam-1", 0); })) << fleet_->report();
  double until_silent = seconds(boot_now() - told);
  std::printf("revoked: the connection was closed after %.2f s\n", until_silent);
  EXPECT_TRUE(within(until_silent, 1.5, stalled_before));
  expect_unowned("cam-1", 2500ms);
  EXPECT_GT(refused(), refused_before) << "its former owner never asked";
  signal_all({second.manager()}, SIGCONT);
  ASSERT_TRUE(fleet_->all_stream(10s)) << fleet_->report();
  EXPECT_EQ(fleet_->owner_of("cam-1"), "r2");
  EXPECT_TRUE(first.logged("camera.lost"));
  for (const char* camera : {"cam-2", "cam-4"}) EXPECT_EQ(fleet_->version_of(camera), versions[camera]) << camera;
  for (const char* busy : {"r3", "r4"}) EXPECT_EQ(fleet_->runner(busy).told()["owned"], 0) << busy;
  EXPECT_TRUE(eventually(10s, [&] {
    fleet_->history().read(fleet_->plane());
    return fleet_->history().streaming_above("cam-1", versions["cam-1"]).has_value();
  }));
  fleet_->history().expect_one_voice();
}

TEST_F(RunnerOrders, ACordonedRunnerStartedAgain_DoesNotCountWhatAnotherHasAsPending) {
  fleet_ = std::make_unique<RunnerFleet>(unregistered(2, {}));
  for (const char* camera : {"cam-1", "cam-2"}) fleet_->register_camera(camera);
  fleet_->add("r1");
  ASSERT_TRUE(fleet_->all_stream(20s)) << fleet_->report();
  Runner& second = fleet_->add("r2");
  ASSERT_TRUE(eventually(10s, [&] { return fleet_->plane().get("/v1/runners/r2").status == 200; })) << second.log();
  weir("node cordon r2");
  second.kill_everything();
  second.start();
  auto says = [&](std::string_view name, int count) {
    boost::json::object state = second.state();
    return state.contains(name) && state[name] == count;
  };
  EXPECT_TRUE(eventually(10s, [&] { return says("desired", 2) && says("pending", 0); }));
  wait_until_it_says("r2", "cordoned");
}

TEST_F(RunnerOrders, Filters_GiveEachRunnerItsTenantOrSite_AndARestartInAnOutageSaysWhatItWaitsFor) {
  fleet_ = std::make_unique<RunnerFleet>(unregistered(3, {"--lease-ttl-s", "3", "--lease-renew-interval-s", "1"}));
  ASSERT_EQ(fleet_->plane().post("/v1/tenants", {{"tenant_id", "t2"}}).status, 201);
  ASSERT_EQ(fleet_->plane().post("/v1/sites", {{"site_id", "s2"}, {"tenant_id", "t1"}}).status, 201);
  ASSERT_EQ(fleet_->plane().post("/v1/sites", {{"site_id", "s3"}, {"tenant_id", "t2"}}).status, 201);
  fleet_->register_camera("cam-1");
  fleet_->register_camera("cam-2", {{"site_id", "s2"}});
  fleet_->register_camera("cam-3", {{"tenant_id", "t2"}, {"site_id", "s3"}});
  Runner& tenant = fleet_->add("of-t2", {"--runner-tenant", "t2"});
  Runner& site = fleet_->add("of-s1", {"--runner-site", "s1"});
  ASSERT_TRUE(eventually(15s, [&] { return tenant.streams("cam-3") && site.streams("cam-1"); })) << fleet_->report();
  for (Runner* runner : {&tenant, &site}) {
    boost::json::object told = runner->told();
    EXPECT_EQ(told["desired"], 1) << runner->id();
    EXPECT_EQ(told["owned"], 1) << runner->id();
  }
  EXPECT_EQ(fleet_->owner_of("cam-2"), "") << "nobody may have it";
  fleet_->add("of-both", {"--runner-tenant", "t1", "--runner-site", "s2"});
  ASSERT_TRUE(fleet_->all_stream(15s)) << fleet_->report();
  EXPECT_EQ(fleet_->owner_of("cam-1"), "of-s1");
  EXPECT_EQ(fleet_->owner_of("cam-2"), "of-both");
  EXPECT_EQ(fleet_->owner_of("cam-3"), "of-t2");

  fleet_->plane().kill_hard();
  site.kill_everything();
  struct stat cache {};
  ASSERT_EQ(::stat((site.folder() + "/runner/cameras.json").c_str(), &cache), 0);
  EXPECT_EQ(cache.st_mode & 0777, 0600u) << "it holds the cameras' passwords";
  site.start();
  EXPECT_TRUE(eventually(5s, [&] { return site.logged("\"event\":\"runner.waiting\""); })) << site.log();
  EXPECT_TRUE(site.logged("1 cameras were known at ")) << site.log();
  EXPECT_TRUE(eventually(5s, [&] { return tenant.logged("\"event\":\"plane.away\""); })) << tenant.log();
  EXPECT_FALSE(tenant.logged("plane.back"));
  fleet_->plane().start();
  EXPECT_TRUE(fleet_->all_stream(15s)) << fleet_->report();
  EXPECT_TRUE(eventually(5s, [&] { return tenant.logged("\"event\":\"plane.back\""); })) << tenant.log();
}

}  // namespace
}  // namespace weir::test

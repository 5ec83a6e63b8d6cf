// Every alert that Weir ships, fired once by a real fault under a real Prometheus.
#include "papers.hpp"
#include "prometheus.hpp"
#include "stall.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>

namespace weir::test {
namespace {

namespace fs = std::filesystem;
using Names = std::set<std::string>;

// One runner with a port that Prometheus knows beforehand, on a PostgreSQL that can be taken away.
class Alerts : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!fleet_needs().empty()) GTEST_SKIP() << fleet_needs();
    if (!Prometheus::needs().empty()) GTEST_SKIP() << Prometheus::needs();
    auto server = PostgresServer::start();
    SKIP_WITHOUT_POSTGRES(server);
    postgres_ = std::move(*server);
    boost::json::array cameras;
    for (int n = 1; n <= 6; ++n)
      cameras.push_back({{"name", fmt::format("cam-{}", n)}, {"profile", "width=384,height=288,fps=60,keyframe_s=1,seconds=20"}});
    auto database = postgres_->new_database();
    ASSERT_TRUE(database);
    fleet_ = std::make_unique<RunnerFleet>(
        FleetOptions{.cameras = 3,
                     .camera = {{"max_fps", 1}},
                     .plane_flags = papers_.of_plane(),
                     .runner_flags = {"--lease-ttl-s", "3", "--lease-renew-interval-s", "1", "--capacity-streams", "5",
                                      "--status-summary-interval-s", "1", "--inference-threads", "1",
                                      "--control-plane-ca-file", papers_.ca()},
                     .database = *database,
                     .recorders = {{{"name", "recorder-1"}, {"cameras", std::move(cameras)}}}});
    fleet_->register_camera("cam-6");  // a machine that has nothing else to do keeps up with three of them
    port_ = free_port();
    prometheus_ = std::make_unique<Prometheus>(std::vector{fmt::format("http://127.0.0.1:{}", port_)},
                                               std::vector{fleet_->plane().url()}, papers_.ca());
  }

  void start_runner() { fleet_->add("r1", {"--prom-manager-port", std::to_string(port_)}); }
  Runner& runner() { return fleet_->runner("r1"); }

  void expect_firing(const Names& wanted, Duration limit = 20s, const std::function<void()>& meanwhile = [] {}) {
    EXPECT_TRUE(prometheus_->fires(wanted, limit, meanwhile)) << fleet_->report();
    fired_.insert(wanted.begin(), wanted.end());
  }
  // None of those that there are but these, whose windows are longer than the test.
  void expect_quiet_but(const Names& lasting, Duration limit) {
    Names still;
    EXPECT_TRUE(eventually(limit, [&] {
      still.clear();
      if (prometheus_->query("up").size() < 5) return false;
      for (const std::string& name : prometheus_->firing())
        if (!lasting.contains(name)) still.insert(name);
      return still.empty();
    })) << boost::json::serialize(prometheus_->alerts());
  }
  Reply put(const std::string& path, boost::json::object body) {
    return fleet_->plane().call(net::Method::put, path, body, fleet_->plane().token("admin"));
  }
  void cordon(bool yes) {
    Reply told = fleet_->plane().call(net::Method::patch, "/v1/runners/r1", {{"cordoned", yes}},
                                      fleet_->plane().token("admin"));
    EXPECT_EQ(told.status, 200) << told.text;
  }

  // More pictures than one inference thread can look at, on whatever machine: each costs it milliseconds.
  void want(int max_fps, bool all) {
    boost::json::object fields{
        {"max_fps", max_fps}, {"decode", all ? "full" : "adaptive"}, {"motion_gating", {{"enabled", !all}}}};
    for (const char* camera : {"cam-1", "cam-2", "cam-3", "cam-6"}) {
      Reply changed = fleet_->plane().call(net::Method::patch, fmt::format("/v1/cameras/{}", camera), fields,
                                           fleet_->plane().token("admin"));
      EXPECT_EQ(changed.status, 200) << changed.text;
    }
  }

  // Cameras that nobody serves: one is switched off, one may not be dialled, for one there is no room.
  void trouble_cameras() {
    fleet_->camsim().fault("cam-3", {{"kind", "not_found"}});
    WeirProcess& plane = fleet_->plane();
    EXPECT_EQ(plane.post("/v1/sites", {{"site_id", "s2"}, {"tenant_id", "t1"}}).status, 201);
    Reply budget = put("/v1/sites/s2/budget", {{"capacity", 1}, {"refill_rate", 0}, {"tokens", 0}});
    EXPECT_EQ(budget.status, 200) << budget.text;
    fleet_->register_camera("cam-4", {{"site_id", "s2"}});
    EXPECT_TRUE(eventually(15s, [&] { return runner().camera("cam-4")["phase"] == "budget"; })) << fleet_->report();
    fleet_->register_camera("cam-5");
    cordon(true);
  }
  // A camera that crashes its worker twice, and a worker that is killed whenever it is there. A runner whose disk is slow
  // does not wait for the name of the camera that crashed: then there is one crash more.
  void crash_workers() {
    for (int i = 0; i < 8 && (i < 5 || !runner().logged("\"event\":\"camera.alone\"")); ++i) {
      bool alone = runner().logged("\"event\":\"camera.alone\"");
      auto crash = [&] {
        if (!runner().streams("cam-1") || !runner().streams("cam-2")) return false;
        if (!alone) return crash_thread(runner().worker_of("cam-1"), "cam-1");
        signal_all({runner().worker_of("cam-2")}, SIGKILL);
        return true;
      };
      EXPECT_TRUE(eventually(20s, crash)) << fleet_->report();
      EXPECT_TRUE(eventually(10s, [&] { return crashes() > i; })) << fleet_->report();
    }
  }
  int crashes() {
    int count = 0;
    std::string log = runner().log();
    for (size_t at = 0; (at = log.find("\"event\":\"worker.crashed\"", at)) != std::string::npos; ++at) ++count;
    return count;
  }

  Papers papers_;
  std::unique_ptr<PostgresServer> postgres_;
  std::unique_ptr<RunnerFleet> fleet_;
  std::unique_ptr<Prometheus> prometheus_;
  int port_ = 0;
  Names fired_;
};

TEST_F(Alerts, EveryFault_FiresItsAlert_AndAHealthyFleetNone) {
  expect_firing({"WeirDiscoveryFailing", "WeirNoRunner"});  // nobody is there yet
  start_runner();
  ASSERT_TRUE(fleet_->all_stream(20s)) << fleet_->report();
  expect_quiet_but({"WeirDiscoveryFailing"}, 20s);
  for (const std::string& page : {fleet_->plane().url() + "/metrics", runner().url() + "/metrics",
                                  runner().url() + "/workers/shard-0/metrics"})
    EXPECT_EQ(Prometheus::unknown_on(page, papers_.ca()), "");

  want(60, true);
  expect_firing({"WeirCameraBehind", "WeirRunnerOverloaded"}, 40s);
  want(1, false);
  EXPECT_TRUE(eventually(40s, [&] { return runner().told()["acquiring"] == true; })) << fleet_->report();

  trouble_cameras();
  crash_workers();
  expect_firing({"WeirCamerasPending", "WeirBudgetEmpty", "WeirRunnerNotTaking", "WeirWorkerCrashing",
                 "WeirCameraCrashesWorker", "WeirStreamDown", "WeirNoPictures"});

  fs::remove_all(runner().folder() + "/spool");  // the disk is gone when it is needed
  postgres_->kill_hard();
  expect_firing({"WeirStoreDown", "WeirSpoolDiskTrouble"});
  ASSERT_TRUE(postgres_->start_again());

  // Whichever worker takes over, as in a control group that is frozen: one alone would be replaced before anybody looks.
  expect_firing({"WeirWorkerDown", "WeirWorkerSilent"}, 20s, [&] { signal_all(runner().workers(), SIGSTOP); });
  signal_all(runner().workers(), SIGCONT);

  papers_.renew(13 * 86400);
  ::kill(fleet_->plane().pid(), SIGHUP);
  expect_firing({"WeirCertificateEnds"});
  papers_.renew();

  fleet_->plane().kill_hard();
  expect_firing({"WeirControlPlaneDown"});
  fleet_->plane().start();

  cordon(false);
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(eventually(20s, [&] { return fleet_->owner_of("cam-2") == "r1"; })) << fleet_->report();
    runner().kill_everything();
    expect_firing({"WeirRunnerDown", "WeirNoRunner"});
    runner().start();
  }
  expect_firing({"WeirOwnerChurn"});

  EXPECT_EQ(fired_, Prometheus::rules({"cameras", "runners", "workers", "control-planes"})) << "each rule has its fault";
}

int port_of(const std::string& url) { return std::stoi(url.substr(url.rfind(':') + 1)); }

// Both runners begin at one port, and the second one's workers look for theirs from that very port upwards, as no
// default does: when the first one is gone, its port is a worker's.
TEST(AlertsOnOneHost, ASurvivorsWorkerOnTheDeadRunnersPort_DoesNotMakeTheDeadOneLookUp) {
  if (!fleet_needs().empty()) GTEST_SKIP() << fleet_needs();
  if (!Prometheus::needs().empty()) GTEST_SKIP() << Prometheus::needs();
  RunnerFleet fleet({.cameras = 1, .camera = {{"max_fps", 1}, {"model", {{"detector", "none"}}}}});
  std::string port = std::to_string(free_port());
  Runner& first = fleet.add("r1", {"--prom-manager-port", port});
  Runner& second = fleet.add("r2", {"--prom-manager-port", port, "--prom-worker-port", port});
  ASSERT_EQ(std::to_string(port_of(first.url())), port);
  EXPECT_LT(port_of(second.url()), port_of(first.url()));
  EXPECT_GE(port_of(second.url()), port_of(first.url()) - 6);
  EXPECT_EQ(second.get("/metrics?runner_id=r2").status, 200);
  for (const char* page : {"/metrics", "/sd/prometheus", "/workers/shard-0/metrics"}) {
    Reply refused = second.get(page + std::string("?runner_id=r1"));
    EXPECT_EQ(refused.status, 404) << page;
    EXPECT_EQ(refused.code(), "another_runner") << page << refused.text;
  }
  Prometheus prometheus({first.url(), second.url()}, {fleet.plane().url()});
  auto up = [&](const std::string& runner) {
    double value = -1;
    for (const auto& each : prometheus.query("up"))
      if (each.at("metric").at("job") == "weir-runner" && each.at("metric").at("runner_id").as_string() == runner)
        value = std::stod(std::string(each.at("value").at(1).as_string()));
    return value;
  };
  ASSERT_TRUE(eventually(15s, [&] { return up("r1") == 1 && up("r2") == 1; })) << prometheus.log();

  std::string dead = first.url();
  first.kill_everything();
  ASSERT_TRUE(fleet.all_stream(20s, {"r2"})) << fleet.report();
  signal_all({second.worker_of("cam-1")}, SIGKILL);  // the next one looks for a port
  ASSERT_TRUE(eventually(20s, [&] { return get_from(dead, "/metrics").status == 200; })) << fleet.report();
  EXPECT_EQ(get_from(dead, "/metrics?runner_id=r1").code(), "another_runner");
  EXPECT_EQ(get_from(dead, "/metrics?runner_id=r2").status, 200);
  boost::json::value targets;
  auto refused = [](const auto& target) {
    return target.at("labels").at("job") == "weir-runner" && target.at("labels").at("runner_id") == "r1" &&
           target.at("lastError").as_string().find("404") != std::string::npos;
  };
  EXPECT_TRUE(eventually(10s, [&] {
    targets = prometheus.ask("targets?state=active");
    return targets.is_object() && std::ranges::any_of(targets.at("activeTargets").as_array(), refused);
  })) << "Prometheus was there since, and was refused: " << boost::json::serialize(targets);
  EXPECT_TRUE(eventually(10s, [&] { return prometheus.firing({{"runner_id", "r1"}}).contains("WeirRunnerDown"); }))
      << boost::json::serialize(prometheus.alerts());
  EXPECT_EQ(up("r1"), 0);
  EXPECT_EQ(up("r2"), 1);
}

}  // namespace
}  // namespace weir::test

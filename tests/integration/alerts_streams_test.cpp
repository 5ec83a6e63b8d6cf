// The alerts of published streams, forwarders and detector clusters, fired once by real faults under a real Prometheus,
// as alerts_test.cpp does for cameras.
#include "cluster_house.hpp"
#include "prometheus.hpp"
#include "stream_rig.hpp"

#include <csignal>

namespace weir::test {
namespace {

using Names = std::set<std::string>;

// Those of `rules` that do not cease to fire where all is well. What was not scraped yet can look like a fault before.
Names lasting(const Prometheus& prometheus, const Names& rules) {
  Names still;
  eventually(20s, [&] {
    still.clear();
    for (const std::string& name : prometheus.firing())
      if (rules.contains(name)) still.insert(name);
    return still.empty();
  });
  return still;
}

class AlertsStreams : public StreamRig {
 protected:
  void SetUp() override {
    StreamRig::SetUp();
    if (!Prometheus::needs().empty()) GTEST_SKIP() << Prometheus::needs();
  }
  void expect_firing(
      const Names& wanted, Duration limit, const std::function<void()>& meanwhile = [] {}) {
    EXPECT_TRUE(prometheus_->fires(wanted, limit, meanwhile)) << report();
    fired_.insert(wanted.begin(), wanted.end());
  }
  // A worker or forwarder, whenever there is one; not its keeper, which says how it ended.
  void kill_child(const std::string& program) {
    for (int pid : house_->children())
      if (text_in_file(fmt::format("/proc/{}/comm", pid)) == program + "\n") ::kill(pid, SIGKILL);
  }
  TempDir elsewhere_;
  std::unique_ptr<Prometheus> prometheus_;
  Names fired_;
};

TEST_F(AlertsStreams, EveryFault_FiresItsAlert_AndAHealthyStreamNone) {
  MediaMtx destination(elsewhere_);
  open({.streams = "other: {mode: passthrough}\n", .flags = {"--restart-cooldown-seconds", "1"}, .hooks = false});
  write_text(house_->folder().path() + "/streams.yaml",
             fmt::format("demo: {{mode: passthrough, forward: true, destination: \"{}/dest/key\"}}\n",
                         destination.rtmp_base()));
  house_->kill_orchestrator();
  house_->start();
  prometheus_ = std::make_unique<Prometheus>(Prometheus::Watched{.orchestrators = {house_->url()}});
  auto publisher = house_->hub().publish(in("demo"));
  ASSERT_TRUE(runs("demo")) << report();
  ASSERT_TRUE(destination.ready("dest/key")) << report();
  auto measured = [&](const char* what) { return prometheus_->query(what).size() == 1; };
  ASSERT_TRUE(eventually(20s, [&] {
    return measured("egress_forwarder_forwarding") && measured("weir_stream_worker_forwarding");
  })) << prometheus_->log();
  for (const char* page : {"/metrics", "/streams/demo/worker/metrics", "/streams/demo/forwarder/metrics"})
    EXPECT_EQ(Prometheus::unknown_on(house_->url() + page), "");
  EXPECT_EQ(lasting(*prometheus_, Prometheus::rules({"streams", "egress"})), Names());

  destination.stop();
  expect_firing({"WeirForwardDead"}, 40s);
  expect_firing({"WeirForwarderRestarting"}, 60s, [&] { kill_child("weir-egress"); });
  expect_firing({"WeirStreamWorkerRestarting", "WeirStreamDegraded"}, 90s, [&] { kill_child("weir-worker"); });
  // Nobody tells the orchestrator of publishers that come and go.
  for (int i = 0; i < 4; ++i) {
    publisher.reset();
    ASSERT_TRUE(house_->hub().gone(in("demo")));
    std::string id = fmt::format("more-{}", i);
    publisher = house_->hub().publish(in(id));
    ASSERT_TRUE(eventually(20s, [&] { return !house_->state(id).empty(); })) << report();
  }
  expect_firing({"WeirHooksMissed"}, 20s);
  house_->kill_orchestrator();
  expect_firing({"WeirOrchestratorDown"}, 20s);
  EXPECT_EQ(fired_, Prometheus::rules({"streams", "egress"})) << "each rule has its fault";
}

class AlertsCluster : public ClusterHouse {
 protected:
  void SetUp() override {
    if (std::string why = start_redis(); !why.empty()) GTEST_SKIP() << why;
    if (!Prometheus::needs().empty()) GTEST_SKIP() << Prometheus::needs();
    ClusterHouse::SetUp();
  }
};

TEST_F(AlertsCluster, EveryFault_FiresItsAlert_AndAHealthyClusterNone) {
  display("d1", "cam-a");
  for (const char* id : {"one", "two"}) start(id);
  ASSERT_TRUE(eventually(25s, [&] { return !master().empty() && all_active(master(), {"d1;cam-a"}); })) << report();
  Prometheus prometheus({.planes = {plane_->url()}, .clusters = {urls_["one"], urls_["two"]}});
  Names fired;
  auto expect_firing = [&](const Names& wanted, Duration limit) {
    EXPECT_TRUE(prometheus.fires(wanted, limit)) << report();
    fired.insert(wanted.begin(), wanted.end());
  };
  ASSERT_TRUE(eventually(20s, [&] { return prometheus.query("weir_cluster_results_total").size() == 1; }))
      << prometheus.log();
  EXPECT_EQ(Prometheus::unknown_on(urls_[master()] + "/metrics"), "");
  EXPECT_EQ(lasting(prometheus, Prometheus::rules({"cluster"})), Names());

  std::string first = master(), other = first == "one" ? "two" : "one";
  processes_[other]->signal(SIGKILL);
  processes_[other]->wait();
  expect_firing({"WeirClusterProcessDown"}, 20s);
  redis_->kill();
  expect_firing({"WeirClusterRedisAway"}, 20s);
  // The master can neither publish what the workers see nor renew its lease.
  plane_->kill_hard();
  expect_firing({"WeirClusterNoMaster", "WeirClusterResultsLost"}, 60s);
  EXPECT_EQ(fired, Prometheus::rules({"cluster"})) << "each rule has its fault";
}

}  // namespace
}  // namespace weir::test

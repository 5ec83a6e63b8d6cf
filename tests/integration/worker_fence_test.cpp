// No worker publishes for a camera after its successor: killed workers, stopped workers that wake up, bytes that
// arrive late.
#include "fault_proxy.hpp"
#include "shard.hpp"
#include "stall.hpp"

#include "weir/base/clock.hpp"
#include "weir/base/json.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <set>

namespace weir::test {
namespace {

const std::string kProfile = "fps=10,keyframe_s=1";
constexpr double kTtl = 3;

class WorkerFence : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (part("footage/vtest.avi").empty() || part("lib/libtensorflowlite_c.so").empty())
      GTEST_SKIP() << "footage or model could not be fetched";
    std::string database = "sqlite:" + folder_.path() + "/weir.db";
    if (GetParam() == std::string("Postgres")) {
      auto server = PostgresServer::shared();
      SKIP_WITHOUT_POSTGRES(server);
      auto made = (*server)->new_database();
      ASSERT_TRUE(made);
      database = *made;
    }
    camsim_ = std::make_unique<Camsim>(folder_, std::vector<std::string>(2, kProfile));
    plane_ = std::make_unique<WeirProcess>(folder_.path(), database);
    plane_->furnish(2);
    first_ = std::make_unique<Manager>(*plane_, "runner-1");
    second_ = std::make_unique<Manager>(*plane_, "runner-2");
  }
  // `bus`: where it publishes, if not at the control plane's own address. All workers share their spool.
  std::unique_ptr<WorkerProcess> worker(Manager& manager, const std::string& name, const std::string& bus = {}) {
    boost::json::array sources;
    for (const char* camera : {"cam-1", "cam-2"}) sources.push_back(manager.source(camera, camsim_->url(camera)));
    boost::json::object config = manager.config(std::move(sources));
    if (!bus.empty()) config["cp"].as_object()["base_url"] = bus;
    return std::make_unique<WorkerProcess>(folder_, name, std::move(config),
                                           std::vector<std::string>{"--spool-dir", folder_.path() + "/spool"});
  }
  void acquire(Manager& manager, Duration limit = 1s) {
    for (const char* camera : {"cam-1", "cam-2"})
      ASSERT_TRUE(eventually(limit, [&] { return manager.acquire(camera, kTtl); })) << camera;
  }
  void keep(Manager& manager, WorkerProcess& worker) {
    boost::json::array leases;
    for (const char* camera : {"cam-1", "cam-2"})
      if (manager.renew(camera, kTtl)) leases.push_back(manager.lease(camera));
    worker.post("/leases", {{"items", leases}});
  }
  size_t heard(const Manager& manager) {
    size_t count = 0;
    for (const auto& event : events_of(*plane_, "detections.%23"))
      count += event.at("payload").at("runner_id").as_string() == manager.runner() ? 1 : 0;
    return count;
  }
  // Of everything that was accepted; none may be there twice.
  std::set<std::string> ids() {
    std::set<std::string> found;
    for (const auto& event : events_of(*plane_, "%23")) {
      const auto& payload = event.at("payload").as_object();
      if (!payload.contains("lease_version")) continue;
      std::string id(payload.at("event_id").as_string());
      EXPECT_TRUE(found.insert(id).second) << "doubled: " << id;
    }
    return found;
  }
  double metric(const std::string& name) {
    std::string text = plane_->get("/metrics").text;
    size_t at = text.find("\n" + name + " ");
    return at == std::string::npos ? -1 : std::strtod(text.c_str() + at + name.size() + 2, nullptr);
  }
  // Versions never fall: in the feed's order no worker publishes after its successor.
  void expect_one_speaker_at_a_time() {
    std::map<std::string, std::int64_t> last;
    for (const auto& event : events_of(*plane_, "%23")) {
      const auto& payload = event.at("payload").as_object();
      if (!payload.contains("lease_version")) continue;
      std::string camera(payload.at("camera_uuid").as_string());
      std::int64_t version = payload.at("lease_version").as_int64();
      EXPECT_GE(version, last[camera]) << "a stale event was accepted: " << boost::json::serialize(event);
      last[camera] = std::max(last[camera], version);
    }
  }

  TempDir folder_;
  std::unique_ptr<Camsim> camsim_;
  std::unique_ptr<WeirProcess> plane_;
  std::unique_ptr<Manager> first_, second_;
};

TEST_P(WorkerFence, StoppedWorkerThatWakesUpAfterATakeover_IsNotHeard) {
  acquire(*first_);
  auto old = worker(*first_, "old");
  ASSERT_TRUE(eventually(15s, [&] {
    keep(*first_, *old);
    return heard(*first_) > 2;
  }));
  old->child().signal(SIGSTOP);
  acquire(*second_, 10s);
  auto fresh = worker(*second_, "fresh");
  ASSERT_TRUE(eventually(15s, [&] {
    keep(*second_, *fresh);
    return heard(*second_) > 2;
  })) << fresh->child().log();
  size_t before = heard(*first_);
  old->child().signal(SIGCONT);
  // The worker decodes, spools its events and publishes nothing, for as long as its manager is silent.
  ASSERT_TRUE(eventually(15s, [&] {
    keep(*second_, *fresh);
    return old->state().at("spooled").as_int64() > 3;
  })) << old->child().log();
  EXPECT_EQ(heard(*first_), before);
  expect_one_speaker_at_a_time();
  // Told that the camera was lost, the worker drops its spool and stops.
  EXPECT_EQ(old->post("/leases", {{"lost", {"cam-1", "cam-2"}}}).status, 200);
  EXPECT_TRUE(eventually(5s, [&] { return old->state().at("cameras").as_array().empty(); }));
  EXPECT_EQ(heard(*first_), before);
}

TEST_P(WorkerFence, WorkerThatWasNeverToldOfItsLoss_IsRefusedByTheBus) {
  acquire(*first_);
  // The worker's manager lies about the deadline: only the fence is left.
  boost::json::array sources;
  for (const char* camera : {"cam-1", "cam-2"}) {
    sources.push_back(first_->source(camera, camsim_->url(camera)));
    sources.back().at("lease").as_object()["valid_until_us"] = (boot_now() + 1h).time_since_epoch().count();
  }
  auto old = std::make_unique<WorkerProcess>(folder_, "old", first_->config(std::move(sources)));
  ASSERT_TRUE(eventually(15s, [&] { return heard(*first_) > 2; }));
  double refused = metric("weir_events_stale_total");  // the refusal that ends it may come at once
  acquire(*second_, 10s);
  size_t before = heard(*first_);
  auto fresh = worker(*second_, "fresh");
  ASSERT_TRUE(eventually(15s, [&] {
    keep(*second_, *fresh);
    return heard(*second_) > 2 && metric("weir_events_stale_total") > refused;
  })) << old->child().log();
  EXPECT_EQ(heard(*first_), before);
  expect_one_speaker_at_a_time();
}

// The control plane takes what it is sent, but its answers get lost: the worker cannot know. Killed after it has lost
// its patience, it has put on disk what the control plane has already.
TEST_P(WorkerFence, KilledWithEventsInFlight_LosesNothingThatWasConfirmed_AndDoublesNothing) {
  const int kills = long_run() ? 30 : 2;
  FaultProxy way(plane_->url());
  acquire(*first_);
  std::set<std::string> at_the_kill;
  double repeated = -1;  // before a spool was left behind that holds what was accepted
  for (int round = 0; round <= kills; ++round) {
    auto heir = worker(*first_, fmt::format("worker-{}", round), way.url());
    auto hold_on_until = [&](Duration limit, const std::function<bool()>& condition) {
      return eventually(limit, [&] {
        keep(*first_, *heir);
        return condition();
      });
    };
    ASSERT_TRUE(hold_on_until(15s, [&] { return ids().size() > at_the_kill.size() + 2; })) << heir->child().log();
    EXPECT_TRUE(std::ranges::includes(ids(), at_the_kill)) << "what was accepted is gone";
    if (repeated >= 0) {
      EXPECT_TRUE(hold_on_until(10s, [&] { return metric("weir_events_duplicate_total") > repeated; }))
          << "nothing of the spool was said again";
    }
    if (round == kills) break;

    way.set({.lose_down = true});
    size_t accepted = ids().size();
    std::int64_t spooled = heir->state().at("spooled").as_int64();
    // The request that is already on its way may have been counted; the next one follows when that has been given up.
    ASSERT_TRUE(hold_on_until(12s, [&] { return ids().size() > accepted; })) << "nothing is in flight";
    std::int64_t confirmed = heir->state().at("published").as_int64();
    bool gives_up_first = round % 2 == 1;
    if (gives_up_first) {
      ASSERT_TRUE(hold_on_until(12s, [&] {
        return heir->child().log().find("bus.down") != std::string::npos &&
               heir->state().at("spooled").as_int64() > spooled;
      })) << heir->child().log();
    }
    EXPECT_EQ(heir->state().at("published"), confirmed) << "an answer came through";
    heir->child().signal(SIGKILL);
    heir->child().wait();
    at_the_kill = ids();
    repeated = gives_up_first ? metric("weir_events_duplicate_total") : -1;
    way.pass();
    for (const char* camera : {"cam-1", "cam-2"}) ASSERT_TRUE(first_->renew(camera, kTtl, true));
  }
  expect_one_speaker_at_a_time();
}

INSTANTIATE_TEST_SUITE_P(Stores, WorkerFence, ::testing::Values("Sqlite", "Postgres"),
                         [](const auto& store) { return std::string(store.param); });

}  // namespace
}  // namespace weir::test

// The control plane is away: no worker stops, its events are kept on disk, and afterwards none is missing or doubled.
#include "fault_proxy.hpp"
#include "fleet.hpp"
#include "stall.hpp"

#include "weir/base/clock.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

namespace weir::test {
namespace {

namespace fs = std::filesystem;

constexpr Duration kTtl = 3s;
constexpr Duration kTakeover = 3500ms;  // from a lease's end to its next holder's STREAMING: 2.5 s, and a busy machine

class RunnerOutage : public FleetTest {
 protected:
  // Every picture is looked at, and something is seen in every one.
  void start(std::vector<std::string> more, const std::string& database = {}) {
    more.insert(more.end(), {"--lease-ttl-s", "3", "--lease-renew-interval-s", "1"});
    fleet_ = std::make_unique<RunnerFleet>(FleetOptions{
        .profile = "width=384,height=288,fps=5,keyframe_s=1,seconds=10",
        .camera = {{"max_fps", 10}, {"decode", "full"}, {"motion_gating", {{"enabled", false}}}, {"min_score", 0.05}},
        .runner_flags = std::move(more),
        .postgres = postgres(),
        .database = database});
  }
  bool heard_after(const std::string& camera, WallTime time) {
    fleet_->history().read(fleet_->plane());
    return std::ranges::any_of(fleet_->history().events(), [&](const Accepted& e) {
      return e.kind == "detections" && e.camera == camera && e.captured > time;
    });
  }
  bool all_heard_after(WallTime time) {
    return eventually(20s, [&] {
      between_looks();
      return std::ranges::all_of(fleet_->cameras(), [&](const auto& camera) { return heard_after(camera, time); });
    });
  }
  // Numbers of pictures that no event speaks of, between the first after `since` and the last that one does. Earlier,
  // while the camera sends what it has kept and the detector is loaded, the newest picture wins.
  std::int64_t missing(const std::string& camera, WallTime since) {
    std::set<std::int64_t> frames;
    for (const Accepted& event : fleet_->history().events())
      if (event.kind == "detections" && event.camera == camera && event.captured > since) {
        EXPECT_TRUE(frames.insert(event.frame).second) << camera << ": picture " << event.frame << " came twice";
      }
    return frames.empty() ? -1 : *frames.rbegin() - *frames.begin() + 1 - std::ssize(frames);
  }
  // The newest picture wins where the machine is too slow: these were not looked at.
  std::map<std::string, double> dropped_at(const Runner& runner) {
    std::map<std::string, double> out;
    for (const std::string& camera : fleet_->cameras()) out[camera] = runner.number(camera, "dropped");
    return out;
  }
  void expect_none_lost(const Runner& runner, const std::string& camera, WallTime since, double dropped_before) {
    auto lost = static_cast<double>(missing(camera, since));
    double dropped = 0;
    // What a runner knows of its workers is a moment old, so it is asked until it agrees.
    eventually(1s, [&] { return lost <= (dropped = runner.number(camera, "dropped") - dropped_before); });
    std::printf("outage: %s: %.0f pictures without an event, %.0f were not looked at\n", camera.c_str(), lost, dropped);
    EXPECT_GE(lost, 0) << camera;
    EXPECT_LE(lost, dropped) << camera;
  }
  double sum_of(Runner& runner, const std::string& sample) {
    double sum = 0;
    boost::json::object state = runner.told();
    for (const auto& worker : state["workers"].as_array()) {
      std::string text =
          "\n" + runner.get(fmt::format("/workers/{}/metrics", std::string(worker.at("shard_id").as_string()))).text;
      if (size_t at = text.find("\n" + sample + " "); at != std::string::npos)
        sum += std::strtod(text.c_str() + at + sample.size() + 2, nullptr);
    }
    return sum;
  }
};

// The control plane is killed, comes back, and can be asked again when the grace of every camera has just passed: what
// is left is the time for recovery, a twentieth of the grace, in which a runner asks at least once.
TEST_P(RunnerOutage, OfTheWholeGrace_NoCameraStops_AndNoPicturesEventIsLostOrDoubled) {
  constexpr Duration kGrace = 36s, kNoticed = 300ms;  // a worker looks every 250 ms
  start({"--outage-grace-s", fmt::format("{}", seconds(kGrace))});
  FaultProxy proxy(fleet_->plane().url());
  Runner& runner = fleet_->add("r1", {}, proxy.url());
  ASSERT_TRUE(fleet_->all_stream(20s)) << fleet_->report();
  ASSERT_TRUE(all_heard_after(wall_now()));
  auto dropped = dropped_at(runner);
  WallTime before = wall_now();
  ASSERT_TRUE(all_heard_after(before));
  auto past_deadline_by = [&](Duration time) {
    return std::ranges::all_of(
        fleet_->cameras(), [&](const auto& camera) { return runner.number(camera, "lease_valid_s") < -seconds(time); });
  };
  fleet_->plane().kill_hard();
  proxy.cut();
  let_last(kGrace - 2s);
  fleet_->plane().start();
  Duration stalled = StallMonitor::get().total();
  ASSERT_TRUE(eventually(10s, [&] { return past_deadline_by(kGrace + kNoticed); })) << fleet_->report();
  EXPECT_FALSE(runner.logged("outage.paused")) << "the time for recovery is not given";
  proxy.pass();
  ASSERT_TRUE(all_heard_after(wall_now())) << fleet_->report();
  EXPECT_FALSE(runner.logged("outage.paused"));
  stalled = StallMonitor::get().total() - stalled;
  if (HasFailure() && stalled > kNoticed)
    std::printf("INCONCLUSIVE: the machine stood still for %.1f s while runner and plane met\n", seconds(stalled));
  for (const std::string& camera : fleet_->cameras()) {
    EXPECT_TRUE(runner.streams(camera)) << fleet_->report();
    EXPECT_EQ(runner.number(camera, "dials"), 1) << camera;
  }
  EXPECT_GT(sum_of(runner, "weir_events_spooled_total"), 100);
  fleet_->history().expect_one_voice();
  for (const std::string& camera : fleet_->cameras()) expect_none_lost(runner, camera, before, dropped[camera]);
}

TEST_P(RunnerOutage, CutOffRunner_LosesWhatAnotherTook_AndPublishesWhatNobodyTook) {
  start({});
  FaultProxy proxy(fleet_->plane().url());
  Runner& cut_off = fleet_->add("r1", {}, proxy.url());
  ASSERT_TRUE(fleet_->all_stream(20s)) << fleet_->report();
  ASSERT_TRUE(all_heard_after(wall_now()));
  fleet_->add("r2", {"--capacity-streams", "1"});
  auto dropped = dropped_at(cut_off);
  auto versions = fleet_->versions();
  WallTime cut = wall_now();
  proxy.cut();
  std::string taken;
  ASSERT_TRUE(eventually(kTtl + kTakeover, [&] {
    fleet_->history().read(fleet_->plane());
    for (const std::string& camera : fleet_->cameras())
      if (fleet_->history().streaming_above(camera, versions[camera])) taken = camera;
    return !taken.empty();
  })) << fleet_->report();
  std::printf("cut off: the other streams after %.2f s\n",
              seconds(*fleet_->history().streaming_above(taken, versions[taken]) - cut));
  EXPECT_EQ(fleet_->owner_of(taken), "r2");
  std::string kept = taken == "cam-1" ? "cam-2" : "cam-1";
  ASSERT_TRUE(eventually(10s, [&] { return heard_after(taken, cut); })) << fleet_->report();
  WallTime back = wall_now();
  proxy.pass();
  ASSERT_TRUE(eventually(15s, [&] { return heard_after(kept, back); })) << fleet_->report();
  EXPECT_TRUE(eventually(5s, [&] { return sum_of(cut_off, "weir_events_dropped_total{reason=\"lost\"}") > 5; }))
      << cut_off.get("/workers/shard-0/metrics").text;
  EXPECT_TRUE(fleet_->all_stream(10s)) << fleet_->report();
  fleet_->history().read(fleet_->plane());
  fleet_->history().expect_one_voice();
  expect_none_lost(cut_off, kept, cut, dropped[kept]);  // nobody took it
}

// No worker is left that could hear of the loss, and the cameras do not come back.
TEST_P(RunnerOutage, KilledWhileCutOff_WhatItSpooled_IsDroppedAndCounted_OnceAnotherHasTheCameras) {
  start({});
  FaultProxy proxy(fleet_->plane().url());
  Runner& runner = fleet_->add("r1", {}, proxy.url());
  ASSERT_TRUE(fleet_->all_stream(20s)) << fleet_->report();
  ASSERT_TRUE(all_heard_after(wall_now()));
  proxy.cut();
  ASSERT_TRUE(eventually(15s, [&] { return sum_of(runner, "weir_events_spooled_total") > 20; })) << fleet_->report();
  runner.kill_everything();
  auto spooled = [&] {
    return std::ranges::count_if(fs::directory_iterator(runner.folder() + "/spool"),
                                 [](const fs::directory_entry& each) { return each.is_directory(); });
  };
  EXPECT_EQ(spooled(), 2) << "a log a camera";
  fleet_->add("r2");
  ASSERT_TRUE(fleet_->all_stream(15s, {"r2"})) << fleet_->report();
  proxy.pass();
  runner.start();
  EXPECT_TRUE(eventually(15s, [&] { return spooled() == 0; })) << runner.log();
  EXPECT_TRUE(runner.logged("spool.dropped"));
  std::string sample = "\nweir_events_dropped_total{reason=\"lost\"} ", page = runner.get("/metrics").text;
  ASSERT_NE(page.find(sample), std::string::npos) << page;
  EXPECT_GT(std::stod(page.substr(page.find(sample) + sample.size())), 5);
  EXPECT_TRUE(fleet_->all_stream(5s, {"r2"})) << fleet_->report();
  fleet_->history().read(fleet_->plane());
  fleet_->history().expect_one_voice();
}

INSTANTIATE_TEST_SUITE_P(Stores, RunnerOutage, ::testing::Values("Sqlite", "Postgres"), store_name);

class RunnerOutageOnSqlite : public RunnerOutage {};

TEST_P(RunnerOutageOnSqlite, LongerThanTheGrace_StopsDecoding_AndStreamsAgainAfterwards) {
  start({"--outage-grace-s", "3"});
  Runner& runner = fleet_->add("r1");
  ASSERT_TRUE(fleet_->all_stream(20s)) << fleet_->report();
  WallTime before = wall_now();
  ASSERT_TRUE(all_heard_after(before));
  fleet_->plane().kill_hard();
  WallTime killed = wall_now();
  EXPECT_TRUE(eventually(15s, [&] { return runner.camera("cam-1")["paused"] == true; })) << fleet_->report();
  WallTime paused = wall_now();
  EXPECT_TRUE(runner.logged("outage.paused"));
  fleet_->plane().start();
  EXPECT_TRUE(fleet_->all_stream(15s)) << fleet_->report();
  EXPECT_TRUE(all_heard_after(wall_now())) << fleet_->report();
  fleet_->history().expect_one_voice();
  for (const std::string& camera : fleet_->cameras()) {
    auto captures = fleet_->history().captures(camera);
    EXPECT_GT(std::ranges::count_if(captures, [&](WallTime at) { return at > killed + 500ms && at < paused; }), 10)
        << camera << ": what was spooled before the pause is published";
  }
}

INSTANTIATE_TEST_SUITE_P(Stores, RunnerOutageOnSqlite, ::testing::Values("Sqlite"), store_name);

class RunnerOutageOnPostgres : public RunnerOutage {};

TEST_P(RunnerOutageOnPostgres, PostgresKilledAndStartedAgainBehindALivingControlPlane_NobodyChangesHands) {
  auto server = PostgresServer::start();
  SKIP_WITHOUT_POSTGRES(server);
  auto database = (*server)->new_database();
  ASSERT_TRUE(database);
  start({}, *database);
  Runner& runner = fleet_->add("r1");
  ASSERT_TRUE(fleet_->all_stream(20s)) << fleet_->report();
  fleet_->add("r2");
  auto dropped = dropped_at(runner);
  WallTime before = wall_now();
  ASSERT_TRUE(all_heard_after(before));
  auto versions = fleet_->versions();
  (*server)->kill_hard();
  let_last(6s);
  for (const std::string& camera : fleet_->cameras()) EXPECT_TRUE(runner.streams(camera)) << fleet_->report();
  ASSERT_TRUE((*server)->start_again());
  ASSERT_TRUE(all_heard_after(wall_now())) << fleet_->report();
  EXPECT_EQ(fleet_->versions(), versions);
  fleet_->history().expect_one_voice();
  for (const std::string& camera : fleet_->cameras()) expect_none_lost(runner, camera, before, dropped[camera]);
  fleet_.reset();  // before its store
}

TEST_P(RunnerOutageOnPostgres, OneOfTwoControlPlanesKilled_TheOtherRenewsAndIsTold_AndNoPicturesEventIsLost) {
  auto server = PostgresServer::shared();
  SKIP_WITHOUT_POSTGRES(server);
  auto database = (*server)->new_database();
  ASSERT_TRUE(database);
  start({}, *database);
  WeirProcess other(fleet_->folder().path(), *database);
  Runner& runner = fleet_->add("r1", {}, fleet_->plane().url() + "," + other.url());
  ASSERT_TRUE(fleet_->all_stream(20s)) << fleet_->report();
  auto dropped = dropped_at(runner);
  WallTime before = wall_now();
  Duration stalled_before = StallMonitor::get().total();
  ASSERT_TRUE(all_heard_after(before));
  auto versions = fleet_->versions();
  WallTime killed = wall_now();
  fleet_->plane().kill_hard();
  EXPECT_TRUE(eventually(5s, [&] {
    fleet_->history().read(other);
    return std::ranges::all_of(fleet_->cameras(), [&](const auto& camera) { return heard_after(camera, killed); });
  })) << "events wait for the one that is away";
  let_last(4s);
  for (const std::string& camera : fleet_->cameras()) {
    EXPECT_TRUE(runner.streams(camera)) << runner.log();
    EXPECT_GT(runner.number(camera, "lease_valid_s"), 0) << "nobody renewed it";
    Reply lease = other.get("/v1/leases/camera/" + camera);
    EXPECT_EQ(lease.field("version"), std::to_string(versions[camera])) << lease.text;
  }
  fleet_->plane().start();
  ASSERT_TRUE(all_heard_after(wall_now())) << fleet_->report();
  fleet_->history().expect_one_voice();
  for (const std::string& camera : fleet_->cameras()) expect_none_lost(runner, camera, before, dropped[camera]);
  Duration latest{};
  for (const Accepted& event : fleet_->history().events())
    if (event.captured > before) latest = std::max<Duration>(latest, event.stored - *event.captured);
  std::printf("one of two control planes killed: an event waited for at most %.2f s\n", seconds(latest));
  EXPECT_TRUE(within(seconds(latest), 5, stalled_before));
}

// An operator forgot to copy auth.secret: both control planes accept an API key, but each only its own tokens.
TEST_P(RunnerOutageOnPostgres, OneOfTwoControlPlanesKilled_TheOtherHasAnotherSecret_AndEventsGoOnWithANewToken) {
  auto server = PostgresServer::shared();
  SKIP_WITHOUT_POSTGRES(server);
  auto database = (*server)->new_database();
  ASSERT_TRUE(database);
  start({}, *database);
  TempDir elsewhere;
  WeirProcess other(elsewhere.path(), *database);
  Reply key = fleet_->plane().post("/v1/api-keys", {{"role", "runner"}, {"sub", "r1"}});
  ASSERT_EQ(key.status, 201) << key.text;
  auto runner = fleet_->make("r1", "r1", {}, fleet_->plane().url() + "," + other.url(), key.field("api_key"));
  ASSERT_TRUE(all_heard_after(wall_now())) << runner->log();
  WallTime killed = wall_now();
  fleet_->plane().kill_hard();
  EXPECT_TRUE(eventually(15s, [&] {
    fleet_->history().read(other);
    return std::ranges::all_of(fleet_->cameras(), [&](const auto& camera) { return heard_after(camera, killed); });
  })) << runner->log();
  runner->kill_everything();
  fleet_->plane().start();
}

INSTANTIATE_TEST_SUITE_P(Stores, RunnerOutageOnPostgres, ::testing::Values("Postgres"), store_name);

}  // namespace
}  // namespace weir::test

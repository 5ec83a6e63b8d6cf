// How long a camera is dark after a kill, from the kill to the new owner's STREAMING, and what a restart may not do.
// The bounds are generous here; the benchmark measures the distribution.
#include "fault_proxy.hpp"
#include "fleet.hpp"
#include "stall.hpp"
#include "where.hpp"

#include "weir/base/clock.hpp"

#include <gtest/gtest.h>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace weir::test {
namespace {

class RunnerTakeover : public FleetTest {
 protected:
  void start(int cameras, std::vector<std::string> runner_flags = {}) {
    stalled_before_ = StallMonitor::get().total();
    runner_flags.insert(runner_flags.end(), {"--lease-retry-interval-s", "60"});  // news alone must bring the takeover
    fleet_ = std::make_unique<RunnerFleet>(FleetOptions{.cameras = cameras,
                                                        .camera = {{"model", {{"detector", "none"}}}},
                                                        .runner_flags = std::move(runner_flags),
                                                        .postgres = postgres()});
  }
  static int kills_of(int most) { return postgres() ? 1 : most; }
  // Each camera's time from the kill to its STREAMING under a later version.
  std::vector<double> dark(const std::function<void()>& kill, Duration limit) {
    auto before = fleet_->versions();
    WallTime killed = wall_now();
    kill();
    std::map<std::string, double> dark;
    EXPECT_TRUE(eventually(limit, [&] {
      fleet_->history().read(fleet_->plane());
      for (const std::string& camera : fleet_->cameras())
        if (auto back = fleet_->history().streaming_above(camera, before.at(camera)))
          dark[camera] = seconds(*back - killed);
      between_looks();
      return dark.size() == fleet_->cameras().size();
    })) << fleet_->report();
    std::vector<double> times;
    for (const auto& [camera, time] : dark) times.push_back(time);
    std::ranges::sort(times);
    return times;
  }
  // `id` is up and ready to take over.
  void stand_by(const std::string& id) {
    Runner& other = fleet_->add(id);
    ASSERT_TRUE(eventually(10s, [&] { return other.has_worker_up(); })) << fleet_->report();
  }
  void expect_below(const char* what, const std::vector<std::vector<double>>& kills, double limit) {
    std::vector<double> all;
    for (const auto& times : kills) all.insert(all.end(), times.begin(), times.end());
    ASSERT_FALSE(all.empty());
    std::ranges::sort(all);
    std::printf("%s: %zu cameras, median %.2f s, P95 %.2f s, most %.2f s\n", what, all.size(), all[all.size() / 2],
                all[all.size() * 95 / 100], all.back());
    EXPECT_TRUE(within(all.back(), limit, stalled_before_));
  }

  Duration stalled_before_{};
};

TEST_P(RunnerTakeover, KilledWorker_StreamsAgainWithinThreeSeconds) {
  start(4);
  Runner& runner = fleet_->add("r1");
  std::vector<std::vector<double>> kills;
  for (int i = 0; i < kills_of(3); ++i) {
    ASSERT_TRUE(fleet_->all_stream(20s)) << fleet_->report();
    kills.push_back(dark([&] { signal_all({runner.worker_of("cam-1")}, SIGKILL); }, 20s));
  }
  expect_below("killed worker", kills, 3);
  fleet_->history().expect_one_voice();
}

TEST_P(RunnerTakeover, KilledManager_LeavesItsLastWill_AndTheOtherStreamsWithinThreeSeconds) {
  start(4);
  std::vector<std::vector<double>> kills;
  fleet_->add("r0");
  for (int i = 0; i < kills_of(3); ++i) {
    ASSERT_TRUE(fleet_->all_stream(20s, {fmt::format("r{}", i)})) << fleet_->report();
    ASSERT_NO_FATAL_FAILURE(stand_by(fmt::format("r{}", i + 1)));
    Runner& runner = fleet_->runner(fmt::format("r{}", i));
    kills.push_back(dark([&] { signal_all({runner.manager()}, SIGKILL); }, 20s));
    EXPECT_NE(runner.wait(10s), 0) << "whoever supervises it must hear of it";
    EXPECT_TRUE(runner.workers().empty());
  }
  expect_below("killed manager", kills, 3);
  fleet_->history().expect_one_voice();
}

TEST_P(RunnerTakeover, WholeRunnerKilledAtOnce_TheOtherStreamsWithinTenSeconds) {
  start(4);
  std::vector<std::vector<double>> kills;
  fleet_->add("r0");
  for (int i = 0; i < kills_of(2); ++i) {
    ASSERT_TRUE(fleet_->all_stream(20s, {fmt::format("r{}", i)})) << fleet_->report();
    ASSERT_NO_FATAL_FAILURE(stand_by(fmt::format("r{}", i + 1)));
    Runner& runner = fleet_->runner(fmt::format("r{}", i));
    kills.push_back(dark([&] { runner.kill_everything(); }, 20s));
  }
  expect_below("killed runner", kills, 10);
  fleet_->history().expect_one_voice();
}

INSTANTIATE_TEST_SUITE_P(Stores, RunnerTakeover, ::testing::Values("Sqlite", "Postgres"), store_name);

class RunnerTakeoverOnSqlite : public RunnerTakeover {};

TEST_P(RunnerTakeoverOnSqlite, CameraWhoseThreadCrashedTwice_GetsAWorkerOfItsOwn_AndTakesNobodyWithIt) {
  start(3);
  Runner& runner = fleet_->add("r1");
  auto crash = [&] { EXPECT_TRUE(crash_thread(runner.worker_of("cam-2"), "cam-2")); };
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(fleet_->all_stream(20s)) << fleet_->report();
    ASSERT_EQ(dark(crash, 20s).size(), 3u);
  }
  EXPECT_TRUE(eventually(10s, [&] {
    int others = runner.worker_of("cam-1");
    return runner.camera("cam-2")["alone"] == true && others == runner.worker_of("cam-3") &&
           others != runner.worker_of("cam-2");
  })) << fleet_->report();
  EXPECT_EQ(fleet_->plane().get("/v1/cameras/cam-2").field("crashes"), "2");
  EXPECT_EQ(fleet_->plane().get("/v1/cameras/cam-1").field("crashes"), "0");
  EXPECT_TRUE(runner.logged("\"event\":\"camera.alone\"")) << runner.log();

  ASSERT_TRUE(fleet_->all_stream(20s)) << fleet_->report();
  auto before = fleet_->versions();
  crash();
  EXPECT_TRUE(eventually(20s, [&] {
    fleet_->history().read(fleet_->plane());
    return fleet_->history().streaming_above("cam-2", before["cam-2"]).has_value();
  })) << fleet_->report();
  for (const char* camera : {"cam-1", "cam-3"}) EXPECT_EQ(fleet_->version_of(camera), before[camera]) << camera;
  fleet_->history().expect_one_voice();
}

// Another installation answers at the first address: it knows neither the runner nor its will.
TEST_P(RunnerTakeoverOnSqlite, AStrangerAmongTheAddresses_DoesNotKeepTheLastWillFromBeingHeard) {
  start(1);
  TempDir elsewhere;
  WeirProcess stranger(elsewhere.path(), "sqlite:" + elsewhere.path() + "/weir.db");
  Runner& runner = fleet_->add("r1", {"--lease-ttl-s", "30"}, stranger.url() + "," + fleet_->plane().url());
  ASSERT_TRUE(fleet_->all_stream(20s)) << fleet_->report();
  signal_all({runner.manager()}, SIGKILL);
  EXPECT_TRUE(eventually(10s, [&] { return fleet_->owner_of("cam-1").empty(); })) << fleet_->report();
  EXPECT_EQ(runner.wait(10s), 1);
}

// ---- the same machine again ----

TEST_P(RunnerTakeoverOnSqlite, KilledRunnerStartedAgainInItsFolder_StreamsAtOnce_NotAfterATtl) {
  start(4, {"--lease-ttl-s", "20", "--lease-renew-interval-s", "2"});
  Runner& runner = fleet_->add("r1");
  std::vector<std::vector<double>> kills;
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(fleet_->all_stream(20s)) << fleet_->report();
    kills.push_back(dark(
        [&] {
          runner.kill_everything();
          runner.start();
        },
        30s));
  }
  expect_below("killed runner started again", kills, 6);
  fleet_->history().expect_one_voice();
}

TEST_P(RunnerTakeoverOnSqlite, KilledRunnerStartedAgainDuringAnOutage_StreamsWhenItEnds_NotAfterATtl) {
  start(2, {"--lease-ttl-s", "40", "--lease-renew-interval-s", "2"});
  Runner& runner = fleet_->add("r1");
  ASSERT_TRUE(fleet_->all_stream(20s)) << fleet_->report();
  fleet_->plane().kill_hard();
  runner.kill_everything();
  runner.start();
  ASSERT_TRUE(eventually(10s, [&] { return runner.logged("runner.will_failed"); }));
  fleet_->plane().start();
  EXPECT_TRUE(fleet_->all_stream(20s)) << fleet_->report();
  EXPECT_TRUE(runner.logged("\"event\":\"runner.will\""));
}

// Processes whose parent died become children of this test, so that it hears how they ended.
class Orphans {
 public:
  Orphans() { ::prctl(PR_SET_CHILD_SUBREAPER, 1); }
  ~Orphans() { ::prctl(PR_SET_CHILD_SUBREAPER, 0); }
  Orphans(const Orphans&) = delete;
  // The exit code; -1 where the process did not end, or not by itself.
  static int exit_code(int pid) {
    int status = -1;
    eventually(10s, [&] { return ::waitpid(pid, &status, WNOHANG) == pid; });
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
};

TEST_P(RunnerTakeoverOnSqlite, KilledParent_ItsManagerAndWorkersEnd_AndAStartInItsFolderStreamsAtOnce) {
  start(2, {"--lease-ttl-s", "20", "--lease-renew-interval-s", "2"});
  Runner& runner = fleet_->add("r1");
  ASSERT_TRUE(fleet_->all_stream(20s)) << fleet_->report();
  Orphans orphans;
  std::vector<int> workers = runner.workers();
  int manager = runner.manager();
  ASSERT_GT(manager, 0);
  ASSERT_FALSE(workers.empty());
  auto times = dark(
      [&] {
        signal_all({runner.parent()}, SIGKILL);
        EXPECT_EQ(runner.wait(5s), 128 + SIGKILL);
        runner.start();
      },
      30s);
  expect_below("killed parent", {times}, 6);
  EXPECT_EQ(orphans.exit_code(manager), 70);
  for (int worker : workers) EXPECT_EQ(orphans.exit_code(worker), 70) << "a worker";
  EXPECT_TRUE(runner.logged("\"event\":\"runner.parent_gone\"")) << runner.log();
  fleet_->history().expect_one_voice();
}

TEST_P(RunnerTakeoverOnSqlite, KilledManagerWhileTheControlPlaneIsSilent_TheParentAsksForATtl_AndEndsWithAnError) {
  constexpr double kTtl = 3, kLastAnswer = 1;  // what it asked for last, it waits for
  start(1, {"--lease-ttl-s", "3", "--lease-renew-interval-s", "1"});
  FaultProxy proxy(fleet_->plane().url());
  Runner& runner = fleet_->add("r1", {}, proxy.url());
  ASSERT_TRUE(fleet_->all_stream(20s)) << fleet_->report();
  proxy.black_hole();
  Instant killed = boot_now();
  signal_all({runner.manager()}, SIGKILL);
  int code = runner.wait(20s);
  double took = seconds(boot_now() - killed);
  EXPECT_TRUE(code > 0 && code < 128) << code;
  EXPECT_GE(took, kTtl);
  EXPECT_TRUE(within(took, kTtl + kLastAnswer + 2, stalled_before_));
  EXPECT_TRUE(runner.logged("\"event\":\"runner.will_failed\"")) << runner.log();
  EXPECT_TRUE(std::ranges::all_of(runner.processes(), ended)) << runner.log();
}

TEST_P(RunnerTakeoverOnSqlite, CopiedStateFolder_SpeaksForNobodyElse) {
  start(2);
  Runner& runner = fleet_->add("r1");
  ASSERT_TRUE(fleet_->all_stream(20s)) << fleet_->report();
  auto before = fleet_->versions();
  std::filesystem::copy(runner.folder(), fleet_->folder().path() + "/copy", std::filesystem::copy_options::recursive);
  auto copy = fleet_->make("r1", "copy");
  EXPECT_TRUE(eventually(10s, [&] { return copy->get("/readyz").status == 200; }));
  let_last(4s);
  EXPECT_EQ(fleet_->versions(), before) << "the living runner lost its cameras to a copy of its folder";
  EXPECT_EQ(copy->told()["owned"], 0);
  EXPECT_TRUE(fleet_->all_stream(5s));
  EXPECT_EQ(copy->log().find("runner.will_found"), std::string::npos);
}

TEST_P(RunnerTakeoverOnSqlite, SecondRunnerInTheSameFolder_OrWithTheSameSpool_IsRefused) {
  start(1);
  Runner& runner = fleet_->add("r1");
  auto refusal = [&](const std::string& flags) {
    std::string said = fleet_->folder().path() + "/said";
    int code = std::system(fmt::format("timeout 20 '{}' runner {} --control-plane-url {} --auth-secret-file {}/auth.secret "
                                       "--prom-manager-port 0 >{} 2>&1",
                                       WEIR_BINARY, flags, fleet_->plane().url(), fleet_->folder().path(), said)
                               .c_str());
    EXPECT_NE(code, 0);
    EXPECT_NE(WEXITSTATUS(code), 124) << "it runs";
    std::ostringstream why;
    why << std::ifstream(said).rdbuf();
    return why.str();
  };
  std::string folder = refusal("--state-dir " + runner.folder());
  EXPECT_NE(folder.find("is locked: a runner, or a worker of one, still runs there"), std::string::npos) << folder;
  std::string spool = refusal(fmt::format("--state-dir {}/other --spool-dir {}/spool --runner-id other",
                                          fleet_->folder().path(), runner.folder()));
  EXPECT_NE(spool.find("another runner spools there"), std::string::npos) << spool;
  EXPECT_TRUE(fleet_->all_stream(20s)) << fleet_->report();
}

INSTANTIATE_TEST_SUITE_P(Stores, RunnerTakeoverOnSqlite, ::testing::Values("Sqlite"), store_name);

}  // namespace
}  // namespace weir::test

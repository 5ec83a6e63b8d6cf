// Cameras come and go: those that stay do not notice, those that come stream soon.
#include "fleet.hpp"
#include "stall.hpp"
#include "where.hpp"

#include "weir/base/clock.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <utility>

namespace weir::test {
namespace {

namespace fs = std::filesystem;

constexpr double kInterval = 0.1;
const std::string kSmall = "width=384,height=288,fps=10,keyframe_s=1,seconds=10";

class RunnerReconfigure : public FleetTest {
 protected:
  // `known` of the simulator's `all` cameras are registered; the rest comes later.
  void start(int all, int known, boost::json::object camera, std::vector<std::string> flags = {}) {
    boost::json::array list;
    for (int n = 1; n <= all; ++n) list.push_back({{"name", fmt::format("cam-{}", n)}, {"profile", kSmall}});
    flags.insert(flags.end(), {"--lease-ttl-s", "3", "--lease-renew-interval-s", "1"});
    fleet_ = std::make_unique<RunnerFleet>(
        FleetOptions{.cameras = known,
                     .camera = std::move(camera),
                     .runner_flags = std::move(flags),
                     .postgres = postgres(),
                     .recorders = {{{"name", "recorder-1"}, {"cameras", std::move(list)}}},
                     .runner_program = program_});
    fleet_->add("r1");
    ASSERT_TRUE(fleet_->all_stream(25s)) << fleet_->report();
  }
  // Registers these cameras; the longest time until one of them streamed.
  double add(int from, int to, const boost::json::object& more = {}) {
    WallTime added = wall_now();
    stalled_before_ = StallMonitor::get().total();
    std::vector<std::string> names;
    for (int n = from; n <= to; ++n) {
      names.push_back(fmt::format("cam-{}", n));
      auto before = fleet_->versions();
      since_[names.back()] = before.contains(names.back()) ? before[names.back()] : 0;
      fleet_->register_camera(names.back(), more);
    }
    double longest = 0;
    EXPECT_TRUE(soon(20s, [&] {
      fleet_->history().read(fleet_->plane());
      longest = 0;
      return std::ranges::all_of(names, [&](const std::string& name) {
        auto at = fleet_->history().streaming_above(name, since_[name]);
        if (at) longest = std::max(longest, seconds(*at - added));
        return at.has_value();
      });
    })) << fleet_->report();
    return longest;
  }
  void remove(int from, int to) {
    for (int n = from; n <= to; ++n) {
      std::string name = fmt::format("cam-{}", n);
      Reply gone =
          fleet_->plane().call(net::Method::del, "/v1/cameras/" + name, nullptr, fleet_->plane().token("admin"));
      EXPECT_LT(gone.status, 300) << gone.text;
    }
    for (int n = from; n <= to; ++n)
      EXPECT_TRUE(soon(5s, [&] { return fleet_->camsim().about(fmt::format("cam-{}", n)).at("sessions") == 0; })) << n;
  }
  std::map<std::string, int> dials() {
    std::map<std::string, int> out;
    boost::json::value all = fleet_->camsim().dials();
    for (const auto& dial : all.at("dials").as_array()) ++out[std::string(dial.at("camera").as_string())];
    return out;
  }
  bool settled() {
    return soon(20s, [&] {
      boost::json::object state = fleet_->runner("r1").state();
      return state.contains("workers") && state["workers"].as_array().size() <= 2;
    });
  }
  // Two cameras of which every picture is looked at, and something is seen in every one.
  void start_seen(int all, std::vector<std::string> flags = {}) {
    start(all, 2, {{"max_fps", 10}, {"decode", "full"}, {"motion_gating", {{"enabled", false}}}, {"min_score", 0.05}},
          std::move(flags));
    see_more(15);
    began_ = wall_now();
    stalled_when_seen_ = StallMonitor::get().total();
  }
  // Meanwhile the runner is asked what its workers did not look at, all the time: a replaced worker answers no more.
  bool soon(Duration limit, const std::function<bool()>& condition) {
    return eventually(limit, [&] {
      boost::json::object state = fleet_->runner("r1").state();
      WallTime now = wall_now();
      if (const auto* cameras = state.if_contains("cameras"))
        for (const auto& each : cameras->as_array()) {
          const auto& camera = each.as_object();
          if (!camera.contains("dropped") || !camera.contains("pid")) continue;
          std::string name(camera.at("camera_uuid").as_string());
          int worker = camera.at("pid").to_number<int>();
          auto count = camera.at("dropped").to_number<double>();
          auto& [heard, before] = counted_.try_emplace({name, worker}, now, count).first->second;
          if (count > before) dropped_.push_back({name, heard, now, count - before});
          heard = now, before = count;
        }
      return condition();
    });
  }
  // What a runner knows of its workers is a moment old.
  double dropped_between(const std::string& camera, WallTime from, WallTime to) {
    double pictures = 0;
    for (const Dropped& each : dropped_)
      if (each.camera == camera && each.to >= from && each.from <= to + 2s) pictures += each.pictures;
    return pictures;
  }
  // Pictures that a camera has sent and its worker has not decoded: a few from before it played, and one that is missed
  // later stays missing. What is on its way is not counted if one looks for a while.
  int missed(const std::string& camera) {
    double decoded = fleet_->runner("r1").number(camera, "decoded");
    return static_cast<int>(fleet_->camsim().about(camera).at("frames_sent").to_number<double>() - decoded);
  }
  void see_more(size_t pictures) {
    std::map<std::string, size_t> before;
    for (const char* camera : {"cam-1", "cam-2"}) before[camera] = fleet_->history().captures(camera).size();
    ASSERT_TRUE(soon(20s, [&] {
      fleet_->history().read(fleet_->plane());
      return std::ranges::all_of(before, [&](const auto& each) {
        return fleet_->history().captures(each.first).size() >= each.second + pictures;
      });
    })) << fleet_->report();
  }
  // Since they were seen first. Where the machine is too slow the newest picture wins, as it should: a gap counts if it
  // is longer than the pictures that were not looked at.
  void expect_no_gap() {
    see_more(10);
    fleet_->history().expect_one_voice();
    for (const char* camera : {"cam-1", "cam-2"}) {
      std::vector<WallTime> captures = fleet_->history().captures(camera);
      double longest = 0;
      for (size_t i = 1; i < captures.size(); ++i) {
        if (captures[i] <= began_) continue;
        double gap = seconds(captures[i] - captures[i - 1]);
        longest = std::max(longest, gap);
        if (gap <= kInterval + 0.2) continue;
        double dropped = dropped_between(camera, captures[i - 1], captures[i]);
        std::printf("%s: a gap of %.0f ms; %.0f pictures were not looked at\n", camera, gap * 1e3, dropped);
        EXPECT_TRUE(within(gap, kInterval * (1 + dropped) + 0.2, stalled_when_seen_)) << camera;
      }
      std::printf("%s: longest gap %.0f ms\n", camera, longest * 1e3);
    }
  }

  // A third camera brings another worker; what these must wait for it counts from then on.
  void expect_handed_over(const std::vector<std::string>& cameras) {
    auto before = fleet_->versions();
    WallTime asked = wall_now();
    Duration stalled_before = StallMonitor::get().total();
    EXPECT_TRUE(within(add(3, 3), 5, stalled_before));
    EXPECT_TRUE(settled()) << fleet_->report();
    EXPECT_TRUE(fleet_->runner("r1").logged("rollout.done")) << fleet_->report();
    EXPECT_TRUE(fleet_->all_stream(10s)) << fleet_->report();
    for (const std::string& camera : cameras) {
      std::optional<WallTime> again;
      ASSERT_TRUE(eventually(10s, [&] {
        fleet_->history().read(fleet_->plane());
        return (again = fleet_->history().streaming_above(camera, before[camera])).has_value();
      })) << camera << " did not move";
      std::printf("%s: streams at the new worker after %.2f s\n", camera.c_str(), seconds(*again - asked));
      EXPECT_TRUE(within(seconds(*again - asked), 5, stalled_before)) << camera;
    }
    fleet_->history().expect_one_voice();
  }

  std::string program_ = WEIR_BINARY;
  std::map<std::string, std::int64_t> since_;
  WallTime began_{};
  struct Dropped {
    std::string camera;
    WallTime from, to;
    double pictures;
  };
  std::vector<Dropped> dropped_;
  std::map<std::pair<std::string, int>, std::pair<WallTime, double>> counted_;  // by camera and worker
  Duration stalled_when_seen_{};
  Duration stalled_before_{};  // `add`
};

TEST_P(RunnerReconfigure, Live_CamerasComeAndGo_AndTheOthersMissNoPictureAndAreNeitherDialledNorRenamed) {
  start(14, 3, {{"model", {{"detector", "none"}}}, {"decode", "full"}, {"motion_gating", {{"enabled", false}}}});
  auto versions = fleet_->versions();
  std::map<std::string, int> missed_before{{"cam-1", 1000}, {"cam-2", 1000}, {"cam-3", 1000}};
  for (Instant until = boot_now() + 1500ms; boot_now() < until;)
    for (auto& [camera, least] : missed_before) least = std::min(least, missed(camera));
  double one = add(4, 4);
  EXPECT_TRUE(within(one, 2, stalled_before_)) << "the feed did not wake it, only the poll";
  double ten = add(5, 14);
  EXPECT_TRUE(within(ten, 5, stalled_before_));
  std::printf("live: one camera streams after %.2f s, the last of ten after %.2f s\n", one, ten);
  remove(4, 4);
  remove(5, 14);
  auto now = fleet_->versions();
  auto dialled = dials();
  for (const char* camera : {"cam-1", "cam-2", "cam-3"}) {
    EXPECT_EQ(dialled[camera], 1) << camera;
    EXPECT_EQ(now[camera], versions[camera]) << camera;
    EXPECT_LT(missed_before[camera], 5) << camera;
    int missed_now = 0;
    EXPECT_TRUE(eventually(5s, [&] { return (missed_now = missed(camera)) <= missed_before[camera]; }))
        << camera << " missed " << missed_now - missed_before[camera];
  }
}

TEST_P(RunnerReconfigure, BlueGreen_CamerasThatStay_HaveNoGapOverAFrameAnd200ms) {
  start_seen(12, {"--rollout", "bluegreen"});
  for (int last : {3, 12}) {
    double time = add(3, last, {{"model", {{"detector", "none"}}}});
    std::printf("blue/green: the last of %d new cameras streams after %.2f s\n", last - 2, time);
    EXPECT_TRUE(within(time, 5, stalled_before_)) << fleet_->report();
    EXPECT_TRUE(settled()) << fleet_->report();
    remove(3, last);
  }
  EXPECT_TRUE(fleet_->runner("r1").logged("rollout.done"));
  expect_no_gap();
}

TEST_P(RunnerReconfigure, BlueGreen_CameraWithOneSession_IsHandedOver_WithoutASecondConnection) {
  start(3, 2, {{"model", {{"detector", "none"}}}, {"max_sessions", 1}}, {"--rollout", "bluegreen"});
  for (const char* camera : {"cam-1", "cam-2"})
    fleet_->camsim().fault(camera, {{"kind", "max_sessions"}, {"sessions", 1}});
  expect_handed_over({"cam-1", "cam-2"});
  boost::json::value all = fleet_->camsim().dials();
  for (const auto& dial : all.at("dials").as_array())
    EXPECT_NE(dial.at("outcome"), "453") << "a second session was asked for";
}

TEST_P(RunnerReconfigure, BlueGreen_CameraThatTurnsOutToAllowOneSession_Survives) {
  start(3, 2, {{"model", {{"detector", "none"}}}}, {"--rollout", "bluegreen"});
  fleet_->camsim().fault("cam-1", {{"kind", "max_sessions"}, {"sessions", 1}});
  expect_handed_over({"cam-1"});
  EXPECT_TRUE(fleet_->runner("r1").logged("camera.few_sessions")) << fleet_->report();
}

INSTANTIATE_TEST_SUITE_P(Stores, RunnerReconfigure, ::testing::Values("Sqlite", "Postgres"), store_name);

class RunnerReconfigureOnSqlite : public RunnerReconfigure {};

TEST_P(RunnerReconfigureOnSqlite, AnotherDetectorForOneCamera_ComesWithANewWorker_AndTheOthersHaveNoGap) {
  start_seen(3);
  Runner& runner = fleet_->runner("r1");
  add(3, 3, {{"model", {{"detector", "none"}}}, {"max_fps", 2}});
  int old = runner.worker_of("cam-1");
  EXPECT_EQ(runner.worker_of("cam-3"), old);
  WallTime changed = wall_now();
  Duration stalled_before = StallMonitor::get().total();
  Reply reply = fleet_->plane().call(net::Method::patch, "/v1/cameras/cam-3", {{"model", {{"detector", "tflite"}}}},
                                     fleet_->plane().token("admin"));
  ASSERT_EQ(reply.status, 200) << reply.text;
  EXPECT_TRUE(soon(10s, [&] {
    fleet_->history().read(fleet_->plane());
    return fleet_->history().count("detections", "cam-3") > 0;
  })) << fleet_->report();
  double until_seen = seconds(wall_now() - changed);
  std::printf("another detector: it saw something after %.2f s\n", until_seen);
  EXPECT_TRUE(within(until_seen, 5, stalled_before));
  EXPECT_TRUE(soon(10s, [&] { return ended(old); })) << "a worker keeps its detectors";
  expect_no_gap();
}

TEST_P(RunnerReconfigureOnSqlite, AnotherWorkerProgramInstalled_ReplacesTheWorkers_WithoutAGap_UnlessItDoesNotStart) {
  TempDir installed;
  for (const char* file : {WEIR_BINARY, WEIR_WORKER}) fs::copy(file, installed.path());
  program_ = installed.path() + "/weir";
  std::string worker = installed.path() + "/weir-worker";
  start_seen(2);
  Runner& runner = fleet_->runner("r1");
  int old = runner.worker_of("cam-1");
  auto versions = fleet_->versions();
  std::ofstream(worker + ".new") << "#!/bin/sh\nexit 10\n";
  fs::permissions(worker + ".new", fs::perms::owner_all);
  fs::rename(worker + ".new", worker);
  EXPECT_TRUE(soon(20s, [&] { return runner.logged("\"event\":\"rollout.given_up\""); })) << fleet_->report();
  EXPECT_EQ(runner.worker_of("cam-1"), old);
  EXPECT_EQ(fleet_->versions(), versions) << "nothing was moved";
  see_more(10);

  fs::copy(WEIR_WORKER, worker + ".new");
  fs::rename(worker + ".new", worker);
  EXPECT_TRUE(soon(40s, [&] { return runner.logged("\"event\":\"rollout.done\""); })) << fleet_->report();
  EXPECT_TRUE(ended(old));
  EXPECT_TRUE(soon(10s, [&] {
    // Of one that runs a file which was replaced the link says so.
    std::vector<int> all = runner.workers();
    return all.size() == 2 && std::ranges::all_of(all, [&](int pid) {
             std::error_code gone;
             return fs::read_symlink(fmt::format("/proc/{}/exe", pid), gone) == worker;
           });
  })) << fleet_->report();
  expect_no_gap();
}

INSTANTIATE_TEST_SUITE_P(Stores, RunnerReconfigureOnSqlite, ::testing::Values("Sqlite"), store_name);

}  // namespace
}  // namespace weir::test

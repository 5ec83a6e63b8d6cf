// What a runner tells the outside world: heartbeats, summaries, metrics of its own and of its workers.
#include "prometheus.hpp"
#include "stall.hpp"

#include "weir/base/clock.hpp"
#include "weir/base/json.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <set>
#include <utility>

namespace weir::test {
namespace {

class RunnerObserve : public FleetTest {
 protected:
  void SetUp() override {
    FleetTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    fleet_ = std::make_unique<RunnerFleet>(FleetOptions{.camera = {{"max_fps", 2}}, .postgres = postgres()});
    fleet_->add("r1");
    ASSERT_TRUE(fleet_->all_stream(20s)) << fleet_->report();
  }
  Runner& runner() { return fleet_->runner("r1"); }
  // From now on the camera's password is wrong.
  void break_camera() { fleet_->camsim().fault("cam-2", {{"kind", "unauthorized"}}); }
};

const char* const kRunnerMetrics[] = {
    "streams_desired_total", "active_leases_total", "streams_pending_total",     "runner_streams_owned",
    "runner_shards",         "drain_in_progress",   "process_cpu_seconds_total", "process_resident_memory_bytes"};
const char* const kWorkerMetrics[] = {"stream_up",
                                      "last_frame_age_seconds",
                                      "stream_fps",
                                      "stream_errors_total",
                                      "pipeline_fps",
                                      "inference_latency_seconds_bucket",
                                      "e2e_latency_seconds_bucket"};

// Every line of the text format: a comment, or name{labels} value.
void expect_text_format(const std::string& text) {
  static const std::regex sample(
      R"(^[a-zA-Z_:][a-zA-Z0-9_:]*(\{([a-zA-Z_][a-zA-Z0-9_]*="([^"\\]|\\.)*",?)*\})? [-+0-9.eEINnafy]+$)");
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    EXPECT_TRUE(line.empty() || line[0] == '#' || std::regex_match(line, sample)) << line;
}
bool has_sample(const std::string& text, const std::string& name) {
  return ("\n" + text).find("\n" + name + "{") != std::string::npos ||
         ("\n" + text).find("\n" + name + " ") != std::string::npos;
}

// The names under which Prometheus keeps what the page shows.
std::set<std::string> families(const Reply& page) {
  static const std::regex type(R"(# TYPE (\S+) (\S+))");
  EXPECT_EQ(page.status, 200) << page.text;
  std::set<std::string> names;
  std::istringstream lines(page.text);
  std::smatch match;
  for (std::string line; std::getline(lines, line);)
    if (std::regex_match(line, match, type)) names.insert(match[1].str() + (match[2] == "histogram" ? "_bucket" : ""));
  EXPECT_GT(names.size(), 5u) << page.text;
  return names;
}

TEST_P(RunnerObserve, HeartbeatsEverySecond_SummariesEveryFive) {
  constexpr Duration kWatched = 12s;
  WallTime began = wall_now();
  Duration stalled_before = StallMonitor::get().total();
  std::map<std::string, std::vector<WallTime>> said{{"heartbeat", {}}};
  for (const std::string& camera : fleet_->cameras()) said[camera];
  EXPECT_TRUE(eventually(kWatched + 20s, [&] {
    between_looks();
    fleet_->history().read(fleet_->plane());
    for (auto& [what, times] : said) times.clear();
    for (const Accepted& event : fleet_->history().events()) {
      if (event.ts < began) continue;
      if (event.kind == "runner.heartbeat") said["heartbeat"].push_back(event.ts);
      if (event.kind == "stream.status" && event.summary) said[event.camera].push_back(event.ts);
    }
    return std::ranges::all_of(
        said, [&](const auto& each) { return !each.second.empty() && each.second.back() > began + kWatched; });
  })) << fleet_->report();
  for (const auto& [what, times] : said) {
    bool heartbeat = what == "heartbeat";
    WallTime last = began;
    Duration longest{};
    for (WallTime time : times) longest = std::max<Duration>(longest, time - std::exchange(last, time));
    EXPECT_TRUE(within(seconds(longest), heartbeat ? 1.5 : 5.6, stalled_before)) << what;
    EXPECT_LE(std::ranges::count_if(times, [&](WallTime time) { return time <= began + kWatched; }), heartbeat ? 13 : 3)
        << what << " too often";
  }
  const std::vector<WallTime>& beats = said["heartbeat"];
  ASSERT_FALSE(beats.empty());
  EXPECT_TRUE(within(seconds(beats.back() - beats[0]), 1.1 * static_cast<double>(beats.size() - 1), stalled_before))
      << "too seldom";
}

TEST_P(RunnerObserve, ARealPrometheus_FindsAndScrapesEverything) {
  if (!Prometheus::needs().empty()) GTEST_SKIP() << Prometheus::needs();
  Prometheus prometheus({runner().url()}, {fleet_->plane().url()});
  break_camera();
  Reply found;
  EXPECT_TRUE(eventually(10s,
                         [&] {
                           found = runner().get("/sd/prometheus");
                           return found.body.is_array() && found.body.get_array().size() == 3;
                         }))
      << "the runner, its worker and the idle one: " << found.text;
  std::set<std::string> wanted = families(get_from(fleet_->plane().url(), "/metrics"));
  for (const auto& target : found.body.is_array() ? found.body.as_array() : boost::json::array())
    wanted.merge(families(runner().get(std::string(target.at("labels").at("__metrics_path__").as_string()))));
  wanted.insert("owner_changes_total");
  wanted.insert(std::begin(kRunnerMetrics), std::end(kRunnerMetrics));
  wanted.insert(std::begin(kWorkerMetrics), std::end(kWorkerMetrics));
  EXPECT_TRUE(eventually(20s, [&] {
    boost::json::value known = prometheus.ask("label/__name__/values");
    if (known.is_array())
      for (const auto& name : known.as_array()) wanted.erase(std::string(name.as_string()));
    return wanted.empty();
  })) << "not known to it: " << fmt::format("{}", fmt::join(wanted, " "));
  boost::json::array up;
  EXPECT_TRUE(eventually(10s, [&] {
    up = prometheus.query("up");
    auto is_up = [](const auto& each) { return each.at("value").at(1) == "1"; };
    return up.size() == 5 && std::ranges::all_of(up, is_up);
  })) << "the runner, its two workers, the control plane and Prometheus itself: " << boost::json::serialize(up);
  for (const auto& each : up) {
    const auto& labels = each.at("metric").as_object();
    std::string job(labels.at("job").as_string());
    EXPECT_EQ(labels.contains("runner_id"), job == "weir-runner" || job == "weir-worker") << labels;
    EXPECT_EQ(labels.contains("shard_id"), job == "weir-worker") << labels;
  }
}

INSTANTIATE_TEST_SUITE_P(Stores, RunnerObserve, ::testing::Values("Sqlite", "Postgres"), store_name);

class RunnerObserveOnSqlite : public RunnerObserve {};

TEST_P(RunnerObserveOnSqlite, MetricsOfRunnerAndWorkers_AreAllThere_InTheTextFormat_AndNameABrokenCamera) {
  Reply own;
  EXPECT_TRUE(eventually(5s, [&] {
    own = runner().get("/metrics");
    return own.text.find("runner_streams_owned{runner_id=\"r1\"} 2") != std::string::npos;
  })) << own.text;
  expect_text_format(own.text);
  for (const char* name : kRunnerMetrics) EXPECT_TRUE(has_sample(own.text, name)) << name << "\n" << own.text;

  ASSERT_TRUE(eventually(10s, [&] { return runner().camera("cam-1").contains("last_detection"); })) << fleet_->report();
  std::string shard(runner().camera("cam-1")["shard_id"].as_string());
  break_camera();
  Reply worker;
  EXPECT_TRUE(eventually(5s, [&] {
    worker = runner().get(fmt::format("/workers/{}/metrics", shard));
    return worker.text.find(R"(stream_errors_total{camera_uuid="cam-2",code="RTSP_AUTH_FAILED"} )") !=
               std::string::npos &&
           worker.text.find("stream_up{camera_uuid=\"cam-2\"} 0") != std::string::npos;
  })) << worker.text;
  EXPECT_NE(worker.text.find("stream_up{camera_uuid=\"cam-1\"} 1"), std::string::npos) << "the other streams";
  EXPECT_EQ(worker.text.find("stream_errors_total{camera_uuid=\"cam-1\""), std::string::npos);
  ASSERT_EQ(worker.status, 200) << worker.text;
  expect_text_format(worker.text);
  for (const char* name : kWorkerMetrics) EXPECT_TRUE(has_sample(worker.text, name)) << name;
  EXPECT_EQ(runner().get("/workers/shard-77/metrics").status, 404);
  EXPECT_EQ(runner().get("/healthz").status, 200);
  EXPECT_EQ(runner().get("/readyz").status, 200);

  Reply found = runner().get("/sd/prometheus");
  ASSERT_EQ(found.status, 200);
  ASSERT_TRUE(found.body.is_array()) << found.text;
  for (const std::string& path : {std::string("/metrics"), fmt::format("/workers/{}/metrics", shard)})
    EXPECT_TRUE(std::ranges::any_of(
        found.body.as_array(),
        [&](const auto& target) { return target.at("labels").at("__metrics_path__").as_string() == path; }))
        << path << " in " << found.text;
}

TEST_P(RunnerObserveOnSqlite, WhileANewWorkerStandsBy_TheOldOneIsSpokenOf_AndEachPageIsNamedOnce) {
  int old = -1, fresh = -1;
  std::string shard(runner().camera("cam-1")["shard_id"].as_string());
  std::string page = fmt::format("/workers/{}/metrics", shard);
  auto speaks = [&] { return static_cast<int>(runner().number("cam-1", "pid")); };
  auto expect_one_that_streams = [&](const char* when) {
    Reply found = runner().get("/sd/prometheus");
    ASSERT_TRUE(found.body.is_array()) << when << found.text;
    auto names_it = [&](const auto& each) { return each.at("labels").at("__metrics_path__").as_string() == page; };
    EXPECT_EQ(std::ranges::count_if(found.body.as_array(), names_it), 1) << when << found.text;
    EXPECT_NE(runner().get(page).text.find("stream_up{camera_uuid=\"cam-1\"} 1"), std::string::npos) << when;
    EXPECT_TRUE(runner().streams("cam-1")) << when << fleet_->report();
    EXPECT_TRUE(eventually(5s, [&] { return runner().told()["delivering"] == 2; })) << when << fleet_->report();
  };
  // A new worker is ready in a moment, so one that took over before it was stopped is followed by another.
  for (const char* detector : {"none", "hog", "none", "hog", "none"}) {
    old = runner().worker_of("cam-1");
    Reply changed = fleet_->plane().call(net::Method::patch, "/v1/cameras/cam-2",
                                         {{"model", {{"detector", detector}}}}, fleet_->plane().token("admin"));
    ASSERT_EQ(changed.status, 200) << changed.text;
    ASSERT_TRUE(eventually(10s, [&] {
      boost::json::object state = runner().told();
      for (const auto& each : state["workers"].as_array())
        if (each.at("shard_id").as_string() == shard && each.at("pid") != old && each.at("cameras") != 0)
          fresh = each.at("pid").to_number<int>();
      return fresh > 0;
    })) << fleet_->report();
    signal_all({fresh}, SIGSTOP);
    if (speaks() == old) break;
    signal_all({std::exchange(fresh, -1)}, SIGCONT);
    ASSERT_TRUE(eventually(20s, [&] { return ended(old); })) << fleet_->report();
    ASSERT_TRUE(fleet_->all_stream(20s)) << fleet_->report();
  }
  if (fresh < 0) std::printf("INCONCLUSIVE: each new worker took over before it could be stopped\n");
  ASSERT_EQ(speaks(), old);
  expect_one_that_streams("while it stands by: ");
  signal_all({fresh}, SIGCONT);
  ASSERT_TRUE(eventually(20s, [&] { return speaks() == fresh && ended(old); })) << fleet_->report();
  ASSERT_TRUE(fleet_->all_stream(10s)) << fleet_->report();
  expect_one_that_streams("afterwards: ");
}

INSTANTIATE_TEST_SUITE_P(Stores, RunnerObserveOnSqlite, ::testing::Values("Sqlite"), store_name);

}  // namespace
}  // namespace weir::test

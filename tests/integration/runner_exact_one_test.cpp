// One publisher for each camera, whatever happens to the runners and to the way between them and their control plane:
// accepted versions never fall, capture times accepted under two versions never overlap, and afterwards every camera
// streams.
#include "fault_proxy.hpp"
#include "fleet.hpp"
#include "stall.hpp"

#include "weir/base/clock.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <thread>

namespace weir::test {
namespace {

constexpr Duration kTtl = 3s;
constexpr Duration kTakeover = 3500ms;  // from a lease's end to its next holder's STREAMING: 2.5 s, and a busy machine

class RunnerExactOne : public FleetTest {
 protected:
  void SetUp() override {
    FleetTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    FleetOptions options{.cameras = 3, .camera = {{"max_fps", 3}}, .postgres = postgres()};
    options.runner_flags.insert(options.runner_flags.end(), {"--status-summary-interval-s", "0.5"});
    options.plane_flags = plane_flags();
    fleet_ = std::make_unique<RunnerFleet>(std::move(options));
  }
  virtual std::vector<std::string> plane_flags() const { return {}; }

  // The cameras are at r1, which asks through the proxy; r2 stands by.
  void start_two(bool both_through_proxy = false) {
    proxy_ = std::make_unique<FaultProxy>(fleet_->plane().url());
    fleet_->add("r1", {}, proxy_->url());
    ASSERT_TRUE(fleet_->all_stream(20s)) << fleet_->report();
    fleet_->add("r2", {}, both_through_proxy ? proxy_->url() : std::string());
    ASSERT_TRUE(hears("r1", 5));
    before_ = fleet_->versions();
  }
  // Asked where the fault begins: r2 is heard to stream every camera within a TTL and the time of a takeover.
  void expect_taken_over_in_time() {
    WallTime began = wall_now();
    History& history = fleet_->history();
    bool heard = eventually(kTtl + kTakeover, [&] {
      history.read(fleet_->plane());
      return std::ranges::all_of(fleet_->cameras(), [&](const std::string& camera) {
        return history.streaming_above(camera, before_.at(camera)).has_value();
      });
    });
    ASSERT_TRUE(heard) << fleet_->report();
    Duration longest{};
    for (const std::string& camera : fleet_->cameras())
      longest = std::max<Duration>(longest, *history.streaming_above(camera, before_.at(camera)) - began);
    std::printf("exact one: taken over within %.2f s\n", seconds(longest));
    ASSERT_TRUE(fleet_->all_stream(2s, {"r2"})) << fleet_->report();
  }
  // Detections of each camera have come from this runner.
  bool hears(const std::string& runner, size_t events) {
    return eventually(15s, [&] {
      History& history = fleet_->history();
      history.read(fleet_->plane());
      return std::ranges::all_of(fleet_->cameras(), [&](const std::string& camera) {
        return std::ranges::count_if(history.events(), [&](const Accepted& event) {
                 return event.kind == "detections" && event.camera == camera && event.runner == runner;
               }) >= static_cast<long>(events);
      });
    });
  }
  void expect_one_voice_at_the_end() {
    EXPECT_TRUE(fleet_->all_stream(20s)) << fleet_->report();
    fleet_->history().read(fleet_->plane());
    fleet_->history().expect_one_voice();
    if (HasFailure()) std::printf("%s\n", fleet_->report().c_str());
  }
  bool has_let_go(const std::string& runner) {
    return eventually(10s, [&] {
      boost::json::object state = fleet_->runner(runner).state();
      return state.contains("owned") && state["owned"] == 0;
    });
  }
  std::vector<int> manager_and_workers(const std::string& runner) {
    std::vector<int> all = fleet_->runner(runner).workers();
    all.push_back(fleet_->runner(runner).manager());
    return all;
  }
  Runner& r1() { return fleet_->runner("r1"); }

  std::unique_ptr<FaultProxy> proxy_;
  std::map<std::string, std::int64_t> before_;
};

TEST_P(RunnerExactOne, RenewPathAloneCut_EventsEndByTheDeadline_AndTheOtherTakesOver) {
  ASSERT_NO_FATAL_FAILURE(start_two());
  WallTime cut = wall_now();
  proxy_->set({.cut_path = "/v1/leases"});
  ASSERT_NO_FATAL_FAILURE(expect_taken_over_in_time());
  ASSERT_TRUE(hears("r2", 3));
  EXPECT_TRUE(eventually(10s, [&] {
    fleet_->history().read(fleet_->plane());
    return std::ranges::any_of(fleet_->history().events(), [&](const Accepted& event) {
      return event.runner == "r1" && event.kind == "runner.heartbeat" && event.stored > cut + kTtl;
    });
  })) << "the way of its events was not open";
  for (const Accepted& event : fleet_->history().events()) {
    if (event.runner != "r1") continue;
    bool by_the_plane = event.event_id.starts_with("weir-");  // which says so when a lease has run out
    if (event.version > 0 && !by_the_plane) {
      EXPECT_LT(event.stored, cut + kTtl) << event.kind << " of " << event.camera << " after its deadline";
    }
  }
  proxy_->pass();
  EXPECT_TRUE(has_let_go("r1")) << fleet_->report();
  expect_one_voice_at_the_end();
}

// Three runners with a camera each, and a healthy one with room for all.
TEST_P(RunnerExactOne, ManagerWorkersAndBothStoppedFor30s_WakeUp_AndSpeakForNobodyElse) {
  for (const char* id : {"r1", "r2", "r3"}) fleet_->add(id, {"--capacity-streams", "1"});
  ASSERT_TRUE(fleet_->all_stream(25s)) << fleet_->report();
  std::map<std::string, std::string> camera_of;
  for (const std::string& camera : fleet_->cameras()) camera_of[fleet_->owner_of(camera)] = camera;
  fleet_->add("r4");
  std::vector<int> stopped = fleet_->runner("r2").workers();
  std::ranges::copy(manager_and_workers("r3"), std::back_inserter(stopped));
  stopped.push_back(r1().manager());
  signal_all(stopped, SIGSTOP);
  let_last(30s);
  EXPECT_EQ(fleet_->owner_of(camera_of["r1"]), "r4");
  EXPECT_EQ(fleet_->owner_of(camera_of["r2"]), "r2") << "its manager renewed";
  EXPECT_TRUE(fleet_->runner("r2").streams(camera_of["r2"])) << "its manager replaced them\n" << fleet_->report();
  EXPECT_EQ(fleet_->owner_of(camera_of["r3"]), "r4");
  fleet_->history().read(fleet_->plane());
  for (const char* id : {"r1", "r3"})
    EXPECT_TRUE(std::ranges::any_of(fleet_->history().events(), [&](const Accepted& event) {
      return event.kind == "detections" && event.camera == camera_of[id] && event.runner == "r4";
    })) << "nobody speaks in the place of " << id;
  WallTime woken = wall_now();
  signal_all(stopped, SIGCONT);
  EXPECT_TRUE(has_let_go("r1")) << fleet_->report();
  EXPECT_TRUE(has_let_go("r3")) << fleet_->report();
  EXPECT_TRUE(eventually(15s, [&] {
    fleet_->history().read(fleet_->plane());
    return std::ranges::any_of(fleet_->history().events(), [&](const Accepted& event) {
      return event.kind == "detections" && event.runner == "r2" && event.captured > woken;
    });
  })) << fleet_->report();
  expect_one_voice_at_the_end();
}

// How long the next test lasts; longer where it is asked to.
Duration jitter_time() {
  const char* asked = std::getenv("WEIR_JITTER_S");
  return asked != nullptr ? from_seconds(std::stod(asked)) : 2 * kTtl + 2s;
}

// Both runners' calls, and all cores are busy.
TEST_P(RunnerExactOne, EveryCallLateByHalfASecond_CostsNoCamera) {
  ASSERT_NO_FATAL_FAILURE(start_two(true));
  proxy_->set({.delay = 250ms, .jitter = 250ms});
  std::vector<std::jthread> busy;
  for (unsigned i = 0; i < std::thread::hardware_concurrency(); ++i)
    busy.emplace_back([](const std::stop_token& enough) {
      while (!enough.stop_requested()) continue;
    });
  let_last(jitter_time());
  EXPECT_TRUE(eventually(2s,
                         [&] {
                           return std::ranges::all_of(
                               fleet_->cameras(), [&](const auto& id) { return r1().number(id, "lease_valid_s") > 0; });
                         }))
      << "late answers are no use\n"
      << fleet_->report();
  busy.clear();
  EXPECT_EQ(fleet_->versions(), before_) << "taken over, or started again, without need";
  expect_one_voice_at_the_end();
}

// The first runner keeps its cameras while it lives, loses them while it is frozen, and hears of that when it goes
// on: the owner still has its runner_id, but another boot.
TEST_P(RunnerExactOne, TwoRunnersWithOneCopiedId_NeverBothSpeak) {
  Runner& first = fleet_->add("r1");
  ASSERT_TRUE(fleet_->all_stream(20s)) << fleet_->report();
  auto twin = fleet_->make("r1", "twin");
  let_last(kTtl + 1s);
  EXPECT_TRUE(fleet_->all_stream(5s)) << "the first one keeps them\n" << fleet_->report();
  EXPECT_EQ(twin->told()["owned"], 0);
  auto before = fleet_->versions();
  std::vector<int> frozen = first.processes();
  auto twin_streams = [&](const std::string& camera) { return twin->streams(camera); };
  signal_all(frozen, SIGSTOP);
  ASSERT_TRUE(eventually(15s, [&] { return std::ranges::all_of(fleet_->cameras(), twin_streams); })) << twin->log();
  ASSERT_TRUE(eventually(10s, [&] {
    fleet_->history().read(fleet_->plane());
    return std::ranges::all_of(fleet_->cameras(), [&](const std::string& camera) {
      return std::ranges::any_of(fleet_->history().events(), [&](const Accepted& event) {
        return event.kind == "detections" && event.camera == camera && event.version > before.at(camera);
      });
    });
  })) << twin->log();
  auto versions = fleet_->versions();
  signal_all(frozen, SIGCONT);
  EXPECT_TRUE(has_let_go("r1")) << fleet_->report();
  EXPECT_TRUE(eventually(5s,
                         [&] {
                           boost::json::object state = first.state();
                           return state.contains("workers") &&
                                  std::ranges::all_of(state["workers"].as_array(),
                                                      [](const auto& each) { return each.at("cameras") == 0; });
                         }))
      << "its workers go on\n"
      << fleet_->report();
  EXPECT_TRUE(std::ranges::all_of(fleet_->cameras(), twin_streams)) << twin->log();
  EXPECT_EQ(fleet_->versions(), versions) << "the first took them back";
  fleet_->history().read(fleet_->plane());
  fleet_->history().expect_one_voice();
}

TEST_P(RunnerExactOne, ControlPlaneKilledAndStartedAgain_NobodyChangesHands) {
  ASSERT_NO_FATAL_FAILURE(start_two());
  fleet_->plane().kill_hard();
  let_last(kTtl + 1s);
  fleet_->plane().start();
  ASSERT_TRUE(fleet_->all_stream(15s, {"r1"})) << fleet_->report();
  EXPECT_EQ(fleet_->versions(), before_);
  expect_one_voice_at_the_end();
}

INSTANTIATE_TEST_SUITE_P(Stores, RunnerExactOne, ::testing::Values("Sqlite", "Postgres"), store_name);

class RunnerExactOneOnSqlite : public RunnerExactOne {};

TEST_P(RunnerExactOneOnSqlite, BlackHoleBetweenARunnerAndItsControlPlane) {
  ASSERT_NO_FATAL_FAILURE(start_two());
  proxy_->black_hole();
  ASSERT_NO_FATAL_FAILURE(expect_taken_over_in_time());
  proxy_->pass();
  EXPECT_TRUE(has_let_go("r1")) << fleet_->report();
  expect_one_voice_at_the_end();
}

TEST_P(RunnerExactOneOnSqlite, AnswersLostWhileQuestionsArrive_AreRecoveredFrom) {
  ASSERT_NO_FATAL_FAILURE(start_two());
  proxy_->set({.lose_down = true});
  let_last(kTtl + 2s);
  proxy_->pass();
  expect_one_voice_at_the_end();
}

TEST_P(RunnerExactOneOnSqlite, AnswerToTheRegistrationLost_TheRunnerJoinsUnderAnotherBoot) {
  FaultProxy proxy(fleet_->plane().url());
  proxy.set({.lose_down = true});
  Runner& runner = fleet_->add("r1", {}, proxy.url());
  ASSERT_TRUE(eventually(10s, [&] { return fleet_->plane().get("/v1/runners/r1").status == 200; })) << "it arrived";
  EXPECT_EQ(runner.get("/readyz").status, 503);
  proxy.pass();
  EXPECT_TRUE(fleet_->all_stream(20s)) << fleet_->report();
  std::string log = runner.log(), boot(runner.told()["boot_id"].as_string());
  size_t started = log.find("\"event\":\"runner.started\"");
  EXPECT_EQ(log.substr(started, log.find('\n', started) - started).find(boot), std::string::npos)
      << "no answer was lost";
}

INSTANTIATE_TEST_SUITE_P(Stores, RunnerExactOneOnSqlite, ::testing::Values("Sqlite"), store_name);

class RunnerTokens : public RunnerExactOne {
 protected:
  std::vector<std::string> plane_flags() const override { return {"--token-ttl-s", "20"}; }
};

TEST_P(RunnerTokens, OfTwentySeconds_AreRenewedWithoutAGapInTheEvents) {
  auto bought = [&] {
    std::string sample = "\nweir_http_requests_total{method=\"POST\",route=\"/v1/auth/token\",status=\"200\"} ";
    std::string text = fleet_->plane().get("/metrics").text;
    size_t at = text.find(sample);
    return at == std::string::npos ? 0 : std::atoi(text.c_str() + at + sample.size());
  };
  Reply key = fleet_->plane().post("/v1/api-keys", {{"role", "runner"}, {"sub", "r1"}, {"name", "test"}});
  ASSERT_EQ(key.status, 201) << key.text;
  auto runner = fleet_->make("r1", "r1", {}, {}, key.field("api_key"));
  auto streams = [&](const std::string& camera) { return runner->streams(camera); };
  ASSERT_TRUE(eventually(20s, [&] { return std::ranges::all_of(fleet_->cameras(), streams); })) << runner->log();
  for (int worker : runner->workers()) {
    std::ifstream file(fmt::format("/proc/{}/environ", worker));
    std::string environment{std::istreambuf_iterator<char>(file), {}};
    EXPECT_NE(environment.find("PATH="), std::string::npos);
    EXPECT_EQ(environment.find(key.field("api_key")), std::string::npos) << "what reads strangers' streams has the key";
  }
  fleet_->add("r2");  // it would take a camera whose lease was not renewed in time
  auto versions = fleet_->versions();
  WallTime began = wall_now();
  Duration stalled_before = StallMonitor::get().total();
  int at_first = bought();
  EXPECT_GE(at_first, 2) << "one for itself, one for its workers";
  let_last(22s);
  EXPECT_GE(bought(), at_first + 4) << "every token that was bought by then has ended";
  EXPECT_TRUE(std::ranges::all_of(fleet_->cameras(), streams)) << runner->log();
  EXPECT_EQ(fleet_->versions(), versions);
  fleet_->history().read(fleet_->plane());
  WallTime read = wall_now();
  fleet_->history().expect_one_voice();
  for (const std::string& camera : fleet_->cameras()) {
    Duration gap{};
    WallTime last = began;
    for (WallTime captured : fleet_->history().captures(camera))
      if (captured > began) gap = std::max<Duration>(gap, captured - std::exchange(last, captured));
    EXPECT_TRUE(within(seconds(gap), 2, stalled_before)) << camera;
    EXPECT_TRUE(within(seconds(read - last), 3, stalled_before)) << camera;
  }
  Duration waited{};
  for (const Accepted& event : fleet_->history().events())
    if (event.kind == "detections" && *event.captured > began)
      waited = std::max<Duration>(waited, event.stored - *event.captured);
  EXPECT_TRUE(within(seconds(waited), 3, stalled_before)) << "an event waited for a token";
}

INSTANTIATE_TEST_SUITE_P(Stores, RunnerTokens, ::testing::Values("Sqlite", "Postgres"), store_name);

}  // namespace
}  // namespace weir::test

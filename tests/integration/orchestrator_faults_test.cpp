// Published streams whose hooks get lost, and whose destinations fail in every way.
#include "fault_proxy.hpp"
#include "forward.hpp"
#include "stream_rig.hpp"
#include "where.hpp"

#include <csignal>
#include <random>
#include <set>

namespace weir::test {
namespace {

class OrchestratorFaults : public StreamRig {};

// The process that this one has started; 0 where there is none.
int only_child_of(int pid) {
  return std::atoi(text_in_file(fmt::format("/proc/{0}/task/{0}/children", pid)).c_str());
}

// Of five hooks one is lost and one is told twice, and each may overtake others.
constexpr const char* kLossyHook = R"sh(#!/bin/sh
draw=$(od -An -N1 -tu1 /dev/urandom | tr -d ' ')
late=$(od -An -N1 -tu1 /dev/urandom | tr -d ' ')
[ "$draw" -ge 51 ] || exit 0
sleep "$(printf '0.%03d' "$late")"
"$WEIR_HOOK" "$@"
[ "$draw" -ge 102 ] || exec "$WEIR_HOOK" "$@"
)sh";

TEST_F(OrchestratorFaults, HooksLostDoubledAndShuffled_EndInMediaMtxsTruth) {
  constexpr int kStreams = 4;
  std::string streams;
  std::vector<std::string> ids;
  for (int i = 0; i < kStreams; ++i) ids.push_back(fmt::format("s{}", i));
  for (const std::string& id : ids) streams += id + ": {mode: passthrough}\n";
  open({.streams = streams, .flags = {"--disconnect-grace-s", "2"}, .hook_script = kLossyHook});
  std::mt19937 random(long_run() ? std::random_device()() : 1);
  std::map<std::string, std::unique_ptr<Program>> publishers;
  int changes = long_run() ? 200 : 24;
  for (int i = 0; i < changes; ++i) {
    const std::string& id = ids[random() % ids.size()];
    if (publishers[id]) publishers[id].reset();
    else publishers[id] = house_->hub().publish(in(id));
    EXPECT_TRUE(publishers[id] ? house_->hub().ready(in(id)) : house_->hub().gone(in(id)));
  }
  if (!publishers[ids[0]]) publishers[ids[0]] = house_->hub().publish(in(ids[0]));
  publishers[ids[1]].reset();
  auto true_now = [&](const std::string& id) {
    std::string state = house_->state(id);
    size_t readers = house_->hub().readers(in(id)).size();
    if (publishers[id]) return state == "running" && readers == 1;
    // One that was there between two looks, and all of whose hooks were lost, is not known at all.
    return (state == "idle" || state.empty()) && readers == 0;
  };
  // The grace, and ten seconds.
  bool ended_true = eventually(12s, [&] { return std::ranges::all_of(ids, true_now); });
  std::string found;
  for (const std::string& id : ids)
    found += fmt::format("{}: {}, publishes {}, readers {}\n", id, house_->state(id), publishers[id] != nullptr,
                         house_->hub().readers(in(id)).size());
  EXPECT_TRUE(ended_true) << found << house_->log();
}

// The lines of the orchestrator's log with this event, of one role of the stream demo.
std::vector<boost::json::object> told(const StreamHouse& house, std::string_view event, std::string_view role) {
  std::vector<boost::json::object> found;
  for (boost::json::object& line : json_lines(house.log())) {
    boost::json::value what = line["event"], of = line["role"];
    if (what == boost::json::value(event) && of == boost::json::value(role)) found.push_back(std::move(line));
  }
  return found;
}

TEST_F(OrchestratorFaults, WhileADestinationRefuses_OutGoesOn_AndRestartsStayWithinTheLimit) {
  std::string dead = fmt::format("rtmp://127.0.0.1:{}/app/key", free_port());
  // The forwarder inherits it from the orchestrator: by itself it would try for ever.
  ::setenv("RETRY_MAX_ATTEMPTS", "1", 1);
  open({.streams = fmt::format("demo: {{mode: passthrough, forward: true, destination: \"{}\"}}\n", dead),
        .flags = {"--restart-max-per-10-min", "2", "--restart-cooldown-seconds", "4"}});
  ::unsetenv("RETRY_MAX_ATTEMPTS");
  auto publisher = house_->hub().publish(in("demo"));
  ASSERT_TRUE(runs("demo")) << report();
  std::string before = sender("demo"), run = house_->run("demo");
  ASSERT_TRUE(eventually(40s, [&] { return child("demo", "forward", "state") == "cooling"; })) << report();
  auto started = told(*house_, "stream.child_started", "forwarder");
  ASSERT_EQ(started.size(), 3u) << "the first one and two restarts" << report();
  std::set<std::string> instances;
  for (const auto& line : started) {
    instances.insert(std::string(line.at("instanceId").as_string()));
    EXPECT_EQ(line.at("runId"), boost::json::value(run));
  }
  EXPECT_EQ(instances.size(), 3u) << "each start is another instance of the same run";
  for (const auto& line : told(*house_, "stream.child_exited", "forwarder")) EXPECT_EQ(line.at("exitCode"), 40);
  EXPECT_TRUE(eventually(20s, [&] { return told(*house_, "stream.child_started", "forwarder").size() > 3; }))
      << "after its rest it gets a fresh window" << report();
  EXPECT_EQ(sender("demo"), before);
  EXPECT_EQ(child("demo", "worker", "restarts"), "0");
  constexpr std::string_view kCounted = "egress_forwarder_restarts_total{stream_id=\"demo\"} ";
  EXPECT_NE(house_->get("/metrics").text.find(kCounted), std::string::npos);
}

TEST_F(OrchestratorFaults, EachDestinationsFault_IsItsOwn_AndOutGoesOn) {
  if (std::string missing = missing_servers(); !missing.empty()) GTEST_SKIP() << missing;
  TempDir folder;
  RtmpServer server(folder);
  auto behind = [&] { return FaultProxy(fmt::format("http://127.0.0.1:{}", server.port())); };
  FaultProxy reset = behind(), hole = behind();
  auto through = [](const FaultProxy& proxy, const char* key) {
    return fmt::format("rtmp://127.0.0.1:{}/live/{}", proxy.port(), key);
  };
  std::map<std::string, std::string> destinations{
      {"good", server.url("live", "good")},
      {"refused", fmt::format("rtmp://127.0.0.1:{}/live/key", free_port())},
      {"denied", server.url("denied", "key")},
      {"reset", through(reset, "reset")},
      {"hole", through(hole, "hole")}};
  std::string streams;
  for (const auto& [id, destination] : destinations)
    streams += fmt::format("{}: {{mode: passthrough, forward: true, destination: \"{}\"}}\n", id, destination);
  open({.streams = streams, .flags = {"--restart-max-per-10-min", "3"}});
  std::vector<std::unique_ptr<Program>> publishers;
  for (const auto& [id, destination] : destinations) publishers.push_back(house_->hub().publish(in(id)));
  std::map<std::string, std::string> senders, runs_before, instances;
  for (const auto& [id, destination] : destinations) {
    ASSERT_TRUE(runs(id, 60s)) << id << report();
    senders[id] = sender(id);
    runs_before[id] = house_->run(id);
  }
  auto forwards = [&](const std::string& id) { return child(id, "forward", "state") == "running"; };
  for (const char* id : {"good", "reset", "hole"}) {
    ASSERT_TRUE(eventually(20s, [&] { return forwards(id); })) << id << report();
    instances[id] = child(id, "forward", "instance_id");
  }
  auto said = [&](const std::string& id, std::string_view kind) {
    std::string log = text_in_file(fmt::format("{}/streams/{}.forward.log", house_->state_dir(), id));
    return log.find(kind) != std::string::npos;
  };
  ASSERT_TRUE(eventually(20s, [&] { return said("reset", "egress.forwarding.started") && said("hole", "egress.forwarding.started"); }))
      << report();
  reset.cut();
  reset.pass();
  hole.set({.deaf = true});
  EXPECT_TRUE(eventually(20s, [&] { return said("reset", "rtmp_reset") || said("reset", "rtmp_closed"); })) << report();
  EXPECT_TRUE(eventually(30s, [&] { return said("hole", "io_timeout"); })) << report();
  EXPECT_TRUE(said("refused", "rtmp_refused")) << report();
  EXPECT_TRUE(eventually(30s, [&] { return child("refused", "forward", "state") == "retrying"; })) << report();
  EXPECT_TRUE(eventually(30s, [&] { return child("denied", "forward", "state") == "given_up"; })) << report();
  EXPECT_NE(child("denied", "forward", "last_exit").find("30"), std::string::npos) << report();
  for (const auto& [id, before] : senders) {
    EXPECT_EQ(sender(id), before) << id << report();
    EXPECT_EQ(house_->run(id), runs_before[id]) << id;
    EXPECT_EQ(child(id, "worker", "restarts"), "0") << id;
  }
  EXPECT_EQ(child("good", "forward", "instance_id"), instances["good"]) << "the others' faults do not touch it";
  EXPECT_EQ(child("good", "forward", "restarts"), "0");

  std::vector<int> keepers = processes_with("good.forward");
  ASSERT_EQ(keepers.size(), 1u);
  int forwarder = only_child_of(keepers[0]);
  ASSERT_GT(forwarder, 0);
  ::kill(forwarder, SIGKILL);
  EXPECT_TRUE(eventually(20s, [&] { return forwards("good") && child("good", "forward", "instance_id") != instances["good"]; }))
      << report();
  EXPECT_EQ(house_->run("good"), runs_before["good"]) << "another instance of the same run";
  EXPECT_EQ(sender("good"), senders["good"]);
}

}  // namespace
}  // namespace weir::test

// Published streams end to end: a real MediaMTX, real publishers, `weir orchestrator` with its keepers and children.
#include "stream_rig.hpp"

#include "weir/base/json.hpp"

#include <csignal>

namespace weir::test {
namespace {

class OrchestratorStreams : public StreamRig {};

TEST_F(OrchestratorStreams, WhatIsPublished_ComesOutAgain_AndNothingIsLeftAfterTheGrace) {
  open();
  auto publisher = house_->hub().publish(in("demo"));
  ASSERT_TRUE(runs("demo")) << report();
  EXPECT_EQ(house_->hub().path(out("demo"))->tracks, house_->hub().path(in("demo"))->tracks);
  // The worker's metrics are read at the orchestrator, where Prometheus finds them.
  constexpr std::string_view kPage = "/streams/demo/worker/metrics";
  EXPECT_TRUE(eventually(10s, [&] { return house_->get("/sd/prometheus").text.find(kPage) != std::string::npos; }))
      << house_->get("/sd/prometheus").text;
  EXPECT_NE(house_->get(std::string(kPage)).text.find("weir_stream_worker_forwarding"), std::string::npos);
  EXPECT_EQ(house_->get("/streams/demo/forwarder/metrics").status, 404) << "nothing is forwarded";
  publisher.reset();
  EXPECT_TRUE(eventually(30s, [&] { return house_->state("demo") == "idle"; })) << report();
  EXPECT_TRUE(house_->hub().gone(out("demo")));
  EXPECT_TRUE(eventually(10s, [&] { return house_->children().empty(); })) << report();
}

TEST_F(OrchestratorStreams, AForward_ReachesItsDestination_AndShowsItsKeyNowhere) {
  constexpr std::string_view kCanary = "canarykey4711";
  open({.streams = "other: {mode: passthrough}\n"});
  std::string destination = house_->hub().rtmp_base() + "/dest/" + std::string(kCanary);
  write_text(house_->folder().path() + "/streams.yaml",
             fmt::format("demo: {{mode: passthrough, forward: true, destination: \"{}\"}}\n", destination));
  house_->kill_orchestrator();
  house_->start();
  auto publisher = house_->hub().publish(in("demo"));
  ASSERT_TRUE(runs("demo")) << report();
  ASSERT_TRUE(house_->hub().ready("dest/" + std::string(kCanary))) << report();
  for (const std::string& said : {house_->log(), house_->child_logs(), json::to_text(house_->stream("demo")),
                                  house_->get("/metrics").text, house_->get("/v1/streams").text})
    EXPECT_EQ(said.find(kCanary), std::string::npos) << said;
  for (int pid : house_->children())
    for (const char* file : {"cmdline", "environ"})
      EXPECT_EQ(text_in_file(fmt::format("/proc/{}/{}", pid, file)).find(kCanary), std::string::npos) << pid << file;

  std::string before = sender("demo");
  ASSERT_EQ(house_->post("/v1/streams/demo/forward", {{"on", false}}).status, 200);
  EXPECT_TRUE(house_->hub().gone("dest/" + std::string(kCanary))) << report();
  EXPECT_EQ(sender("demo"), before) << "the worker is not touched";
  ASSERT_EQ(house_->post("/v1/streams/demo/forward", {{"on", true}}).status, 200);
  EXPECT_TRUE(house_->hub().ready("dest/" + std::string(kCanary))) << report();
}

TEST_F(OrchestratorStreams, AForwardOfWhatRtmpDoesNotCarry_IsEncodedForIt) {
  open({.streams = "other: {mode: passthrough}\n"});
  write_text(house_->folder().path() + "/streams.yaml",
             fmt::format("demo: {{mode: passthrough, forward: true, destination: \"{}/dest/key\"}}\n",
                         house_->hub().rtmp_base()));
  house_->kill_orchestrator();
  house_->start();
  auto publisher = house_->hub().publish(in("demo"), {.clip = "vp8"});
  ASSERT_TRUE(runs("demo")) << report();
  ASSERT_TRUE(house_->hub().ready("dest/key")) << report();
  std::vector<std::string> carried = house_->hub().path("dest/key")->tracks;
  std::ranges::sort(carried);
  EXPECT_EQ(carried, (std::vector<std::string>{"H264", "MPEG-4 Audio"}));
  EXPECT_NE(house_->child_logs().find("vp8 as h264, opus as aac"), std::string::npos) << report();
}

TEST_F(OrchestratorStreams, APublisherThatIsAwayForTwoSeconds_ContinuesItsRun) {
  open();
  auto publisher = house_->hub().publish(in("demo"));
  ASSERT_TRUE(runs("demo")) << report();
  std::string run = house_->run("demo");
  publisher.reset();
  ASSERT_TRUE(house_->hub().gone(in("demo")));
  publisher = house_->hub().publish(in("demo"));
  ASSERT_TRUE(house_->hub().ready(in("demo")));
  ASSERT_TRUE(runs("demo")) << report();
  EXPECT_EQ(house_->run("demo"), run);
  boost::json::object view = house_->stream("demo");
  EXPECT_EQ(view.at("worker").at("restarts").to_number<int>(), 0) << view;
}

TEST_F(OrchestratorStreams, ManyConnectsAndDisconnects_NeverLeaveTwoReaders) {
  open();
  size_t most = 0;
  int loops = std::getenv("WEIR_LONG") != nullptr ? 100 : 12;
  for (int i = 0; i < loops; ++i) {
    auto publisher = house_->hub().publish(in("demo"));
    ASSERT_TRUE(house_->hub().ready(in("demo")));
    most = std::max(most, house_->hub().readers(in("demo")).size());
    publisher.reset();
    ASSERT_TRUE(house_->hub().gone(in("demo")));
  }
  auto publisher = house_->hub().publish(in("demo"));
  ASSERT_TRUE(runs("demo", 40s)) << report();
  EXPECT_TRUE(eventually(10s, [&] { return house_->hub().readers(in("demo")).size() == 1; }));
  EXPECT_LE(most, 1u);
}

TEST_F(OrchestratorStreams, WithoutHooks_StreamsAreFoundAndEnded) {
  open({.streams = kPassthrough, .hooks = false});
  auto publisher = house_->hub().publish(in("demo"));
  ASSERT_TRUE(runs("demo")) << report();
  EXPECT_NE(house_->log().find("\"missed\":true"), std::string::npos) << "a missed hook is logged as missed";
  publisher.reset();
  EXPECT_TRUE(eventually(30s, [&] { return house_->state("demo") == "idle"; })) << report();
}

// Reads `out` to the end of this object and keeps the time of every picture, so that a gap can be seen.
class Watcher {
 public:
  Watcher(const TempDir& folder, const std::string& url)
      : program_(fmt::format("{}/watch-{}", folder.path(), url.size()),
                 {"ffmpeg", "-nostdin", "-loglevel", "error", "-rtsp_transport", "tcp", "-i", url, "-an", "-c", "copy",
                  "-flush_packets", "1", "-f", "framecrc", "-"}) {}
  // The decoding times so far, in the stream's own units.
  std::vector<std::int64_t> times() const {
    std::vector<std::int64_t> all;
    std::istringstream lines(program_.log());
    for (std::string line; std::getline(lines, line);) {
      long long dts = 0;
      if (std::sscanf(line.c_str(), "0, %lld,", &dts) == 1) all.push_back(dts);
    }
    return all;
  }

 private:
  Program program_;
};

TEST_F(OrchestratorStreams, AnOrchestratorThatIsKilled_InterruptsNobody) {
  constexpr int kStreams = 10;
  std::string streams;
  std::vector<std::string> ids;
  for (int i = 0; i < kStreams; ++i) ids.push_back(fmt::format("s{}", i));
  for (const std::string& id : ids) streams += id + ": {mode: passthrough}\n";
  open({.streams = streams});
  std::vector<std::unique_ptr<Program>> publishers;
  for (const std::string& id : ids) publishers.push_back(house_->hub().publish(in(id)));
  std::map<std::string, std::string> senders, runs_before;
  for (const std::string& id : ids) {
    ASSERT_TRUE(runs(id, 60s)) << id << report();
    senders[id] = sender(id);
    runs_before[id] = house_->run(id);
  }
  Watcher watcher(house_->folder(), house_->hub().base() + "/" + out("s0"));
  ASSERT_TRUE(eventually(20s, [&] { return watcher.times().size() > 10; }));
  size_t children = house_->children().size();
  for (Duration away : {1s, 20s}) {
    house_->kill_orchestrator();
    EXPECT_EQ(house_->children().size(), children) << "they live on";
    let_last(away);
    house_->start();
    for (const std::string& id : ids) {
      EXPECT_TRUE(eventually(5s, [&] { return house_->state(id) == "running"; })) << id << report();
      EXPECT_EQ(house_->run(id), runs_before[id]);
    }
  }
  // Past the end of the lease that the dead orchestrator left behind: what was adopted is extended.
  let_last(10s);
  for (const std::string& id : ids) EXPECT_EQ(sender(id), senders[id]) << id << report();
  EXPECT_EQ(house_->children().size(), children);
  std::vector<std::int64_t> times = watcher.times();
  std::int64_t step = times[2] - times[1];
  // Where the clip begins anew its sound makes the step a little longer; a picture that is missing doubles it.
  for (size_t i = 2; i < times.size(); ++i) ASSERT_LT(times[i] - times[i - 1], 2 * step) << "picture " << i;
  EXPECT_GT(times.size(), 300u);
}

TEST_F(OrchestratorStreams, SigtermLeavesTheStreams_AndStopEndsThem) {
  open();
  auto publisher = house_->hub().publish(in("demo"));
  ASSERT_TRUE(runs("demo")) << report();
  std::string before = sender("demo");
  EXPECT_EQ(house_->stop_orchestrator(SIGTERM), 0) << report();
  EXPECT_EQ(sender("demo"), before);
  house_->start();
  ASSERT_TRUE(eventually(5s, [&] { return house_->state("demo") == "running"; })) << report();
  ASSERT_EQ(house_->post("/v1/streams/demo/stop", {}).status, 200);
  EXPECT_TRUE(eventually(20s, [&] { return house_->children().empty(); })) << report();
  EXPECT_TRUE(house_->hub().gone(out("demo")));
  ASSERT_EQ(house_->post("/v1/streams/demo/restart", {}).status, 200);
  EXPECT_TRUE(runs("demo")) << report();
}

TEST_F(OrchestratorStreams, WhileADestinationRefuses_OutGoesOn_AndRestartsStayWithinTheLimit) {
  std::string dead = fmt::format("rtmp://127.0.0.1:{}/app/key", free_port());
  open({.streams = fmt::format("demo: {{mode: passthrough, forward: true, destination: \"{}\"}}\n", dead),
        .flags = {"--restart-max-per-10-min", "2"}});
  auto publisher = house_->hub().publish(in("demo"));
  ASSERT_TRUE(runs("demo")) << report();
  std::string before = sender("demo");
  EXPECT_TRUE(eventually(20s, [&] { return house_->child_logs().find("egress.retry") != std::string::npos; }))
      << report();
  EXPECT_EQ(sender("demo"), before);
  EXPECT_EQ(house_->state("demo"), "running");
}

TEST_F(OrchestratorStreams, AnOrchestratorWhoseHostDies_IsSucceededByAnother_AndNeverBothPublish) {
  TempDir plane_folder;
  WeirProcess plane(plane_folder.path(), "sqlite:" + plane_folder.path() + "/weir.db");
  std::string secret = plane_folder.path() + "/auth.secret";
  auto flags = [&](const std::string& id) {
    return std::vector<std::string>{"--control-plane-url", plane.url(), "--auth-secret-file", secret,
                                    "--orchestrator-id", id, "--stream-lease-ttl-s", "6"};
  };
  open({.streams = kPassthrough, .flags = flags("first"), .secret = secret});
  auto publisher = house_->hub().publish(in("demo"));
  ASSERT_TRUE(runs("demo")) << report();
  EXPECT_EQ(plane.get("/v1/streams/demo").field("holder"), "first") << plane.log();

  std::string other = house_->folder().path() + "/p";
  std::vector<std::string> words{WEIR_BINARY, "orchestrator", "--listen", "127.0.0.1:0", "--state-dir", other};
  for (const std::string& word : house_->hub_flags()) words.push_back(word);
  for (const std::string& word : flags("second")) words.push_back(word);
  Program second(other + ".log", words);
  EXPECT_TRUE(eventually(10s, [&] { return second.log().find("lease_blocked") != std::string::npos; })) << second.log();
  std::string before = sender("demo");
  EXPECT_EQ(house_->hub().readers(in("demo")).size(), 1u) << "the second has no worker";

  std::vector<int> host = house_->children();
  house_->kill_orchestrator();
  signal_all(host, SIGKILL);
  EXPECT_TRUE(eventually(20s, [&] {
    std::string now = sender("demo");
    return !now.empty() && now != before && house_->hub().readers(in("demo")).size() == 1;
  })) << second.log();
  EXPECT_TRUE(eventually(10s, [&] { return plane.get("/v1/streams/demo").field("holder") == "second"; })) << plane.log();
  publisher.reset();
  EXPECT_TRUE(eventually(40s, [&] { return house_->hub().path(out("demo")) == std::nullopt || !house_->hub().path(out("demo"))->ready; }))
      << second.log();
  second.signal(SIGTERM);
  EXPECT_EQ(second.wait(20s), 0);
  EXPECT_TRUE(eventually(20s, [&] { return processes_with(other + "/streams").empty(); }));
}

// It calls its hooks by other names, hands the query on as it came, and names other fields in its API.
TEST_F(OrchestratorStreams, AMediaMtxOfTheOldHookNames_IsServedAlike_WithAndWithoutHooks) {
  constexpr auto kOld = MediaMtx::Version::v1_13_1;
  if (std::string why = stream_house_needs(kOld); !why.empty()) GTEST_SKIP() << why;
  for (bool hooks : {true, false}) {
    open({.streams = kPassthrough, .flags = {"--disconnect-grace-s", "1"}, .hooks = hooks, .version = kOld});
    auto publisher = house_->hub().publish(in("demo"));
    ASSERT_TRUE(runs("demo")) << hooks << report();
    EXPECT_EQ(house_->log().find("\"missed\":true") == std::string::npos, hooks) << report();
    publisher.reset();
    EXPECT_TRUE(eventually(20s, [&] { return house_->state("demo") == "idle"; })) << hooks << report();
    EXPECT_TRUE(house_->hub().gone(out("demo")));
  }
}

TEST_F(OrchestratorStreams, BadHooks_AreRefusedWithASentence_AndGoodOnesAnsweredWithACorrelationId) {
  open();
  Reply good = house_->post("/v1/mediamtx/events/ready",
                            {{"path", "live/x/in"}, {"query", "lang=es"}, {"sourceType", "rtmp"}, {"sourceId", "1"}});
  EXPECT_EQ(good.status, 200) << good.text;
  EXPECT_FALSE(good.field("correlation_id").empty()) << good.text;
  for (const boost::json::value& bad : {boost::json::value{{"path", "live/x/out"}}, boost::json::value{{"path", 7}},
                                        boost::json::value(boost::json::array{})}) {
    Reply reply = house_->post("/v1/mediamtx/events/not-ready", bad);
    EXPECT_EQ(reply.status, 400) << reply.text;
  }
  EXPECT_EQ(house_->get("/healthz").status, 200);
}

}  // namespace
}  // namespace weir::test

// Published streams end to end: a real MediaMTX, real publishers, `weir orchestrator` with its keepers and children.
#include "forward.hpp"
#include "stream_rig.hpp"
#include "where.hpp"

#include "weir/base/clock.hpp"
#include "weir/base/json.hpp"

#include <csignal>
#include <set>

namespace weir::test {
namespace {

class OrchestratorStreams : public StreamRig {};

TEST_F(OrchestratorStreams, WhatIsPublished_ComesOutAgain_AndNothingIsLeftAfterTheGrace) {
  open();
  auto publisher = house_->hub().publish(in("demo"));
  ASSERT_TRUE(runs("demo")) << report();
  EXPECT_EQ(house_->hub().path(out("demo"))->tracks, house_->hub().path(in("demo"))->tracks);
  EXPECT_GE(frames_at(house_->hub().base() + "/" + out("demo"), 2)["h264"], 25) << "a player shows it";
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
  constexpr std::string_view kPassword = "canarypassword4712";
  auto publisher = house_->hub().publish(in("demo"), {.query = fmt::format("user=u&pass={}&lang=es", kPassword)});
  ASSERT_TRUE(runs("demo")) << report();
  ASSERT_TRUE(house_->hub().ready("dest/" + std::string(kCanary))) << report();
  constexpr const char* kForwarderPage = "/streams/demo/forwarder/metrics";
  ASSERT_TRUE(eventually(10s, [&] { return house_->get(kForwarderPage).status == 200; }));
  std::vector<std::string> said{house_->log(), house_->child_logs(), json::to_text(house_->stream("demo"))};
  for (const char* page : {"/metrics", "/v1/streams", "/sd/prometheus", "/streams/demo/worker/metrics", kForwarderPage})
    said.push_back(house_->get(page).text);
  std::vector<int> processes = house_->children();
  processes.push_back(house_->orchestrator().pid());
  ASSERT_GE(processes.size(), 5u) << "the orchestrator, two children and their keepers";
  for (int pid : processes)
    for (const char* file : {"cmdline", "environ"}) said.push_back(text_in_file(fmt::format("/proc/{}/{}", pid, file)));
  for (const std::string& text : said)
    for (std::string_view secret : {kCanary, kPassword}) EXPECT_EQ(text.find(secret), std::string::npos) << text;

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
  std::string before = sender("demo");
  publisher.reset();
  ASSERT_TRUE(house_->hub().gone(in("demo")));
  let_last(2s);
  publisher = house_->hub().publish(in("demo"));
  ASSERT_TRUE(house_->hub().ready(in("demo")));
  ASSERT_TRUE(runs("demo")) << report();
  EXPECT_EQ(house_->run("demo"), run);
  EXPECT_EQ(sender("demo"), before) << "readers of the output were not interrupted";
  boost::json::object view = house_->stream("demo");
  EXPECT_EQ(view.at("worker").at("restarts").to_number<int>(), 0) << view;
}

// Who has read a path over time, as MediaMTX logged it: how many there were at once at most, and how many in all.
struct ReadersOverTime {
  ReadersOverTime(const std::string& log, const std::string& path) {
    std::set<std::string> present;
    std::istringstream lines(log);
    for (std::string line; std::getline(lines, line);) {
      size_t at = line.find("[session ");
      if (at == std::string::npos) continue;
      std::string session = line.substr(at, line.find(']', at) - at);
      if (line.find("is reading from path '" + path + "'") != std::string::npos) {
        all += present.insert(session).second;
        most = std::max(most, present.size());
      } else if (line.find("destroyed") != std::string::npos) {
        present.erase(session);
      }
    }
  }
  size_t most = 0, all = 0;
};

TEST_F(OrchestratorStreams, AHundredConnectsAndDisconnects_NeverLeaveTwoReaders_AndStartNoSecondWorker) {
  open();
  constexpr size_t kLoops = 100;
  std::string run;
  for (size_t i = 0; i < kLoops; ++i) {
    auto publisher = house_->hub().publish(in("demo"));
    ASSERT_TRUE(house_->hub().ready(in("demo")));
    ASSERT_LE(house_->hub().readers(in("demo")).size(), 1u);
    // Some stay until somebody reads them, the others leave before.
    ASSERT_TRUE(i % 10 != 0 || eventually(20s, [&] { return !house_->hub().readers(in("demo")).empty(); })) << report();
    if (i == 0) run = house_->run("demo");
    publisher.reset();
    ASSERT_TRUE(house_->hub().gone(in("demo")));
  }
  auto publisher = house_->hub().publish(in("demo"));
  ASSERT_TRUE(runs("demo", 40s)) << report();
  EXPECT_TRUE(eventually(10s, [&] { return house_->hub().readers(in("demo")).size() == 1; }));
  EXPECT_EQ(house_->run("demo"), run) << "none was away for as long as the grace";
  EXPECT_EQ(child("demo", "worker", "restarts"), "0") << report();
  ReadersOverTime readers(house_->hub().log(), in("demo"));
  EXPECT_EQ(readers.most, 1u) << house_->hub().log();
  EXPECT_LE(readers.all, kLoops + 1) << "a publisher is read by one worker once";
  EXPECT_GE(readers.all, kLoops / 10);
}

TEST_F(OrchestratorStreams, WithoutHooks_StreamsAreFoundAndEnded_AndARestartOfMediaMtxIsSurvived) {
  open({.streams = kPassthrough, .hooks = false});
  auto publisher = house_->hub().publish(in("demo"));
  ASSERT_TRUE(runs("demo")) << report();
  EXPECT_NE(house_->log().find("\"missed\":true"), std::string::npos) << "a missed hook is logged as missed";
  std::string run = house_->run("demo");
  house_->hub().stop();
  EXPECT_TRUE(eventually(10s, [&] { return house_->log().find("mediamtx.away") != std::string::npos; })) << report();
  EXPECT_EQ(house_->run("demo"), run) << "nobody knows that the publisher left";
  house_->hub().start();
  publisher = house_->hub().publish(in("demo"));
  EXPECT_TRUE(eventually(10s, [&] { return house_->log().find("mediamtx.back") != std::string::npos; })) << report();
  ASSERT_TRUE(runs("demo", 40s)) << report();
  EXPECT_EQ(house_->run("demo"), run);
  publisher.reset();
  EXPECT_TRUE(eventually(30s, [&] { return house_->state("demo") == "idle"; })) << report();
}

// Reads `out` to the end of this object and keeps what came, so that a gap can be seen.
class Watcher {
 public:
  Watcher(const TempDir& folder, const std::string& id, const std::string& url)
      : program_(fmt::format("{}/watch-{}", folder.path(), id),
                 {"ffmpeg", "-nostdin", "-loglevel", "error", "-rtsp_transport", "tcp", "-i", url, "-an", "-c", "copy",
                  "-flush_packets", "1", "-f", "framecrc", "-"}) {}
  // Of each picture the sum of its bytes.
  std::vector<unsigned> pictures() const {
    std::vector<unsigned> all;
    std::istringstream lines(program_.log());
    for (std::string line; std::getline(lines, line);) {
      unsigned sum = 0;
      // Its times, its duration and its size stand before it. The last line may not be whole.
      bool whole = std::sscanf(line.c_str(), "0, %*d, %*d, %*d, %*d, 0x%8x", &sum) == 1 && !lines.eof();
      if (whole) all.push_back(sum);
    }
    return all;
  }
  bool running() { return program_.running(); }

 private:
  Program program_;
};

// The clip is shown over and over: a picture's number is its place in the clip, and the next has the next number. The
// first second does not count: who joins in the middle of a keyframe gets it without its parameter sets.
void expect_no_gap(const std::vector<unsigned>& pictures) {
  constexpr size_t kClip = 150, kJoined = 30;
  ASSERT_GT(pictures.size(), kJoined + 2 * kClip);
  std::map<unsigned, size_t> numbers;
  for (size_t i = 0; i < kClip; ++i) numbers[pictures[kJoined + i]] = i;
  ASSERT_EQ(numbers.size(), kClip) << "no two pictures of the clip are alike";
  for (size_t i = kJoined + kClip; i < pictures.size(); ++i) {
    auto known = numbers.find(pictures[i]);
    ASSERT_TRUE(known != numbers.end() && known->second == (i - kJoined) % kClip) << "picture " << i;
  }
}

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
  std::vector<std::unique_ptr<Watcher>> watchers;
  for (const std::string& id : ids) {
    ASSERT_TRUE(runs(id, 60s)) << id << report();
    senders[id] = sender(id);
    runs_before[id] = house_->run(id);
    watchers.push_back(std::make_unique<Watcher>(house_->folder(), id, house_->hub().base() + "/" + out(id)));
  }
  for (const auto& each : watchers)
    ASSERT_TRUE(eventually(20s, [&] { return each->pictures().size() > 10; }));
  size_t children = house_->children().size();
  ASSERT_EQ(children, 2u * kStreams) << "a worker and its keeper each";
  for (Duration away : {1s, 20s}) {
    house_->kill_orchestrator();
    EXPECT_EQ(house_->children().size(), children) << "they live on";
    let_last(away);
    Instant begun = boot_now();
    Duration stalled = StallMonitor::get().total();
    house_->start();
    auto right = [&](const std::string& id) {
      return house_->state(id) == "running" && house_->run(id) == runs_before[id];
    };
    EXPECT_TRUE(eventually(30s, [&] { return std::ranges::all_of(ids, right); })) << report();
    EXPECT_TRUE(within(seconds(boot_now() - begun), 5, stalled));
    EXPECT_EQ(house_->children().size(), children) << "nobody was started twice";
  }
  // Past the end of the lease that the dead orchestrator left behind: what was adopted is extended.
  let_last(10s);
  EXPECT_EQ(house_->children().size(), children);
  for (size_t i = 0; i < ids.size(); ++i) {
    SCOPED_TRACE(ids[i]);
    EXPECT_EQ(sender(ids[i]), senders[ids[i]]) << report();
    EXPECT_EQ(house_->hub().readers(in(ids[i])).size(), 1u);
    EXPECT_TRUE(watchers[i]->running());
    expect_no_gap(watchers[i]->pictures());
  }
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

TEST_F(OrchestratorStreams, AnOrchestratorWhoseHostDies_IsSucceededByAnother_AndNeverBothPublish) {
  TempDir plane_folder;
  WeirProcess plane(plane_folder.path(), "sqlite:" + plane_folder.path() + "/weir.db");
  std::string secret = plane_folder.path() + "/auth.secret";
  const int ttl_s = long_run() ? 30 : 6;
  auto flags = [&](const std::string& id) {
    return std::vector<std::string>{"--control-plane-url", plane.url(), "--auth-secret-file", secret,
                                    "--orchestrator-id", id, "--stream-lease-ttl-s", std::to_string(ttl_s)};
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
  ASSERT_EQ(host.size(), 2u);
  Instant killed = boot_now();
  Duration stalled = StallMonitor::get().total();
  house_->kill_orchestrator();
  signal_all(host, SIGKILL);
  EXPECT_TRUE(eventually(60s, [&] {
    std::string now = sender("demo");
    return !now.empty() && now != before && house_->hub().readers(in("demo")).size() == 1;
  })) << second.log();
  // The lease has to run out first.
  EXPECT_TRUE(within(seconds(boot_now() - killed), ttl_s + 5, stalled)) << second.log();
  EXPECT_TRUE(eventually(10s, [&] { return plane.get("/v1/streams/demo").field("holder") == "second"; })) << plane.log();
  publisher.reset();
  EXPECT_TRUE(house_->hub().gone(out("demo"), 40s)) << second.log();
  EXPECT_TRUE(eventually(10s, [&] { return plane.get("/v1/streams/demo").field("holder") == "null"; }))
      << "the lease is released" << plane.log();
  second.signal(SIGTERM);
  EXPECT_EQ(second.wait(20s), 0);
  EXPECT_TRUE(eventually(20s, [&] { return processes_with("--folder=" + other + "/streams").empty(); }));
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

// `weir up --demo`: a stranger's first minute. And no password of a camera anywhere that others can read.
#include "up_testing.hpp"
#include "where.hpp"

#include "weir/base/clock.hpp"

namespace weir::test {
namespace {

TEST_F(WeirUp, Demo_ShowsPeopleBeingDetected_OutlivesKilledWorkersAndManagers_AndStopsCleanly) {
  UpProcess up(folder_, {"--demo", "2"});
  auto sees = [&](const std::string& camera) { return up.out().find(camera + ": saw ") != std::string::npos; };
  ASSERT_TRUE(eventually(60s, [&] { return sees("demo-1") && sees("demo-2"); })) << up.out() << up.err();
  EXPECT_NE(up.out().find("person"), std::string::npos);

  for (const char* killed : {"weir-worker", "--manager"}) {
    std::vector<int> before = up.children_with(killed);
    ASSERT_FALSE(before.empty());
    WallTime then = wall_now();
    signal_all(before, SIGKILL);
    expect_streaming_again(2, then, 5, killed);
    EXPECT_TRUE(eventually(15s, [&] { return heard_since(then, "detections.#").size() == 2; }))
        << killed << up.out() << up.err();
  }

  auto children = up.children();
  up.signal(SIGINT);
  EXPECT_EQ(up.wait(30s), 0) << up.err();
  for (int pid : children) EXPECT_TRUE(ended(pid)) << "left behind: " << text_of(fmt::format("/proc/{}/cmdline", pid));
}

// The README's first command, in a terminal.
TEST_F(WeirUp, DevUp_ShowsATableOfCamerasThatSeePeople_AndLetsThemGoOnCtrlC) {
  Terminal terminal;
  UpProcess up(folder_, {"--demo", "1"}, {.program = WEIR_SOURCE_DIR "/dev", .out = terminal.program(), .err = terminal.program()});
  const std::regex row("demo-1 +STREAMING +[1-9][0-9.]* [^\n]*person [01]\\.[0-9]");
  ASSERT_TRUE(eventually(90s, [&] { return terminal.shows_match(row); })) << terminal.read_all();
  auto children = up.children();
  up.signal(SIGINT);
  EXPECT_EQ(up.wait(30s), 0) << terminal.read_all();
  EXPECT_TRUE(terminal.shows("stopping: cameras are let go; Ctrl-C again ends at once"));
  for (int pid : children) EXPECT_TRUE(ended(pid)) << "left behind: " << text_of(fmt::format("/proc/{}/cmdline", pid));
  // What the next start finds: the camera was given back, not left to run out.
  UpProcess again(folder_, {});
  ASSERT_TRUE(eventually(20s, [&] { return !url().empty() && ready(); })) << again.err();
  EXPECT_NE(ask("events 'lease.released.#' --after 0 --json").find("demo-1"), std::string::npos);
}

TEST_F(WeirUp, KilledHard_LeavesNothingBehind_AndStreamsAtOnceWhenStartedAgain) {
  auto up = std::make_unique<UpProcess>(folder_, std::vector<std::string>{"--demo", "1", "--lease-ttl-s", "30"});
  auto streams = [&](size_t from) { return up->out().find("demo-1: STREAMING", from) != std::string::npos; };
  ASSERT_TRUE(eventually(60s, [&] { return streams(0); })) << up->err();
  auto children = up->children();
  ASSERT_GE(children.size(), 4u) << "runner, manager, worker and cameras";
  up->signal(SIGKILL);
  up->wait(5s);
  for (int pid : children)
    EXPECT_TRUE(eventually(15s, [&] { return ended(pid); })) << text_of(fmt::format("/proc/{}/cmdline", pid));
  size_t shown = up->out().size();
  up = std::make_unique<UpProcess>(folder_, std::vector<std::string>{"--demo", "1", "--lease-ttl-s", "30"});
  EXPECT_TRUE(eventually(15s, [&] { return streams(shown); })) << "after a TTL, or never\n" << up->out() << up->err();
}

TEST_F(WeirUp, StoppedAndStartedAgain_KnowsItsCameras_AndStreamsThemAtOnce) {
  Camsim camsim(folder_, std::vector<std::string>(2, "width=384,height=288,fps=10,keyframe_s=1,seconds=10"));
  std::ofstream(folder_.path() + "/cameras.csv") << "camera_uuid,tenant_id,site_id,rtsp_url,name\ngate,t1,s1,"
                                                 << camsim.url("cam-1") << ",Gate\nyard,t1,s1," << camsim.url("cam-2")
                                                 << ",Yard\n";
  auto streams = [](const UpProcess& up, size_t from) {
    return up.out().find("gate: STREAMING", from) != std::string::npos &&
           up.out().find("yard: STREAMING", from) != std::string::npos;
  };
  std::string cameras, events;
  {
    UpProcess up(folder_, {"--cameras", folder_.path() + "/cameras.csv"});
    ASSERT_TRUE(eventually(30s, [&] { return streams(up, 0); })) << up.out() << up.err();
    cameras = ask("camera list --json");
    events = ask("events 'stream.status.#' --after 0 --json");
    up.signal(SIGINT);
    EXPECT_EQ(up.wait(20s), 0) << up.err();
  }
  EXPECT_NE(cameras.find("Gate"), std::string::npos) << cameras;
  fs::remove(folder_.path() + "/cameras.csv");
  size_t shown = text_of(folder_.path() + "/up.out").size();
  WallTime then = wall_now();
  UpProcess up(folder_, {});
  ASSERT_TRUE(eventually(15s, [&] { return streams(up, shown); })) << up.out() << up.err();
  expect_streaming_again(2, then, 5, "a restart");
  EXPECT_EQ(ask("camera list --json"), cameras);
  EXPECT_TRUE(ask("events 'stream.status.#' --after 0 --json").starts_with(events)) << "what was said before is kept";
}

TEST_F(WeirUp, CameraPassword_StandsNowhereThatOthersCanRead) {
  const std::string canary = "C4n4ryP4ss";
  boost::json::array recorders{{{"name", "locked"}, {"user", "viewer"}, {"password", canary},
                                {"cameras", {{{"name", "cam-1"}, {"profile", "fps=10,seconds=10"}}}}}};
  Camsim camsim(folder_, recorders);
  std::string url = camsim.url("cam-1");
  std::string with = "rtsp://viewer:" + canary + "@" + url.substr(7), wrong = "rtsp://viewer:x" + canary + "@" + url.substr(7);
  std::ofstream(folder_.path() + "/cameras.csv")
      << "camera_uuid,tenant_id,site_id,rtsp_url\ngood,t1,s1," << with << "\nbad,t1,s1," << wrong
      << "\ngone,t1,s1,rtsp://viewer:" << canary << "@127.0.0.1:1/x\n";
  fs::permissions(folder_.path() + "/cameras.csv", fs::perms::owner_read);
  UpProcess up(folder_, {"--cameras", folder_.path() + "/cameras.csv"});
  auto shown = [&](const char* text) { return up.out().find(text) != std::string::npos; };
  ASSERT_TRUE(eventually(60s, [&] { return shown("good: STREAMING") && up.err().find("RTSP_AUTH_FAILED") != std::string::npos; }))
      << up.out() << up.err();
  ASSERT_TRUE(eventually(30s, [&] { return shown("good: saw") && up.err().find("TCP_REFUSED") != std::string::npos; }));

  std::vector<int> processes = up.children();
  processes.push_back(up.pid());
  for (int pid : processes)
    for (const char* file : {"cmdline", "environ"})
      EXPECT_EQ(text_of(fmt::format("/proc/{}/{}", pid, file)).find(canary), std::string::npos) << pid << " " << file;
  EXPECT_EQ(up.out().find(canary), std::string::npos);
  EXPECT_EQ(up.err().find(canary), std::string::npos) << "in the log";
  std::string events = ask("events --after 0 --json");
  EXPECT_NE(events.find("RTSP_AUTH_FAILED"), std::string::npos) << events.substr(0, 2000);
  EXPECT_EQ(events.find(canary), std::string::npos) << "in an event";
  EXPECT_EQ(ask("status").find(canary), std::string::npos);
  // Metrics of the workers, where Prometheus finds them; one of them stands by without a camera.
  std::string log = up.err(), metrics;
  for (size_t at = log.find("\"event\":\"worker.started\""); at != std::string::npos; at = log.find("\"event\":\"worker.started\"", at + 1)) {
    size_t address = log.find("127.0.0.1:", at);
    metrics += get_from("http://" + log.substr(address, log.find('"', address) - address), "/metrics").text;
  }
  EXPECT_NE(metrics.find("stream_up"), std::string::npos);
  EXPECT_EQ(metrics.find(canary), std::string::npos);
}

TEST_F(WeirUp, CameraTest_TellsWhatItFound) {
  Camsim camsim(folder_, std::vector<std::string>{"fps=10,keyframe_s=1,seconds=10"});
  std::string out = folder_.path() + "/diagnosis";
  int code = std::system(fmt::format("'{}' camera test {} --snapshot {}/s.jpg >{} 2>&1", WEIR_BINARY, camsim.url("cam-1"),
                                     folder_.path(), out).c_str());
  EXPECT_EQ(code, 0) << text_of(out);
  for (const char* word : {"h264", "768", "576"}) EXPECT_NE(text_of(out).find(word), std::string::npos) << text_of(out);
  EXPECT_EQ(text_of(folder_.path() + "/s.jpg").substr(0, 3), "\xFF\xD8\xFF");
  camsim.fault("cam-1", {{"kind", "unauthorized"}});
  code = std::system(fmt::format("'{}' camera test {} >{} 2>&1", WEIR_BINARY, camsim.url("cam-1"), out).c_str());
  EXPECT_EQ(WEXITSTATUS(code), 1);
  EXPECT_NE(text_of(out).find("RTSP_AUTH_FAILED"), std::string::npos) << text_of(out);
}

}  // namespace
}  // namespace weir::test

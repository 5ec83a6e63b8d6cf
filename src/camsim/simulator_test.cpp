#include "weir/camsim/simulator.hpp"

#include "testing.hpp"
#include "weir/base/clock.hpp"
#include "weir/base/log.hpp"
#include "weir/camsim/control.hpp"
#include "weir/camsim/timeline.hpp"
#include "weir/net/server.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>

#include <gtest/gtest.h>

namespace weir::camsim {
namespace {

using testing::Talker;
using testing::Viewer;

constexpr const char* kSmall = "scene=moving,width=192,height=96,fps=30,seconds=0.5,keyframe_s=0.2";  // 15 frames

class CamsimSimulator : public ::testing::Test {
 protected:
  // One cache for all tests: each profile is encoded once.
  static void SetUpTestSuite() { cache_ = std::make_unique<test::TempDir>(); }
  static void TearDownTestSuite() { cache_.reset(); }
  void SetUp() override { log::set_level(log::Level::off); }

  void add(const std::string& camera, const std::string& more = "", RecorderSpec recorder = {.name = "r"}) {
    std::string profile = more.empty() ? kSmall : fmt::format("{},{}", kSmall, more);
    recorder.cameras.push_back({.name = camera, .profile = profile});
    auto added = simulator.add_recorder(recorder);
    ASSERT_TRUE(added) << added.error().message;
  }
  json::object camera(std::string_view name) {
    for (const json::value& each : simulator.cameras())
      if (each.at("name").as_string() == name) return each.as_object();
    ADD_FAILURE() << "no camera " << name;
    return {};
  }
  std::string url(std::string_view name) { return std::string(camera(name).at("url").as_string()); }
  void fault(const std::string& name, const CameraFault& fault) {
    auto set = simulator.set_camera_fault(name, fault);
    ASSERT_TRUE(set) << set.error().message;
  }
  // The running numbers of the next frames.
  std::vector<std::int64_t> watch(Viewer& viewer, std::string_view name, int frames) {
    json::object facts = camera(name);
    Timeline time{static_cast<int>(facts.at("fps").as_int64()), static_cast<int>(facts.at("loop_frames").as_int64()),
                  Duration(facts.at("phase_ms").as_int64() * 1000)};
    std::vector<std::int64_t> out;
    while (static_cast<int>(out.size()) < frames) {
      auto seen = viewer.next();
      if (!seen) break;
      if (seen->stamp) out.push_back(capture_time(*seen->stamp, time, wall_now()).running);
    }
    return out;
  }

  // A busy machine can make a viewer drop a frame now and then; a simulator that does, does it every time.
  void expect_every_frame_once(Viewer& viewer, std::string_view name, int frames, int loop);

  static std::unique_ptr<test::TempDir> cache_;
  Simulator simulator{"", cache_->path()};
};
std::unique_ptr<test::TempDir> CamsimSimulator::cache_;

// In the loop, because a slow machine may see a frame more than half a loop late; each step by one shows every frame.
bool every_frame_once(const std::vector<std::int64_t>& running, int loop) {
  for (size_t i = 1; i < running.size(); ++i)
    if ((running[i] - running[i - 1] + 100 * loop) % loop != 1) return false;
  return true;
}

void CamsimSimulator::expect_every_frame_once(Viewer& viewer, std::string_view name, int frames, int loop) {
  for (int attempt = 0; attempt < 3; ++attempt) {
    auto running = watch(viewer, name, frames);
    ASSERT_EQ(static_cast<int>(running.size()), frames);
    if (every_frame_once(running, loop)) return;
  }
  FAIL() << "frames were missing or doubled each time";
}

TEST_F(CamsimSimulator, Stream_ShowsEveryFrameOnce_OverTheLoopsEnd) {
  int n = 0;
  for (const char* more : {"", "codec=h265", "codec=mjpeg", "bframes=2", "audio=true"}) {
    SCOPED_TRACE(more);
    std::string name = fmt::format("cam-{}", ++n);
    add(name, more, {.name = "r-" + name});
    Viewer viewer(url(name));
    expect_every_frame_once(viewer, name, 40, 15);
    // The last one is counted when the server's thread is done with it, which may be after the viewer has it.
    EXPECT_GE(camera(name).at("frames_sent").as_int64(), 39);
  }
}

TEST_F(CamsimSimulator, Credentials_OpenADigestAndTlsRecorder) {
  add("dig", "", {.name = "digest", .user = "admin", .password = Secret("kept-private")});
  add("sec", "", {.name = "secure", .tls = true, .user = "admin", .password = Secret("kept-private")});
  EXPECT_EQ(Talker(url("dig")).rtsp("DESCRIBE"), 401);
  for (const char* name : {"dig", "sec"}) {
    Viewer viewer(url(name), "user-id=admin user-pw=kept-private tls-validation-flags=0");
    EXPECT_EQ(watch(viewer, name, 3).size(), 3u) << name;
  }
  EXPECT_TRUE(url("sec").starts_with("rtsps://"));
  EXPECT_EQ(json::to_text(simulator.cameras()).find("kept-private"), std::string::npos);
}

TEST_F(CamsimSimulator, RefusingFaults_CloseRunningSessionsAndAnswerTheirStatus) {
  add("cam");
  for (auto [kind, status] :
       {std::pair{FaultKind::refuse, 503}, {FaultKind::unauthorized, 401}, {FaultKind::not_found, 404}}) {
    Talker running(url("cam"));
    ASSERT_EQ(running.play(), 200);
    fault("cam", {.kind = kind});
    EXPECT_TRUE(running.ends()) << status;
    Talker fresh(url("cam"));
    EXPECT_EQ(fresh.rtsp("OPTIONS"), 200);
    EXPECT_EQ(fresh.rtsp("DESCRIBE"), status);
    EXPECT_EQ(fresh.answer().find("WWW-Authenticate: Digest") != std::string::npos, status == 401);
    fault("cam", {});
    EXPECT_EQ(Talker(url("cam")).play(), 200);
  }
}

TEST_F(CamsimSimulator, Drop_ClosesOnce_OrAlwaysWithHold) {
  add("cam");
  Talker running(url("cam"));
  ASSERT_EQ(running.play(), 200);
  fault("cam", {.kind = FaultKind::drop});
  EXPECT_TRUE(running.ends());
  EXPECT_EQ(Talker(url("cam")).play(), 200);
  fault("cam", {.kind = FaultKind::drop, .hold = true});
  EXPECT_EQ(Talker(url("cam")).rtsp("OPTIONS"), 0);
}

TEST_F(CamsimSimulator, BlackHole_KeepsConnectionsOpenAndSilent_UntilItEnds) {
  add("cam");
  Talker running(url("cam")), fresh(url("cam"));
  ASSERT_EQ(running.play(), 200);
  fault("cam", {.kind = FaultKind::black_hole});
  running.set_patience(300ms);
  while (running.receive()) continue;  // what was on its way; then nothing, and no end
  fresh.set_patience(300ms);
  EXPECT_EQ(fresh.rtsp("DESCRIBE"), -1);
  fault("cam", {});
  running.set_patience(10s);
  fresh.set_patience(10s);
  EXPECT_TRUE(running.ends());
  EXPECT_TRUE(fresh.ends());
}

TEST_F(CamsimSimulator, Stall_SendsNoPicture_ToRunningAndNewSessions) {
  add("cam");
  Talker running(url("cam")), fresh(url("cam"));
  ASSERT_EQ(running.play(), 200);
  fault("cam", {.kind = FaultKind::stall});
  ASSERT_EQ(fresh.play(), 200);
  for (Talker* each : {&running, &fresh}) {
    each->set_patience(500ms);
    // Sender reports (channel 1) still come; a picture (channel 0) only in what was on its way.
    int quiet = 0;
    for (int reads = 0; reads < 50 && quiet == 0; ++reads) quiet += each->receive() ? 0 : 1;
    EXPECT_EQ(quiet, 1);
  }
  fault("cam", {});
  running.set_patience(10s);
  auto again = running.receive();
  ASSERT_TRUE(again);
  EXPECT_EQ(again->substr(0, 1), "$");
}

TEST_F(CamsimSimulator, Slow_StretchesTheTimeBetweenFrames) {
  add("cam");
  fault("cam", {.kind = FaultKind::slow, .rate = 0.1});  // 3 instead of 30 a second
  Talker running(url("cam"));
  ASSERT_EQ(running.play(), 200);
  Instant begin = boot_now();
  std::int64_t before = camera("cam").at("frames_sent").as_int64(), sent = before;
  while (sent < before + 4 && boot_now() - begin < 30s) {
    running.receive();
    sent = camera("cam").at("frames_sent").as_int64();
  }
  EXPECT_GE(boot_now() - begin, 900ms);
}

TEST_F(CamsimSimulator, Garbage_EndsAfterItsFrames) {
  add("cam");
  Talker running(url("cam"));
  ASSERT_EQ(running.play(), 200);
  fault("cam", {.kind = FaultKind::garbage, .frames = 5});
  auto kind = [&] { return std::string(camera("cam").at("fault").at("kind").as_string()); };
  EXPECT_EQ(kind(), "garbage");
  for (int reads = 0; reads < 200 && kind() == "garbage"; ++reads) ASSERT_TRUE(running.receive());
  EXPECT_EQ(kind(), "none");
}

TEST_F(CamsimSimulator, Resolution_ChangesInsideARunningSession) {
  add("cam");
  Viewer viewer(url("cam"));
  ASSERT_TRUE(viewer.next());
  fault("cam", {.kind = FaultKind::resolution, .width = 320, .height = 192});
  std::optional<testing::Seen> seen;
  for (int frames = 0; frames < 60 && (!seen || seen->width != 320); ++frames) ASSERT_TRUE(seen = viewer.next());
  EXPECT_EQ(seen->width, 320);
  EXPECT_TRUE(seen->stamp);
}

TEST_F(CamsimSimulator, Codec_ClosesSessions_AndNewOnesGetTheOther) {
  add("cam");
  Talker running(url("cam"));
  ASSERT_EQ(running.play(), 200);
  fault("cam", {.kind = FaultKind::codec, .codec = Codec::mjpeg});
  EXPECT_TRUE(running.ends());
  Viewer viewer(url("cam"));
  expect_every_frame_once(viewer, "cam", 5, 15);
  EXPECT_EQ(camera("cam").at("codec").as_string(), "mjpeg");
  fault("cam", {});
  EXPECT_EQ(camera("cam").at("codec").as_string(), "h264");
  EXPECT_EQ(Talker(url("cam")).play(), 200);
}

TEST_F(CamsimSimulator, MaxSessions_RefusesTheNewOrEndsTheOld) {
  add("cam");
  fault("cam", {.kind = FaultKind::max_sessions, .sessions = 1});
  Talker first(url("cam")), second(url("cam")), third(url("cam"));
  EXPECT_EQ(first.play(), 200);
  EXPECT_EQ(second.play(), 453);
  fault("cam", {.kind = FaultKind::max_sessions, .sessions = 1, .policy = SessionPolicy::kick_old});
  EXPECT_EQ(third.play(), 200);
  EXPECT_TRUE(first.ends());
  EXPECT_EQ(camera("cam").at("sessions").to_number<int>(), 1);
}

TEST_F(CamsimSimulator, Recorder_RefusesAndComesBackOnItsPort) {
  add("cam");
  std::string where = url("cam");
  Talker running(where);
  ASSERT_EQ(running.play(), 200);
  ASSERT_TRUE(simulator.set_recorder_fault("r", {.kind = RecorderFaultKind::refuse}));
  EXPECT_TRUE(running.ends());
  EXPECT_FALSE(Talker(where).connected());
  ASSERT_TRUE(simulator.set_recorder_fault("r", {}));
  EXPECT_EQ(Talker(where).play(), 200);
  ASSERT_TRUE(simulator.set_recorder_fault("r", {.kind = RecorderFaultKind::reboot, .for_s = 0.05}));
  Instant begin = boot_now();
  while (!Talker(where).connected() && boot_now() - begin < 10s) continue;
  EXPECT_EQ(Talker(where).play(), 200);
}

TEST_F(CamsimSimulator, RecorderBlackHole_TakesConnectionsAndSaysNothing) {
  add("cam");
  ASSERT_TRUE(simulator.set_recorder_fault("r", {.kind = RecorderFaultKind::black_hole}));
  Talker caught(url("cam"));
  EXPECT_TRUE(caught.connected());
  caught.set_patience(300ms);
  EXPECT_EQ(caught.rtsp("OPTIONS"), -1);
  ASSERT_TRUE(simulator.set_recorder_fault("r", {}));
  caught.set_patience(10s);
  EXPECT_TRUE(caught.ends());
  EXPECT_EQ(Talker(url("cam")).play(), 200);
}

TEST_F(CamsimSimulator, Dials_AreCountedWithTheirPeak) {
  add("cam");
  Talker first(url("cam")), second(url("cam"));
  ASSERT_EQ(first.rtsp("OPTIONS"), 200);
  ASSERT_EQ(second.rtsp("OPTIONS"), 200);  // two connects, neither playing
  ASSERT_EQ(first.play(), 200);
  json::object seen = simulator.dials();
  ASSERT_EQ(seen.at("dials").as_array().size(), 2u);
  EXPECT_EQ(seen.at("peak_concurrent_connects").at("r").to_number<int>(), 2);
  EXPECT_EQ(seen.at("concurrent_connects").at("r").to_number<int>(), 1);
  const json::value& dial = seen.at("dials").at(0);
  EXPECT_EQ(dial.at("camera").as_string(), "cam");
  EXPECT_EQ(dial.at("outcome").as_string(), "playing");
  EXPECT_TRUE(dial.at("first").as_bool());
  EXPECT_FALSE(seen.at("dials").at(1).at("first").as_bool());
  simulator.reset_dials();
  EXPECT_TRUE(simulator.dials().at("dials").as_array().empty());
}

TEST_F(CamsimSimulator, Names_AreTakenOnce) {
  add("cam");
  auto again = simulator.add_camera("r", {.name = "cam", .profile = kSmall});
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Errc::conflict);
  EXPECT_EQ(simulator.add_camera("nowhere", {.name = "other", .profile = kSmall}).error().code, Errc::not_found);
  ASSERT_TRUE(simulator.add_camera("r", {.name = "other", .profile = kSmall}));
  EXPECT_EQ(Talker(url("other")).play(), 200);
}

TEST_F(CamsimSimulator, Control_CommandsOverHttp_OnLoopbackOnly) {
  add("cam");
  boost::asio::io_context io{1};
  RealClock clock;
  net::Router router;
  Control control(simulator);
  control.add_routes(router);
  net::HttpServer server(io, clock, router, {});
  ASSERT_TRUE(server.listen("127.0.0.1:0"));
  std::thread thread([&] { io.run(); });
  auto ask = [&](std::string_view method, std::string_view path, std::string_view body,
                 std::string_view host = "localhost") {
    return Talker("http://" + server.address())
        .ask(fmt::format("{} {} HTTP/1.1\r\nHost: {}\r\nContent-Length: {}\r\n\r\n{}", method, path, host, body.size(),
                         body));
  };
  EXPECT_EQ(ask("GET", "/v1/cameras", ""), 200);
  EXPECT_EQ(ask("GET", "/v1/cameras", "", "elsewhere.example"), 403);
  EXPECT_EQ(ask("POST", "/v1/cameras/cam/fault", R"({"kind":"not_found"})"), 200);
  EXPECT_EQ(Talker(url("cam")).rtsp("DESCRIBE"), 404);
  EXPECT_EQ(ask("POST", "/v1/cameras/cam/fault", R"({"kind":"explode"})"), 400);
  EXPECT_EQ(ask("POST", "/v1/cameras/none/fault", R"({"kind":"none"})"), 404);
  EXPECT_EQ(ask("POST", "/v1/recorders/r/fault", R"({"kind":"none"})"), 200);
  EXPECT_EQ(ask("POST", "/v1/cameras", fmt::format(R"({{"recorder":"r","name":"new","profile":"{}"}})", kSmall)), 200);
  EXPECT_EQ(Talker(url("new")).play(), 200);
  EXPECT_EQ(ask("DELETE", "/v1/dials", ""), 200);
  boost::asio::co_spawn(io, server.stop(0s), boost::asio::use_future).get();
  thread.join();
  control.stop();
}

}  // namespace
}  // namespace weir::camsim

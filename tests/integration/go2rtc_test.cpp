// Cameras that are read through a real go2rtc (source_mode=go2rtc).
#include "fleet.hpp"
#include "forward.hpp"
#include "stall.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace weir::test {
namespace {

using boost::json::object;

// A go2rtc with the shipped configuration and ports of its own, which can be killed and started again.
class Go2rtc {
 public:
  explicit Go2rtc(const TempDir& folder, const std::string& streams = "") : folder_(folder.path()) {
    std::string text = text_in_file(WEIR_SOURCE_DIR "/deploy/go2rtc/go2rtc.yaml");
    for (auto [shipped, own] : {std::pair{"127.0.0.1:1984", api_}, {"127.0.0.1:8554", rtsp_}}) {
      size_t at = text.find(shipped);
      EXPECT_NE(at, std::string::npos) << shipped;
      if (at != std::string::npos) text.replace(at, std::string(shipped).size(), fmt::format("127.0.0.1:{}", own));
    }
    write_text(folder_ + "/go2rtc.yml", text + streams);
    start();
  }
  void start() {
    program_ = std::make_unique<Program>(folder_ + "/go2rtc.log",
                                         std::vector<std::string>{part("bin/go2rtc"), "-c", folder_ + "/go2rtc.yml"});
    EXPECT_TRUE(eventually(20s, [&] { return accepts(api_) && accepts(rtsp_); })) << program_->log();
  }
  void kill() { program_.reset(); }
  void signal(int number) const { program_->signal(number); }
  std::vector<std::string> flags() const {
    return {"--source-mode", "go2rtc", "--go2rtc-api", url(), "--go2rtc-rtsp-base", rtsp()};
  }
  std::string url() const { return fmt::format("http://127.0.0.1:{}", api_); }
  std::string rtsp() const { return fmt::format("rtsp://127.0.0.1:{}", rtsp_); }
  // By their names; of a camera's stream, its camera's.
  std::map<std::string, object> streams() const {
    std::map<std::string, object> out;
    Reply reply = get_from(url(), "/api/streams");
    if (reply.body.is_object())
      for (const auto& [name, stream] : reply.body.get_object())
        out[std::string(name).substr(0, name.find('~'))] = stream.as_object();
    return out;
  }
  std::string log() const { return program_->log(); }

 private:
  const std::string folder_;
  const int api_ = free_port(), rtsp_ = free_port();
  std::unique_ptr<Program> program_;
};

class Go2rtcMode : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!fleet_needs().empty()) GTEST_SKIP() << fleet_needs();
    if (part("bin/go2rtc").empty()) GTEST_SKIP() << "go2rtc could not be fetched";
  }
  void start(int cameras, const std::string& streams = "", std::vector<std::string> more = {}) {
    go2rtc_ = std::make_unique<Go2rtc>(folder_, streams);
    std::vector<std::string> flags = go2rtc_->flags();
    flags.insert(flags.end(), more.begin(), more.end());
    fleet_ = std::make_unique<RunnerFleet>(FleetOptions{.cameras = cameras,
                                                        .profile = "width=192,height=144,fps=5,keyframe_s=1,seconds=10",
                                                        .camera = {{"model", {{"detector", "none"}}}},
                                                        .runner_flags = flags});
  }
  // What the simulated recorder saw: {"cam-1": 2} for two dials.
  std::map<std::string, int> dials() {
    std::map<std::string, int> count;
    boost::json::value all = fleet_->camsim().dials();
    for (const auto& dial : all.at("dials").as_array()) ++count[std::string(dial.at("camera").as_string())];
    return count;
  }
  std::string error_of(const std::string& camera) {
    object seen = fleet_->runner("r1").camera(camera);
    const auto* error = seen.if_contains("error");
    return error != nullptr && error->is_object() ? std::string(error->at("code").as_string()) : "";
  }

  TempDir folder_;
  std::unique_ptr<Go2rtc> go2rtc_;
  std::unique_ptr<RunnerFleet> fleet_;
};

TEST_F(Go2rtcMode, ACamera_IsDialledOnce_HoweverManyRead_AndForgottenWithItsLastReader) {
  start(2);
  fleet_->add("r1");
  ASSERT_TRUE(fleet_->all_stream(30s)) << fleet_->report() << go2rtc_->log();
  auto streams = go2rtc_->streams();
  ASSERT_EQ(streams.size(), 2u);
  for (const auto& [name, stream] : streams) EXPECT_EQ(stream.at("producers").as_array().size(), 1u) << name;

  // A second reader, as a recorder or a person's player would be, costs the camera nothing.
  std::string name;
  Reply all = get_from(go2rtc_->url(), "/api/streams");
  for (const auto& [each, stream] : all.body.as_object())
    if (each.starts_with("cam-1~")) name = each;
  std::string shown = folder_.path() + "/shown";
  Program player(shown, {"/usr/bin/ffmpeg", "-nostdin", "-loglevel", "error", "-rtsp_transport", "tcp", "-i",
                         go2rtc_->rtsp() + "/" + name, "-frames:v", "10", "-f", "null", "-"});
  EXPECT_EQ(player.wait(30s), 0) << player.log();
  EXPECT_EQ(dials(), (std::map<std::string, int>{{"cam-1", 1}, {"cam-2", 1}}));

  Reply gone = fleet_->plane().call(net::Method::del, "/v1/cameras/cam-1", {}, fleet_->plane().token("admin"));
  EXPECT_LT(gone.status, 300) << gone.text;
  EXPECT_TRUE(eventually(20s, [&] {
    between_looks();
    auto left = go2rtc_->streams();
    return left.size() == 1 && left.contains("cam-2");
  })) << get_from(go2rtc_->url(), "/api/streams").text;
}

// A recorder that allows one session for each camera, and a change for which a second worker is ready before the first
// ends.
TEST_F(Go2rtcMode, ARollout_NeedsNoSecondSession_AndLeavesNoDarkMoment) {
  start(2, "", {"--rollout", "bluegreen"});
  for (const char* camera : {"cam-1", "cam-2"})
    fleet_->camsim().fault(camera, {{"kind", "max_sessions"}, {"sessions", 1}});
  Runner& runner = fleet_->add("r1");
  ASSERT_TRUE(fleet_->all_stream(30s)) << fleet_->report() << go2rtc_->log();
  int before = runner.worker_of("cam-1");
  Reply changed = fleet_->plane().call(net::Method::patch, "/v1/cameras/cam-1", {{"model", {{"detector", "tflite"}}}},
                                       fleet_->plane().token("admin"));
  ASSERT_EQ(changed.status, 200) << changed.text;
  EXPECT_TRUE(eventually(40s, [&] {
    EXPECT_TRUE(runner.streams("cam-2")) << fleet_->report();
    int now = runner.worker_of("cam-1");
    return now > 0 && now != before && runner.streams("cam-1");
  })) << fleet_->report();
  EXPECT_EQ(dials(), (std::map<std::string, int>{{"cam-1", 1}, {"cam-2", 1}})) << fleet_->report();
}

TEST_F(Go2rtcMode, ARestartOfGo2rtc_BringsEveryCameraBack_WithinTheLimitOfDials_AndWithoutAChangeOfOwner) {
  start(12, "", {"--dial-concurrency", "2"});
  fleet_->add("r1");
  ASSERT_TRUE(fleet_->all_stream(60s)) << fleet_->report() << go2rtc_->log();
  auto versions = fleet_->versions();
  fleet_->camsim().child().call(net::Method::del, "/v1/dials");

  go2rtc_->kill();
  EXPECT_TRUE(eventually(20s, [&] {
    for (const std::string& camera : fleet_->cameras())
      if (fleet_->runner("r1").streams(camera)) return false;
    return true;
  })) << fleet_->report();
  EXPECT_TRUE(dials().empty()) << "without go2rtc nobody dials: " << fleet_->report();
  go2rtc_->start();

  EXPECT_TRUE(fleet_->all_stream(90s)) << fleet_->report() << go2rtc_->log();
  boost::json::value seen = fleet_->camsim().dials();
  auto peak = seen.at("peak_concurrent_connects").at("recorder-1").to_number<int>();
  auto count = seen.at("dials").as_array().size();
  std::printf("dials: %zu of 12 cameras after go2rtc's restart, at most %d at once\n", count, peak);
  EXPECT_LE(peak, 2);
  EXPECT_LE(count, 18u) << seen;
  EXPECT_EQ(fleet_->versions(), versions) << "an owner or its version changed";
}

TEST_F(Go2rtcMode, AGo2rtcThatHangs_MakesItsCamerasFail_AndHoldsUpNoStop) {
  start(2);
  Runner& runner = fleet_->add("r1");
  ASSERT_TRUE(fleet_->all_stream(30s)) << fleet_->report() << go2rtc_->log();
  go2rtc_->signal(SIGSTOP);
  EXPECT_TRUE(eventually(30s, [&] { return error_of("cam-1") == "TCP_REFUSED" && error_of("cam-2") == "TCP_REFUSED"; }))
      << fleet_->report();
  ::kill(runner.parent(), SIGTERM);
  EXPECT_EQ(runner.wait(20s), 0) << fleet_->report();
  go2rtc_->signal(SIGCONT);
  EXPECT_TRUE(fleet_->owner_of("cam-1").empty() && fleet_->owner_of("cam-2").empty()) << "their leases are given back";
}

TEST_F(Go2rtcMode, ACameraThatFails_HasTheCodeOfItsFailure) {
  start(4);
  fleet_->camsim().fault("cam-1", {{"kind", "unauthorized"}});
  fleet_->camsim().fault("cam-2", {{"kind", "not_found"}});
  fleet_->camsim().fault("cam-3", {{"kind", "stall"}});
  fleet_->add("r1");
  EXPECT_TRUE(eventually(40s,
                         [&] {
                           between_looks();
                           return error_of("cam-1") == "RTSP_AUTH_FAILED" && error_of("cam-2") == "RTSP_NOT_FOUND" &&
                                  !error_of("cam-3").empty() && fleet_->runner("r1").streams("cam-4");
                         }))
      << fleet_->report() << go2rtc_->log();
  // go2rtc answers its reader at once; the camera that connects and sends nothing never counts as one that streams.
  EXPECT_EQ(error_of("cam-3"), "STALLED") << fleet_->report();
  EXPECT_FALSE(fleet_->runner("r1").streams("cam-3"));
  EXPECT_EQ(fleet_->runner("r1").log().find("rtsp://"), std::string::npos) << "a camera's URL is in the log";
}

// go2rtc takes a URL whose path is the name of one of its streams for that stream. A camera must not show another one's
// pictures because of that.
TEST_F(Go2rtcMode, AStreamThatIsNamedAsTheCamerasPath_IsNotTakenForTheCamera) {
  start(2, "streams: {cam-2: \"rtsp://127.0.0.1:1/elsewhere\"}\n");  // of which somebody else knows
  ASSERT_TRUE(fleet_->camsim().url("cam-2").ends_with("/cam-2"));
  fleet_->add("r1");
  EXPECT_TRUE(eventually(30s,
                         [&] {
                           between_looks();
                           return error_of("cam-2") == "URL_REFUSED" && fleet_->runner("r1").streams("cam-1");
                         }))
      << fleet_->report() << go2rtc_->log();
  EXPECT_EQ(go2rtc_->log().find("dial tcp 127.0.0.1:1"), std::string::npos) << "the other stream was dialled";
}

}  // namespace
}  // namespace weir::test

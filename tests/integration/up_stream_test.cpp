// `weir up --demo` with a MediaMTX: a published stream, annotated, that ends with the program that shows it.
#include "forward.hpp"
#include "stream_house.hpp"
#include "up_testing.hpp"

namespace weir::test {
namespace {

class WeirUpStream : public WeirUp {
 protected:
  void SetUp() override {
    WeirUp::SetUp();
    if (IsSkipped()) return;
    if (std::string why = stream_house_needs(); !why.empty()) GTEST_SKIP() << why;
  }
  std::vector<std::string> flags() const { return {"--demo", "1", "--mediamtx", part("bin/mediamtx")}; }
  // Where a player finds the stream, once that has been said.
  static std::string shown_at(const UpProcess& up) {
    std::smatch found;
    std::string out = up.out();
    return std::regex_search(out, found, std::regex("rtsp://[0-9.:]+/live/demo/out")) ? found.str() : "";
  }
  bool nothing_left() const {
    return eventually(20s, [&] { return keepers() == 0; });
  }
  // Of MediaMTX and the orchestrator, and of what that has started.
  size_t keepers() const {
    std::string folder = "--folder=" + folder_.path() + "/state/stream";
    return processes_with(folder).size() + processes_with(folder + "/state/streams").size();
  }
};

TEST_F(WeirUpStream, TheDemo_ShowsAPublishedStream_AndTakesItAwayWhenItStops) {
  UpProcess up(folder_, flags());
  ASSERT_TRUE(eventually(60s, [&] { return !shown_at(up).empty(); })) << up.out() << up.err();
  EXPECT_GT(frames_at(shown_at(up), 5)["h264"], 5) << up.out();
  EXPECT_NE(ask("stream list").find("running"), std::string::npos) << ask("stream list");
  EXPECT_NE(ask("stream show demo --json").find("annotate"), std::string::npos) << ask("stream show demo --json");
  EXPECT_EQ(keepers(), 3u) << "MediaMTX, the orchestrator, the stream's worker";
  up.signal(SIGINT);
  EXPECT_EQ(up.wait(30s), 0) << up.err();
  EXPECT_TRUE(nothing_left());
}

TEST_F(WeirUpStream, KilledHard_ItLeavesNothingOfTheStream) {
  UpProcess up(folder_, flags());
  ASSERT_TRUE(eventually(60s, [&] { return !shown_at(up).empty(); })) << up.out() << up.err();
  up.signal(SIGKILL);
  up.wait(5s);
  EXPECT_TRUE(nothing_left());
}

TEST_F(WeirUpStream, WithoutSimulatedCameras_AMediaMtxIsRefusedWithASentence) {
  UpProcess up(folder_, {"--mediamtx", part("bin/mediamtx")});
  EXPECT_EQ(up.wait(20s), 2);
  EXPECT_NE(up.err().find("--demo"), std::string::npos) << up.err();
}

}  // namespace
}  // namespace weir::test

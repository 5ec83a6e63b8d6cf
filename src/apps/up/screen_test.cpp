#include "screen.hpp"

#include <gtest/gtest.h>

#include <sstream>

namespace weir::apps {
namespace {

json::value state(std::string_view cameras) {
  return *json::parse_text(fmt::format(
      R"({{"delivering":1,"pipeline_fps":5.5,"published":12,"cameras":[{}]}})", cameras));
}
constexpr const char* kSeeing = R"({"camera_uuid":"demo-1","state":"STREAMING","fps":10,"decoding":"full",
  "last_detection":{"ts":"2026-01-31T09:05:07.000Z","detections":[
    {"class":"car","conf":0.55},{"class":"person","conf":0.61},{"class":"person","conf":0.76}]}})";
constexpr const char* kBroken = R"({"camera_uuid":"gate","state":"DISCONNECTED","fps":0,
  "error":{"code":"RTSP_AUTH_FAILED","detail":"401 Unauthorized","retry_in_ms":8000}})";
WallTime at(const char* iso) { return *from_iso(iso); }

TEST(Screen, Seen_CountsEqualThings_MostCertainFirst) {
  auto seen = *json::parse_text(R"([{"class":"car","conf":0.55},{"class":"person","conf":0.61},
                                    {"class":"person","conf":0.76}])");
  EXPECT_EQ(seen_text(seen), "2 person 0.76, car 0.55");
}

TEST(Screen, Table_SaysWhatIsSeen_AndWhatIsWrong) {
  std::string text = screen_text(state(std::string(kSeeing) + "," + kBroken), "http://x",
                                 at("2026-01-31T09:05:10.000Z"));
  EXPECT_NE(text.find("demo-1"), std::string::npos);
  EXPECT_NE(text.find("3 s ago: 2 person 0.76, car 0.55"), std::string::npos) << text;
  EXPECT_NE(text.find("RTSP_AUTH_FAILED: 401 Unauthorized (next try in 8 s)"), std::string::npos) << text;
}

TEST(Screen, ACameraThatIsLookedAtTooSeldom_SaysSo) {
  const char* slow = R"({"camera_uuid":"c-1","state":"STREAMING","fps":10,"looked_fps":1.3,"wanted_fps":6,"behind":true})";
  std::string text = screen_text(state(slow), "http://x", {});
  EXPECT_NE(text.find("1.3/6.0"), std::string::npos) << text;
  EXPECT_NE(text.find("looked at 1.3 of 6.0 times a second"), std::string::npos) << text;
  EXPECT_EQ(ScreenLines().lines(state(slow), Instant{} + 1s), "c-1: STREAMING OVERLOADED\n");
}

TEST(Screen, MoreCamerasThanRows_ShowsThoseInTroubleFirst_AndSaysHowManyAreLeft) {
  std::string cameras;
  for (int i = 100; i < 500; ++i) cameras += fmt::format(R"({{"camera_uuid":"c-{}","state":"STREAMING"}},)", i);
  cameras += kBroken;
  auto lines = [&](size_t rows) {
    std::istringstream text(screen_text(state(cameras), "http://x", {}, rows));
    std::vector<std::string> out;
    for (std::string line; std::getline(text, line);) out.push_back(line);
    return out;
  };
  EXPECT_EQ(lines(404).size(), 404u);
  auto shown = lines(48);
  ASSERT_EQ(shown.size(), 48u);
  EXPECT_TRUE(shown[0].starts_with("Weir at http://x: 401 cameras")) << shown[0];
  EXPECT_TRUE(shown[3].starts_with("gate ")) << shown[3];
  EXPECT_TRUE(shown[4].starts_with("c-100 ")) << shown[4];
  EXPECT_EQ(shown[47], "… and 357 more: weir camera list");
}

TEST(Screen, NoCameras_SaysWhatToDo) {
  EXPECT_NE(screen_text(state(""), "http://x", {}).find("weir camera add"), std::string::npos);
}

TEST(Screen, NothingKnownYet_IsNotNoCameras) {
  auto unlisted = *json::parse_text(R"({"listed":false,"cameras":[]})");
  EXPECT_EQ(screen_text(unlisted, "http://x", {}),
            "Weir at http://x: the runner has not got its list of cameras yet\n");
  EXPECT_EQ(screen_text(nullptr, "http://x", {}, SIZE_MAX, "the runner is starting"),
            "Weir at http://x: the runner is starting\n");
}

TEST(Screen, Lines_NameAStateOnce_AndWhatIsSeenFirstAfterIt) {
  ScreenLines lines;
  Instant now = Instant{} + 100s;
  auto seeing = [](const char* at) {
    std::string text(kSeeing);
    return state(text.replace(text.find("09:05:07"), 8, at));
  };
  EXPECT_EQ(lines.lines(seeing("09:05:07"), now), "demo-1: STREAMING\ndemo-1: saw 2 person 0.76, car 0.55\n");
  EXPECT_EQ(lines.lines(seeing("09:05:07"), now + 1s), "");
  EXPECT_EQ(lines.lines(seeing("09:05:13"), now + 7s), "") << "it sees all the time";
  const char* blind = R"({"camera_uuid":"demo-1","state":"STREAMING","error":{"code":"MODEL_ERROR","detail":"gone"}})";
  EXPECT_EQ(lines.lines(state(blind), now + 8s), "demo-1: STREAMING MODEL_ERROR\n");
  EXPECT_EQ(lines.lines(nullptr, now + 9s), "");
  EXPECT_EQ(lines.lines(seeing("09:05:13"), now + 10s), "demo-1: STREAMING\n") << "that was seen before";
  EXPECT_EQ(lines.lines(seeing("09:05:17"), now + 11s), "demo-1: saw 2 person 0.76, car 0.55\n");
}

TEST(Screen, Lines_SumUpOnceAMinute) {
  ScreenLines lines;
  Instant now = Instant{} + 100s;
  auto published = [](int events) {
    return *json::parse_text(fmt::format(R"({{"delivering":3,"published":{},"cameras":[{}]}})", events, kBroken));
  };
  EXPECT_EQ(lines.lines(published(12), now), "gate: DISCONNECTED RTSP_AUTH_FAILED\n");
  EXPECT_EQ(lines.lines(published(20), now + 59s), "");
  EXPECT_EQ(lines.lines(published(5), now + 60s), "1 camera, 3 delivering, 20 events in the last minute\n")
      << "another worker counts from 0";
  EXPECT_EQ(lines.lines(published(7), now + 119s), "");
  EXPECT_EQ(lines.lines(published(9), now + 120s), "1 camera, 3 delivering, 4 events in the last minute\n");
}

TEST(Screen, WhatHappenedAtTheRunner_IsSaidOnce) {
  json::value state = *json::parse_text(
      R"({"happened":[{"ts":"2026-01-02T03:04:05.678Z","event":"worker.crashed","text":"exit code 137","camera_uuid":""},)"
      R"({"ts":"2026-01-02T03:04:06.000Z","event":"camera.alone","text":"twice","camera_uuid":"gate"}]})");
  std::string heard;
  EXPECT_EQ(news_of(state, heard), (std::vector<std::string>{"03:04:05 worker.crashed: exit code 137",
                                                              "03:04:06 camera.alone: twice (gate)"}));
  EXPECT_TRUE(news_of(state, heard).empty());
  EXPECT_TRUE(news_of(nullptr, heard).empty());
}

json::value cluster(std::string_view subscriptions) {
  return *json::parse_text(fmt::format(
      R"({{"totalWorkers":2,"workers":[{{"online":true}},{{"online":false}}],"subscriptions":{{{}}}}})", subscriptions));
}
constexpr const char* kRuns = R"("door;cam-1":{"worker":"ws://w:1","status":"active","reason":null})";
constexpr const char* kWaits = R"("door;cam-2":{"worker":null,"status":"pending","reason":"no worker has room"})";

TEST(Screen, Cluster_SaysWhereEachSubscriptionRuns_ThoseInTroubleFirst) {
  std::string text = cluster_text(cluster(fmt::format("{},{}", kRuns, kWaits)), 20, "");
  EXPECT_NE(text.find("1 of 2 workers online, 2 subscriptions"), std::string::npos) << text;
  EXPECT_LT(text.find("pending: no worker has room"), text.find("active at ws://w:1")) << text;
}

TEST(Screen, Cluster_WithMoreThanItsRows_SaysHowManyAreLeft) {
  std::string many = kWaits;
  for (int i = 10; i < 30; ++i) many += fmt::format(R"(,"d-{}":{{"status":"active","worker":"w"}})", i);
  std::string text = cluster_text(cluster(many), 8, "");
  EXPECT_NE(text.find("door;cam-2"), std::string::npos) << text;
  EXPECT_NE(text.find("… and 17 more"), std::string::npos) << text;
}

TEST(Screen, ClusterThatDoesNotAnswer_SaysWhy) {
  EXPECT_NE(cluster_text(nullptr, 20, "the cluster is starting").find("the cluster is starting"), std::string::npos);
}

TEST(Screen, ClusterLines_NameASubscriptionWhenSomethingChanged) {
  ClusterLines lines;
  EXPECT_EQ(lines.lines(cluster(kRuns)), "door;cam-1: active at ws://w:1\n");
  EXPECT_EQ(lines.lines(cluster(kRuns)), "");
  EXPECT_EQ(lines.lines(nullptr), "");
}

}  // namespace
}  // namespace weir::apps

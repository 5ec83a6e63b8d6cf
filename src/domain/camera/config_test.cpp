#include "weir/camera/config.hpp"

#include <gtest/gtest.h>

namespace weir::camera {
namespace {

constexpr std::string_view kDocument = R"({
  "camera_uuid": "cam-001",
  "rtsp_url": "rtsp://camera.local/stream",
  "tenant_id": "tenant-1",
  "site_id": "site-1",
  "zones": [{"zone_id": 1, "name": "driveway", "kind": "include", "priority": 100,
             "polygon": [[100, 100], [700, 100], [700, 500], [200, 500]],
             "allow_labels": ["person", "car"], "min_score": 0.25}],
  "motion_gating": {"enabled": true, "downscale": 0.5, "min_area_px": 1500, "cooldown_frames": 2},
  "allow_labels": ["person", "car", "truck"],
  "min_score": 0.30,
  "zone_test": "center",
  "iou_threshold": 0.10
})";

json::value document() { return *json::parse_text(kDocument); }

json::value changed(std::string_view field, std::string_view text) {
  json::value v = document();
  v.as_object()[field] = *json::parse_text(text);
  return v;
}

Config with_url(std::string_view url) {
  json::value v = document();
  v.as_object()["rtsp_url"] = url;
  auto config = read_config(v);
  EXPECT_TRUE(config) << url;
  return config ? *config : Config{};
}

std::vector<std::string> paths_of(const Error& error) {
  std::vector<std::string> paths;
  for (const auto& each : error.details.at("fields").as_array())
    paths.emplace_back(each.as_object().at("field").as_string());
  return paths;
}

TEST(CameraConfig, DocumentOfTheContract_ReadsCompletely) {
  auto config = read_config(document());
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->camera.str(), "cam-001");
  EXPECT_EQ(config->tenant.str(), "tenant-1");
  EXPECT_EQ(config->site.str(), "site-1");
  EXPECT_EQ(config->rtsp_url.reveal(), "rtsp://camera.local/stream");
  ASSERT_EQ(config->zones.size(), 1u);
  EXPECT_EQ(config->zones[0].zone_id, 1);
  EXPECT_EQ(config->zones[0].polygon[3], (Point{200, 500}));
  EXPECT_EQ(config->zones[0].min_score, 0.25);
  EXPECT_EQ(config->motion_gating.min_area_px, 1500);
  EXPECT_EQ(config->allow_labels->size(), 3u);
  EXPECT_EQ(config->min_score, 0.30);
  EXPECT_TRUE(config->enabled);
  EXPECT_TRUE(config->assignable());
}

TEST(CameraConfig, RoundTrip_GivesTheSameDocument) {
  auto first = read_config(document());
  ASSERT_TRUE(first);
  json::object written = write_config(*first, Credentials::shown);
  const json::value given = document();
  for (const auto& [name, value] : given.as_object()) EXPECT_EQ(written.at(name), value) << name;
  auto second = read_config(*json::parse_text(json::to_text(written)));
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_EQ(write_config(*second, Credentials::shown), written);
}

TEST(CameraConfig, RoundTrip_KeepsEveryOptionalField) {
  json::value v = document();
  json::object& o = v.as_object();
  for (auto [name, text] : std::initializer_list<std::pair<const char*, const char*>>{
           {"name", R"("Hof, Süd")"},
           {"substream_url", R"("rtsps://u:p@cam:8554/sub?x=1")"},
           {"enabled", "false"},
           {"processing", R"("cluster")"},
           {"transport", R"("udp")"},
           {"decode", R"("keyframes")"},
           {"max_fps", "12.5"},
           {"max_sessions", "1"},
           {"frame_size", R"({"width":1920,"height":1080})"},
           {"crop", R"({"x":10,"y":0,"width":1910,"height":1080})"},
           {"snapshot", R"({"url":"https://cam/pic.jpg","interval_s":2})"},
           {"model", R"({"detector":"onnx","name":"people-v2"})"}})
    o[name] = *json::parse_text(text);
  auto config = read_config(v);
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_FALSE(config->assignable());
  json::object written = write_config(*config, Credentials::shown);
  for (const auto& [name, value] : o) EXPECT_EQ(written.at(name), value) << name;
}

TEST(CameraConfig, SnapshotCamera_NeedsNoStream) {
  json::value v = document();
  v.as_object().erase("rtsp_url");
  auto refused = read_config(v);
  ASSERT_FALSE(refused);
  EXPECT_EQ(paths_of(refused.error()), std::vector<std::string>{"rtsp_url"});
  v.as_object()["snapshot"] = json::object{{"url", "http://cam/pic.jpg"}};
  auto config = read_config(v);
  ASSERT_TRUE(config) << config.error().message;
  auto again = read_config(json::value(write_config(*config, Credentials::shown)));
  EXPECT_TRUE(again);
}

TEST(CameraConfig, WrongValue_IsRefusedWithItsPath) {
  struct Case {
    const char* field;
    const char* text;
    const char* path;
  };
  const Case cases[] = {
      {"camera_uuid", "null", "camera_uuid"},
      {"camera_uuid", R"("")", "camera_uuid"},
      {"camera_uuid", R"("register")", "camera_uuid"},
      {"camera_uuid", R"("a\nb")", "camera_uuid"},
      {"tenant_id", "7", "tenant_id"},
      {"site_id", "null", "site_id"},
      {"name", R"("a\u0007")", "name"},
      {"enabled", R"("yes")", "enabled"},
      {"processing", R"("both")", "processing"},
      {"transport", R"("http")", "transport"},
      {"decode", R"("some")", "decode"},
      {"zones", "{}", "zones"},
      {"zones", "[3]", "zones[0]"},
      {"zones", R"([{"zone_id":1}])", "zones[0].polygon"},
      {"zones", R"([{"polygon":[[0,0],[1,0],[1,1]]}])", "zones[0].zone_id"},
      {"zones", R"([{"zone_id":0,"polygon":[[0,0],[1,0],[1,1]]}])", "zones[0].zone_id"},
      {"zones", R"([{"zone_id":2147483648,"polygon":[[0,0],[1,0],[1,1]]}])", "zones[0].zone_id"},
      {"zones", R"([{"zone_id":1.5,"polygon":[[0,0],[1,0],[1,1]]}])", "zones[0].zone_id"},
      {"zones", R"([{"zone_id":1,"kind":"maybe","polygon":[[0,0],[1,0],[1,1]]}])", "zones[0].kind"},
      {"zones", R"([{"zone_id":1,"priority":10001,"polygon":[[0,0],[1,0],[1,1]]}])", "zones[0].priority"},
      {"zones", R"([{"zone_id":1,"min_score":1.01,"polygon":[[0,0],[1,0],[1,1]]}])", "zones[0].min_score"},
      {"zones", R"([{"zone_id":1,"allow_labels":["a",""],"polygon":[[0,0],[1,0],[1,1]]}])", "zones[0].allow_labels[1]"},
      {"zones", R"([{"zone_id":1,"colour":"red","polygon":[[0,0],[1,0],[1,1]]}])", "zones[0].colour"},
      {"zones", R"([{"zone_id":1,"polygon":[]}])", "zones[0].polygon"},
      {"zones", R"([{"zone_id":1,"polygon":[[0,0],[1,0]]}])", "zones[0].polygon"},
      {"zones", R"([{"zone_id":1,"polygon":[[0,0],[1,0],[0,0],[1,0]]}])", "zones[0].polygon"},
      {"zones", R"([{"zone_id":1,"polygon":[[0,0],[1,1],[2,2],[5,5]]}])", "zones[0].polygon"},
      {"zones", R"([{"zone_id":1,"polygon":[[0,0],[-1,0],[1,1]]}])", "zones[0].polygon"},
      {"zones", R"([{"zone_id":1,"polygon":[[0,0],[1e9,0],[1,1]]}])", "zones[0].polygon"},
      {"zones", R"([{"zone_id":1,"polygon":[[0,0],[1,0,2],[1,1]]}])", "zones[0].polygon[1]"},
      {"zones", R"([{"zone_id":1,"polygon":[[0,0],[1,"0"],[1,1]]}])", "zones[0].polygon[1][1]"},
      {"zones", R"([{"zone_id":4,"polygon":[[0,0],[1,0],[1,1]]},{"zone_id":4,"polygon":[[0,0],[1,0],[1,1]]}])",
       "zones[1].zone_id"},
      {"motion_gating", "true", "motion_gating"},
      {"motion_gating", R"({"downscale":0.04})", "motion_gating.downscale"},
      {"motion_gating", R"({"downscale":1.5})", "motion_gating.downscale"},
      {"motion_gating", R"({"min_area_px":-1})", "motion_gating.min_area_px"},
      {"motion_gating", R"({"min_area_px":100000001})", "motion_gating.min_area_px"},
      {"motion_gating", R"({"cooldown_frames":10001})", "motion_gating.cooldown_frames"},
      {"motion_gating", R"({"cooldown":1})", "motion_gating.cooldown"},
      {"allow_labels", R"("person")", "allow_labels"},
      {"allow_labels", R"(["person", 3])", "allow_labels[1]"},
      {"allow_labels", R"(["a\tb"])", "allow_labels[0]"},
      {"min_score", "-0.1", "min_score"},
      {"min_score", "1.1", "min_score"},
      {"min_score", R"("0.3")", "min_score"},
      {"zone_test", R"("corner")", "zone_test"},
      {"iou_threshold", "2", "iou_threshold"},
      {"max_fps", "0", "max_fps"},
      {"max_fps", "121", "max_fps"},
      {"max_sessions", "0", "max_sessions"},
      {"max_sessions", "65", "max_sessions"},
      {"frame_size", R"({"width":640})", "frame_size.height"},
      {"frame_size", R"({"width":0,"height":480})", "frame_size.width"},
      {"frame_size", R"({"width":640,"height":480})", "zones[0].polygon"},
      {"crop", R"({"x":0,"y":0,"width":0,"height":10})", "crop.width"},
      {"crop", R"({"x":-1,"y":0,"width":10,"height":10})", "crop.x"},
      {"snapshot", R"({})", "snapshot.url"},
      {"snapshot", R"({"url":"rtsp://cam/x"})", "snapshot.url"},
      {"snapshot", R"({"url":"http://cam/x","interval_s":0})", "snapshot.interval_s"},
      {"model", R"({"detector":"magic"})", "model.detector"},
      {"model", R"({"name":"../../etc/passwd"})", "model.name"},
      {"rtps_url", R"("rtsp://typo/")", "rtps_url"},
  };
  for (const Case& each : cases) {
    auto config = read_config(changed(each.field, each.text));
    ASSERT_FALSE(config) << each.field << " " << each.text;
    EXPECT_EQ(config.error().code, Errc::invalid);
    EXPECT_EQ(paths_of(config.error()), std::vector<std::string>{each.path}) << each.text;
  }
}

TEST(CameraConfig, Crop_MustLieInsideTheFrame) {
  json::value v = changed("frame_size", R"({"width":1920,"height":1080})");
  v.as_object()["crop"] = *json::parse_text(R"({"x":1000,"y":0,"width":921,"height":10})");
  auto config = read_config(v);
  ASSERT_FALSE(config);
  EXPECT_EQ(paths_of(config.error()), std::vector<std::string>{"crop"});
  v.as_object()["crop"].as_object()["width"] = 920;
  EXPECT_TRUE(read_config(v));
}

TEST(CameraConfig, Sizes_AreBounded) {
  auto long_name = fmt::format("\"{}\"", std::string(256, 'n'));
  EXPECT_FALSE(read_config(changed("name", long_name)));
  EXPECT_TRUE(read_config(changed("name", fmt::format("\"{}\"", std::string(255, 'n')))));
  EXPECT_FALSE(read_config(changed("rtsp_url", fmt::format("\"rtsp://h/{}\"", std::string(2048, 'p')))));
  EXPECT_FALSE(read_config(changed("allow_labels", fmt::format("[\"{}\"]", std::string(65, 'l')))));

  json::array labels, zones, points;
  for (int i = 0; i < 101; ++i) labels.push_back(json::value("l" + std::to_string(i)));
  for (int i = 0; i < 257; ++i) points.push_back(json::array{i, i * i % 97});
  for (int i = 1; i <= 65; ++i)
    zones.push_back(json::object{{"zone_id", i}, {"polygon", *json::parse_text("[[0,0],[1,0],[1,1]]")}});
  EXPECT_FALSE(read_config(changed("allow_labels", json::to_text(labels))));
  labels.pop_back();
  EXPECT_TRUE(read_config(changed("allow_labels", json::to_text(labels))));
  EXPECT_FALSE(read_config(changed("zones", json::to_text(zones))));
  zones.pop_back();
  EXPECT_TRUE(read_config(changed("zones", json::to_text(zones))));
  EXPECT_FALSE(read_zone(json::object{{"zone_id", 1}, {"polygon", points}}));
  points.pop_back();
  EXPECT_TRUE(read_zone(json::object{{"zone_id", 1}, {"polygon", points}}));
}

TEST(CameraConfig, ManyMistakes_AreAllReported) {
  auto config = read_config(*json::parse_text(R"({"camera_uuid":"c","tenant_id":"t","min_score":2,"max_fps":0})"));
  ASSERT_FALSE(config);
  EXPECT_EQ(paths_of(config.error()), (std::vector<std::string>{"site_id", "min_score", "max_fps", "rtsp_url"}));
  EXPECT_FALSE(read_config(json::value(3)));
  EXPECT_FALSE(read_config(json::value(nullptr)));
}

TEST(CameraConfig, BowTie_IsAZone) {
  EXPECT_TRUE(read_zone(*json::parse_text(R"({"zone_id":1,"polygon":[[0,0],[2,2],[2,0],[0,2]]})")));
}

TEST(CameraUrl, BadForms_AreRefusedWithoutBeingRepeated) {
  for (std::string_view url : {"",
                               "camera",
                               "//cam/x",
                               "http://canary-pw@cam/x",
                               "file:///etc/canary-pw",
                               "rtsp:cam",
                               "rtsp://",
                               "rtsp:///canary-pw",
                               "rtsp://u:canary-pw@/x",
                               "rtsp://u:canary-pw@cam:0/",
                               "rtsp://u:canary-pw@cam:65536/", "rtsp://u:canary-pw@cam:99999/",
                               "rtsp://u:canary-pw@cam:/",
                               "rtsp://u:canary-pw@cam:5x4/",
                               "rtsp://u:canary-pw@c am/x",
                               "rtsp://u:canary-pw@cam/a b",
                               "rtsp://u:canary-pw@cam/\n",
                               "rtsp://u:canary-pw@cam\\@evil/",
                               "rtsp://u:canary-pw@%31%32%37.0.0.1/",
                               "rtsp://u:canary-pw@a@cam/",
                               "rtsp://u:canary-pw@[v1.x]/",
                               "rtsp://u:canary-pw@[::1/",
                               "rtsp://***@cam/x",
                               "rtsp://u:canary-pw@169.254.1.1./x",
                               "rtsp://u:canary-pw@127.0.0.1.example/x",
                               "rtmp://u:canary-pw@cam/x"}) {
    json::value v = document();
    v.as_object()["rtsp_url"] = url;
    auto config = read_config(v);
    ASSERT_FALSE(config) << url;
    EXPECT_EQ(paths_of(config.error()), std::vector<std::string>{"rtsp_url"}) << url;
    EXPECT_EQ(config.error().message.find("canary"), std::string::npos);
    EXPECT_EQ(json::to_text(config.error().details).find("canary"), std::string::npos);
  }
}

TEST(CameraUrl, GoodForms_AreAccepted) {
  for (std::string_view url :
       {"rtsp://cam/x", "RTSP://cam", "rtsps://cam.example:322/a/b?c=d&e=f", "rtsp://user:p%40ss@10.0.0.7:554/h264",
        "rtsp://[2001:db8::7]:8554/x", "rtsp://cam_1.local/Streaming/Channels/101"})
    EXPECT_TRUE(rule_problems(with_url(url), Rules{}).empty()) << url;
}

TEST(CameraRules, ForbiddenAddresses_InEverySpelling) {
  for (std::string_view host : {"169.254.1.1",
                                "169.254.169.254",
                                "0xa9fea9fe",
                                "2852039166",
                                "224.0.0.1",
                                "239.255.255.250",
                                "0.0.0.0",
                                "0",
                                "0.1.2.3",
                                "255.255.255.255",
                                "4294967295",
                                "[::]",
                                "[fe80::1]",
                                "[febf::1]",
                                "[ff02::1]",
                                "[::ffff:169.254.1.1]",
                                "[::ffff:a9fe:0101]",
                                "[64:ff9b::169.254.1.1]",
                                "[2002:a9fe:0101::1]",
                                "169.254.43518",
                                "0251.0376.1.1"}) {
    auto problems = rule_problems(with_url(fmt::format("rtsp://u:secret@{}/x", host)), Rules{.loopback = true});
    ASSERT_EQ(problems.size(), 1u) << host;
    EXPECT_EQ(problems[0].path, "rtsp_url");
    EXPECT_EQ(problems[0].what.find("secret"), std::string::npos);
  }
}

TEST(CameraRules, Loopback_OnlyWhereAllowed) {
  for (std::string_view host : {"127.0.0.1", "127.1", "127.255.0.9", "2130706433", "0x7f000001", "0x7f.1",
                                "017700000001", "0177.0.0.1", "localhost", "LocalHost", "localhost.", "cam.localhost",
                                "[::1]", "[::ffff:127.0.0.1]", "[::127.0.0.1]", "[2002:7f00:1::]"}) {
    Config config = with_url(fmt::format("rtsp://{}:8554/x", host));
    EXPECT_EQ(rule_problems(config, Rules{}).size(), 1u) << host;
    EXPECT_TRUE(rule_problems(config, Rules{.loopback = true}).empty()) << host;
  }
}

TEST(CameraRules, EveryUrl_IsLookedAt) {
  json::value v = document();
  v.as_object()["rtsp_url"] = "rtsp://127.0.0.1/x";
  v.as_object()["substream_url"] = "rtsp://[::1]/x";
  v.as_object()["snapshot"] = json::object{{"url", "http://169.254.169.254/latest"}};
  auto config = read_config(v);
  ASSERT_TRUE(config);
  std::vector<std::string> paths;
  for (const auto& problem : rule_problems(*config, Rules{})) paths.push_back(problem.path);
  EXPECT_EQ(paths, (std::vector<std::string>{"rtsp_url", "substream_url", "snapshot.url"}));
}

TEST(CameraConfig, RedactedForm_HoldsNoCredential) {
  json::value v = document();
  v.as_object()["rtsp_url"] = "rtsp://admin:canary-1@cam:554/h264?token=canary-2#canary-3";
  v.as_object()["substream_url"] = "rtsp://cam/user=admin&password=canary-4&channel=1";
  v.as_object()["snapshot"] = json::object{{"url", "http://cam/pic.jpg?pw=canary-5"}};
  auto config = read_config(v);
  ASSERT_TRUE(config) << config.error().message;
  json::object shown = write_config(*config, Credentials::redacted);
  EXPECT_EQ(json::to_text(shown).find("canary"), std::string::npos) << json::to_text(shown);
  EXPECT_EQ(shown.at("rtsp_url").as_string(), "rtsp://***@cam:554/h264?***");
  EXPECT_EQ(shown.at("substream_url").as_string(), "rtsp://cam/***");
  EXPECT_NE(json::to_text(write_config(*config, Credentials::shown)).find("canary-4"), std::string::npos);
}

TEST(CameraConfig, RelationProblems_AreFoundInAValueToo) {
  auto config = read_config(document());
  ASSERT_TRUE(config);
  EXPECT_TRUE(relation_problems(*config).empty());
  config->zones.push_back(config->zones[0]);
  config->frame_size = FrameSize{640, 480};
  std::vector<std::string> paths;
  for (const auto& problem : relation_problems(*config)) paths.push_back(problem.path);
  EXPECT_EQ(paths, (std::vector<std::string>{"zones[0].polygon", "zones[1].zone_id", "zones[1].polygon"}));
}

}  // namespace
}  // namespace weir::camera

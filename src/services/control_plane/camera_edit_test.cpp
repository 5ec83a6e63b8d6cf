#include "camera_edit.hpp"

#include "place.hpp"
#include "runner_bodies.hpp"

#include <gtest/gtest.h>

namespace weir::control_plane {
namespace {

json::object object_of(std::string_view text) { return json::parse_text(text)->as_object(); }

CameraRecord present() {
  auto config = read_camera(object_of(R"({"camera_uuid":"c","tenant_id":"t","site_id":"s","name":"Yard",
      "rtsp_url":"rtsp://u:pw@cam/x","max_fps":9,"frame_size":{"width":100,"height":100},
      "zones":[{"zone_id":1,"polygon":[[0,0],[9,0],[9,9]]}]})"),
                            {});
  EXPECT_TRUE(config);
  return {*config};
}

TEST(ControlPlaneCameraEdit, Merge_KeepsWhatIsNotSaid) {
  auto edited = edit_camera(present(), object_of(R"({"name":"Gate","max_fps":null})"), EditKind::merge, {});
  ASSERT_TRUE(edited) << edited.error().message;
  EXPECT_EQ(edited->name, "Gate");
  EXPECT_EQ(edited->max_fps, camera::Config{}.max_fps);
  EXPECT_EQ(edited->rtsp_url.reveal(), "rtsp://u:pw@cam/x");
  EXPECT_EQ(edited->zones.size(), 1u);
}

TEST(ControlPlaneCameraEdit, Replace_ForgetsWhatIsNotSaid) {
  auto edited =
      edit_camera(present(), object_of(R"({"rtsp_url":"rtsp://cam/y","created_at":"x"})"), EditKind::replace, {});
  ASSERT_TRUE(edited) << edited.error().message;
  EXPECT_EQ(edited->camera.str(), "c");
  EXPECT_EQ(edited->name, "");
  EXPECT_TRUE(edited->zones.empty());
}

TEST(ControlPlaneCameraEdit, CameraTenantAndSite_CannotChange) {
  for (EditKind kind : {EditKind::merge, EditKind::replace}) {
    for (const char* field : {"camera_uuid", "tenant_id", "site_id"}) {
      json::object body = object_of(R"({"rtsp_url":"rtsp://cam/y"})");
      body[field] = "other";
      auto edited = edit_camera(present(), body, kind, {});
      ASSERT_FALSE(edited) << field;
      EXPECT_EQ(edited.error().code, Errc::unprocessable);
      EXPECT_EQ(edited.error().details.at("field").as_string(), field);
      body[field] = 7;
      EXPECT_EQ(edit_camera(present(), body, kind, {}).error().code, Errc::invalid);
    }
  }
}

TEST(ControlPlaneCameraEdit, Result_IsValidatedCompletely) {
  for (const char* body : {R"({"max_fps":0})", R"({"typo":1})", R"({"rtsp_url":null})", R"({"rtsp_url":"http://x/"})",
                           R"({"frame_size":{"width":5,"height":5}})", R"({"rtsp_url":"rtsp://127.0.0.1/"})"}) {
    auto edited = edit_camera(present(), object_of(body), EditKind::merge, {});
    ASSERT_FALSE(edited) << body;
    EXPECT_EQ(edited.error().code, Errc::invalid) << body;
    EXPECT_EQ(edited.error().message.find("pw"), std::string::npos);
  }
  EXPECT_TRUE(
      edit_camera(present(), object_of(R"({"rtsp_url":"rtsp://127.0.0.1/"})"), EditKind::merge, {.loopback = true}));
}

TEST(ControlPlaneCameraEdit, Zones_AreAddedReplacedAndRemoved) {
  camera::Zone zone = present().config.zones[0];
  EXPECT_EQ(with_zone(present().config, zone, ZoneWrite::add).error().code, Errc::conflict);
  zone.zone_id = 2;
  EXPECT_EQ(with_zone(present().config, zone, ZoneWrite::replace).error().code, Errc::not_found);
  auto added = with_zone(present().config, zone, ZoneWrite::add);
  ASSERT_TRUE(added);
  EXPECT_NE(find_zone(*added, 2), nullptr);
  zone.name = "door";
  EXPECT_EQ(find_zone(*with_zone(*added, zone, ZoneWrite::replace), 2)->name, "door");
  EXPECT_EQ(find_zone(*without_zone(*added, 1), 1), nullptr);
  EXPECT_EQ(without_zone(*added, 3).error().code, Errc::not_found);
}

TEST(ControlPlaneCameraEdit, ZoneOutsideTheFrame_IsNamedAsTheAskerSentIt) {
  camera::Zone zone = present().config.zones[0];
  zone.zone_id = 2;
  zone.polygon[1][0] = 101;
  auto refused = with_zone(present().config, zone, ZoneWrite::add);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().details.at("field").as_string(), "polygon");
}

TEST(ControlPlanePlace, PathFillsTheBody_AndContradictionsAreRefused) {
  json::object body = object_of(R"({"a":"x","n":null,"i":3})");
  EXPECT_TRUE(fill_from_path(body, "missing", "v"));
  EXPECT_EQ(body.at("missing").as_string(), "v");
  EXPECT_TRUE(fill_from_path(body, "n", "v"));
  EXPECT_TRUE(fill_from_path(body, "a", "x"));
  EXPECT_EQ(fill_from_path(body, "a", "y").error().details.at("field").as_string(), "a");
  EXPECT_FALSE(fill_from_path(body, "i", "3"));
}

TEST(ControlPlanePlace, CameraElsewhere_DoesNotExistHere) {
  EXPECT_TRUE(stands_at(present(), Place{}));
  EXPECT_TRUE(stands_at(present(), Place{TenantId::trusted("t"), SiteId::trusted("s")}));
  EXPECT_EQ(stands_at(present(), Place{TenantId::trusted("t"), SiteId::trusted("z")}).error().code, Errc::not_found);
}

TEST(ControlPlaneRunnerBodies, RegistrationOfTheContract_IsRead) {
  auto runner = read_registration(*json::parse_text(R"({"runner_id":"runner-abc123","tenant_id":"tenant-1",
      "site_id":"site-1","deployment_group":"production","deployment_version":"v1.2.3",
      "host":"worker-01.example.com","port":8080,"capacity":16,"metrics_port":9108,
      "capabilities":["rtsp","motion_detection","zone_filtering"]})"));
  ASSERT_TRUE(runner) << runner.error().message;
  EXPECT_EQ(runner->capacity, 16);
  EXPECT_EQ(runner->capabilities.size(), 3u);
  EXPECT_EQ(read_registration(*json::parse_text(R"({"runner_id":"r","capacity_streams":7})"))->capacity, 7);
}

TEST(ControlPlaneRunnerBodies, WrongFields_AreNamed) {
  struct Case {
    const char* text;
    const char* path;
  };
  for (const Case& each :
       {Case{"[]", "body"}, Case{"{}", "runner_id"}, Case{R"({"runner_id":"r","port":70000})", "port"},
        Case{R"({"runner_id":"r","capacity":-1})", "capacity"},
        Case{R"({"runner_id":"r","capabilities":[""]})", "capabilities"},
        Case{R"({"runner_id":"r","boot_id":""})", "boot_id"}}) {
    auto runner = read_registration(*json::parse_text(each.text));
    ASSERT_FALSE(runner) << each.text;
    EXPECT_EQ(runner.error().details.at("field").as_string(), each.path);
  }
}

TEST(ControlPlaneRunnerBodies, Heartbeat_KeepsOnlyWhatIsKnown) {
  auto beat = read_heartbeat(*json::parse_text(R"({"type":"runner.heartbeat","runner_id":"r","streams_owned":37,
      "shards":3,"cpu_pct":41.2,"mem_mb":1024,"ts":"2025-08-21T11:00:00Z","password":"canary"})"));
  ASSERT_TRUE(beat) << beat.error().message;
  EXPECT_EQ(beat->streams_owned, 37);
  EXPECT_EQ(beat->kept.size(), 5u);
  EXPECT_FALSE(read_heartbeat(*json::parse_text(R"({"runner_id":"r","streams_owned":-1})")));
  EXPECT_FALSE(read_heartbeat(*json::parse_text(R"({"runner_id":"r","waiting":[{"camera_uuid":"c","reason":"mood"}]})")));
  auto waits = read_heartbeat(*json::parse_text(
      R"({"runner_id":"r","cameras_behind":2,"why_not_acquiring":"it is busy","waiting":[{"camera_uuid":"c","reason":"budget"}]})"));
  ASSERT_TRUE(waits) << waits.error().message;
  EXPECT_EQ(waits->kept.at("waiting").at(0).at("camera_uuid"), "c");
  EXPECT_EQ(waits->kept.at("why_not_acquiring"), "it is busy");
  EXPECT_EQ(waits->kept.at("cameras_behind"), 2);
  EXPECT_FALSE(read_heartbeat(*json::parse_text(R"({"runner_id":"r","cpu_pct":"high"})")));
}

TEST(ControlPlaneRunnerBodies, Change_SaysSomethingKnown) {
  auto change = read_runner_change(*json::parse_text(R"({"cordoned":true,"drain_mode":"soft"})"));
  ASSERT_TRUE(change);
  EXPECT_EQ(change->drain, DrainMode::soft);
  for (const char* wrong : {"{}", "[]", R"({"cordon":true})", R"({"drain_mode":"gentle"})", R"({"cordoned":null})"})
    EXPECT_FALSE(read_runner_change(*json::parse_text(wrong))) << wrong;
  EXPECT_TRUE(read_runner_change(*json::parse_text(R"({"capacity_streams":1})")));
  EXPECT_FALSE(read_runner_change(*json::parse_text(R"({"capacity_streams":1})"))->unpin);
  EXPECT_TRUE(read_runner_change(*json::parse_text(R"({"capacity_streams":null})"))->unpin);
  auto none = read_runner_change(*json::parse_text(R"({"capacity_streams":0})"));
  ASSERT_FALSE(none) << "a runner would take no notice, and others would count it as full";
  EXPECT_EQ(none.error().details.at("field").as_string(), "capacity_streams");
}

}  // namespace
}  // namespace weir::control_plane

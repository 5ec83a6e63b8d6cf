#include "weir/link/shard.hpp"

#include <gtest/gtest.h>

#include <set>

namespace weir::link {
namespace {

// The smallest shard document that clients send.
constexpr const char* kExample = R"({
  "runner_id": "runner-123", "shard_id": "shard-0", "max_fps": 6,
  "sources": [
    { "camera_uuid": "cam-1", "url": "rtsp://.../1", "site_id": "site-A", "tenant_id": "t-01" },
    { "camera_uuid": "cam-2", "url": "rtsp://.../2", "site_id": "site-A", "tenant_id": "t-01" }
  ],
  "amqp": { "host": "rabbit", "ex_status": "status.topic", "ex_detect": "detections.topic" },
  "cp":   { "base_url": "https://cp/api", "token": "<jwt>" },
  "telemetry": { "report_interval_seconds": 5 }
})";

Result<ShardConfig> read(std::string_view text) {
  auto parsed = json::parse_text(text);
  EXPECT_TRUE(parsed);
  return read_shard_config(*parsed);
}
json::value source_text(std::string_view extra) {
  return *json::parse_text(R"({"camera_uuid":"c","site_id":"s","tenant_id":"t",)" + std::string(extra) + "}");
}

TEST(ShardConfig, TheSeedsExample_LoadsUnchanged) {
  auto shard = read(kExample);
  ASSERT_TRUE(shard) << shard.error().message;
  EXPECT_EQ(shard->runner.str(), "runner-123");
  EXPECT_EQ(shard->shard, "shard-0");
  EXPECT_EQ(shard->control_plane, "https://cp/api");
  EXPECT_EQ(shard->report_interval_s, 5.0);
  EXPECT_EQ(shard->broker, (Broker{.host = "rabbit"}));
  ASSERT_EQ(shard->sources.size(), 2u);
  EXPECT_EQ(shard->sources[1].config.camera.str(), "cam-2");
  EXPECT_EQ(shard->sources[1].config.rtsp_url.reveal(), "rtsp://.../2");
  EXPECT_EQ(shard->sources[1].config.max_fps, 6);
}

// The document of a manager that also starts workers.
TEST(ShardConfig, AManagersDocument_LoadsUnchanged_AndNamesTheControlPlane) {
  constexpr std::string_view manager = R"("control_plane_url": "https://cp.example", "api_key": "wk_1", "manager_mode": true,
    "max_workers": 4, "max_cameras_per_worker": 16, "lease_ttl_seconds": 60, "heartbeat_interval_seconds": 30,
    "lease_retry_interval_seconds": 10, "database_url": "postgres://db.example/weir", "deployment_group": "production",
    "deployment_version": "v1.2.3")";
  auto shard = read(fmt::format(R"({{"runner_id":"r", {}, "sources":[]}})", manager));
  ASSERT_TRUE(shard) << shard.error().message;
  EXPECT_EQ(shard->control_plane, "https://cp.example");
  EXPECT_EQ(shard->token.reveal(), "wk_1");
  auto both = read(fmt::format(R"({{"runner_id":"r", {}, "cp":{{"base_url":"https://other.example"}}}})", manager));
  ASSERT_TRUE(both) << both.error().message;
  EXPECT_EQ(both->control_plane, "https://other.example");
  EXPECT_EQ(both->token.reveal(), "wk_1");
  auto wrong = read(R"({"runner_id":"r","control_plane_url":5})");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().message, "cp.base_url must be a string");
}

TEST(ShardConfig, EveryProblem_IsNamedWithItsPath_NeverWithItsValue) {
  auto shard = read(R"({"shard_id":"x","sources":[
    {"camera_uuid":"a","url":"rtsp://u:hunter2@h/1","site_id":"s","tenant_id":"t","max_fps":0},
    {"camera_uuid":"a","url":"gopher://u:hunter2@h/1","site_id":"s"}], "surprise": 1})");
  ASSERT_FALSE(shard);
  std::string all = json::to_text(shard.error().details) + shard.error().message;
  for (const char* path : {"runner_id", "sources[0].max_fps", "sources[1].rtsp_url", "sources[1].tenant_id", "surprise"})
    EXPECT_NE(all.find(path), std::string::npos) << path << " in " << all;
  EXPECT_EQ(all.find("hunter2"), std::string::npos);
}

TEST(ShardConfig, OneCameraTwice_IsRefused) {
  auto shard = read(R"({"runner_id":"r","sources":[
    {"camera_uuid":"a","url":"rtsp://h/1","site_id":"s","tenant_id":"t"},
    {"camera_uuid":"a","url":"rtsp://h/2","site_id":"s","tenant_id":"t"}]})");
  ASSERT_FALSE(shard);
  EXPECT_EQ(shard.error().message, "sources[1].camera_uuid must be unique within the shard");
}

TEST(ShardConfig, Source_TakesEverythingThatIsKnownAboutACamera) {
  auto source = read_source(source_text(R"("url":"rtsp://h/1","decode":"full","zones":[
    {"zone_id":1,"polygon":[[0,0],[10,0],[10,10]]}],"min_score":0.5,"model":{"detector":"none"})"), 4);
  ASSERT_TRUE(source) << source.error().message;
  EXPECT_EQ(source->config.decode, camera::Decode::full);
  EXPECT_EQ(source->config.zones.size(), 1u);
  EXPECT_EQ(source->config.model.detector, "none");
  EXPECT_EQ(source->config.max_fps, 4);
}

TEST(ShardConfig, SnapshotSource_IsReadInTheClustersWords) {
  auto source = read_source(source_text(R"("snapshotUrl":"http://h/snap.jpg","snapshotInterval":5000)"), 6);
  ASSERT_TRUE(source) << source.error().message;
  EXPECT_TRUE(source->snapshots);
  EXPECT_EQ(source->config.snapshot->interval_s, 5.0);
}

TEST(ShardConfig, FileSource_KeepsItsPath) {
  auto source = read_source(source_text(R"("url":"file:///footage/vtest.avi")"), 6);
  ASSERT_TRUE(source) << source.error().message;
  EXPECT_EQ(source->config.rtsp_url.reveal(), "file:///footage/vtest.avi");
  EXPECT_FALSE(source->snapshots);
}

TEST(ShardConfig, ZonesAndThresholds_AreNoReasonToDialAgain_AnotherUrlIs) {
  auto one = read_source(source_text(R"("url":"rtsp://h/1","min_score":0.5)"), 6);
  auto two = read_source(source_text(R"("url":"rtsp://h/1","max_fps":2)"), 6);
  auto other = read_source(source_text(R"("url":"rtsp://h/2")"), 6);
  auto udp = read_source(source_text(R"("url":"rtsp://h/1","transport":"udp")"), 6);
  EXPECT_TRUE(one->same_dial(*two));
  EXPECT_FALSE(one->same_dial(*other));
  EXPECT_FALSE(one->same_dial(*udp));
}

TEST(ShardConfig, Lease_SurvivesARoundTrip) {
  LeaseGrant lease{.camera = CameraId::trusted("c"),
                   .version = {77},
                   .tenure = {BootId::trusted("b"), {70}},
                   .valid_until = Instant(123456789us),
                   .adopt = lease::Tenure{BootId::trusted("a"), {60}},
                   .after = from_iso("2026-01-31T09:05:07.123Z")};
  auto read = read_leases(json::object{{"items", json::array{write_lease(lease)}}});
  ASSERT_TRUE(read) << read.error().message;
  const LeaseGrant& back = read->at(0);
  EXPECT_EQ(back.version, lease.version);
  EXPECT_EQ(back.tenure, lease.tenure);
  EXPECT_EQ(back.valid_until, lease.valid_until);
  EXPECT_EQ(back.adopt, lease.adopt);
  EXPECT_EQ(back.after, lease.after);
}

TEST(ShardConfig, LeasesStart_KeepsItsMicroseconds_SoThatNothingBeforeItIsEmittedAgain) {
  for (const char* text :
       {"2026-01-31T09:05:07.123456Z", "2026-01-31T09:05:07.000001Z", "1969-12-31T23:59:59.999999Z"}) {
    LeaseGrant lease{.camera = CameraId::trusted("c"), .version = {1}, .tenure = {BootId::trusted("b"), {1}}};
    lease.after = from_iso(text);
    ASSERT_TRUE(lease.after) << text;
    auto read = read_leases(json::object{{"items", json::array{write_lease(lease)}}});
    ASSERT_TRUE(read) << text;
    EXPECT_EQ(read->at(0).after, lease.after) << text;
  }
}

TEST(ShardConfig, SourceWithItsLease_IsReadWhole) {
  auto source = read_source(source_text(R"("url":"rtsp://h/1","zones":[],"lease":{"camera_uuid":"c","version":5,
    "grant_version":4,"boot_id":"b","valid_until_us":99})"), 6);
  ASSERT_TRUE(source) << source.error().message;
  ASSERT_TRUE(source->lease);
  EXPECT_EQ(source->lease->camera.str(), "c");
  EXPECT_EQ(source->lease->version.n, 5);
  EXPECT_EQ(source->lease->tenure.grant.n, 4);
}

TEST(ShardConfig, WhatAManagerWrites_IsWhatAWorkerReads) {
  auto shard = read(kExample);
  ASSERT_TRUE(shard);
  shard->standby = true;
  shard->broker = Broker{.host = "rabbit", .port = 5671, .vhost = "v", .user = "u", .password = Secret("p"), .tls = true,
                         .ca_file = "/ca.pem", .ex_detect = "d", .ex_status = "s", .ex_control = "c"};
  shard->preload = {{"onnx", "yolo11n"}, {"tflite", ""}};
  shard->control_token = Secret("0123456789abcdef");
  shard->dials_file = "/run/dials";
  shard->crash_file = "/run/crash-1.json";
  shard->sources[0].lease = LeaseGrant{.camera = CameraId::trusted("cam-1"),
                                       .version = {5},
                                       .tenure = {BootId::trusted("b"), {4}},
                                       .valid_until = Instant(99us)};
  json::object written = write_shard_config(*shard);
  auto back = read(json::to_text(written));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(write_shard_config(*back), written);
  EXPECT_EQ(back->broker, shard->broker);
  EXPECT_EQ(back->preload[0].name, "yolo11n");
  EXPECT_EQ(back->token.reveal(), "<jwt>");
  EXPECT_EQ(back->control_token, shard->control_token);
  EXPECT_EQ(back->sources[0].lease->version.n, 5);
  EXPECT_FALSE(back->sources[1].lease);
}

// An older worker refuses a document with a field that it does not know: none may be added.
TEST(ShardConfig, Document_HasNoFieldThatWorkersOfProtocol0DoNotKnow) {
  ShardConfig shard{.runner = RunnerId::trusted("r"), .control_plane = "http://h:1", .token = Secret("t")};
  shard.broker = Broker{.host = "rabbit"};
  shard.control_token = Secret("0123456789abcdef");
  shard.report_interval_s = 5;
  std::set<std::string> known{"runner_id", "shard_id", "max_fps", "cp", "telemetry", "standby", "preload",
                              "control_token", "dials_file", "crash_file", "sources", "amqp"};
  for (const auto& member : write_shard_config(shard))
    EXPECT_TRUE(known.contains(std::string(member.key()))) << member.key();
}

TEST(ShardConfig, LeaseWithoutADeadline_IsRefused) {
  auto read = read_leases(*json::parse_text(
      R"({"items":[{"camera_uuid":"c","version":3,"grant_version":3,"boot_id":"b"}]})"));
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().message, "items[0].valid_until_us is required");
}

}  // namespace
}  // namespace weir::link

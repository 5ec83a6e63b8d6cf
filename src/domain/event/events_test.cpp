#include "weir/event/events.hpp"

#include "weir/base/json.hpp"

#include <gtest/gtest.h>

namespace weir::event {
namespace {

using boost::json::kind;

const Place kPlace{TenantId::trusted("t-01"), SiteId::trusted("site-A"), CameraId::trusted("cam-2")};

WallTime at(std::string_view iso) { return *from_iso(iso); }

// Name and kind of every member, in order; numbers are all alike to a consumer.
std::vector<std::pair<std::string, kind>> shape(const json::value& object) {
  std::vector<std::pair<std::string, kind>> out;
  for (const auto& member : object.as_object())
    out.emplace_back(member.key(), member.value().is_number() ? kind::double_ : member.value().kind());
  return out;
}
json::value parsed(const std::string& text) {
  auto value = json::parse_text(text);
  EXPECT_TRUE(value) << text;
  return value ? *value : json::value();
}

DetectionEvent detection() {
  DetectionEvent event;
  event.event_id = "e-1";
  event.ts = at("2025-08-21T11:00:03Z");
  event.runner = RunnerId::trusted("runner-123");
  event.shard_id = "shard-0";
  event.place = kPlace;
  event.frame_id = 471234;
  event.fps = 5.7;
  event.detections = {{"person", 0.89, {1, 2.04, 300.46, 400}}, {"car", 0.77, {0, 0, 10, 10}, {7, 3}}};
  event.inference_s = 0.024;
  event.e2e_s = 0.145;
  return event;
}

TEST(Events, Detection_HasTheNamesAndTypesConsumersRelyOn) {
  json::value json = parsed(to_event(detection()).payload);
  std::vector<std::pair<std::string, kind>> expected = {
      {"ts", kind::string}, {"runner_id", kind::string}, {"shard_id", kind::string}, {"tenant_id", kind::string},
      {"site_id", kind::string}, {"camera_uuid", kind::string}, {"frame_id", kind::double_}, {"fps", kind::double_},
      {"detections", kind::array}, {"latency", kind::object}, {"event_id", kind::string}};
  EXPECT_EQ(shape(json), expected);
  EXPECT_EQ(json.at("ts"), "2025-08-21T11:00:03.000Z");
  EXPECT_EQ(json.at("frame_id"), 471234);
  const auto& seen = json.at("detections").as_array();
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(json::to_text(seen[0]), R"({"class":"person","conf":0.89,"bbox_xyxy":[1,2,300.5,400]})");
  EXPECT_EQ(json::to_text(seen[1]), R"({"class":"car","conf":0.77,"bbox_xyxy":[0,0,10,10],"zone_ids":[7,3]})");
  EXPECT_EQ(json::to_text(json.at("latency")), R"({"inference_s":0.024,"e2e_s":0.145})");
}

TEST(Events, Status_IsAnEdgeOrASummary) {
  StreamStatus status{"e-1", at("2025-08-21T11:00:03.250Z"), StreamState::connecting, kPlace,
                      RunnerId::trusted("runner-123"), "shard-0"};
  EXPECT_EQ(to_event(status).payload,
            R"({"type":"stream.status","state":"CONNECTING","camera_uuid":"cam-2","runner_id":"runner-123",)"
            R"("shard_id":"shard-0","ts":"2025-08-21T11:00:03.250Z","event_id":"e-1"})");
  status.state = StreamState::streaming;
  status.fps = 5.8;
  status.last_frame_ts = at("2025-08-21T11:00:02.050Z");
  status.last_frame_age_s = 1.2;
  status.size = {1280, 720};
  json::value summary = parsed(to_event(status).payload);
  EXPECT_EQ(summary.at("state"), "STREAMING");
  EXPECT_EQ(summary.at("fps"), 5.8);
  EXPECT_EQ(summary.at("last_frame_ts"), "2025-08-21T11:00:02.050Z");
  EXPECT_EQ(summary.at("last_frame_age_s"), 1.2);
  EXPECT_EQ(summary.at("width"), 1280);
  EXPECT_EQ(summary.at("height"), 720);
  EXPECT_FALSE(summary.as_object().contains("looked_fps"));
  status.looked_fps = 1.3;
  status.wanted_fps = 6;
  EXPECT_EQ(parsed(to_event(status).payload).at("looked_fps"), 1.3);
  EXPECT_EQ(parsed(to_event(status).payload).at("wanted_fps").to_number<double>(), 6);
  status.state = StreamState::disconnected;
  EXPECT_EQ(parsed(to_event(status).payload).at("state"), "DISCONNECTED");
}

TEST(Events, Error_AndHeartbeat_AreAsSpecified) {
  StreamErrorEvent error{"e-1", at("2025-08-21T11:00:03Z"), kPlace, RunnerId::trusted("runner-123"),
                         "RTSP_AUTH_FAILED", "401 Unauthorized", 8000};
  EXPECT_EQ(to_event(error).payload,
            R"({"type":"stream.error","camera_uuid":"cam-2","runner_id":"runner-123","code":"RTSP_AUTH_FAILED",)"
            R"("detail":"401 Unauthorized","retry_in_ms":8000,"ts":"2025-08-21T11:00:03.000Z","event_id":"e-1"})");
  RunnerHeartbeat beat{"e-2", at("2025-08-21T11:00:00Z"), RunnerId::trusted("r"), 37, 3, 41.2, 1024};
  EXPECT_EQ(to_event(beat).payload,
            R"({"type":"runner.heartbeat","runner_id":"r","streams_owned":37,"shards":3,"cpu_pct":41.2,)"
            R"("mem_mb":1024,"ts":"2025-08-21T11:00:00.000Z","event_id":"e-2"})");
}

TEST(Events, WhateverAStringHolds_TheTextIsJsonOnOneLine) {
  for (std::string text : {"a\"b\\c", "line\nbreak\r\t", "\x01\x1f", "naïve ✓", "bad\xff utf8\xc3", ""}) {
    StreamErrorEvent error{"e", {}, {}, {}, "X", text, 0};
    std::string json = to_event(error).payload;
    EXPECT_EQ(json.find('\n'), std::string::npos);
    std::string back(parsed(json).at("detail").as_string());
    if (valid_utf8(text)) EXPECT_EQ(back, text);
    else EXPECT_EQ(back, "bad? utf8?");
  }
}

TEST(Events, Numbers_AreRounded_NeverInExponents) {
  DetectionEvent event = detection();
  struct Case { double conf; std::string text; };
  for (const auto& [conf, text] : {Case{0.123456, "0.1235"}, {1, "1"}, {100, "100"}, {1e6, "1000000"}, {0.00001, "0"},
                                   {-0.00001, "0"}, {NAN, "0"}, {INFINITY, "0"}, {0.5, "0.5"}}) {
    event.detections = {{"x", conf, {}}};
    EXPECT_NE(to_event(event).payload.find("\"conf\":" + text + ","), std::string::npos) << to_event(event).payload;
  }
}

TEST(Events, EachGoesWhereItsKindGoes) {
  Event seen = to_event(detection());
  EXPECT_EQ(seen, (Event{"detections.topic", "detections.t-01.site-A.cam-2", "e-1", seen.payload, Kind::detection,
                         at("2025-08-21T11:00:03Z")}));
  StreamStatus status{.event_id = "e-2", .place = kPlace};
  EXPECT_EQ(to_event(status).topic, "status.topic");
  EXPECT_EQ(to_event(status).routing_key, "stream.status.t-01.site-A.cam-2");
  EXPECT_EQ(to_event(status).event_id, "e-2");
  EXPECT_EQ(to_event(status).kind, Kind::status);
  EXPECT_EQ(to_event(status, Kind::summary).kind, Kind::summary);
  Event error = to_event(StreamErrorEvent{.event_id = "e-3", .place = kPlace});
  EXPECT_EQ(error.topic, "status.topic");
  EXPECT_EQ(error.routing_key, "stream.error.t-01.site-A.cam-2");
  EXPECT_EQ(error.kind, Kind::error);
  Event beat = to_event(RunnerHeartbeat{.event_id = "e-4", .runner = RunnerId::trusted("r-1")});
  EXPECT_EQ(beat.topic, "status.topic");
  EXPECT_EQ(beat.routing_key, "runner.heartbeat.r-1");
}

TEST(Events, Stamp_IsAddedToTheText_AndNothingElseChanges) {
  const Event said = to_event(detection());
  const Stamp stamp{kPlace.camera, {(std::int64_t{1} << 40) | 5}, Instant(Duration(7))};
  Event out = stamped(said, stamp);
  json::value json = parsed(out.payload);
  EXPECT_EQ(json.at("lease_version"), (std::int64_t{1} << 40) | 5);
  EXPECT_EQ(json.as_object().size(), 12u);
  EXPECT_EQ(out.stamp, stamp);
  out.payload = said.payload;
  out.stamp.reset();
  EXPECT_EQ(out, said);
  EXPECT_EQ(stamped({.payload = "{}"}, {{}, {7}}).payload, R"({"lease_version":7})");
}

TEST(Events, Ids_SortByTheirTime) {
  std::string early = make_event_id(at("2025-08-21T11:00:03Z"), "ffff");
  std::string late = make_event_id(at("2026-08-21T11:00:03Z"), "0000");
  EXPECT_LT(early, late);
  EXPECT_EQ(early.size(), 12u + 5u);
}

}  // namespace
}  // namespace weir::event

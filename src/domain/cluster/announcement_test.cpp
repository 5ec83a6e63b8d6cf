#include "weir/cluster/announcement.hpp"
#include "weir/cluster/records.hpp"

#include <gtest/gtest.h>

namespace weir::cluster {
namespace {

const WallTime kThen = *from_iso("2026-02-03T04:05:06.789Z");
const ImageDetection kDetection{.subscription = {"d", "c"}, .timestamp = kThen, .detection = {.car_year = 2020},
                                .model_id = 7, .model_name = "m"};

TEST(Announcement, EachIsWrittenAsOtherProgramsKnowIt_WithTheEpoch) {
  auto text = [](auto what) { return write_announcement({.epoch = 9, .timestamp = kThen, .what = what}); };
  EXPECT_EQ(text(DetectionRouted{"ws://w:8000", kDetection}),
            R"({"type":"detection","epoch":9,"timestamp":"2026-02-03T04:05:06.789Z","workerUrl":"ws://w:8000",)"
            R"("data":{"subscriptionIdentifier":"d;c","timestamp":"2026-02-03T04:05:06.789Z",)"
            R"("data":{"detection":{"carYear":2020},"modelId":7,"modelName":"m"}}})");
  EXPECT_EQ(text(AssignmentsUpdated{{{"ws://w:8000", "slave-1"}}}),
            R"({"type":"assignments_updated","epoch":9,"timestamp":"2026-02-03T04:05:06.789Z",)"
            R"("assignments":{"ws://w:8000":"slave-1"}})");
  EXPECT_EQ(text(RegenerateSubscriptions{"camera.created", "slave-1"}),
            R"({"type":"regenerate_subscriptions","epoch":9,"timestamp":"2026-02-03T04:05:06.789Z",)"
            R"("reason":"camera.created","triggeredBy":"slave-1"})");
  EXPECT_EQ(text(SessionSet{"slave-1", 3, "lobby", 9}),
            R"({"type":"set_session","epoch":9,"timestamp":"2026-02-03T04:05:06.789Z","slaveId":"slave-1",)"
            R"("data":{"requestId":3,"displayIdentifier":"lobby","sessionId":9}})");
  EXPECT_EQ(text(CameraResubscribed{"slave-1", 3, "cam"}),
            R"({"type":"resubscribe_camera","epoch":9,"timestamp":"2026-02-03T04:05:06.789Z","slaveId":"slave-1",)"
            R"("data":{"requestId":3,"cameraIdentifier":"cam"}})");
  EXPECT_EQ(text(CommandResponse{"slave-1", 3}),
            R"({"type":"command_response","epoch":9,"timestamp":"2026-02-03T04:05:06.789Z","slaveId":"slave-1",)"
            R"("data":{"requestId":3,"success":true}})");
  EXPECT_EQ(text(ClusterHappened{"worker:online", {{"url", "ws://w:8000"}}}),
            R"({"type":"cluster_event","epoch":9,"timestamp":"2026-02-03T04:05:06.789Z","event":"worker:online",)"
            R"("payload":{"url":"ws://w:8000"}})");
  EXPECT_EQ(text(Heartbeat{"slave-1", 3}),
            R"({"type":"heartbeat","epoch":9,"timestamp":"2026-02-03T04:05:06.789Z","slaveId":"slave-1",)"
            R"("data":{"listeners":3}})");
}

TEST(Announcement, WhatIsWritten_IsReadAsItWas) {
  using What = decltype(Announcement::what);
  for (const What& what :
       std::vector<What>{DetectionRouted{"ws://w:8000", kDetection}, AssignmentsUpdated{{{"w", "s"}}},
                         AssignmentsUpdated{}, RegenerateSubscriptions{"r", "t"},
                         ClusterHappened{"worker:online", {{"url", "ws://w:8000"}}}, PatchRequested{7, json::array{1}},
                         SessionSet{"s", 3, "d", 9}, SessionSet{"s", 4, "d"}, PatchAnswered{"s", 5, {7, true, "done"}},
                         CameraResubscribed{"s", 6, "c"},
                         CommandResponse{"s", 3}, CommandResponse{"s", 5, false, "patch_over", "too late"},
                         Heartbeat{"s", 2}}) {
    Announcement announcement{.epoch = 1234567, .timestamp = kThen, .what = what, .stream_id = "17-0"};
    auto read = read_announcement(write_announcement(announcement));
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_TRUE(*read == announcement);
  }
}

TEST(Announcement, BadOnesAreRefused_WithThePathOfTheField) {
  auto refusal = [](std::string_view text) {
    auto read = read_announcement(text);
    return read ? "accepted" : read.error().message;
  };
  const std::string head = R"("epoch":1,"timestamp":"2026-01-01T00:00:00Z")";
  EXPECT_EQ(refusal("[]"), "body must be an object");
  EXPECT_EQ(refusal(R"({"type":"subscribe_camera",)" + head + "}"),
            "type must be one of: detection, assignments_updated, regenerate_subscriptions, cluster_event, "
            "patch_session, set_session, answer_patch, resubscribe_camera, command_response, heartbeat");
  EXPECT_EQ(refusal(R"({"type":"heartbeat","timestamp":"2026-01-01T00:00:00Z","slaveId":"s"})"), "epoch is required");
  EXPECT_EQ(refusal(R"({"type":"heartbeat","epoch":1,"timestamp":"now","slaveId":"s"})"),
            "timestamp must be a time such as 2026-01-31T09:05:07.123Z");
  EXPECT_EQ(refusal(R"({"type":"heartbeat",)" + head + "}"), "slaveId is required (and 1 more)");
  EXPECT_EQ(refusal(R"({"type":"set_session","slaveId":"s","data":{"requestId":1},)" + head + "}"),
            "data.displayIdentifier is required");
  EXPECT_EQ(refusal(R"({"type":"detection","workerUrl":"w",)" + head + "}"), "data is required");
  EXPECT_EQ(refusal(R"({"type":"detection","workerUrl":"w","data":{"subscriptionIdentifier":"d"},)" + head + "}"),
            "data.subscriptionIdentifier must be displayId;cameraId (and 2 more)");
  EXPECT_EQ(refusal(R"({"type":"assignments_updated","assignments":{"w":1},)" + head + "}"),
            "assignments must hold strings");
}

TEST(EpochJudge, DropsWhateverCarriesALowerEpoch) {
  EpochJudge judge;
  EXPECT_TRUE(judge.admit(0)) << "no master is known yet";
  EXPECT_TRUE(judge.admit(5));
  EXPECT_FALSE(judge.admit(4));
  EXPECT_TRUE(judge.admit(5));
  EXPECT_TRUE(judge.admit(6));
  EXPECT_FALSE(judge.admit(5));
  EXPECT_EQ(judge.highest(), 6);
}

TEST(Records, WhatIsWritten_IsReadAsItWas) {
  WorkerConnectionState connection{.url = "ws://w:8000", .process = "p", .online = true, .cpu_percent = 12.5,
                                   .subscriptions = {"d;c", "d;e"}, .last_heartbeat = kThen, .connected_at = kThen};
  auto connection_read = read_connection_state(write_record(connection));
  ASSERT_TRUE(connection_read) << connection_read.error().message;
  EXPECT_EQ(*connection_read, connection);
  for (auto status : {placement::Status::pending, placement::Status::active, placement::Status::failed,
                      placement::Status::recovering}) {
    ActualCameraSubscription actual{.subscription = {"d", "c"}, .worker = "ws://w:8000", .model_url = "http://m/7",
                                    .status = status, .assigned_at = kThen, .last_seen = kThen, .reason = "why"};
    auto actual_read = read_actual_subscription(write_record(actual));
    ASSERT_TRUE(actual_read) << actual_read.error().message;
    EXPECT_EQ(*actual_read, actual);
  }
  SlaveState slave{.slave = "s", .process = "s", .workload = 3, .last_seen = kThen, .capabilities = {{"zone", "a"}}};
  auto slave_read = read_slave_state(write_record(slave));
  ASSERT_TRUE(slave_read) << slave_read.error().message;
  EXPECT_EQ(*slave_read, slave);
}

TEST(Records, ConnectionState_HasTheNamesThatOtherProgramsRead) {
  EXPECT_EQ(write_record(WorkerConnectionState{.url = "ws://w:8000", .process = "p", .subscriptions = {"d;c"},
                                               .last_heartbeat = kThen, .connected_at = kThen}),
            R"({"url":"ws://w:8000","processId":"p","online":false,"cpuUsage":null,"memoryUsage":null,)"
            R"("gpuUsage":null,"gpuMemoryUsage":null,"subscriptionCount":1,"subscriptions":["d;c"],)"
            R"("lastHeartbeat":"2026-02-03T04:05:06.789Z","connectedAt":"2026-02-03T04:05:06.789Z"})");
}

TEST(Records, NoCredentialAndNoSignature_IsWritten) {
  std::string written = write_record(DesiredSubscription{
      .id = {"d", "c"}, .rtsp_url = Secret("rtsp://canary1:canary2@h/1?key=canary3"),
      .snapshot_url = Secret("http://h/s.jpg?token=canary4"), .model_id = 7, .model_name = "m", .created_at = kThen});
  written += write_record(ActualCameraSubscription{.subscription = {"d", "c"}, .worker = "ws://x:canary5@w:8000",
                                                   .model_url = "https://m/7?signature=canary6"});
  written += write_record(WorkerConnectionState{.url = "ws://x:canary7@w:8000"});
  written += write_announcement({.what = DetectionRouted{"ws://x:canary8@w:8000", kDetection}});
  written += write_announcement({.what = AssignmentsUpdated{{{"ws://x:canary9@w:8000", "s"}}}});
  EXPECT_EQ(written.find("canary"), std::string::npos) << written;
  EXPECT_NE(written.find(R"("rtspUrl":"rtsp://***@h/1?***")"), std::string::npos) << written;
}

}  // namespace
}  // namespace weir::cluster

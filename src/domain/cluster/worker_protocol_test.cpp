#include "weir/cluster/worker_protocol.hpp"

#include <gtest/gtest.h>

namespace weir::cluster {
namespace {

const WallTime kReceived = *from_iso("2026-02-03T04:05:06.789Z");
const Identifier kId{"display-123", "camera-456"};

Subscribe full_subscribe() {
  return {.subscription = kId,
          .rtsp_url = Secret("rtsp://u:p@10.0.0.9/1"),
          .snapshot_url = Secret("http://10.0.0.9/snap.jpg"),
          .snapshot_every = std::chrono::milliseconds(5000),
          .model_url = Secret("https://models/7?signature=x"),
          .model_name = "vehicles-v2",
          .model_id = 42,
          .crop = Crop{100, 50, 800, 600}};
}

std::string text_of(const Command& command) { return json::to_text(write_command(command)); }
std::string text_of(const Message& message) { return json::to_text(write_message(message)); }

// The problem that `text` is refused for: "path: what".
template <class T>
std::string refusal(const Result<T>& read) {
  return read ? "accepted" : read.error().message;
}
std::string message_refusal(std::string_view text) { return refusal(read_message(text, kReceived)); }

TEST(WorkerProtocol, CommandsAreWrittenAsWorkersKnowThem) {
  EXPECT_EQ(text_of(full_subscribe()),
            R"({"type":"subscribe","payload":{"subscriptionIdentifier":"display-123;camera-456",)"
            R"("rtspUrl":"rtsp://u:p@10.0.0.9/1","snapshotUrl":"http://10.0.0.9/snap.jpg","snapshotInterval":5000,)"
            R"("modelUrl":"https://models/7?signature=x","modelName":"vehicles-v2","modelId":42,)"
            R"("cropX1":100,"cropY1":50,"cropX2":800,"cropY2":600}})");
  EXPECT_EQ(text_of(Subscribe{.subscription = kId, .rtsp_url = Secret("rtsp://h/1"), .model_url = Secret("http://m"),
                              .model_name = "m", .model_id = 1}),
            R"({"type":"subscribe","payload":{"subscriptionIdentifier":"display-123;camera-456",)"
            R"("rtspUrl":"rtsp://h/1","modelUrl":"http://m","modelName":"m","modelId":1}})");
  EXPECT_EQ(text_of(Unsubscribe{kId}),
            R"({"type":"unsubscribe","payload":{"subscriptionIdentifier":"display-123;camera-456"}})");
  EXPECT_EQ(text_of(RequestState{}), R"({"type":"requestState"})");
  EXPECT_EQ(text_of(SetSessionId{"display-123", 7}),
            R"({"type":"setSessionId","payload":{"displayIdentifier":"display-123","sessionId":7}})");
  EXPECT_EQ(text_of(SetSessionId{"display-123", {}}),
            R"({"type":"setSessionId","payload":{"displayIdentifier":"display-123","sessionId":null}})");
  EXPECT_EQ(text_of(PatchSessionResult{7, false, "no listener answered"}),
            R"({"type":"patchSessionResult","payload":{"sessionId":7,"success":false,)"
            R"("message":"no listener answered"}})");
}

TEST(WorkerProtocol, MessagesAreWrittenAsWorkersWriteThem) {
  EXPECT_EQ(text_of(ImageDetection{.subscription = kId, .timestamp = kReceived, .detection = {.car_brand = "Fiat"},
                                   .model_id = 42, .model_name = "vehicles-v2"}),
            R"({"type":"imageDetection","subscriptionIdentifier":"display-123;camera-456",)"
            R"("timestamp":"2026-02-03T04:05:06.789Z","data":{"detection":{"carBrand":"Fiat"},)"
            R"("modelId":42,"modelName":"vehicles-v2"}})");
  EXPECT_EQ(text_of(StateReport{.cpu_percent = 12.5, .cameras = {{.subscription = kId, .model_id = 42}}}),
            R"({"type":"stateReport","cpuUsage":12.5,"memoryUsage":null,"cameraConnections":[)"
            R"({"subscriptionIdentifier":"display-123;camera-456","modelId":42,"modelName":"","online":true}]})");
  EXPECT_EQ(text_of(PatchSession{7, json::object{{"any", 1}}}),
            R"({"type":"patchSession","sessionId":7,"data":{"any":1}})");
}

TEST(WorkerProtocol, EveryCommandThatIsWritten_IsReadAsItWas) {
  for (const Command& command :
       std::vector<Command>{full_subscribe(), Unsubscribe{kId}, RequestState{}, SetSessionId{"d", 7},
                            SetSessionId{"d", {}}, PatchSessionResult{7, true, {}},
                            PatchSessionResult{7, false, "why"}}) {
    auto read = read_command(text_of(command));
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_TRUE(*read == command) << text_of(command);
  }
}

TEST(WorkerProtocol, EveryMessageThatIsWritten_IsReadAsItWas) {
  ImageDetection detection{.subscription = kId,
                           .timestamp = kReceived,
                           .detection = {"Panda", "Fiat", 2019, "hatchback", "AB 123", "private"},
                           .model_id = 42,
                           .model_name = "vehicles-v2",
                           .boxes = {{"car", 0.75, {1, 2, 30.5, 40}}}};
  auto read = read_message(text_of(detection), {});
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_TRUE(std::get<ImageDetection>(*read) == detection);
  PatchSession patch{-1, json::array{1, "two"}};
  read = read_message(text_of(patch), {});
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_TRUE(std::get<PatchSession>(*read) == patch);
  StateReport report{.cpu_percent = 1, .memory_percent = 2, .gpu_percent = 3, .gpu_memory_percent = 4,
                     .cameras = {{kId, 42, "m", false, Crop{0, 0, 10, 10}}, {{"d", "c"}, 1, "", true, {}}}};
  read = read_message(text_of(report), {});
  ASSERT_TRUE(read) << read.error().message;
  const auto& back = std::get<StateReport>(*read);
  EXPECT_EQ(back.cameras, report.cameras);
  EXPECT_EQ(back.gpu_memory_percent, 4);
  EXPECT_TRUE(back.problems.empty());
}

TEST(WorkerProtocol, UnknownFieldsAreIgnored_AndNullMeansAbsent) {
  auto read = read_message(R"({"type":"imageDetection","subscriptionIdentifier":"d;c",
      "timestamp":"2026-01-01T00:00:00Z","frame":17,
      "data":{"detection":{"carModel":null,"carYear":2020,"colour":"red"},"modelId":1,"modelName":"m","more":{}}})",
                           kReceived);
  ASSERT_TRUE(read) << read.error().message;
  const auto& detection = std::get<ImageDetection>(*read);
  EXPECT_EQ(detection.detection, (Detection{.car_year = 2020}));
  read = read_message(R"({"type":"imageDetection","subscriptionIdentifier":"d;c","timestamp":"2026-01-01T00:00:00Z",
      "data":{"detection":null,"modelId":1,"modelName":"m"}})", kReceived);
  ASSERT_TRUE(read) << "nothing was detected";
  EXPECT_EQ(std::get<ImageDetection>(*read).detection, Detection{});
  EXPECT_TRUE(read_command(R"({"type":"requestState","payload":null,"x":1})"));
}

TEST(WorkerProtocol, WorkersWriteTimesInManyWays) {
  auto time_of = [](std::string_view written) {
    auto read = read_message(fmt::format(R"({{"type":"imageDetection","subscriptionIdentifier":"d;c","timestamp":{},
        "data":{{"modelId":1,"modelName":"m"}}}})", written), kReceived);
    return read ? to_iso_exact(std::get<ImageDetection>(*read).timestamp) : read.error().message;
  };
  EXPECT_EQ(time_of(R"("2026-01-31T09:05:07.123Z")"), "2026-01-31T09:05:07.123Z");
  EXPECT_EQ(time_of(R"("2026-01-31T09:05:07.123456+00:00")"), "2026-01-31T09:05:07.123456Z");
  EXPECT_EQ(time_of(R"("2026-01-31T09:05:07")"), "2026-01-31T09:05:07.000Z");
  EXPECT_EQ(time_of("1769850307123"), "2026-01-31T09:05:07.123Z");
  EXPECT_EQ(time_of(R"("2026-01-31T09:05:07.%fZ")"), to_iso(kReceived)) << "a time that cannot be read";
  EXPECT_EQ(time_of("-5"), to_iso(kReceived));
  EXPECT_EQ(time_of("1e300"), to_iso(kReceived));
  EXPECT_EQ(time_of("true"), "timestamp must be a time such as 2026-01-31T09:05:07.123Z");
  EXPECT_EQ(time_of("null"), "timestamp is required");
}

TEST(WorkerProtocol, BadMessagesAreRefused_WithThePathOfTheField) {
  EXPECT_NE(message_refusal("").find("not valid JSON"), std::string::npos);
  EXPECT_NE(message_refusal("{").find("not valid JSON"), std::string::npos);
  EXPECT_EQ(message_refusal("[]"), "body must be an object");
  EXPECT_EQ(message_refusal("{}"), "type is required");
  EXPECT_EQ(message_refusal(R"({"type":5})"), "type must be a string");
  EXPECT_EQ(message_refusal(R"({"type":"subscribe"})"),
            "type must be one of: imageDetection, stateReport, patchSession");
  const std::string rest = R"("timestamp":"2026-01-01T00:00:00Z","data":{"modelId":1,"modelName":"m"}})";
  EXPECT_EQ(message_refusal(R"({"type":"imageDetection",)" + rest), "subscriptionIdentifier is required");
  for (const char* id : {"d", "", ";", "d;", ";c", "a;b;c", "d;c\\n"})
    EXPECT_EQ(message_refusal(fmt::format(R"({{"type":"imageDetection","subscriptionIdentifier":"{}",)", id) + rest),
              "subscriptionIdentifier must be displayId;cameraId") << id;
  EXPECT_EQ(message_refusal(R"({"type":"imageDetection","subscriptionIdentifier":5,)" + rest),
            "subscriptionIdentifier must be a string");
  const std::string begin = R"({"type":"imageDetection","subscriptionIdentifier":"d;c","timestamp":0,"data":)";
  EXPECT_EQ(message_refusal(begin + "5}"), "data must be an object");
  EXPECT_EQ(message_refusal(begin + R"({"modelId":"1","modelName":"m"}})"), "data.modelId must be a whole number");
  EXPECT_EQ(message_refusal(begin + R"({"modelId":1,"modelName":"m","detection":{"carYear":"old"}}})"),
            "data.detection.carYear must be a whole number");
  EXPECT_EQ(message_refusal(begin + R"({"modelId":1,"modelName":"m","boxes":[{"label":"a","score":1,"box":[1]}]}})"),
            "data.boxes[0].box must be a list of 4 values");
  EXPECT_EQ(message_refusal(R"({"type":"stateReport"})"), "cameraConnections is required");
  EXPECT_EQ(message_refusal(R"({"type":"stateReport","cameraConnections":{}})"), "cameraConnections must be a list");
  EXPECT_EQ(message_refusal(R"({"type":"stateReport","cpuUsage":"much","cameraConnections":[]})"),
            "cpuUsage must be a number");
  EXPECT_EQ(message_refusal(R"({"type":"patchSession","data":1})"), "sessionId is required");
}

TEST(WorkerProtocol, BadCommandsAreRefused_WithThePathOfTheField) {
  EXPECT_EQ(refusal(read_command(R"({"type":"subscribe"})")), "payload is required");
  EXPECT_EQ(refusal(read_command(R"({"type":"subscribe","payload":5})")), "payload must be an object");
  EXPECT_EQ(refusal(read_command(R"({"type":"unsubscribe","payload":{"subscriptionIdentifier":"d"}})")),
            "payload.subscriptionIdentifier must be displayId;cameraId");
  EXPECT_EQ(refusal(read_command(R"({"type":"restart"})")),
            "type must be one of: subscribe, unsubscribe, requestState, setSessionId, patchSessionResult");
  json::object command = write_command(full_subscribe());
  for (const auto& [field, problem] : std::vector<std::pair<const char*, const char*>>{
           {"cropX1", "payload.cropX1 needs cropY1, cropX2 and cropY2 beside it"},
           {"rtspUrl", "payload.rtspUrl is required"}}) {
    json::object broken = command;
    broken["payload"].as_object().erase(field);
    EXPECT_EQ(refusal(read_command(json::to_text(broken))), problem);
  }
  command["payload"].as_object()["cropX2"] = 100;
  EXPECT_EQ(refusal(read_command(json::to_text(command))),
            "payload.cropX2 must lie right of cropX1, and cropY2 below cropY1");
}

TEST(WorkerProtocol, NoRefusalRepeatsAValue) {
  auto read = read_command(R"({"type":"subscribe","payload":{"subscriptionIdentifier":"canary-1","rtspUrl":["canary-2"],
      "modelUrl":"","modelName":"m","modelId":"canary-3"}})");
  ASSERT_FALSE(read);
  EXPECT_EQ((read.error().message + json::to_text(read.error().details)).find("canary"), std::string::npos);
}

TEST(WorkerProtocol, ReportWithOneEntryThatCannotBeRead_IsStillAReport) {
  auto read = read_message(R"({"type":"stateReport","cpuUsage":5,"memoryUsage":null,"cameraConnections":[
      {"subscriptionIdentifier":"nonsense","modelId":1},5,{"subscriptionIdentifier":"d;c","modelId":1}]})", kReceived);
  ASSERT_TRUE(read) << read.error().message;
  const auto& report = std::get<StateReport>(*read);
  ASSERT_EQ(report.cameras.size(), 1u);
  EXPECT_EQ(report.cameras[0].subscription, (Identifier{"d", "c"}));
  ASSERT_EQ(report.problems.size(), 2u);
  EXPECT_EQ(report.problems[0].path, "cameraConnections[0].subscriptionIdentifier");
  EXPECT_EQ(report.problems[1].path, "cameraConnections[1]");
  EXPECT_FALSE(report.memory_percent);
}

}  // namespace
}  // namespace weir::cluster

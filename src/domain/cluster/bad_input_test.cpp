// Changed texts: whatever a peer sends is read or refused in words, and what was read is read the same again.
#include "weir/cluster/announcement.hpp"

#include <gtest/gtest.h>

#include <random>

namespace weir::cluster {
namespace {

const WallTime kReceived = *from_iso("2026-02-03T04:05:06.789Z");

const std::vector<std::string> kTexts = {
    R"({"type":"subscribe","payload":{"subscriptionIdentifier":"d;c","rtspUrl":"rtsp://u:p@h/1",)"
    R"("snapshotUrl":"http://h","snapshotInterval":500,"modelUrl":"http://m?x=1","modelName":"m","modelId":7,)"
    R"("cropX1":1,"cropY1":2,"cropX2":3,"cropY2":4}})",
    R"({"type":"unsubscribe","payload":{"subscriptionIdentifier":"d;c"}})",
    R"({"type":"setSessionId","payload":{"displayIdentifier":"d","sessionId":null}})",
    R"({"type":"patchSessionResult","payload":{"sessionId":7,"success":true,"message":"m"}})",
    R"({"type":"imageDetection","subscriptionIdentifier":"d;c","timestamp":"2026-01-31T09:05:07.123Z",)"
    R"("data":{"detection":{"carModel":"a","carYear":2019},"modelId":7,"modelName":"m",)"
    R"("boxes":[{"label":"car","score":0.5,"box":[1,2,3,4]}]}})",
    R"({"type":"stateReport","cpuUsage":12.5,"memoryUsage":null,"cameraConnections":[{"subscriptionIdentifier":"d;c",)"
    R"("modelId":7,"modelName":"m","online":true},{"subscriptionIdentifier":"e;f","modelId":8}]})",
    R"({"type":"patchSession","sessionId":7,"data":{"any":[1,2,{"x":null}]}})",
    R"({"type":"detection","epoch":9,"timestamp":"2026-01-31T09:05:07.123Z","workerUrl":"ws://w","data":)"
    R"({"subscriptionIdentifier":"d;c","timestamp":"2026-01-31T09:05:07.123Z","data":{"modelId":7,"modelName":"m"}}})",
    R"({"type":"assignments_updated","epoch":9,"timestamp":"2026-01-31T09:05:07.123Z","assignments":{"ws://w":"s"}})",
    R"({"type":"heartbeat","epoch":9,"timestamp":"2026-01-31T09:05:07.123Z","slaveId":"s","data":{"listeners":1}})",
    R"({"type":"set_session","epoch":9,"timestamp":"2026-01-31T09:05:07.123Z","slaveId":"s","data":{"requestId":3,)"
    R"("displayIdentifier":"d","sessionId":null}})",
    R"({"type":"cluster_event","epoch":9,"timestamp":"2026-01-31T09:05:07.123Z","event":"worker:online","payload":{}})"};
const std::vector<std::string> kWords = {"null", "true", "-1", "1e308", "99999999999999999999", "\"\"", "{}", "[]", ";",
                                         "\"d;c\"", "\\u0000", "\xFF", "[[[[", "\"type\":", ",", ":", "\"", "}", "]"};

class Mutator {
 public:
  explicit Mutator(unsigned seed) : random_(seed) {}
  std::string draw() {
    std::string text = kTexts[below(kTexts.size())];
    for (size_t n = 1 + below(3); n > 0; --n) {
      size_t at = below(text.size() + 1), length = below(1 + std::min<size_t>(12, text.size() - at));
      if (below(3) == 0) text.erase(at, length);
      else if (below(2) == 0) text.replace(at, length, kWords[below(kWords.size())]);
      else text.insert(below(text.size() + 1), text.substr(at, length));
    }
    return text;
  }

 private:
  size_t below(size_t n) { return random_() % n; }
  std::mt19937 random_;
};

// How often a text was read, and how often it was refused.
struct Count {
  int read = 0, refused = 0;

  template <class Read, class Write>
  void look(const std::string& text, Read read_text, Write write) {
    auto first = read_text(text);
    if (!first) {
      ++refused;
      EXPECT_FALSE(first.error().message.empty()) << text;
      EXPECT_TRUE(first.error().details.contains("field")) << text;
      return;
    }
    ++read;
    std::string written = write(*first);
    auto second = read_text(written);
    ASSERT_TRUE(second) << text << " became " << written << ": " << second.error().message;
    EXPECT_EQ(write(*second), written) << text;
  }
};

TEST(BadInput, WhateverIsSent_IsReadOrRefusedInWords) {
  Mutator mutator(1);
  Count messages, commands, announcements;
  for (int n = 0; n < 40'000; ++n) {
    std::string text = mutator.draw();
    messages.look(text, [](std::string_view t) { return read_message(t, kReceived); },
                  [](const Message& m) { return json::to_text(write_message(m)); });
    commands.look(text, read_command, [](const Command& c) { return json::to_text(write_command(c)); });
    announcements.look(text, read_announcement, write_announcement);
  }
  for (const Count* each : {&messages, &commands, &announcements}) {
    EXPECT_GT(each->read, 300);
    EXPECT_GT(each->refused, 300);
  }
}

}  // namespace
}  // namespace weir::cluster

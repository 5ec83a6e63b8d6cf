// A forwarder as its users meet it: media flow to a real RTMP server, every log event and metric is there, and whatever
// can be wrong from the start ends it with the right code and a sentence.
#include "forward.hpp"
#include "mediamtx.hpp"
#include "stall.hpp"

#include "shard.hpp"

#include "weir/base/json.hpp"

#include <gtest/gtest.h>

#include <filesystem>

namespace weir::test {
namespace {

class Egress : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::string missing = missing_servers(); !missing.empty()) GTEST_SKIP() << missing;
  }
  TempDir folder_;
};
using EgressWithMediaMtx = Egress;

// Three seconds, of which a second may pass until the first keyframe.
constexpr int kPictures = 45, kSounds = 90;
void expect_playable(const RtmpServer& server, const std::string& key) {
  RtmpServer::Seen seen = server.watch(key, 3);
  EXPECT_GE(seen.video, kPictures) << seen.text;
  EXPECT_GE(seen.audio, kSounds) << seen.text;
}

TEST_F(Egress, FromGo2rtc_ToNginx_VideoAndAudioArrivePlayable_AndEveryEventIsLogged) {
  Hub hub(folder_, {{"s1", "h264"}});
  RtmpServer server(folder_);
  ForwarderProcess forwarder(folder_, hub.base(), server.url("live", "key-canary"));
  ASSERT_TRUE(forwarder.forwarding()) << forwarder.child().log();
  expect_playable(server, "key-canary");
  EXPECT_GT(forwarder.metric("egress_forwarder_bytes_out_total"), 10'000);
  EXPECT_EQ(forwarder.metric("egress_forwarder_up"), 1);
  EXPECT_EQ(forwarder.metric("egress_forwarder_restarts_total"), 0);
  EXPECT_EQ(forwarder.metric("egress_forwarder_connect_latency_ms_count"), 2);
  forwarder.child().signal(SIGTERM);
  EXPECT_EQ(forwarder.child().wait(5s), 0);

  std::vector<std::string> events;
  std::string file = text_in_file(folder_.path() + "/logs/egress-s1.log");
  for (const boost::json::object& line : json_lines(file)) {
    events.emplace_back(line.at("event").as_string());
    for (std::string_view field : {"ts", "level", "service", "streamId", "runId", "instanceId", "inputUrl", "destHost",
                                   "destApp"})
      EXPECT_TRUE(line.contains(field)) << field << " is missing in " << json::to_text(line);
    EXPECT_EQ(line.at("service"), "egress-forwarder");
    EXPECT_EQ(line.at("destApp"), "live");
  }
  EXPECT_EQ(events, (std::vector<std::string>{"egress.starting", "egress.input.connecting", "egress.input.connected",
                                              "egress.output.connecting", "egress.output.connected",
                                              "egress.forwarding.started", "egress.forwarding.stopped", "egress.exit"}));
  EXPECT_EQ(forwarder.last("egress.input.connected", "videoCodec"), "h264");
  EXPECT_EQ(forwarder.last("egress.input.connected", "audioCodec"), "aac");
  EXPECT_EQ(forwarder.last("egress.input.connected", "width"), "320");
  EXPECT_EQ(forwarder.last("egress.forwarding.stopped", "reason"), "stopped");
  EXPECT_EQ(forwarder.last("egress.exit", "exitCode"), "0");
}

TEST_F(EgressWithMediaMtx, AStreamThatIsPublishedWithBFrames_ArrivesPlayable_InOrder) {
  if (!MediaMtx::missing().empty()) GTEST_SKIP() << MediaMtx::missing();
  MediaMtx hub(folder_);
  RtmpServer server(folder_);
  auto publisher = hub.publish("live/s1/out", {.clip = "bframes"});
  ForwarderProcess forwarder(folder_, hub.base(), server.url("live", "a"));
  ForwarderProcess recorded(folder_, hub.base(), server.url("kept", "b"));
  ASSERT_TRUE(forwarder.forwarding()) << forwarder.child().log() << hub.log();
  ASSERT_TRUE(recorded.forwarding()) << recorded.child().log();
  expect_playable(server, "a");
  for (ForwarderProcess* each : {&forwarder, &recorded}) {
    each->child().signal(SIGTERM);
    EXPECT_EQ(each->child().wait(5s), 0);
  }
  std::vector<std::int64_t> times = server.kept("b");
  EXPECT_GT(times.size(), 100u);
  EXPECT_TRUE(std::ranges::is_sorted(times));
}

TEST_F(EgressWithMediaMtx, APublisherThatGoesAndComesBack_IsForwardedOnTheSameConnection_AndTimeGoesOn) {
  if (!MediaMtx::missing().empty()) GTEST_SKIP() << MediaMtx::missing();
  MediaMtx hub(folder_);
  RtmpServer server(folder_);
  auto publisher = hub.publish("live/s1/out");
  ForwarderProcess forwarder(folder_, hub.base(), server.url("kept", "b"));
  ASSERT_TRUE(forwarder.forwarding()) << forwarder.child().log() << hub.log();
  publisher.reset();
  ASSERT_TRUE(forwarder.said("egress.retry.scheduled")) << forwarder.child().log();
  EXPECT_EQ(forwarder.events("egress.forwarding.stopped").size(), 1u);
  EXPECT_TRUE(eventually(5s, [&] { return forwarder.metric("egress_forwarder_forwarding") == 0; }));
  publisher = hub.publish("live/s1/out");
  ASSERT_TRUE(eventually(20s, [&] { return forwarder.events("egress.forwarding.started").size() == 2; }))
      << forwarder.child().log();
  double bytes = forwarder.metric("egress_forwarder_bytes_out_total");
  ASSERT_TRUE(eventually(20s, [&] { return forwarder.metric("egress_forwarder_bytes_out_total") > bytes + 20'000; }));
  EXPECT_EQ(forwarder.events("egress.output.connected").size(), 1u)
      << "the destination was not dialled again\n" << forwarder.child().log();
  forwarder.child().signal(SIGTERM);
  EXPECT_EQ(forwarder.child().wait(5s), 0);
  std::vector<std::int64_t> times = server.kept("b");
  EXPECT_GT(times.size(), 50u);
  EXPECT_TRUE(std::ranges::is_sorted(times));
}

TEST_F(EgressWithMediaMtx, AStreamThatComesBackAsAnother_IsAnnouncedAnew) {
  if (!MediaMtx::missing().empty()) GTEST_SKIP() << MediaMtx::missing();
  MediaMtx hub(folder_);
  RtmpServer server(folder_);
  auto publisher = hub.publish("live/s1/out");
  ForwarderProcess forwarder(folder_, hub.base(), server.url("live", "b"));
  ASSERT_TRUE(forwarder.forwarding()) << forwarder.child().log() << hub.log();
  publisher = nullptr;
  ASSERT_TRUE(forwarder.said("egress.retry.scheduled"));
  publisher = hub.publish("live/s1/out", {.clip = "large"});
  ASSERT_TRUE(eventually(20s, [&] { return forwarder.events("egress.output.connected").size() == 2; }))
      << forwarder.child().log();
  ASSERT_TRUE(forwarder.forwarding());
  expect_playable(server, "b");
}

TEST_F(Egress, WithoutTheStream_ItEndsWith20_AfterTheGrace) {
  Hub hub(folder_, {});
  ForwarderProcess forwarder(folder_, hub.base(), "rtmp://127.0.0.1:1/live/key",
                             {{"input_not_ready_grace_seconds", 3}});
  Instant begun = boot_now();
  EXPECT_EQ(forwarder.child().wait(20s), 20) << forwarder.child().log();
  EXPECT_GE(boot_now() - begun, 2s);
  EXPECT_EQ(forwarder.last("egress.retry.scheduled", "error.kind"), "rtsp_not_found");
  EXPECT_EQ(forwarder.last("egress.exit", "reason"), "input_not_ready");
  EXPECT_TRUE(forwarder.events("egress.output.connecting").empty());
}

TEST_F(Egress, ACodecThatRtmpCannotCarry_EndsWith10_AndIsNamed) {
  Hub hub(folder_, {{"s1", "hevc"}, {"s2", "opus"}});
  for (auto [id, name] : {std::pair{"s1", "hevc video"}, {"s2", "opus audio"}}) {
    ForwarderProcess forwarder(folder_, hub.base(), "rtmp://127.0.0.1:1/live/key", {{"stream_id", id}});
    EXPECT_EQ(forwarder.child().wait(20s), 10) << forwarder.child().log();
    EXPECT_EQ(forwarder.last("egress.exit", "error.kind"), "codec_unsupported");
    EXPECT_NE(forwarder.last("egress.exit", "error.message").find(name), std::string::npos) << forwarder.child().log();
  }
}

// ---- by hand ----

TEST_F(Egress, Disabled_ItEndsWith0_AndOneLine) {
  for (std::vector<std::string> variables : {std::vector<std::string>{}, {"EGRESS_ENABLED=false", "STREAM_ID=s1"}}) {
    Ended ended = run_egress(folder_, variables);
    EXPECT_EQ(ended.code, 0) << ended.text;
    ASSERT_EQ(ended.lines.size(), 1u) << ended.text;
    EXPECT_EQ(ended.lines[0].at("event"), "egress.disabled");
    EXPECT_EQ(std::ranges::count(ended.text, '\n'), 1) << ended.text;
  }
  EXPECT_EQ(json_lines(text_in_file(folder_.path() + "/logs/egress-s1.log")).size(), 1u) << "./logs is the default";
}

TEST_F(Egress, WrongSettings_EndWith10_AndASentenceWithoutTheKey) {
  const std::vector<std::string> good{"EGRESS_ENABLED=true", "STREAM_ID=s1", "RUN_ID=r", "INSTANCE_ID=i",
                                      "DEST_RTMP_URL=rtmp://h/app/xyzzy-canary"};
  struct Row {
    std::string variable, says;
  };
  for (const Row& row : {Row{"STREAM_ID=", "STREAM_ID is not set"}, Row{"STREAM_ID=../x", "STREAM_ID must have"},
                         Row{"RUN_ID=", "RUN_ID is not set"}, Row{"INSTANCE_ID=", "INSTANCE_ID is not set"},
                         Row{"DEST_RTMP_URL=", "DEST_RTMP_URL is not set"},
                         Row{"DEST_RTMP_URL=http://h/app/xyzzy-canary", "must begin with rtmp:// or rtmps://"},
                         Row{"DEST_RTMP_URL=rtmp://h/xyzzy-canary", "rtmp://host/app/key"},
                         Row{"MEDIAMTX_RTSP_BASE=h:8554", "MEDIAMTX_RTSP_BASE"},
                         Row{"RETRY_BASE_DELAY_MS=soon", "retry_base_delay_ms must be a whole number"},
                         Row{"RETRY_BASE_DELAY_MS=20000", "at most retry_max_delay_ms"},
                         Row{"EGRESS_ENABLED=perhaps", "egress_enabled must be true or false"}}) {
    std::vector<std::string> variables = good;
    variables.push_back(row.variable);
    Ended ended = run_egress(folder_, variables);
    EXPECT_EQ(ended.code, 10) << row.variable << ended.text;
    ASSERT_FALSE(ended.lines.empty()) << row.variable << ended.text;
    EXPECT_EQ(ended.lines.back().at("event"), "egress.exit");
    EXPECT_NE(ended.lines.back().at("error.message").as_string().find(row.says), std::string::npos) << ended.text;
    EXPECT_EQ(ended.text.find("xyzzy"), std::string::npos) << ended.text;
  }
  EXPECT_EQ(run_egress(folder_, {}, {"--no-such-flag"}).code, 10);
  Ended help = run_egress(folder_, {}, {"--help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_NE(help.text.find("weir-egress --config"), std::string::npos) << help.text;
}

TEST_F(Egress, AnotherInstanceOfARun_IsARestart_AnotherRunIsNot) {
  Hub hub(folder_, {});
  auto restarts = [&](const char* run, const char* instance) {
    ForwarderProcess forwarder(folder_, hub.base(), "rtmp://127.0.0.1:1/live/key",
                               {{"run_id", run}, {"instance_id", instance}});
    return forwarder.metric("egress_forwarder_restarts_total");
  };
  EXPECT_EQ(restarts("r1", "i1"), 0);
  EXPECT_EQ(restarts("r1", "i2"), 1);
  EXPECT_EQ(restarts("r1", "i3"), 2);
  EXPECT_EQ(restarts("r2", "i4"), 0);
}

TEST_F(Egress, TheLogFile_HasABound) {
  Hub hub(folder_, {});
  ForwarderProcess forwarder(folder_, hub.base(), "rtmp://127.0.0.1:1/live/key",
                             {{"log_bytes_max", 2000}, {"retry_base_delay_ms", 1}, {"retry_max_delay_ms", 5},
                              {"retry_jitter_ms", 1}});
  std::string path = folder_.path() + "/logs/egress-s1.log";
  ASSERT_TRUE(eventually(20s, [&] { return forwarder.events("egress.retry.scheduled").size() > 20; }));
  forwarder.child().signal(SIGTERM);
  EXPECT_EQ(forwarder.child().wait(5s), 0);
  for (const std::string& each : {path, path + ".1"}) {
    EXPECT_GT(text_in_file(each).size(), 0u);
    EXPECT_LE(text_in_file(each).size(), 4000u);
  }
}

}  // namespace
}  // namespace weir::test

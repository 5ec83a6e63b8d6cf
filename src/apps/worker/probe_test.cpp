#include "probe.hpp"

#include <gtest/gtest.h>

namespace weir::apps {
namespace {

Diagnosis good() {
  Diagnosis diagnosis;
  diagnosis.url = "rtsp://192.0.2.7/x";
  diagnosis.open_s = 0.2;
  diagnosis.facts = {.codec = "h264", .width = 1280, .height = 720};
  diagnosis.decoded = true;
  diagnosis.fps = 10;
  diagnosis.keyframes = 4;
  diagnosis.keyframe_interval_s = 1.0;
  return diagnosis;
}
bool advises(const Diagnosis& diagnosis, std::string_view word) {
  std::string all = fmt::format("{}", fmt::join(advice_on(diagnosis), "\n"));
  return all.find(word) != std::string::npos;
}

TEST(Probe, GoodCamera_NeedsNoAdvice) {
  EXPECT_TRUE(advice_on(good()).empty());
  EXPECT_NE(readable(good()).find("good"), std::string::npos);
  EXPECT_EQ(to_json(good()).at("ok"), true);
}

TEST(Probe, WhatIsNotGood_GetsItsSentence) {
  Diagnosis diagnosis = good();
  diagnosis.keyframe_interval_s = 10;
  EXPECT_TRUE(advises(diagnosis, "interval is 10.0 s; set it to 1 s"));
  diagnosis.keyframe_interval_s.reset();
  EXPECT_TRUE(advises(diagnosis, "Only one keyframe"));
  diagnosis.keyframes = 0;
  EXPECT_TRUE(advises(diagnosis, "intra-refresh"));
  diagnosis = good();
  diagnosis.facts.codec = "hevc";
  diagnosis.facts.reordered = true;
  diagnosis.facts.width = 3840, diagnosis.facts.height = 2160;
  diagnosis.fps = 25;
  diagnosis.tls = true;
  for (std::string_view word : {"H.265", "B-frames", "substream", "max_fps", "certificate"})
    EXPECT_TRUE(advises(diagnosis, word)) << word;
}

TEST(Probe, Failure_SaysWhatToDo_AndNothingOfTheStream) {
  Diagnosis diagnosis;
  diagnosis.error = restart::StreamError{restart::StreamErrorCode::rtsp_auth_failed, "401 Unauthorized"};
  EXPECT_TRUE(advises(diagnosis, "tried once only"));
  EXPECT_FALSE(advises(diagnosis, "keyframe"));
  EXPECT_NE(readable(diagnosis).find("RTSP_AUTH_FAILED: 401 Unauthorized"), std::string::npos);
  json::object out = to_json(diagnosis);
  EXPECT_EQ(out.at("ok"), false);
  EXPECT_EQ(out.at("code"), "RTSP_AUTH_FAILED");
  EXPECT_FALSE(out.contains("codec"));
}

TEST(Probe, CredentialsOfTheUrl_AreNotShown) {
  ffmpeg::SourceConfig config;
  config.url = Secret("rtsp://root:canary@no-such-camera.invalid/x?token=canary");
  Diagnosis diagnosis = probe(config, {});
  ASSERT_TRUE(diagnosis.error.has_value());
  EXPECT_EQ(diagnosis.error->code, restart::StreamErrorCode::dns_failed);
  EXPECT_EQ(readable(diagnosis).find("canary"), std::string::npos);
  EXPECT_EQ(json::to_text(to_json(diagnosis)).find("canary"), std::string::npos);
}

}  // namespace
}  // namespace weir::apps

#include "stream_words.hpp"

#include <gtest/gtest.h>

namespace weir::go2rtc {
namespace {

using restart::StreamErrorCode;

const CameraId kCamera = CameraId::trusted("cam-1");
const Secret kUrl("rtsp://user:p%40ss@192.0.2.7:554/ch1?profile=1");

TEST(Go2rtcStreamName, IsTheCamerasWithItsAddress_WhateverTheUser) {
  std::string name = stream_name(kCamera, kUrl);
  EXPECT_TRUE(name.starts_with("cam-1~")) << name;
  EXPECT_EQ(name.size(), 6u + 16u);
  EXPECT_EQ(name, stream_name(kCamera, Secret("rtsp://192.0.2.7:554/ch1?profile=1")));
  EXPECT_NE(name, stream_name(kCamera, Secret("rtsp://192.0.2.8:554/ch1?profile=1")));
  EXPECT_NE(name, stream_name(CameraId::trusted("cam-2"), kUrl));
}

TEST(Go2rtcSource, HasWeirsOptions_AndNoneOfTheCamerasUrl) {
  EXPECT_EQ(source_of(kUrl, 4500ms).reveal(),
            "rtsp://user:p%40ss@192.0.2.7:554/ch1?profile=1#media=video#backchannel=0#timeout=5");
  EXPECT_EQ(source_of(Secret("rtsp://192.0.2.7/a#transport=ws://192.0.2.9"), 5s).reveal(),
            "rtsp://192.0.2.7/a#media=video#backchannel=0#timeout=5");
}

// As go2rtc 1.9.14 answered, shortened; older versions show the user.
constexpr std::string_view kLive = R"({"producers":[{"id":21,"format_name":"rtsp","protocol":"rtsp+tcp",
 "remote_addr":"192.0.2.7:554","url":"rtsp://***@192.0.2.7:554/ch1?profile=1#media=video#backchannel=0#timeout=5",
 "medias":["video, recvonly, H264"],"bytes_recv":39636,"receivers":[{"id":22,"codec":{"codec_name":"h264"},
 "childs":[23],"bytes":39164,"packets":37}]}],"consumers":[{"id":20,"format_name":"rtsp","bytes_send":39959}]})";
constexpr std::string_view kIdle =
    R"({"producers":[{"url":"rtsp://user:p%40ss@192.0.2.7:554/ch1?profile=1#media=video"}],"consumers":null})";
constexpr std::string_view kAnothers = R"({"producers":[{"url":"rtsp://192.0.2.9/ch1"}],"consumers":[]})";

TEST(Go2rtcLook, ReadsWhatTheCameraDelivered_AndWhoReads) {
  Secret source = source_of(kUrl, 5s);
  auto live = read_look(kLive, source);
  ASSERT_TRUE(live) << live.error().message;
  EXPECT_TRUE(live->ours);
  EXPECT_EQ(live->bytes, 39164u);
  EXPECT_EQ(live->readers, 1u);
  auto idle = read_look(kIdle, source);
  ASSERT_TRUE(idle) << idle.error().message;
  EXPECT_TRUE(idle->ours);
  EXPECT_EQ(idle->bytes, 0u);
  EXPECT_EQ(idle->readers, 0u);
}

TEST(Go2rtcLook, SeesThatAStreamLeadsElsewhere) {
  auto look = read_look(kAnothers, source_of(kUrl, 5s));
  ASSERT_TRUE(look) << look.error().message;
  EXPECT_FALSE(look->ours);
}

TEST(Go2rtcLook, RefusesWhatIsNotAStream) {
  for (std::string_view answer : {"", "not json", "[]", "{}", R"({"producers":3})"})
    EXPECT_FALSE(read_look(answer, kUrl)) << answer;
  EXPECT_TRUE(read_look(R"({"producers":[3,{"receivers":[null,{"bytes":-1}]}]})", kUrl));
}

std::string line(std::string_view error, std::string_view stream, int time_ms) {
  return fmt::format(R"({{"level":"warn","error":"{}","stream":"{}","time":{},"message":"[rtsp]"}})", error, stream,
                     time_ms);
}

TEST(Go2rtcReason, IsTheNewestOfThatStream_SinceTheDial) {
  std::string log = line("streams: dial tcp 192.0.2.7:554: i/o timeout", "a", 1000) + "\n" +
                    line("streams: dial tcp 192.0.2.7:554: connect: connection refused", "a", 2000) + "\n" +
                    line("streams: wrong response on DESCRIBE", "b", 3000) + "\n";
  auto reason = read_reason(log, "a", WallTime(1500ms));
  ASSERT_TRUE(reason);
  EXPECT_EQ(reason->code, StreamErrorCode::tcp_refused);
  EXPECT_EQ(reason->detail,
            "go2rtc cannot reach the camera: streams: dial tcp 192.0.2.7:554: connect: connection refused");
  EXPECT_FALSE(read_reason(log, "a", WallTime(2500ms))) << "that was an earlier dial";
  EXPECT_FALSE(read_reason(log, "c", WallTime(0ms)));
  EXPECT_FALSE(read_reason("", "a", WallTime(0ms)));
  EXPECT_FALSE(read_reason("\n\nnot json\n", "a", WallTime(0ms)));
}

TEST(Go2rtcReason, HasTheCodeOfItsWords) {
  const std::pair<std::string_view, StreamErrorCode> rows[] = {
      {"streams: wrong user/pass", StreamErrorCode::rtsp_auth_failed},
      {"streams: user/pass not provided", StreamErrorCode::rtsp_auth_failed},
      {"streams: dial tcp: lookup cam.invalid on 192.0.2.53:53: no such host", StreamErrorCode::dns_failed},
      {"streams: dial tcp 192.0.2.7:554: i/o timeout", StreamErrorCode::tcp_timeout},
      {"streams: dial tcp 192.0.2.7:554: connect: no route to host", StreamErrorCode::tcp_timeout},
      {"streams: tls: first record does not look like a TLS handshake", StreamErrorCode::tls_failed},
      {"streams: wrong response on DESCRIBE", StreamErrorCode::rtsp_not_found},
      {"streams: EOF", StreamErrorCode::rtsp_protocol}};
  for (const auto& [words, code] : rows) {
    auto reason = read_reason(line(words, "a", 1000), "a", WallTime(0ms));
    ASSERT_TRUE(reason) << words;
    EXPECT_EQ(reason->code, code) << words;
  }
}

}  // namespace
}  // namespace weir::go2rtc

#include "weir/ffmpeg/source.hpp"

#include "camera_testing.hpp"

#include "weir/base/clock.hpp"

namespace weir::ffmpeg {
namespace {

using namespace testing;

std::string jpeg(int number) {
  Clip clip = encode({.encoder = "mjpeg", .pictures = 1, .format = AV_PIX_FMT_YUVJ420P, .number_from = number});
  return std::string(reinterpret_cast<const char*>(clip.packets[0]->data), static_cast<size_t>(clip.packets[0]->size));
}
std::string ok(std::string_view body) {
  return fmt::format("HTTP/1.1 200 OK\r\nContent-Type: image/jpeg\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{}",
                     body.size(), body);
}
std::unique_ptr<VideoSource> source_for(const std::string& url, Duration timeout = 5s) {
  SourceConfig config;
  config.url = Secret(url);
  config.loopback = true;
  config.connect_timeout = timeout;
  config.snapshot_interval = 50ms;
  auto source = make_source(config);
  EXPECT_TRUE(bool(source));
  return *std::move(source);
}
std::string outcome(const std::string& url, Duration timeout = 5s) {
  auto facts = source_for(url, timeout)->open();
  return facts ? "open" : facts.error().reason + ": " + facts.error().message;
}

TEST(SnapshotSource, EachFetch_IsAKeyPacket_AtItsInterval) {
  std::vector<std::string> pictures = {jpeg(1), jpeg(2), jpeg(3), jpeg(4)};
  std::string host;
  size_t served = 0;
  ScriptedCamera camera([&](Dial& dial) {
    std::string request = dial.request();
    host = request.substr(request.find("Host: "), 50);
    dial.send(ok(pictures[served++ % pictures.size()]));
  });
  auto source = source_for(fmt::format("http://localhost:{}/snap.jpg", camera.port()));
  Instant before = boot_now();
  auto facts = source->open();
  ASSERT_TRUE(bool(facts)) << facts.error().message;
  EXPECT_EQ(facts->codec, "mjpeg");
  EXPECT_EQ(facts->width, 320);
  EXPECT_EQ(facts->fps, 20);
  for (int i = 0; i < 4; ++i) {
    auto packet = source->read();
    ASSERT_TRUE(bool(packet)) << packet.error().message;
    EXPECT_TRUE((*packet)->key);
    EXPECT_EQ((*packet)->number, i);
    auto picture = source->decode_alone(*packet);
    ASSERT_TRUE(bool(picture));
    ASSERT_NE(*picture, nullptr);
    EXPECT_EQ(number_in(**picture), i + 1);
  }
  EXPECT_GE(boot_now() - before, 140ms);
  EXPECT_EQ(camera.dials(), 4);
  EXPECT_TRUE(host.starts_with(fmt::format("Host: localhost:{}\r\n", camera.port()))) << host;
}

TEST(SnapshotSource, CameraAtAnIpv6Address_IsNamedAsHttpNamesIt) {
  std::string request, picture = jpeg(1);
  ScriptedCamera camera(ScriptedCamera::Ipv6{}, [&](Dial& dial) {
    request = dial.request();
    dial.send(ok(picture));
  });
  if (camera.port() == 0) GTEST_SKIP() << "this machine has no IPv6";
  EXPECT_EQ(outcome(fmt::format("http://[::1]:{}/snap.jpg", camera.port())), "open");
  EXPECT_NE(request.find(fmt::format("Host: [::1]:{}\r\n", camera.port())), std::string::npos) << request;
}

TEST(SnapshotSource, Failures_BecomeTheirCodes) {
  struct Case {
    std::string answer, expected;
  };
  ScriptedCamera elsewhere([](Dial& dial) { dial.hold(); });
  for (const Case& each :
       {Case{"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n", "RTSP_AUTH_FAILED: 401 Unauthorized"},
        Case{"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "RTSP_NOT_FOUND: 404 Not Found"},
        Case{"HTTP/1.1 302 Found\r\nLocation: " + elsewhere.url("/", "", "http") + "\r\nContent-Length: 0\r\n\r\n",
             "URL_REFUSED: the camera redirects elsewhere, which is not followed"},
        Case{ok("<html>login</html>"), "RTSP_PROTOCOL: the camera's answer is not a JPEG"},
        Case{ok(""), "RTSP_PROTOCOL: the camera's answer is not a JPEG"}}) {
    ScriptedCamera camera([&](Dial& dial) {
      dial.request();
      dial.send(each.answer);
    });
    EXPECT_EQ(outcome(camera.url("/x.jpg", "", "http")), each.expected);
  }
  EXPECT_EQ(elsewhere.dials(), 0);
  ScriptedCamera silent([](Dial& dial) { dial.hold(); });
  EXPECT_EQ(outcome(silent.url("/", "", "http"), 500ms), "TCP_TIMEOUT: connected, but no answer within 0.5 s");
}

TEST(SnapshotSource, PictureThatNeverEnds_IsGivenUp) {
  ScriptedCamera camera([&](Dial& dial) {
    dial.request();
    dial.send("HTTP/1.1 200 OK\r\n\r\n\xFF\xD8");
    while (dial.send(std::string(1 << 20, 'x'))) {
    }
  });
  std::string said = outcome(camera.url("/x.jpg", "", "http"));
  EXPECT_TRUE(said.starts_with("RTSP_PROTOCOL: the camera's picture is larger")) << said;
}

}  // namespace
}  // namespace weir::ffmpeg

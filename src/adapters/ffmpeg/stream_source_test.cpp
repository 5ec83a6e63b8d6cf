#include "camera_testing.hpp"
#include "source_testing.hpp"
#include "temp_files.hpp"

#include "weir/base/clock.hpp"
#include "weir/base/log.hpp"

extern "C" {
#include <libavutil/md5.h>
}

#include <fcntl.h>

namespace weir::ffmpeg {
namespace {

using namespace testing;

// ---- what goes wrong, and what it is called ----

TEST(StreamSource, RefusedConnection_IsTcpRefused) {
  int port = ScriptedCamera([](Dial&) {}).port();  // gone already
  EXPECT_EQ(outcome(fmt::format("rtsp://127.0.0.1:{}/x", port)), "TCP_REFUSED: the connection was refused");
}

TEST(StreamSource, UnknownName_IsDnsFailed) {
  std::string said = outcome("rtsp://no-such-camera.invalid/x");
  EXPECT_TRUE(said.starts_with("DNS_FAILED: the name no-such-camera.invalid does not resolve")) << said;
}

struct Answer {
  const char* status;
  const char* expected;
};
TEST(StreamSource, Statuses_BecomeTheirCodes) {
  for (const Answer& each : {Answer{"401 Unauthorized", "RTSP_AUTH_FAILED: 401 Unauthorized"},
                             Answer{"403 Forbidden", "RTSP_AUTH_FAILED: 403 Forbidden"},
                             Answer{"404 Not Found", "RTSP_NOT_FOUND: 404 Not Found"},
                             Answer{"503 Service Unavailable",
                                    "RTSP_PROTOCOL: 503: the camera has no room for another session"},
                             Answer{"454 Session Not Found", "RTSP_PROTOCOL: the camera answered 454 to DESCRIBE"}}) {
    ScriptedCamera camera([&](Dial& dial) {
      for (std::string request; !(request = dial.request()).empty();)
        dial.answer(request, request.starts_with("DESCRIBE") ? each.status : "200 OK");
    });
    EXPECT_EQ(outcome(camera.url()), each.expected);
    EXPECT_EQ(camera.dials(), 1) << each.status;
  }
}

TEST(StreamSource, SilentCamera_IsATimeout_WithinItsBound) {
  ScriptedCamera camera([](Dial& dial) { dial.hold(); });
  SourceConfig config = config_for(camera.url());
  config.connect_timeout = 500ms;
  Instant before = boot_now();
  EXPECT_EQ(outcome(config), "TCP_TIMEOUT: connected, but no answer within 0.5 s");
  EXPECT_LT(boot_now() - before, 5s);
}

TEST(StreamSource, Garbage_IsAProtocolError) {
  for (std::string garbage : {std::string("HTTP/1.1 400 Bad Request\r\n\r\n"), std::string(5000, '\n'),
                              std::string("\0\1\2\3\n\xFF\xFE\r\n\r\n", 11), std::string("RTSP/1.0 banana\r\n\r\n"),
                              std::string("SSH-2.0-OpenSSH_9.2\r\n")}) {
    ScriptedCamera camera([&](Dial& dial) {
      dial.request();
      dial.send(garbage);
      dial.hold();
    });
    SourceConfig config = config_for(camera.url());
    config.connect_timeout = 300ms;
    std::string said = outcome(config);
    EXPECT_TRUE(said.starts_with("RTSP_PROTOCOL: ")) << said;
  }
}

TEST(StreamSource, CameraThatHangsUp_IsAProtocolError) {
  ScriptedCamera camera([](Dial& dial) { dial.request(); });
  EXPECT_EQ(outcome(camera.url()), "RTSP_PROTOCOL: the camera closed the connection without an answer");
}

TEST(StreamSource, PlainServer_BehindRtsps_IsTlsFailed) {
  ScriptedCamera camera([](Dial& dial) {
    dial.send("RTSP/1.0 400 Bad Request\r\n\r\n");
    dial.hold();
  });
  EXPECT_EQ(outcome(camera.url("/x", "", "rtsps")), "TLS_FAILED: the TLS handshake failed");
}

TEST(StreamSource, Redirect_IsNotFollowed) {
  std::atomic<int> reached = 0;
  ScriptedCamera elsewhere([&](Dial& dial) {
    ++reached;
    dial.hold();
  });
  for (const char* method : {"OPTIONS", "DESCRIBE", "SETUP", "PLAY"}) {
    ScriptedCamera camera([&](Dial& dial) {
      for (std::string request; !(request = dial.request()).empty();) {
        if (request.starts_with(method))
          dial.answer(request, "302 Moved", "Location: " + elsewhere.url() + "\r\n");
        else if (request.starts_with("DESCRIBE"))
          dial.answer(request, "200 OK", "Content-Type: application/sdp\r\n", kH264);
        else
          dial.answer(request, "200 OK", "Transport: RTP/AVP/TCP;unicast;interleaved=0-1\r\nSession: 1\r\n");
      }
    });
    std::string said = outcome(camera.url());
    // Later ones FFmpeg does not follow by itself.
    bool early = std::string_view(method) == "OPTIONS" || std::string_view(method) == "DESCRIBE";
    EXPECT_TRUE(said.starts_with(early ? "URL_REFUSED" : "RTSP_PROTOCOL")) << method << ": " << said;
  }
  EXPECT_EQ(reached, 0);
  EXPECT_EQ(elsewhere.dials(), 0);
}

TEST(StreamSource, ForbiddenPlaces_AreRefused_WithoutADial) {
  SourceConfig config = config_for("rtsp://169.254.1.1/x");
  EXPECT_EQ(outcome(config), "URL_REFUSED: the camera's address must not be a link-local address");
  config.url = Secret("rtsp://[ff02::1]/x");
  EXPECT_EQ(outcome(config), "URL_REFUSED: the camera's address must not be a multicast address");
  config.url = Secret("rtsp://0.0.0.0/x");
  EXPECT_EQ(outcome(config), "URL_REFUSED: the camera's address must not be an unspecified address");
  ScriptedCamera camera([](Dial& dial) { dial.hold(); });
  for (std::string host : {"127.0.0.1", "localhost", "[::1]"}) {
    config = config_for(fmt::format("rtsp://{}:{}/x", host, camera.port()));
    config.loopback = false;
    EXPECT_EQ(outcome(config), "URL_REFUSED: the camera's address must not be a loopback address") << host;
  }
  EXPECT_EQ(camera.dials(), 0);
  for (std::string url : {"ftp://192.0.2.1/x", "concat:/etc/passwd", "file:///etc/passwd", "not a url",
                          "rtmp://192.0.2.1/x"})
    EXPECT_TRUE(outcome(url).starts_with("URL_REFUSED")) << url;
}

TEST(StreamSource, UnknownCodec_AndNoVideo_AreUnsupported) {
  for (std::string_view media : {"m=video 0 RTP/AVP 96\r\na=rtpmap:96 FANCY/90000\r\na=control:track1\r\n",
                                 "m=audio 0 RTP/AVP 0\r\na=control:track1\r\n"}) {
    std::string description = "v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\n" + std::string(media);
    ScriptedCamera camera([&](Dial& dial) {
      if (greet(dial, description)) dial.hold();
    });
    std::string said = outcome(camera.url());
    EXPECT_TRUE(said.starts_with("CODEC_UNSUPPORTED: ")) << said;
  }
}

// ---- credentials ----

std::string md5(const std::string& text) {
  std::uint8_t sum[16];
  av_md5_sum(sum, reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
  std::string hex;
  for (std::uint8_t byte : sum) hex += fmt::format("{:02x}", byte);
  return hex;
}
std::string field(const std::string& request, const std::string& name) {
  size_t at = request.find(name + "=\"");
  if (at == std::string::npos) return "";
  at += name.size() + 2;
  return request.substr(at, request.find('"', at) - at);
}

TEST(StreamSource, Digest_IsAnsweredWithThePassword_EscapedOrNot) {
  Clip clip = encode({.pictures = 20});
  std::atomic<int> challenged = 0;
  ScriptedCamera camera([&](Dial& dial) {
    for (std::string request; !(request = dial.request()).empty();) {
      std::string method = request.substr(0, request.find(' '));
      std::string right = md5(md5("cam:weir:p@ss/w:rd") + ":abc:" + md5(method + ":" + field(request, "uri")));
      if (field(request, "response") != right) {
        ++challenged;
        dial.answer(request, "401 Unauthorized", "WWW-Authenticate: Digest realm=\"weir\", nonce=\"abc\"\r\n");
      } else if (method == "DESCRIBE") {
        dial.answer(request, "200 OK", "Content-Type: application/sdp\r\n", kH264);
      } else {
        dial.answer(request, "200 OK", "Transport: RTP/AVP/TCP;unicast;interleaved=0-1\r\nSession: 1\r\n");
        if (method == "PLAY" && play(dial, clip)) dial.hold();
      }
    }
  });
  EXPECT_EQ(outcome(camera.url("/stream?x=1", "cam:p%40ss%2Fw%3Ard@")), "open");
  EXPECT_EQ(challenged, 1);
  EXPECT_EQ(outcome(camera.url("/stream", "cam:wrong@")), "RTSP_AUTH_FAILED: 401 Unauthorized");
  EXPECT_EQ(challenged, 3) << "a wrong password is presented once";
  EXPECT_EQ(outcome(camera.url()), "RTSP_AUTH_FAILED: 401 Unauthorized");
  std::string longest(140, 'x');
  EXPECT_TRUE(outcome(camera.url("/stream", "cam:" + longest + "@")).starts_with("URL_REFUSED"));
}

TEST(StreamSource, Passwords_AreNeitherInTheLog_NorInErrors) {
  test::TempDir folder;
  std::string path = folder.path() + "/log";
  int fd = open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  log::configure({.level = log::Level::debug, .fd = fd});
  std::string errors;
  for (const char* status : {"401 Unauthorized", "404 Not Found", "302 Moved", "500 Oops"}) {
    ScriptedCamera camera([&](Dial& dial) {
      for (std::string request; !(request = dial.request()).empty();)
        dial.answer(request, status, "Location: rtsp://root:canary%21pw@127.0.0.1:1/token=canary-token\r\n");
    });
    errors += outcome(camera.url("/s?token=canary-token", "root:canary%21pw@")) + "\n";
  }
  log::configure({.level = log::Level::off});
  ::close(fd);
  std::string written = test::text_in_file(path);
  EXPECT_NE(written.find("\"ffmpeg\""), std::string::npos) << "FFmpeg's lines are in the log";
  for (const std::string& text : {written, errors})
    for (std::string secret : {"canary%21pw", "canary!pw", "canary-token"})
      EXPECT_EQ(text.find(secret), std::string::npos) << text;
}

TEST(StreamSource, LoginThatTheCameraRepeats_IsNotInTheLog) {
  test::TempDir folder;
  std::string path = folder.path() + "/log";
  int fd = open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  log::configure({.level = log::Level::debug, .fd = fd});
  bool repeated = false;
  ScriptedCamera camera([&](Dial& dial) {
    for (std::string request; !(request = dial.request()).empty();) {
      size_t login = request.find("Authorization: Basic ");
      repeated = login != std::string::npos;
      if (repeated)
        dial.answer(request, "454 not for " + request.substr(login + 15, request.find('\r', login) - login - 15));
      else
        dial.answer(request, "401 Unauthorized", "WWW-Authenticate: Basic realm=\"r\"\r\n");
    }
  });
  outcome(camera.url("/s", "root:canary%21pw@"));
  log::configure({.level = log::Level::off});
  ::close(fd);
  std::string written = test::text_in_file(path);
  EXPECT_TRUE(repeated);
  EXPECT_NE(written.find("not for Basic ***"), std::string::npos) << written;
  EXPECT_EQ(written.find("cm9vdDpjYW5hcnkhcHc="), std::string::npos) << written;  // root:canary!pw
}

// Port 0 becomes the one that was free.
int udp_socket(const char* address, int& port) {
  int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(static_cast<std::uint16_t>(port));
  inet_pton(AF_INET, address, &at.sin_addr);
  socklen_t size = sizeof at;
  EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&at), size), 0) << address << " " << port;
  getsockname(fd, reinterpret_cast<sockaddr*>(&at), &size);
  port = ntohs(at.sin_port);
  return fd;
}

TEST(StreamSource, CameraThatNamesAnotherSenderOfItsPackets_IsAnsweredItself) {
  int port = 0;
  int here = udp_socket("127.0.0.1", port), elsewhere = udp_socket("127.0.0.2", port);
  ScriptedCamera camera([&](Dial& dial) {
    for (std::string request; !(request = dial.request()).empty();) {
      std::string ports = request.starts_with("SETUP")
                              ? fmt::format("transport: RTP/AVP/UDP;unicast;{};server_port={}-{};source=127.0.0.2\r\n",
                                            "client_port=5000-5001", port, port + 1)
                              : "";
      if (request.starts_with("DESCRIBE")) dial.answer(request, "200 OK", "Content-Type: application/sdp\r\n", kH264);
      else dial.answer(request, "200 OK", ports + "Session: 1\r\n");
      if (request.starts_with("PLAY")) return;
    }
  });
  SourceConfig config = config_for(camera.url());
  config.transport = camera::Transport::udp;
  config.stall_timeout = 300ms;
  outcome(config);
  char byte = 0;
  EXPECT_GT(recv(here, &byte, 1, 0), 0) << "the way for the packets is opened";
  EXPECT_LT(recv(elsewhere, &byte, 1, 0), 0);
  ::close(here);
  ::close(elsewhere);
}

// ---- streams ----

TEST(StreamSource, Stream_IsRead_PictureByPicture) {
  Clip clip = encode({.pictures = 40});
  ScriptedCamera camera([&](Dial& dial) {
    if (greet(dial) && play(dial, clip)) dial.hold();
  });
  auto source = source_for(config_for(camera.url()));
  auto facts = source->open();
  ASSERT_TRUE(bool(facts)) << facts.error().message;
  EXPECT_EQ(facts->codec, "h264");
  EXPECT_EQ(facts->width, 320);
  EXPECT_EQ(facts->height, 240);
  EXPECT_FALSE(facts->audio);
  EXPECT_EQ(facts->peer, "127.0.0.1");
  int shown = 0;
  for (int i = 0; i < 39; ++i) {
    auto packet = source->read();
    ASSERT_TRUE(bool(packet)) << packet.error().message;
    EXPECT_EQ((*packet)->number, i);
    EXPECT_EQ((*packet)->key, i % 10 == 0);
    EXPECT_EQ((*packet)->stream_time, i * 100ms);
    EXPECT_LT(boot_now() - (*packet)->received, 10s);
    auto pictures = source->decode(*packet);
    ASSERT_TRUE(bool(pictures));
    for (const auto& picture : *pictures) EXPECT_EQ(number_in(*picture), shown++);
  }
  EXPECT_EQ(shown, 39);
}

TEST(StreamSource, FirstPicture_WasNotReceivedAfterTheSecond) {
  Clip clip = encode({.pictures = 4});
  ScriptedCamera camera([&](Dial& dial) {
    if (greet(dial) && play(dial, clip)) dial.hold();
  });
  auto source = source_for(config_for(camera.url()));
  ASSERT_TRUE(bool(source->open()));
  auto one = source->read(), two = source->read();
  ASSERT_TRUE(one && two);
  EXPECT_LE((*one)->received, (*two)->received);
}

// What lies in the connection is as old as the stream's own time says.
TEST(StreamSource, ReaderThatCannotKeepUp_DoesNotTakeOldPicturesForNew) {
  Clip clip = encode({.pictures = 20, .fps = 1000});
  std::atomic<WallTime> sent = WallTime{};
  ScriptedCamera camera([&](Dial& dial) {
    if (!greet(dial) || !play(dial, clip)) return;
    sent = wall_now();
    dial.hold();
  });
  auto source = source_for(config_for(camera.url()));
  ASSERT_TRUE(bool(source->open()));
  for (Instant until = boot_now() + 5s; sent.load() == WallTime{} && boot_now() < until;) std::this_thread::yield();
  WallTime last{};
  for (int i = 0; i < 18; ++i) {
    for (Instant until = boot_now() + 20ms; boot_now() < until;) {
      // what it does with each picture
    }
    auto packet = source->read();
    ASSERT_TRUE(bool(packet)) << packet.error().message;
    last = (*packet)->captured;
  }
  EXPECT_LT(last, sent.load() + 150ms);
}

TEST(StreamSource, SchemeInCapitals_IsDialledLikeAnyOther) {
  Clip clip = encode({.pictures = 5});
  ScriptedCamera camera([&](Dial& dial) {
    if (greet(dial) && play(dial, clip)) dial.hold();
  });
  EXPECT_EQ(outcome(camera.url("/stream", "", "RTSP")), "open");
}

TEST(StreamSource, SilenceAfterPictures_IsStalled_WithinItsBound) {
  Clip clip = encode({.pictures = 5});
  ScriptedCamera camera([&](Dial& dial) {
    if (greet(dial) && play(dial, clip)) dial.hold();
  });
  SourceConfig config = config_for(camera.url());
  config.stall_timeout = 1s;
  auto source = source_for(config);
  ASSERT_TRUE(bool(source->open()));
  for (int i = 0; i < 5; ++i) {
    Instant before = boot_now();
    auto packet = source->read();
    if (packet) continue;
    EXPECT_EQ(packet.error().reason, "STALLED");
    EXPECT_EQ(packet.error().message, "no picture for 1 s");
    EXPECT_LT(boot_now() - before, 5s);
    return;
  }
  FAIL() << "the fifth picture has no end";
}

TEST(StreamSource, Audio_IsMentioned_ButNotFetched) {
  Clip clip = encode({.pictures = 5});
  ScriptedCamera camera([&](Dial& dial) {
    std::string description = std::string(kH264) + "m=audio 0 RTP/AVP 0\r\na=control:track2\r\n";
    if (greet(dial, description) && play(dial, clip)) dial.hold();
  });
  auto source = source_for(config_for(camera.url()));
  auto facts = source->open();
  ASSERT_TRUE(bool(facts)) << facts.error().message;
  EXPECT_TRUE(facts->audio);
}

TEST(StreamSource, CameraThatEndsTheStream_IsAProtocolError) {
  Clip clip = encode({.pictures = 5});
  ScriptedCamera camera([&](Dial& dial) {
    if (greet(dial)) play(dial, clip);
  });
  auto source = source_for(config_for(camera.url()));
  ASSERT_TRUE(bool(source->open()));
  for (int i = 0; i < 10; ++i) {
    auto packet = source->read();
    if (packet) continue;
    EXPECT_EQ(packet.error().reason, "RTSP_PROTOCOL");
    EXPECT_EQ(packet.error().message, "the camera ended the stream");
    return;
  }
  FAIL() << "the stream never ends";
}

TEST(StreamSource, SizeThatChanges_RenewsTheFacts) {
  Clip small = encode({.pictures = 10}), large = encode({.width = 640, .height = 480, .pictures = 10});
  ScriptedCamera camera([&](Dial& dial) {
    if (greet(dial) && play(dial, small) && play(dial, large, 10)) dial.hold();
  });
  auto source = source_for(config_for(camera.url()));
  ASSERT_TRUE(bool(source->open()));
  EXPECT_EQ(source->facts().width, 320);
  for (int i = 0; i < 19; ++i) {
    auto packet = source->read();
    ASSERT_TRUE(bool(packet)) << packet.error().message;
    ASSERT_TRUE(bool(source->decode(*packet)));
  }
  EXPECT_EQ(source->facts().width, 640);
  EXPECT_EQ(source->facts().height, 480);
}

TEST(StreamSource, Interrupt_EndsABlockedCall_AtOnce_AndAllLaterOnes) {
  Clip clip = encode({.pictures = 3});
  std::atomic<bool> farewell = false;
  ScriptedCamera camera([&](Dial& dial) {
    if (!greet(dial) || !play(dial, clip)) return;
    for (std::string request; !(request = dial.request()).empty();)
      if (request.starts_with("TEARDOWN")) farewell = true;
  });
  SourceConfig config = config_for(camera.url());
  config.stall_timeout = 30s;
  auto source = source_for(config);
  ASSERT_TRUE(bool(source->open()));
  ASSERT_TRUE(bool(source->read()));
  ASSERT_TRUE(bool(source->read()));
  std::atomic<bool> blocked = false;
  Instant interrupted_at;
  std::thread interrupter([&] {
    while (!blocked) std::this_thread::yield();
    interrupted_at = boot_now();
    source->interrupt();
  });
  blocked = true;
  auto ended = source->read();
  Duration late = boot_now() - interrupted_at;
  interrupter.join();
  ASSERT_FALSE(bool(ended));
  EXPECT_EQ(ended.error().reason, "interrupted");
  EXPECT_LT(late, 10s) << "long before it would have stalled";
  EXPECT_EQ(source->read().error().reason, "interrupted");
  source->close();
  for (Instant until = boot_now() + 5s; !farewell && boot_now() < until;) std::this_thread::yield();
  EXPECT_TRUE(farewell) << "a camera with few sessions hears of the end";
  EXPECT_EQ(source->open().error().reason, "interrupted");
}

}  // namespace
}  // namespace weir::ffmpeg

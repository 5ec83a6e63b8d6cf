#include "weir/go2rtc/restream.hpp"

#include "weir/base/clock.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <gtest/gtest.h>

#include <thread>

namespace weir::go2rtc {
namespace {

using boost::asio::ip::tcp;

// What is behind a go2rtc that never gets as far as to be read.
class Unread final : public VideoSource {
 public:
  Result<StreamFacts> open() override { return never(); }
  Result<PacketPtr> read() override { return never(); }
  Result<std::vector<PicturePtr>> decode(const PacketPtr&) override { return never(); }
  Result<PicturePtr> decode_alone(const PacketPtr&) override { return never(); }
  void restart_decoder() override {}
  void close() override {}
  void interrupt() override {}
  StreamFacts facts() const override { return {}; }

 private:
  static Error never() { return stream_failure(restart::StreamErrorCode::stalled, "nobody opens this stream"); }
};

const CameraId kCamera = CameraId::trusted("cam-1");

Result<std::unique_ptr<VideoSource>> make(const std::string& url, int api_port, std::string* local = nullptr) {
  Config config{fmt::format("http://127.0.0.1:{}", api_port), "rtsp://127.0.0.1:8554"};
  auto open = [local](const Secret& at) -> Result<std::unique_ptr<VideoSource>> {
    if (local != nullptr) *local = at.reveal();
    return std::unique_ptr<VideoSource>(new Unread);
  };
  auto judge = [](const Secret& any) -> Result<Secret> { return any; };
  return make_restream(config, kCamera, Secret(url), judge, open);
}

TEST(Restream, TakesRtspOnly) {
  for (const char* url :
       {"exec:touch x", "ffmpeg:rtsp://192.0.2.7/a", "http://192.0.2.7/a.jpg", "echo:rtsp://a", "rtspx://a", ""}) {
    auto made = make(url, 1);
    ASSERT_FALSE(made) << url;
    EXPECT_EQ(made.error().reason, "URL_REFUSED") << url;
  }
  std::string local;
  EXPECT_TRUE(make("RTSP://user:secret@192.0.2.7/a", 1, &local));
  EXPECT_TRUE(local.starts_with("rtsp://127.0.0.1:8554/cam-1~")) << local;
  EXPECT_TRUE(make("rtsps://192.0.2.7/a", 1));
}

TEST(Restream, WithoutGo2rtc_IsRefused_AndTheErrorHoldsNoSecret) {
  boost::asio::io_context io;
  tcp::acceptor taken(io, tcp::endpoint(boost::asio::ip::make_address("127.0.0.1"), 0));
  int nobody = taken.local_endpoint().port();
  taken.close();
  auto opened = (*make("rtsp://user:canary@192.0.2.7/a", nobody))->open();
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().reason, "TCP_REFUSED");
  EXPECT_EQ(opened.error().message, fmt::format("go2rtc does not answer at http://127.0.0.1:{}", nobody));
}

TEST(Restream, AnInterruptedOpen_EndsWhileGo2rtcIsSilent) {
  boost::asio::io_context io;
  tcp::acceptor silent(io, tcp::endpoint(boost::asio::ip::make_address("127.0.0.1"), 0));
  auto source = *make("rtsp://192.0.2.7/a", silent.local_endpoint().port());
  Result<StreamFacts> opened = StreamFacts();
  Instant ended{};
  std::thread camera([&] {
    opened = source->open();
    ended = boot_now();
  });
  tcp::socket asked = silent.accept();  // and nothing is answered
  Instant told = boot_now();
  source->interrupt();
  camera.join();
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().reason, "interrupted");
  EXPECT_LT(ended - told, 900ms) << "less than the second that go2rtc may take for an answer";
  EXPECT_EQ(source->open().error().reason, "interrupted") << "and so do all later ones";
}

}  // namespace
}  // namespace weir::go2rtc

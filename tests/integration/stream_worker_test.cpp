// A stream worker as an orchestrator meets it: what is published to live/s1/in can be read from live/s1/out of a real
// MediaMTX, whatever happens to the publisher, for as long as the worker has the right to publish, and no longer.
#include "clip.hpp"
#include "forward.hpp"
#include "mediamtx.hpp"
#include "shard.hpp"
#include "stall.hpp"
#include "where.hpp"

#include "weir/base/clock.hpp"

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace weir::test {
namespace {

class StreamWorker : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::string why = MediaMtx::missing(); !why.empty()) GTEST_SKIP() << why;
    hub_ = std::make_unique<MediaMtx>(folder_);
  }
  std::string out() const { return hub_->base() + "/live/s1/out"; }
  // The hub's name for the session that publishes `out` last; "" where none does.
  std::string publishing_session() const {
    std::string log = hub_->log();
    size_t said = log.rfind("is publishing to path 'live/s1/out'");
    if (said == std::string::npos) return "";
    size_t at = log.rfind("[session ", said);
    return log.substr(at, log.find(']', at) - at + 1);
  }
  bool ended(const std::string& session) const {
    return !session.empty() && hub_->log().find(session + " destroyed") != std::string::npos;
  }
  TempDir folder_;
  std::unique_ptr<MediaMtx> hub_;
};

// Three seconds, of which one may pass until the first keyframe.
constexpr int kPictures = 45;

struct Codecs {
  const char* kind;
  const char* video;
  const char* audio;
};
class StreamWorkerCodecs : public StreamWorker, public ::testing::WithParamInterface<Codecs> {};
INSTANTIATE_TEST_SUITE_P(All, StreamWorkerCodecs,
                         ::testing::Values(Codecs{"h264", "h264", "aac"}, Codecs{"bframes", "h264", "aac"},
                                           Codecs{"hevc", "hevc", "aac"}, Codecs{"vp8", "vp8", "opus"},
                                           Codecs{"vp9", "vp9", "opus"}),
                         [](const auto& each) { return each.param.kind; });

TEST_P(StreamWorkerCodecs, InPassthrough_OutIsReadable) {
  auto publisher = hub_->publish("live/s1/in", {.clip = GetParam().kind});
  StreamProcess worker(folder_, hub_->base());
  ASSERT_TRUE(worker.forwarding()) << worker.child().log() << hub_->log();
  auto frames = frames_at(out(), 3);
  EXPECT_GE(frames[GetParam().video], kPictures) << worker.child().log();
  EXPECT_GE(frames[GetParam().audio], 90);
  EXPECT_EQ(worker.last("stream.input.connected", "videoCodec"), GetParam().video);
  EXPECT_EQ(worker.metric("weir_stream_worker_up"), 1);
  EXPECT_EQ(worker.child().get("/healthz").status, 200);
  worker.child().signal(SIGTERM);
  EXPECT_EQ(worker.child().wait(5s), 0) << worker.child().log();
}

TEST_P(StreamWorkerCodecs, ForRtmp_OutIsH264WithAac_AndTheLogSaysWhatWasEncoded) {
  auto publisher = hub_->publish("live/s1/in", {.clip = GetParam().kind});
  StreamProcess worker(folder_, hub_->base(), {{"rtmp_output", true}});
  ASSERT_TRUE(worker.forwarding(30s)) << worker.child().log() << hub_->log();
  auto frames = frames_at(out(), 4);
  EXPECT_GE(frames["h264"], kPictures) << worker.child().log();
  EXPECT_GE(frames["aac"], 90);
  bool carried = GetParam().video == std::string("h264");
  EXPECT_EQ(frames.contains(GetParam().video), carried);
  EXPECT_FALSE(frames.contains("opus"));
  std::string what = worker.last("stream.encoding", "what");
  EXPECT_EQ(what.find(std::string(GetParam().video) + " as h264") != std::string::npos, !carried) << what;
  EXPECT_EQ(what.find("opus as aac") != std::string::npos, GetParam().audio == std::string("opus")) << what;
  EXPECT_EQ(worker.metric("weir_stream_worker_left_out_total"), 0);
}

TEST_F(StreamWorker, APublisherThatDropsFor2s_InterruptsNeitherTheProcessNorItsPublication) {
  auto publisher = hub_->publish("live/s1/in", {.clip = "h264"});
  StreamProcess worker(folder_, hub_->base());
  ASSERT_TRUE(worker.forwarding()) << worker.child().log();
  std::string session = publishing_session();
  publisher = nullptr;
  ASSERT_TRUE(worker.said("stream.retry.scheduled")) << worker.child().log();
  Instant gone = boot_now();
  ASSERT_TRUE(eventually(10s, [&] { return boot_now() - gone >= 2s; }));
  publisher = hub_->publish("live/s1/in", {.clip = "h264"});
  ASSERT_TRUE(eventually(20s, [&] { return worker.events("stream.input.connected").size() == 2; })) << worker.child().log();
  double bytes = worker.metric("weir_stream_worker_bytes_out_total");
  ASSERT_TRUE(eventually(20s, [&] { return worker.metric("weir_stream_worker_bytes_out_total") > bytes + 20'000; }));
  EXPECT_EQ(worker.events("stream.output.connected").size(), 1u) << worker.child().log();
  EXPECT_FALSE(ended(session)) << "readers of the output were not interrupted";
  EXPECT_GE(frames_at(out(), 3)["h264"], kPictures);
}

TEST_F(StreamWorker, WithoutAPublisher_ItEndsWith20_AfterTheGrace) {
  StreamProcess worker(folder_, hub_->base(), {{"input_not_ready_grace_seconds", 2}});
  EXPECT_EQ(worker.child().wait(20s), 20) << worker.child().log();
  EXPECT_EQ(worker.last("stream.retry.scheduled", "error.kind"), "rtsp_not_found");
  EXPECT_EQ(publishing_session(), "");
}

TEST_F(StreamWorker, ACodecThatIsNotPublished_EndsWith10_AndIsNamed) {
  auto publisher = hub_->publish("live/s1/in", {.clip = "pcm"});
  StreamProcess worker(folder_, hub_->base());
  EXPECT_EQ(worker.child().wait(20s), 10) << worker.child().log();
  EXPECT_NE(worker.last("stream.exit", "error.message").find("pcm_mulaw audio"), std::string::npos)
      << worker.child().log();
}

// Somebody who publishes a track of this encoding by RTSP, of which no picture comes: no program here sends each codec.
class Announced {
 public:
  Announced(const MediaMtx& hub, const std::string& path, const std::string& encoding)
      : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), url_(hub.base() + "/" + path) {
    sockaddr_in to{.sin_family = AF_INET, .sin_port = htons(static_cast<std::uint16_t>(hub.rtsp_port())),
                   .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
    EXPECT_EQ(::connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
    std::string sdp = fmt::format("v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns=x\r\nt=0 0\r\nm=video 0 RTP/AVP 96\r\n"
                                  "a=rtpmap:96 {}/90000\r\na=control:trackID=0\r\n", encoding);
    ask("ANNOUNCE", url_, fmt::format("Content-Type: application/sdp\r\nContent-Length: {}\r\n", sdp.size()), sdp);
    ask("SETUP", url_ + "/trackID=0", "Transport: RTP/AVP/TCP;unicast;mode=record;interleaved=0-1\r\n");
    ask("RECORD", url_);
  }
  ~Announced() { ::close(fd_); }
  Announced(const Announced&) = delete;

 private:
  void ask(const std::string& method, const std::string& url, std::string head = {}, const std::string& body = {}) {
    std::string text =
        fmt::format("{} {} RTSP/1.0\r\nCSeq: {}\r\n{}{}\r\n{}", method, url, ++asked_, session_, head, body);
    EXPECT_EQ(::send(fd_, text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
    std::string answer;
    char byte = 0;
    while (!answer.ends_with("\r\n\r\n") && ::recv(fd_, &byte, 1, 0) == 1) answer += byte;
    EXPECT_TRUE(answer.starts_with("RTSP/1.0 200 ")) << answer;
    if (size_t at = answer.find("Session: "); at != std::string::npos)
      session_ = answer.substr(at, answer.find_first_of(";\r", at) - at) + "\r\n";
  }

  const int fd_;
  const std::string url_;
  std::string session_;
  int asked_ = 0;
};

TEST_F(StreamWorker, ACodecThatThisFfmpegCannotReadOverRtsp_EndsWith10_AndIsSaid) {
  bool old = std::system("ffmpeg -version | grep -qE 'libavformat +(5[0-9]|60)\\.'") == 0;
  if (!old) GTEST_SKIP() << "this FFmpeg can read AV1";
  Announced publisher(*hub_, "live/s1/in", "AV1");
  ASSERT_TRUE(hub_->ready("live/s1/in")) << hub_->log();
  EXPECT_EQ(hub_->path("live/s1/in")->tracks, std::vector<std::string>{"AV1"});
  StreamProcess worker(folder_, hub_->base());
  EXPECT_EQ(worker.child().wait(20s), 10) << worker.child().log();
  EXPECT_NE(worker.last("stream.exit", "error.message").find("AV1"), std::string::npos) << worker.child().log();
}

TEST_F(StreamWorker, WrongSettings_EndWith10) {
  const std::vector<std::string> good{"--stream-id",   "s1", "--run-id",  "r1",
                                      "--instance-id", "i1", "--log-dir", folder_.path()};
  for (std::vector<std::string> wrong : {std::vector<std::string>{"--stream-id", "../x"}, {"--run-id", ""},
                                         {"--mediamtx-rtsp-base", "http://h"}, {"--stream-mode", "both"}}) {
    std::vector<std::string> words{WEIR_WORKER, "stream"};
    for (size_t i = 0; i < good.size(); i += 2)
      if (good[i] != wrong[0]) words.insert(words.end(), {good[i], good[i + 1]});
    words.insert(words.end(), wrong.begin(), wrong.end());
    Program worker(folder_.path() + "/worker.log", words);
    EXPECT_EQ(worker.wait(10s), 10) << worker.log();
  }
}

TEST_F(StreamWorker, SigTerm_EndsItWith0_Within5s_AndTheHubHearsOfIt) {
  auto publisher = hub_->publish("live/s1/in", {.clip = "h264"});
  StreamProcess worker(folder_, hub_->base());
  ASSERT_TRUE(worker.forwarding()) << worker.child().log();
  Instant begun = boot_now();
  Duration stalled = StallMonitor::get().total();
  worker.child().signal(SIGTERM);
  EXPECT_EQ(worker.child().wait(10s), 0) << worker.child().log();
  EXPECT_TRUE(within(seconds(boot_now() - begun), 5, stalled));
  std::string goodbye = publishing_session() + " destroyed: torn down";
  EXPECT_TRUE(eventually(5s, [&] { return hub_->log().find(goodbye) != std::string::npos; })) << hub_->log();
}

// ---- the right to publish ----

using StreamWorkerLease = StreamWorker;

TEST_F(StreamWorkerLease, ADeadlineThatPasses_ClosesThePublication_AndEndsTheWorkerWith60) {
  auto publisher = hub_->publish("live/s1/in", {.clip = "h264"});
  Instant deadline = boot_now() + 8s;
  StreamProcess worker(folder_, hub_->base(),
                       {{"lease_version", 7}, {"lease_valid_until_us", deadline.time_since_epoch().count()}});
  ASSERT_TRUE(worker.forwarding()) << worker.child().log();
  std::string session = publishing_session();
  ASSERT_FALSE(ended(session));
  ASSERT_TRUE(eventually(20s, [&] { return ended(session); })) << hub_->log();
  EXPECT_GE(boot_now(), deadline);
  EXPECT_TRUE(worker.said("stream.held")) << worker.child().log();
  EXPECT_EQ(worker.child().wait(60s), 60) << worker.child().log();
  EXPECT_EQ(publishing_session(), session) << "nothing was published afterwards";
}

// ---- annotate ----

class StreamWorkerAnnotate : public StreamWorker {
 protected:
  void SetUp() override {
    for (const char* needed : {"footage/vtest.avi", "models/efficientdet-lite0.tflite", "lib/libtensorflowlite_c.so"})
      if (part(needed).empty()) GTEST_SKIP() << needed << " could not be fetched";
    StreamWorker::SetUp();
  }
  static boost::json::object annotate() {
    std::filesystem::path model = part("models/efficientdet-lite0.tflite"), library = part("lib/libtensorflowlite_c.so");
    return {{"stream_mode", "annotate"},
            {"models_dir", model.parent_path().string()},
            {"library_dir", library.parent_path().string()}};
  }
  // Of `pictures` decoded from there: how many samples of strong colour the most colourful one has. The footage has few.
  int strong_colours(const std::string& from, int pictures) const {
    constexpr int kWidth = 768, kHeight = 576, kPicture = kWidth * kHeight * 3 / 2;
    std::string raw = folder_.path() + "/pictures.yuv";
    std::vector<std::string> words{"ffmpeg", "-nostdin", "-loglevel", "error", "-y"};
    if (from.starts_with("rtsp")) words.insert(words.end(), {"-rtsp_transport", "tcp"});
    words.insert(words.end(), {"-i", from, "-an", "-frames:v", std::to_string(pictures), "-pix_fmt", "yuv420p", "-f",
                               "rawvideo", raw});
    Program reader(folder_.path() + "/reader.log", words);
    EXPECT_EQ(reader.wait(60s), 0) << reader.log();
    std::ifstream file(raw, std::ios::binary);
    std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    auto distance = [](char sample) { return std::abs(static_cast<unsigned char>(sample) - 128); };
    int most = 0;
    for (size_t at = 0; at + kPicture <= bytes.size(); at += kPicture) {
      int strong = 0;
      const char* u = bytes.data() + at + kWidth * kHeight;
      const char* v = u + kWidth * kHeight / 4;
      for (int i = 0; i < kWidth * kHeight / 4; ++i)
        if (distance(u[i]) + distance(v[i]) > 90) ++strong;
      most = std::max(most, strong);
    }
    return most;
  }
};

TEST_F(StreamWorkerAnnotate, BoxesAreDrawn_TheSoundPasses_AndOutIsH264) {
  auto publisher = hub_->publish("live/s1/in", {.clip = "people"});
  StreamProcess worker(folder_, hub_->base(), annotate());
  ASSERT_TRUE(worker.forwarding(30s)) << worker.child().log();
  ASSERT_TRUE(eventually(30s, [&] { return worker.metric("weir_stream_worker_looks_total") >= 5; }))
      << worker.child().log();
  auto frames = frames_at(out(), 4);
  EXPECT_GE(frames["h264"], 20) << "ten a second, without what passes until the first keyframe" << worker.child().log();
  EXPECT_GE(frames["aac"], 120);
  int footage = strong_colours(clip("people"), 100);
  EXPECT_GT(strong_colours(out(), 20), 2 * footage + 200) << "the edges of boxes";
  EXPECT_EQ(worker.metric("weir_stream_worker_annotating"), 1);
  EXPECT_EQ(worker.metric("weir_stream_worker_fallbacks_total"), 0);
}

TEST_F(StreamWorkerAnnotate, ANewPublisher_GoesOnInTheSamePublication) {
  auto publisher = hub_->publish("live/s1/in", {.clip = "people"});
  StreamProcess worker(folder_, hub_->base(), annotate());
  ASSERT_TRUE(worker.forwarding(30s)) << worker.child().log();
  publisher = nullptr;
  ASSERT_TRUE(worker.said("stream.retry.scheduled")) << worker.child().log();
  publisher = hub_->publish("live/s1/in", {.clip = "people"});
  ASSERT_TRUE(eventually(20s, [&] { return worker.events("stream.input.connected").size() == 2; })) << worker.child().log();
  double bytes = worker.metric("weir_stream_worker_bytes_out_total");
  ASSERT_TRUE(eventually(20s, [&] { return worker.metric("weir_stream_worker_bytes_out_total") > bytes + 20'000; }));
  EXPECT_EQ(worker.events("stream.output.connected").size(), 1u) << worker.child().log();
}

TEST_F(StreamWorkerAnnotate, Vp9_BecomesH264_AndWithoutAModelTheTimeIsDrawnAllTheSame) {
  auto publisher = hub_->publish("live/s1/in", {.clip = "vp9"});
  StreamProcess worker(folder_, hub_->base(), {{"stream_mode", "annotate"}, {"models_dir", folder_.path()}});
  ASSERT_TRUE(worker.forwarding(30s)) << worker.child().log();
  auto frames = frames_at(out(), 4);
  EXPECT_GE(frames["h264"], kPictures) << worker.child().log();
  EXPECT_GE(frames["opus"], 90);
  EXPECT_TRUE(worker.said("stream.detector_failed"));
}

}  // namespace
}  // namespace weir::test

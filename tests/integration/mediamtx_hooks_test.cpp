// Both generations of MediaMTX with the files that Weir ships for them: what their hooks tell, and what their API says.
#include "hook_listener.hpp"
#include "mediamtx.hpp"
#include "postgres_server.hpp"
#include "run.hpp"
#include "stall.hpp"
#include "where.hpp"

#include "weir/base/json.hpp"
#include "weir/mediamtx/control_api.hpp"

#include <arpa/inet.h>

#include <csignal>

namespace weir::test {
namespace {

using Version = MediaMtx::Version;

struct Told {
  std::string what, path, query, type, id;
  friend bool operator==(const Told&, const Told&) = default;
};

class MediaMtxHooks : public testing::TestWithParam<Version> {
 protected:
  void SetUp() override {
    if (std::string why = MediaMtx::missing(GetParam()); !why.empty()) GTEST_SKIP() << why;
    std::string file = GetParam() == Version::v1_21_0 ? "mediamtx.yml" : "mediamtx-old-hooks.yml";
    std::string folder = std::filesystem::path(WEIR_HOOK).parent_path();
    MediaMtx::Options options{.version = GetParam(),
                              .config = text_in_file(std::string(WEIR_SOURCE_DIR) + "/deploy/mediamtx/" + file),
                              .environment = {{"WEIR_ORCHESTRATOR_URL", orchestrator_.url()},
                                              {"PATH", folder + ":" + std::getenv("PATH")}}};
    ASSERT_FALSE(options.config.empty());
    hub_ = std::make_unique<MediaMtx>(folder_, std::move(options));
  }
  std::vector<Told> told() const {
    std::vector<Told> out;
    for (const Posted& each : orchestrator_.posted()) {
      auto body = json::parse_text(each.body);
      EXPECT_TRUE(body) << each.body;
      if (!body) continue;
      auto field = [&](const char* name) { return std::string(body->at(name).as_string()); };
      std::string what = each.head.substr(0, each.head.find(" HTTP/"));
      out.push_back({what.substr(what.rfind('/') + 1), field("path"), field("query"), field("sourceType"),
                     field("sourceId")});
    }
    return out;
  }
  bool told(size_t count) const {
    return eventually(20s, [&] { return told().size() >= count; });
  }

  TempDir folder_;
  HookListener orchestrator_;
  std::unique_ptr<MediaMtx> hub_;
};

TEST_P(MediaMtxHooks, APublisher_IsToldReadyAndNotReady_WithTheIdThatTheApiShows) {
  auto publisher = hub_->publish("live/demo/in", {.query = "lang=es&x=1"});
  ASSERT_TRUE(told(1)) << hub_->log() << publisher->log();
  auto path = hub_->path("live/demo/in");
  ASSERT_TRUE(path);
  EXPECT_TRUE(path->ready);
  EXPECT_EQ(path->source_type, "rtspSession");
  EXPECT_EQ(path->tracks, (std::vector<std::string>{"H264", "MPEG-4 Audio"}));
  EXPECT_TRUE(eventually(10s, [&] { return hub_->path("live/demo/in")->inbound_bytes > 0; }));
  publisher.reset();
  ASSERT_TRUE(told(2)) << hub_->log();
  std::string query = GetParam() == Version::v1_21_0 ? "lang%3Des%26x%3D1" : "lang=es&x=1";
  EXPECT_EQ(told(), (std::vector<Told>{{"ready", "live/demo/in", query, "rtspSession", path->source_id},
                                       {"not-ready", "live/demo/in", query, "rtspSession", path->source_id}}));
  EXPECT_TRUE(hub_->gone("live/demo/in"));
}

TEST_P(MediaMtxHooks, ARtmpPublisherThatIsKilled_IsToldNotReady) {
  auto publisher = hub_->publish("live/demo/in", {.rtmp = true});
  ASSERT_TRUE(told(1)) << hub_->log() << publisher->log();
  publisher->signal(SIGKILL);
  ASSERT_TRUE(told(2)) << hub_->log();
  EXPECT_EQ(told()[0].type, "rtmpConn");
  EXPECT_EQ(told()[1].what, "not-ready");
  EXPECT_EQ(told()[1].id, told()[0].id);
}

TEST_P(MediaMtxHooks, WhatWeirPublishes_HasNoHooks_AndStrangersMayNotPublishIt) {
  auto out = hub_->publish("live/demo/out");
  ASSERT_TRUE(hub_->ready("live/demo/out")) << hub_->log() << out->log();
  auto in = hub_->publish("live/demo/in");
  ASSERT_TRUE(told(1)) << hub_->log() << in->log();
  EXPECT_EQ(told()[0].path, "live/demo/in");
  // Announces a stream from another address than Weir's.
  auto announced = [&](const std::string& path) {
    int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in from{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK + 1)}, .sin_zero = {}};
    sockaddr_in to{.sin_family = AF_INET, .sin_port = htons(static_cast<std::uint16_t>(hub_->rtsp_port())),
                   .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
    EXPECT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&from), sizeof from), 0);
    EXPECT_EQ(::connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
    std::string sdp = "v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns=x\r\nt=0 0\r\nm=video 0 RTP/AVP 96\r\n"
                      "a=rtpmap:96 H264/90000\r\na=control:trackID=0\r\n";
    std::string text = fmt::format("ANNOUNCE {}/{} RTSP/1.0\r\nCSeq: 1\r\nContent-Type: application/sdp\r\n"
                                   "Content-Length: {}\r\n\r\n{}", hub_->base(), path, sdp.size(), sdp);
    EXPECT_EQ(::send(fd, text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
    char answer[12] = {};
    EXPECT_EQ(::recv(fd, answer, sizeof answer, MSG_WAITALL), static_cast<ssize_t>(sizeof answer));
    ::close(fd);
    return std::string(answer + 9, 3);
  };
  EXPECT_EQ(announced("live/other/in"), "200");
  EXPECT_EQ(announced("live/other/out"), "401");
}

TEST_P(MediaMtxHooks, ReadersAreListed_AndAKickEndsAReaderOrAPublisher) {
  auto publisher = hub_->publish("live/demo/in");
  ASSERT_TRUE(hub_->ready("live/demo/in")) << hub_->log() << publisher->log();
  EXPECT_TRUE(hub_->readers("live/demo/in").empty());
  Program reader(folder_.path() + "/reader.log", {"ffmpeg", "-nostdin", "-loglevel", "error", "-rtsp_transport", "tcp",
                                                  "-i", hub_->base() + "/live/demo/in", "-f", "null", "-"});
  ASSERT_TRUE(eventually(20s, [&] { return hub_->readers("live/demo/in").size() == 1; })) << reader.log();
  auto kick = [&](const MediaClient& client) {
    boost::asio::io_context io;
    auto api = mediamtx::ControlApi::create(io, {.url = Secret(hub_->api_url())});
    return run(io, (*api)->kick(client));
  };
  MediaClient who = hub_->readers("live/demo/in")[0];
  EXPECT_EQ(who.type, "rtspSession");
  auto kicked = kick(who);
  ASSERT_TRUE(kicked) << kicked.error().message;
  EXPECT_NE(reader.wait(20s), -1) << "the reader goes on";
  EXPECT_TRUE(eventually(20s, [&] { return hub_->readers("live/demo/in").empty(); }));
  auto again = kick(who);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Errc::not_found);
  auto path = hub_->path("live/demo/in");
  ASSERT_TRUE(path && path->ready);
  ASSERT_TRUE(kick({path->source_type, path->source_id}));
  ASSERT_TRUE(told(2)) << hub_->log();
  EXPECT_EQ(told()[1].what, "not-ready");
}

TEST_P(MediaMtxHooks, ARestart_KeepsThePorts_AndAPublisherComesBackUnderANewId) {
  auto publisher = hub_->publish("live/demo/in");
  ASSERT_TRUE(told(1)) << hub_->log() << publisher->log();
  std::string before = hub_->base();
  hub_->restart();
  EXPECT_EQ(hub_->base(), before);
  EXPECT_TRUE(hub_->paths().empty());
  publisher = hub_->publish("live/demo/in");
  ASSERT_TRUE(hub_->ready("live/demo/in")) << hub_->log() << publisher->log();
  std::string id = hub_->path("live/demo/in")->source_id;
  ASSERT_TRUE(eventually(20s, [&] { return told().back().id == id; })) << hub_->log();
  EXPECT_EQ(told().back().what, "ready");
  EXPECT_NE(told().front().id, id);
}

INSTANTIATE_TEST_SUITE_P(Both, MediaMtxHooks, testing::Values(Version::v1_13_1, Version::v1_21_0),
                         [](const auto& at) { return at.param == Version::v1_21_0 ? "New" : "Old"; });

}  // namespace
}  // namespace weir::test

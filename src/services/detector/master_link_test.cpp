#include "loop_testing.hpp"
#include "testing.hpp"

#include "weir/base/spawn.hpp"
#include "weir/detector/endpoints.hpp"
#include "weir/net/client.hpp"
#include "weir/net/server.hpp"

#include <gtest/gtest.h>

namespace weir::detector {
namespace {

using namespace testing;

// What a master heard on one connection, and how that ended.
struct Heard {
  std::optional<Error> refused = {};
  std::optional<net::WebSocket> socket = {};
  std::vector<cluster::StateReport> reports = {};
  std::vector<cluster::ImageDetection> results = {};
  bool over = false;

  int code() const { return socket && socket->end() ? socket->end()->code : 0; }
};

class MasterLinkTest : public ::testing::Test {
 protected:
  void SetUp() override {
    models_.files["http://plane/7"] = model("aaa");
    models_.takes = 1ms;
    serve(server_, router_, Secret());
    spawn(io_.get_executor(), link_.run(), "the reports");
  }
  void TearDown() override {
    link_.stop();
    masters_.clear();
    bool stopped = false;
    spawn(io_.get_executor(), server_.stop(100ms), "the stop", [&] { stopped = true; });
    EXPECT_TRUE(runs_until(io_, [&] { return stopped; }));
  }
  void serve(net::HttpServer& server, net::Router& router, Secret token) {
    add_endpoints(router, {.master = link_, .roster = roster_, .metrics = metrics_, .token = std::move(token)});
    ASSERT_TRUE(server.listen("127.0.0.1:0"));
  }
  std::shared_ptr<Heard> connect(net::ClientRequest request = {}) { return connect_to(server_, std::move(request)); }
  std::shared_ptr<Heard> connect_to(net::HttpServer& server, net::ClientRequest request = {}) {
    auto heard = std::make_shared<Heard>();
    masters_.push_back(heard);
    request.target = "/";
    auto talk = [](asio::io_context& io, std::string url, net::ClientRequest how,
                   std::shared_ptr<Heard> into) -> asio::awaitable<void> {
      auto client = net::HttpClient::create(io, url);
      auto opened = co_await client->web_socket(std::move(how));
      if (!opened) {
        into->refused = opened.error();
        co_return;
      }
      into->socket.emplace(*std::move(opened));
      while (auto message = co_await into->socket->receive()) {
        auto read = cluster::read_message(message->bytes, {});
        EXPECT_TRUE(read) << message->bytes;
        if (!read) continue;
        if (auto* report = std::get_if<cluster::StateReport>(&*read)) into->reports.push_back(std::move(*report));
        if (auto* result = std::get_if<cluster::ImageDetection>(&*read)) into->results.push_back(std::move(*result));
      }
      into->over = true;
    };
    spawn(io_.get_executor(), talk(io_, "ws://" + server.address(), std::move(request), heard), "a master");
    EXPECT_TRUE(runs_until(io_, [&] { return heard->refused || heard->socket; }));
    return heard;
  }
  void say(Heard& master, const std::string& text, bool binary = false) {
    EXPECT_TRUE(master.socket->post({text, binary}));
  }
  void command(Heard& master, const cluster::Command& what) {
    say(master, json::to_text(cluster::write_command(what)));
  }
  bool reports(Heard& master, const std::string& id) {
    auto is_it = [&](const cluster::CameraConnection& each) { return each.subscription.text() == id; };
    return runs_until(io_, [&] {
      return !master.reports.empty() && std::ranges::any_of(master.reports.back().cameras, is_it);
    });
  }
  net::ClientResponse get(net::HttpServer& server, net::ClientRequest request) {
    auto client = net::HttpClient::create(io_, "http://" + server.address());
    auto answer = on(io_, client->send(std::move(request)));
    EXPECT_TRUE(answer);
    return answer ? *answer : net::ClientResponse{};
  }
  net::ClientResponse get(const std::string& target) {
    net::ClientRequest request;
    request.target = target;
    return get(server_, std::move(request));
  }

  asio::io_context io_{1};
  RealClock clock_;
  FakeCameras cameras_;
  FakeModels models_{clock_};
  net::Metrics metrics_;
  Sightings sightings_{[this] { link_.deliver(); }};
  Roster roster_{io_, clock_, cameras_, models_, sightings_, metrics_, RosterSettings{}, [] { return 0.5; }};
  MasterLink link_{io_, clock_, roster_, sightings_, metrics_, [] { return Usage{12.5, 40.0}; }};
  net::Router router_;
  net::HttpServer server_{io_, clock_, router_, {}};
  std::vector<std::shared_ptr<Heard>> masters_;
};

TEST_F(MasterLinkTest, Master_IsToldTheState_ObeyedAndToldWhatIsSeen) {
  auto master = connect();
  ASSERT_TRUE(runs_until(io_, [&] { return !master->reports.empty(); }));
  EXPECT_EQ(master->reports[0].cpu_percent, 12.5);
  EXPECT_EQ(master->reports[0].memory_percent, 40.0);
  EXPECT_FALSE(master->reports[0].gpu_percent);
  EXPECT_TRUE(master->reports[0].cameras.empty());
  say(*master, json::to_text(cluster::write_command(wanted("d;c"))), true);  // as a binary message
  ASSERT_TRUE(reports(*master, "d;c"));
  ASSERT_TRUE(runs_until(io_, [&] { return cameras_.running.contains("d;c"); }));
  sightings_.put({CameraId::trusted("d;c"), WallTime{1h}, {{"car", 0.8, {1, 2, 3, 4}}}});
  sightings_.put({CameraId::trusted("d;unknown"), WallTime{1h}, {{"car", 0.8, {1, 2, 3, 4}}}});
  ASSERT_TRUE(runs_until(io_, [&] { return !master->results.empty(); }));
  EXPECT_EQ(master->results[0].subscription.text(), "d;c");
  EXPECT_EQ(master->results[0].boxes.size(), 1u);
  command(*master, cluster::Unsubscribe{*cluster::Identifier::parse("d;c")});
  EXPECT_TRUE(runs_until(io_, [&] { return master->reports.back().cameras.empty(); }));
  EXPECT_EQ(master->results.size(), 1u);
}

TEST_F(MasterLinkTest, EveryTwoSeconds_AReportComesUnasked) {
  auto master = connect();
  ASSERT_TRUE(runs_until(io_, [&] { return !master->reports.empty(); }));
  size_t before = master->reports.size();
  Instant then = clock_.now();
  ASSERT_TRUE(runs_until(io_, [&] { return master->reports.size() >= before + 2; }));
  EXPECT_LT(clock_.now() - then, 6s);
  EXPECT_GT(clock_.now() - then, 1s);
}

TEST_F(MasterLinkTest, BadCommands_AreCounted_AndTheConnectionGoesOn) {
  auto master = connect();
  for (const char* bad : {"no JSON", "[]", "{}", R"({"type":"dance"})", R"({"type":"subscribe"})",
                          R"({"type":"subscribe","payload":{"subscriptionIdentifier":"no semicolon"}})",
                          R"({"type":"unsubscribe","payload":7})", "\"requestState\""})
    say(*master, bad);
  command(*master, wanted("d;c"));
  EXPECT_TRUE(reports(*master, "d;c"));
  EXPECT_NE(metrics_.text().find("weir_detector_commands_total{result=\"refused\"} 8"), std::string::npos)
      << metrics_.text();
}

TEST_F(MasterLinkTest, NewConnection_TakesTheOldOnesPlace_AndFindsWhatRuns) {
  auto first = connect();
  command(*first, wanted("d;c"));
  ASSERT_TRUE(reports(*first, "d;c"));
  ASSERT_TRUE(runs_until(io_, [&] { return cameras_.running.contains("d;c"); }));
  auto second = connect();
  EXPECT_TRUE(runs_until(io_, [&] { return first->over; }));
  EXPECT_EQ(first->code(), 4000);
  EXPECT_TRUE(reports(*second, "d;c"));
  EXPECT_EQ(cameras_.happened.size(), 1u);
}

TEST_F(MasterLinkTest, WhileNobodyIsConnected_CamerasGoOn_AndResultsAreCountedAsUnheard) {
  auto master = connect();
  command(*master, wanted("d;c"));
  ASSERT_TRUE(runs_until(io_, [&] { return cameras_.running.contains("d;c"); }));
  master->socket->begin_close();
  ASSERT_TRUE(runs_until(io_, [&] { return metrics_.text().find("weir_detector_master 0") != std::string::npos; }));
  sightings_.put({CameraId::trusted("d;c"), WallTime{1h}, {{"car", 0.8, {1, 2, 3, 4}}}});
  EXPECT_NE(metrics_.text().find("weir_detector_results_total{what=\"unheard\"} 1"), std::string::npos);
  EXPECT_TRUE(cameras_.running.contains("d;c"));
}

TEST_F(MasterLinkTest, FrameOf50Megabytes_EndsItsConnectionWith1009_AndNothingElse) {
  auto master = connect();
  say(*master, std::string(50 << 20, 'x'), true);
  EXPECT_TRUE(runs_until(io_, [&] { return master->over; }));
  EXPECT_EQ(master->code(), 1009);
  auto next = connect();
  EXPECT_TRUE(runs_until(io_, [&] { return !next->reports.empty(); }));
}

TEST_F(MasterLinkTest, Stop_ClosesWith1001) {
  auto master = connect();
  bool stopped = false;
  spawn(io_.get_executor(), server_.stop(1s), "the stop", [&] { stopped = true; });
  EXPECT_TRUE(runs_until(io_, [&] { return stopped && master->over; }));
  EXPECT_EQ(master->code(), 1001);
}

TEST_F(MasterLinkTest, WithAToken_SocketAndPicturesNeedIt) {
  net::Router router;
  net::HttpServer guarded(io_, clock_, router, {});
  serve(guarded, router, Secret("open sesame"));
  EXPECT_EQ(connect_to(guarded)->refused->code, Errc::unauthorized);
  net::ClientRequest wrong, right, picture;
  wrong.bearer = Secret("open barley");
  EXPECT_EQ(connect_to(guarded, std::move(wrong))->refused->code, Errc::unauthorized);
  right.bearer = Secret("open sesame");
  EXPECT_TRUE(connect_to(guarded, std::move(right))->socket);
  picture.target = "/camera/c/image";
  EXPECT_EQ(get(guarded, picture).status, 401);
  picture.bearer = Secret("open sesame");
  EXPECT_EQ(get(guarded, picture).status, 404);
  picture.target = "/healthz";
  picture.bearer = {};
  EXPECT_EQ(get(guarded, picture).status, 200);
  masters_.clear();
}

TEST_F(MasterLinkTest, WithoutAToken_WebPagesAreRefused) {
  net::ClientRequest of_a_page;
  of_a_page.headers = {{"Origin", "http://evil.example"}};
  EXPECT_EQ(connect(of_a_page)->refused->code, Errc::forbidden);
  of_a_page.target = "/camera/c/image";
  EXPECT_EQ(get(server_, of_a_page).status, 403);
}

TEST_F(MasterLinkTest, Image_IsTheCamerasNewestPicture) {
  EXPECT_EQ(get("/camera/c/image").status, 404);
  roster_.obey(wanted("d;c"));
  ASSERT_TRUE(runs_until(io_, [&] { return cameras_.running.contains("d;c"); }));
  net::ClientResponse none = get("/camera/c/image");
  EXPECT_EQ(none.status, 404);
  EXPECT_NE(none.body.find("no_picture"), std::string::npos);
  cameras_.pictures["d;c"] = std::make_shared<Still>("\xff\xd8 a JPEG");
  net::ClientResponse image = get("/camera/c/image");
  EXPECT_EQ(image.status, 200);
  EXPECT_EQ(image.headers["content-type"], "image/jpeg");
  EXPECT_EQ(image.body, "\xff\xd8 a JPEG");
}

}  // namespace
}  // namespace weir::detector

#include "weir/http_bus/http_bus.hpp"

#include "temp_files.hpp"

#include "weir/base/json.hpp"
#include "weir/net/server.hpp"

#include <boost/asio/co_spawn.hpp>

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

namespace weir::http_bus {
namespace {

namespace asio = boost::asio;

event::Event event_of(int n, size_t bytes = 10, Instant deadline = Instant::max()) {
  std::string id = fmt::format("e{}", n);
  return {.topic = std::string(event::kDetectionsTopic),
          .routing_key = "detections.t.s.c",
          .event_id = id,
          .payload = fmt::format(R"({{"event_id":"{}","fill":"{}"}})", id, std::string(bytes, 'x')),
          .stamp = event::Stamp{CameraId::trusted("c"), {7}, deadline}};
}

// A control plane that answers what the test says.
class Bus : public testing::Test {
 protected:
  Bus() {
    router_.add(net::Method::post, "/v1/events/batch", [this](net::Request& request) -> asio::awaitable<net::Response> {
      bodies_.push_back(request.body);
      tokens_.insert(std::string(request.header("authorization")));
      if (refuse_) co_return net::Response::failure(*refuse_);
      json::array items;
      auto parsed = json::parse_text(request.body);
      for (const json::value& item : parsed->at("items").as_array())
        items.push_back(json::object{{"event_id", item.at("event_id")}, {"result", result_}});
      co_return net::Response::json(json::object{{"items", items}});
    });
    router_.add(net::Method::get, "/v1/events", [this](net::Request& request) -> asio::awaitable<net::Response> {
      asked_ = request.query;
      net::Response response;
      response.stream = [this](net::EventStream& out) -> asio::awaitable<void> {
        co_await out.send_text(frames_);
      };
      co_return response;
    });
    server_ = std::make_unique<net::HttpServer>(io_, clock_, router_, net::ServerLimits{});
    EXPECT_TRUE(server_->listen("127.0.0.1:0"));
    Config config{.base_url = "http://" + server_->address(), .token = Secret("first"), .body_bytes_max = 4000};
    config.items_max = 20;
    bus_ = *HttpBus::create(io_, std::move(config));
  }
  ~Bus() override {
    bus_.reset();
    finish(server_->stop(0s));
  }
  template <class T>
  T finish(asio::awaitable<T> work) {
    std::optional<T> out;
    auto keep = [](asio::awaitable<T> from, std::optional<T>& to) -> asio::awaitable<void> {
      to = co_await std::move(from);
    };
    asio::co_spawn(io_, keep(std::move(work), out), [](std::exception_ptr thrown) { EXPECT_FALSE(thrown); });
    auto end = std::chrono::steady_clock::now() + 10s;
    while (!out && std::chrono::steady_clock::now() < end) io_.run_one_for(10ms);
    EXPECT_TRUE(out);
    return *std::move(out);
  }
  void finish(asio::awaitable<void> work) {
    auto counted = [](asio::awaitable<void> from) -> asio::awaitable<int> {
      co_await std::move(from);
      co_return 0;
    };
    finish(counted(std::move(work)));
  }

  asio::io_context io_{1};
  RealClock clock_;
  net::Router router_;
  std::unique_ptr<net::HttpServer> server_;
  std::unique_ptr<HttpBus> bus_;
  std::vector<std::string> bodies_;
  std::set<std::string> tokens_;
  std::string result_ = "accepted";
  std::optional<Error> refuse_;
  std::map<std::string, std::string, std::less<>> asked_;
  std::string frames_;
};

TEST_F(Bus, ATokenInAFile_IsReadAgainForEveryPublication_AndTheLastOneStaysWhereTheFileIsGone) {
  test::TempDir folder;
  std::string path = folder.path() + "/token";
  bus_ = *HttpBus::create(io_, {.base_url = "http://" + server_->address(), .token_file = path});
  for (const char* token : {"first\n", "second", ""}) {
    if (*token != '\0') std::ofstream(path) << token;
    else std::filesystem::remove(path);
    ASSERT_TRUE(finish(bus_->publish({event_of(1)})));
  }
  EXPECT_EQ(bodies_.size(), 3u);
  EXPECT_EQ(tokens_, (std::set<std::string>{"Bearer first", "Bearer second"}));
}

TEST_F(Bus, ABatch_IsSplitByBytesAndByCount_InOrder) {
  std::vector<event::Event> events;
  for (int i = 0; i < 50; ++i) events.push_back(event_of(i));
  for (int i = 50; i < 54; ++i) events.push_back(event_of(i, 3000));
  auto answers = finish(bus_->publish(events));
  ASSERT_TRUE(answers);
  EXPECT_EQ(*answers, std::vector<Confirmation>(54, Confirmation::accepted));
  int next = 0;
  for (const std::string& body : bodies_) {
    EXPECT_LT(body.size(), 8000u);
    auto parsed = json::parse_text(body);
    ASSERT_TRUE(parsed) << body;
    EXPECT_LE(parsed->at("items").as_array().size(), 20u);
    for (const json::value& item : parsed->at("items").as_array()) {
      EXPECT_EQ(item.at("event_id"), json::value(fmt::format("e{}", next++)));
      EXPECT_EQ(item.at("lease_version"), 7);
      EXPECT_EQ(item.at("camera_uuid"), "c");
      EXPECT_EQ(item.at("payload").at("event_id"), item.at("event_id"));
    }
  }
  EXPECT_EQ(next, 54);
  EXPECT_GE(bodies_.size(), 6u);
}

TEST_F(Bus, AnswersAndErrors_AreHandedOn) {
  result_ = "stale";
  EXPECT_EQ(*finish(bus_->publish({event_of(1)})), std::vector{Confirmation::stale});
  result_ = "duplicate";
  EXPECT_EQ(*finish(bus_->publish({event_of(1)})), std::vector{Confirmation::duplicate});
  result_ = "perhaps";
  EXPECT_EQ(finish(bus_->publish({event_of(1)})).error().code, Errc::unavailable);
  refuse_ = Error{Errc::unauthorized, "token_expired", "the token has expired"};
  EXPECT_EQ(finish(bus_->publish({event_of(1)})).error().reason, "token_expired");
  EXPECT_EQ(finish(bus_->publish({})).operator*().size(), 0u);
}

TEST_F(Bus, PastADeadline_NoByteIsWritten) {
  auto late = finish(bus_->publish({event_of(1), event_of(2, 10, boot_now() - 1ms)}));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().reason, "deadline_passed");
  EXPECT_TRUE(bodies_.empty());
  // Also on a connection that is open already.
  EXPECT_TRUE(finish(bus_->publish({event_of(1, 10, boot_now() + 1min)})));
  EXPECT_EQ(finish(bus_->publish({event_of(2, 10, boot_now())})).error().reason, "deadline_passed");
  EXPECT_EQ(bodies_.size(), 1u);
}

TEST_F(Bus, TheToken_CanBeChanged) {
  EXPECT_TRUE(finish(bus_->publish({event_of(1)})));
  bus_->set_token(Secret("second"));
  EXPECT_TRUE(finish(bus_->publish({event_of(2)})));
  EXPECT_EQ(tokens_, (std::set<std::string>{"Bearer first", "Bearer second"}));
}

TEST_F(Bus, ASubscription_DeliversWithCursors_MarksGaps_AndSaysWhyItEnded) {
  frames_ = net::event_text("1-5", "detections.topic", R"({"routing_key":"a.b","topic":"detections.topic","payload":{"x":1}})") +
            net::event_text("1-9", "gap", R"({"message":"gone"})") +
            net::event_text("1-10", "status.topic", R"({"routing_key":"c","topic":"status.topic","payload":{}})") +
            net::event_text("", "error", R"({"code":"slow_subscriber","message":"too slow"})");
  std::vector<DeliveredEvent> seen;
  Subscription subscription{"detections.#", "1-3"};
  auto ended = finish(bus_->subscribe(subscription, [&](const DeliveredEvent& event) {
    seen.push_back(event);
    return true;
  }));
  EXPECT_EQ(asked_["pattern"], "detections.#");
  EXPECT_EQ(asked_["after"], "1-3");
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[0].cursor, "1-5");
  EXPECT_EQ(seen[0].topic, "detections.topic");
  EXPECT_EQ(seen[0].routing_key, "a.b");
  EXPECT_EQ(seen[0].payload, R"({"x":1})");
  EXPECT_FALSE(seen[0].after_gap);
  EXPECT_TRUE(seen[1].after_gap);
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().reason, "slow_subscriber");
}

TEST_F(Bus, AQuietSubscriber_HearsHowFarItIs) {
  frames_ = net::event_text("1-5", "t", R"({"routing_key":"a","topic":"t","payload":{}})") + "id: 1-900\n\n";
  std::string cursor;
  int events = 0;
  Subscription subscription{.progress = [&](const std::string& at) { cursor = at; }};
  EXPECT_FALSE(finish(bus_->subscribe(subscription, [&](const DeliveredEvent&) { return ++events > 0; })));
  EXPECT_EQ(events, 1);
  EXPECT_EQ(cursor, "1-900");
}

TEST_F(Bus, ASubscriber_EndsItsSubscription_OrHearsThatTheServerDid) {
  frames_ = net::event_text("1-5", "t", R"({"routing_key":"a","topic":"t","payload":{}})");
  EXPECT_TRUE(finish(bus_->subscribe({}, [](const DeliveredEvent&) { return false; })));
  EXPECT_EQ(finish(bus_->subscribe({}, [](const DeliveredEvent&) { return true; })).error().reason, "stream_ended");
}

TEST_F(Bus, AnAddressWhereSomethingElseListens_IsLeft) {
  struct Row {
    int status;
    std::string body, type = "text/html";
  };
  std::string typed = R"({"error":{"code":"token_invalid","message":"x"}})";
  for (const Row& row : std::vector<Row>{{200, "<html>"},
                                         {302, ""},
                                         {400, "<html>"},
                                         {415, ""},
                                         {422, "{}"},
                                         {431, ""},
                                         {401, ""},
                                         {403, "<html>"},
                                         {404, "no"},
                                         {401, typed, "application/json"},
                                         {200, R"({"items":[]})", "application/json"}}) {
    net::Router router;
    auto answer = [&](net::Request&) -> asio::awaitable<net::Response> {
      co_return net::Response::text(row.body, row.status, row.type);
    };
    router.add(net::Method::post, "/v1/events/batch", answer);
    router.add(net::Method::get, "/v1/events", answer);
    net::HttpServer stranger(io_, clock_, router, net::ServerLimits{});
    ASSERT_TRUE(stranger.listen("127.0.0.1:0"));
    std::string urls = fmt::format("http://{},http://{}", stranger.address(), server_->address());
    bus_ = *HttpBus::create(io_, {.base_url = urls});
    auto refused = finish(bus_->publish({event_of(1)}));
    ASSERT_FALSE(refused) << row.status << row.body;
    for (Errc about_the_event : {Errc::invalid, Errc::unsupported, Errc::unprocessable})
      EXPECT_NE(refused.error().code, about_the_event) << row.status << row.body << ": events would be dropped";
    EXPECT_TRUE(finish(bus_->publish({event_of(1)}))) << row.status << row.body;
    bus_ = *HttpBus::create(io_, {.base_url = urls});
    frames_ = net::event_text("1-5", "t", R"({"routing_key":"a","topic":"t","payload":{}})");
    EXPECT_FALSE(finish(bus_->subscribe({}, [](const DeliveredEvent&) { return false; }))) << row.status << row.body;
    EXPECT_TRUE(finish(bus_->subscribe({}, [](const DeliveredEvent&) { return false; }))) << row.status << row.body;
    bus_.reset();
    finish(stranger.stop(0s));
  }
}

TEST_F(Bus, OneAddress_TheConnectionOfAnUnreadableAnswer_IsNotKept) {
  EXPECT_TRUE(finish(bus_->publish({event_of(1)})));
  EXPECT_EQ(server_->connections(), 1u);
  result_ = "perhaps";
  EXPECT_FALSE(finish(bus_->publish({event_of(1)})));
  for (int i = 0; i < 500 && server_->connections() > 0; ++i) io_.run_one_for(10ms);
  EXPECT_EQ(server_->connections(), 0u);
}

}  // namespace
}  // namespace weir::http_bus

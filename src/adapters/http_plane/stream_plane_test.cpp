#include "weir/http_plane/stream_plane.hpp"

#include "weir/base/json.hpp"
#include "weir/net/server.hpp"

#include <boost/asio/co_spawn.hpp>

#include <gtest/gtest.h>

namespace weir::http_plane {
namespace {

namespace asio = boost::asio;
using net::Response;

const SubjectId kLive = SubjectId::trusted("live");

// A control plane, or whatever else listens at its address: it answers what the test says.
struct Host {
  using Answer = std::function<Response(net::Request&)>;

  explicit Host(asio::io_context& io) : server(io, clock, router, net::ServerLimits{}) {
    add(net::Method::post, "/v1/leases/stream/renew-batch");
    add(net::Method::get, "/v1/streams");
    add(net::Method::get, "/v1/streams/{stream_id}");
    add(net::Method::post, "/v1/streams/{stream_id}/told");
    add(net::Method::post, "/v1/events/batch");
    router.add(net::Method::get, "/v1/events", [this](net::Request& request) -> asio::awaitable<Response> {
      asked.push_back(request);
      Response response;
      response.stream = [this](net::EventStream& out) -> asio::awaitable<void> { co_await out.send_text(frames); };
      co_return response;
    });
    EXPECT_TRUE(server.listen("127.0.0.1:0"));
  }
  void add(net::Method method, const char* path) {
    router.add(method, path, [this](net::Request& request) -> asio::awaitable<Response> {
      asked.push_back(request);
      co_return answer(request);
    });
  }
  std::string url() { return "http://" + server.address(); }
  json::value last_body() { return *json::parse_text(asked.back().body); }

  std::vector<net::Request> asked;
  Answer answer = [](net::Request&) { return Response::json(json::object()); };
  std::string frames;
  RealClock clock;
  net::Router router;
  net::HttpServer server;
};

class StreamPlaneOverHttp : public testing::Test {
 protected:
  StreamPlaneOverHttp() { ask_at(first_.url()); }
  ~StreamPlaneOverHttp() override {
    plane_.reset();
    for (Host* host : {&first_, &second_}) {
      auto stop = [](Host* which) -> asio::awaitable<Status> {
        co_await which->server.stop(0s);
        co_return ok();
      };
      EXPECT_TRUE(finish(stop(host)));
    }
  }
  void ask_at(const std::string& urls) {
    net::TokenKey key = *net::TokenKey::create(Secret(std::string(32, 'k')));
    plane_ = *HttpStreamPlane::create(io_, clock_, {.url = urls, .runner = RunnerId::trusted("o-1"), .key = key});
  }
  template <class T>
  Result<T> finish(asio::awaitable<Result<T>> work) {
    std::optional<Result<T>> out;
    auto keep = [](asio::awaitable<Result<T>> from, std::optional<Result<T>>& to) -> asio::awaitable<void> {
      to = co_await std::move(from);
    };
    asio::co_spawn(io_, keep(std::move(work), out), [](const std::exception_ptr& thrown) { EXPECT_FALSE(thrown); });
    auto end = std::chrono::steady_clock::now() + 10s;
    while (!out && std::chrono::steady_clock::now() < end) io_.run_one_for(10ms);
    if (!out) return Error{Errc::internal, "hung", "no result in time"};
    return *std::move(out);
  }
  // Follows until the feed ends; what it ended with.
  Error follow() {
    return finish(plane_->follow([this](const StreamOrder& order) { heard_.push_back(order); })).error();
  }
  static std::string order_frame(const std::string& cursor, const json::object& payload) {
    return net::event_text(cursor, "control.topic", json::to_text(json::object{
        {"routing_key", "publication.ordered.t.s.live"}, {"topic", "control.topic"}, {"payload", payload}}));
  }
  static event::Event event() {
    event::Event out{"status.topic", "publication.running.t.s.live", "e1", R"({"event_id":"e1"})"};
    out.stamp = event::Stamp{kLive, {7}, boot_now() + 1min};
    return out;
  }
  static json::object record_body(std::string_view id) {
    return {{"stream_id", id},       {"tenant_id", "t"}, {"site_id", "s"},
            {"holder", "o-1"},       {"state", "running"}, {"run_id", "r7"},
            {"told_at", "2026-01-02T03:04:05.000Z"}, {"wishes", {{"forward", true}}}, {"memory", {{"run", "r7"}}}};
  }

  asio::io_context io_{1};
  RealClock clock_;
  Host first_{io_}, second_{io_};
  std::unique_ptr<HttpStreamPlane> plane_;
  std::vector<StreamOrder> heard_;
};

TEST_F(StreamPlaneOverHttp, ALeaseQuestion_IsAskedByStreamId) {
  first_.answer = [](net::Request&) {
    json::object renewed{{"stream_id", "live"}, {"result", "renewed"}, {"version", 7}, {"ttl_ms", 30000}};
    return Response::json(json::object{{"items", json::array{renewed}}});
  };
  lease::Batch batch{.operation = lease::Operation::renew,
                     .owner = {RunnerId::trusted("o-1"), BootId::trusted("b")},
                     .ttl = 30s,
                     .asks = {{.subject = kLive, .version = lease::Version{7}}},
                     .kind = lease::Kind::stream};
  auto answers = finish(plane_->apply(batch));
  ASSERT_TRUE(answers) << answers.error().message;
  EXPECT_EQ(answers->at(0).outcome, lease::Outcome::renewed);
  EXPECT_EQ(answers->at(0).subject, kLive);
  EXPECT_EQ(first_.last_body().at("items").at(0).at("stream_id").as_string(), "live");
}

TEST_F(StreamPlaneOverHttp, ARecord_IsReadWithItsViewApart) {
  first_.answer = [](net::Request&) { return Response::json(record_body("live")); };
  auto record = finish(plane_->record(kLive));
  ASSERT_TRUE(record) << record.error().message;
  EXPECT_EQ(record->id, kLive);
  EXPECT_EQ(record->holder.str(), "o-1");
  EXPECT_EQ(record->wishes, (json::object{{"forward", true}}));
  EXPECT_EQ(record->memory, (json::object{{"run", "r7"}}));
  EXPECT_EQ(to_iso(record->told_at), "2026-01-02T03:04:05.000Z");
  EXPECT_EQ(record->view.at("state").as_string(), "running");
  EXPECT_FALSE(record->view.contains("wishes") || record->view.contains("memory") || record->view.contains("holder"));

  first_.answer = [](net::Request&) {
    json::object wished = record_body("live");
    wished["told_at"] = nullptr;
    wished["holder"] = nullptr;
    wished["state"] = "idle";
    return Response::json(wished);
  };
  record = finish(plane_->record(kLive));
  ASSERT_TRUE(record);
  EXPECT_TRUE(record->view.empty()) << "nobody has told anything";
  EXPECT_TRUE(record->holder.empty());
}

TEST_F(StreamPlaneOverHttp, OnlyATypedAnswer_SaysThatThereIsNoRecord_AndTheAddressIsKept) {
  ask_at(first_.url() + "," + second_.url());
  first_.answer = [](net::Request&) {
    return Response::failure({Errc::not_found, "stream_not_found", "there is no such stream"});
  };
  for (int i = 0; i < 2; ++i) EXPECT_EQ(finish(plane_->record(kLive)).error().code, Errc::not_found);
  EXPECT_TRUE(second_.asked.empty());
  second_.answer = [](net::Request&) { return Response::json(record_body("live")); };
  // A proxy's page, and a control plane of an older version.
  std::vector<Host::Answer> strange = {
      [](net::Request&) { return Response::text("<html>", 404, "text/html"); },
      [](net::Request&) { return Response::failure({Errc::not_found, "not_found", "there is nothing at this path"}); },
      [](net::Request&) { return Response::json(json::object{{"status", "ok"}}); }};
  for (const Host::Answer& answer : strange) {
    ask_at(first_.url() + "," + second_.url());
    first_.answer = answer;
    EXPECT_EQ(finish(plane_->record(kLive)).error().code, Errc::unavailable);
    EXPECT_TRUE(finish(plane_->record(kLive))) << "the next address is asked";
  }
}

TEST_F(StreamPlaneOverHttp, Records_ComeInPages) {
  first_.answer = [](net::Request& request) {
    bool last = request.query_value("cursor").value_or("") == "next";
    return Response::json(json::object{{"items", json::array{record_body(last ? "b" : "a")}},
                                       {"next_cursor", last ? json::value(nullptr) : json::value("next")}});
  };
  auto records = finish(plane_->records());
  ASSERT_TRUE(records) << records.error().message;
  ASSERT_EQ(records->size(), 2u);
  EXPECT_EQ(records->at(1).id.str(), "b");
}

TEST_F(StreamPlaneOverHttp, AWordThatIsStale_IsSaidToBe) {
  StreamTold told{kLive, {RunnerId::trusted("o-1"), BootId::trusted("b")}, {7}, {{"m", 1}}, {{"state", "running"}}};
  ASSERT_TRUE(finish(plane_->tell(told)));
  EXPECT_EQ(first_.asked.back().path, "/v1/streams/live/told");
  EXPECT_EQ(first_.last_body(), (json::value{{"runner_id", "o-1"}, {"boot_id", "b"}, {"version", 7},
                                             {"memory", {{"m", 1}}}, {"view", {{"state", "running"}}}}));
  first_.answer = [](net::Request&) { return Response::failure(stale_word()); };
  auto stale = finish(plane_->tell(told));
  ASSERT_FALSE(stale);
  EXPECT_EQ(stale.error().reason, "stale_version");
}

TEST_F(StreamPlaneOverHttp, AnEvent_CarriesItsStamp_AndIsNotWrittenPastItsDeadline) {
  std::string result = "accepted";
  first_.answer = [&](net::Request&) {
    return Response::json(json::object{{"items", json::array{json::object{{"event_id", "e1"}, {"result", result}}}}});
  };
  ASSERT_TRUE(finish(plane_->publish(event())));
  json::value sent = first_.last_body().at("items").at(0);
  EXPECT_EQ(sent.at("stream_id").as_string(), "live");
  EXPECT_EQ(sent.at("lease_version"), 7);
  EXPECT_EQ(sent.at("payload").at("event_id").as_string(), "e1");
  result = "duplicate";
  EXPECT_TRUE(finish(plane_->publish(event())));
  result = "stale";
  EXPECT_EQ(finish(plane_->publish(event())).error().reason, "stale_version");
  result = "perhaps";
  EXPECT_EQ(finish(plane_->publish(event())).error().code, Errc::unavailable);
  size_t before = first_.asked.size();
  event::Event late = event();
  late.stamp->deadline = boot_now() - 1ms;
  EXPECT_EQ(finish(plane_->publish(late)).error().reason, "deadline_passed");
  EXPECT_EQ(first_.asked.size(), before);
}

TEST_F(StreamPlaneOverHttp, Orders_AreHeard_FromTheLastCursorOn_AndOthersOrdersAreNot) {
  json::object forward{{"stream_id", "live"}, {"order", "forward"}, {"runner_id", "o-1"}, {"on", false}};
  json::object as_set = forward;
  as_set["on"] = nullptr;
  first_.frames = order_frame("1-5", {{"stream_id", "live"}, {"order", "stop"}, {"runner_id", "o-1"}}) +
                  order_frame("1-6", {{"stream_id", "x"}, {"order", "stop"}, {"runner_id", "o-2"}}) +
                  order_frame("1-7", forward) + order_frame("1-8", as_set) +
                  order_frame("1-9", {{"stream_id", "y"}, {"order", "wishes"}}) + "id: 1-12\n\n";
  EXPECT_EQ(follow().reason, "stream_ended");
  EXPECT_EQ(first_.asked.back().query["pattern"], "publication.ordered.#");
  EXPECT_FALSE(first_.asked.back().query.contains("after")) << "it begins with orders to come";
  ASSERT_EQ(heard_.size(), 4u);
  EXPECT_EQ(heard_[0].what, "stop");
  EXPECT_EQ(heard_[1].forward, std::optional(false));
  EXPECT_EQ(heard_[2].forward, std::nullopt);
  EXPECT_EQ(heard_[3].id.str(), "y") << "an order to nobody in particular";
  first_.frames.clear();
  (void)follow();
  EXPECT_EQ(first_.asked.back().query["after"], "1-12");
}

TEST_F(StreamPlaneOverHttp, AfterAGap_NoOldOrderIsCarriedOut) {
  first_.frames = order_frame("1-5", {{"stream_id", "live"}, {"order", "restart"}});
  (void)follow();
  first_.frames = net::event_text("1-90", "gap", R"({"message":"gone"})") +
                  order_frame("1-91", {{"stream_id", "live"}, {"order", "stop"}});
  EXPECT_EQ(follow().reason, "orders_missing");
  EXPECT_EQ(heard_.size(), 1u);
  first_.frames = net::event_text("", "error", R"({"code":"token_expired","message":"the token has expired"})");
  EXPECT_EQ(follow().reason, "token_expired");
  EXPECT_FALSE(first_.asked.back().query.contains("after"));
}

TEST_F(StreamPlaneOverHttp, AFeedOfSomethingElse_IsLeft) {
  net::Router router;
  router.add(net::Method::get, "/v1/events", [](net::Request&) -> asio::awaitable<Response> {
    co_return Response::text("<html>", 200, "text/html");
  });
  net::HttpServer stranger(io_, clock_, router, net::ServerLimits{});
  ASSERT_TRUE(stranger.listen("127.0.0.1:0"));
  ask_at(fmt::format("http://{},{}", stranger.address(), first_.url()));
  first_.frames = order_frame("1-5", {{"stream_id", "live"}, {"order", "restart"}});
  (void)follow();
  EXPECT_TRUE(heard_.empty());
  (void)follow();
  EXPECT_EQ(heard_.size(), 1u);
  plane_.reset();
  auto stop = [](net::HttpServer* which) -> asio::awaitable<Status> {
    co_await which->stop(0s);
    co_return ok();
  };
  EXPECT_TRUE(finish(stop(&stranger)));
}

}  // namespace
}  // namespace weir::http_plane

// Products that listen over real WebSockets, at a process whose cluster is the test.
#include "weir/cluster/product_routes.hpp"

#include "run_among.hpp"

#include "weir/base/spawn.hpp"
#include "weir/net/client.hpp"
#include "weir/net/server.hpp"

#include <gtest/gtest.h>

#include <list>

namespace weir::cluster {
namespace {

namespace asio = boost::asio;
using net::Role;
using Why = net::WebSocketEnd::Why;

class FakeFront final : public Front {
 public:
  struct Listener {
    std::string after;
    std::function<void(const Notice&)> each;
    std::function<bool()> has_room;
  };
  std::unique_ptr<Hearing> listen(std::string after, std::function<void(const Notice&)> each,
                                  std::function<bool()> has_room) override {
    struct Open final : Hearing {
      Open(FakeFront& front, std::list<Listener>::iterator at) : front_(front), at_(at) {}
      ~Open() override { front_.listeners.erase(at_); }
      FakeFront& front_;
      const std::list<Listener>::iterator at_;
    };
    listeners.push_back({std::move(after), std::move(each), std::move(has_room)});
    return std::make_unique<Open>(*this, std::prev(listeners.end()));
  }
  Async<json::object> state() override { co_return json::object(); }
  Async<Nothing> regenerate(std::string) override { co_return ok(); }
  Async<Nothing> set_session(std::string, std::optional<std::int64_t>) override { co_return ok(); }
  Async<Nothing> answer_patch(PatchSessionResult result) override {
    answered.push_back(std::move(result));
    if (answered.size() > 1) co_return Error{Errc::conflict, "patch_over", "another one was first", {}};
    co_return ok();
  }
  Async<Nothing> resubscribe(std::string) override { co_return ok(); }
  Async<std::vector<std::string>> workers_of(std::string) override { co_return std::vector<std::string>(); }

  void tell(const Notice& notice) {
    for (Listener& each : listeners) each.each(notice);
  }
  std::list<Listener> listeners;
  std::vector<PatchSessionResult> answered;
};

// The routes under test ask nothing of these.
class NoPlane final : public ClusterPlane {
  static Error none() { return {Errc::internal, "unasked", "nobody asks this", {}}; }
  Async<std::vector<lease::Answer>> apply(lease::Batch) override { co_return none(); }
  Async<std::vector<ClusterWish>> desired(ClusterId) override { co_return none(); }
  Async<Secret> model_url(std::int64_t) override { co_return none(); }
  Async<Nothing> subscribe(SubscriptionRecord) override { co_return none(); }
  Async<bool> unsubscribe(SubscriptionId) override { co_return none(); }
  Async<std::vector<SubscriptionId>> subscriptions_of(CameraId) override { co_return none(); }
  Async<Secret> token() override { co_return none(); }
};
class NoWorkers final : public DetectorLink {
  Async<std::unique_ptr<WorkerSocket>> dial(std::string) override { co_return std::unique_ptr<WorkerSocket>(); }
  Async<WorkerPicture> picture(std::string, std::string) override { co_return WorkerPicture(); }
};

class ListenRoute : public ::testing::Test {
 protected:
  ListenRoute() {
    add_product_routes(router_, {front_, plane_, workers_}, metrics_, clock_, key_);
    EXPECT_TRUE(server_.listen("127.0.0.1:0"));
  }
  ~ListenRoute() override {
    if (!stopped_) stop();
  }
  void stop() {
    stopped_ = true;
    bool over = false;
    spawn(io_.get_executor(), server_.stop(10s), "the server's end", [&] { over = true; });
    EXPECT_TRUE(soon([&] { return over; }));
    EXPECT_TRUE(front_.listeners.empty());
  }
  bool soon(const std::function<bool()>& condition) { return test::soon(io_, condition); }
  template <class T>
  T finish(asio::awaitable<T> work) {
    return test::run_among(io_, std::move(work));
  }
  Result<net::WebSocket> connect(const std::string& query = {}, Role role = Role::runner) {
    auto client = net::HttpClient::create(io_, "ws://" + server_.address());
    net::Claims claims{.sub = "p", .role = role, .expires = clock_.wall() + 60s};
    net::ClientRequest request{.target = "/v1/cluster/listen" + query, .bearer = key_.sign(claims)};
    return finish(client->web_socket(std::move(request)));
  }
  std::string next(net::WebSocket& socket) {
    auto message = finish(socket.receive());
    return message ? message->bytes : "over";
  }
  void say(net::WebSocket& socket, std::string text) { EXPECT_TRUE(finish(socket.send({std::move(text), false}))); }

  asio::io_context io_{1};
  RealClock clock_;
  net::Metrics metrics_;
  FakeFront front_;
  NoPlane plane_;
  NoWorkers workers_;
  net::TokenKey key_ = *net::TokenKey::create(Secret("0123456789abcdef0123456789abcdef"));
  net::Router router_;
  net::HttpServer server_{io_, clock_, router_, {}};
  bool stopped_ = false;
};

TEST_F(ListenRoute, AProduct_IsToldWhatHappens_AndItsAnswerToASessionIsPassedOn) {
  auto socket = connect("?after=17-3&subscription=d1%3Bc1,d2%3Bc2&events=false");
  ASSERT_TRUE(socket) << socket.error().message;
  EXPECT_EQ(next(*socket), R"({"type":"listening","subscriptionIdentifiers":["d1;c1","d2;c2"],"events":false})");
  ASSERT_EQ(front_.listeners.size(), 1u);
  EXPECT_EQ(front_.listeners.front().after, "17-3");
  EXPECT_TRUE(front_.listeners.front().has_room());
  front_.tell(ClusterEvent{"worker:online", {}});
  front_.tell(SessionPatched{7, nullptr});
  EXPECT_EQ(next(*socket), R"({"type":"patchSession","sessionId":7,"data":null})");
  const std::string answer = R"({"type":"patchSessionResult","payload":{"sessionId":7,"success":true,"message":"done"}})";
  say(*socket, answer);
  ASSERT_TRUE(soon([&] { return front_.answered.size() == 1; }));
  EXPECT_TRUE(front_.answered[0] == (PatchSessionResult{7, true, "done"}));
  say(*socket, answer);
  EXPECT_EQ(next(*socket), R"({"type":"error","code":"patch_over","message":"another one was first"})");
  say(*socket, "nonsense");
  EXPECT_TRUE(next(*socket).starts_with(R"({"type":"error",)"));
  say(*socket, R"({"type":"listen","payload":{"subscriptionIdentifiers":[]}})");
  EXPECT_EQ(next(*socket), R"({"type":"listening","subscriptionIdentifiers":[],"events":false})");
  socket->cut();
  EXPECT_TRUE(soon([&] { return front_.listeners.empty(); }));
}

TEST_F(ListenRoute, WhatAViewerAnswers_DoesNotCount) {
  auto socket = connect("", Role::viewer);
  ASSERT_TRUE(socket) << socket.error().message;
  next(*socket);
  say(*socket, R"({"type":"patchSessionResult","payload":{"sessionId":7,"success":true}})");
  EXPECT_NE(next(*socket).find("role_forbidden"), std::string::npos);
  EXPECT_TRUE(front_.answered.empty());
}

TEST_F(ListenRoute, WhatIsWrongInTheAddress_IsRefusedBeforeTheUpgrade) {
  for (const char* query : {"?subscription=d1", "?subscription=", "?subscription=a%3Bb,,", "?events=yes", "?events="}) {
    auto socket = connect(query);
    ASSERT_FALSE(socket) << query;
    EXPECT_EQ(socket.error().code, Errc::invalid) << socket.error().message;
  }
  EXPECT_TRUE(front_.listeners.empty());
}

TEST_F(ListenRoute, AProductThatDoesNotRead_IsCutOff_AndTheOthersHearEverything) {
  auto deaf = connect(), good = connect();
  ASSERT_TRUE(deaf && good);
  ASSERT_TRUE(soon([&] { return front_.listeners.size() == 2; }));
  EXPECT_NE(next(*good).find("listening"), std::string::npos);
  const std::string much(64 << 10, 'x');
  int told = 0;
  bool was_full = false;
  // The client of `deaf` takes one message and waits for somebody to want it; then the kernel's buffers fill up.
  for (; front_.listeners.size() == 2 && told < 2'000; ++told) {
    front_.tell(ClusterEvent{"worker:state_report", {{"number", told}, {"much", much}}});
    was_full = was_full || !front_.listeners.front().has_room();
    EXPECT_NE(next(*good).find(fmt::format("\"number\":{},", told)), std::string::npos);
  }
  EXPECT_EQ(front_.listeners.size(), 1u) << told;
  EXPECT_TRUE(was_full) << "what it has missed would wait for it";
  front_.tell(ClusterEvent{"worker:online", {}});
  EXPECT_EQ(next(*good), R"({"type":"event","event":"worker:online","payload":{}})");
  EXPECT_NE(metrics_.text().find("weir_cluster_listeners_cut_total 1"), std::string::npos);
}

TEST_F(ListenRoute, AProcessThatStops_TellsItsListenersSo) {
  auto socket = connect();
  ASSERT_TRUE(socket);
  next(*socket);
  stop();
  EXPECT_EQ(next(*socket), "over");
  ASSERT_TRUE(socket->end());
  EXPECT_EQ(socket->end()->why, Why::closed_by_peer);
  EXPECT_EQ(socket->end()->code, 1001);
}

}  // namespace
}  // namespace weir::cluster

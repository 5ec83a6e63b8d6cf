#include "weir/http_plane/will_office.hpp"

#include "weir/base/json.hpp"
#include "weir/base/spawn.hpp"
#include "weir/net/server.hpp"

#include <gtest/gtest.h>

namespace weir::http_plane {
namespace {

namespace asio = boost::asio;
using net::Response;

Response refusal(int status, const char* code) {
  return Response::json(json::object{{"error", json::object{{"code", code}, {"message", "no"}}}}, status);
}

// A control plane, or whatever else listens at its address.
struct Site {
  explicit Site(asio::io_context& io) : server(io, clock, router, net::ServerLimits{}) {
    auto route = [this](net::Request& request) -> asio::awaitable<Response> {
      asked.push_back(request.path + " " + std::string(request.header("authorization")) + " " + request.body);
      co_return answer();
    };
    router.add(net::Method::post, "/v1/runners/{runner_id}/release-all", route);
    EXPECT_TRUE(server.listen("127.0.0.1:0"));
  }
  std::string url() const { return "http://" + server.address(); }

  std::function<Response()> answer = [] { return Response::json(json::object{{"released", 3}}); };
  std::vector<std::string> asked;
  RealClock clock;
  net::Router router;
  net::HttpServer server;
};

class WillOfficeTest : public ::testing::Test {
 protected:
  ~WillOfficeTest() override {
    office_.reset();
    for (Site* site : {&first_, &second_}) finish(site->server.stop(0s));
  }
  void finish(asio::awaitable<void> work) {
    bool ended = false;
    spawn(io_.get_executor(), std::move(work), "the test", [&] { ended = true; });
    for (Instant until = boot_now() + 20s; !ended && boot_now() < until;) io_.run_one_for(10ms);
    EXPECT_TRUE(ended);
  }
  void open(const std::string& urls) {
    auto office = HttpWillOffice::create(io_, urls, "");
    ASSERT_TRUE(office) << office.error().message;
    office_ = *std::move(office);
  }
  WillAnswer answer() {
    WillAnswer out = WillAnswer::none;
    auto ask = [&]() -> asio::awaitable<void> {
      Testament testament{RunnerId::trusted("r 1"), BootId::trusted("b1"), Secret("w1")};
      out = co_await office_->carry_out(std::move(testament));
    };
    finish(ask());
    return out;
  }

  asio::io_context io_{1};
  Site first_{io_}, second_{io_};
  std::unique_ptr<WillOffice> office_;
};

TEST_F(WillOfficeTest, AWill_IsCarriedOut) {
  open(first_.url());
  EXPECT_EQ(office_->addresses(), 1);
  EXPECT_EQ(answer(), WillAnswer::carried_out);
  EXPECT_EQ(first_.asked, std::vector<std::string>{"/v1/runners/r 1/release-all Will w1 {\"boot_id\":\"b1\"}"});
}

TEST_F(WillOfficeTest, ARefusal_IsOneOfTheControlPlanesOwn_AndTheNextAddressIsAskedThen) {
  first_.answer = [] { return refusal(403, "will_refused"); };
  open(first_.url() + "," + second_.url());
  EXPECT_EQ(office_->addresses(), 2);
  EXPECT_EQ(answer(), WillAnswer::refused);
  EXPECT_EQ(answer(), WillAnswer::carried_out);
  EXPECT_EQ(second_.asked.size(), 1u);
}

TEST_F(WillOfficeTest, WhatSomebodyElseAnswers_SaysNothing) {
  for (Response (*each)() : {+[] { return Response::text("<html>", 403, "text/html"); },
                             +[] { return refusal(503, "store_unavailable"); }, +[] { return refusal(401, "no_token"); }}) {
    first_.answer = each;
    open(first_.url());
    EXPECT_EQ(answer(), WillAnswer::none);
  }
}

TEST_F(WillOfficeTest, NobodyThere_IsNoAnswer_AndAnAddressWithoutSenseIsAnError) {
  open("http://127.0.0.1:1");
  EXPECT_EQ(answer(), WillAnswer::none);
  EXPECT_FALSE(HttpWillOffice::create(io_, "nonsense", ""));
}

}  // namespace
}  // namespace weir::http_plane

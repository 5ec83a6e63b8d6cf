#include "weir/ws_detector/ws_link.hpp"

#include "weir/base/json.hpp"
#include "weir/net/server.hpp"

#include "run_among.hpp"

#include <gtest/gtest.h>

namespace weir::ws_detector {
namespace {

namespace asio = boost::asio;
using net::Response;

// A worker that answers what the test says.
class WsLinkPicture : public testing::Test {
 protected:
  WsLinkPicture() {
    router_.add(net::Method::get, "/camera/{camera}/image", [this](net::Request& request) -> asio::awaitable<Response> {
      camera_ = request.param("camera");
      credential_ = std::string(request.header("authorization"));
      while (silent_) co_await clock_.wait(1ms);
      co_return answer_;
    });
    EXPECT_TRUE(server_.listen("127.0.0.1:0"));
  }
  ~WsLinkPicture() override {
    silent_ = false;
    EXPECT_TRUE(finish(end()));
  }
  asio::awaitable<Status> end() {
    co_await server_.stop(5s);
    co_return ok();
  }
  template <class T>
  T finish(asio::awaitable<T> work) {
    return test::run_among(io_, std::move(work));
  }
  Result<WorkerPicture> ask(Config config = {.token = Secret("the-token"), .picture_bytes_max = 1000}) {
    WsLink link(io_, std::move(config));
    return finish(link.picture("ws://" + server_.address() + "/ws?key=1", "cam/1"));
  }

  asio::io_context io_{1};
  RealClock clock_;
  net::Router router_;
  net::HttpServer server_{io_, clock_, router_, {}};
  Response answer_ = Response::text("JPEG", 200, "image/jpeg");
  std::string camera_, credential_;
  bool silent_ = false;
};

TEST_F(WsLinkPicture, IsAskedOfTheWorkersAddress_WithItsToken) {
  answer_.headers.emplace_back("X-Captured-At", "2026-01-31T09:05:07.123Z");
  auto picture = ask();
  ASSERT_TRUE(picture) << picture.error().message;
  EXPECT_EQ(picture->jpeg, "JPEG");
  EXPECT_EQ(picture->captured_at, "2026-01-31T09:05:07.123Z");
  EXPECT_EQ(camera_, "cam/1");
  EXPECT_EQ(credential_, "Bearer the-token");
}

TEST_F(WsLinkPicture, WhereThereIsNone_TheReasonIsTheWorkers) {
  answer_ = Response::failure({Errc::not_found, "no_picture", "this worker has no picture of that camera yet", {}});
  auto picture = ask();
  ASSERT_FALSE(picture);
  EXPECT_EQ(picture.error().code, Errc::not_found);
  EXPECT_EQ(picture.error().reason, "no_picture");
}

TEST_F(WsLinkPicture, AWorkersRefusal_IsNoRefusalOfWhoAsked) {
  for (Errc why : {Errc::unauthorized, Errc::forbidden, Errc::internal}) {
    answer_ = Response::failure({why, "token_invalid", "this worker's bearer token is needed", {}});
    auto picture = ask();
    ASSERT_FALSE(picture);
    EXPECT_EQ(picture.error().code, Errc::unavailable);
  }
}

TEST_F(WsLinkPicture, WhatIsTooLarge_NoJpeg_OrLate_IsRefused) {
  auto code = [](const Result<WorkerPicture>& picture) { return picture ? Errc::internal : picture.error().code; };
  answer_.body = std::string(2000, 'x');
  EXPECT_EQ(code(ask()), Errc::unavailable);
  answer_ = Response::text("<html>", 200, "text/html");
  EXPECT_EQ(code(ask()), Errc::unavailable);
  silent_ = true;
  EXPECT_EQ(code(ask({.picture_within = 200ms})), Errc::unavailable);
}

}  // namespace
}  // namespace weir::ws_detector

// A cluster's ad-hoc subscriptions, as its process writes them to a control plane that answers what the test says.
#include "weir/http_plane/cluster_plane.hpp"

#include "weir/base/json.hpp"
#include "weir/net/server.hpp"

#include "run_among.hpp"

#include <gtest/gtest.h>

namespace weir::http_plane {
namespace {

namespace asio = boost::asio;
using net::Response;

class ClusterPlaneSubscriptions : public testing::Test {
 protected:
  ClusterPlaneSubscriptions() {
    for (auto [method, path] : {std::pair(net::Method::post, "/v1/subscriptions"), {net::Method::get, "/v1/subscriptions"},
                                {net::Method::del, "/v1/subscriptions/{id}"}})
      router_.add(method, path, [this](net::Request& request) -> asio::awaitable<Response> {
        asked_.push_back(std::move(request));
        co_return answer_;
      });
    EXPECT_TRUE(server_.listen("127.0.0.1:0"));
    Config config{.url = "http://" + server_.address(), .runner = RunnerId::trusted("one"),
                  .key = *net::TokenKey::create(Secret("0123456789abcdef0123456789abcdef"))};
    plane_ = *HttpClusterPlane::create(io_, clock_, std::move(config));
  }
  ~ClusterPlaneSubscriptions() override { EXPECT_TRUE(finish(end())); }
  asio::awaitable<Status> end() {
    plane_.reset();
    co_await server_.stop(0s);
    co_return ok();
  }
  template <class T>
  T finish(asio::awaitable<T> work) {
    return test::run_among(io_, std::move(work));
  }
  static Error refusal(Errc code, const char* reason) { return {code, reason, "a sentence", {}}; }

  asio::io_context io_{1};
  RealClock clock_;
  net::Router router_;
  net::HttpServer server_{io_, clock_, router_, {}};
  Response answer_ = Response::json(json::object());
  std::vector<net::Request> asked_;
  std::unique_ptr<HttpClusterPlane> plane_;
};

TEST_F(ClusterPlaneSubscriptions, AreWrittenWithTheirOptions_AndARefusalKeepsItsCode) {
  SubscriptionRecord wanted{.id = SubscriptionId::trusted("kiosk;c1"), .camera = CameraId::trusted("c1"), .model = 7};
  wanted.options.snapshot_url = Secret("http://user:secret@camera/still.jpg");
  wanted.options.snapshot_interval_ms = 500;
  ASSERT_TRUE(finish(plane_->subscribe(wanted)));
  auto body = *json::parse_text(asked_.back().body);
  EXPECT_EQ(body.at("subscription_identifier"), "kiosk;c1");
  EXPECT_EQ(body.at("model_id"), 7);
  EXPECT_EQ(body.at("snapshot_url"), "http://user:secret@camera/still.jpg");
  EXPECT_EQ(body.at("snapshot_interval_ms"), 500);
  for (auto [code, reason] : {std::pair(Errc::not_found, "camera_not_found"), {Errc::conflict, "id_taken"},
                              {Errc::unprocessable, "snapshot_host_refused"}}) {
    answer_ = Response::failure(refusal(code, reason));
    Status refused = finish(plane_->subscribe(wanted));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, code);
    EXPECT_EQ(refused.error().reason, reason);
  }
}

TEST_F(ClusterPlaneSubscriptions, EndOnce_AndASecondTimeIsNoError) {
  auto ended = finish(plane_->unsubscribe(SubscriptionId::trusted("kiosk;c/1")));
  ASSERT_TRUE(ended);
  EXPECT_TRUE(*ended);
  EXPECT_EQ(asked_.back().param("id"), "kiosk;c/1");
  answer_ = Response::failure(refusal(Errc::not_found, "subscription_not_found"));
  ended = finish(plane_->unsubscribe(SubscriptionId::trusted("kiosk;c1")));
  ASSERT_TRUE(ended);
  EXPECT_FALSE(*ended);
  answer_ = Response::failure(refusal(Errc::unavailable, "store_unavailable"));
  EXPECT_FALSE(finish(plane_->unsubscribe(SubscriptionId::trusted("kiosk;c1"))));
}

TEST_F(ClusterPlaneSubscriptions, OfOneCamera_AreThoseThatNameIt) {
  json::array items;
  for (auto [id, camera] : {std::pair("a;c1", "c1"), {"b;c2", "c2"}, {"d;c1", "c1"}})
    items.push_back(json::object{{"subscription_identifier", id}, {"camera_uuid", camera}});
  answer_ = Response::json(json::object{{"items", items}, {"next_cursor", nullptr}});
  auto found = finish(plane_->subscriptions_of(CameraId::trusted("c1")));
  ASSERT_TRUE(found);
  EXPECT_EQ(*found, (std::vector{SubscriptionId::trusted("a;c1"), SubscriptionId::trusted("d;c1")}));
}

}  // namespace
}  // namespace weir::http_plane

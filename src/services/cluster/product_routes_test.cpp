// The routes for products at processes of a cluster that share one Redis, in virtual time.
#include "backend_rig.hpp"

#include "weir/cluster/product_routes.hpp"

namespace weir::cluster::testing {
namespace {

using net::Method;
using net::Role;

class ProductRoutes : public BackendTest {
 protected:
  // A master and another process; a worker runs d1;c1.
  void start_cluster() {
    want("d1;c1");
    open("one");
    ASSERT_TRUE(within(15s, [&] { return backends_.at("one")->is_master() && runs("d1;c1"); }));
    open("two");
    ASSERT_TRUE(within(15s, [&] { return state(*backends_.at("two")).at("totalSlaves") == 2; }));
    pass(2s);
  }
  void open(const std::string& id) {
    Backend& backend = start(id);
    add_product_routes(routers_[id], {backend, *planes_[id], link_}, metrics_, clock_, key_);
  }
  std::string token(Role role, const std::string& tenant = {}) {
    net::Claims claims{.sub = "p", .role = role, .expires = clock_.wall() + 60s};
    if (!tenant.empty()) claims.tenant = TenantId::trusted(tenant);
    return key_.sign(claims).reveal();
  }
  net::Response ask_as(const std::string& token, const std::string& at, Method method, const std::string& path,
                       const std::string& body = {}) {
    net::Request request;
    request.method = method;
    request.path = path;
    request.body = body;
    if (!token.empty()) request.headers["authorization"] = "Bearer " + token;
    auto found = routers_.at(at).find(method, path, request);
    if (!found) return net::Response::failure(found.error());
    using Out = std::optional<net::Response>;
    Out out;
    auto answer = [](const net::Handler* handler, net::Request* asked, Out* to) -> asio::awaitable<void> {
      to->emplace(co_await (*handler)(*asked));
    };
    spawn(io_.get_executor(), answer(found->handler, &request, &out), "a request");
    EXPECT_TRUE(within(10s, [&] { return out.has_value(); })) << path;
    return out ? *std::move(out) : net::Response{};
  }
  net::Response ask_at(const std::string& at, Method method, const std::string& path, const std::string& body = {}) {
    return ask_as(token(Role::runner), at, method, path, body);
  }
  net::Response subscribe(const std::string& at, const std::string& id) {
    return ask_at(at, Method::post, "/v1/cluster/subscriptions",
                  fmt::format(R"({{"subscription_identifier":"{}","model_id":7}})", id));
  }
  static std::string code(const net::Response& response) {
    auto body = json::parse_text(response.body);
    if (!body || response.status < 400) return fmt::format("{}", response.status);
    return std::string(body->at("error").at("code").as_string());
  }
  static std::string sentence(const net::Response& response) {
    return std::string(json::parse_text(response.body)->at("error").at("message").as_string());
  }

  net::TokenKey key_ = *net::TokenKey::create(Secret("0123456789abcdef0123456789abcdef"));
  std::map<std::string, net::Router> routers_;
};

TEST_F(ProductRoutes, ASubscription_IsARow_AndEndsAsOne) {
  start_cluster();
  const std::string body = R"({"subscription_identifier":"kiosk;c1","model_id":7,)"
                           R"("crop_x1":1,"crop_y1":2,"crop_x2":30,"crop_y2":40})";
  net::Response made = ask_at("two", Method::post, "/v1/cluster/subscriptions", body);
  EXPECT_EQ(made.status, 201);
  EXPECT_EQ(made.body, R"({"subscription_identifier":"kiosk;c1","subscribed":true})");
  ASSERT_TRUE(ad_hoc_->contains("kiosk;c1"));
  EXPECT_EQ(ad_hoc_->at("kiosk;c1").camera.str(), "c1");
  EXPECT_EQ(ad_hoc_->at("kiosk;c1").options.crop_x2, 30);
  EXPECT_EQ(ask_at("two", Method::del, "/v1/cluster/subscriptions/kiosk;c1").body,
            R"({"subscription_identifier":"kiosk;c1","deleted":true})");
  net::Response again = ask_at("one", Method::del, "/v1/cluster/subscriptions/kiosk%3Bc1");
  EXPECT_EQ(again.status, 200) << "it is gone already, as was wished";
  EXPECT_EQ(again.body, R"({"subscription_identifier":"kiosk;c1","deleted":false})");
  for (const char* id : {"a;c1", "b;c1", "b;c2"})
    subscribe("one", id);
  EXPECT_EQ(ask_at("two", Method::del, "/v1/cluster/cameras/c1/subscriptions").body,
            R"({"camera_uuid":"c1","deleted":["a;c1","b;c1"]})");
  EXPECT_EQ(ad_hoc_->size(), 1u);
}

TEST_F(ProductRoutes, ASubscription_TriggersTheMasterAtOnce_AndWaitsForNoWorker) {
  start_cluster();
  wishes_->push_back({.subscription = wanted("kiosk;c1"), .site = SiteId::trusted("s1")});  // what the row will say
  EXPECT_EQ(subscribe("two", "kiosk;c1").status, 201);
  EXPECT_TRUE(within(500ms, [&] { return runs("kiosk;c1"); }));
  for (auto& [url, worker] : link_.workers) worker->up = false;
  pass(20s);
  EXPECT_EQ(subscribe("two", "x;c1").body,
            R"({"subscription_identifier":"x;c1","subscribed":true,"warning":"No workers available for assignment"})");
}

TEST_F(ProductRoutes, WhatIsWrong_IsSaid_AndNothingIsWritten) {
  start_cluster();
  auto say = [&](const std::string& body) { return ask_at("two", Method::post, "/v1/cluster/subscriptions", body); };
  net::Response bad = say(R"({"subscription_identifier":"no semicolon","model_id":7})");
  EXPECT_EQ(bad.status, 400);
  EXPECT_TRUE(sentence(bad).starts_with("Invalid subscription identifier format")) << sentence(bad);
  net::Response no_file = say(R"({"subscription_identifier":"d;c1","model_id":99})");
  EXPECT_EQ(no_file.status, 409);
  EXPECT_EQ(code(no_file), "no_file");
  EXPECT_TRUE(sentence(no_file).starts_with("Model URL expired or inaccessible")) << sentence(no_file);
  EXPECT_EQ(code(say(R"({"subscription_identifier":"d;nowhere","model_id":7})")), "camera_not_found");
  for (const char* body : {"", "[]", "{", R"({"model_id":7})", R"({"subscription_identifier":"d;c1"})",
                           R"({"subscription_identifier":"d;c1","model_id":0})",
                           R"({"subscription_identifier":7,"model_id":7})",
                           R"({"subscription_identifier":"a;b;c","model_id":7})",
                           R"({"subscription_identifier":";c1","model_id":7})",
                           R"({"subscription_identifier":"d;c1","model_id":7,"crop_x1":5})",
                           R"({"subscription_identifier":"d;c1","model_id":7,"rtsp_url":"rtsp://x/y"})"})
    EXPECT_EQ(say(body).status, 400) << body;
  for (const char* body : {"", "7", "{}", R"({"session_id":"7"})", R"({"session_id":1.5})"})
    EXPECT_EQ(ask_at("two", Method::put, "/v1/cluster/displays/d1/session", body).status, 400) << body;
  EXPECT_EQ(ask_at("two", Method::del, "/v1/cluster/subscriptions/nothing").status, 400);
  EXPECT_EQ(code(ask_at("two", Method::post, "/v1/cluster/cameras/c9/resubscribe")), "no_subscription");
  EXPECT_EQ(code(ask_at("one", Method::get, "/v1/cluster/cameras/c9/image")), "camera_not_found");
  EXPECT_TRUE(ad_hoc_->empty());
  planes_["two"]->up = false;
  EXPECT_EQ(say(R"({"subscription_identifier":"d;c1","model_id":7})").status, 503);
  EXPECT_EQ(ask_at("two", Method::del, "/v1/cluster/cameras/c1/subscriptions").status, 503);
}

TEST_F(ProductRoutes, ResubscribingACamera_GivesItsSubscriptionsAnew_WithFreshModelLinks) {
  want("d2;c1");
  want("d3;c2");
  start_cluster();
  ASSERT_TRUE(within(10s, [&] { return runs("d2;c1") && runs("d3;c2"); }));
  auto given = [&](const std::string& id) { return worker_with(id).times("subscribe " + id); };
  for (const char* at : {"two", "one"}) {
    size_t first = given("d1;c1"), second = given("d2;c1"), other = given("d3;c2");
    int links = planes_["one"]->links;
    EXPECT_EQ(ask_at(at, Method::post, "/v1/cluster/cameras/c1/resubscribe").body,
              R"({"camera_uuid":"c1","resubscribed":true})");
    EXPECT_TRUE(within(1s, [&] { return given("d1;c1") == first + 1 && given("d2;c1") == second + 1; })) << at;
    pass(10s);
    EXPECT_EQ(given("d1;c1"), first + 1) << "once";
    EXPECT_EQ(given("d3;c2"), other);
    EXPECT_EQ(planes_["one"]->links, links + 1) << "a fresh link, one for both: they have one model";
  }
}

TEST_F(ProductRoutes, SessionsAndRebalancing_AreTheMastersAtAnyProcess) {
  start_cluster();
  EXPECT_EQ(ask_at("two", Method::put, "/v1/cluster/displays/d1/session", R"({"session_id":9})").body,
            R"({"display_id":"d1","session_id":9})");
  EXPECT_EQ(link_.workers.at(kA)->times("session d1=9"), 1u);
  EXPECT_EQ(ask_at("one", Method::put, "/v1/cluster/displays/d1/session", R"({"session_id":null})").body,
            R"({"display_id":"d1","session_id":null})");
  EXPECT_EQ(link_.workers.at(kA)->times("session d1=0"), 1u);
  wishes_->push_back({.subscription = wanted("d2;c2"), .site = SiteId::trusted("s1")});
  EXPECT_EQ(ask_at("two", Method::post, "/v1/cluster/rebalance").body, R"({"rebalanced":true})");
  EXPECT_TRUE(within(500ms, [&] { return runs("d2;c2"); }));
  redis_.set_away(true);
  EXPECT_EQ(ask_at("two", Method::post, "/v1/cluster/rebalance").body, R"({"rebalanced":true})");
  EXPECT_EQ(code(ask_at("two", Method::put, "/v1/cluster/displays/d1/session", R"({"session_id":9})")), "no_master");
  net::Response state = ask_at("two", Method::get, "/v1/cluster/state");
  EXPECT_EQ(state.status, 200) << "a safe default";
}

TEST_F(ProductRoutes, ACamerasPicture_ComesFromTheWorkerThatHasIt) {
  start_cluster();
  EXPECT_EQ(code(ask_at("two", Method::get, "/v1/cluster/cameras/c1/image")), "no_picture");
  worker_with("d1;c1").picture = "JPEG of ";
  for (const char* at : {"one", "two"}) {
    net::Response image = ask_as(token(Role::viewer), at, Method::get, "/v1/cluster/cameras/c1/image");
    EXPECT_EQ(image.status, 200);
    EXPECT_EQ(image.body, "JPEG of c1");
    EXPECT_EQ(image.content_type, "image/jpeg");
  }
}

TEST_F(ProductRoutes, ViewersRead_WorkersAndTenantsAreRefused_AndNobodyIsUnknown) {
  start_cluster();
  const std::pair<Method, const char*> changes[] = {{Method::post, "/v1/cluster/subscriptions"},
                                                    {Method::del, "/v1/cluster/subscriptions/d;c"},
                                                    {Method::del, "/v1/cluster/cameras/c1/subscriptions"},
                                                    {Method::post, "/v1/cluster/cameras/c1/resubscribe"},
                                                    {Method::post, "/v1/cluster/rebalance"},
                                                    {Method::put, "/v1/cluster/displays/d/session"}};
  const std::pair<Method, const char*> reads[] = {{Method::get, "/v1/cluster/state"},
                                                  {Method::get, "/v1/cluster/cameras/c1/image"},
                                                  {Method::get, "/v1/cluster/listen"}};
  for (const auto& [method, path] : changes)
    EXPECT_EQ(code(ask_as(token(Role::viewer), "two", method, path)), "role_forbidden") << path;
  for (const auto& [method, path] : reads)
    EXPECT_NE(code(ask_as(token(Role::viewer), "two", method, path)), "role_forbidden") << path;
  auto refused_for_all = [&](Method method, const char* path) {
    EXPECT_EQ(code(ask_as("", "two", method, path)), "token_missing") << path;
    EXPECT_EQ(ask_as("abc", "two", method, path).status, 401) << path;
    EXPECT_EQ(code(ask_as(token(Role::worker), "two", method, path)), "role_forbidden") << path;
    EXPECT_EQ(code(ask_as(token(Role::admin, "t1"), "two", method, path)), "role_forbidden") << path;
  };
  for (const auto& [method, path] : changes) refused_for_all(method, path);
  for (const auto& [method, path] : reads) refused_for_all(method, path);
}

}  // namespace
}  // namespace weir::cluster::testing

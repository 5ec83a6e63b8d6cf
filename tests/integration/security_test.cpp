// Who may do what, over HTTP: roles, runners, tenants and tokens. What must not leak: security_leak_test.cpp.
#include "api_store.hpp"
#include "api_talk.hpp"

#include "weir/base/clock.hpp"
#include "weir/net/token.hpp"

#include <boost/algorithm/string/replace.hpp>

namespace weir::test {
namespace {

using net::Method;

struct Guarded {
  Method method;
  std::string target;
  json::value body;
  std::string roles;  // who may: a admin, r runner, w worker, v viewer
};

// Bodies and places are chosen so that an allowed request changes nothing that another row needs.
std::vector<Guarded> guarded_routes() {
  const json::object lease{{"runner_id", "runner-1"}, {"boot_id", "b1"}, {"camera_uuid", "none"}, {"ttl_seconds", 6}};
  const json::object batch{{"runner_id", "runner-1"},
                           {"boot_id", "b1"},
                           {"ttl_seconds", 6},
                           {"items", json::array{json::object{{"camera_uuid", "none"}, {"version", 1}, {"key", "k"}}}}};
  const json::object beat{{"runner_id", "runner-1"}};
  const std::string nested = "/v1/tenants/t1/sites/s1/cameras", zones = "/v1/tenants/t1/sites/s1/zones";
  const json::value none;
  std::vector<Guarded> all = {
      {Method::get, "/v1/leases", none, "arwv"},
      {Method::get, "/v1/leases/camera/cam-1", none, "arwv"},
      {Method::post, "/v1/leases/camera/none/revoke", none, "a"},
      {Method::get, "/v1/tenants", none, "av"},
      {Method::post, "/v1/tenants", {{"tenant_id", "t1"}}, "a"},
      {Method::del, "/v1/tenants/none", none, "a"},
      {Method::get, "/v1/api-keys", none, "a"},
      {Method::post, "/v1/api-keys", json::object{}, "a"},
      {Method::del, "/v1/api-keys/none", none, "a"},
      {Method::get, "/v1/sites", none, "av"},
      {Method::post, "/v1/sites", {{"site_id", "s1"}, {"tenant_id", "t1"}}, "a"},
      {Method::get, "/v1/sites/s1", none, "av"},
      {Method::del, "/v1/sites/none", none, "a"},
      {Method::get, "/v1/sites/s1/budget", none, "arv"},
      {Method::put, "/v1/sites/none/budget", {{"capacity", 5}, {"refill_rate", 5}}, "a"},
      {Method::post, "/v1/sites/s1/budget/consume", none, "ar"},
      {Method::post, "/v1/runners/register", beat, "ar"},
      {Method::post, "/v1/runners/heartbeat", beat, "ar"},
      {Method::put, "/v1/runners/runner-1/heartbeat", beat, "ar"},
      {Method::post, "/v1/runners/runner-1/heartbeat", beat, "ar"},
      {Method::get, "/v1/runners", none, "av"},
      {Method::get, "/v1/runners/runner-1", none, "avr"},
      {Method::patch, "/v1/runners/none", {{"cordoned", true}}, "a"},
      {Method::del, "/v1/runners/none", none, "a"},
  };
  for (std::string operation : {"acquire", "renew", "release"}) {
    all.push_back({Method::post, "/v1/leases/camera/" + operation, lease, "ar"});
    all.push_back({Method::post, "/v1/leases/camera/" + operation + "-batch", batch, "ar"});
  }
  for (const std::string& base : {std::string("/v1/cameras"), nested}) {
    all.push_back({Method::get, base, none, "arv"});
    all.push_back({Method::post, base, json::object{}, "a"});
    all.push_back({Method::get, base + "/cam-1", none, "arv"});
    all.push_back({Method::put, base + "/none", json::object{}, "a"});
    all.push_back({Method::patch, base + "/none", json::object{}, "a"});
    all.push_back({Method::del, base + "/none", none, "a"});
  }
  for (const std::string& base : {std::string("/v1/cameras/cam-1/zones"), zones}) {
    all.push_back({Method::get, base, none, "arv"});
    all.push_back({Method::post, base, json::object{}, "a"});
    all.push_back({Method::get, base + "/1", none, "arv"});
    all.push_back({Method::put, base + "/1", json::object{}, "a"});
    all.push_back({Method::del, base + "/9", none, "a"});
  }
  return all;
}

void expect_unauthorized(const Reply& reply, const std::string& what) {
  EXPECT_EQ(reply.status, 401) << what << " " << reply.text;
  EXPECT_FALSE(reply.code().empty()) << what;
  auto challenge = reply.headers.find("www-authenticate");
  EXPECT_TRUE(challenge != reply.headers.end() && challenge->second == "Bearer") << what;
}

class Security : public testing::Test {
 protected:
  Security() : process(folder.path(), "sqlite:" + folder.path() + "/weir.db") {}
  TempDir folder;
  WeirProcess process;
};

TEST_F(Security, EveryRoute_AnswersItsRoles_AndNobodyElse) {
  process.furnish(1);
  ASSERT_EQ(process.post("/v1/runners/register", {{"runner_id", "runner-1"}}).status, 200);
  ASSERT_EQ(
      process
          .post("/v1/leases/camera/acquire", {{"runner_id", "runner-1"}, {"camera_uuid", "cam-1"}, {"ttl_seconds", 60}})
          .status,
      200);
  Talk nobody(process, Secret());
  for (const Guarded& route : guarded_routes()) {
    std::string what = fmt::format("{} {}", net::to_string(route.method), route.target);
    Reply without = nobody.ask(route.method, route.target, route.body);
    expect_unauthorized(without, what);
    EXPECT_EQ(without.code(), "token_missing");
  }
  for (std::string role : {"admin", "runner", "worker", "viewer"}) {
    Talk talk(process, process.token(role, "runner-1"));
    for (const Guarded& route : guarded_routes()) {
      Reply reply = talk.ask(route.method, route.target, route.body);
      bool may = route.roles.find(role[0]) != std::string::npos;
      EXPECT_EQ(reply.status == 403, !may)
          << role << " " << net::to_string(route.method) << " " << route.target << " " << reply.status << reply.text;
      EXPECT_EQ(reply.code() == "role_forbidden", !may) << reply.text;
      EXPECT_TRUE(reply.status != 401 && reply.status < 500 && reply.status != 0) << reply.status << reply.text;
    }
  }
}

TEST_F(Security, Runner_SpeaksForItselfOnly) {
  process.furnish(2);
  ASSERT_EQ(process.post("/v1/runners/register", {{"runner_id", "runner-2"}}).status, 200);
  Talk runner(process, process.token("runner", "runner-1"));
  const json::object other{{"runner_id", "runner-2"}, {"boot_id", "b1"}, {"camera_uuid", "cam-1"}, {"ttl_seconds", 6}};
  json::object many = other;
  many["items"] = json::array{json::object{{"camera_uuid", "cam-1"}, {"version", 1}, {"key", "k"}}};
  std::vector<std::pair<std::string, Reply>> foreign;
  for (std::string operation : {"acquire", "renew", "release"}) {
    foreign.emplace_back(operation, runner.post("/v1/leases/camera/" + operation, other));
    foreign.emplace_back(operation, runner.post("/v1/leases/camera/" + operation + "-batch", many));
  }
  foreign.emplace_back("register", runner.post("/v1/runners/register", {{"runner_id", "runner-2"}}));
  foreign.emplace_back("heartbeat", runner.post("/v1/runners/heartbeat", {{"runner_id", "runner-2"}}));
  foreign.emplace_back("heartbeat", runner.put("/v1/runners/runner-2/heartbeat", json::object{}));
  foreign.emplace_back("show", runner.get("/v1/runners/runner-2"));
  foreign.emplace_back("leases", runner.get("/v1/leases?runner_id=runner-2"));
  for (const auto& [what, reply] : foreign) {
    EXPECT_EQ(reply.status, 403) << what << reply.text;
    EXPECT_EQ(reply.code(), "not_yours") << what;
  }
  // A runner may list its own leases, and a list without a filter shows its own.
  for (std::string name : {"runner-1", "runner-2"}) {
    std::string camera = name == "runner-1" ? "cam-1" : "cam-2";
    Talk self(process, process.token("runner", name));
    EXPECT_EQ(
        self.post("/v1/leases/camera/acquire", {{"runner_id", name}, {"camera_uuid", camera}, {"ttl_seconds", 60}})
            .status,
        200);
  }
  Reply own = runner.get("/v1/leases");
  ASSERT_EQ(items_of(own).size(), 1u);
  EXPECT_EQ(items_of(own)[0].at("runner_id").as_string(), "runner-1");
  Talk worker(process, process.token("worker", "runner-1"));
  EXPECT_EQ(worker.get("/v1/leases/camera/cam-1").status, 200);
  EXPECT_EQ(worker.get("/v1/leases/camera/cam-2").status, 403);
}

TEST_F(Security, WrongTokens_AreRefused_AndNeverRepeated) {
  process.furnish(1);
  auto key = net::TokenKey::load_or_create(folder.path() + "/auth.secret");
  auto other = net::TokenKey::create(Secret(std::string(32, 'k')));
  ASSERT_TRUE(key && other);
  net::Claims claims{"me", net::Role::admin, {}, {}, wall_now() + 15min};
  net::Claims viewer = claims, expired = claims;
  viewer.role = net::Role::viewer;
  expired.expires = wall_now() - 1s;
  std::string good = key->sign(claims).reveal(), weak = key->sign(viewer).reveal();
  auto payload = [](const std::string& token) { return token.substr(0, token.rfind('.')); };
  auto middle = [&](const std::string& token) { return payload(token).substr(token.find('.') + 1); };
  auto signature = [](const std::string& token) { return token.substr(token.rfind('.') + 1); };
  auto header = [](const std::string& alg) { return net::base64url(R"({"alg":")" + alg + R"(","typ":"JWT"})"); };

  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"expired", key->sign(expired).reveal()},
      {"wrong key", other->sign(claims).reveal()},
      {"alg none, unsigned", header("none") + "." + middle(good) + "."},
      {"alg none, signed", header("none") + "." + middle(good) + "." + signature(good)},
      {"alg None", header("None") + "." + middle(good) + "."},
      {"alg RS256", header("RS256") + "." + middle(good) + "." + signature(good)},
      {"alg HS512", header("HS512") + "." + middle(good) + "." + signature(good)},
      {"another's claims", header("HS256") + "." + middle(good) + "." + signature(weak)},
      {"no signature", payload(good)},
      {"empty signature", payload(good) + "."},
      {"cut signature", good.substr(0, good.size() - 4)},
      {"four parts", good + ".x"},
      {"no token", "x"},
      {"dots", ".."},
      {"long", std::string(8000, 'a')},
  };
  for (const auto& [what, token] : wrong) {
    Talk talk(process, Secret(token));
    Reply reply = talk.get("/v1/cameras");
    expect_unauthorized(reply, what);
    EXPECT_EQ(reply.code(), what == "expired" ? "token_expired" : "token_invalid") << what;
    if (token.size() <= 2) continue;  // such a short one stands in every text
    EXPECT_EQ(reply.text.find(token), std::string::npos) << what;
    EXPECT_EQ(process.log().find(token), std::string::npos) << what;
  }
  Talk nobody(process, Secret());
  for (std::string header_value : {"Basic dTpw", "Bearer", "Bearer ", good.c_str(), "Token x"}) {
    net::ClientRequest request = request_for(Method::get, "/v1/cameras", nullptr, Secret());
    request.headers = {{"Authorization", header_value}};
    expect_unauthorized(nobody.send(request), header_value.substr(0, 10));
  }
  EXPECT_EQ(Talk(process, Secret(good)).get("/v1/cameras").status, 200);
  EXPECT_EQ(process.log().find(good), std::string::npos);
}

// ---- tenants ----

class Tenants : public OverBothStores {
 protected:
  // Tenants red and blue, each with a site, a camera with a zone, and a runner that holds the camera.
  void furnish() {
    Talk all(process(), process().token("admin"));
    const json::value triangle = json::array{json::array{0, 0}, json::array{9, 0}, json::array{9, 9}};
    for (std::string tenant : {"red", "blue"}) {
      ASSERT_EQ(all.post("/v1/tenants", {{"tenant_id", tenant}}).status, 201);
      ASSERT_EQ(all.post("/v1/sites", {{"site_id", tenant + "-site"}, {"tenant_id", tenant}}).status, 201);
      Reply camera =
          all.post("/v1/cameras", {{"camera_uuid", tenant + "-cam"},
                                   {"tenant_id", tenant},
                                   {"site_id", tenant + "-site"},
                                   {"rtsp_url", "rtsp://c.example/1"},
                                   {"zones", json::array{json::object{{"zone_id", 1}, {"polygon", triangle}}}}});
      ASSERT_EQ(camera.status, 201) << camera.text;
      Talk runner(process(), process().token("runner", tenant + "-runner", tenant));
      ASSERT_EQ(runner.post("/v1/runners/register", {{"runner_id", tenant + "-runner"}}).status, 200);
      ASSERT_EQ(runner
                    .post("/v1/leases/camera/acquire",
                          {{"runner_id", tenant + "-runner"}, {"ttl_seconds", 60}, {"camera_uuid", tenant + "-cam"}})
                    .status,
                200);
    }
  }
};
INSTANTIATE_OVER_BOTH_STORES(Tenants);

TEST_P(Tenants, SeeNothingOfEachOther) {
  START_OR_SKIP();
  furnish();
  for (std::string role : {"admin", "viewer"}) {
    Talk red(process(), process().token(role, "me", "red"));
    for (std::string list : {"/v1/tenants", "/v1/sites", "/v1/cameras", "/v1/runners", "/v1/leases"}) {
      Reply reply = red.get(list);
      EXPECT_EQ(items_of(reply).size(), 1u) << list << reply.text;
      EXPECT_EQ(reply.text.find("blue"), std::string::npos) << list;
    }
    for (std::string list : {"/v1/sites?tenant_id=blue", "/v1/cameras?tenant_id=blue", "/v1/cameras?site_id=blue-site"})
      EXPECT_EQ(count_of(red.get(list)), 0u) << list;
    for (std::string target :
         {"/v1/sites/blue-site", "/v1/sites/blue-site/budget", "/v1/cameras/blue-cam", "/v1/cameras/blue-cam/zones",
          "/v1/cameras/blue-cam/zones/1", "/v1/runners/blue-runner", "/v1/leases/camera/blue-cam",
          "/v1/tenants/blue/sites/blue-site/cameras", "/v1/tenants/blue/sites/blue-site/cameras/blue-cam",
          "/v1/tenants/red/sites/blue-site/cameras/blue-cam", "/v1/tenants/blue/sites/blue-site/zones"}) {
      Reply foreign = red.get(target);
      EXPECT_EQ(foreign.status, 404) << role << " " << target << " " << foreign.text;
      // Another tenant's thing is answered as if it did not exist, in the same words.
      std::string none = boost::replace_all_copy(target, "blue-", "none-");
      EXPECT_EQ(red.get(none).text, foreign.text) << target;
    }
  }
}

TEST_P(Tenants, ChangeNothingOfEachOther) {
  START_OR_SKIP();
  furnish();
  Talk red(process(), process().token("admin", "me", "red"));
  const json::value triangle = json::array{json::array{0, 0}, json::array{9, 0}, json::array{9, 9}};
  const std::vector<std::tuple<Method, std::string, json::value>> foreign = {
      {Method::patch, "/v1/cameras/blue-cam", json::object{{"enabled", false}}},
      {Method::put, "/v1/cameras/blue-cam", json::object{{"rtsp_url", "rtsp://c.example/2"}}},
      {Method::del, "/v1/cameras/blue-cam", nullptr},
      {Method::post, "/v1/cameras/blue-cam/zones", json::object{{"zone_id", 2}, {"polygon", triangle}}},
      {Method::put, "/v1/cameras/blue-cam/zones/1", json::object{{"polygon", triangle}}},
      {Method::del, "/v1/cameras/blue-cam/zones/1", nullptr},
      {Method::del, "/v1/sites/blue-site", nullptr},
      {Method::put, "/v1/sites/blue-site/budget", json::object{{"capacity", 1}, {"refill_rate", 1}}},
      {Method::post, "/v1/sites/blue-site/budget/consume", nullptr},
      {Method::patch, "/v1/runners/blue-runner", json::object{{"cordoned", true}}},
      {Method::del, "/v1/runners/blue-runner", nullptr},
      {Method::put, "/v1/runners/blue-runner/heartbeat", json::object{}},
      {Method::post, "/v1/leases/camera/blue-cam/revoke", nullptr},
      {Method::post, "/v1/sites", json::object{{"site_id", "new"}, {"tenant_id", "blue"}}},
      {Method::post, "/v1/cameras",
       json::object{{"camera_uuid", "new"},
                    {"tenant_id", "blue"},
                    {"site_id", "blue-site"},
                    {"rtsp_url", "rtsp://c.example/1"}}},
      {Method::post, "/v1/leases/camera/acquire",
       json::object{{"runner_id", "red-runner"}, {"camera_uuid", "blue-cam"}, {"ttl_seconds", 6}}}};
  for (const auto& [method, target, body] : foreign) {
    Reply reply = red.ask(method, target, body);
    EXPECT_EQ(reply.status, 404) << net::to_string(method) << " " << target << " " << reply.text;
  }
  for (const auto& [method, target] : {std::pair{Method::post, "/v1/tenants"}, {Method::del, "/v1/tenants/blue"}})
    EXPECT_EQ(red.ask(method, target, method == Method::post ? json::value{{"tenant_id", "x"}} : json::value()).status,
              403);
  Reply batch = red.post("/v1/leases/camera/acquire-batch",
                         {{"runner_id", "red-runner"},
                          {"boot_id", "b"},
                          {"ttl_seconds", 6},
                          {"items", json::array{json::object{{"camera_uuid", "blue-cam"}, {"key", "k"}}}}});
  ASSERT_EQ(items_of(batch).size(), 1u) << batch.text;
  EXPECT_EQ(items_of(batch)[0].at("reason").as_string(), "not_found");

  // An id that another tenant has is taken, and that is all there is to know.
  const std::vector<std::pair<std::string, json::value>> taken = {
      {"/v1/sites", json::object{{"site_id", "blue-site"}, {"tenant_id", "red"}}},
      {"/v1/cameras", json::object{{"camera_uuid", "blue-cam"},
                                   {"tenant_id", "red"},
                                   {"site_id", "red-site"},
                                   {"rtsp_url", "rtsp://c.example/1"}}},
      {"/v1/runners/register", json::object{{"runner_id", "blue-runner"}}}};
  for (const auto& [target, body] : taken) {
    Reply reply = red.post(target, body);
    EXPECT_EQ(reply.status, 409) << target << reply.text;
    EXPECT_EQ(reply.text.find("blue"), std::string::npos) << reply.text;
  }
  // Every tenant may see a runner without a tenant, and none may command it.
  Talk all(process(), process().token("admin"));
  ASSERT_EQ(all.post("/v1/runners/register", {{"runner_id", "shared"}}).status, 200);
  EXPECT_EQ(red.get("/v1/runners/shared").status, 200);
  EXPECT_EQ(red.patch("/v1/runners/shared", {{"cordoned", true}}).code(), "tenant_token");
  EXPECT_EQ(red.del("/v1/runners/shared").code(), "tenant_token");
  Talk alias(process(), process().token("runner", "shared", "red"));
  EXPECT_EQ(alias.post("/v1/runners/heartbeat", {{"runner_id", "shared"}}).code(), "tenant_token");
  EXPECT_EQ(alias.post("/v1/runners/register", {{"runner_id", "shared"}}).status, 409);
  EXPECT_EQ(all.get("/v1/cameras/blue-cam").field("enabled"), "true");
  EXPECT_EQ(all.get("/v1/leases/camera/blue-cam").field("runner_id"), "blue-runner");
  EXPECT_EQ(all.get("/v1/runners/blue-runner").field("tenant_id"), "blue");
  EXPECT_EQ(all.get("/v1/runners/blue-runner").field("cordoned"), "false");
}

}  // namespace
}  // namespace weir::test

#include "plane_testing.hpp"

namespace weir::control_plane {
namespace {

using net::Method;
using net::Role;

struct Said {
  int status = 0;
  json::object body = {};
  std::string code() const {
    return body.contains("error") ? std::string(body.at("error").at("code").as_string()) : std::string();
  }
  std::string field(std::string_view name) const { return std::string(body.at(name).as_string()); }
};

class AuthRoutes : public PlaneTest {
 protected:
  AuthRoutes() { store_.up = true; }

  Said ask(Method method, const std::string& path, const std::string& bearer, std::string body = "") {
    net::Response response = respond(method, path, std::move(body), bearer, 1ms);
    return {response.status, json::parse_text(response.body)->as_object()};
  }
  Said buy(const std::string& bearer, std::string body = "{}") {
    return ask(Method::post, "/v1/auth/token", bearer, std::move(body));
  }
  // A new key, as the administrator is told it.
  Said add_key(const std::string& role, const std::string& sub = "r-1", const std::string& tenant = "") {
    json::object body{{"role", role}, {"sub", sub}};
    if (!tenant.empty()) body["tenant_id"] = tenant;
    Said added = ask(Method::post, "/v1/api-keys", token(Role::admin, "root"), json::to_text(body));
    EXPECT_EQ(added.status, 201) << json::to_text(added.body);
    return added;
  }
  std::string key(const std::string& role, const std::string& sub = "r-1", const std::string& tenant = "") {
    return add_key(role, sub, tenant).field("api_key");
  }
  net::Claims claims(const Said& said) {
    EXPECT_EQ(said.status, 200) << json::to_text(said.body);
    auto read = key_.verify(said.field("token"), clock_.wall());
    EXPECT_TRUE(read);
    return read ? *read : net::Claims{};
  }
};

TEST_F(AuthRoutes, Key_IsShownOnceAndKeptAsAHash) {
  Said added = add_key("runner", "r-1", "t-1");
  std::string text = added.field("api_key"), id = added.field("key_id");
  EXPECT_EQ(text.size(), 3 + 16 + 1 + 64u);
  EXPECT_TRUE(text.starts_with("wk_" + id + "_")) << text;
  ASSERT_EQ(store_.keys_by_hash.size(), 1u);
  EXPECT_EQ(store_.keys_by_hash.begin()->first, net::sha256_hex(text));
  Said listed = ask(Method::get, "/v1/api-keys", token(Role::admin));
  ASSERT_EQ(listed.body.at("items").as_array().size(), 1u);
  json::object item = listed.body.at("items").at(0).as_object();
  EXPECT_EQ(item.at("key_id").as_string(), id);
  EXPECT_EQ(item.at("role").as_string(), "runner");
  EXPECT_EQ(item.at("sub").as_string(), "r-1");
  EXPECT_EQ(item.at("tenant_id").as_string(), "t-1");
  EXPECT_TRUE(item.at("last_used_at").is_null());
  EXPECT_FALSE(item.contains("api_key"));
  EXPECT_EQ(json::to_text(listed.body).find(text.substr(20)), std::string::npos);
  EXPECT_NE(key("runner"), text);
}

TEST_F(AuthRoutes, KeyList_Pages) {
  key("viewer", "a");
  key("viewer", "b");
  Said first = ask(Method::get, "/v1/api-keys?limit=1", token(Role::admin));
  ASSERT_EQ(first.body.at("items").as_array().size(), 1u);
  Said second = ask(Method::get, "/v1/api-keys?limit=1&cursor=" + first.field("next_cursor"), token(Role::admin));
  ASSERT_EQ(second.body.at("items").as_array().size(), 1u);
  EXPECT_NE(first.body.at("items"), second.body.at("items"));
  EXPECT_TRUE(second.body.at("next_cursor").is_null());
}

TEST_F(AuthRoutes, Keys_AreForAdministrators) {
  for (Role role : {Role::runner, Role::worker, Role::viewer}) {
    EXPECT_EQ(ask(Method::post, "/v1/api-keys", token(role), R"({"role":"viewer","sub":"x"})").status, 403);
    EXPECT_EQ(ask(Method::get, "/v1/api-keys", token(role)).status, 403);
    EXPECT_EQ(ask(Method::del, "/v1/api-keys/x", token(role)).status, 403);
  }
  EXPECT_TRUE(store_.keys_by_hash.empty());
}

TEST_F(AuthRoutes, WrongKeyBodies_NameTheField) {
  for (auto [body, field] : {std::pair{R"({"sub":"x"})", "role"},
                             {R"({"role":"root","sub":"x"})", "role"},
                             {R"({"role":"viewer"})", "sub"},
                             {R"({"role":"viewer","sub":""})", "sub"},
                             {R"({"role":"viewer","sub":"a\nb"})", "sub"},
                             {R"({"role":"viewer","sub":"x","name":"a\u0007"})", "name"},
                             {R"({"role":"viewer","sub":"x","tenant_id":""})", "tenant_id"},
                             {R"({"role":"viewer","sub":"x","tenant":"t"})", "tenant"}}) {
    Said said = ask(Method::post, "/v1/api-keys", token(Role::admin), body);
    EXPECT_EQ(said.status, 400) << body;
    EXPECT_EQ(said.body.at("error").at("details").at("field").as_string(), field) << body;
  }
}

TEST_F(AuthRoutes, Key_BuysTokensOfItsOwnRoleSubAndTenant) {
  for (auto [name, role] : {std::pair{"admin", Role::admin},
                            {"runner", Role::runner},
                            {"viewer", Role::viewer},
                            {"worker", Role::worker}}) {
    std::string text = key(name, "somebody", "t-1");
    Said in_header = buy(text), in_body = buy("", json::to_text(json::object{{"api_key", text}}));
    for (const Said& said : {in_header, in_body}) {
      net::Claims got = claims(said);
      EXPECT_EQ(got.role, role);
      EXPECT_EQ(got.sub, "somebody");
      EXPECT_EQ(got.tenant.str(), "t-1");
      EXPECT_TRUE(got.boot.empty());
      EXPECT_EQ(said.field("token_type"), "Bearer");
      EXPECT_EQ(said.field("role"), name);
      EXPECT_EQ(said.field("sub"), "somebody");
      EXPECT_EQ(said.field("tenant_id"), "t-1");
      EXPECT_EQ(said.body.at("expires_in"), json::value(900));
    }
  }
  EXPECT_EQ(claims(buy(key("viewer"), "")).role, Role::viewer) << "no body at all is a question too";
}

TEST_F(AuthRoutes, Key_BuysNoOtherRole) {
  for (std::string have : {"admin", "runner", "viewer", "worker"}) {
    std::string text = key(have);
    for (std::string want : {"admin", "runner", "viewer", "worker"}) {
      if (want == have || (have == "runner" && want == "worker")) continue;
      Said said = buy(text, json::to_text(json::object{{"role", want}, {"boot_id", "b"}}));
      EXPECT_EQ(said.status, 403) << have << " " << want;
      EXPECT_EQ(said.code(), "role_forbidden");
    }
  }
}

TEST_F(AuthRoutes, Runner_BuysItsWorkersTokens_ByKeyAndByToken) {
  for (std::string credential : {key("runner", "r-7", "t-1"), token(Role::runner, "r-7", "t-1")}) {
    Said said = buy(credential, R"({"role":"worker","boot_id":"boot-3"})");
    net::Claims got = claims(said);
    EXPECT_EQ(got.role, Role::worker);
    EXPECT_EQ(got.sub, "r-7");
    EXPECT_EQ(got.tenant.str(), "t-1");
    EXPECT_EQ(got.boot.str(), "boot-3");
    EXPECT_EQ(said.field("boot_id"), "boot-3");
    Said without = buy(credential, R"({"role":"worker"})");
    EXPECT_EQ(without.status, 400);
    EXPECT_EQ(without.body.at("error").at("details").at("field").as_string(), "boot_id");
    EXPECT_EQ(buy(credential, R"({"role":"runner","boot_id":"b"})").status, 400);
  }
}

TEST_F(AuthRoutes, RunnersToken_BuysItsNext_OthersDoNot) {
  std::string old = token(Role::runner, "r-7", "t-1", 30s);
  net::Claims next = claims(buy(old, R"({"role":"runner"})"));
  EXPECT_EQ(next.sub, "r-7");
  EXPECT_EQ(next.tenant.str(), "t-1");
  EXPECT_EQ(next.role, Role::runner);
  EXPECT_GT(next.expires, clock_.wall() + 899s);
  clock_.run(clock_.now() + 31s);
  EXPECT_EQ(buy(old, R"({"role":"runner"})").code(), "token_expired");
  EXPECT_EQ(buy(old, R"({"role":"worker","boot_id":"b"})").code(), "token_expired");
  for (Role role : {Role::admin, Role::viewer, Role::worker})
    for (const char* body : {"{}", R"({"role":"worker","boot_id":"b"})", R"({"role":"runner"})", R"({"role":"admin"})"})
      EXPECT_EQ(buy(token(role), body).status, 403) << static_cast<int>(role) << body;
}

TEST_F(AuthRoutes, RevokedKey_EndsWithTheTokensItBought) {
  Said added = add_key("runner", "r-7");
  std::string text = added.field("api_key"), own = buy(text, R"({"ttl_seconds":60})").field("token");
  EXPECT_EQ(ask(Method::del, "/v1/api-keys/" + added.field("key_id"), token(Role::admin)).status, 200);
  EXPECT_EQ(ask(Method::del, "/v1/api-keys/" + added.field("key_id"), token(Role::admin)).status, 404);
  Said revoked = buy(text), unknown = buy("wk_0_0"), malformed = buy("", R"({"api_key":"x"})");
  for (const Said& said : {revoked, unknown, malformed}) {
    EXPECT_EQ(said.status, 401);
    EXPECT_EQ(said.code(), "key_invalid");
    EXPECT_EQ(said.body, unknown.body);
  }
  // The last token of a revoked key can neither renew itself nor be outlived by a token that it buys.
  Said again = buy(own);
  EXPECT_EQ(again.status, 403);
  EXPECT_EQ(again.code(), "key_needed");
  Said worker = buy(own, R"({"role":"worker","boot_id":"b","ttl_seconds":3600})");
  EXPECT_LE(claims(worker).expires, key_.verify(own, clock_.wall())->expires);
  EXPECT_LE(worker.body.at("expires_in").as_int64(), 60);
  clock_.run(clock_.now() + 62s);
  EXPECT_EQ(buy(own, R"({"role":"worker","boot_id":"b"})").code(), "token_expired");
}

TEST_F(AuthRoutes, Ttl_IsKeptAndBounded) {
  std::string text = key("runner");
  clock_.run(clock_.now() + 700ms);
  for (int ttl : {10, 20, 3600}) {
    Said said = buy(text, fmt::format(R"({{"ttl_seconds":{}}})", ttl));
    EXPECT_EQ(said.body.at("expires_in"), json::value(ttl));
    Duration life = claims(said).expires - clock_.wall();
    EXPECT_GE(life, std::chrono::seconds(ttl) - 1ms) << "no shorter than was told";
    EXPECT_LE(life, std::chrono::seconds(ttl) + 1s);
  }
  for (const char* ttl : {"9", "3601", "-1", "0", "\"60\"", "15.5"}) {
    Said said = buy(text, fmt::format(R"({{"ttl_seconds":{}}})", ttl));
    EXPECT_EQ(said.status, 400) << ttl;
    EXPECT_EQ(said.body.at("error").at("details").at("field").as_string(), "ttl_seconds");
  }
  std::string brief = buy(text, R"({"ttl_seconds":10})").field("token");
  clock_.run(clock_.now() + 9s);
  EXPECT_TRUE(key_.verify(brief, clock_.wall()));
  clock_.run(clock_.now() + 2s);
  EXPECT_EQ(key_.verify(brief, clock_.wall()).error().reason, "token_expired");
}

TEST_F(AuthRoutes, TenantBoundAdministrator_StaysInItsTenant) {
  Said foreign = add_key("runner", "r-1", "t-2");
  std::string bound = token(Role::admin, "a", "t-1");
  EXPECT_EQ(ask(Method::post, "/v1/api-keys", bound, R"({"role":"admin","sub":"x","tenant_id":"t-2"})").status, 404);
  Said own = ask(Method::post, "/v1/api-keys", bound, R"({"role":"admin","sub":"x"})");
  ASSERT_EQ(own.status, 201);
  EXPECT_EQ(claims(buy(own.field("api_key"))).tenant.str(), "t-1");
  Said listed = ask(Method::get, "/v1/api-keys", bound);
  ASSERT_EQ(listed.body.at("items").as_array().size(), 1u);
  EXPECT_EQ(listed.body.at("items").at(0).at("key_id"), own.body.at("key_id"));
  EXPECT_EQ(ask(Method::del, "/v1/api-keys/" + foreign.field("key_id"), bound).status, 404);
  EXPECT_EQ(buy(foreign.field("api_key")).status, 200);
}

TEST_F(AuthRoutes, Token_NeedsOneCredential) {
  std::string text = key("runner");
  EXPECT_EQ(buy("").code(), "token_missing");
  EXPECT_EQ(buy("x.y.z").code(), "token_invalid");
  Said both = buy(token(Role::runner), json::to_text(json::object{{"api_key", text}}));
  EXPECT_EQ(both.status, 400);
  EXPECT_EQ(both.body.at("error").at("details").at("field").as_string(), "api_key");
  EXPECT_EQ(buy(text, R"({"ttl":60})").status, 400);
}

TEST_F(AuthRoutes, Key_LogsInWhereATokenWould_WithItsOwnRoleSubAndTenant) {
  std::string root = key("admin", "root"), bound = key("admin", "root", "t-1"), runner = key("runner", "r-1");
  EXPECT_EQ(ask(Method::get, "/v1/api-keys", root).body.at("items").as_array().size(), 3u);
  EXPECT_EQ(ask(Method::get, "/v1/api-keys", bound).body.at("items").as_array().size(), 1u);
  Said refused = ask(Method::get, "/v1/api-keys", runner);
  EXPECT_EQ(refused.status, 403);
  EXPECT_EQ(refused.code(), "role_forbidden");
  EXPECT_EQ(ask(Method::get, "/v1/runners/r-1", runner).status, 200);
  EXPECT_EQ(ask(Method::get, "/v1/runners/r-2", runner).code(), "not_yours");
  for (const char* wrong : {"wk_", "wk_0_0", "wk_ö"}) {
    Said said = ask(Method::get, "/v1/cameras", wrong);
    EXPECT_EQ(said.status, 401);
    EXPECT_EQ(said.code(), "key_invalid") << wrong;
  }
}

TEST_F(AuthRoutes, RevokedKey_LogsInNowhereAfterTenSeconds) {
  Said added = add_key("viewer", "v");
  std::string text = added.field("api_key");
  EXPECT_EQ(ask(Method::get, "/v1/cameras", text).status, 200);
  EXPECT_EQ(ask(Method::del, "/v1/api-keys/" + added.field("key_id"), token(Role::admin)).status, 200);
  Instant revoked = clock_.now();
  int believed = 0;
  for (; ask(Method::get, "/v1/cameras", text).status == 200; pass(100ms)) ++believed;
  EXPECT_GT(believed, 10) << "not every request asks the store";
  EXPECT_LT(clock_.now() - revoked, 10s);
  EXPECT_EQ(ask(Method::get, "/v1/cameras", text).code(), "key_invalid");
}

TEST_F(AuthRoutes, StoreAway_AKeyIsBelievedForAMoment_AndThenCannotBeJudged) {
  std::string text = key("admin");
  EXPECT_EQ(ask(Method::get, "/v1/api-keys", text).status, 200);
  store_.up = false;
  EXPECT_EQ(ask(Method::get, "/v1/runners/r-1", text).status, 503) << "of the route's own question";
  pass(6s);
  EXPECT_EQ(ask(Method::get, "/v1/runners/r-1", text).code(), "store_unavailable");
}

TEST_F(AuthRoutes, StoreAway_KeysCannotBeJudged_TokensStillCan) {
  std::string text = key("runner");
  store_.up = false;
  EXPECT_EQ(buy(text).status, 503);
  EXPECT_EQ(buy(token(Role::runner), R"({"role":"worker","boot_id":"b"})").status, 200);
}

}  // namespace
}  // namespace weir::control_plane

#include "plane_testing.hpp"

namespace weir::control_plane {
namespace {

using lease::Outcome;
using lease::Version;
using net::Method;
using net::Role;

struct Expected {
  Method method;
  const char* pattern;
  const char* roles;  // a: admin, r: runner, w: worker, v: viewer; "" open to all
};
const Expected kRoutes[] = {
    {Method::get, "/healthz", ""},
    {Method::get, "/readyz", ""},
    {Method::get, "/metrics", ""},
    {Method::post, "/v1/leases/acquire", "ar"},
    {Method::put, "/v1/leases/{lease_id}/renew", "ar"},
    {Method::del, "/v1/leases/{lease_id}/release", "ar"},
    {Method::post, "/v1/leases/{lease_id}/heartbeat", "ar"},
    {Method::get, "/v1/leases/{lease_id}/validate", "arwv"},
    {Method::get, "/v1/leases/runner/{runner_id}", "arwv"},
    {Method::post, "/v1/leases/camera/acquire", "ar"},
    {Method::post, "/v1/leases/camera/renew", "ar"},
    {Method::post, "/v1/leases/camera/release", "ar"},
    {Method::post, "/v1/leases/camera/acquire-batch", "ar"},
    {Method::post, "/v1/leases/camera/renew-batch", "ar"},
    {Method::post, "/v1/leases/camera/release-batch", "ar"},
    {Method::get, "/v1/leases", "arwv"},
    {Method::get, "/v1/leases/camera/{camera_uuid}", "arwv"},
    {Method::post, "/v1/leases/camera/{camera_uuid}/revoke", "a"},
    {Method::post, "/v1/leases/stream/acquire", "ar"},
    {Method::post, "/v1/leases/stream/renew", "ar"},
    {Method::post, "/v1/leases/stream/release", "ar"},
    {Method::post, "/v1/leases/stream/acquire-batch", "ar"},
    {Method::post, "/v1/leases/stream/renew-batch", "ar"},
    {Method::post, "/v1/leases/stream/release-batch", "ar"},
    {Method::get, "/v1/leases/stream/{stream_id}", "arwv"},
    {Method::post, "/v1/leases/stream/{stream_id}/revoke", "a"},
    {Method::post, "/v1/leases/cluster/acquire", "ar"},
    {Method::post, "/v1/leases/cluster/renew", "ar"},
    {Method::post, "/v1/leases/cluster/release", "ar"},
    {Method::post, "/v1/leases/cluster/acquire-batch", "ar"},
    {Method::post, "/v1/leases/cluster/renew-batch", "ar"},
    {Method::post, "/v1/leases/cluster/release-batch", "ar"},
    {Method::get, "/v1/leases/cluster/{cluster}", "arwv"},
    {Method::post, "/v1/leases/cluster/{cluster}/revoke", "a"},
    {Method::get, "/v1/clusters/{cluster}/desired", "ar"},
    {Method::get, "/v1/displays", "arv"},
    {Method::post, "/v1/displays", "a"},
    {Method::get, "/v1/displays/{display_id}", "arv"},
    {Method::put, "/v1/displays/{display_id}", "a"},
    {Method::del, "/v1/displays/{display_id}", "a"},
    {Method::get, "/v1/playlists", "arv"},
    {Method::post, "/v1/playlists", "a"},
    {Method::get, "/v1/playlists/{playlist_id}", "arv"},
    {Method::put, "/v1/playlists/{playlist_id}", "a"},
    {Method::del, "/v1/playlists/{playlist_id}", "a"},
    {Method::get, "/v1/subscriptions", "arv"},
    {Method::post, "/v1/subscriptions", "ar"},
    {Method::del, "/v1/subscriptions/{subscription_identifier}", "ar"},
    {Method::get, "/v1/streams", "arv"},
    {Method::get, "/v1/streams/{stream_id}", "arv"},
    {Method::put, "/v1/streams/{stream_id}", "ar"},
    {Method::del, "/v1/streams/{stream_id}", "ar"},
    {Method::post, "/v1/streams/{stream_id}/stop", "ar"},
    {Method::post, "/v1/streams/{stream_id}/restart", "ar"},
    {Method::post, "/v1/streams/{stream_id}/forward", "ar"},
    {Method::post, "/v1/streams/{stream_id}/told", "ar"},
    {Method::get, "/v1/tenants", "av"},
    {Method::post, "/v1/tenants", "a"},
    {Method::get, "/v1/tenants/{tenant_id}", "av"},
    {Method::del, "/v1/tenants/{tenant_id}", "a"},
    {Method::get, "/v1/sites", "av"},
    {Method::post, "/v1/sites", "a"},
    {Method::get, "/v1/sites/{site_id}", "av"},
    {Method::del, "/v1/sites/{site_id}", "a"},
    {Method::get, "/v1/tenants/{tenant_id}/sites/{site_id}/config/version", "arv"},
    {Method::get, "/v1/sites/{site_id}/budget", "arv"},
    {Method::put, "/v1/sites/{site_id}/budget", "a"},
    {Method::post, "/v1/sites/{site_id}/budget/consume", "ar"},
    {Method::get, "/v1/cameras", "arv"},
    {Method::post, "/v1/cameras", "a"},
    {Method::get, "/v1/cameras/{camera_uuid}", "arv"},
    {Method::put, "/v1/cameras/{camera_uuid}", "a"},
    {Method::patch, "/v1/cameras/{camera_uuid}", "a"},
    {Method::del, "/v1/cameras/{camera_uuid}", "a"},
    {Method::post, "/v1/cameras/{camera_uuid}/crashes", "ar"},
    {Method::get, "/v1/cameras/{camera_uuid}/snapshot.jpg", "av"},
    {Method::put, "/v1/cameras/{camera_uuid}/snapshot", "ar"},
    {Method::get, "/v1/tenants/{tenant_id}/sites/{site_id}/cameras", "arv"},
    {Method::post, "/v1/tenants/{tenant_id}/sites/{site_id}/cameras", "a"},
    {Method::get, "/v1/tenants/{tenant_id}/sites/{site_id}/cameras/{camera_uuid}", "arv"},
    {Method::put, "/v1/tenants/{tenant_id}/sites/{site_id}/cameras/{camera_uuid}", "a"},
    {Method::patch, "/v1/tenants/{tenant_id}/sites/{site_id}/cameras/{camera_uuid}", "a"},
    {Method::del, "/v1/tenants/{tenant_id}/sites/{site_id}/cameras/{camera_uuid}", "a"},
    {Method::get, "/v1/cameras/{camera_uuid}/zones", "arv"},
    {Method::post, "/v1/cameras/{camera_uuid}/zones", "a"},
    {Method::get, "/v1/cameras/{camera_uuid}/zones/{zone_id}", "arv"},
    {Method::put, "/v1/cameras/{camera_uuid}/zones/{zone_id}", "a"},
    {Method::del, "/v1/cameras/{camera_uuid}/zones/{zone_id}", "a"},
    {Method::get, "/v1/tenants/{tenant_id}/sites/{site_id}/zones", "arv"},
    {Method::post, "/v1/tenants/{tenant_id}/sites/{site_id}/zones", "a"},
    {Method::get, "/v1/tenants/{tenant_id}/sites/{site_id}/zones/{zone_id}", "arv"},
    {Method::put, "/v1/tenants/{tenant_id}/sites/{site_id}/zones/{zone_id}", "a"},
    {Method::del, "/v1/tenants/{tenant_id}/sites/{site_id}/zones/{zone_id}", "a"},
    {Method::post, "/v1/runners/register", "ar"},
    {Method::post, "/v1/runners/heartbeat", "ar"},
    {Method::put, "/v1/runners/{runner_id}/heartbeat", "ar"},
    {Method::post, "/v1/runners/{runner_id}/heartbeat", "ar"},
    {Method::post, "/v1/runners/{runner_id}/release-all", ""},
    {Method::get, "/v1/runners", "av"},
    {Method::get, "/v1/runners/{runner_id}", "arv"},
    {Method::patch, "/v1/runners/{runner_id}", "a"},
    {Method::del, "/v1/runners/{runner_id}", "a"},
    {Method::get, "/v1/models", "arv"},
    {Method::post, "/v1/models", "a"},
    {Method::get, "/v1/models/{model_id}", "arv"},
    {Method::put, "/v1/models/{model_id}", "a"},
    {Method::del, "/v1/models/{model_id}", "a"},
    {Method::get, "/v1/leases/events", "arv"},
    {Method::post, "/v1/events/batch", "arw"},
    {Method::post, "/v1/streams/status/batch", "rw"},
    {Method::get, "/v1/events", "arv"},
    {Method::post, "/v1/api-keys", "a"},
    {Method::get, "/v1/api-keys", "a"},
    {Method::del, "/v1/api-keys/{key_id}", "a"},
    {Method::post, "/v1/auth/token", ""},
};

class ControlPlaneRoutes : public PlaneTest {
 protected:
  net::Response ask(Method method, std::string path, std::string body = "", const std::string& credential = "") {
    return respond(method, std::move(path), std::move(body), credential, 10s);
  }

  static std::string concrete(std::string pattern) {
    for (auto [name, value] : {std::pair{"{camera_uuid}", "c-1"},
                               {"{lease_id}", "lease-NS5jLTE"},  // of version 5 of c-1
                               {"{stream_id}", "live"},
                               {"{cluster}", "default"},
                               {"{display_id}", "d-1"},
                               {"{playlist_id}", "p-1"},
                               {"{model_id}", "1"},
                               {"{subscription_identifier}", "d-1;c-1"},
                               {"{tenant_id}", "t-1"},
                               {"{site_id}", "s-1"},
                               {"{runner_id}", "r-1"},
                               {"{zone_id}", "1"}})
      if (size_t at = pattern.find(name); at != std::string::npos) pattern.replace(at, strlen(name), value);
    return pattern;
  }
};

TEST_F(ControlPlaneRoutes, EveryRoute_IsThereAndNoOther) {
  std::set<std::pair<Method, std::string>> expected, listed;
  for (const Expected& each : kRoutes) expected.emplace(each.method, each.pattern);
  for (const auto& each : router_.list()) listed.emplace(each.method, each.pattern);
  // Their bodies stream, or a link takes a token's place: model_file_routes_test.cpp asks them.
  expected.emplace(Method::get, "/v1/models/{model_id}/file");
  expected.emplace(Method::put, "/v1/models/{model_id}/file");
  expected.emplace(Method::post, "/v1/models/{model_id}/file-url");
  EXPECT_EQ(listed, expected);
}

TEST_F(ControlPlaneRoutes, EveryRoute_AnswersOnlyItsRoles) {
  for (const Expected& each : kRoutes) {
    std::string path = concrete(each.pattern), roles = each.roles;
    if (roles.empty()) continue;
    net::Response anonymous = ask(each.method, path, "{}");
    EXPECT_EQ(anonymous.status, 401) << each.pattern;
    EXPECT_TRUE(has_header(anonymous, "WWW-Authenticate"));
    EXPECT_EQ(ask(each.method, path, "{}", "Bearer x.y.z").status, 401);
    for (auto [role, letter] :
         {std::pair{Role::admin, 'a'}, {Role::runner, 'r'}, {Role::worker, 'w'}, {Role::viewer, 'v'}}) {
      net::Response response = ask(each.method, path, "{}", token(role));
      EXPECT_EQ(response.status == 403, roles.find(letter) == std::string::npos)
          << net::to_string(each.method) << " " << each.pattern << " " << letter << " " << response.body;
    }
  }
}

TEST_F(ControlPlaneRoutes, BrokenBodies_AreAlways4xx) {
  for (const Expected& each : kRoutes) {
    if (each.method == Method::get || each.method == Method::del) continue;
    if (std::string_view(each.pattern).ends_with("revoke")) continue;  // reads no body
    for (const char* body : {"{", "[]", "3", "null", "\"x\"", "\xFF", "{\"a\":1}x"}) {
      Role role = std::string_view(each.roles).find('a') == std::string_view::npos ? Role::runner : Role::admin;
      net::Response response = ask(each.method, concrete(each.pattern), body, token(role));
      EXPECT_TRUE(response.status == 400 || response.status == 401)
          << net::to_string(each.method) << " " << each.pattern << " " << body << " " << response.body;
    }
  }
}

TEST_F(ControlPlaneRoutes, StoreAway_Is503WithRetryAfter) {
  for (const Expected& each : kRoutes) {
    if (each.method != Method::get || std::string_view(each.roles).empty()) continue;
    net::Response response = ask(each.method, concrete(each.pattern), "", token(Role::admin));
    EXPECT_EQ(response.status, 503) << each.pattern;
    EXPECT_TRUE(has_header(response, "Retry-After"));
    EXPECT_EQ(code_of(response), "store_unavailable");
    EXPECT_EQ(response.body.find("canary"), std::string::npos) << "where the store is, is nobody's business";
  }
  net::Response open = ask(Method::post, "/v1/auth/token", R"({"api_key":"weir_x"})");
  EXPECT_EQ(open.status, 503);
  EXPECT_EQ(open.body.find("canary"), std::string::npos);
}

TEST_F(ControlPlaneRoutes, OpenRoutes_ReadOnlySmallBodies) {
  store_.up = true;
  std::string blanks(16 << 10, ' ');
  for (const char* path : {"/v1/auth/token", "/v1/runners/r-1/release-all"}) {
    EXPECT_EQ(ask(Method::post, path, blanks + "{}").status, 413) << path;
    EXPECT_NE(ask(Method::post, path, blanks.substr(2) + "{}").status, 413) << path;
  }
}

TEST_F(ControlPlaneRoutes, Health_NeedsNoToken) {
  EXPECT_EQ(ask(Method::get, "/healthz").status, 200);
  EXPECT_EQ(ask(Method::get, "/readyz").status, 503);
  EXPECT_EQ(code_of(ask(Method::get, "/readyz")), "store_unavailable");
  store_.up = true;
  EXPECT_EQ(ask(Method::get, "/readyz").status, 200);
  net::Response metrics = ask(Method::get, "/metrics");
  EXPECT_EQ(metrics.status, 200);
  EXPECT_NE(metrics.body.find("weir_store_seconds_count{operation=\"ping\"} 3"), std::string::npos) << metrics.body;
}

TEST_F(ControlPlaneRoutes, BadQuery_NamesTheField) {
  for (auto [path, field] : {std::pair{"/v1/cameras?limit=abc", "limit"},
                             {"/v1/cameras?enabled=1", "enabled"},
                             {"/v1/cameras?cursor=!", "cursor"},
                             {"/v1/cameras?site_id=register", "site_id"},
                             {"/v1/leases?runner_id=register", "runner_id"},
                             {"/v1/leases?held=no", "held"},
                             {"/v1/runners?limit=0", "limit"},
                             {"/v1/tenants?limit=1001", "limit"}}) {
    net::Response response = ask(Method::get, path, "", token(Role::admin));
    EXPECT_EQ(response.status, 400) << path;
    EXPECT_EQ(body_of(response).at("error").at("details").at("field").as_string(), field) << path;
  }
}

constexpr const char* kAcquire = R"({"runner_id":"r-1","camera_uuid":"c-1","ttl_seconds":6})";

TEST_F(ControlPlaneRoutes, Acquire_AnswersTheUnionOfFields) {
  store_.on_apply = [](const lease::Batch& batch) -> Result<std::vector<lease::Answer>> {
    EXPECT_EQ(batch.asks[0].key, "");
    lease::Answer answer{batch.asks[0].subject, Outcome::granted, Version{5}, Version{5}, batch.ttl};
    answer.tenant = TenantId::trusted("t-1");
    answer.site = SiteId::trusted("s-1");
    answer.acquired_at = *from_iso("2026-01-31T09:05:07.123Z");
    return std::vector{answer};
  };
  net::Response response = ask(Method::post, "/v1/leases/camera/acquire", kAcquire, token(Role::runner));
  ASSERT_EQ(response.status, 200) << response.body;
  json::object body = body_of(response);
  for (const char* field : {"camera_uuid", "owner_id", "runner_id", "boot_id", "lease_id", "shard_id", "tenant_id",
                            "site_id", "acquired_at", "expires_at", "version", "ttl_ms", "status"})
    EXPECT_TRUE(body.contains(field)) << field;
  EXPECT_EQ(body.at("tenant_id").as_string(), "t-1");
  EXPECT_EQ(body.at("site_id").as_string(), "s-1");
  EXPECT_EQ(body.at("acquired_at").as_string(), "2026-01-31T09:05:07.123Z");
}

TEST_F(ControlPlaneRoutes, SimpleRoutes_MapOutcomesToStatuses) {
  struct Case {
    const char* route;
    Outcome outcome;
    bool yours;
    int status;
    const char* code;
  };
  const Case cases[] = {
      {"acquire", Outcome::held, false, 409, "lease_held"},
      {"acquire", Outcome::held, true, 200, ""},
      {"acquire", Outcome::unknown, false, 409, "lease_unknown"},
      {"renew", Outcome::renewed, false, 200, ""},
      {"renew", Outcome::granted, false, 200, ""},
      {"renew", Outcome::lost, false, 404, "lease_lost"},
      {"renew", Outcome::unknown, false, 409, "lease_unknown"},
      {"release", Outcome::released, false, 200, ""},
      {"release", Outcome::kept, false, 200, ""},
      {"release", Outcome::lost, false, 404, "lease_lost"},
  };
  for (const Case& each : cases) {
    store_.on_apply = [&](const lease::Batch& batch) -> Result<std::vector<lease::Answer>> {
      lease::Answer answer{batch.asks[0].subject, each.outcome, Version{8}, Version{8}, batch.ttl};
      answer.yours = each.yours;
      return std::vector{answer};
    };
    net::Response response =
        ask(Method::post, fmt::format("/v1/leases/camera/{}", each.route), kAcquire, token(Role::runner));
    EXPECT_EQ(response.status, each.status) << each.route << " " << response.body;
    EXPECT_EQ(code_of(response), each.code);
  }
}

TEST_F(ControlPlaneRoutes, Runner_CannotSpeakForAnother) {
  std::string other = token(Role::runner, "r-2");
  EXPECT_EQ(code_of(ask(Method::post, "/v1/leases/camera/acquire", kAcquire, other)), "not_yours");
  EXPECT_EQ(ask(Method::post, "/v1/runners/register", R"({"runner_id":"r-1"})", other).status, 403);
  EXPECT_EQ(ask(Method::post, "/v1/runners/heartbeat", R"({"runner_id":"r-1"})", other).status, 403);
  EXPECT_EQ(ask(Method::put, "/v1/runners/r-1/heartbeat", "{}", other).status, 403);
  EXPECT_EQ(ask(Method::get, "/v1/runners/r-1", "", other).status, 403);
  EXPECT_EQ(ask(Method::get, "/v1/leases?runner_id=r-1", "", other).status, 403);
}

TEST_F(ControlPlaneRoutes, Worker_ListsTheLeasesOfItsBootOnly) {
  LeaseFilter asked;
  store_.on_list = [&](const LeaseFilter& filter) {
    asked = filter;
    return std::vector<LeaseView>();
  };
  net::Claims claims{"r-1", Role::worker};
  claims.boot = BootId::trusted("b-1");
  claims.expires = clock_.wall() + 1h;
  EXPECT_EQ(ask(Method::get, "/v1/leases", "", key_.sign(claims).reveal()).status, 200);
  EXPECT_EQ(asked.runner.str(), "r-1");
  EXPECT_EQ(asked.boot.str(), "b-1");
  EXPECT_EQ(ask(Method::get, "/v1/leases", "", token(Role::runner)).status, 200);
  EXPECT_EQ(asked.boot.str(), "");
}

TEST_F(ControlPlaneRoutes, Batch_CountsOutcomesAndOwnerChangesOnce) {
  bool replayed = false;
  store_.on_apply = [&replayed](const lease::Batch& batch) -> Result<std::vector<lease::Answer>> {
    std::vector<lease::Answer> answers;
    for (const lease::Ask& ask : batch.asks) {
      auto n = static_cast<std::int64_t>(answers.size()) + 1;
      lease::Answer& answer =
          answers.emplace_back(lease::Answer{ask.subject, Outcome::granted, Version{n}, Version{n}, batch.ttl});
      answer.previous = lease::Tenure{BootId::trusted(n == 1 ? "b" : "other"), Version{}};
      answer.replayed = replayed;
    }
    return answers;
  };
  std::string body = R"({"runner_id":"r-1","boot_id":"b","ttl_seconds":6,
      "items":[{"camera_uuid":"a","key":"1"},{"camera_uuid":"b","key":"2"},{"camera_uuid":"c","key":"3"}]})";
  for (bool again : {false, true}) {
    replayed = again;
    net::Response response = ask(Method::post, "/v1/leases/camera/acquire-batch", body, token(Role::runner));
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(body_of(response).at("items").as_array().size(), 3u);
  }
  std::string text = metrics_.text();
  EXPECT_NE(text.find("owner_changes_total 2"), std::string::npos) << text;
  EXPECT_NE(text.find("weir_lease_operations_total{operation=\"acquire\",result=\"granted\"} 6"), std::string::npos);
}

TEST_F(ControlPlaneRoutes, Will_IsMadeOnceAndOpensOneDoor) {
  std::string hash;
  store_.on_list = [](const LeaseFilter&) { return std::vector<LeaseView>(); };
  store_.on_register = [&](const Runner& runner, const std::string& will) {
    hash = will;
    return runner;
  };
  store_.on_release_all = [&](const lease::Owner& owner,
                              const std::string& will) -> Result<std::vector<lease::LeaseRow>> {
    if (owner.boot.str() == "b" && will == hash) return std::vector<lease::LeaseRow>(3);
    return Error{Errc::not_found, "boot_not_found", "there is no such boot"};
  };
  net::Response registered =
      ask(Method::post, "/v1/runners/register", R"({"runner_id":"r-1","boot_id":"b"})", token(Role::runner));
  ASSERT_EQ(registered.status, 200) << registered.body;
  std::string will(body_of(registered).at("will").as_string());
  EXPECT_EQ(net::sha256_hex(will), hash);
  EXPECT_EQ(will.size(), 64u);

  std::string path = "/v1/runners/r-1/release-all";
  EXPECT_EQ(ask(Method::post, path, R"({"boot_id":"b"})").status, 401);
  EXPECT_EQ(ask(Method::post, path, R"({"boot_id":"b"})", token(Role::admin)).status, 401);
  EXPECT_EQ(ask(Method::post, path, R"({"boot_id":"b","will":"guess"})").status, 401);
  EXPECT_EQ(ask(Method::post, path, R"({"boot_id":"x"})", "Will " + will).status, 401);
  net::Response released = ask(Method::post, path, R"({"boot_id":"b"})", "Will " + will);
  ASSERT_EQ(released.status, 200) << released.body;
  EXPECT_EQ(body_of(released).at("released"), json::value(3));
  EXPECT_EQ(ask(Method::post, path, fmt::format(R"({{"boot_id":"b","will":"{}"}})", will)).status, 200);

  net::Response without = ask(Method::post, "/v1/runners/register", R"({"runner_id":"r-1"})", token(Role::runner));
  EXPECT_FALSE(body_of(without).contains("will"));
  EXPECT_EQ(hash, "");
}

TEST_F(ControlPlaneRoutes, SpareStreams_AreThoseOfRunnersThatMayTakeWhateverLeaves) {
  store_.on_heartbeat = [](const RunnerId&, const boost::json::object&, int) { return RunnerOrders{}; };
  auto runner = [](const char* id, const char* tenant, const char* site, int room) {
    Runner each{.id = RunnerId::trusted(id), .tenant = TenantId::trusted(tenant), .site = SiteId::trusted(site)};
    each.capacity = room + 3;
    each.leases_held = 3;
    each.live = true;
    return each;
  };
  auto spare = [&](const char* tenant, const char* site) {
    store_.runners = {runner("r-1", tenant, site, 1000), runner("all", "", "", 1),
                      runner("t1", "t-1", "", 2),        runner("t1-s1", "t-1", "s-1", 4),
                      runner("t1-s2", "t-1", "s-2", 8),  runner("t2", "t-2", "", 16),
                      runner("s1", "", "s-1", 32),       runner("s2", "", "s-2", 64)};
    // The token may be good for every tenant; what the runner takes is in its registration.
    net::Response answer = ask(Method::put, "/v1/runners/r-1/heartbeat", R"({"draining":true})", token(Role::runner));
    EXPECT_EQ(answer.status, 200) << answer.body;
    return body_of(answer).at("spare_streams").to_number<int>();
  };
  EXPECT_EQ(spare("t-1", "s-1"), 1 + 2 + 4 + 32);
  EXPECT_EQ(spare("t-1", ""), 1 + 2);
  EXPECT_EQ(spare("", "s-1"), 1 + 32);
  EXPECT_EQ(spare("", ""), 1);
}

TEST_F(ControlPlaneRoutes, Consume_EmptyBudgetSaysWhenToAskAgain) {
  std::optional<BudgetUse> used;
  store_.on_consume = [&](const std::optional<BudgetUse>& use) -> Result<BudgetAnswer> {
    used = use;
    return BudgetAnswer{use.has_value(), 4, 10, 1500us};
  };
  std::string path = "/v1/sites/s-1/budget/consume";
  net::Response empty = ask(Method::post, path, "", token(Role::runner));
  EXPECT_EQ(empty.status, 409);
  EXPECT_EQ(code_of(empty), "budget_empty");
  EXPECT_EQ(body_of(empty).at("error").at("details").at("retry_after_ms"), json::value(2));
  net::Response granted = ask(Method::post, path, R"({"camera_uuid":"c-1","grant_version":7})", token(Role::runner));
  EXPECT_EQ(granted.status, 200);
  EXPECT_EQ(body_of(granted).at("tokens"), json::value(4));
  EXPECT_EQ(used->grant, Version{7});
  EXPECT_EQ(ask(Method::post, path, R"({"camera_uuid":"c-1"})", token(Role::runner)).status, 400);
  EXPECT_EQ(ask(Method::post, path, R"({"grant_version":7})", token(Role::runner)).status, 400);
}

TEST_F(ControlPlaneRoutes, EventPages_EndWhenTheyAreHeavy_AndGoOn) {
  store_.up = true;
  store_.page_events_max = 3;
  constexpr int kEvents = 7;
  for (int i = 1; i <= kEvents; ++i)
    store_.stored.push_back({{"control.topic", "camera.x", {},
                              fmt::format(R"({{"n":{},"x":"{}"}})", i, std::string(1 << 20, 'x'))},
                             ++store_.last_event.sequence, clock_.wall()});
  std::string cursor = "0";
  int seen = 0, pages = 0;
  for (bool at_end = false; !at_end && pages < 10; ++pages) {
    json::object page = body_of(ask(Method::get, "/v1/events?after=" + cursor, "", token(Role::admin)));
    for (const json::value& item : page.at("items").as_array())
      EXPECT_EQ(item.at("payload").at("n").as_int64(), ++seen);
    EXPECT_LE(page.at("items").as_array().size(), 4u);
    cursor = std::string(page.at("next_cursor").as_string());
    at_end = page.at("at_end").as_bool();
  }
  EXPECT_EQ(seen, kEvents);
  EXPECT_EQ(pages, 2);
}

TEST_F(ControlPlaneRoutes, Observer_CountsByPattern) {
  for (int i = 0; i < 3; ++i) plane_.observe({Method::get, "/v1/cameras", 200, 3ms});
  plane_.observe({Method::post, "", 404, 1ms});
  std::string text = metrics_.text();
  EXPECT_NE(text.find(R"(weir_http_requests_total{method="GET",route="/v1/cameras",status="200"} 3)"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find(R"(weir_http_requests_total{method="POST",route="none",status="404"} 1)"), std::string::npos);
  EXPECT_NE(text.find(R"(weir_http_request_seconds_count{route="/v1/cameras"} 3)"), std::string::npos);
}

TEST_F(ControlPlaneRoutes, Ticker_TicksUntilCancelledAndKeepsTheGauge) {
  int ticks = 0;
  store_.on_tick = [&]() -> Result<TickReport> {
    ++ticks;
    if (ticks > 4 && ticks < 9) return Error{Errc::unavailable, "store_unavailable", "the store does not answer"};
    return TickReport{false, false, 3};
  };
  start_ticker();
  pass(1100ms);
  EXPECT_EQ(ticks, 5);
  EXPECT_NE(metrics_.text().find("weir_store_up 0"), std::string::npos);
  EXPECT_NE(metrics_.text().find("weir_epoch 3"), std::string::npos);
  pass(1s);
  EXPECT_NE(metrics_.text().find("weir_store_up 1"), std::string::npos);
  EXPECT_TRUE(ticking_);
  int before = ticks;
  stop_ticker();
  EXPECT_EQ(ticks, before);
}

}  // namespace
}  // namespace weir::control_plane

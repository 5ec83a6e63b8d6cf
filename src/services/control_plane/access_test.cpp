#include "access.hpp"

#include "page.hpp"
#include "request.hpp"

#include <gtest/gtest.h>

namespace weir::control_plane {
namespace {

using net::Role;

Caller caller(Role role, std::string sub = "r-1", std::string tenant = "") {
  Caller out;
  out.role = role;
  out.sub = std::move(sub);
  out.tenant = TenantId::trusted(std::move(tenant));
  return out;
}

TEST(ControlPlaneAccess, Credential_IsTakenFromItsScheme) {
  EXPECT_EQ(credential_of("Bearer abc", "Bearer"), "abc");
  EXPECT_EQ(credential_of("bearer   abc ", "Bearer"), "abc");
  EXPECT_EQ(credential_of("Will s3cret", "Will"), "s3cret");
  for (std::string_view wrong : {"", "Bearer", "Bearer ", "Bearer    ", "Bearerabc", "Basic abc", "abc"})
    EXPECT_FALSE(credential_of(wrong, "Bearer")) << wrong;
}

TEST(ControlPlaneAccess, RunnersAndWorkers_SpeakOnlyForThemselves) {
  RunnerId self = RunnerId::trusted("r-1"), other = RunnerId::trusted("r-2");
  for (Role role : {Role::runner, Role::worker}) {
    EXPECT_TRUE(speaks_for(caller(role), self));
    auto refused = speaks_for(caller(role), other);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Errc::forbidden);
    EXPECT_FALSE(speaks_for(caller(role), RunnerId{}));
  }
  EXPECT_TRUE(speaks_for(caller(Role::admin), other));
  EXPECT_TRUE(speaks_for(caller(Role::viewer), other));
}

TEST(ControlPlaneAccess, TenantToken_SeesNoOtherTenant) {
  TenantId mine = TenantId::trusted("t-1"), other = TenantId::trusted("t-2");
  Caller bound = caller(Role::admin, "a", "t-1"), free = caller(Role::admin, "a");
  EXPECT_EQ(*tenant_for(bound, {}), mine);
  EXPECT_EQ(*tenant_for(bound, mine), mine);
  ASSERT_FALSE(tenant_for(bound, other));
  EXPECT_EQ(tenant_for(bound, other).error().code, Errc::not_found);
  EXPECT_EQ(*tenant_for(free, other), other);
  EXPECT_TRUE(tenant_for(free, {})->empty());
  EXPECT_TRUE(sees_all(free));
  EXPECT_FALSE(sees_all(bound));
}

TEST(ControlPlaneAccess, Credentials_AreForAdminsAndRunners) {
  EXPECT_TRUE(sees_credentials(caller(Role::admin)));
  EXPECT_TRUE(sees_credentials(caller(Role::runner)));
  EXPECT_FALSE(sees_credentials(caller(Role::worker)));
  EXPECT_FALSE(sees_credentials(caller(Role::viewer)));
}

TEST(ControlPlaneGate, Admits_ByTokenAndRole) {
  boost::asio::io_context io;
  VirtualClock clock(io);
  auto key = net::TokenKey::create(Secret(std::string(32, 'k')));
  ASSERT_TRUE(key);
  Gate gate(*key, clock);
  Caller who = caller(Role::viewer, "v", "t-1");
  who.expires = clock.wall() + 60s;
  net::Request request;
  auto refusal = [&](std::string header, Roles roles) {
    if (!header.empty()) request.headers["authorization"] = header;
    auto admitted = gate.admit(request, roles);
    EXPECT_FALSE(admitted) << header;
    return admitted ? std::string() : admitted.error().reason;
  };
  EXPECT_EQ(refusal("", kReaders), "token_missing");
  EXPECT_EQ(refusal("Basic eDp5", kReaders), "token_invalid");
  EXPECT_EQ(refusal("Bearer nonsense", kReaders), "token_invalid");
  std::string good = "Bearer " + key->sign(who).reveal();
  EXPECT_EQ(refusal(good, kAdmins), "role_forbidden");
  auto admitted = gate.admit(request, kReaders);
  ASSERT_TRUE(admitted);
  EXPECT_EQ(admitted->tenant.str(), "t-1");
  who.expires = clock.wall() - 1s;
  EXPECT_EQ(refusal("Bearer " + key->sign(who).reveal(), kReaders), "token_expired");
}

net::Request with_query(std::initializer_list<std::pair<const std::string, std::string>> query) {
  net::Request request;
  for (const auto& [name, value] : query) request.query[name] = value;
  return request;
}

TEST(ControlPlanePage, LimitAndCursor_AreValidated) {
  EXPECT_EQ(read_page(with_query({}))->limit, 100);
  EXPECT_EQ(read_page(with_query({{"limit", ""}, {"cursor", ""}, {"other", "x"}}))->limit, 100);
  EXPECT_EQ(read_page(with_query({{"limit", "1000"}}))->limit, 1000);
  for (const char* wrong : {"abc", "0", "-1", "1001", "1.5", " 1", "1 ", "99999999999999999999", "0x10"}) {
    auto page = read_page(with_query({{"limit", wrong}}));
    ASSERT_FALSE(page) << wrong;
    EXPECT_EQ(page.error().details.at("field").as_string(), "limit");
  }
  EXPECT_EQ(read_page(with_query({{"cursor", cursor_of("cam-ü")}}))->after, "cam-ü");
  for (const std::string& wrong : {std::string("%%%"), std::string("a"), cursor_of("\xFF\xFE"),
                                   cursor_of(std::string("a\0b", 3)), cursor_of(std::string(513, 'x'))}) {
    auto page = read_page(with_query({{"cursor", wrong}}));
    ASSERT_FALSE(page) << wrong;
    EXPECT_EQ(page.error().details.at("field").as_string(), "cursor");
  }
}

TEST(ControlPlanePage, NextCursor_OnlyWhenThereIsMore) {
  Page page{.limit = 2};
  auto same = [](const std::string& text) { return text; };
  auto write = [](const std::string& text) { return json::value(text); };
  json::object last = listed(std::vector<std::string>{"a", "b"}, page, same, write);
  EXPECT_TRUE(last.at("next_cursor").is_null());
  json::object more = listed(std::vector<std::string>{"a", "b", "c"}, page, same, write);
  EXPECT_EQ(more.at("items").as_array().size(), 2u);
  EXPECT_EQ(read_page(with_query({{"cursor", std::string(more.at("next_cursor").as_string())}}))->after, "b");
  EXPECT_TRUE(listed(std::vector<std::string>{}, page, same, write).at("items").as_array().empty());
}

TEST(ControlPlaneRequest, QueryAndPath_NameTheirField) {
  EXPECT_EQ(query_flag(with_query({{"enabled", "true"}}), "enabled")->value(), true);
  EXPECT_FALSE(query_flag(with_query({{"enabled", ""}}), "enabled")->has_value());
  EXPECT_EQ(query_flag(with_query({{"enabled", "yes"}}), "enabled").error().details.at("field").as_string(), "enabled");
  EXPECT_TRUE(query_id<SiteId>(with_query({{"site_id", ""}}))->empty());
  EXPECT_EQ(query_id<SiteId>(with_query({{"site_id", "a\nb"}})).error().details.at("field").as_string(), "site_id");
  for (const char* wrong : {"x", "0", "-3", "2147483648", "1.0", "1x"}) {
    net::Request request;
    request.params["zone_id"] = wrong;
    EXPECT_FALSE(path_zone_id(request)) << wrong;
  }
}

TEST(ControlPlaneRequest, Body_MustBeAnObject) {
  net::Request request;
  for (const char* wrong : {"", "[]", "{", "3", "{}x"}) {
    request.body = wrong;
    EXPECT_EQ(body_object(request).error().code, Errc::invalid) << wrong;
  }
  request.body = " {} ";
  EXPECT_TRUE(body_object(request));
}

}  // namespace
}  // namespace weir::control_plane

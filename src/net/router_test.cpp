#include "weir/net/router.hpp"

#include <gtest/gtest.h>

namespace weir::net {
namespace {

boost::asio::awaitable<Response> nothing(Request&) { co_return Response{}; }

Router usual() {
  Router router;
  router.add(Method::get, "/", nothing);
  router.add(Method::get, "/healthz", nothing);
  router.add(Method::get, "/v1/leases/{id}", nothing);
  router.add(Method::del, "/v1/leases/{id}", nothing);
  router.add(Method::get, "/v1/leases/events", nothing);
  router.add(Method::get, "/v1/others/events", nothing);
  router.add(Method::post, "/v1/leases/events", nothing);
  router.add(Method::post, "/v1/cameras", nothing);
  router.add(Method::get, "/v1/cameras", nothing);
  router.add(Method::put, "/v1/cameras/{camera_uuid}", nothing);
  router.add(Method::get, "/v1/cameras/{camera_uuid}/zones/{zone_id}", nothing);
  return router;
}

std::string found(const Router& router, Method method, std::string_view path) {
  Request request;
  auto match = router.find(method, path, request);
  if (!match) return match.error().reason;
  std::string out = *match->pattern;
  for (const auto& [name, value] : request.params) out += fmt::format(" {}={}", name, value);
  return out;
}

TEST(Router, Paths_FindTheirPattern) {
  Router router = usual();
  struct Row {
    Method method;
    std::string_view path, expected;
  };
  for (const Row& row : std::vector<Row>{
           {Method::get, "/", "/"},
           {Method::get, "/healthz", "/healthz"},
           {Method::get, "/healthz/", "/healthz"},
           {Method::get, "/v1/cameras", "/v1/cameras"},
           {Method::get, "/api/v1/cameras/", "/v1/cameras"},
           {Method::get, "/%76%31/cameras", "/v1/cameras"},
           {Method::head, "/v1/cameras", "/v1/cameras"},
           {Method::put, "/v1/cameras/c1", "/v1/cameras/{camera_uuid} camera_uuid=c1"},
           {Method::put, "/v1/cameras/a%2Fb", "/v1/cameras/{camera_uuid} camera_uuid=a/b"},
           {Method::put, "/v1/cameras/a+b", "/v1/cameras/{camera_uuid} camera_uuid=a+b"},
           {Method::get, "/api/v1/cameras/c/zones/3/",
            "/v1/cameras/{camera_uuid}/zones/{zone_id} camera_uuid=c zone_id=3"},
           {Method::get, "/v1/leases/events", "/v1/leases/events"},
           {Method::get, "/v1/leases/other", "/v1/leases/{id} id=other"},
           {Method::del, "/v1/leases/other", "/v1/leases/{id} id=other"},
           {Method::del, "/v1/leases/events", "method_not_allowed"},
           {Method::post, "/v1/leases/events", "/v1/leases/events"},
           {Method::get, "/nowhere", "not_found"},
           {Method::get, "/api/healthz", "/healthz"},
           {Method::get, "/api", "not_found"},
           {Method::get, "/api/", "not_found"},
           {Method::get, "/api/api/healthz", "not_found"},
           {Method::get, "/v1/cameras//zones/3", "not_found"},
           {Method::get, "//healthz", "not_found"},
           {Method::get, "/healthz//", "not_found"},
           {Method::get, "/HEALTHZ", "not_found"},
           {Method::put, "/v1/cameras/a/b", "not_found"},
           {Method::get, "/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17/18", "not_found"},
           {Method::del, "/v1/cameras", "method_not_allowed"},
           {Method::other, "/healthz", "method_not_allowed"},
           {Method::head, "/v1/cameras/c1", "method_not_allowed"},
           {Method::put, "/v1/cameras/%zz", "bad_request"},
           {Method::put, "/v1/cameras/%00", "bad_request"},
       })
    EXPECT_EQ(found(router, row.method, row.path), row.expected) << row.path;
}

TEST(Router, Allowed_ListsTheMethodsOfAPath) {
  Router router = usual();
  EXPECT_EQ(router.allowed("/api/v1/cameras"), "GET, HEAD, POST, OPTIONS");
  EXPECT_EQ(router.allowed("/v1/cameras/x"), "PUT, OPTIONS");
  EXPECT_EQ(router.allowed("/v1/leases/other"), "GET, HEAD, DELETE, OPTIONS");
  EXPECT_EQ(router.allowed("/v1/leases/events"), "GET, HEAD, POST, OPTIONS");
  EXPECT_EQ(router.allowed("/nowhere"), "");
}

TEST(Router, List_HoldsEveryRoute) {
  auto all = usual().list();
  EXPECT_EQ(all.size(), 11u);
  EXPECT_TRUE(std::ranges::any_of(
      all, [](const auto& each) { return each.method == Method::post && each.pattern == "/v1/cameras"; }));
}

TEST(Response, Failure_HasCodeMessageAndDetails) {
  Response response = Response::failure(Error{Errc::conflict, "lease_held", "held", {{"by", "r1"}}});
  EXPECT_EQ(response.status, 409);
  EXPECT_EQ(response.body, R"({"error":{"code":"lease_held","message":"held","details":{"by":"r1"}}})");
  EXPECT_EQ(response.content_type, "application/json");
  EXPECT_EQ(Response::failure(Error{Errc::too_many, "", "slow down"}).body,
            R"({"error":{"code":"too_many","message":"slow down","details":{}}})");
}

}  // namespace
}  // namespace weir::net

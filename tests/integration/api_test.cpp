// The routes of docs/api.md, as a client uses them, over both stores: places, cameras, zones and what holds for all.
// Leases and runners are in api_lease_test.cpp.
#include "api_socket.hpp"
#include "api_store.hpp"
#include "api_talk.hpp"

#include <set>

namespace weir::test {
namespace {

using net::Method;

std::string id_at(const boost::json::array& items, size_t index, std::string_view name) {
  return std::string(items.at(index).at(name).as_string());
}

class Api : public OverBothStores {
 protected:
  // Tenant t1, site s1 and cameras cam-1 …
  void furnish(int cameras) {
    process().furnish(cameras);
    talk_ = std::make_unique<Talk>(process(), process().token("admin"));
  }
  Talk& talk() { return *talk_; }
  // Every item of a list, asked for in pages of `limit`; each page but the last is full.
  std::vector<std::string> all_pages(const std::string& list, std::string_view name, size_t limit) {
    std::vector<std::string> found;
    std::string cursor;
    for (;;) {
      char separator = list.find('?') == std::string::npos ? '?' : '&';
      Reply page = talk().get(fmt::format("{}{}limit={}&cursor={}", list, separator, limit, cursor));
      EXPECT_EQ(page.status, 200) << page.text;
      for (size_t i = 0; i < items_of(page).size(); ++i) found.push_back(id_at(items_of(page), i, name));
      EXPECT_LE(items_of(page).size(), limit);
      if (page.field("next_cursor") == "null" || page.status != 200) return found;
      EXPECT_EQ(items_of(page).size(), limit);
      cursor = page.field("next_cursor");
    }
  }

 private:
  std::unique_ptr<Talk> talk_;
};
INSTANTIATE_OVER_BOTH_STORES(Api);

TEST_P(Api, RulesForAllRoutes_Hold) {
  START_OR_SKIP();
  furnish(1);
  EXPECT_EQ(talk().get("/healthz").text, R"({"status":"ok"})");
  EXPECT_EQ(talk().get("/readyz").field("status"), "ready");
  EXPECT_EQ(talk().get("/metrics").status, 200);

  // Both prefixes, with and without a slash at the end.
  std::string camera = talk().get("/v1/cameras/cam-1").text;
  for (std::string target : {"/v1/cameras/cam-1/", "/api/v1/cameras/cam-1", "/api/v1/cameras/cam-1/"})
    EXPECT_EQ(talk().get(target).text, camera) << target;
  EXPECT_EQ(talk().post("/api/v1/tenants/", {{"tenant_id", "t2"}}).status, 201);

  // The request's id comes back, or a new one.
  net::ClientRequest named = request_for(Method::get, "/v1/cameras/none", nullptr, process().token("admin"));
  named.headers = {{"X-Request-Id", "my-request.7"}};
  Reply answer = talk().send(named);
  EXPECT_EQ(answer.status, 404);
  EXPECT_EQ(answer.headers["x-request-id"], "my-request.7");
  std::string first = talk().get("/healthz").headers["x-request-id"];
  std::string second = talk().get("/healthz").headers["x-request-id"];
  EXPECT_FALSE(first.empty() || first == second);

  Reply head = talk().ask(Method::head, "/v1/cameras/cam-1");
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.text, "");
  EXPECT_EQ(head.headers["content-length"], std::to_string(camera.size()));
  Reply options = talk().ask(Method::options, "/v1/cameras");
  EXPECT_EQ(options.status, 204);
  EXPECT_EQ(options.headers["allow"], "GET, HEAD, POST, OPTIONS");
  Reply wrong = talk().ask(Method::patch, "/v1/tenants/t1");
  EXPECT_EQ(wrong.status, 405);
  EXPECT_EQ(wrong.code(), "method_not_allowed");
  EXPECT_EQ(wrong.headers["allow"], "GET, HEAD, DELETE, OPTIONS");
  EXPECT_EQ(talk().del("/v1/leases/camera/acquire").status, 405);

  for (std::string target :
       {"/", "/v1", "/v1/nothing", "/v2/cameras", "/v1/cameras/cam-1/nothing", "/v1/cameras//zones"})
    EXPECT_EQ(talk().get(target).code(), "not_found") << target;
  const std::vector<std::pair<Method, std::string>> absent = {{Method::get, "/v1/cameras/x"},
                                                              {Method::patch, "/v1/cameras/x"},
                                                              {Method::del, "/v1/cameras/x"},
                                                              {Method::get, "/v1/cameras/x/zones"},
                                                              {Method::get, "/v1/cameras/cam-1/zones/9"},
                                                              {Method::del, "/v1/cameras/cam-1/zones/9"},
                                                              {Method::get, "/v1/sites/x"},
                                                              {Method::del, "/v1/sites/x"},
                                                              {Method::get, "/v1/sites/x/budget"},
                                                              {Method::post, "/v1/sites/x/budget/consume"},
                                                              {Method::del, "/v1/tenants/x"},
                                                              {Method::get, "/v1/runners/x"},
                                                              {Method::del, "/v1/runners/x"},
                                                              {Method::put, "/v1/runners/x/heartbeat"},
                                                              {Method::get, "/v1/leases/camera/x"},
                                                              {Method::post, "/v1/leases/camera/x/revoke"},
                                                              {Method::get, "/v1/tenants/x/sites/s1/cameras"},
                                                              {Method::get, "/v1/tenants/t1/sites/x/cameras"},
                                                              {Method::get, "/v1/tenants/t2/sites/s1/cameras/cam-1"},
                                                              {Method::get, "/v1/tenants/t1/sites/x/zones"}};
  for (const auto& [method, target] : absent) {
    Reply reply = talk().ask(method, target, method == Method::patch ? json::value{{"enabled", true}} : json::value());
    EXPECT_EQ(reply.status, 404) << target << " " << reply.text;
    EXPECT_TRUE(reply.code().ends_with("_not_found")) << reply.text;
  }
}

TEST_P(Api, TenantsAndSites_AreAddedListedAndRemovedWhenEmpty) {
  START_OR_SKIP();
  furnish(1);
  Reply tenant = talk().post("/v1/tenants", {{"tenant_id", "t-02"}, {"name", "Zweite"}});
  EXPECT_EQ(tenant.status, 201);
  EXPECT_EQ(tenant.field("name"), "Zweite");
  EXPECT_TRUE(tenant.field("created_at").ends_with("Z")) << tenant.text;
  EXPECT_EQ(talk().post("/v1/tenants", {{"tenant_id", "t-02"}}).status, 409);
  EXPECT_EQ(items_of(talk().get("/v1/tenants")).size(), 2u);
  EXPECT_EQ(talk().get("/v1/tenants/t-02").field("name"), "Zweite");
  EXPECT_EQ(talk().get("/v1/tenants/t-03").code(), "tenant_not_found");
  Talk other(process(), process().token("viewer", "v", "t1"));
  EXPECT_EQ(other.get("/v1/tenants/t1").status, 200);
  EXPECT_EQ(other.get("/v1/tenants/t-02").code(), "tenant_not_found");

  Reply site =
      talk().post("/v1/sites", {{"site_id", "s-02"}, {"tenant_id", "t-02"}, {"capacity", 3}, {"refill_rate", 0}});
  EXPECT_EQ(site.status, 201);
  EXPECT_EQ(site.field("capacity"), "3");
  EXPECT_EQ(site.field("tokens"), "3");
  EXPECT_EQ(talk().post("/v1/sites", {{"site_id", "s-02"}, {"tenant_id", "t1"}}).status, 409);
  Reply homeless = talk().post("/v1/sites", {{"site_id", "s-03"}, {"tenant_id", "nobody"}});
  EXPECT_TRUE(homeless.status == 404 || homeless.status == 422) << homeless.status << homeless.text;
  EXPECT_EQ(talk().get("/v1/sites/s-02").field("tenant_id"), "t-02");
  EXPECT_EQ(items_of(talk().get("/v1/sites")).size(), 2u);
  Reply of_tenant = talk().get("/v1/sites?tenant_id=t-02");
  ASSERT_EQ(items_of(of_tenant).size(), 1u);
  EXPECT_EQ(id_at(items_of(of_tenant), 0, "site_id"), "s-02");

  // What is not empty stays.
  EXPECT_EQ(talk().del("/v1/tenants/t-02").status, 422);
  EXPECT_EQ(talk().del("/v1/sites/s1").status, 422);
  EXPECT_EQ(talk().del("/v1/sites/s-02").status, 200);
  EXPECT_EQ(talk().del("/v1/tenants/t-02").status, 200);
  EXPECT_EQ(talk().get("/v1/sites/s-02").code(), "site_not_found");
}

TEST_P(Api, Budget_GivesItsTokens_ThenSaysWhenToComeBack) {
  START_OR_SKIP();
  furnish(1);
  EXPECT_EQ(talk().get("/v1/sites/s1/budget").field("capacity"), "10");
  Reply set = talk().put("/v1/sites/s1/budget", {{"capacity", 3}, {"refill_rate", 1}, {"tokens", 3}});
  ASSERT_EQ(set.status, 200) << set.text;
  EXPECT_EQ(set.field("tokens"), "3");

  // With the lease's name a repeated question costs once.
  for (int i = 0; i < 3; ++i) {
    Reply named = talk().post("/v1/sites/s1/budget/consume", {{"camera_uuid", "cam-1"}, {"grant_version", 7}});
    EXPECT_EQ(named.status, 200) << named.text;
    EXPECT_EQ(named.field("granted"), "true");
  }
  EXPECT_EQ(talk().post("/v1/sites/s1/budget/consume").status, 200);
  EXPECT_EQ(talk().post("/v1/sites/s1/budget/consume", json::object{}).status, 200);
  Reply empty = talk().post("/v1/sites/s1/budget/consume");
  EXPECT_EQ(empty.status, 409);
  EXPECT_EQ(empty.code(), "budget_empty");
  auto wait_ms = empty.body.at("error").at("details").at("retry_after_ms").to_number<std::int64_t>();
  EXPECT_GT(wait_ms, 0);
  EXPECT_LE(wait_ms, 60'000);
  EXPECT_EQ(talk().post("/v1/sites/s1/budget/consume", {{"camera_uuid", "cam-1"}, {"grant_version", 7}}).status, 200);
  EXPECT_EQ(talk().put("/v1/sites/s1/budget", {{"capacity", 3}, {"refill_rate", 1}, {"tokens", 1}}).status, 200);
  EXPECT_EQ(talk().post("/v1/sites/s1/budget/consume").status, 200);
}

TEST_P(Api, Lists_GoOnPageByPage_Over250Cameras) {
  START_OR_SKIP();
  furnish(1);
  talk().post("/v1/sites", {{"site_id", "s2"}, {"tenant_id", "t1"}});
  std::set<std::string> expected = {"cam-1"};
  for (int n = 0; n < 249; ++n) {
    std::string id = fmt::format("c/{} ü", n);
    expected.insert(id);
    Reply added = talk().post("/v1/cameras", {{"camera_uuid", id},
                                              {"tenant_id", "t1"},
                                              {"site_id", n % 2 == 0 ? "s1" : "s2"},
                                              {"rtsp_url", "rtsp://camera.example/1"},
                                              {"enabled", n % 5 != 0}});
    ASSERT_EQ(added.status, 201) << added.text;
  }
  for (size_t limit : {1000u, 250u, 100u, 7u}) {
    std::vector<std::string> found = all_pages("/v1/cameras", "camera_uuid", limit);
    EXPECT_EQ(found.size(), 250u) << limit;
    EXPECT_EQ(std::set<std::string>(found.begin(), found.end()), expected) << limit;
  }
  EXPECT_EQ(items_of(talk().get("/v1/cameras")).size(), 100u);
  EXPECT_EQ(items_of(talk().get("/v1/cameras?limit=&cursor=&unknown=1")).size(), 100u);
  EXPECT_EQ(all_pages("/v1/cameras?enabled=true", "camera_uuid", 60).size(), 200u);
  EXPECT_EQ(all_pages("/v1/cameras?enabled=false&site_id=s2", "camera_uuid", 10).size(), 25u);
  EXPECT_EQ(all_pages("/v1/tenants/t1/sites/s1/cameras", "camera_uuid", 50).size(), 126u);
  EXPECT_EQ(all_pages("/v1/cameras?tenant_id=nobody", "camera_uuid", 50).size(), 0u);
  EXPECT_EQ(all_pages("/v1/sites", "site_id", 1), (std::vector<std::string>{"s1", "s2"}));
  // An id may hold what a path must escape.
  EXPECT_EQ(talk().get("/v1/cameras/c%2F5%20%C3%BC").field("camera_uuid"), "c/5 ü");
}

TEST_P(Api, Cameras_AreAddedChangedReplacedAndRemoved_OnBothPaths) {
  START_OR_SKIP();
  furnish(1);
  for (std::string base : {"/v1/cameras", "/v1/tenants/t1/sites/s1/cameras"}) {
    SCOPED_TRACE(base);
    json::object body{{"camera_uuid", "cam-x"}, {"rtsp_url", "rtsp://u:p@camera.example/1"}, {"max_fps", 2.5}};
    if (base == "/v1/cameras") body["tenant_id"] = "t1", body["site_id"] = "s1";
    Reply added = talk().post(base, body);
    ASSERT_EQ(added.status, 201) << added.text;
    EXPECT_EQ(added.field("tenant_id"), "t1");
    EXPECT_EQ(added.field("site_id"), "s1");
    EXPECT_EQ(added.field("max_fps"), "2.5");
    EXPECT_EQ(added.field("decode"), "adaptive");
    EXPECT_EQ(talk().post(base, body).status, 409);

    std::string one = base + "/cam-x";
    EXPECT_EQ(talk().get(one).text, added.text);
    Reply changed = talk().patch(one, {{"enabled", false}, {"name", "Tor"}});
    ASSERT_EQ(changed.status, 200) << changed.text;
    EXPECT_EQ(changed.field("enabled"), "false");
    EXPECT_EQ(changed.field("name"), "Tor");
    EXPECT_EQ(changed.field("max_fps"), "2.5");
    EXPECT_EQ(talk().patch(one, {{"max_fps", nullptr}}).field("max_fps"), "6");
    Reply replaced = talk().put(one, {{"rtsp_url", "rtsps://camera.example/2"}});
    ASSERT_EQ(replaced.status, 200) << replaced.text;
    EXPECT_EQ(replaced.field("name"), "");
    EXPECT_EQ(replaced.field("enabled"), "true");
    // What was answered may be sent back.
    EXPECT_EQ(talk().put(one, replaced.body).status, 200);
    if (base == "/v1/cameras") {
      EXPECT_EQ(talk().patch(one, {{"site_id", "s2"}}).status, 422);
      EXPECT_EQ(talk().patch(one, {{"tenant_id", "t2"}}).code(), "fixed_field");
    } else {
      EXPECT_EQ(talk().patch(one, {{"site_id", "s2"}}).status, 400);
    }
    EXPECT_EQ(talk().del(one).status, 200);
    EXPECT_EQ(talk().get(one).code(), "camera_not_found");
  }
  Reply nowhere = talk().post(
      "/v1/cameras?create_places=false",
      {{"camera_uuid", "c"}, {"tenant_id", "t1"}, {"site_id", "none"}, {"rtsp_url", "rtsp://camera.example/1"}});
  EXPECT_TRUE(nowhere.status == 404 || nowhere.status == 422) << nowhere.status << nowhere.text;
  json::object homeless{
      {"camera_uuid", "far"}, {"tenant_id", "t9"}, {"site_id", "s9"}, {"rtsp_url", "rtsp://camera.example/1"}};
  Reply bound = Talk(process(), process().token("admin", "root", "t9")).post("/v1/cameras", homeless);
  EXPECT_EQ(bound.status, 404) << "an administrator of one tenant makes none: " << bound.text;
  EXPECT_EQ(talk().get("/v1/tenants/t9").status, 404);
  EXPECT_EQ(talk().post("/v1/cameras", homeless).status, 201);
  EXPECT_EQ(talk().get("/v1/sites/s9").field("tenant_id"), "t9");
  homeless["camera_uuid"] = "farther";
  homeless["site_id"] = "s10";
  EXPECT_EQ(Talk(process(), process().token("admin", "root", "t9")).post("/v1/cameras", homeless).status, 201);
  homeless["camera_uuid"] = "stranger";
  homeless["tenant_id"] = "t10";
  homeless["site_id"] = "s1";
  Reply stranger = talk().post("/v1/cameras", homeless);
  EXPECT_EQ(stranger.code(), "site_not_found") << "a site stays its tenant's: " << stranger.text;
  EXPECT_EQ(talk().get("/v1/tenants/t10").status, 404) << "and no tenant is made";
  Reply by_pictures = talk().post("/v1/cameras", {{"camera_uuid", "c"},
                                                  {"tenant_id", "t1"},
                                                  {"site_id", "s1"},
                                                  {"snapshot", {{"url", "http://camera.example/s.jpg"}}}});
  EXPECT_EQ(by_pictures.status, 201) << by_pictures.text;
}

TEST_P(Api, ACameraMakesNoPlaces_WhereThatIsSwitchedOff) {
  START_OR_SKIP({"--create-places", "false"});
  furnish(1);
  json::object camera{
      {"camera_uuid", "c"}, {"tenant_id", "t9"}, {"site_id", "s9"}, {"rtsp_url", "rtsp://camera.example/1"}};
  EXPECT_EQ(talk().post("/v1/cameras", camera).code(), "site_not_found");
  EXPECT_EQ(talk().get("/v1/tenants/t9").status, 404);
}

TEST_P(Api, ConfigVersions_ChangeWithWhatTheyStandFor) {
  START_OR_SKIP();
  furnish(2);
  const std::string of_site = "/api/v1/tenants/t1/sites/s1/config/version";
  auto versions = [&] {
    Reply said = talk().get(of_site);
    EXPECT_EQ(said.status, 200) << said.text;
    return std::pair{said.field("config_version"), said.field("zone_version")};
  };
  auto first = versions();
  EXPECT_EQ(versions(), first) << "nothing changed";
  const json::value triangle = json::array{json::array{0, 0}, json::array{9, 0}, json::array{9, 9}};
  std::string zones_before = talk().get("/v1/cameras/cam-1").field("zone_version");
  ASSERT_EQ(talk().post("/v1/cameras/cam-1/zones", {{"zone_id", 1}, {"polygon", triangle}}).status, 201);
  auto zoned = versions();
  EXPECT_NE(zoned.first, first.first);
  EXPECT_NE(zoned.second, first.second);
  EXPECT_NE(talk().get("/v1/cameras/cam-1").field("zone_version"), zones_before);
  ASSERT_EQ(talk().patch("/v1/cameras/cam-2", {{"max_fps", 3}}).status, 200);
  auto slower = versions();
  EXPECT_NE(slower.first, zoned.first);
  EXPECT_EQ(slower.second, zoned.second) << "no zone changed";
  ASSERT_EQ(talk().patch("/v1/cameras/cam-2", {{"enabled", false}}).status, 200);
  EXPECT_NE(versions().first, slower.first);
  ASSERT_EQ(talk().del("/v1/cameras/cam-1/zones/1").status, 200);
  EXPECT_EQ(versions().second, first.second) << "the same zones, the same version";
  ASSERT_EQ(talk().del("/v1/cameras/cam-2").status, 200);
  EXPECT_NE(versions().second, first.second);
  // What was answered may be sent back.
  json::object shown = talk().get("/v1/cameras/cam-1").body.as_object();
  EXPECT_EQ(talk().put("/v1/cameras/cam-1", shown).status, 200);
  EXPECT_EQ(talk().get("/v1/tenants/t1/sites/none/config/version").code(), "site_not_found");
  EXPECT_EQ(Talk(process(), process().token("viewer", "v", "t2")).get(of_site).status, 404);
}

TEST_P(Api, Zones_AreOneSet_UnderTheCameraAndUnderTheSite) {
  START_OR_SKIP();
  furnish(2);
  const std::string of_camera = "/v1/cameras/cam-1/zones", of_site = "/v1/tenants/t1/sites/s1/zones";
  const json::value triangle = json::array{json::array{0, 0}, json::array{9, 0}, json::array{9, 9}};
  Reply first = talk().post(of_camera, {{"zone_id", 1}, {"kind", "exclude"}, {"polygon", triangle}});
  ASSERT_EQ(first.status, 201) << first.text;
  EXPECT_EQ(first.field("camera_uuid"), "cam-1");
  EXPECT_EQ(talk().post(of_camera, {{"zone_id", 1}, {"polygon", triangle}}).status, 409);
  EXPECT_EQ(talk().post(of_site, {{"zone_id", 2}, {"camera_uuid", "cam-1"}, {"polygon", triangle}}).status, 201);
  EXPECT_EQ(talk().post(of_site, {{"zone_id", 1}, {"camera_uuid", "cam-2"}, {"polygon", triangle}}).status, 201);
  EXPECT_EQ(talk().post(of_site, {{"zone_id", 3}, {"camera_uuid", "cam-9"}, {"polygon", triangle}}).status, 404);

  EXPECT_EQ(items_of(talk().get(of_camera)).size(), 2u);
  EXPECT_EQ(items_of(talk().get(of_site)).size(), 3u);
  Reply page = talk().get(of_site + "?limit=2");
  ASSERT_EQ(items_of(page).size(), 2u);
  Reply rest = talk().get(of_site + "?limit=2&cursor=" + page.field("next_cursor"));
  ASSERT_EQ(items_of(rest).size(), 1u);
  EXPECT_EQ(id_at(items_of(rest), 0, "camera_uuid"), "cam-2");
  EXPECT_EQ(rest.field("next_cursor"), "null");
  EXPECT_EQ(talk().get("/v1/cameras/cam-1").body.at("zones").as_array().size(), 2u);

  EXPECT_EQ(talk().get(of_site + "/2").field("camera_uuid"), "cam-1");
  Reply ambiguous = talk().get(of_site + "/1");
  EXPECT_EQ(ambiguous.status, 400);
  EXPECT_EQ(wrong_field(ambiguous), "camera_uuid");
  EXPECT_EQ(talk().get(of_site + "/1?camera_uuid=cam-2").status, 200);
  EXPECT_EQ(talk().put(of_site + "/2", {{"name", "tree"}, {"polygon", triangle}}).field("name"), "tree");
  EXPECT_EQ(talk().get(of_camera + "/2").field("name"), "tree");
  EXPECT_EQ(talk().put(of_camera + "/7", {{"polygon", triangle}}).code(), "zone_not_found");
  EXPECT_EQ(talk().del(of_site + "/1?camera_uuid=cam-2").status, 200);
  EXPECT_EQ(talk().del(of_camera + "/1").status, 200);
  EXPECT_EQ(items_of(talk().get(of_site)).size(), 1u);
}

}  // namespace
}  // namespace weir::test

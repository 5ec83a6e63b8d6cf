// Cameras and their zones over HTTP: who sees what of them, and that the flat and the nested routes are one.
#include "plane_testing.hpp"

namespace weir::control_plane {
namespace {

using net::Method;
using net::Role;

class CameraRoutes : public PlaneTest {
 protected:
  CameraRoutes() { store_.up = true; }
  net::Response ask(Method method, std::string path, std::string body, const std::string& credential) {
    return respond(method, std::move(path), std::move(body), credential, 10s);
  }
};

constexpr const char* kCamera = R"({"camera_uuid":"c-1","tenant_id":"t-1","site_id":"s-1",
    "rtsp_url":"rtsp://admin:canary@cam/x?k=canary"})";

TEST_F(CameraRoutes, Cameras_ShowCredentialsToWhoNeedsThem) {
  net::Response created = ask(Method::post, "/v1/cameras", kCamera, token(Role::admin));
  ASSERT_EQ(created.status, 201) << created.body;
  EXPECT_TRUE(body_of(created).contains("created_at"));
  for (const char* path : {"/v1/cameras/c-1", "/v1/cameras", "/v1/tenants/t-1/sites/s-1/cameras",
                           "/v1/tenants/t-1/sites/s-1/cameras/c-1"}) {
    EXPECT_NE(ask(Method::get, path, "", token(Role::runner)).body.find("canary"), std::string::npos) << path;
    net::Response seen = ask(Method::get, path, "", token(Role::viewer));
    EXPECT_EQ(seen.status, 200);
    EXPECT_EQ(seen.body.find("canary"), std::string::npos) << path;
  }
}

TEST_F(CameraRoutes, CameraThatCannotBeRead_SaysSo_AndIsRemoved_WhereItStands) {
  std::string admin = token(Role::admin), nested = "/v1/tenants/t-1/sites/";
  ASSERT_EQ(ask(Method::post, "/v1/cameras", kCamera, admin).status, 201);
  store_.cameras_readable = false;
  store_.on_show = [](const CameraId& camera) -> Result<LeaseView> {
    LeaseView view{lease::LeaseRow{camera}};
    view.row.tenant = TenantId::trusted("t-1");
    view.row.site = SiteId::trusted("s-1");
    return view;
  };
  EXPECT_EQ(code_of(ask(Method::get, "/v1/cameras/c-1", "", admin)), "bad_stored_config");
  EXPECT_EQ(ask(Method::del, nested + "s-9/cameras/c-1", "", admin).status, 404);
  EXPECT_EQ(ask(Method::del, nested + "s-1/cameras/c-1", "", admin).status, 200);
  EXPECT_EQ(ask(Method::del, "/v1/cameras/c-1", "", admin).status, 200);
}

TEST_F(CameraRoutes, OtherTenants_DoNotExist) {
  ASSERT_EQ(ask(Method::post, "/v1/cameras", kCamera, token(Role::admin)).status, 201);
  std::string foreign = token(Role::admin, "a", "t-2");
  EXPECT_EQ(ask(Method::post, "/v1/cameras", kCamera, foreign).status, 404);
  EXPECT_EQ(ask(Method::post, "/v1/tenants", R"({"tenant_id":"t-3"})", foreign).status, 403);
  EXPECT_EQ(ask(Method::post, "/v1/sites", R"({"site_id":"x","tenant_id":"t-1"})", foreign).status, 404);
  for (const char* path : {"/v1/cameras/c-1", "/v1/tenants/t-1/sites/s-1/cameras", "/v1/cameras/c-1/zones",
                           "/v1/tenants/t-1/sites/s-1/zones", "/v1/tenants/t-1/sites/s-1/cameras/c-1"})
    EXPECT_EQ(ask(Method::get, path, "", foreign).status, 404) << path;
  EXPECT_EQ(ask(Method::patch, "/v1/cameras/c-1", "{}", foreign).status, 404);
  EXPECT_EQ(ask(Method::del, "/v1/cameras/c-1", "", foreign).status, 404);
  json::object list = body_of(ask(Method::get, "/v1/cameras?tenant_id=t-1", "", foreign));
  EXPECT_TRUE(list.at("items").as_array().empty());
}

TEST_F(CameraRoutes, NestedCameras_AgreeWithTheirPath) {
  std::string base = "/v1/tenants/t-1/sites/s-1/cameras", admin = token(Role::admin);
  EXPECT_EQ(ask(Method::post, base, R"({"camera_uuid":"c-1","rtsp_url":"rtsp://cam/"})", admin).status, 201);
  EXPECT_EQ(ask(Method::post, base, R"({"camera_uuid":"c","site_id":"s-2","rtsp_url":"rtsp://cam/"})", admin).status,
            400);
  EXPECT_EQ(ask(Method::put, base + "/c-1", R"({"rtsp_url":"rtsp://cam/2"})", admin).status, 200);
  EXPECT_EQ(ask(Method::put, base + "/c-1", R"({"camera_uuid":"z","rtsp_url":"rtsp://cam/2"})", admin).status, 400);
  EXPECT_EQ(ask(Method::put, "/v1/cameras/c-1", R"({"camera_uuid":"z","rtsp_url":"rtsp://cam/2"})", admin).status, 422);
  EXPECT_EQ(ask(Method::put, "/v1/tenants/t-1/sites/s-9/cameras/c-1", R"({"rtsp_url":"rtsp://cam/2"})", admin).status,
            404);
  EXPECT_EQ(ask(Method::get, "/v1/tenants/t-1/sites/s-9/cameras/c-1", "", admin).status, 404);
}

TEST_F(CameraRoutes, Zones_AreOneSetUnderCameraAndSite) {
  std::string admin = token(Role::admin), site = "/v1/tenants/t-1/sites/s-1/zones", camera = "/v1/cameras/c-1/zones";
  ASSERT_EQ(ask(Method::post, "/v1/cameras", kCamera, admin).status, 201);
  std::string zone = R"("zone_id":1,"polygon":[[0,0],[9,0],[9,9]])";
  EXPECT_EQ(ask(Method::post, site, "{" + zone + "}", admin).status, 400);
  net::Response added = ask(Method::post, site, R"({"camera_uuid":"c-1",)" + zone + "}", admin);
  EXPECT_EQ(added.status, 201) << added.body;
  EXPECT_EQ(body_of(added).at("camera_uuid").as_string(), "c-1");
  EXPECT_EQ(ask(Method::post, camera, "{" + zone + "}", admin).status, 409);
  EXPECT_EQ(ask(Method::post, camera, R"({"zone_id":2,"polygon":[[0,0],[9,0],[9,9]]})", admin).status, 201);
  EXPECT_EQ(body_of(ask(Method::get, camera, "", admin)).at("items").as_array().size(), 2u);
  EXPECT_EQ(body_of(ask(Method::get, site + "/1", "", admin)).at("camera_uuid").as_string(), "c-1");
  EXPECT_EQ(ask(Method::put, site + "/1", R"({"name":"door","polygon":[[0,0],[9,0],[9,9]]})", admin).status, 200);
  EXPECT_EQ(ask(Method::put, site + "/1", R"({"zone_id":2,"polygon":[[0,0],[9,0],[9,9]]})", admin).status, 400);
  EXPECT_EQ(ask(Method::put, camera + "/x", "{}", admin).status, 400);

  json::object page = body_of(ask(Method::get, site + "?limit=1", "", admin));
  EXPECT_EQ(page.at("items").as_array().size(), 1u);
  std::string cursor(page.at("next_cursor").as_string());
  json::object rest = body_of(ask(Method::get, site + "?cursor=" + cursor, "", admin));
  ASSERT_EQ(rest.at("items").as_array().size(), 1u);
  EXPECT_EQ(rest.at("items").at(0).at("zone_id"), json::value(2));
  EXPECT_TRUE(rest.at("next_cursor").is_null());

  EXPECT_EQ(ask(Method::del, site + "/1", "", admin).status, 200);
  EXPECT_EQ(ask(Method::del, site + "/1", "", admin).status, 404);
  EXPECT_EQ(ask(Method::del, camera + "/2", "", admin).status, 200);
}

TEST_F(CameraRoutes, ZoneOfTwoCameras_NeedsTheCamera) {
  std::string admin = token(Role::admin), site = "/v1/tenants/t-1/sites/s-1/zones";
  for (const char* id : {"c-1", "c-2"})
    ASSERT_EQ(ask(Method::post, "/v1/cameras",
                  fmt::format(R"({{"camera_uuid":"{}","tenant_id":"t-1","site_id":"s-1",
        "rtsp_url":"rtsp://cam/","zones":[{{"zone_id":5,"polygon":[[0,0],[9,0],[9,9]]}}]}})",
                              id),
                  admin)
                  .status,
              201);
  EXPECT_EQ(ask(Method::del, site + "/5", "", admin).status, 400);
  EXPECT_EQ(ask(Method::del, site + "/5?camera_uuid=c-2", "", admin).status, 200);
  EXPECT_EQ(ask(Method::del, site + "/5", "", admin).status, 200);
}

}  // namespace
}  // namespace weir::control_plane

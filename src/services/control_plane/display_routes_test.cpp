// What detector clusters shall look at, over HTTP: who may say it, how mistakes are told, and what is announced.
#include "fake_store.hpp"
#include "plane_testing.hpp"

namespace weir::control_plane {
namespace {

using net::Method;
using net::Role;

// A control plane over the fake store, which has tenants t-1 and t-2, and cameras c-1 and c-2 of t-1.
class DisplayRoutes : public PlaneTest {
 protected:
  DisplayRoutes() {
    router_ = net::Router();
    fake_plane_.add_routes(router_);
    boost::asio::co_spawn(io_, fake_plane_.ticker(),
                          boost::asio::bind_cancellation_slot(stop_.slot(), [this](std::exception_ptr failure) {
                            EXPECT_FALSE(failure);
                            ended_ = true;
                          }));
    for (const char* tenant : {"t-1", "t-2"}) created("/v1/tenants", fmt::format(R"({{"tenant_id":"{}"}})", tenant));
    created("/v1/sites", R"({"site_id":"s-1","tenant_id":"t-1"})");
    for (const char* camera : {"c-1", "c-2"})
      created("/v1/cameras", fmt::format(R"({{"camera_uuid":"{}","tenant_id":"t-1","site_id":"s-1",
          "rtsp_url":"rtsp://user:canary@camera.example/1"}})", camera));
    (void)announced();
  }
  ~DisplayRoutes() override {
    stop_.emit(boost::asio::cancellation_type::all);
    pass(1s);
    EXPECT_TRUE(ended_);
  }
  net::Response ask(Method method, std::string path, std::string body, const std::string& credential) {
    return respond(method, std::move(path), std::move(body), credential, 1s);
  }
  net::Response post(std::string path, std::string body) {
    return ask(Method::post, std::move(path), std::move(body), admin_);
  }
  net::Response put(std::string path, std::string body) {
    return ask(Method::put, std::move(path), std::move(body), admin_);
  }
  json::object get(std::string path, int status = 200) {
    net::Response response = ask(Method::get, path, "", admin_);
    EXPECT_EQ(response.status, status) << path << response.body;
    return body_of(response);
  }
  net::Response del(std::string path) { return ask(Method::del, std::move(path), "", admin_); }
  json::object created(const std::string& path, std::string body) {
    net::Response response = post(path, std::move(body));
    EXPECT_EQ(response.status, 201) << path << response.body;
    return body_of(response);
  }
  void furnish() {
    created("/v1/models", R"({"model_id":7,"tenant_id":"t-1","name":"yolo","metadata":{"labels":["car"]}})");
    created("/v1/playlists", R"({"playlist_id":"p-1","tenant_id":"t-1","name":"lunch","model_id":7})");
    created("/v1/displays", R"({"display_id":"d-1","tenant_id":"t-1","camera_uuid":"c-1","playlist_id":"p-1"})");
  }
  void give_to_cluster(const std::string& camera, const std::string& more = "") {
    net::Response response =
        ask(Method::patch, "/v1/cameras/" + camera, R"({"processing":"cluster")" + more + "}", admin_);
    ASSERT_EQ(response.status, 200) << response.body;
  }
  // What was announced since the last look: routing key and payload.
  std::vector<std::pair<std::string, json::object>> announced() {
    pass(1s);
    std::vector<std::pair<std::string, json::object>> out;
    for (auto at = fake_.rows().events.upper_bound(seen_); at != fake_.rows().events.end(); ++at) {
      seen_ = at->first;
      out.emplace_back(at->second.routing_key, json::parse_text(at->second.payload)->as_object());
      EXPECT_EQ(at->second.payload.find("canary"), std::string::npos) << at->second.payload;
    }
    return out;
  }
  static std::string field_of(const net::Response& response) {
    const json::object error = body_of(response).at("error").as_object();
    const json::object* details = error.at("details").if_object();
    return details != nullptr && details->contains("field") ? std::string(details->at("field").as_string()) : "";
  }

  test::FakeStore fake_{[this] { return clock_.wall(); }};
  net::Metrics fake_metrics_;
  ControlPlane fake_plane_{fake_,       fake_,  fake_, fake_,         pictures_,
                           model_disk_, clock_, key_,  fake_metrics_, ControlPlaneSettings{}};
  boost::asio::cancellation_signal stop_;
  bool ended_ = false;
  std::int64_t seen_ = 0;
  const std::string admin_ = token(Role::admin), viewer_ = token(Role::viewer), runner_ = token(Role::runner, "b-1");
};

TEST_F(DisplayRoutes, ADisplay_IsAddedShownReplacedAndRemoved_AndEachIsAnnounced) {
  furnish();
  auto told = announced();
  ASSERT_EQ(told.size(), 3u);
  EXPECT_EQ(told[0].first, "model.created.t-1.7");
  EXPECT_EQ(told[0].second.at("model_id"), 7);
  EXPECT_EQ(told[1].first, "playlist.created.t-1.p-1");
  EXPECT_EQ(told[1].second.at("model_id"), 7);
  EXPECT_EQ(told[2].first, "display.created.t-1.d-1");
  EXPECT_EQ(told[2].second.at("type").as_string(), "display.created");
  EXPECT_EQ(told[2].second.at("tenant_id").as_string(), "t-1");
  EXPECT_EQ(told[2].second.at("camera_uuid").as_string(), "c-1");

  json::object shown = get("/v1/displays/d-1");
  EXPECT_EQ(shown.at("camera_uuid").as_string(), "c-1");
  EXPECT_EQ(shown.at("playlist_id").as_string(), "p-1");
  shown["camera_uuid"] = nullptr;
  net::Response changed = put("/v1/displays/d-1", json::to_text(shown));
  ASSERT_EQ(changed.status, 200) << changed.body << " what was shown may be put back";
  EXPECT_TRUE(body_of(changed).at("camera_uuid").is_null());
  EXPECT_EQ(put("/v1/displays/d-1", "{}").status, 200) << "the path names it, and its tenant is known";
  EXPECT_TRUE(get("/v1/displays/d-1").at("playlist_id").is_null());
  EXPECT_EQ(body_of(del("/v1/displays/d-1")).at("deleted"), true);
  EXPECT_EQ(code_of(del("/v1/displays/d-1")), "display_not_found");
  EXPECT_EQ(code_of(put("/v1/displays/d-1", "{}")), "display_not_found");
  told = announced();
  ASSERT_EQ(told.size(), 3u);
  EXPECT_EQ(told[0].first, "display.updated.t-1.d-1");
  EXPECT_FALSE(told[0].second.contains("camera_uuid"));
  EXPECT_EQ(told[2].first, "display.deleted.t-1.d-1");
}

TEST_F(DisplayRoutes, Lists_ComeInPages_AndByTenant) {
  furnish();
  for (const char* id : {"a", "b"})
    created("/v1/displays", fmt::format(R"({{"display_id":"{}","tenant_id":"t-2"}})", id));
  json::object page = get("/v1/displays?limit=2");
  ASSERT_EQ(page.at("items").as_array().size(), 2u);
  std::string cursor(page.at("next_cursor").as_string());
  EXPECT_EQ(get("/v1/displays?limit=2&cursor=" + cursor).at("items").at(0).at("display_id").as_string(), "d-1");
  EXPECT_EQ(get("/v1/displays?tenant_id=t-2").at("items").as_array().size(), 2u);
  EXPECT_EQ(get("/v1/playlists").at("items").at(0).at("name").as_string(), "lunch");
  std::string foreign = token(Role::viewer, "v", "t-2");
  EXPECT_EQ(body_of(ask(Method::get, "/v1/displays", "", foreign)).at("items").as_array().size(), 2u);
  EXPECT_TRUE(body_of(ask(Method::get, "/v1/displays?tenant_id=t-1", "", foreign)).at("items").as_array().empty());
  EXPECT_TRUE(body_of(ask(Method::get, "/v1/playlists", "", foreign)).at("items").as_array().empty());
}

TEST_F(DisplayRoutes, AnotherTenantsThings_DoNotExist_AndTheirIdsAreTaken) {
  furnish();
  std::string foreign = token(Role::admin, "a", "t-2");
  for (const char* path : {"/v1/displays/d-1", "/v1/playlists/p-1", "/v1/models/7"}) {
    EXPECT_EQ(ask(Method::get, path, "", foreign).status, 404) << path;
    EXPECT_EQ(ask(Method::del, path, "", foreign).status, 404) << path;
  }
  EXPECT_EQ(ask(Method::put, "/v1/displays/d-1", "{}", foreign).status, 404);
  EXPECT_EQ(ask(Method::put, "/v1/displays/d-1", R"({"tenant_id":"t-1"})", foreign).status, 404);
  EXPECT_EQ(put("/v1/displays/d-1", R"({"tenant_id":"t-2"})").status, 404) << "a display stays its tenant's";
  EXPECT_EQ(code_of(ask(Method::post, "/v1/displays", R"({"display_id":"d-1"})", foreign)), "display_exists");
  EXPECT_EQ(code_of(ask(Method::post, "/v1/models", R"({"model_id":7,"name":"x"})", foreign)), "model_exists");
  json::object own = body_of(ask(Method::post, "/v1/models", R"({"name":"x"})", foreign));
  EXPECT_EQ(own.at("tenant_id").as_string(), "t-2") << "the token's tenant";
  EXPECT_EQ(own.at("model_id"), 8);
  EXPECT_EQ(code_of(ask(Method::post, "/v1/displays", R"({"display_id":"e","camera_uuid":"c-1"})", foreign)),
            "camera_not_found");
  std::string ad_hoc = R"({"subscription_identifier":"e;c-1","model_id":8})";
  EXPECT_EQ(code_of(ask(Method::post, "/v1/subscriptions", ad_hoc, foreign)), "camera_not_found");
}

TEST_F(DisplayRoutes, WrongBodies_AreRefusedWithTheirField) {
  furnish();
  struct Row {
    const char *path, *body, *field;
  };
  for (const Row& row :
       {Row{"/v1/displays", R"({"tenant_id":"t-1"})", "display_id"},
        Row{"/v1/displays", R"({"display_id":"a;b","tenant_id":"t-1"})", "display_id"},
        Row{"/v1/displays", R"({"display_id":"x"})", "tenant_id"},
        Row{"/v1/displays", R"({"display_id":"x","tenant_id":"t-1","camera_uuid":7})", "camera_uuid"},
        Row{"/v1/displays", R"({"display_id":"x","tenant_id":"t-1","colour":"blue"})", "colour"},
        Row{"/v1/playlists", R"({"playlist_id":"x","tenant_id":"t-1"})", "model_id"},
        Row{"/v1/playlists", R"({"playlist_id":"x","tenant_id":"t-1","model_id":0})", "model_id"},
        Row{"/v1/models", R"({"tenant_id":"t-1","name":""})", "name"},
        Row{"/v1/models", R"({"tenant_id":"t-1","name":"x","model_id":2147483648})", "model_id"},
        Row{"/v1/models", R"({"tenant_id":"t-1","name":"x","metadata":[]})", "metadata"},
        Row{"/v1/subscriptions", R"({"subscription_identifier":"no-semicolon","model_id":7})",
            "subscription_identifier"},
        Row{"/v1/subscriptions", R"({"subscription_identifier":";c-1","model_id":7})", "subscription_identifier"},
        Row{"/v1/subscriptions", R"({"subscription_identifier":"x;c-1","camera_uuid":"c-2","model_id":7})",
            "camera_uuid"},
        Row{"/v1/subscriptions", R"({"subscription_identifier":"x;c-1"})", "model_id"},
        Row{"/v1/subscriptions", R"({"subscription_identifier":"x;c-1","model_id":7,"snapshot_url":"ftp://x/"})",
            "snapshot_url"},
        Row{"/v1/subscriptions",
            R"({"subscription_identifier":"x;c-1","model_id":7,"snapshot_url":"http://127.0.0.1/"})", "snapshot_url"},
        Row{"/v1/subscriptions", R"({"subscription_identifier":"x;c-1","model_id":7,"snapshot_interval_ms":1})",
            "snapshot_interval_ms"},
        Row{"/v1/subscriptions", R"({"subscription_identifier":"x;c-1","model_id":7,"crop_x1":1})", "crop_x1"},
        Row{"/v1/subscriptions",
            R"({"subscription_identifier":"x;c-1","model_id":7,"crop_x1":9,"crop_y1":1,"crop_x2":5,"crop_y2":5})",
            "crop_x1"}}) {
    net::Response response = post(row.path, row.body);
    EXPECT_EQ(response.status, 400) << row.body;
    EXPECT_EQ(field_of(response), row.field) << response.body;
  }
  std::string heavy =
      fmt::format(R"({{"tenant_id":"t-1","name":"x","metadata":{{"a":"{}"}}}})", std::string(20'000, 'a'));
  EXPECT_EQ(field_of(post("/v1/models", heavy)), "metadata");
  EXPECT_EQ(field_of(put("/v1/displays/d-1", R"({"display_id":"d-2"})")), "display_id");
  EXPECT_EQ(field_of(put("/v1/models/7", R"({"model_id":8,"name":"x"})")), "model_id");
  EXPECT_EQ(field_of(put("/v1/models/none", R"({"name":"x"})")), "model_id");
  EXPECT_EQ(code_of(post("/v1/playlists", R"({"playlist_id":"x","tenant_id":"t-1","model_id":9})")), "model_not_found");
  EXPECT_EQ(code_of(post("/v1/displays", R"({"display_id":"x","tenant_id":"t-9"})")), "tenant_not_found");
}

TEST_F(DisplayRoutes, WhatIsNamed_IsNotRemoved) {
  furnish();
  net::Response refused = del("/v1/models/7");
  EXPECT_EQ(refused.status, 409);
  EXPECT_EQ(code_of(refused), "model_in_use");
  EXPECT_NE(refused.body.find("playlist p-1"), std::string::npos) << refused.body;
  EXPECT_EQ(code_of(del("/v1/playlists/p-1")), "playlist_in_use");
  EXPECT_EQ(del("/v1/displays/d-1").status, 200);
  EXPECT_EQ(del("/v1/playlists/p-1").status, 200);
  EXPECT_EQ(body_of(del("/v1/models/7")).at("model_id"), 7);
  EXPECT_EQ(code_of(del("/v1/models/7")), "model_not_found");
}

TEST_F(DisplayRoutes, AModelThatIsReplaced_IsShownWithItsFile) {
  furnish();
  fake_.rows().models[7].file = ModelFile{"yolo.onnx", "abc", 12};
  json::object shown = get("/v1/models/7");
  EXPECT_EQ(shown.at("kind").as_string(), "cluster");
  EXPECT_EQ(shown.at("file").at("sha256").as_string(), "abc");
  shown["name"] = "other";
  net::Response changed = put("/v1/models/7", json::to_text(shown));
  ASSERT_EQ(changed.status, 200) << changed.body;
  EXPECT_EQ(get("/v1/models/7").at("name").as_string(), "other");
  EXPECT_EQ(get("/v1/models/7").at("file").at("bytes"), 12);
}

TEST_F(DisplayRoutes, Models_AreOneListOfTwoKinds) {
  furnish();
  created("/v1/models", R"({"tenant_id":"t-2","name":"second"})");
  std::string body = R"({"runner_id":"b-1","models":[{"detector":"tflite","name":"a","default":true,"labels":["car"]},
                         {"detector":"hog","labels":["person"]}]})";
  ASSERT_EQ(ask(Method::post, "/v1/runners/register", body, runner_).status, 200);
  json::array all = get("/v1/models").at("items").as_array();
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[0].at("kind").as_string(), "runner");
  EXPECT_EQ(all[0].at("detector").as_string(), "hog");
  EXPECT_EQ(all[2].at("model_id"), 7);
  EXPECT_EQ(get("/v1/models?kind=runner").at("items").as_array().size(), 2u);
  EXPECT_EQ(get("/v1/models?kind=cluster").at("items").as_array().size(), 2u);
  EXPECT_EQ(code_of(ask(Method::get, "/v1/models?kind=tree", "", admin_)), "bad_field");
  EXPECT_EQ(body_of(ask(Method::get, "/v1/models", "", token(Role::viewer, "v", "t-2"))).at("items").as_array().size(),
            3u);
  json::array one_by_one;
  std::string cursor;
  for (int page = 0; page < 4; ++page) {
    json::object got = get("/v1/models?limit=1&cursor=" + cursor);
    ASSERT_EQ(got.at("items").as_array().size(), 1u);
    one_by_one.push_back(got.at("items").at(0));
    cursor = got.at("next_cursor").is_null() ? "" : std::string(got.at("next_cursor").as_string());
  }
  EXPECT_EQ(one_by_one, all);
  EXPECT_TRUE(cursor.empty());
}

TEST_F(DisplayRoutes, ASubscription_IsMadeByAClustersProcess_AndItsCredentialsAreHiddenFromViewers) {
  furnish();
  (void)announced();
  std::string body = R"({"subscription_identifier":"kiosk;c-2","model_id":7,"snapshot_interval_ms":500,
                         "snapshot_url":"http://user:canary@camera.example/s.jpg"})";
  net::Response made = ask(Method::post, "/v1/subscriptions", body, runner_);
  ASSERT_EQ(made.status, 201) << made.body;
  EXPECT_EQ(body_of(made).at("display_id").as_string(), "kiosk");
  EXPECT_EQ(body_of(made).at("camera_uuid").as_string(), "c-2");
  EXPECT_EQ(body_of(made).at("tenant_id").as_string(), "t-1");
  EXPECT_EQ(ask(Method::post, "/v1/subscriptions", made.body, runner_).status, 201) << "made anew";
  net::Response seen = ask(Method::get, "/v1/subscriptions", "", viewer_);
  EXPECT_EQ(seen.status, 200);
  EXPECT_EQ(seen.body.find("canary"), std::string::npos) << seen.body;
  EXPECT_NE(ask(Method::get, "/v1/subscriptions", "", runner_).body.find("canary"), std::string::npos);
  EXPECT_EQ(ask(Method::del, "/v1/subscriptions/kiosk;c-2", "", viewer_).status, 403);
  EXPECT_EQ(ask(Method::del, "/v1/subscriptions/kiosk;c-2", "", token(Role::runner, "b", "t-2")).status, 404);
  EXPECT_EQ(ask(Method::del, "/v1/subscriptions/kiosk;c-2", "", runner_).status, 200);
  EXPECT_EQ(code_of(ask(Method::del, "/v1/subscriptions/kiosk;c-2", "", runner_)), "subscription_not_found");
  auto told = announced();
  ASSERT_EQ(told.size(), 3u);
  EXPECT_EQ(told[0].first, "subscription.created.t-1.kiosk;c-2");
  EXPECT_EQ(told[0].second.at("camera_uuid").as_string(), "c-2");
  EXPECT_EQ(told[2].first, "subscription.deleted.t-1.kiosk;c-2");
}

TEST_F(DisplayRoutes, WhatAClusterShallDo_IsAnsweredWhole_WithCredentials_InPages) {
  furnish();
  created("/v1/subscriptions", R"({"subscription_identifier":"kiosk;c-1","model_id":7,"crop_x1":1,"crop_y1":2,
                                   "crop_x2":3,"crop_y2":4})");
  std::string path = "/v1/clusters/default/desired";
  EXPECT_TRUE(get(path).at("items").as_array().empty()) << "runners take the cameras";
  give_to_cluster("c-1");
  give_to_cluster("c-2", R"(,"cluster":"second")");
  net::Response answer = ask(Method::get, path, "", runner_);
  ASSERT_EQ(answer.status, 200) << answer.body;
  json::array items = body_of(answer).at("items").as_array();
  ASSERT_EQ(items.size(), 2u);
  json::object of_display = items[0].as_object(), ad_hoc = items[1].as_object();
  EXPECT_EQ(of_display.at("subscription_identifier").as_string(), "d-1;c-1");
  EXPECT_EQ(of_display.at("display_id").as_string(), "d-1");
  EXPECT_EQ(of_display.at("rtsp_url").as_string(), "rtsp://user:canary@camera.example/1");
  EXPECT_EQ(of_display.at("model_id"), 7);
  EXPECT_EQ(of_display.at("model_name").as_string(), "yolo");
  EXPECT_TRUE(of_display.at("model_file").is_null());
  EXPECT_EQ(of_display.at("ad_hoc"), false);
  EXPECT_EQ(of_display.at("above_version"), 0);
  EXPECT_EQ(ad_hoc.at("ad_hoc"), true);
  EXPECT_EQ(ad_hoc.at("crop_x2"), 3);
  json::object page = get(path + "?limit=1");
  EXPECT_EQ(page.at("items").as_array().size(), 1u);
  std::string cursor(page.at("next_cursor").as_string());
  EXPECT_EQ(get(path + "?limit=1&cursor=" + cursor).at("items").at(0), items[1]);
  EXPECT_TRUE(get("/v1/clusters/second/desired").at("items").as_array().empty());
  EXPECT_EQ(ask(Method::get, path, "", viewer_).status, 403);
  std::string foreign = token(Role::runner, "b", "t-2");
  EXPECT_TRUE(body_of(ask(Method::get, path, "", foreign)).at("items").as_array().empty());
}

TEST_F(DisplayRoutes, AClustersLease_ServesAllTenants_UnlessItsTokenOrItsFirstAcquireNamesOne) {
  auto acquire = [&](const std::string& cluster, const std::string& credential, const std::string& more = "") {
    return ask(Method::post, "/v1/leases/cluster/acquire",
               fmt::format(R"({{"runner_id":"b-1","boot_id":"b","ttl_seconds":6,"cluster":"{}"{}}})", cluster, more),
               credential);
  };
  net::Response granted = acquire("default", runner_);
  ASSERT_EQ(granted.status, 200) << granted.body;
  EXPECT_EQ(body_of(granted).at("cluster").as_string(), "default");
  EXPECT_EQ(body_of(granted).at("tenant_id").as_string(), "");
  auto told = announced();
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].first, "lease.granted._._.default");
  EXPECT_EQ(told[0].second.at("kind").as_string(), "cluster");
  EXPECT_EQ(told[0].second.at("cluster").as_string(), "default");
  std::string bound = token(Role::runner, "b-1", "t-1");
  EXPECT_EQ(code_of(acquire("default", bound)), "id_taken");
  EXPECT_EQ(body_of(acquire("own", bound)).at("tenant_id").as_string(), "t-1");
  EXPECT_EQ(acquire("other", bound, R"(,"tenant_id":"t-2")").status, 403);
  EXPECT_EQ(code_of(acquire("c-1", runner_)), "id_taken");
  EXPECT_EQ(acquire("register", runner_).status, 400);
  EXPECT_EQ(get("/v1/leases?kind=cluster").at("items").as_array().size(), 2u);
  EXPECT_EQ(get("/v1/leases/cluster/default").at("runner_id").as_string(), "b-1");
  EXPECT_EQ(get("/v1/leases/cluster/c-1", 404).at("error").at("code").as_string(), "cluster_not_found");
  EXPECT_EQ(body_of(post("/v1/leases/cluster/default/revoke", "")).at("status").as_string(), "revoked");
}

TEST_F(DisplayRoutes, ACameraThatItsClusterLoses_IsSaidToBeDisconnected) {
  give_to_cluster("c-1");
  EXPECT_EQ(get("/v1/leases/camera/c-1").at("cluster").as_string(), "default");
  (void)announced();
  ASSERT_EQ(ask(Method::patch, "/v1/cameras/c-1", R"({"enabled":false})", admin_).status, 200);
  auto told = announced();
  ASSERT_EQ(told.size(), 2u);
  EXPECT_EQ(told[0].first, "camera.updated.t-1.s-1.c-1");
  EXPECT_EQ(told[1].first, "stream.status.t-1.s-1.c-1");
  EXPECT_EQ(told[1].second.at("state").as_string(), "DISCONNECTED");
  EXPECT_EQ(told[1].second.at("reason").as_string(), "camera_disabled");
  EXPECT_FALSE(get("/v1/leases/camera/c-1").contains("cluster"));
}

}  // namespace
}  // namespace weir::control_plane

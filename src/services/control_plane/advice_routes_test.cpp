// Mistakes in a camera's configuration are accepted, and told in every answer about it until they are mended.
#include "plane_testing.hpp"

namespace weir::control_plane {
namespace {

using net::Method;
using net::Role;

class AdviceRoutes : public PlaneTest {
 protected:
  AdviceRoutes() {
    store_.up = true;
    store_.runners = {Runner{.id = RunnerId::trusted("r-old")}};  // said nothing of its models
  }

  json::object ask(Method method, const std::string& path, const std::string& body = "", int status = 200,
                   Role role = Role::admin, const std::string& tenant = "") {
    net::Response answer = respond(method, path, body, token(role, "r-1", tenant), 1s);
    EXPECT_EQ(answer.status, status) << answer.body;
    return json::parse_text(answer.body)->as_object();
  }
  // "code field" of each warning in an answer.
  static std::vector<std::string> warnings(const json::value& answer) {
    std::vector<std::string> out;
    for (const json::value& each : answer.at("warnings").as_array())
      out.push_back(fmt::format("{} {}", std::string_view(each.at("code").as_string()),
                                std::string_view(each.at("field").as_string())));
    return out;
  }
  static std::string camera(const std::string& id, const std::string& more) {
    return fmt::format(R"({{"camera_uuid":"{}","tenant_id":"t-1","site_id":"s-1","rtsp_url":"rtsp://cam/"{}}})", id,
                       more);
  }
  static std::string zone_one(const std::string& polygon) {
    return fmt::format(R"(,"zones":[{{"zone_id":1,{}}}])", polygon);
  }
  void add_runner(const std::string& models) {
    store_.on_list = [](const LeaseFilter&) { return Result<std::vector<LeaseView>>(std::vector<LeaseView>()); };
    store_.on_register = [](const Runner& runner, const std::string&) { return Result<Runner>(runner); };
    ask(Method::post, "/v1/runners/register", fmt::format(R"({{"runner_id":"r-1","models":{}}})", models), 200,
        Role::runner);
  }
  // What a worker says of a camera's stream.
  void say_streaming(const std::string& id, int width, int height) {
    start_ticker();
    pass(1s);
    StoredEvent event;
    event.sequence = ++store_.last_event.sequence;
    event.topic = event::kStatusTopic;
    event.routing_key = "stream.status.t-1.s-1." + id;
    event.payload = fmt::format(
        R"({{"camera_uuid":"{}","lease_version":5,"state":"STREAMING","width":{},"height":{}}})", id, width, height);
    store_.stored.push_back(event);
    pass(1s);
    stop_ticker();
  }

  using List = std::vector<std::string>;
  const std::string relative_ = R"("polygon":[[0.1,0.1],[0.9,0.1],[0.5,0.9]])";
  const std::string good_ = R"("polygon":[[100,100],[500,100],[500,400]])";
};

TEST_F(AdviceRoutes, AZoneInShares_IsAccepted_AndTold_UntilItIsMended) {
  json::object added = ask(Method::post, "/v1/cameras", camera("c-1", zone_one(relative_)), 201);
  EXPECT_EQ(warnings(added), List{"zone_relative zones[0].polygon"});
  EXPECT_EQ(warnings(ask(Method::get, "/v1/cameras/c-1")), List{"zone_relative zones[0].polygon"});
  EXPECT_EQ(warnings(ask(Method::get, "/v1/cameras").at("items").at(0)), List{"zone_relative zones[0].polygon"});
  json::object seen = ask(Method::get, "/v1/cameras/c-1", "", 200, Role::viewer);
  EXPECT_EQ(warnings(seen), List{"zone_relative zones[0].polygon"});
  EXPECT_EQ(warnings(ask(Method::patch, "/v1/cameras/c-1", R"({"name":"x"})")), List{"zone_relative zones[0].polygon"});

  // What was read may be sent back.
  json::object read = ask(Method::get, "/v1/cameras/c-1");
  EXPECT_EQ(warnings(ask(Method::put, "/v1/cameras/c-1", json::to_text(read))), List{"zone_relative zones[0].polygon"});
  std::string mended = fmt::format(R"({{"zones":[{{"zone_id":1,{}}}],"warnings":[]}})", good_);
  EXPECT_EQ(warnings(ask(Method::patch, "/v1/cameras/c-1", mended)), List{});
  EXPECT_EQ(warnings(ask(Method::get, "/v1/cameras/c-1")), List{});
}

TEST_F(AdviceRoutes, ZoneRoutes_TellOfTheirZone) {
  ask(Method::post, "/v1/cameras", camera("c-1", ""), 201);
  std::string zones = "/v1/cameras/c-1/zones", site = "/v1/tenants/t-1/sites/s-1/zones";
  json::object added = ask(Method::post, zones, fmt::format(R"({{"zone_id":3,{}}})", relative_), 201);
  EXPECT_EQ(warnings(added), List{"zone_relative polygon"});
  EXPECT_EQ(warnings(ask(Method::put, zones + "/3", json::to_text(added))), List{"zone_relative polygon"});
  for (const std::string& path : {zones, site})
    EXPECT_EQ(warnings(ask(Method::get, path).at("items").at(0)), List{"zone_relative polygon"}) << path;
  EXPECT_EQ(warnings(ask(Method::get, zones + "/3")), List{"zone_relative polygon"});
  EXPECT_EQ(warnings(ask(Method::put, zones + "/3", fmt::format("{{{}}}", good_))), List{});
}

TEST_F(AdviceRoutes, ALabelThatNoModelHas_IsTold_OnceARunnerHasSaidWhatItsModelsKnow) {
  ask(Method::post, "/v1/cameras", camera("c-1", R"(,"allow_labels":["person","persn"])"), 201);
  EXPECT_EQ(warnings(ask(Method::get, "/v1/cameras/c-1")), List{}) << "unknown is not wrong";
  add_runner(R"([{"detector":"tflite","name":"a","default":true,"labels":["person","car"]}])");
  json::object told = ask(Method::get, "/v1/cameras/c-1");
  ASSERT_EQ(warnings(told), List{"label_unknown allow_labels[1]"});
  EXPECT_NE(told.at("warnings").at(0).at("message").as_string().find("did you mean \"person\"?"), std::string::npos);
  EXPECT_FALSE(ask(Method::get, "/v1/cameras/c-1", "", 200, Role::runner).contains("warnings")) << "cannot mend it";
  EXPECT_EQ(warnings(ask(Method::patch, "/v1/cameras/c-1", R"({"allow_labels":["person"]})")), List{});
}

TEST_F(AdviceRoutes, RunnersThatRegisteredElsewhere_AreFoundInTheStore) {
  Runner other{.id = RunnerId::trusted("r-2")};
  other.models = {{"tflite", "a", true, {"person"}}};
  ask(Method::post, "/v1/cameras", camera("c-1", R"(,"allow_labels":["dog"])"), 201);
  store_.runners = {other};
  clock_.run(clock_.now() + 10s);
  EXPECT_EQ(warnings(ask(Method::get, "/v1/cameras/c-1")), List{"label_unknown allow_labels[0]"});
}

TEST_F(AdviceRoutes, AZoneOutsideTheStreamsPicture_IsTold_OnceItStreams) {
  json::object added = ask(Method::post, "/v1/cameras", camera("c-1", zone_one(good_)), 201);
  EXPECT_EQ(warnings(added), List{});
  say_streaming("c-1", 96, 64);
  EXPECT_EQ(warnings(ask(Method::get, "/v1/cameras/c-1")), List{"zone_outside zones[0].polygon"});
  ask(Method::patch, "/v1/cameras/c-1", R"({"frame_size":{"width":1280,"height":720}})");
  EXPECT_EQ(warnings(ask(Method::get, "/v1/cameras/c-1")), List{}) << "drawn for that size";
}

TEST_F(AdviceRoutes, Models_AreListedWithTheirLabels) {
  EXPECT_TRUE(ask(Method::get, "/v1/models").at("items").as_array().empty());
  add_runner(R"([{"detector":"tflite","name":"a","default":true,"labels":["person","car"]},
                 {"detector":"hog","labels":["person"]}])");
  json::array items = ask(Method::get, "/v1/models", "", 200, Role::viewer, "t-1").at("items").as_array();
  ASSERT_EQ(items.size(), 2u);
  EXPECT_EQ(items[1].at("name"), "a");
  EXPECT_EQ(items[1].at("labels").as_array().size(), 2u);
  EXPECT_EQ(items[1].at("runners"), 1);
}

TEST_F(AdviceRoutes, ARegistration_WithUnfitModels_IsRefused) {
  for (const char* models : {R"([{"name":"no detector"}])", R"([{"detector":"tflite","labels":[""]}])",
                             R"([{"detector":"tflite","labels":["line\nbreak"]}])", R"("x")"})
    ask(Method::post, "/v1/runners/register", fmt::format(R"({{"runner_id":"r-1","models":{}}})", models), 400);
}

}  // namespace
}  // namespace weir::control_plane

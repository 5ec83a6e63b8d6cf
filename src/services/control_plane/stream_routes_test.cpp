// Published streams over HTTP: who sees and wishes what, how orders travel, and whose word counts.
#include "plane_testing.hpp"

namespace weir::control_plane {
namespace {

using net::Method;
using net::Role;

class StreamRoutes : public PlaneTest {
 protected:
  StreamRoutes() {
    store_.up = true;
    start_ticker();
  }
  ~StreamRoutes() override { stop_ticker(); }
  net::Response ask(Method method, std::string path, std::string body, const std::string& credential) {
    return respond(method, std::move(path), std::move(body), credential, 1s);
  }
  net::Response put(const std::string& id, std::string body) {
    return ask(Method::put, "/v1/streams/" + id, std::move(body), token(Role::admin));
  }
  StreamRecord& holder(const std::string& id, const std::string& runner) {
    StreamRecord& record = store_.streams[SubjectId::trusted(id)];
    record.holder = RunnerId::trusted(runner);
    return record;
  }
  // The payloads of what was announced since the last call, and the keys that they went to.
  std::vector<std::pair<std::string, json::object>> announced() {
    std::vector<std::pair<std::string, json::object>> out;
    for (const auto& step : std::exchange(store_.announced, {}))
      for (const event::Event& each : step)
        out.emplace_back(each.routing_key, json::parse_text(each.payload)->as_object());
    return out;
  }
  static std::string field_of(const net::Response& response) {
    const json::object error = body_of(response).at("error").as_object();
    const json::object* details = error.at("details").if_object();
    return details != nullptr && details->contains("field") ? std::string(details->at("field").as_string()) : "";
  }
};

constexpr const char* kWishes = R"({"forward":true,"destination":"rtmp://host/app/canary","mode":"annotate","max_fps":5,
    "preferences":{"lang":"es"},"tenant_id":"t-1","site_id":"s-1"})";

TEST_F(StreamRoutes, Wishes_AreKept_Announced_AndTheKeyIsShownToThoseWhoForward) {
  net::Response answer = put("live", kWishes);
  ASSERT_EQ(answer.status, 200) << answer.body;
  json::object said = body_of(answer);
  EXPECT_EQ(said.at("state").as_string(), "idle");
  EXPECT_TRUE(said.at("holder").is_null());
  EXPECT_TRUE(said.at("told_at").is_null());
  EXPECT_EQ(said.at("tenant_id").as_string(), "t-1");
  EXPECT_EQ(said.at("site_id").as_string(), "s-1");
  EXPECT_EQ(said.at("wishes").at("destination").as_string(), "rtmp://host/app/canary");
  auto told = announced();
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].first, "publication.ordered.t-1.s-1.live");
  EXPECT_EQ(told[0].second.at("order").as_string(), "wishes");
  EXPECT_FALSE(told[0].second.contains("runner_id")) << "nobody holds it";
  EXPECT_EQ(json::to_text(told[0].second).find("canary"), std::string::npos);
  for (const char* path : {"/v1/streams", "/v1/streams/live"}) {
    EXPECT_NE(ask(Method::get, path, "", token(Role::runner)).body.find("canary"), std::string::npos) << path;
    net::Response seen = ask(Method::get, path, "", token(Role::viewer));
    EXPECT_EQ(seen.status, 200);
    EXPECT_EQ(seen.body.find("canary"), std::string::npos) << path;
    EXPECT_NE(seen.body.find("rtmp://host/app/***"), std::string::npos) << seen.body;
  }
}

TEST_F(StreamRoutes, WishesThatCannotBeRead_AreShownToNoViewer) {
  ASSERT_EQ(put("live", "{}").status, 200);
  store_.streams[SubjectId::trusted("live")].wishes = {{"target", "rtmp://host/app/canary"}};
  EXPECT_EQ(ask(Method::get, "/v1/streams/live", "", token(Role::viewer)).body.find("canary"), std::string::npos);
}

TEST_F(StreamRoutes, WrongWishes_AreRefusedWithTheirField) {
  struct Row {
    const char *body, *field;
  };
  for (const Row& row : {Row{R"({"forward":"yes"})", "forward"},
                         {R"({"destination":"http://x/y"})", "destination"},
                         {R"({"destination":"rtmp://host/app/***"})", "destination"},
                         {R"({"mode":"sideways"})", "mode"},
                         {R"({"max_fps":0})", "max_fps"},
                         {R"({"preferences":7})", "preferences"},
                         {R"({"colour":"blue"})", "colour"},
                         {R"({"tenant_id":7})", "tenant_id"},
                         {R"({"site_id":""})", "site_id"}}) {
    net::Response answer = put("live", row.body);
    EXPECT_EQ(answer.status, 400) << row.body;
    EXPECT_EQ(field_of(answer), row.field) << answer.body;
  }
  EXPECT_EQ(put("no.such", "{}").status, 400);
  EXPECT_EQ(code_of(put("no.such", "{}")), "bad_id");
  EXPECT_TRUE(store_.streams.empty());
  EXPECT_TRUE(announced().empty());
}

TEST_F(StreamRoutes, AStream_StandsWhereItWasMade_ElseUnderTheTokensTenant_ElseUnderDefault) {
  EXPECT_EQ(body_of(put("a", "{}")).at("tenant_id").as_string(), "default");
  net::Response scoped = ask(Method::put, "/v1/streams/b", "{}", token(Role::runner, "o-1", "t-2"));
  EXPECT_EQ(body_of(scoped).at("tenant_id").as_string(), "t-2");
  store_.on_show = [](const SubjectId& id) -> Result<LeaseView> {
    LeaseView view{lease::LeaseRow{id}};
    view.row.kind = lease::Kind::stream;
    view.row.tenant = TenantId::trusted("t-3");
    return view;
  };
  EXPECT_EQ(body_of(put("c", "{}")).at("tenant_id").as_string(), "t-3") << "its lease was there first";
}

TEST_F(StreamRoutes, AnotherTenantsStream_IsTaken_AndDoesNotExist) {
  ASSERT_EQ(put("live", R"({"tenant_id":"t-1"})").status, 200);
  holder("live", "o-1");
  std::string foreign = token(Role::admin, "a", "t-2");
  net::Response taken = ask(Method::put, "/v1/streams/live", "{}", foreign);
  EXPECT_EQ(taken.status, 409);
  EXPECT_EQ(code_of(taken), "id_taken");
  EXPECT_EQ(ask(Method::put, "/v1/streams/live", R"({"tenant_id":"t-1"})", foreign).status, 404);
  EXPECT_EQ(ask(Method::get, "/v1/streams/live", "", foreign).status, 404);
  EXPECT_EQ(ask(Method::del, "/v1/streams/live", "", foreign).status, 404);
  for (const char* order : {"stop", "restart"})
    EXPECT_EQ(ask(Method::post, fmt::format("/v1/streams/live/{}", order), "", foreign).status, 404);
  EXPECT_EQ(ask(Method::post, "/v1/streams/live/forward", R"({"on":true})", foreign).status, 404);
  EXPECT_TRUE(body_of(ask(Method::get, "/v1/streams", "", foreign)).at("items").as_array().empty());
}

TEST_F(StreamRoutes, AnAnswer_IsWhatItsHolderTold_AndMemoryIsForOrchestratorsAlone) {
  ASSERT_EQ(put("live", kWishes).status, 200);
  StreamRecord& record = holder("live", "o-1");
  record.view = {{"state", "running"}, {"run_id", "r7"}, {"worker", {{"state", "running"}}}, {"stream_id", "wrong"}};
  record.memory = {{"source", "canary"}};
  record.told_at = clock_.wall();
  json::object seen = body_of(ask(Method::get, "/v1/streams/live", "", token(Role::admin)));
  EXPECT_EQ(seen.at("stream_id").as_string(), "live");
  EXPECT_EQ(seen.at("state").as_string(), "running");
  EXPECT_EQ(seen.at("run_id").as_string(), "r7");
  EXPECT_EQ(seen.at("holder").as_string(), "o-1");
  EXPECT_TRUE(seen.at("told_at").is_string());
  EXPECT_FALSE(seen.contains("memory"));
  EXPECT_EQ(body_of(ask(Method::get, "/v1/streams/live", "", token(Role::runner))).at("memory"), record.memory);

  record.holder = {};
  seen = body_of(ask(Method::get, "/v1/streams/live", "", token(Role::admin)));
  EXPECT_EQ(seen.at("state").as_string(), "unattended") << "its holder fell silent";
  EXPECT_FALSE(seen.contains("worker")) << "what it said of its worker is true no more";
  record.view["state"] = "idle";
  seen = body_of(ask(Method::get, "/v1/streams/live", "", token(Role::admin)));
  EXPECT_EQ(seen.at("state").as_string(), "idle") << "as its last holder said before it released the lease";
  record.view["stopped_by_operator"] = true;
  seen = body_of(ask(Method::get, "/v1/streams/live", "", token(Role::admin)));
  EXPECT_EQ(seen.at("state").as_string(), "stopped");
}

TEST_F(StreamRoutes, Lists_ComeInPages) {
  for (const char* id : {"a", "b", "c"}) ASSERT_EQ(put(id, "{}").status, 200);
  json::object page = body_of(ask(Method::get, "/v1/streams?limit=2", "", token(Role::viewer)));
  ASSERT_EQ(page.at("items").as_array().size(), 2u);
  std::string cursor(page.at("next_cursor").as_string());
  json::object rest = body_of(ask(Method::get, "/v1/streams?limit=2&cursor=" + cursor, "", token(Role::viewer)));
  ASSERT_EQ(rest.at("items").as_array().size(), 1u);
  EXPECT_EQ(rest.at("items").at(0).at("stream_id").as_string(), "c");
  EXPECT_TRUE(rest.at("next_cursor").is_null());
}

TEST_F(StreamRoutes, AnOrder_GoesToTheHolder_AndIsRefusedWhereNobodyHoldsTheStream) {
  std::string admin = token(Role::admin), base = "/v1/streams/live/";
  EXPECT_EQ(ask(Method::post, base + "stop", "", admin).status, 404);
  ASSERT_EQ(put("live", R"({"tenant_id":"t-1","site_id":"s-1"})").status, 200);
  (void)announced();
  for (const char* order : {"stop", "restart"}) {
    net::Response nobody = ask(Method::post, base + order, "", admin);
    EXPECT_EQ(nobody.status, 422);
    EXPECT_EQ(code_of(nobody), "stream_not_held") << nobody.body;
  }
  EXPECT_EQ(ask(Method::post, base + "forward", R"({"on":true})", admin).status, 422);
  EXPECT_TRUE(announced().empty());

  holder("live", "o-1");
  struct Row {
    const char *order, *body;
    json::value on;
  };
  for (const Row& row : {Row{"stop", "", nullptr}, {"stop", "{}", nullptr}, {"restart", "", nullptr},
                         {"forward", R"({"on":true})", true}, {"forward", R"({"on":false})", false},
                         {"forward", R"({"on":null})", nullptr}}) {
    net::Response given = ask(Method::post, base + row.order, row.body, admin);
    ASSERT_EQ(given.status, 200) << given.body;
    EXPECT_EQ(body_of(given).at("order").as_string(), row.order);
    EXPECT_EQ(body_of(given).at("holder").as_string(), "o-1");
    auto told = announced();
    ASSERT_EQ(told.size(), 1u);
    EXPECT_EQ(told[0].first, "publication.ordered.t-1.s-1.live");
    const json::object& payload = told[0].second;
    EXPECT_EQ(payload.at("type").as_string(), "publication.ordered");
    EXPECT_EQ(payload.at("stream_id").as_string(), "live");
    EXPECT_EQ(payload.at("runner_id").as_string(), "o-1");
    EXPECT_EQ(payload.at("order").as_string(), row.order);
    EXPECT_EQ(payload.contains("on"), std::string_view(row.order) == "forward");
    if (payload.contains("on")) {
      EXPECT_EQ(payload.at("on"), row.on);
    }
  }
  for (const char* body : {"", "{}", R"({"on":"yes"})", R"({"on":1})"})
    EXPECT_EQ(ask(Method::post, base + "forward", body, admin).status, 400) << body;
}

TEST_F(StreamRoutes, ARestartOfWhatAnOperatorStopped_IsToldToEveryOrchestrator) {
  ASSERT_EQ(put("live", "{}").status, 200);
  (void)announced();
  store_.streams[SubjectId::trusted("live")].view = {{"state", "stopping"}, {"stopped_by_operator", true}};
  net::Response given = ask(Method::post, "/v1/streams/live/restart", "", token(Role::admin));
  ASSERT_EQ(given.status, 200) << given.body;
  EXPECT_TRUE(body_of(given).at("holder").is_null());
  auto told = announced();
  ASSERT_EQ(told.size(), 1u);
  EXPECT_FALSE(told[0].second.contains("runner_id"));
  EXPECT_EQ(ask(Method::post, "/v1/streams/live/stop", "", token(Role::admin)).status, 422);
}

TEST_F(StreamRoutes, AHeldStream_IsNotRemoved) {
  ASSERT_EQ(put("live", "{}").status, 200);
  holder("live", "o-1");
  EXPECT_EQ(ask(Method::del, "/v1/streams/live", "", token(Role::admin)).status, 422);
  holder("live", "");
  EXPECT_EQ(ask(Method::del, "/v1/streams/live", "", token(Role::admin)).status, 200);
  EXPECT_EQ(ask(Method::del, "/v1/streams/live", "", token(Role::admin)).status, 404);
}

TEST_F(StreamRoutes, OnlyTheHoldersOwnWord_IsHeard) {
  std::optional<StreamTold> heard;
  bool stale = false;
  store_.on_tell_stream = [&](const StreamTold& told) -> Result<Nothing> {
    if (stale) return stale_word();
    heard = told;
    return ok();
  };
  std::string path = "/v1/streams/live/told", own = token(Role::runner, "o-1");
  std::string body = R"({"runner_id":"o-1","boot_id":"b","version":7,"memory":{"m":1},"view":{"state":"running"}})";
  ASSERT_EQ(ask(Method::post, path, body, own).status, 200);
  EXPECT_EQ(heard->id.str(), "live");
  EXPECT_EQ(heard->by, (lease::Owner{RunnerId::trusted("o-1"), BootId::trusted("b")}));
  EXPECT_EQ(heard->version, lease::Version{7});
  EXPECT_EQ(heard->memory, (json::object{{"m", 1}}));
  EXPECT_EQ(ask(Method::post, path, body, token(Role::runner, "o-2")).status, 403);
  EXPECT_EQ(ask(Method::post, path, body, token(Role::runner, "o-1", "t-2")).status, 404) << "no such stream there";
  stale = true;
  net::Response late = ask(Method::post, path, body, own);
  EXPECT_EQ(late.status, 409);
  EXPECT_EQ(code_of(late), "stale_version");
  for (const char* wrong : {R"({"runner_id":"o-1","boot_id":"b","version":0,"memory":{},"view":{}})",
                            R"({"runner_id":"o-1","boot_id":"b","version":7,"view":{}})",
                            R"({"runner_id":"o-1","boot_id":"b","version":7,"memory":[],"view":{}})"})
    EXPECT_EQ(ask(Method::post, path, wrong, own).status, 400) << wrong;
  std::string heavy = body;
  heavy.replace(heavy.find("running"), 7, std::string(200'000, 'x'));
  EXPECT_EQ(ask(Method::post, path, heavy, own).status, 413);
}

}  // namespace
}  // namespace weir::control_plane

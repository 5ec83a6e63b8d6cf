// Every event that Weir publishes, made by the real programs, is as its schema in docs/schemas says; and every schema
// is that of an event which is published.
#include "cluster_house.hpp"
#include "stream_house.hpp"

#include <cstdlib>

namespace weir::test {
namespace {

class EventSchemas : public ClusterHouse {
 protected:
  void SetUp() override {
    std::string why = fleet_needs();
    if (why.empty()) why = stream_house_needs();
    if (why.empty() && std::system("/usr/bin/python3 -c 'import jsonschema' 2>/dev/null") != 0)
      why = "python3-jsonschema is not installed";
    if (!why.empty()) GTEST_SKIP() << why;
    ClusterHouse::SetUp();
  }
  Reply say(net::Method method, const std::string& target, const json::value& body = nullptr) {
    Reply said = plane_->call(method, target, body, plane_->token("admin"));
    EXPECT_LT(said.status, 300) << target << said.text;
    return said;
  }
  void add_camera(const std::string& id, json::object more) {
    json::object body{{"camera_uuid", id},
                      {"tenant_id", "t1"},
                      {"site_id", "s1"},
                      {"rtsp_url", camsim_->url(id)},
                      {"max_fps", 5},
                      {"decode", "full"},
                      {"motion_gating", {{"enabled", false}}},
                      {"min_score", 0.05}};
    for (auto& [name, value] : more) body[name] = value;
    say(net::Method::post, "/v1/cameras", body);
  }
  // All that was published, as `weir events --json` prints it.
  std::string feed() {
    std::string path = folder_.path() + "/events", after = "0";
    for (std::ofstream file(path);;) {
      Reply page = plane_->get("/v1/events?follow=false&limit=500&after=" + after);
      if (page.status != 200) return path;
      for (const auto& item : page.body.at("items").as_array()) file << json::to_text(item) << '\n';
      after = page.field("next_cursor");
      if (page.body.at("at_end").as_bool()) return path;
    }
  }
  // What is wrong with the events, or missing among them; "" for nothing.
  std::string wrong() {
    std::string verdict = fmt::format("{}/verdict-{}", folder_.path(), ++verdicts_);
    Program check(verdict, {"/usr/bin/python3", WEIR_SOURCE_DIR "/tools/schemas", "--all", feed()});
    return check.wait() == 0 ? "" : check.log();
  }
  std::vector<std::string> of_plane(std::vector<std::string> flags) const {
    flags.insert(flags.end(),
                 {"--control-plane-url", plane_->url(), "--auth-secret-file", folder_.path() + "/auth.secret"});
    return flags;
  }

  std::unique_ptr<Camsim> camsim_;
  std::unique_ptr<StreamHouse> house_;
  int verdicts_ = 0;
};

TEST_F(EventSchemas, EveryEvent_IsAsItsSchemaSays_AndEverySchemaHasItsEvent) {
  using net::Method;
  const std::string people = "fps=10,keyframe_s=1,seconds=20";
  camsim_ = std::make_unique<Camsim>(folder_, std::vector<std::string>{people, people, people});
  json::array everywhere{json::array{0, 0}, json::array{760, 0}, json::array{760, 570}, json::array{0, 570}};
  add_camera("cam-1",
             {{"zones", json::array{json::object{{"zone_id", 1}, {"kind", "include"}, {"polygon", everywhere}}}}});
  add_camera("cam-2", {{"model", {{"detector", "tflite"}, {"name", "nowhere"}}}});
  add_camera("cam-3", {});
  camsim_->fault("cam-3", {{"kind", "not_found"}});
  Runner runner(WEIR_BINARY, "r1", folder_.path() + "/r1",
                of_plane({"--models-dir", part("models"), "--library-dir", part("lib"), "--prom-manager-port", "0",
                          "--prom-worker-port", "0", "--cpu-high-pct", "100", "--mem-high-pct", "100",
                          "--status-summary-interval-s", "1"}));
  house_ = std::make_unique<StreamHouse>(StreamHouseOptions{
      .streams = "demo: {mode: passthrough}\n",
      .flags = of_plane({"--orchestrator-id", "o1", "--orchestrator-tenant", "t1", "--orchestrator-site", "s1"}),
      .secret = folder_.path() + "/auth.secret"});
  auto publisher = house_->hub().publish("live/demo/in");
  display("d1", "cam-a");
  start("one");
  ASSERT_TRUE(eventually(60s,
                         [&] {
                           return runner.streams("cam-1") && runner.streams("cam-2") &&
                                  house_->state("demo") == "running" && !heard("cam-a").empty() &&
                                  !heard("cam-1").empty();
                         }))
      << runner.log() << house_->log() << report();

  say(Method::get, "/v1/cameras/cam-1/snapshot.jpg");
  say(Method::patch, "/v1/cameras/cam-1", {{"max_fps", 4}});
  say(Method::patch, "/v1/runners/r1", {{"cordoned", true}});
  say(Method::post, "/v1/displays", {{"display_id", "d2"}, {"tenant_id", "t1"}});
  say(Method::post, "/v1/subscriptions", {{"subscription_identifier", "kiosk;cam-b"}, {"model_id", 7}});
  say(Method::put, "/v1/streams/other", {{"tenant_id", "t1"}, {"site_id", "s1"}, {"forward", false}});
  say(Method::post, "/v1/streams/demo/forward", {{"on", false}});
  say(Method::del, "/v1/cameras/cam-3");
  // The last word of a runner that is not heard again.
  json::object last_beat{{"event_id", "beat"}, {"ts", to_iso(wall_now())}, {"type", "runner.heartbeat"}, {"runner_id", "r9"},
                         {"streams_owned", 0}, {"shards", 0}, {"cpu_pct", 0}, {"mem_mb", 0}};
  json::object beat{{"topic", "status.topic"}, {"routing_key", "runner.heartbeat.r9"}, {"event_id", "beat"},
                    {"payload", last_beat}};
  Reply taken = plane_->call(Method::post, "/v1/events/batch", {{"items", json::array{beat}}},
                             plane_->token("runner", "r9"));
  EXPECT_EQ(taken.status, 200) << taken.text;
  say(Method::post, "/v1/streams/demo/restart");
  std::string last;
  EXPECT_TRUE(eventually(60s, [&] { return (last = wrong()).empty(); })) << last;
}

}  // namespace
}  // namespace weir::test

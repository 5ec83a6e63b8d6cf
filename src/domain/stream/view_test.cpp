#include "weir/stream/view.hpp"

#include "testing.hpp"

namespace weir::stream {
namespace {

using testing::World;

json::object view(const World& world) { return write_view(world.state, world.now, WallTime(1'700'000'000s)); }
std::string at(const json::object& object, std::string_view part, std::string_view name) {
  const json::value& v = object.at(part).as_object().at(name);
  return v.is_string() ? std::string(v.get_string()) : json::to_text(v);
}

TEST(StreamView, AStreamThatRuns_ShowsItsSessionAndChildren_AndNoSecret) {
  World world = World::running();
  world.feed(PublisherReady{{"rtmpConn", "s1", Secret("user=u&pass=canary-pass")}});
  world.pass(90s);
  json::object v = view(world);
  EXPECT_EQ(v.at("stream_id").as_string(), "demo");
  EXPECT_EQ(v.at("state").as_string(), "running");
  EXPECT_EQ(v.at("since").as_string(), "2023-11-14T22:11:50.000Z");
  EXPECT_EQ(v.at("run_id").as_string(), world.state.run_id);
  EXPECT_EQ(at(v, "source", "type"), "rtmpConn");
  EXPECT_EQ(at(v, "worker", "state"), "running");
  EXPECT_EQ(at(v, "forward", "state"), "running");
  EXPECT_EQ(at(v, "forward", "destination"), "rtmp://dest.example/app/***");
  EXPECT_TRUE(v.at("degraded").is_null());
  EXPECT_EQ(json::to_text(v).find("canary"), std::string::npos);
}

TEST(StreamView, WhyAChildDoesNotRun_IsAWord) {
  World world;
  EXPECT_EQ(at(view(world), "worker", "state"), "off");
  EXPECT_TRUE(view(world).at("run_id").is_null());
  world.feed(SettingsChanged{testing::forwarding_settings()});
  world.ready();
  EXPECT_EQ(at(view(world), "worker", "state"), "waiting_for_lease");
  world.answer();
  EXPECT_EQ(at(view(world), "forward", "state"), "waiting_for_output");
  world.exit(Role::worker, 40);
  EXPECT_EQ(at(view(world), "worker", "state"), "backing_off");
  EXPECT_EQ(view(world).at("last_error").as_string(), "The worker ended with a transient failure (exit code 40).");
  EXPECT_NE(at(view(world), "worker", "last_exit").find("transient"), std::string::npos);
  world.live_through(1s);
  world.look("s1", true);
  world.answer();
  for (int i = 0; i < 7; ++i) {
    world.exit(Role::forwarder, 40);
    if (i < 6) world.live_through(31s);
  }
  EXPECT_EQ(at(view(world), "forward", "state"), "cooling");
  EXPECT_EQ(at(view(world), "forward", "restarts"), "6");
  EXPECT_EQ(at(view(world), "forward", "cooling_until"), "2023-11-14T22:14:20.000Z");
  world.feed(ForwardOrdered{false});
  EXPECT_EQ(at(view(world), "forward", "state"), "off");
  EXPECT_EQ(at(view(world), "forward", "enabled"), "false");
}

TEST(StreamView, ADegradedStream_SaysWhy) {
  World world = World::running(false);
  world.exit(Role::worker, 10);
  world.live_through(1s);
  world.exit(Role::worker, 10);
  json::object v = view(world);
  EXPECT_EQ(at(v, "worker", "state"), "given_up");
  EXPECT_NE(std::string(v.at("degraded").as_string()).find("configuration error"), std::string::npos);
  Settings changed;
  changed.worker.max_fps = 3;
  world.feed(SettingsChanged{changed});
  world.answer();
  EXPECT_TRUE(view(world).at("degraded").is_null()) << "its settings changed";
  changed.worker.max_fps = 4;
  world.feed(SettingsChanged{changed});
  EXPECT_EQ(at(view(world), "worker", "restart_needed"), "true");
  EXPECT_EQ(at(view(world), "worker", "max_fps"), "3");
}

}  // namespace
}  // namespace weir::stream

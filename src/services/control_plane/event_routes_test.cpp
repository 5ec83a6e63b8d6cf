#include "plane_testing.hpp"

namespace weir::control_plane {
namespace {

using net::Role;

class Publishing : public PlaneTest {
 protected:
  Publishing() {
    store_.up = true;
    store_.on_append = [](const std::vector<event::Event>& events, const EventSpeaker&) {
      return std::vector<Confirmation>(events.size(), Confirmation::accepted);
    };
  }
  static json::object item(const std::string& topic, const std::string& key, json::object payload) {
    payload["event_id"] = "e";
    return {{"topic", topic}, {"routing_key", key}, {"event_id", "e"}, {"payload", std::move(payload)}};
  }
  static json::object control(const std::string& key, json::object payload = {}) {
    return item("control.topic", key, std::move(payload));
  }
  static json::object seen(const std::string& camera, const std::string& tenant, const std::string& site = "s") {
    json::object event = item("detections.topic", fmt::format("detections.{}.{}.{}", tenant, site, camera),
                              {{"camera_uuid", camera}, {"lease_version", 7}});
    event["camera_uuid"] = camera;
    event["lease_version"] = 7;
    return event;
  }
  void stand(const std::string& camera, const std::string& tenant) {
    places_[CameraId::trusted(camera)] = TenantId::trusted(tenant);
    store_.on_show = [this](const CameraId& asked) -> Result<LeaseView> {
      ++looked_;
      if (!places_.contains(asked)) return no_such("camera", "camera_uuid");
      LeaseView view;
      view.row.subject = asked;
      view.row.tenant = places_.at(asked);
      view.row.site = SiteId::trusted(site_);
      return view;
    };
  }
  // "accepted", or the code of the refusal.
  std::string publish(json::array items, Role role, const std::string& sub, const std::string& tenant = "") {
    std::string text = json::to_text(json::object{{"items", std::move(items)}});
    net::Response response =
        respond(net::Method::post, "/v1/events/batch", std::move(text), token(role, sub, tenant), 10ms);
    json::value body = *json::parse_text(response.body);
    if (response.status != 200) return std::string(body.at("error").at("code").as_string());
    return std::string(body.at("items").at(0).at("result").as_string());
  }

  std::map<CameraId, TenantId> places_;
  std::string site_ = "s";
  int looked_ = 0;
};

TEST_F(Publishing, ATenantsAdministrator_TellsNothingAboutOtherTenants) {
  auto as_red = [&](json::object event) { return publish({std::move(event)}, Role::admin, "a", "red"); };
  EXPECT_EQ(as_red(control("lease.revoked.red.s.c", {{"tenant_id", "red"}})), "accepted");
  EXPECT_EQ(as_red(control("camera.deleted.red.s.c")), "accepted");
  EXPECT_EQ(as_red(control("camera.deleted.blue.s.c")), "not_yours");
  EXPECT_EQ(as_red(control("camera.deleted.red.s.c", {{"tenant_id", "blue"}})), "not_yours");
  EXPECT_EQ(as_red(control("lease.revoked.redder.s.c")), "not_yours");
  EXPECT_EQ(as_red(control("lease.revoked.blue.s.red.s.c")), "not_yours");
  EXPECT_EQ(as_red(control("lease.revoked.red.blue.s.c")), "not_yours") << "a pattern may count from the end";
  EXPECT_EQ(as_red(control("lease.red")), "not_yours");
  EXPECT_EQ(publish({control("camera.deleted.blue.s.c", {{"tenant_id", "blue"}})}, Role::admin, "a"), "accepted");
}

TEST_F(Publishing, ARunnersHeartbeat_HasItsOwnKey) {
  auto beat = [&](const std::string& key) {
    return publish({item("status.topic", key, {{"runner_id", "r.1"}})}, Role::runner, "r.1");
  };
  EXPECT_EQ(beat("runner.heartbeat.r_1"), "accepted");
  EXPECT_EQ(beat("runner.heartbeat.victim.r_1"), "not_yours");
  EXPECT_EQ(beat("runner.heartbeat.r_2"), "not_yours");
}

TEST_F(Publishing, AnotherTenantsCamera_IsAnsweredAsOneThatDoesNotExist) {
  stand("mine", "red");
  stand("theirs", "blue");
  store_.on_append = [](const std::vector<event::Event>&, const EventSpeaker& speaker) {
    EXPECT_EQ(speaker.tenant.str(), "red");
    return std::vector<Confirmation>(1, Confirmation::stale);
  };
  auto as_red = [&](json::object event) { return publish({std::move(event)}, Role::runner, "r", "red"); };
  EXPECT_EQ(as_red(seen("none", "red")), "stale");
  EXPECT_EQ(as_red(seen("theirs", "red")), "stale");
  EXPECT_EQ(as_red(seen("theirs", "blue")), "stale") << "nor from what is remembered";
  EXPECT_EQ(as_red(seen("mine", "blue")), "bad_field");
  EXPECT_EQ(publish({seen("theirs", "red")}, Role::runner, "r"), "bad_field");
}

TEST_F(Publishing, AStreamsHolder_TellsOfItUnderItsOwnKey_AndOfWhatItShows) {
  stand("live", "red");
  auto told = [&](const std::string& key, const std::string& topic = "status.topic") {
    json::object event = item(topic, key, {{"stream_id", "live"}, {"lease_version", 7}});
    event["stream_id"] = "live";
    event["lease_version"] = 7;
    return event;
  };
  auto publish_one = [&](json::object event, Role role = Role::runner) {
    return publish({std::move(event)}, role, "o-1");
  };
  for (const char* state : {"idle", "starting", "running", "stopping", "stopped", "degraded"})
    EXPECT_EQ(publish_one(told(fmt::format("publication.{}.red.s.live", state))), "accepted") << state;
  EXPECT_EQ(publish_one(told("detections.red.s.live", "detections.topic")), "accepted");
  EXPECT_EQ(publish_one(told("publication.ordered.red.s.live")), "bad_field") << "orders are the control plane's";
  EXPECT_EQ(publish_one(told("publication.running.blue.s.live")), "bad_field");
  EXPECT_EQ(publish_one(told("publication.running.red.s.other")), "bad_field");
  EXPECT_EQ(publish_one(told("publication.running.red.s.live", "control.topic")), "bad_field");
  EXPECT_EQ(publish_one(told("publication.running.red.s.live"), Role::admin), "not_yours");
  json::object unstamped = told("publication.running.red.s.live");
  unstamped.erase("lease_version");
  EXPECT_EQ(publish_one(std::move(unstamped)), "bad_field");
  json::object nameless = told("publication.running.red.s.live");
  nameless.erase("stream_id");
  EXPECT_EQ(publish_one(std::move(nameless)), "bad_field");
}

TEST_F(Publishing, ACameraThatWasRemovedAndAddedElsewhere_IsBelievedAtOnce) {
  stand("c", "red");
  EXPECT_EQ(publish({seen("c", "red", "s")}, Role::runner, "r"), "accepted");
  site_ = "s2";
  EXPECT_EQ(publish({seen("c", "red", "s2")}, Role::runner, "r"), "accepted");
  EXPECT_EQ(looked_, 2);
  EXPECT_EQ(publish({seen("c", "red", "s")}, Role::runner, "r"), "bad_field") << "where it stood before";
}

TEST_F(Publishing, ABatch_LooksUpEachCameraOnce) {
  stand("known", "red");
  json::array items;
  stand("theirs", "blue");
  const char* const names[] = {"known", "none", "no-other", "theirs"};
  for (int i = 0; i < 300; ++i) items.push_back(seen(names[i % 4], "red"));
  EXPECT_EQ(publish(std::move(items), Role::runner, "r", "red"), "accepted");
  EXPECT_EQ(looked_, 4);
}

}  // namespace
}  // namespace weir::control_plane

#include "announcer.hpp"
#include "plane_testing.hpp"

namespace weir::control_plane {
namespace {

using lease::Outcome;
using lease::Version;
using net::Method;

// A control plane that runs, over a store that keeps what was announced.
class Announcements : public PlaneTest {
 protected:
  Announcements() {
    store_.up = true;
    store_.on_tick = [] { return TickReport{}; };
    start_ticker();
    pass(1ms);
  }
  ~Announcements() override { stop_ticker(); }

  json::object ask(Method method, const std::string& path, std::string body = "", net::Role role = net::Role::admin) {
    net::Response response = respond(method, path, std::move(body), token(role), 10ms);
    EXPECT_LT(response.status, 300) << path << response.body;
    return json::parse_text(response.body)->as_object();
  }
  // The keys of what was announced since the last look.
  std::vector<std::string> heard() {
    std::vector<std::string> keys;
    last_.clear();
    announced_.clear();
    for (const auto& step : std::exchange(store_.announced, {}))
      for (const event::Event& each : step) {
        keys.push_back(each.routing_key);
        announced_.push_back(each);
        last_.push_back(json::parse_text(each.payload)->as_object());
        EXPECT_EQ(last_.back().at("event_id").as_string(), each.event_id);
        EXPECT_TRUE(last_.back().contains("ts"));
        EXPECT_TRUE(each.routing_key.starts_with(std::string(last_.back().at("type").as_string()) + "."));
        EXPECT_EQ(each.payload.find("rtsp"), std::string::npos);
      }
    return keys;
  }
  using Keys = std::vector<std::string>;
  std::string said(size_t which, const char* field) const { return std::string(last_.at(which).at(field).as_string()); }
  // The status after a loss, fenced by the version that it says.
  void expect_disconnected(size_t which, const std::string& runner, std::int64_t version, const std::string& reason) {
    EXPECT_EQ(said(which, "type"), "stream.status");
    EXPECT_EQ(said(which, "state"), "DISCONNECTED");
    EXPECT_EQ(said(which, "runner_id"), runner);
    EXPECT_EQ(said(which, "shard_id"), "");
    EXPECT_EQ(said(which, "reason"), reason);
    EXPECT_EQ(last_.at(which).at("lease_version"), json::value(version));
    EXPECT_EQ(announced_.at(which).topic, event::kStatusTopic);
    ASSERT_TRUE(announced_.at(which).stamp);
    EXPECT_EQ(announced_.at(which).stamp->version.n, version);
    EXPECT_EQ(announced_.at(which).stamp->camera.str(), said(which, "camera_uuid"));
  }
  // The store answers every camera with `outcome`, in versions from `version` on.
  void answer(Outcome outcome, std::int64_t version, bool stolen = false, std::optional<WallTime> replayed_since = {}) {
    store_.on_apply = [=](const lease::Batch& batch) -> Result<std::vector<lease::Answer>> {
      std::vector<lease::Answer> answers;
      for (const lease::Ask& ask : batch.asks) {
        Version drawn{version + static_cast<std::int64_t>(answers.size())};
        lease::Answer& each = answers.emplace_back(lease::Answer{ask.subject, outcome, drawn, drawn, batch.ttl});
        each.stolen = stolen;
        each.replayed = replayed_since.has_value();
        each.acquired_at = replayed_since.value_or(WallTime{});
        if (batch.operation == lease::Operation::renew) continue;
        each.tenant = TenantId::trusted("t-1");
        each.site = SiteId::trusted("s.1");
      }
      return answers;
    };
  }
  json::object lease_batch(const std::string& operation, const std::string& extra = R"("key":"k")") {
    return ask(Method::post, fmt::format("/v1/leases/camera/{}-batch", operation),
               fmt::format(R"({{"runner_id":"r-1","boot_id":"b-1","ttl_seconds":6,"items":[
                 {{"camera_uuid":"c-1",{0}}},{{"camera_uuid":"c-2",{0}}}]}})",
                           extra),
               net::Role::runner);
  }
  static lease::LeaseRow row_of(const std::string& camera, std::int64_t version) {
    lease::LeaseRow row{CameraId::trusted(camera), TenantId::trusted("t-1"), SiteId::trusted("s-1")};
    row.owner = {RunnerId::trusted("r-9"), BootId::trusted("b-9")};
    row.version = Version{version};
    return row;
  }
  void lease_is(lease::LeaseRow row) {
    store_.on_show = [row](const CameraId&) { return LeaseView{row}; };
  }

  std::vector<json::object> last_;
  std::vector<event::Event> announced_;
};

constexpr const char* kCamera =
    R"({"camera_uuid":"c-1","tenant_id":"t-1","site_id":"s-1","rtsp_url":"rtsp://admin:canary@cam/x"})";

TEST_F(Announcements, Cameras_TellThatTheyChanged_AndNothingSecret) {
  json::object created = ask(Method::post, "/v1/cameras", kCamera);
  EXPECT_EQ(heard(), Keys{"camera.created.t-1.s-1.c-1"});
  EXPECT_EQ(said(0, "camera_uuid"), "c-1");
  EXPECT_EQ(said(0, "config_version"), created.at("config_version").as_string());
  EXPECT_EQ(last_[0].at("enabled"), json::value(true));

  json::object changed = ask(Method::patch, "/v1/cameras/c-1", R"({"max_fps":3})");
  ask(Method::post, "/v1/cameras/c-1/zones", R"({"zone_id":1,"polygon":[[0,0],[9,0],[9,9]]})");
  EXPECT_EQ(heard(), (Keys{"camera.updated.t-1.s-1.c-1", "camera.updated.t-1.s-1.c-1"}));
  EXPECT_NE(changed.at("config_version"), created.at("config_version"));
  EXPECT_NE(said(1, "config_version"), said(0, "config_version"));

  ask(Method::del, "/v1/cameras/c-1");
  EXPECT_EQ(heard(), Keys{"camera.deleted.t-1.s-1.c-1"});
}

TEST_F(Announcements, ConfigVersion_StaysWhenACameraIsSwitched) {
  json::object created = ask(Method::post, "/v1/cameras", kCamera);
  json::object off = ask(Method::patch, "/v1/cameras/c-1", R"({"enabled":false})");
  EXPECT_EQ(off.at("config_version"), created.at("config_version"));
  // A client may send back the fields that an answer holds besides the configuration.
  EXPECT_EQ(ask(Method::put, "/v1/cameras/c-1", json::to_text(off)).at("config_version"), off.at("config_version"));
  heard();
  EXPECT_EQ(last_[1].at("enabled"), json::value(false));
}

TEST_F(Announcements, CameraThatMayNoLongerBeLeased_TellsItsHolder) {
  ask(Method::post, "/v1/cameras", kCamera);
  lease::LeaseRow taken = row_of("c-1", 77);
  taken.revoked = taken.released = true;
  lease_is(taken);
  ask(Method::patch, "/v1/cameras/c-1", R"({"name":"Gate"})");
  heard();
  ask(Method::patch, "/v1/cameras/c-1", R"({"enabled":false})");
  EXPECT_EQ(heard(), (Keys{"camera.updated.t-1.s-1.c-1", "lease.revoked.t-1.s-1.c-1", "stream.status.t-1.s-1.c-1"}));
  expect_disconnected(2, "r-9", 77, "camera_disabled");
  EXPECT_EQ(said(1, "runner_id"), "r-9");
  EXPECT_EQ(said(1, "boot_id"), "b-9");
  EXPECT_EQ(said(1, "reason"), "camera_disabled");
  EXPECT_EQ(last_[1].at("version"), json::value(77));
  std::string id = said(1, "event_id");
  std::string status = said(2, "event_id");
  ask(Method::patch, "/v1/cameras/c-1", R"({"name":"still off"})");
  EXPECT_EQ(heard().size(), 3u);
  EXPECT_EQ(said(1, "event_id"), id);  // the log has it already
  EXPECT_EQ(said(2, "event_id"), status);

  lease_is(row_of("c-1", 78));  // nobody was revoked
  ask(Method::del, "/v1/cameras/c-1");
  EXPECT_EQ(heard(), Keys{"camera.deleted.t-1.s-1.c-1"});
  lease_is(taken);
  ask(Method::del, "/v1/cameras/c-1");
  EXPECT_EQ(heard().size(), 3u);
  expect_disconnected(2, "r-9", 77, "camera_deleted");
}

TEST_F(Announcements, Revocation_TellsTheHolder_UnlessNobodyHeldIt) {
  lease::LeaseRow row = row_of("c-1", 5);
  lease_is(row);
  ask(Method::post, "/v1/leases/camera/c-1/revoke");
  EXPECT_TRUE(heard().empty());
  row.revoked = row.released = true;
  lease_is(row);
  ask(Method::post, "/v1/leases/camera/c-1/revoke");
  EXPECT_EQ(heard(), (Keys{"lease.revoked.t-1.s-1.c-1", "stream.status.t-1.s-1.c-1"}));
  EXPECT_EQ(said(0, "reason"), "operator");
  expect_disconnected(1, "r-9", 5, "operator");
}

TEST_F(Announcements, BatchOfGrants_IsOneStep) {
  answer(Outcome::granted, 10);
  lease_batch("acquire");
  ASSERT_EQ(store_.announced.size(), 1u);
  EXPECT_EQ(store_.announced[0][0].tenant.str(), "t-1");
  EXPECT_EQ(heard(), (Keys{"lease.granted.t-1.s_1.c-1", "lease.granted.t-1.s_1.c-2"}));
  EXPECT_EQ(said(0, "runner_id"), "r-1");
  EXPECT_EQ(said(0, "boot_id"), "b-1");
  EXPECT_EQ(said(0, "site_id"), "s.1");
  EXPECT_EQ(last_[1].at("version"), json::value(11));
  EXPECT_FALSE(last_[1].contains("reason"));

  answer(Outcome::granted, 20, true);
  lease_batch("acquire");
  EXPECT_EQ(heard(), (Keys{"lease.stolen.t-1.s_1.c-1", "lease.stolen.t-1.s_1.c-2"})) << "the next owner speaks now";
  answer(Outcome::held, 20);
  lease_batch("acquire");
  EXPECT_TRUE(heard().empty());
}

TEST_F(Announcements, ReplayedGrant_IsToldUnderTheSameId_WhileTheLogRemembersTheFirst_ThenNoMore) {
  answer(Outcome::granted, 10);
  lease_batch("acquire");
  heard();
  std::string id = said(0, "event_id");
  answer(Outcome::granted, 10, false, clock_.wall() - kEventsRemembered + 1s);
  lease_batch("acquire");
  EXPECT_EQ(heard(), (Keys{"lease.granted.t-1.s_1.c-1", "lease.granted.t-1.s_1.c-2"}));
  EXPECT_EQ(said(0, "event_id"), id);
  answer(Outcome::granted, 10, false, clock_.wall() - kEventsRemembered);
  lease_batch("acquire");
  EXPECT_TRUE(heard().empty());
}

TEST_F(Announcements, Releases_AreTold_ByVersion_AndRenewalsAreNot) {
  answer(Outcome::released, 30);
  lease_batch("release", R"("version":1)");
  EXPECT_EQ(heard(), (Keys{"lease.released.t-1.s_1.c-1", "lease.released.t-1.s_1.c-2"}));
  EXPECT_NE(said(0, "event_id"), said(1, "event_id"));
  std::string id = said(0, "event_id");
  lease_batch("release", R"("version":1)");
  heard();
  EXPECT_EQ(said(0, "event_id"), id);
  for (Outcome outcome : {Outcome::renewed, Outcome::granted, Outcome::lost}) {
    answer(outcome, 40);
    lease_batch("renew", R"("version":1)");
    EXPECT_TRUE(heard().empty());
  }
}

TEST_F(Announcements, LastWill_TellsEveryCameraItLetGo) {
  store_.on_release_all = [](const lease::Owner&, const std::string&) -> Result<std::vector<lease::LeaseRow>> {
    return std::vector{row_of("c-1", 50), row_of("c-2", 51)};
  };
  json::object answered = ask(Method::post, "/v1/runners/r-9/release-all", R"({"boot_id":"b-9","will":"w"})");
  EXPECT_EQ(answered.at("released").to_number<int>(), 2);
  ASSERT_EQ(store_.announced.size(), 1u);
  EXPECT_EQ(heard(), (Keys{"lease.released.t-1.s-1.c-1", "stream.status.t-1.s-1.c-1", "lease.released.t-1.s-1.c-2",
                           "stream.status.t-1.s-1.c-2"}));
  EXPECT_EQ(said(0, "reason"), "last_will");
  expect_disconnected(3, "r-9", 51, "last_will");
}

TEST_F(Announcements, Expiries_AreTold_UnderTheVersionThatRanOut) {
  answer(Outcome::granted, 60);
  lease_batch("acquire");
  heard();
  std::string granted = said(0, "event_id");
  store_.expired = {row_of("c-1", 60)};
  clock_.run(clock_.now() + 600ms);
  EXPECT_EQ(heard(), (Keys{"lease.expired.t-1.s-1.c-1", "stream.status.t-1.s-1.c-1"}));
  EXPECT_EQ(said(0, "runner_id"), "r-9");
  EXPECT_NE(said(0, "event_id"), granted);
  expect_disconnected(1, "r-9", 60, "lease_expired");
}

TEST_F(Announcements, LeaseThatRunsOutTwice_IsToldTwice_AndEachOfTheTwoOnce) {
  lease::LeaseRow row = row_of("c-1", 60);
  auto run_out = [&](Duration at) {
    row.expires = LeaseTime(at);
    store_.expired = {row};
    clock_.run(clock_.now() + 600ms);
    EXPECT_EQ(heard(), (Keys{"lease.expired.t-1.s-1.c-1", "stream.status.t-1.s-1.c-1"}));
    return std::pair{said(0, "event_id"), said(1, "event_id")};
  };
  auto first = run_out(5s), second = run_out(9s);
  EXPECT_NE(first.first, second.first);
  EXPECT_NE(first.second, second.second);
  EXPECT_EQ(run_out(9s), second);
}

TEST_F(Announcements, OperatorsOrders_AreTold) {
  ask(Method::patch, "/v1/runners/r-7", R"({"cordoned":true})");
  EXPECT_EQ(heard(), Keys{"runner.changed.r-7"});
  EXPECT_EQ(last_[0].at("cordoned"), json::value(true));
  EXPECT_EQ(said(0, "drain_mode"), "none");
  EXPECT_TRUE(last_[0].contains("capacity_streams"));
}

TEST_F(Announcements, StoreThatIsAway_FailsNoRequest_AndIsToldLaterInOrder) {
  store_.announce_failures = 3;
  ask(Method::post, "/v1/cameras", kCamera);
  ask(Method::patch, "/v1/runners/r-7", R"({"cordoned":true})");
  EXPECT_TRUE(heard().empty());
  clock_.run(clock_.now() + 2s);
  EXPECT_EQ(heard(), (Keys{"camera.created.t-1.s-1.c-1", "runner.changed.r-7"}));
}

TEST_F(Announcements, WhatStillWaitsAtTheEnd_IsTriedOnce) {
  store_.announce_failures = 1;
  ask(Method::post, "/v1/cameras", kCamera);
  stop_ticker();
  EXPECT_EQ(heard(), Keys{"camera.created.t-1.s-1.c-1"});
}

TEST_F(Announcements, LeaseFeed_IsTheFeedWithoutTheRest) {
  for (const char* key : {"camera.created.t.s.c", "lease.granted.t.s.c", "runner.changed.r", "lease.expired.t.s.c"}) {
    auto sequence = static_cast<std::int64_t>(store_.stored.size()) + 1;
    store_.stored.push_back({{std::string(event::kControlTopic), key, {}, "{}"}, sequence});
    store_.last_event.sequence = sequence;
  }
  json::array items = ask(Method::get, "/v1/leases/events?follow=false").at("items").as_array();
  ASSERT_EQ(items.size(), 2u);
  EXPECT_EQ(items[0].at("routing_key").as_string(), "lease.granted.t.s.c");
  EXPECT_EQ(items[1].at("routing_key").as_string(), "lease.expired.t.s.c");
  EXPECT_EQ(ask(Method::get, "/v1/events?follow=false").at("items").as_array().size(), 4u);
}

TEST_F(Announcements, NobodyElse_MayUseTheirIds) {
  std::string body =
      R"({"items":[{"topic":"control.topic","routing_key":"lease.granted.a.b.c","event_id":"weir-lease-1",
    "payload":{"event_id":"weir-lease-1"}}]})";
  EXPECT_EQ(respond(Method::post, "/v1/events/batch", body, token(net::Role::admin), 10ms).status, 400);
}

TEST_F(Announcements, Crashes_AreCounted_UnderThePresentConfiguration) {
  json::object camera = ask(Method::post, "/v1/cameras", kCamera);
  EXPECT_EQ(camera.at("crashes"), json::value(0));
  LeaseView lease;
  lease.row.owner = {RunnerId::trusted("r-1"), BootId::trusted("b-2")};
  store_.on_show = [&](const CameraId&) { return lease; };
  auto crash = [&](const std::string& more) {
    return ask(Method::post, "/v1/cameras/c-1/crashes", R"({"runner_id":"r-1","boot_id":"b-1")" + more + "}",
               net::Role::runner);
  };
  EXPECT_EQ(crash("").at("crashes"), json::value(1));
  std::string version(camera.at("config_version").as_string());
  EXPECT_EQ(crash(R"(,"config_version":")" + version + "\"").at("crashes"), json::value(2));
  EXPECT_EQ(crash(R"(,"config_version":"another")").at("crashes"), json::value(2));
  lease.row.owner = {RunnerId::trusted("r-2"), BootId::trusted("b-3")};
  EXPECT_EQ(crash("").at("crashes"), json::value(2)) << "another runner's camera";
  lease.row.previous = lease::Tenure{BootId::trusted("b-2"), {}};
  EXPECT_EQ(crash("").at("crashes"), json::value(2));
  EXPECT_EQ(ask(Method::get, "/v1/cameras/c-1", "", net::Role::runner).at("crashes"), json::value(2));
  EXPECT_FALSE(ask(Method::get, "/v1/cameras/c-1", "", net::Role::viewer).contains("crashes"));
  lease.row.previous->boot = BootId::trusted("b-1");
  EXPECT_EQ(crash("").at("crashes"), json::value(3)) << "the crash cost it the lease";
  ask(Method::patch, "/v1/cameras/c-1", R"({"max_fps":3})");
  EXPECT_EQ(ask(Method::get, "/v1/cameras/c-1").at("crashes"), json::value(0));
}

TEST_F(Announcements, Heartbeats_AreAnsweredWithTheOperatorsOrders) {
  store_.on_heartbeat = [](const RunnerId&, const boost::json::object&, int) -> Result<RunnerOrders> {
    return RunnerOrders{true, DrainMode::soft, 12};
  };
  for (auto [method, path] :
       {std::pair{Method::post, "/v1/runners/heartbeat"}, {Method::put, "/v1/runners/r-1/heartbeat"}}) {
    json::object answered = ask(method, path, R"({"runner_id":"r-1"})", net::Role::runner);
    EXPECT_EQ(answered.at("cordoned"), json::value(true));
    EXPECT_EQ(answered.at("drain_mode").as_string(), "soft");
    EXPECT_EQ(answered.at("capacity_streams"), json::value(12));
  }
}

}  // namespace
}  // namespace weir::control_plane

// The lease and runner routes of docs/api.md, as a runner and an operator use them, over both stores.
#include "api_store.hpp"
#include "api_talk.hpp"

namespace weir::test {
namespace {

using net::Method;

class LeaseApi : public OverBothStores {
 protected:
  void furnish(int cameras) {
    process().furnish(cameras);
    talk_ = std::make_unique<Talk>(process(), process().token("admin"));
  }
  Talk& talk() { return *talk_; }
  Reply lease(const std::string& operation, const std::string& runner, const std::string& camera, json::object more) {
    more["runner_id"] = runner;
    more["camera_uuid"] = camera;
    return talk().post("/v1/leases/camera/" + operation, more);
  }
  Reply acquire(const std::string& runner, const std::string& camera, const std::string& boot = "b1") {
    return lease("acquire", runner, camera, {{"boot_id", boot}, {"ttl_seconds", 30}});
  }
  Reply batch(const std::string& operation, json::array items, const std::string& boot = "b1") {
    json::object body{{"runner_id", "runner-1"}, {"boot_id", boot}, {"items", std::move(items)}};
    if (operation != "release") body["ttl_seconds"] = 30;
    return talk().post(fmt::format("/v1/leases/camera/{}-batch", operation), body);
  }
  static std::string result(const Reply& reply, size_t index) {
    return index < items_of(reply).size() ? std::string(items_of(reply)[index].at("result").as_string()) : reply.text;
  }
  static std::int64_t version(const Reply& reply, size_t index) {
    return items_of(reply).at(index).at("version").as_int64();
  }

 private:
  std::unique_ptr<Talk> talk_;
};
INSTANTIATE_OVER_BOTH_STORES(LeaseApi);

TEST_P(LeaseApi, OneCamera_AcquiredRenewedReleased_WithEveryRefusal) {
  START_OR_SKIP();
  furnish(3);
  Reply granted = lease("acquire", "runner-1", "cam-1", {{"ttl_seconds", 30}, {"shard_id", "shard-3"}});
  ASSERT_EQ(granted.status, 200) << granted.text;
  for (std::string field : {"camera_uuid", "owner_id", "runner_id", "boot_id", "lease_id", "shard_id", "expires_at",
                            "version", "ttl_ms", "status", "tenant_id", "site_id", "acquired_at"})
    EXPECT_TRUE(granted.body.as_object().contains(field)) << field;
  EXPECT_EQ(granted.field("owner_id"), "runner-1");
  EXPECT_EQ(granted.field("shard_id"), "shard-3");
  EXPECT_EQ(granted.field("ttl_ms"), "30000");
  EXPECT_EQ(granted.field("status"), "active");
  EXPECT_FALSE(granted.body.as_object().contains("previous"));

  Reply again = lease("acquire", "runner-1", "cam-1", {{"ttl_seconds", 30}});
  EXPECT_EQ(again.status, 200);
  EXPECT_EQ(again.field("version"), granted.field("version"));
  Reply held = lease("acquire", "runner-2", "cam-1", {{"ttl_seconds", 30}});
  EXPECT_EQ(held.status, 409);
  EXPECT_EQ(held.code(), "lease_held");
  // Another boot of the same runner is another owner.
  EXPECT_EQ(acquire("runner-1", "cam-1", "b2").code(), "lease_held");

  json::value held_version = granted.body.at("version");
  EXPECT_EQ(lease("renew", "runner-1", "cam-1", {{"ttl_seconds", 30}}).status, 200);
  EXPECT_EQ(lease("renew", "runner-1", "cam-1", {{"ttl_seconds", 30}, {"version", held_version}}).status, 200);
  Reply lost = lease("renew", "runner-2", "cam-1", {{"ttl_seconds", 30}});
  EXPECT_EQ(lost.status, 404);
  EXPECT_EQ(lost.code(), "lease_lost");
  EXPECT_EQ(lost.body.at("error").at("details").at("camera_uuid").as_string(), "cam-1");
  EXPECT_TRUE(lost.body.at("error").at("details").at("current_version").is_int64());
  EXPECT_EQ(lease("release", "runner-2", "cam-1", {}).code(), "lease_lost");

  Reply released = lease("release", "runner-1", "cam-1", {});
  EXPECT_EQ(released.status, 200);
  EXPECT_EQ(released.field("released"), "true");
  EXPECT_EQ(lease("renew", "runner-1", "cam-1", {{"ttl_seconds", 30}}).code(), "lease_lost");
  Reply next = lease("acquire", "runner-2", "cam-1", {{"ttl_seconds", 30}});
  ASSERT_EQ(next.status, 200) << next.text;
  EXPECT_GT(next.body.at("version").as_int64(), held_version.as_int64());
  EXPECT_EQ(next.body.at("previous").at("grant_version"), held_version);

  EXPECT_EQ(acquire("runner-1", "cam-99").code(), "camera_not_found");
  EXPECT_EQ(talk().patch("/v1/cameras/cam-2", {{"enabled", false}}).status, 200);
  EXPECT_EQ(talk().get("/v1/leases/camera/cam-1").field("assignable"), "true");
  EXPECT_EQ(talk().get("/v1/leases/camera/cam-2").field("assignable"), "false");
  Reply disabled = acquire("runner-1", "cam-2");
  EXPECT_EQ(disabled.status, 422);
  EXPECT_EQ(disabled.code(), "camera_disabled");
  EXPECT_EQ(talk().patch("/v1/cameras/cam-3", {{"processing", "cluster"}}).status, 200);
  EXPECT_EQ(acquire("runner-1", "cam-3").code(), "camera_disabled");
}

TEST_P(LeaseApi, ManyCameras_AreAnsweredEach_InTheOrderAsked) {
  START_OR_SKIP();
  furnish(4);
  ASSERT_EQ(acquire("runner-9", "cam-3").status, 200);
  Reply granted = batch(
      "acquire",
      {json::object{{"camera_uuid", "cam-2"}, {"key", "k2"}}, json::object{{"camera_uuid", "cam-1"}, {"key", "k1"}},
       json::object{{"camera_uuid", "cam-3"}, {"key", "k3"}}, json::object{{"camera_uuid", "none"}, {"key", "k4"}}});
  ASSERT_EQ(granted.status, 200) << granted.text;
  ASSERT_EQ(items_of(granted).size(), 4u);
  EXPECT_EQ(items_of(granted)[0].at("camera_uuid").as_string(), "cam-2");
  EXPECT_EQ(result(granted, 0), "granted");
  EXPECT_EQ(result(granted, 1), "granted");
  EXPECT_EQ(result(granted, 2), "held");
  EXPECT_FALSE(items_of(granted)[2].at("yours").as_bool());
  EXPECT_EQ(result(granted, 3), "refused");
  EXPECT_EQ(items_of(granted)[3].at("reason").as_string(), "not_found");
  EXPECT_EQ(items_of(granted)[0].at("ttl_ms").to_number<int>(), 30000);
  // The same key again is the same grant.
  Reply replayed = batch("acquire", {json::object{{"camera_uuid", "cam-1"}, {"key", "k1"}}});
  EXPECT_EQ(version(replayed, 0), version(granted, 1));

  Reply renewed =
      batch("renew",
            {json::object{{"camera_uuid", "cam-1"}, {"version", version(granted, 1)}},
             json::object{{"camera_uuid", "cam-2"}, {"version", version(granted, 0)}, {"rotate", true}, {"key", "k5"}},
             json::object{{"camera_uuid", "cam-3"}, {"version", 1}}});
  EXPECT_EQ(result(renewed, 0), "renewed");
  EXPECT_EQ(version(renewed, 0), version(granted, 1));
  EXPECT_EQ(result(renewed, 1), "rotated");
  EXPECT_GT(version(renewed, 1), version(granted, 0));
  EXPECT_EQ(result(renewed, 2), "lost");
  EXPECT_GT(version(renewed, 2), 1);

  Reply released = batch("release", {json::object{{"camera_uuid", "cam-1"}, {"version", version(granted, 1)}},
                                     json::object{{"camera_uuid", "cam-2"}, {"version", version(renewed, 1)}}});
  EXPECT_EQ(result(released, 0), "released");
  EXPECT_EQ(result(released, 1), "released");
  EXPECT_EQ(count_of(talk().get("/v1/leases?runner_id=runner-1")), 0u);
  EXPECT_EQ(count_of(talk().get("/v1/leases")), 1u);
}

TEST_P(LeaseApi, Operator_SeesAndRevokes) {
  START_OR_SKIP();
  furnish(3);
  EXPECT_EQ(talk().get("/v1/leases/camera/cam-1").field("status"), "free");
  ASSERT_EQ(acquire("runner-1", "cam-1").status, 200);
  ASSERT_EQ(acquire("runner-2", "cam-2").status, 200);
  EXPECT_EQ(count_of(talk().get("/v1/leases")), 2u);
  Reply page = talk().get("/v1/leases?limit=1");
  EXPECT_EQ(count_of(talk().get("/v1/leases?limit=1&cursor=" + page.field("next_cursor"))), 1u);
  Reply seen = talk().get("/v1/leases/camera/cam-1");
  EXPECT_EQ(seen.field("runner_id"), "runner-1");
  EXPECT_EQ(seen.field("status"), "pending");

  Reply revoked = talk().post("/v1/leases/camera/cam-1/revoke");
  ASSERT_EQ(revoked.status, 200) << revoked.text;
  EXPECT_GT(revoked.body.at("version").as_int64(), seen.body.at("version").as_int64());
  EXPECT_EQ(lease("renew", "runner-1", "cam-1", {{"boot_id", "b1"}, {"ttl_seconds", 30}}).code(), "lease_lost");
  EXPECT_EQ(talk().get("/v1/leases/camera/cam-1").field("status"), "revoked");
  // Disabling a camera ends its lease as well.
  ASSERT_EQ(talk().patch("/v1/cameras/cam-2", {{"enabled", false}}).status, 200);
  EXPECT_EQ(lease("renew", "runner-2", "cam-2", {{"boot_id", "b1"}, {"ttl_seconds", 30}}).code(), "lease_lost");
}

TEST_P(LeaseApi, Runners_RegisterLiveAndAreSteered) {
  START_OR_SKIP();
  furnish(3);
  json::object body{
      {"runner_id", "runner-1"},           {"boot_id", "b1"}, {"host", "h1"}, {"port", 8080}, {"capacity", 40},
      {"capabilities", json::array{"gpu"}}};
  Reply known = talk().post("/v1/runners/register", body);
  ASSERT_EQ(known.status, 200) << known.text;
  EXPECT_EQ(known.field("status"), "active");
  EXPECT_EQ(known.field("heartbeat_timeout_s"), "10");
  EXPECT_EQ(known.field("assigned_cameras"), "[]");
  EXPECT_EQ(known.field("will").size(), 64u);
  ASSERT_EQ(acquire("runner-1", "cam-1").status, 200);

  EXPECT_EQ(talk().post("/v1/runners/heartbeat", {{"runner_id", "runner-1"}, {"streams_owned", 1}}).status, 200);
  EXPECT_EQ(talk().put("/v1/runners/runner-1/heartbeat", {{"cpu_pct", 12.5}}).status, 200);
  EXPECT_EQ(talk().post("/v1/runners/runner-1/heartbeat").status, 200);
  EXPECT_EQ(talk().post("/v1/runners/heartbeat", {{"runner_id", "nobody"}}).code(), "runner_not_found");
  EXPECT_EQ(talk().put("/v1/runners/runner-1/heartbeat", {{"metrics", {{"gpu", {1, 2}}}}, {"current_load", 3}}).status, 200);
  EXPECT_EQ(talk().get("/v1/runners/runner-1").body.at("metrics"), (json::value{{"gpu", {1, 2}}}));
  EXPECT_EQ(talk().get("/v1/runners/runner-1").field("streams_owned"), "3");
  EXPECT_EQ(talk().put("/v1/runners/runner-1/heartbeat", {{"metrics", {{"x", std::string(20'000, 'x')}}}}).status, 400);
  Reply shown = talk().get("/v1/runners/runner-1");
  EXPECT_EQ(shown.field("status"), "active");
  EXPECT_EQ(shown.field("leases_held"), "1");
  EXPECT_EQ(shown.field("capacity_streams"), "40");
  EXPECT_EQ(shown.text.find(known.field("will")), std::string::npos);
  EXPECT_EQ(count_of(talk().get("/v1/runners")), 1u);

  // A runner that hands its cameras over is told how many the others have room for.
  ASSERT_EQ(talk().post("/v1/runners/register", {{"runner_id", "runner-2"}, {"capacity", 10}}).status, 200);
  auto room = [&] { return talk().put("/v1/runners/runner-2/heartbeat", {{"draining", true}}).field("spare_streams"); };
  EXPECT_EQ(room(), "39");
  EXPECT_EQ(talk().put("/v1/runners/runner-2/heartbeat", {{"draining", false}}).field("spare_streams"), "");

  // Cordoned: keeps what it has, gets nothing new; the flag survives a registration.
  EXPECT_EQ(talk().patch("/v1/runners/runner-1", {{"cordoned", true}}).field("cordoned"), "true");
  Reply cordoned = acquire("runner-1", "cam-2");
  EXPECT_EQ(cordoned.status, 422);
  EXPECT_EQ(cordoned.code(), "runner_cordoned");
  EXPECT_EQ(room(), "0");
  EXPECT_EQ(lease("renew", "runner-1", "cam-1", {{"boot_id", "b1"}, {"ttl_seconds", 30}}).status, 200);
  // A boot registers once, because its will is told once.
  EXPECT_EQ(talk().post("/v1/runners/register", body).code(), "boot_known");
  body["boot_id"] = "b2";
  Reply again = talk().post("/v1/runners/register", body);
  EXPECT_EQ(again.field("cordoned"), "true");
  EXPECT_EQ(again.field("assigned_cameras"), R"(["cam-1"])");
  EXPECT_EQ(talk().patch("/v1/runners/runner-1", {{"cordoned", false}}).status, 200);
  for (std::string mode : {"soft", "hard"}) {
    EXPECT_EQ(talk().patch("/v1/runners/runner-1", {{"drain_mode", mode}}).field("drain_mode"), mode);
    EXPECT_EQ(acquire("runner-1", "cam-2").code(), "runner_cordoned") << mode;
  }
  Reply steered = talk().patch("/v1/runners/runner-1", {{"drain_mode", "none"}, {"capacity_streams", 7}});
  EXPECT_EQ(steered.field("capacity_streams"), "7");
  EXPECT_EQ(acquire("runner-1", "cam-2").status, 200);

  EXPECT_EQ(talk().del("/v1/runners/runner-1").status, 422);
  for (std::string camera : {"cam-1", "cam-2"})
    EXPECT_EQ(lease("release", "runner-1", camera, {{"boot_id", "b1"}}).status, 200);
  EXPECT_EQ(talk().del("/v1/runners/runner-1").status, 200);
  EXPECT_EQ(talk().get("/v1/runners/runner-1").code(), "runner_not_found");
}

TEST_P(LeaseApi, LastWill_ReleasesAllOfItsBoot_WithoutAToken_AndTheBootIsDead) {
  START_OR_SKIP();
  furnish(3);
  Reply known = talk().post("/v1/runners/register", {{"runner_id", "runner-1"}, {"boot_id", "b1"}});
  std::string will = known.field("will");
  for (std::string camera : {"cam-1", "cam-2"}) ASSERT_EQ(acquire("runner-1", camera).status, 200);
  ASSERT_EQ(acquire("runner-2", "cam-3").status, 200);

  Talk nobody(process(), Secret());
  const std::string target = "/v1/runners/runner-1/release-all";
  EXPECT_EQ(nobody.post(target, {{"boot_id", "b1"}, {"will", std::string(64, 'a')}}).status, 401);
  EXPECT_EQ(nobody.post(target, {{"boot_id", "b2"}, {"will", will}}).code(), "will_refused");
  EXPECT_EQ(nobody.post("/v1/runners/runner-2/release-all", {{"boot_id", "b1"}, {"will", will}}).status, 401);
  EXPECT_EQ(nobody.post(target, {{"boot_id", "b1"}}).code(), "will_missing");
  EXPECT_EQ(count_of(talk().get("/v1/leases")), 3u);

  Reply done = nobody.post(target, {{"boot_id", "b1"}, {"will", will}});
  ASSERT_EQ(done.status, 200) << done.text;
  EXPECT_EQ(done.field("released"), "2");
  EXPECT_EQ(count_of(talk().get("/v1/leases")), 1u);
  Reply late = acquire("runner-1", "cam-1");
  EXPECT_EQ(late.status, 409);
  EXPECT_EQ(late.code(), "boot_dead");
  EXPECT_EQ(acquire("runner-1", "cam-1", "b2").status, 200);
  EXPECT_EQ(process().log().find(will), std::string::npos);
}

TEST_P(LeaseApi, AvoidedCamera_IsLeftToAnother) {
  START_OR_SKIP();
  furnish(1);
  for (std::string runner : {"runner-1", "runner-2"}) {
    ASSERT_EQ(talk().post("/v1/runners/register", {{"runner_id", runner}, {"boot_id", "b1"}, {"capacity", 4}}).status,
              200);
    ASSERT_EQ(talk().post("/v1/runners/heartbeat", {{"runner_id", runner}}).status, 200);
  }
  ASSERT_EQ(acquire("runner-1", "cam-1").status, 200);
  Reply let_go = lease("release", "runner-1", "cam-1", {{"boot_id", "b1"}, {"avoid", true}});
  ASSERT_EQ(let_go.status, 200) << let_go.text;
  EXPECT_EQ(let_go.field("result"), "released");
  Reply avoided = acquire("runner-1", "cam-1");
  EXPECT_EQ(avoided.status, 409);
  EXPECT_EQ(avoided.code(), "lease_avoided");
  EXPECT_EQ(acquire("runner-2", "cam-1").status, 200);
}

}  // namespace
}  // namespace weir::test

// Leases by the ids of their tenures, and what owners say of them, over either store.
#include "api_store.hpp"
#include "api_talk.hpp"
#include "stall.hpp"

#include "weir/lease/version.hpp"
#include "weir/net/token.hpp"

namespace weir::test {
namespace {

class LeasesById : public OverBothStores {
 protected:
  Talk as(const std::string& runner, const std::string& tenant = "") {
    return Talk(process(), process().token("runner", runner, tenant));
  }
  static json::object wanted(const std::string& runner, const std::string& camera = "cam-1", double ttl = 30) {
    return {{"camera_uuid", camera}, {"runner_id", runner}, {"shard_id", "shard-1"},      {"tenant_id", "t1"},
            {"site_id", "s1"},       {"ttl_seconds", ttl},  {"config_version", "abc123"}, {"zone_version", "def456"}};
  }
  static std::string at(const std::string& id, const std::string& what) { return "/api/v1/leases/" + id + what; }
};
INSTANTIATE_OVER_BOTH_STORES(LeasesById);

TEST_P(LeasesById, ALease_IsAcquiredRenewedHeardValidatedAndReleased) {
  START_OR_SKIP();
  process().furnish(2);
  Talk runner = as("r1");
  Reply got = runner.post("/api/v1/leases/acquire/", wanted("r1"));
  ASSERT_EQ(got.status, 200) << got.text;
  EXPECT_EQ(got.field("status"), "active") << "whoever acquires is told that it has it";
  EXPECT_EQ(got.field("shard_id"), "shard-1");
  std::string id = got.field("lease_id");
  Reply seen = process().get("/v1/leases/camera/cam-1");
  EXPECT_EQ(seen.field("status"), "pending") << "nothing was heard of it yet";
  EXPECT_EQ(seen.field("lease_id"), id);
  EXPECT_EQ(seen.field("shard_id"), "shard-1");
  EXPECT_EQ(seen.field("config_version"), "abc123");
  EXPECT_EQ(seen.field("zone_version"), "def456");
  EXPECT_EQ(seen.field("last_heartbeat"), seen.field("acquired_at")) << "until there is one";
  EXPECT_TRUE(seen.body.at("renewed_at").is_null());
  EXPECT_EQ(seen.body.at("processing_stats"), json::value(json::object()));
  EXPECT_EQ(runner.get(at(id, "/validate/")).field("status"), "pending");

  Reply beat = runner.post(at(id, "/heartbeat/"), {{"processing_stats", {{"fps", 5.5}}}});
  ASSERT_EQ(beat.status, 200) << beat.text;
  EXPECT_EQ(beat.field("status"), "active");
  EXPECT_EQ(beat.body.at("processing_stats"), (json::value{{"fps", 5.5}}));
  EXPECT_GE(beat.field("last_heartbeat"), beat.field("acquired_at"));
  EXPECT_EQ(beat.field("expires_at").substr(0, 19), seen.field("expires_at").substr(0, 19)) << "it renews nothing";

  ASSERT_TRUE(eventually(10s, [&] {
    Reply renewed = runner.put(at(id, "/renew/"), nullptr);
    EXPECT_EQ(renewed.status, 200) << renewed.text;
    EXPECT_EQ(renewed.field("lease_id"), id);
    EXPECT_EQ(renewed.field("ttl_ms"), "30000") << "as long as it was";
    return !process().get("/v1/leases/camera/cam-1").body.at("renewed_at").is_null();
  }));
  EXPECT_EQ(runner.put(at(id, "/renew"), {{"ttl_seconds", 45}}).field("ttl_ms"), "45000");
  EXPECT_EQ(runner.put(at(id, "/renew"), {{"ttl_seconds", 4500}}).status, 400);
  Reply listed = runner.get("/api/v1/leases/runner/r1/");
  ASSERT_EQ(count_of(listed), 1u);
  EXPECT_EQ(items_of(listed)[0].at("lease_id").as_string(), id);
  EXPECT_EQ(items_of(listed)[0].at("processing_stats"), (json::value{{"fps", 5.5}}));
  EXPECT_EQ(items_of(listed)[0].at("config_version").as_string(), "abc123");
  Reply valid = runner.get(at(id, "/validate"));
  EXPECT_EQ(valid.body.at("valid"), json::value(true)) << valid.text;
  EXPECT_EQ(valid.field("status"), "active");

  for (int asked = 0; asked < 2; ++asked) {
    Reply released = runner.del(at(id, "/release/"));
    EXPECT_EQ(released.status, 200) << "asked again, it says so again: " << released.text;
    EXPECT_EQ(released.field("status"), "released");
  }
  Reply over = runner.put(at(id, "/renew/"), nullptr);
  EXPECT_EQ(over.status, 404) << over.text;
  EXPECT_EQ(over.code(), "lease_lost");
  EXPECT_EQ(runner.post(at(id, "/heartbeat/"), json::object{}).code(), "lease_lost");
  EXPECT_EQ(runner.get(at(id, "/validate")).body.at("valid"), json::value(false));
  EXPECT_EQ(runner.get(at(id, "/validate")).field("status"), "released");
  EXPECT_EQ(count_of(runner.get("/api/v1/leases/runner/r1/")), 0u);
}

TEST_P(LeasesById, AnIdThatSaysNoVersions_GetsThePresentOnes) {
  START_OR_SKIP();
  process().furnish(1);
  ASSERT_EQ(as("r1").post("/v1/leases/camera/acquire", wanted("r1")).status, 200);
  Talk bare = as("r2");
  json::object plain{{"camera_uuid", "cam-1"}, {"runner_id", "r2"}, {"ttl_seconds", 30}};
  EXPECT_EQ(bare.post("/v1/leases/acquire", plain).code(), "lease_held");
  ASSERT_EQ(process().post("/v1/leases/camera/cam-1/revoke", nullptr).status, 200);
  ASSERT_EQ(bare.post("/v1/leases/acquire", plain).status, 200);
  Reply camera = process().get("/v1/cameras/cam-1"), lease = process().get("/v1/leases/camera/cam-1");
  EXPECT_EQ(lease.field("config_version"), camera.field("config_version"));
  EXPECT_EQ(lease.field("zone_version"), camera.field("zone_version"));
  EXPECT_EQ(lease.field("shard_id"), "unassigned") << "what the owner before said is over";
}

// The safety of the routes by id: they ask what the others ask, with the version of the grant.
TEST_P(LeasesById, AnIdOfATenureThatIsOver_TouchesNothing) {
  START_OR_SKIP();
  process().furnish(1);
  Talk first = as("r1"), second = as("r2");
  std::string old = first.post("/v1/leases/acquire", wanted("r1")).field("lease_id");
  ASSERT_EQ(first.del(at(old, "/release")).status, 200);
  Reply taken = second.post("/v1/leases/acquire", wanted("r2"));
  ASSERT_EQ(taken.status, 200) << taken.text;
  std::string id = taken.field("lease_id");
  ASSERT_NE(id, old);
  for (Talk* who : {&first, &second}) {
    EXPECT_EQ(who->put(at(old, "/renew"), nullptr).code(), "lease_lost");
    EXPECT_EQ(who->del(at(old, "/release")).code(), "lease_lost");
    EXPECT_EQ(who->post(at(old, "/heartbeat"), {{"n", 1}}).code(), "lease_lost");
    Reply validated = who->get(at(old, "/validate"));
    EXPECT_EQ(validated.body.at("valid"), json::value(false));
    EXPECT_EQ(validated.field("status"), "expired");
  }
  EXPECT_EQ(first.put(at(id, "/renew"), nullptr).code(), "not_yours");
  EXPECT_EQ(first.del(at(id, "/release")).code(), "not_yours");
  EXPECT_EQ(first.post(at(id, "/heartbeat"), {{"n", 1}}).code(), "not_yours");
  EXPECT_EQ(first.get("/v1/leases/runner/r2").code(), "not_yours");
  Reply after = process().get("/v1/leases/camera/cam-1");
  EXPECT_EQ(after.field("version"), taken.field("version"));
  EXPECT_EQ(after.field("runner_id"), "r2");
  EXPECT_EQ(after.body.at("processing_stats"), json::value(json::object()));
}

TEST_P(LeasesById, AVersionThatARotationReplaced_IsLostUnderItsId_AndStillHeard) {
  START_OR_SKIP();
  process().furnish(1);
  Talk runner = as("r1");
  json::object batch{{"runner_id", "r1"},
                     {"boot_id", "b1"},
                     {"ttl_seconds", 30},
                     {"items", {{{"camera_uuid", "cam-1"}, {"key", "k1"}}}}};
  Reply got = runner.post("/v1/leases/camera/acquire-batch", batch);
  ASSERT_EQ(got.status, 200) << got.text;
  std::string id = process().get("/v1/leases/camera/cam-1").field("lease_id");
  EXPECT_EQ(runner.put(at(id, "/renew"), nullptr).status, 200) << "its version is the lease's";
  batch["items"] = {
      {{"camera_uuid", "cam-1"}, {"version", items_of(got)[0].at("version")}, {"rotate", true}, {"key", "k2"}}};
  Reply rotated = runner.post("/v1/leases/camera/renew-batch", batch);
  ASSERT_EQ(items_of(rotated)[0].at("result").as_string(), "rotated") << rotated.text;
  EXPECT_EQ(runner.put(at(id, "/renew"), nullptr).code(), "lease_lost");
  EXPECT_EQ(runner.del(at(id, "/release")).code(), "lease_lost");
  EXPECT_EQ(runner.post(at(id, "/heartbeat"), {{"n", 1}}).status, 200) << "the tenure goes on";
  EXPECT_EQ(process().get("/v1/leases/camera/cam-1").field("version"),
            std::to_string(items_of(rotated)[0].at("version").as_int64()));
}

TEST_P(LeasesById, AnotherTenant_AndWhatIsNoId_AreNotFound) {
  START_OR_SKIP();
  process().furnish(1);
  std::string id = as("r1").post("/v1/leases/acquire", wanted("r1")).field("lease_id");
  Talk other_tenant = as("r1", "t2"), own = as("r1");
  for (const std::string& each : {id, std::string("lease-1"), std::string("nothing"), std::string("lease-%00")}) {
    Talk& foreign = each == id ? other_tenant : own;
    EXPECT_TRUE(foreign.put(at(each, "/renew"), nullptr).status / 100 == 4) << each;
    EXPECT_TRUE(foreign.del(at(each, "/release")).status / 100 == 4) << each;
    EXPECT_TRUE(foreign.post(at(each, "/heartbeat"), json::object{}).status / 100 == 4) << each;
    EXPECT_TRUE(foreign.get(at(each, "/validate")).status / 100 == 4) << each;
  }
  EXPECT_EQ(process().get("/v1/leases/camera/cam-1").field("runner_id"), "r1");
  EXPECT_EQ(as("r1").post("/v1/leases/acquire", {{"runner_id", "r1"}}).status, 400);
  EXPECT_EQ(as("r1").post(at(id, "/heartbeat"), {{"processing_stats", "fast"}}).status, 400);
}

// A version above the row's, as an id of a store that lost commits holds it, proves the loss: no answer is "lost".
TEST_P(LeasesById, AnIdFromBeyondTheStore_IsNeverLost) {
  START_OR_SKIP();
  process().furnish(1);
  std::string id = as("r1").post("/v1/leases/acquire", wanted("r1")).field("lease_id");
  ASSERT_EQ(as("r1").del(at(id, "/release")).status, 200);
  auto beyond = lease::Version::make(1, 1'000'000);
  std::string made = "lease-" + net::base64url(fmt::format("{:x}.cam-1", beyond.n));
  EXPECT_EQ(as("r1").post(at(made, "/heartbeat"), json::object{}).code(), "lease_unknown");
  EXPECT_EQ(process().get("/v1/leases/camera/cam-1").field("status"), "released");
  EXPECT_EQ(as("r1").get(at(made, "/validate")).body.at("valid"), json::value(false));
}

}  // namespace
}  // namespace weir::test

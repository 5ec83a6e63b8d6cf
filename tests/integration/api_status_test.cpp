// What the simplest runners say of themselves and of their cameras: heartbeats without a registration, and statuses
// without versions; over both stores.
#include "api_store.hpp"
#include "api_talk.hpp"
#include "stall.hpp"

namespace weir::test {
namespace {

class SimpleRunners : public OverBothStores {
 protected:
  Talk as(const std::string& runner, const std::string& tenant = "") {
    return Talk(process(), process().token("runner", runner, tenant));
  }
  static json::object status(const std::string& camera, const std::string& state = "STREAMING") {
    return {{"type", "stream.status"}, {"camera_uuid", camera},   {"runner_id", "r1"}, {"shard_id", "shard-0"},
            {"state", state},          {"last_frame_age_s", 1.2}, {"fps", 5.8},        {"ts", "2026-08-21T11:00:00Z"}};
  }
  static json::object hold(const std::string& camera) {
    return {{"runner_id", "r1"}, {"camera_uuid", camera}, {"ttl_seconds", 30}};
  }
  static Reply tell(Talk& who, json::array items) {
    return who.post("/v1/streams/status/batch", {{"items", std::move(items)}});
  }
  static std::string results(const Reply& reply) {
    std::string out;
    for (const json::value& item : items_of(reply)) out += std::string(item.at("result").as_string()) + " ";
    return out;
  }
};
INSTANTIATE_OVER_BOTH_STORES(SimpleRunners);

TEST_P(SimpleRunners, FirstHeartbeat_RegistersARunner_ThatNamesNoBoot) {
  START_OR_SKIP();
  Talk runner = as("r1");
  Reply unknown = runner.get("/v1/runners/r1");
  EXPECT_EQ(unknown.status, 200) << "a runner may ask for its orders first: " << unknown.text;
  EXPECT_EQ(unknown.body.at("cordoned"), json::value(false));
  EXPECT_EQ(unknown.field("drain_mode"), "none");
  EXPECT_EQ(unknown.field("capacity_streams"), "40");
  EXPECT_EQ(unknown.field("status"), "silent");
  EXPECT_TRUE(unknown.body.at("registered_at").is_null());
  EXPECT_EQ(process().get("/v1/runners/r1").status, 404) << "asking makes nothing";
  EXPECT_EQ(runner.get("/v1/runners/r2").code(), "not_yours");

  json::object beat{{"type", "runner.heartbeat"},
                    {"runner_id", "r1"},
                    {"streams_owned", 37},
                    {"shards", 3},
                    {"cpu_pct", 41.2},
                    {"mem_mb", 1024},
                    {"ts", "2026-08-21T11:00:00Z"}};
  json::object of_boot = beat;
  of_boot["boot_id"] = "b1";
  EXPECT_EQ(runner.post("/v1/runners/heartbeat", of_boot).code(), "runner_not_found") << "it must register again";
  Reply first = runner.post("/v1/runners/heartbeat", beat);
  EXPECT_EQ(first.status, 200) << first.text;
  EXPECT_EQ(first.field("capacity_streams"), "40");
  Reply shown = process().get("/v1/runners/r1");
  EXPECT_EQ(shown.field("status"), "active");
  EXPECT_EQ(shown.field("streams_owned"), "37");
  ASSERT_EQ(process().call(net::Method::patch, "/v1/runners/r1", {{"cordoned", true}}, process().token("admin")).status,
            200);
  EXPECT_EQ(runner.post("/v1/runners/heartbeat", beat).body.at("cordoned"), json::value(true));
  EXPECT_EQ(process().post("/v1/runners/heartbeat", {{"runner_id", "nobody"}}).code(), "runner_not_found")
      << "only the runner itself";
  EXPECT_EQ(as("r1", "t2").post("/v1/runners/heartbeat", beat).status, 403) << "one of all tenants";
  EXPECT_EQ(as("r5", "t1").post("/v1/runners/heartbeat", {{"runner_id", "r5"}}).status, 200);
  EXPECT_EQ(as("r5", "t2").post("/v1/runners/heartbeat", {{"runner_id", "r5"}}).status, 404) << "another tenant's";
  EXPECT_EQ(process().get("/v1/runners/r5").field("tenant_id"), "t1");
}

TEST_P(SimpleRunners, Statuses_OfWhoHoldsTheCamera_AreEvents) {
  START_OR_SKIP();
  process().furnish(3);
  Talk runner = as("r1"), other = as("r2");
  Reply got = runner.post("/v1/leases/camera/acquire", hold("cam-1"));
  ASSERT_EQ(got.status, 200) << got.text;
  ASSERT_EQ(
      other.post("/v1/leases/camera/acquire", {{"runner_id", "r2"}, {"camera_uuid", "cam-2"}, {"ttl_seconds", 30}})
          .status,
      200);
  Reply told = tell(runner, {status("cam-1", "CONNECTING"), status("cam-2"), status("cam-3"), status("no-camera")});
  EXPECT_EQ(told.status, 202) << told.text;
  EXPECT_EQ(told.field("accepted"), "1");
  EXPECT_EQ(results(told), "accepted stale stale stale ");
  EXPECT_EQ(process().get("/v1/leases/camera/cam-1").field("status"), "pending") << "it only connects";
  EXPECT_EQ(results(tell(runner, {status("cam-1")})), "accepted ");
  EXPECT_TRUE(eventually(10s, [&] { return process().get("/v1/leases/camera/cam-1").field("status") == "active"; }));
  json::object failed{{"type", "stream.error"},     {"camera_uuid", "cam-1"},       {"runner_id", "r1"},
                      {"code", "RTSP_AUTH_FAILED"}, {"detail", "401 Unauthorized"}, {"retry_in_ms", 8000}};
  EXPECT_EQ(results(tell(runner, {failed})), "accepted ");

  Reply events = process().get("/v1/events?follow=false&pattern=stream.%23");
  ASSERT_EQ(count_of(events), 3u) << events.text;
  const json::object& last = items_of(events)[1].at("payload").as_object();
  EXPECT_EQ(items_of(events)[1].at("routing_key").as_string(), "stream.status.t1.s1.cam-1");
  EXPECT_EQ(last.at("state").as_string(), "STREAMING");
  EXPECT_EQ(last.at("fps"), json::value(5.8));
  EXPECT_EQ(last.at("lease_version"), got.body.at("version"));
  EXPECT_EQ(items_of(events)[2].at("routing_key").as_string(), "stream.error.t1.s1.cam-1");
}

// The fence holds for statuses as for every event.
TEST_P(SimpleRunners, Statuses_OfWhoHoldsItNoMore_OrUnderAnotherBootOrVersion_AreStale) {
  START_OR_SKIP();
  process().furnish(1);
  Talk runner = as("r1");
  Reply got = runner.post("/v1/leases/camera/acquire", hold("cam-1"));
  json::object said = status("cam-1");
  said["lease_version"] = got.body.at("version").as_int64() - 1;
  EXPECT_EQ(results(tell(runner, {said})), "stale ") << "a version that is not the lease's";
  said["lease_version"] = got.body.at("version");
  EXPECT_EQ(results(tell(runner, {said})), "accepted ");
  json::object of_boot = status("cam-1");
  of_boot["boot_id"] = "b1";
  EXPECT_EQ(results(tell(runner, {of_boot})), "stale ") << "another boot holds it";
  ASSERT_EQ(runner.post("/v1/leases/camera/release", hold("cam-1")).status, 200);
  EXPECT_EQ(results(tell(runner, {status("cam-1")})), "stale ");
  json::object batch{{"runner_id", "r1"},
                     {"boot_id", "b1"},
                     {"ttl_seconds", 30},
                     {"items", {{{"camera_uuid", "cam-1"}, {"key", "k1"}}}}};
  ASSERT_EQ(runner.post("/v1/leases/camera/acquire-batch", batch).status, 200);
  EXPECT_EQ(results(tell(runner, {of_boot})), "stale ") << "a lease with a key is spoken for under a version only";
  EXPECT_EQ(results(tell(runner, {status("cam-1")})), "stale ");
}

TEST_P(SimpleRunners, WrongStatuses_NameTheField) {
  START_OR_SKIP();
  process().furnish(1);
  Talk runner = as("r1");
  ASSERT_EQ(runner.post("/v1/leases/camera/acquire", hold("cam-1")).status, 200);
  auto with = [](std::string_view field, json::value value) {
    json::object out = status("cam-1");
    out[field] = std::move(value);
    return out;
  };
  EXPECT_EQ(wrong_field(runner.post("/v1/streams/status/batch", json::object{})), "items");
  EXPECT_EQ(wrong_field(tell(runner, {})), "items");
  EXPECT_EQ(wrong_field(tell(runner, {"x"})), "items[0]");
  EXPECT_EQ(wrong_field(tell(runner, {with("type", "stream.dance")})), "items[0].type");
  EXPECT_EQ(wrong_field(tell(runner, {with("state", "ASLEEP")})), "items[0].state");
  EXPECT_EQ(wrong_field(tell(runner, {with("camera_uuid", nullptr)})), "items[0].camera_uuid");
  EXPECT_EQ(wrong_field(tell(runner, {with("lease_version", -1)})), "items[0].lease_version");
  EXPECT_EQ(wrong_field(tell(runner, {with("runner_id", "r2")})), "items[0].payload.runner_id");
  EXPECT_EQ(wrong_field(tell(runner, {with("tenant_id", "t2")})), "items[0].payload.tenant_id");
  json::array many(1001, status("cam-1"));
  EXPECT_EQ(wrong_field(tell(runner, std::move(many))), "items");
  EXPECT_EQ(process().post("/v1/streams/status/batch", {{"items", {status("cam-1")}}}).status, 403);
}

}  // namespace
}  // namespace weir::test

// A detector cluster's way through the API, over both stores: its lease, what it shall do, and whose events are heard.
#include "api_store.hpp"
#include "api_talk.hpp"
#include "stall.hpp"

#include <algorithm>

namespace weir::test {
namespace {

class ClusterApi : public OverBothStores {
 protected:
  void furnish() {
    process().furnish(2);
    talk_ = std::make_unique<Talk>(process(), process().token("admin"));
    own_ = std::make_unique<Talk>(process(), process().token("runner", "backend-1"));
    ASSERT_EQ(talk().post("/v1/models", {{"model_id", 7}, {"tenant_id", "t1"}, {"name", "yolo"}}).status, 201);
    ASSERT_EQ(talk().post("/v1/playlists", {{"playlist_id", "p"}, {"tenant_id", "t1"}, {"model_id", 7}}).status, 201);
    json::object display{{"display_id", "d"}, {"tenant_id", "t1"}, {"camera_uuid", "cam-1"}, {"playlist_id", "p"}};
    ASSERT_EQ(talk().post("/v1/displays", display).status, 201);
  }
  Talk& talk() { return *talk_; }  // an operator
  Talk& own() { return *own_; }    // the master, backend-1
  Reply lease(const std::string& operation, json::object more = {}) {
    more["runner_id"] = "backend-1";
    more["boot_id"] = "b1";
    more["cluster"] = "default";
    more["ttl_seconds"] = 30;
    return own().post("/v1/leases/cluster/" + operation, more);
  }
  // What the control plane answers to a detection of cam-1 under this version.
  std::string publish(const json::value& version) {
    std::string id = fmt::format("e{}", ++published_);
    json::object payload{{"event_id", id}, {"camera_uuid", "cam-1"}, {"lease_version", version}};
    json::object item{{"topic", "detections.topic"}, {"routing_key", "detections.t1.s1.cam-1"}, {"event_id", id},
                      {"camera_uuid", "cam-1"}, {"lease_version", version}, {"payload", payload}};
    Reply reply = own().post("/v1/events/batch", {{"items", json::array{item}}});
    return reply.status == 200 ? std::string(items_of(reply)[0].at("result").as_string()) : reply.code();
  }
  json::value desired() {
    Reply reply = own().get("/v1/clusters/default/desired");
    EXPECT_EQ(count_of(reply), 1u) << reply.text;
    return items_of(reply)[0];
  }

 private:
  std::unique_ptr<Talk> talk_, own_;
  int published_ = 0;
};
INSTANTIATE_OVER_BOTH_STORES(ClusterApi);

TEST_P(ClusterApi, ACameraThatIsTakenFromItsRunner_IsTheMasters_OnceItsLeaseIsRotatedAboveTheCamera) {
  START_OR_SKIP();
  furnish();
  json::value old = lease("acquire").body.at("version");
  json::object of_runner{{"runner_id", "r-1"}, {"camera_uuid", "cam-1"}, {"ttl_seconds", 30}};
  ASSERT_EQ(talk().post("/v1/leases/camera/acquire", of_runner).status, 200);
  EXPECT_EQ(publish(old), "stale") << "a runner has the camera";
  ASSERT_EQ(talk().patch("/v1/cameras/cam-1", {{"processing", "cluster"}}).status, 200);
  EXPECT_EQ(publish(old), "stale");
  json::value above = desired().at("above_version");
  EXPECT_GT(above.as_int64(), old.as_int64());
  json::object rotation{{"cluster", "default"}, {"version", old}, {"rotate", true}, {"key", "k"}};
  Reply rotated = own().post("/v1/leases/cluster/renew-batch",
                             {{"runner_id", "backend-1"}, {"boot_id", "b1"}, {"ttl_seconds", 30},
                              {"items", json::array{rotation}}});
  ASSERT_EQ(rotated.status, 200) << rotated.text;
  json::value version = items_of(rotated)[0].at("version");
  EXPECT_GT(version.as_int64(), above.as_int64());
  EXPECT_EQ(publish(version), "accepted");
  EXPECT_EQ(publish(old), "stale");

  ASSERT_EQ(talk().patch("/v1/cameras/cam-1", {{"processing", "lease"}}).status, 200);
  EXPECT_EQ(publish(version), "stale");
  Reply granted = talk().post("/v1/leases/camera/acquire", of_runner);
  ASSERT_EQ(granted.status, 200) << granted.text;
  EXPECT_GT(granted.body.at("version").as_int64(), version.as_int64());
  EXPECT_EQ(count_of(own().get("/v1/clusters/default/desired")), 0u);
}

TEST_P(ClusterApi, WhatAClusterShallDo_IsAnnounced_AndReadAnewAfterEachChange) {
  START_OR_SKIP();
  furnish();
  ASSERT_EQ(talk().patch("/v1/cameras/cam-1", {{"processing", "cluster"}}).status, 200);
  EXPECT_EQ(desired().at("subscription_identifier").as_string(), "d;cam-1");
  json::object ad_hoc{{"subscription_identifier", "d;cam-1"}, {"model_id", 7}, {"snapshot_interval_ms", 500}};
  ASSERT_EQ(own().post("/v1/subscriptions", ad_hoc).status, 201);
  EXPECT_EQ(desired().at("snapshot_interval_ms").as_int64(), 500);
  EXPECT_EQ(own().del("/v1/subscriptions/d%3Bcam-1").status, 200);
  EXPECT_EQ(desired().at("ad_hoc"), false);
  EXPECT_EQ(talk().del("/v1/models/7").code(), "model_in_use");
  ASSERT_EQ(talk().del("/v1/cameras/cam-1").status, 200);
  EXPECT_TRUE(talk().get("/v1/displays/d").body.at("camera_uuid").is_null());
  std::vector<std::string> keys;
  EXPECT_TRUE(eventually(10s, [&] {
    keys.clear();
    Reply page = own().get("/v1/events?follow=false&limit=1000");
    for (const json::value& each : items_of(page)) keys.emplace_back(each.at("routing_key").as_string());
    return std::ranges::count(keys, "camera.deleted.t1.s1.cam-1") == 1;
  }));
  for (const char* key : {"model.created.t1.7", "playlist.created.t1.p", "display.created.t1.d",
                          "subscription.created.t1.d;cam-1", "subscription.deleted.t1.d;cam-1"})
    EXPECT_EQ(std::ranges::count(keys, key), 1) << key;
}

}  // namespace
}  // namespace weir::test

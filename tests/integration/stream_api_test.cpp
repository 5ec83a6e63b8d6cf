// The routes of published streams and of their leases, as an operator and an orchestrator use them, over both stores.
#include "api_store.hpp"
#include "api_talk.hpp"
#include "stall.hpp"

namespace weir::test {
namespace {

using net::Method;

class StreamApi : public OverBothStores {
 protected:
  void furnish() {
    process().furnish(1);
    talk_ = std::make_unique<Talk>(process(), process().token("admin"));
    own_ = std::make_unique<Talk>(process(), process().token("runner", "orch-1"));
  }
  Talk& talk() { return *talk_; }  // an operator
  Talk& own() { return *own_; }    // the orchestrator orch-1
  static json::object body(json::object more) {
    more["runner_id"] = "orch-1";
    more["boot_id"] = "b1";
    return more;
  }
  Reply lease(const std::string& operation, json::object more) {
    if (operation != "release") more["ttl_seconds"] = 30;
    return own().post("/v1/leases/stream/" + operation, body(std::move(more)));
  }
  Reply acquire(const std::string& id) {
    return lease("acquire", {{"stream_id", id}, {"tenant_id", "t1"}, {"site_id", "s1"}});
  }
  Reply tell(const json::value& version, const std::string& state) {
    return own().post("/v1/streams/live/told",
                      body({{"version", version}, {"memory", {{"run", "r1"}}}, {"view", {{"state", state}}}}));
  }
  // The last event under the pattern, once there is one.
  json::value newest_event(const std::string& pattern) {
    json::value found;
    EXPECT_TRUE(eventually(10s, [&] {
      Reply page = talk().get("/v1/events?follow=false&limit=1000&pattern=" + pattern);
      if (items_of(page).empty()) return false;
      found = items_of(page).back();
      return true;
    })) << pattern;
    return found;
  }

 private:
  std::unique_ptr<Talk> talk_, own_;
};
INSTANTIATE_OVER_BOTH_STORES(StreamApi);

TEST_P(StreamApi, OneStream_AcquiredRenewedReleased_WithEveryRefusal) {
  START_OR_SKIP();
  furnish();
  Reply granted = acquire("live");
  ASSERT_EQ(granted.status, 200) << granted.text;
  EXPECT_EQ(granted.field("stream_id"), "live");
  EXPECT_EQ(granted.field("tenant_id"), "t1");
  EXPECT_EQ(granted.field("site_id"), "s1");
  EXPECT_EQ(acquire("live").field("version"), granted.field("version"));
  json::object others{{"runner_id", "orch-2"}, {"boot_id", "b1"}, {"stream_id", "live"},
                      {"ttl_seconds", 30},     {"tenant_id", "t1"}, {"site_id", "s1"}};
  EXPECT_EQ(talk().post("/v1/leases/stream/acquire", others).code(), "lease_held");
  json::value version = granted.body.at("version");
  EXPECT_EQ(lease("renew", {{"stream_id", "live"}, {"version", version}}).status, 200);

  EXPECT_EQ(acquire("cam-1").status, 409);
  EXPECT_EQ(acquire("cam-1").code(), "id_taken");
  for (const char* field : {"tenant_id", "site_id", "stream_id"}) {
    json::object lacking{{"stream_id", "live"}, {"tenant_id", "t1"}, {"site_id", "s1"}};
    lacking.erase(field);
    Reply refused = lease("acquire", lacking);
    EXPECT_EQ(refused.status, 400);
    EXPECT_EQ(wrong_field(refused), field);
  }
  EXPECT_EQ(acquire("no.dots").status, 400);
  Reply as_camera = talk().post("/v1/cameras", {{"camera_uuid", "live"}, {"tenant_id", "t1"}, {"site_id", "s1"},
                                                {"rtsp_url", "rtsp://camera.example/1"}});
  EXPECT_EQ(as_camera.status, 409) << as_camera.text;

  EXPECT_EQ(talk().get("/v1/leases/stream/live").field("runner_id"), "orch-1");
  EXPECT_EQ(talk().get("/v1/leases/camera/live").status, 404);
  EXPECT_EQ(talk().get("/v1/leases/stream/cam-1").status, 404);
  EXPECT_EQ(count_of(talk().get("/v1/leases?kind=stream")), 1u);
  EXPECT_EQ(count_of(talk().get("/v1/leases")), 0u) << "no camera is held";
  EXPECT_EQ(talk().get("/v1/leases?kind=tree").status, 400);

  EXPECT_EQ(lease("release", {{"stream_id", "live"}, {"version", version}}).field("released"), "true");
  EXPECT_EQ(lease("renew", {{"stream_id", "live"}, {"version", version}}).code(), "lease_lost");
  ASSERT_EQ(acquire("live").status, 200);
  Reply revoked = talk().post("/v1/leases/stream/live/revoke");
  EXPECT_EQ(revoked.field("status"), "revoked") << revoked.text;
  EXPECT_EQ(lease("renew", {{"stream_id", "live"}}).code(), "lease_lost");
  json::value told = newest_event("lease.revoked.%23");
  EXPECT_EQ(told.at("payload").at("stream_id").as_string(), "live");
  EXPECT_EQ(told.at("payload").at("kind").as_string(), "stream");
}

TEST_P(StreamApi, ManyStreams_AreAnsweredEach_InTheOrderAsked) {
  START_OR_SKIP();
  furnish();
  Reply granted = lease("acquire-batch", {{"tenant_id", "t1"}, {"site_id", "s1"},
                                          {"items", json::array{json::object{{"stream_id", "b"}, {"key", "1"}},
                                                                json::object{{"stream_id", "cam-1"}, {"key", "2"}},
                                                                json::object{{"stream_id", "a"}, {"key", "3"}}}}});
  ASSERT_EQ(granted.status, 200) << granted.text;
  EXPECT_EQ(items_of(granted)[0].at("stream_id").as_string(), "b");
  EXPECT_EQ(items_of(granted)[0].at("result").as_string(), "granted");
  EXPECT_EQ(items_of(granted)[1].at("reason").as_string(), "taken");
  EXPECT_EQ(items_of(granted)[2].at("result").as_string(), "granted");
  json::object item{{"stream_id", "a"}, {"version", items_of(granted)[2].at("version")}};
  Reply renewed = lease("renew-batch", {{"items", json::array{item}}});
  EXPECT_EQ(items_of(renewed).at(0).at("result").as_string(), "renewed") << renewed.text;
  Reply released = own().post("/v1/leases/stream/release-batch", body({{"items", json::array{item}}}));
  EXPECT_EQ(items_of(released).at(0).at("result").as_string(), "released") << released.text;
}

TEST_P(StreamApi, Wishes_Words_AndOrders_MeetInOneRecord) {
  START_OR_SKIP();
  furnish();
  EXPECT_EQ(talk().get("/v1/streams/live").code(), "stream_not_found");
  json::object wishes{
      {"forward", true}, {"destination", "rtmp://host.example/app/canary"}, {"tenant_id", "t1"}, {"site_id", "s1"}};
  Reply put = talk().put("/v1/streams/live", wishes);
  ASSERT_EQ(put.status, 200) << put.text;
  EXPECT_EQ(put.field("state"), "idle");
  EXPECT_EQ(talk().put("/v1/streams/cam-1", json::object{{"forward", true}, {"tenant_id", "t1"}}).code(), "id_taken");
  EXPECT_EQ(talk().post("/v1/streams/live/stop").code(), "stream_not_held");
  json::value told = newest_event("publication.ordered.%23");
  EXPECT_EQ(told.at("routing_key").as_string(), "publication.ordered.t1.s1.live");
  EXPECT_EQ(told.at("payload").at("order").as_string(), "wishes");

  Reply granted = acquire("live");
  ASSERT_EQ(granted.status, 200) << granted.text;
  json::value version = granted.body.at("version");
  ASSERT_EQ(tell(version, "running").status, 200);
  EXPECT_EQ(tell(version.as_int64() + 1, "degraded").code(), "stale_version");
  Reply shown = talk().get("/v1/streams/live");
  EXPECT_EQ(shown.field("state"), "running");
  EXPECT_EQ(shown.field("holder"), "orch-1");
  EXPECT_FALSE(shown.body.as_object().contains("memory"));
  EXPECT_EQ(own().get("/v1/streams/live").body.at("memory").at("run").as_string(), "r1");
  Talk viewer(process(), process().token("viewer"));
  EXPECT_EQ(viewer.get("/v1/streams").text.find("canary"), std::string::npos);
  EXPECT_EQ(viewer.post("/v1/streams/live/stop").status, 403);
  Talk foreign(process(), process().token("admin", "a", "t2"));
  EXPECT_EQ(foreign.get("/v1/streams/live").status, 404);
  EXPECT_EQ(foreign.put("/v1/streams/live", json::object()).code(), "id_taken");

  Reply forward = talk().post("/v1/streams/live/forward", {{"on", false}});
  ASSERT_EQ(forward.status, 200) << forward.text;
  EXPECT_TRUE(eventually(10s, [&] {
    told = newest_event("publication.ordered.%23");
    return told.at("payload").at("order") == "forward";
  }));
  EXPECT_EQ(told.at("payload").at("on"), false);
  EXPECT_EQ(told.at("payload").at("runner_id").as_string(), "orch-1");
  EXPECT_EQ(talk().del("/v1/streams/live").code(), "stream_not_empty");

  ASSERT_EQ(tell(version, "idle").status, 200) << "the last word of a holder";
  lease("release", {{"stream_id", "live"}, {"version", version}});
  EXPECT_EQ(talk().get("/v1/streams/live").field("state"), "idle") << "nobody holds it";
  EXPECT_EQ(talk().del("/v1/streams/live").status, 200);
  EXPECT_EQ(count_of(talk().get("/v1/streams")), 0u);
  EXPECT_EQ(process().log().find("canary"), std::string::npos);
}

TEST_P(StreamApi, TheHoldersEvents_AreAccepted_UnderTheStreamsOwnKeyAndVersion) {
  START_OR_SKIP();
  furnish();
  json::value version = acquire("live").body.at("version");
  auto publish = [&](const std::string& id, const std::string& key, const json::value& under) {
    json::object payload{{"event_id", id}, {"stream_id", "live"}, {"lease_version", under}};
    json::object item{{"topic", "status.topic"}, {"routing_key", key}, {"event_id", id}, {"stream_id", "live"},
                      {"lease_version", under}, {"payload", payload}};
    Reply reply = own().post("/v1/events/batch", {{"items", json::array{item}}});
    return reply.status == 200 ? std::string(items_of(reply)[0].at("result").as_string()) : reply.code();
  };
  EXPECT_EQ(publish("e1", "publication.running.t1.s1.live", version), "accepted");
  EXPECT_EQ(publish("e2", "publication.running.t1.s1.live", version.as_int64() + 1), "stale");
  EXPECT_EQ(publish("e3", "publication.ordered.t1.s1.live", version), "bad_field");
  EXPECT_EQ(newest_event("publication.running.%23").at("payload").at("event_id").as_string(), "e1");
}

}  // namespace
}  // namespace weir::test

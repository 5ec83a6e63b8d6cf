// What the control plane tells by itself, heard over HTTP, over both stores.
#include "api_store.hpp"
#include "api_talk.hpp"

#include "stall.hpp"

#include <algorithm>

namespace weir::test {
namespace {

class AnnouncementsApi : public OverBothStores {
 protected:
  void furnish(int cameras) {
    process().furnish(cameras);
    admin_ = std::make_unique<Talk>(process(), process().token("admin"));
    first_ = std::make_unique<Talk>(process(), process().token("runner", "r1"));
    second_ = std::make_unique<Talk>(process(), process().token("runner", "r2"));
  }
  static json::value lease(const std::string& runner, int camera, std::int64_t version = 0) {
    json::object item{{"camera_uuid", fmt::format("cam-{}", camera)}, {"key", fmt::format("{}-{}", runner, camera)}};
    if (version != 0) item = {{"camera_uuid", fmt::format("cam-{}", camera)}, {"version", version}};
    return {{"runner_id", runner}, {"boot_id", "b-" + runner}, {"ttl_seconds", 3}, {"items", json::array{item}}};
  }
  std::int64_t acquire(Talk& who, const std::string& runner, int camera) {
    Reply reply = who.post("/v1/leases/camera/acquire-batch", lease(runner, camera));
    EXPECT_EQ(items_of(reply).at(0).at("result").as_string(), "granted") << reply.text;
    return items_of(reply).at(0).at("version").as_int64();
  }
  // Whether all these, "type of camera by runner", were told in this order, perhaps with others between them.
  bool told(const std::string& route, const std::vector<std::string>& wanted) {
    return eventually(10s, [&] {
      auto next = wanted.begin();
      last_ = admin_->get(route + "?follow=false").text;
      auto page = json::parse_text(last_);
      if (!page) return false;
      for (const auto& item : page->at("items").as_array()) {
        const json::object& said = item.at("payload").as_object();
        std::string line = fmt::format("{} {}", said.at("type").as_string().c_str(),
                                       said.contains("camera_uuid") ? said.at("camera_uuid").as_string().c_str() : "");
        if (said.contains("runner_id")) line += fmt::format(" {}", said.at("runner_id").as_string().c_str());
        if (next != wanted.end() && line == *next) ++next;
      }
      return next == wanted.end();
    });
  }

  std::unique_ptr<Talk> admin_, first_, second_;
  std::string last_;
};
INSTANTIATE_OVER_BOTH_STORES(AnnouncementsApi);

TEST_P(AnnouncementsApi, WhatHappensToLeases_IsTold_ExpiriesIncluded) {
  START_OR_SKIP();
  furnish(2);
  acquire(*first_, "r1", 1);
  std::int64_t version = acquire(*first_, "r1", 2);
  first_->post("/v1/leases/camera/release-batch", lease("r1", 2, version));
  EXPECT_TRUE(
      told("/v1/leases/events", {"lease.granted cam-1 r1", "lease.granted cam-2 r1", "lease.released cam-2 r1"}))
      << last_;
  // Nobody renews the lease: it runs out, and a runner that hears of it can take the camera at once.
  EXPECT_TRUE(told("/v1/leases/events", {"lease.expired cam-1 r1"})) << last_;
  auto logged = [&] { return process().log().find(R"("runner_id":"r1","leases":1)") != std::string::npos; };
  EXPECT_TRUE(eventually(2s, logged)) << process().log();
  acquire(*second_, "r2", 1);
  ASSERT_EQ(admin_->post("/v1/leases/camera/cam-1/revoke").status, 200);
  EXPECT_TRUE(told("/v1/leases/events", {"lease.expired cam-1 r1", "lease.stolen cam-1 r2", "lease.revoked cam-1 r2"}))
      << last_;
}

TEST_P(AnnouncementsApi, OperatorsChanges_AreTold) {
  START_OR_SKIP();
  furnish(1);
  acquire(*first_, "r1", 1);
  ASSERT_EQ(first_->post("/v1/runners/register", {{"runner_id", "r1"}, {"boot_id", "b-r1"}}).status, 200);
  ASSERT_EQ(admin_->patch("/v1/runners/r1", {{"drain_mode", "soft"}}).status, 200);
  Reply beat = first_->post("/v1/runners/heartbeat", {{"runner_id", "r1"}});
  EXPECT_EQ(beat.field("drain_mode"), "soft") << beat.text;
  ASSERT_EQ(admin_->patch("/v1/cameras/cam-1", {{"enabled", false}}).status, 200);
  ASSERT_EQ(admin_->del("/v1/cameras/cam-1").status, 200);
  EXPECT_TRUE(told("/v1/events", {"camera.created cam-1", "lease.granted cam-1 r1", "runner.changed  r1",
                                  "camera.updated cam-1", "lease.revoked cam-1 r1", "camera.deleted cam-1"}))
      << last_;
  EXPECT_EQ(last_.find("rtsp"), std::string::npos);
}

TEST_P(AnnouncementsApi, ARunnersSilence_IsTold_UntilItIsHeardAgain) {
  START_OR_SKIP();
  furnish(1);
  auto beat = [&](const std::string& id) {
    json::object event{{"topic", "status.topic"},
                       {"routing_key", "runner.heartbeat.r1"},
                       {"event_id", id},
                       {"payload", {{"event_id", id}, {"type", "runner.heartbeat"}, {"runner_id", "r1"}}}};
    return first_->post("/v1/events/batch", {{"items", json::array{event}}}).status;
  };
  auto counted = [&](int silent) {
    return process().get("/metrics").text.find(fmt::format("\nweir_runners_silent {}\n", silent)) != std::string::npos;
  };
  ASSERT_EQ(beat("b1"), 200);
  EXPECT_TRUE(told("/v1/events", {"runner.silent  r1"})) << last_;
  EXPECT_TRUE(eventually(5s, [&] { return counted(1); }));
  ASSERT_EQ(beat("b2"), 200);
  EXPECT_TRUE(eventually(5s, [&] { return counted(0); }));
}

TEST_P(AnnouncementsApi, LeaseFeed_Resumes) {
  START_OR_SKIP();
  furnish(2);
  acquire(*first_, "r1", 1);
  ASSERT_TRUE(told("/v1/leases/events", {"lease.granted cam-1 r1"}));
  acquire(*first_, "r1", 2);
  ASSERT_TRUE(told("/v1/leases/events", {"lease.granted cam-2 r1"}));
  boost::asio::io_context io;
  auto client = net::HttpClient::create(io, process().url());
  std::string cursor = "0";
  std::vector<std::string> cameras;
  for (int again = 0; again < 2; ++again) {
    net::ClientRequest request =
        request_for(net::Method::get, "/v1/leases/events?follow=true", nullptr, process().token("runner", "r2"));
    request.headers.emplace_back("Last-Event-ID", cursor);
    (void)run(io, client->follow(std::move(request), 5s, [&](const net::StreamedEvent& event) {
      EXPECT_EQ(event.event, "control.topic");
      cursor = event.id;
      cameras.emplace_back(json::parse_text(event.data)->at("payload").at("camera_uuid").as_string());
      return false;
    }));
  }
  EXPECT_EQ(cameras, (std::vector<std::string>{"cam-1", "cam-2"}));
}

}  // namespace
}  // namespace weir::test

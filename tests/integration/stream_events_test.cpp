// What a stream's worker sees, in a control plane's event feed: under the version of the stream's lease, and no longer.
#include "fleet.hpp"
#include "shard.hpp"
#include "stall.hpp"
#include "stream_house.hpp"

#include "weir/base/json.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

namespace weir::test {
namespace {

class StreamEvents : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::string why = stream_house_needs(); !why.empty()) GTEST_SKIP() << why;
    std::filesystem::path model = part("models/efficientdet-lite0.tflite"), library = part("lib/libtensorflowlite_c.so");
    if (part("footage/vtest.avi").empty() || model.empty() || library.empty())
      GTEST_SKIP() << "the footage, the model or its library could not be fetched";
    // The workers inherit it from the orchestrator.
    ::setenv("MODELS_DIR", model.parent_path().c_str(), 1);
    ::setenv("LIBRARY_DIR", library.parent_path().c_str(), 1);
    plane_ = std::make_unique<WeirProcess>(folder_.path(), "sqlite:" + folder_.path() + "/weir.db");
    std::string secret = folder_.path() + "/auth.secret";
    house_ = std::make_unique<StreamHouse>(StreamHouseOptions{
        .streams = "demo: {max_fps: 5}\n",
        .flags = {"--control-plane-url", plane_->url(), "--auth-secret-file", secret, "--orchestrator-id", "o1",
                  "--orchestrator-tenant", "t1", "--orchestrator-site", "s1"},
        .secret = secret});
  }
  void TearDown() override {
    house_.reset();
    ::unsetenv("MODELS_DIR");
    ::unsetenv("LIBRARY_DIR");
  }
  // The feed from its beginning, oldest first.
  std::vector<boost::json::object> feed(const std::string& pattern) const {
    std::vector<boost::json::object> all;
    for (std::string after = "0";;) {
      Reply page = plane_->get(fmt::format("/v1/events?follow=false&limit=200&pattern={}&after={}", pattern, after));
      EXPECT_EQ(page.status, 200) << page.text;
      if (page.status != 200) return all;
      for (const auto& item : page.body.at("items").as_array()) all.push_back(item.as_object());
      after = page.field("next_cursor");
      if (page.body.at("at_end").as_bool()) return all;
    }
  }
  static std::int64_t version_of(const boost::json::object& item) {
    return item.at("payload").at("lease_version").to_number<std::int64_t>();
  }
  std::vector<boost::json::object> detections() const { return feed("detections.t1.s1.demo"); }
  std::string report() const { return house_->log() + house_->child_logs() + plane_->log(); }

  TempDir folder_;
  std::unique_ptr<WeirProcess> plane_;
  std::unique_ptr<StreamHouse> house_;
};

TEST_F(StreamEvents, WhatTheWorkerSees_IsInTheFeed_AndNothingOfAnOldVersionFollowsARevocation) {
  auto publisher = house_->hub().publish("live/demo/in", {.clip = "people"});
  ASSERT_TRUE(eventually(60s, [&] { return detections().size() >= 5; })) << report();
  Reply lease = plane_->get("/v1/leases/stream/demo");
  std::int64_t version = std::stoll(lease.field("version"));
  std::int64_t before = -1;
  for (const auto& item : detections()) {
    const auto& said = item.at("payload").as_object();
    EXPECT_EQ(item.at("topic"), "detections.topic");
    EXPECT_EQ(said.at("camera_uuid"), "demo");
    EXPECT_EQ(said.at("runner_id"), "o1");
    EXPECT_EQ(version_of(item), version) << lease.text;
    EXPECT_GT(said.at("latency").at("e2e_s").to_number<double>(), 0);
    EXPECT_EQ(said.at("detections").at(0).at("class"), "person");
    EXPECT_GT(said.at("frame_id").to_number<std::int64_t>(), std::exchange(before, said.at("frame_id").to_number<std::int64_t>()));
  }

  ASSERT_EQ(plane_->post("/v1/leases/stream/demo/revoke", boost::json::object()).status, 200);
  ASSERT_TRUE(eventually(90s, [&] {
    auto all = detections();
    return !all.empty() && version_of(all.back()) > version;
  })) << "the stream goes on under another version" << report();
  bool revoked = false;
  int old = 0, fresh = 0;
  for (const auto& item : feed("%23")) {
    std::string key(item.at("routing_key").as_string());
    if (key == "lease.revoked.t1.s1.demo") revoked = true;
    if (!key.starts_with("detections.")) continue;
    ++(revoked ? fresh : old);
    EXPECT_EQ(version_of(item) > version, revoked) << item;
  }
  EXPECT_TRUE(revoked);
  EXPECT_GE(old, 5);
  EXPECT_GE(fresh, 1);
}

TEST_F(StreamEvents, AWorkerThatOutlivesItsOrchestrator_PublishesUnderTheVersionOfTheNextOne) {
  auto publisher = house_->hub().publish("live/demo/in", {.clip = "people"});
  ASSERT_TRUE(eventually(60s, [&] { return detections().size() >= 3; })) << report();
  boost::json::object before = detections().back();
  house_->kill_orchestrator();
  std::filesystem::remove(house_->state_dir() + "/streams/worker.token");
  house_->start();
  ASSERT_TRUE(eventually(60s, [&] { return version_of(detections().back()) > version_of(before); })) << report();
  boost::json::object after = detections().back();
  EXPECT_EQ(after.at("payload").at("shard_id"), before.at("payload").at("shard_id")) << "the same worker" << report();
  EXPECT_FALSE(text_in_file(house_->state_dir() + "/streams/worker.token").empty()) << "it keeps the token fresh";
}

}  // namespace
}  // namespace weir::test

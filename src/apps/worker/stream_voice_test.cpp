#include "stream_voice.hpp"

#include "rgb_picture.hpp"

#include "weir/base/clock.hpp"
#include "weir/base/json.hpp"

#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>

namespace weir::apps {
namespace {

// What reached the control plane.
struct Heard {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<event::Event> events;

  // Waits for that many.
  std::vector<event::Event> wait(size_t count) {
    std::unique_lock lock(mutex);
    changed.wait_for(lock, std::chrono::seconds(20), [&] { return events.size() >= count; });
    return events;
  }
};

class HeardBus final : public EventBus {
 public:
  explicit HeardBus(Heard& heard) : heard_(heard) {}
  boost::asio::awaitable<Result<std::vector<Confirmation>>> publish(std::vector<event::Event> events) override {
    std::lock_guard lock(heard_.mutex);
    heard_.events.insert(heard_.events.end(), events.begin(), events.end());
    heard_.changed.notify_all();
    co_return std::vector<Confirmation>(events.size(), Confirmation::accepted);
  }
  boost::asio::awaitable<Status> subscribe(Subscription, std::function<bool(const DeliveredEvent&)>) override {
    co_return Error{Errc::unsupported, "no_subscription", "not here"};
  }

 private:
  Heard& heard_;
};

class StreamVoiceTest : public ::testing::Test {
 protected:
  void open(std::int64_t version, Instant until) {
    right_.emplace(version, until);
    StreamVoice::Config config{.owner = RunnerId::trusted("o-1"),
                               .instance = "i-1",
                               .tenant = TenantId::trusted("t"),
                               .site = SiteId::trusted("s"),
                               .stream = CameraId::trusted("live")};
    auto make_bus = [this](boost::asio::io_context&) { return std::make_unique<HeardBus>(heard_); };
    voice_.emplace(config, make_bus, *right_, metrics_);
  }
  void see(std::int64_t number, std::vector<Detection> detections = {{"person", 0.9, {1, 2, 3, 4}}}) {
    testing::RgbPicture picture(64, 48);
    picture.number = number;
    picture.captured = wall_now();
    picture.received = boot_now();
    voice_->saw(picture, {.detections = std::move(detections), .width = 64, .height = 48}, 10ms);
  }
  static std::int64_t frame_of(const event::Event& event) {
    return json::parse_text(event.payload)->at("frame_id").to_number<std::int64_t>();
  }
  Heard heard_;
  net::Metrics metrics_;
  std::optional<egress::SendRight> right_;
  std::optional<StreamVoice> voice_;
};

TEST_F(StreamVoiceTest, WhatIsSeen_IsPublishedUnderTheRightsVersion_AndFollowsIt) {
  open(7, boot_now() + 1h);
  see(3, {});
  see(4);
  auto events = heard_.wait(1);
  ASSERT_EQ(events.size(), 1u) << "a picture in which nothing was seen is no event";
  EXPECT_EQ(events[0].routing_key, "detections.t.s.live");
  ASSERT_TRUE(events[0].stamp);
  EXPECT_EQ(events[0].stamp->version.n, 7);
  auto said = *json::parse_text(events[0].payload);
  EXPECT_EQ(said.at("lease_version"), 7);
  EXPECT_EQ(said.at("camera_uuid"), "live");
  EXPECT_EQ(said.at("runner_id"), "o-1");
  EXPECT_EQ(said.at("shard_id"), "i-1");
  EXPECT_EQ(said.at("frame_id"), 4);
  EXPECT_EQ(said.at("detections").at(0).at("class"), "person");

  ASSERT_TRUE(right_->extend(8, boot_now() + 1h));
  see(5);
  events = heard_.wait(2);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[1].stamp->version.n, 8);
}

TEST_F(StreamVoiceTest, WithoutARight_NothingIsPublished_AndWhatWaitsFollowsOnlyUnderTheSameVersion) {
  open(7, boot_now() - 1s);
  see(1);
  ASSERT_TRUE(right_->extend(7, boot_now() + 1h));
  see(2);
  auto events = heard_.wait(2);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(frame_of(events[0]), 1) << "the right was extended: what was seen meanwhile comes first";

  ASSERT_TRUE(right_->extend(8, boot_now() - 1s));
  see(3);
  ASSERT_TRUE(right_->extend(9, boot_now() + 1h));
  see(4);
  events = heard_.wait(3);
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(frame_of(events[2]), 4) << "what was seen under an earlier version is dropped";
}

}  // namespace
}  // namespace weir::apps

#include "weir/worker/inference.hpp"

#include "picture_testing.hpp"
#include "stall.hpp"

#include "weir/base/clock.hpp"

#include <gtest/gtest.h>

namespace weir::worker {
namespace {

using test::eventually;

// Somebody who needs no lease, and so no publisher.
class Listener final : public Outlet {
 public:
  void say(event::DetectionEvent seen, Instant) override {
    std::lock_guard guard(mutex_);
    heard_.push_back(std::move(seen));
  }
  void say(event::StreamStatus, event::Kind) override {}
  void say(event::StreamErrorEvent) override {}
  std::vector<event::DetectionEvent> heard() {
    std::lock_guard guard(mutex_);
    return heard_;
  }

 private:
  std::mutex mutex_;
  std::vector<event::DetectionEvent> heard_;
};

// Counts the models that are loaded.
struct Counted final : Detector {
  explicit Counted(std::atomic<int>& loaded) : loaded_(loaded) { ++loaded_; }
  ~Counted() override { --loaded_; }
  Result<std::vector<std::vector<Detection>>> detect(std::span<const Look> looks) override {
    return std::vector<std::vector<Detection>>(looks.size(), {{"person", 0.9, {1, 2, 30, 40}}});
  }
  std::atomic<int>& loaded_;
};

class Inference : public ::testing::Test {
 protected:
  std::unique_ptr<InferencePool> pool(std::vector<camera::Model> preload, Duration idle_most) {
    auto make = [this](const camera::Model&) -> Result<std::unique_ptr<Detector>> {
      return std::unique_ptr<Detector>(new Counted(loaded_));
    };
    auto status_of = [this](const CameraId&) { return status_; };
    return std::make_unique<InferencePool>(scheduler_, reporter_, make, status_of, 1, std::move(preload), idle_most);
  }
  // Shows a picture to this model, and waits until it was looked at.
  void show(const std::string& model) {
    auto source = std::make_shared<Source>();
    source->config.camera = CameraId::trusted("a");
    source->config.model.name = model;
    size_t before = listener_.heard().size();
    scheduler_.offer({.source = source, .picture = picture(++number_), .custody = std::make_shared<Custody>()});
    EXPECT_TRUE(eventually(10s, [&] { return listener_.heard().size() > before; }));
  }

  net::Metrics metrics_;
  Listener listener_;
  Reporter reporter_{listener_, metrics_, RunnerId::trusted("r"), "s"};
  Scheduler scheduler_;
  std::shared_ptr<CameraStatus> status_ = std::make_shared<CameraStatus>();
  std::atomic<int> loaded_ = 0;
  int number_ = 0;
};

TEST_F(Inference, WhatIsSeen_IsSaidToWhoeverStandsInThePublishersPlace) {
  auto running = pool({}, 1h);
  show("m");
  event::DetectionEvent seen = listener_.heard().at(0);
  EXPECT_EQ(seen.place.camera, CameraId::trusted("a"));
  ASSERT_EQ(seen.detections.size(), 1u);
  EXPECT_EQ(seen.detections[0].label, "person");
}

TEST_F(Inference, ModelThatNobodyAsksForAnyMore_IsUnloaded_WhenAnotherIsLoaded) {
  auto running = pool({{"tflite", "kept"}}, Duration(-1));
  show("first");
  EXPECT_EQ(loaded_, 2) << "beside the one that was preloaded";
  show("first");
  EXPECT_EQ(loaded_, 2);
  show("second");
  EXPECT_EQ(loaded_, 2) << "the first is gone, the preloaded one is not";
}

TEST_F(Inference, ModelsThatAreInUse_StayLoaded) {
  auto running = pool({}, 1h);
  show("first");
  show("second");
  EXPECT_EQ(loaded_, 2);
}

}  // namespace
}  // namespace weir::worker

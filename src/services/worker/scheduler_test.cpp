#include "weir/worker/scheduler.hpp"

#include "picture_testing.hpp"

#include <gtest/gtest.h>

namespace weir::worker {
namespace {

size_t one(const camera::Model&) { return 1; }
size_t many(const camera::Model&) { return 8; }

std::shared_ptr<const Source> source(const std::string& id, const std::string& model = "") {
  auto made = std::make_shared<Source>();
  made->config.camera = CameraId::trusted(id);
  made->config.model.name = model;
  return made;
}

TEST(Scheduler, NewerPicture_ReplacesTheOneNobodyTook) {
  Scheduler scheduler;
  EXPECT_FALSE(scheduler.offer({source("a"), picture(1)}));
  EXPECT_TRUE(scheduler.offer({source("a"), picture(2)}));
  auto works = scheduler.take({}, one);
  ASSERT_EQ(works.size(), 1u);
  EXPECT_EQ(works[0].picture->number, 2);
  EXPECT_EQ(scheduler.waiting(), 0u);
}

TEST(Scheduler, BusyCamera_DoesNotStarveAnother) {
  Scheduler scheduler;
  scheduler.offer({source("busy"), picture(0)});
  scheduler.offer({source("quiet"), picture(0)});
  std::vector<std::string> order;
  for (int i = 1; i <= 4; ++i) {
    auto works = scheduler.take({}, one);
    order.push_back(works[0].source->config.camera.str());
    scheduler.done(works[0].source->config.camera);
    scheduler.offer({source("busy"), picture(i)});   // always has something new at once
    if (order.back() == "quiet") scheduler.offer({source("quiet"), picture(i)});
  }
  EXPECT_EQ(order, (std::vector<std::string>{"busy", "quiet", "busy", "quiet"}));
}

TEST(Scheduler, Batch_HoldsOnlyCamerasOfOneModel_InTheirOrder) {
  Scheduler scheduler;
  scheduler.offer({source("a", "x"), picture(1)});
  scheduler.offer({source("b", "y"), picture(1)});
  scheduler.offer({source("c", "x"), picture(1)});
  auto works = scheduler.take({}, many);
  ASSERT_EQ(works.size(), 2u);
  EXPECT_EQ(works[0].source->config.camera.str(), "a");
  EXPECT_EQ(works[1].source->config.camera.str(), "c");
  EXPECT_EQ(scheduler.take({}, many)[0].source->config.camera.str(), "b");
}

TEST(Scheduler, OnePictureOfACamera_IsLookedAtAtATime) {
  Scheduler scheduler;
  scheduler.offer({source("a"), picture(1)});
  scheduler.take({}, one);
  scheduler.offer({source("a"), picture(2)});
  scheduler.offer({source("b"), picture(1)});
  EXPECT_EQ(scheduler.take({}, many).at(0).source->config.camera.str(), "b");
  EXPECT_EQ(scheduler.waiting(), 0u);
  scheduler.done(CameraId::trusted("a"));
  EXPECT_EQ(scheduler.take({}, many).at(0).picture->number, 2);
}

TEST(Scheduler, WithdrawnCamera_IsNotLookedAt) {
  Scheduler scheduler;
  scheduler.offer({source("a"), picture(1)});
  scheduler.offer({source("b"), picture(1)});
  scheduler.withdraw(CameraId::trusted("a"));
  EXPECT_EQ(scheduler.take({}, many).at(0).source->config.camera.str(), "b");
}

TEST(Scheduler, StoppedThread_StopsWaiting) {
  Scheduler scheduler;
  std::jthread waiting([&](const std::stop_token& stop) { EXPECT_TRUE(scheduler.take(stop, one).empty()); });
}

}  // namespace
}  // namespace weir::worker

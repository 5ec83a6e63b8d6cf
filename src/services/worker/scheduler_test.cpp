#include "weir/worker/scheduler.hpp"

#include "picture_testing.hpp"

#include "weir/base/clock.hpp"

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
  EXPECT_EQ(scheduler.offer({source("a"), picture(1)}), 0u);
  EXPECT_EQ(scheduler.offer({source("a"), picture(2)}), 1u);
  auto works = scheduler.take({}, one);
  ASSERT_EQ(works.size(), 1u);
  EXPECT_EQ(works[0].picture->number, 2);
  EXPECT_EQ(scheduler.waiting(), 0u);
}

TEST(Scheduler, KeptPictures_AreTakenInTheirOrder_InTurnWithOtherCameras) {
  Scheduler scheduler;
  Instant later = boot_now() + 1h;
  for (int i = 1; i <= 3; ++i) EXPECT_EQ(scheduler.offer({source("a"), picture(i), {}, later}), 0u);
  EXPECT_EQ(scheduler.offer({source("a"), picture(4)}), 0u);
  EXPECT_EQ(scheduler.offer({source("a"), picture(5)}), 1u) << "newest wins among the others";
  scheduler.offer({source("b"), picture(9)});
  std::vector<std::int64_t> order;
  for (int i = 0; i < 5; ++i) {
    auto works = scheduler.take({}, one);
    order.push_back(works[0].picture->number);
    scheduler.done(works[0].source->config.camera);
  }
  EXPECT_EQ(order, (std::vector<std::int64_t>{1, 9, 2, 3, 5}));
  EXPECT_EQ(scheduler.waiting(), 0u);
}

TEST(Scheduler, PicturesThatWereKeptForTooLong_AreReplacedLikeAnyOther) {
  Scheduler scheduler;
  Instant soon = boot_now() + 50ms;
  for (int i = 1; i <= 3; ++i) scheduler.offer({source("a"), picture(i), {}, soon});
  while (boot_now() <= soon) std::this_thread::yield();
  EXPECT_EQ(scheduler.offer({source("a"), picture(4)}), 3u);
  EXPECT_EQ(scheduler.take({}, one)[0].picture->number, 4);
}

TEST(Scheduler, KeptPictures_AreBounded_ForACameraAndInAll) {
  Instant later = boot_now() + 1h;
  Scheduler scheduler;
  for (size_t i = 0; i < Scheduler::kWaitingMax; ++i)
    EXPECT_EQ(scheduler.offer({source("a"), picture(static_cast<int>(i)), {}, later}), 0u);
  EXPECT_EQ(scheduler.offer({source("a"), picture(99), {}, later}), 1u);
  EXPECT_EQ(scheduler.take({}, one)[0].picture->number, 1) << "the oldest went";
  auto large = std::make_shared<GreyPicture>(20'000, 3'000, 0);
  EXPECT_EQ(scheduler.offer({source("b"), large, {}, later}), 0u);
  EXPECT_EQ(scheduler.offer({source("b"), large, {}, later}), 0u);
  EXPECT_EQ(scheduler.offer({source("b"), large, {}, later}), 1u);
  EXPECT_EQ(scheduler.offer({source("c"), picture(1)}), 0u) << "its first always has room";
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

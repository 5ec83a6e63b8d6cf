#include "weir/worker/camera_status.hpp"

#include <gtest/gtest.h>

namespace weir::worker {
namespace {

TEST(RateMeter, EvenArrivals_GiveTheirRate) {
  RateMeter meter;
  Instant now{};
  for (int i = 0; i < 100; ++i) meter.count(now += 100ms);
  EXPECT_NEAR(meter.rate(now), 10.0, 0.1);
}

TEST(RateMeter, SilentCamera_FallsTowardsZero_AndIsZeroAfterTheWindow) {
  RateMeter meter;
  Instant now{};
  for (int i = 0; i < 100; ++i) meter.count(now += 100ms);
  EXPECT_LT(meter.rate(now + 2s), 10.0);
  EXPECT_EQ(meter.rate(now + 6s), 0.0);
}

TEST(RateMeter, SlowCamera_HasTheRateOfItsLastInterval_UntilItIsOverdue) {
  RateMeter meter;
  Instant now{};
  for (int i = 0; i < 3; ++i) meter.count(now += 10s);
  EXPECT_NEAR(meter.rate(now), 0.1, 1e-6);
  EXPECT_NEAR(meter.rate(now + 19s), 0.1, 1e-6);
  EXPECT_EQ(meter.rate(now + 20s), 0.0);
}

TEST(RateMeter, OneArrival_HasNoRate) {
  RateMeter meter;
  meter.count(Instant{} + 1s);
  EXPECT_EQ(meter.rate(Instant{} + 1s), 0.0);
}

TEST(CameraStatus, View_CountsWhatWasReceived) {
  CameraStatus status;
  status.received(Instant{} + 1s, WallTime{} + 7s);
  status.received(Instant{} + 1200ms, WallTime{} + 8s);
  CameraView view = status.view(Instant{} + 1200ms);
  EXPECT_EQ(view.counts.received, 2);
  EXPECT_EQ(view.last_frame, Instant{} + 1200ms);
  EXPECT_EQ(view.last_frame_at, WallTime{} + 8s);
  EXPECT_NEAR(view.fps, 5.0, 0.1);
}

}  // namespace
}  // namespace weir::worker

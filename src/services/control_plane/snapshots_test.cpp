#include "snapshots.hpp"

#include <gtest/gtest.h>

#include <deque>

namespace weir::control_plane {
namespace {

const CameraId a = CameraId::trusted("a"), b = CameraId::trusted("b");

TEST(Snapshots, ManyWhoLookAtOneCameraAtOnce_AskItsRunnerOnce) {
  Snapshots snapshots;
  Instant now{10s};
  auto first = snapshots.ask(a, now), joined = snapshots.ask(a, now + 900ms), other = snapshots.ask(b, now + 900ms);
  EXPECT_TRUE(first.fresh);
  EXPECT_FALSE(joined.fresh);
  EXPECT_EQ(joined.request, first.request);
  EXPECT_TRUE(other.fresh);
  EXPECT_NE(other.request, first.request);
  auto later = snapshots.ask(a, now + 1s);
  EXPECT_TRUE(later.fresh);
  EXPECT_NE(later.request, first.request);
}

TEST(Snapshots, TooManyWhoWait_AreACrowd_UntilOneLeaves) {
  Snapshots snapshots;
  std::deque<Snapshots::Waiting> waiting;
  while (!snapshots.crowded()) waiting.emplace_back(snapshots);
  EXPECT_EQ(waiting.size(), 64u);
  waiting.pop_back();
  EXPECT_FALSE(snapshots.crowded());
}

}  // namespace
}  // namespace weir::control_plane

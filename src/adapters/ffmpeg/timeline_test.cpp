#include "timeline.hpp"

#include <gtest/gtest.h>

namespace weir::ffmpeg {
namespace {

constexpr Duration kStep = 40ms;

TEST(Timeline, RegularStamps_StartAtZero) {
  Timeline timeline;
  for (int i = 0; i < 100; ++i) EXPECT_EQ(timeline.at(1000s + i * kStep, kStep), i * kStep);
}

TEST(Timeline, ReorderedPictures_KeepTheirStamps) {
  Timeline timeline;
  for (int i : {0, 3, 1, 2, 6, 4, 5}) EXPECT_EQ(timeline.at(i * kStep, kStep), i * kStep);
}

TEST(Timeline, Jumps_EitherWay_AreOneStep) {
  Timeline timeline;
  timeline.at(100s, kStep);
  EXPECT_EQ(timeline.at(100s + kStep, kStep), kStep);
  EXPECT_EQ(timeline.at(5s, kStep), 2 * kStep);
  EXPECT_EQ(timeline.at(5s + kStep, kStep), 3 * kStep) << "and the new stamps go on from there";
  EXPECT_EQ(timeline.at(90000s, kStep), 4 * kStep);
  EXPECT_EQ(timeline.at(90000s + 2 * kStep, kStep), 6 * kStep);
}

TEST(Timeline, MissingStamps_AreOneStepEach) {
  Timeline timeline;
  for (int i = 0; i < 5; ++i) EXPECT_EQ(timeline.at(std::nullopt, kStep), i * kStep);
}

}  // namespace
}  // namespace weir::ffmpeg

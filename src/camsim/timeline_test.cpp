#include "weir/camsim/timeline.hpp"

#include <gtest/gtest.h>

namespace weir::camsim {
namespace {

constexpr WallTime kNow{Duration(1'794'782'437'991'346)};

TEST(CamsimTimeline, EveryFrame_IsTheNewestFromItsCaptureOn) {
  for (int fps : {1, 7, 10, 25, 30, 60})
    for (Duration phase : {0us, 1us, 2'437'852'000us}) {
      Timeline time{fps, 795, phase};
      std::int64_t running = time.running_at(kNow);
      for (std::int64_t each = running - 3; each < running + 3; ++each) {
        EXPECT_EQ(time.running_at(time.captured(each)), each);
        EXPECT_EQ(time.running_at(time.captured(each) - 1us), each - 1);
      }
    }
}

TEST(CamsimTimeline, Loop_FollowsItselfWithoutABreak) {
  Timeline time{30, 100, 0us};
  for (std::int64_t running : {-1, 0, 99, 100, 101, 12'345})
    EXPECT_EQ((time.in_loop(running) + 1) % 100, time.in_loop(running + 1)) << running;
  EXPECT_EQ(time.in_loop(-1), 99);
}

TEST(CamsimTimeline, Stamp_ResolvesToTheRoundNearestToNow) {
  Timeline time{10, 40, 1'234ms};
  std::int64_t running = time.running_at(kNow);
  for (std::int64_t off : {-19, -1, 0, 1, 19}) {
    Capture found = capture_time(time.stamp(time.in_loop(running + off)), time, kNow);
    EXPECT_EQ(found.running, running + off);
    EXPECT_EQ(found.time, time.captured(running + off));
  }
}

TEST(CamsimTimeline, Stamp_SaysMilliseconds) {
  EXPECT_EQ((Timeline{30, 100}.stamp(1)), (Stamp{1, 33}));
  EXPECT_EQ((Timeline{10, 795}.stamp(794)), (Stamp{794, 79'400}));
}

TEST(CamsimTimeline, Phase_ComesFromTheNameAlone) {
  EXPECT_EQ(phase_of("cam-1"), phase_of("cam-1"));
  EXPECT_NE(phase_of("cam-1"), phase_of("cam-2"));
  EXPECT_EQ(phase_of("cam-1"), 2'437'852ms);  // the same in every release: recorded benches refer to it
}

}  // namespace
}  // namespace weir::camsim

#include "capture_clock.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace weir::ffmpeg {
namespace {

using std::chrono::milliseconds;
using Said = std::optional<milliseconds>;

struct Step {
  milliseconds now;
  Said said;  // as the camera's clock has it
  milliseconds expected;
};

WallTime wall(Duration at) { return WallTime(1'790'000'000s + at); }

// A picture with each step, in the order of presentation.
void follow(const std::vector<Step>& steps) {
  CaptureClock clock;
  Duration stream_time{};
  for (const Step& step : steps) {
    std::optional<WallTime> said;
    if (step.said) said = wall(*step.said);
    EXPECT_EQ(clock.at(said, wall(step.now), stream_time += 40ms) - wall(0s), step.expected) << step.now.count();
  }
}

TEST(CaptureClock, IsTheCameras_WhereThatIsRight) {
  follow({{0ms, -100ms, -100ms}, {40ms, -60ms, -60ms}, {90ms, -20ms, -20ms}, {120ms, 20ms, 20ms}});
}

TEST(CaptureClock, IsOurs_WhereTheCameraSaysNothing_OrFarTooMuch) {
  follow({{0ms, {}, 0ms}, {40ms, {}, 40ms}, {90ms, -9'000'000ms, 90ms}, {120ms, 9'000'000ms, 120ms}});
}

TEST(CaptureClock, NothingIsTakenInTheFuture) { follow({{0ms, 300ms, 0ms}, {40ms, 340ms, 40ms}}); }

TEST(CaptureClock, CameraThatIsOffByMore_IsNotBelievedWhenItsFirstReportComes) {
  follow({{0ms, {}, 0ms}, {40ms, {}, 40ms}, {80ms, -1420ms, 80ms}, {120ms, -1380ms, 120ms}});
}

TEST(CaptureClock, FirstReport_DoesNotSetTheTimeBack) {
  follow({{0ms, {}, 0ms}, {100ms, -50ms, 0ms}, {200ms, 50ms, 50ms}, {300ms, 150ms, 150ms}});
}

TEST(CaptureClock, AroundEitherBound_DoesNotAlternate) {
  follow({{0ms, -1950ms, 0ms}, {100ms, -1950ms, 100ms}, {200ms, -1750ms, 200ms}, {300ms, -1750ms, 300ms}});
  follow({{0ms, -490ms, -490ms}, {100ms, -410ms, -410ms}, {200ms, -290ms, -290ms}, {300ms, -210ms, -210ms}});
}

TEST(CaptureClock, BelievedCamera_StaysSoWhileItsPicturesAreLate_ButNotForEver) {
  follow({{0ms, -100ms, -100ms},
          {1900ms, -60ms, -60ms},
          {2100ms, -20ms, 2100ms},
          {2200ms, 300ms, 2200ms},    // 1.9 s again: too much to begin with
          {2300ms, 2200ms, 2200ms},   // and right again
          {2400ms, 2300ms, 2300ms}});
}

TEST(CaptureClock, OurOwnClockSetBack_IsFollowed_AndATrembleOfItIsNot) {
  follow({{3'600'000ms, {}, 3'600'000ms}, {40ms, {}, 40ms}, {80ms, {}, 80ms}, {60ms, {}, 80ms}, {120ms, {}, 120ms}});
}

// Sent as 0 3 1 2 6 4 5: a picture that refers to a later one comes after it.
TEST(CaptureClock, ReorderedPictures_WereTakenInTheOrderOfPresentation) {
  for (bool camera : {true, false}) {
    CaptureClock clock;
    std::vector<WallTime> shown(7);
    Duration now = 300ms;
    for (size_t i : {0, 3, 1, 2, 6, 4, 5}) {
      Duration stream_time = static_cast<int>(i) * 100ms;
      std::optional<WallTime> said;
      if (camera) said = wall(stream_time);
      shown[i] = clock.at(said, wall(now += 100ms), stream_time);
      EXPECT_TRUE(!camera || shown[i] == *said) << i;
    }
    EXPECT_TRUE(std::ranges::is_sorted(shown)) << camera;
  }
}

TEST(CaptureClock, PicturesInABurst_NeverFallInTheOrderOfPresentation) {
  CaptureClock clock;
  std::vector<WallTime> shown(4);
  for (size_t i : {0, 3, 1, 2}) shown[i] = clock.at({}, wall(0s), static_cast<int>(i) * 100ms);
  EXPECT_TRUE(std::ranges::is_sorted(shown));
}

// As at a cutover: one has long been connected, the other begins and hears of the camera's clock only later.
TEST(CaptureClock, TwoConnections_AgreeToTheirDelays) {
  for (Duration error : {0ms, -300ms, 300ms, -1500ms, 1500ms, -1990ms, -5000ms}) {
    CaptureClock old_one, new_one;
    for (int i = 0; i < 200; ++i) {
      Duration taken = i * 40ms;
      WallTime said = wall(taken + error);
      WallTime old_time = old_one.at(said, wall(taken + 50ms + i % 3 * 10ms), taken);
      if (i < 50) continue;
      auto heard = i < 100 ? std::nullopt : std::optional(said);
      WallTime new_time = new_one.at(heard, wall(taken + 60ms + i % 2 * 10ms), taken);
      if (i < 120) continue;
      EXPECT_LE(std::chrono::abs(new_time - old_time), 30ms) << error.count() << " " << i;
    }
  }
}

}  // namespace
}  // namespace weir::ffmpeg

#include "weir/worker/attention.hpp"

#include <gtest/gtest.h>

namespace weir::worker {
namespace {

constexpr Instant kBegin{1000s};

// A camera that is due `due` times a second, of which `looked` are looked at, for so many seconds from `from` on.
void live(Attention& attention, Instant from, int for_s, int due, int looked, bool moves = true, Duration waits = 500ms) {
  for (int s = 0; s < for_s; ++s) {
    Instant at = from + std::chrono::seconds(s) + 100ms;
    for (int i = 0; i < due; ++i) attention.due(at, moves);
    for (int i = 0; i < looked; ++i) attention.looked(at);
    attention.waited(at, waits);
    attention.judge(at + 800ms, 6);
  }
}

TEST(Attention, ACameraThatIsLookedAtAsOftenAsWanted_IsNotBehind) {
  Attention attention;
  attention.begin(kBegin);
  live(attention, kBegin, 30, 6, 6);
  EXPECT_FALSE(attention.behind());
  EXPECT_EQ(attention.rates(kBegin + 30s, 6), (Attention::Rates{6, 6}));
}

TEST(Attention, ABusyDetector_IsSaidAfterTheWindow_AndTakenBackWhenItKeepsUp) {
  Attention attention;
  attention.begin(kBegin);
  live(attention, kBegin, 10, 6, 2);
  EXPECT_FALSE(attention.behind()) << "no window has passed yet";
  live(attention, kBegin + 10s, 3, 6, 2);
  EXPECT_TRUE(attention.behind());
  EXPECT_EQ(attention.rates(kBegin + 13s, 6), (Attention::Rates{6, 2}));
  live(attention, kBegin + 13s, 3, 6, 6);
  EXPECT_TRUE(attention.behind()) << "it has kept up for a moment only";
  live(attention, kBegin + 16s, 4, 6, 6);
  EXPECT_FALSE(attention.behind());
}

TEST(Attention, WhatIsSaid_IsNothingUntilSecondsWereCounted_ThenTheLastFew) {
  Attention attention;
  attention.begin(kBegin);
  live(attention, kBegin, 4, 6, 6);
  EXPECT_EQ(attention.known(kBegin + 3900ms, 6), std::nullopt) << "the first second was not whole";
  EXPECT_EQ(attention.known(kBegin + 4s, 6), (Attention::Rates{6, 6}));
  live(attention, kBegin + 4s, 5, 6, 2);
  EXPECT_EQ(attention.known(kBegin + 9s, 6), (Attention::Rates{6, 2})) << "what was long ago hides nothing";
}

TEST(Attention, AStillScene_WantsNothing) {
  Attention attention;
  attention.begin(kBegin);
  live(attention, kBegin, 30, 6, 0, false);
  EXPECT_FALSE(attention.behind());
  EXPECT_EQ(attention.rates(kBegin + 30s, 6), (Attention::Rates{0, 0}));
}

TEST(Attention, AModelThatTakesSecondsToLoad_RaisesNoAlarm) {
  Attention attention;
  attention.begin(kBegin);
  live(attention, kBegin, 6, 6, 0);
  live(attention, kBegin + 6s, 20, 6, 6);
  EXPECT_FALSE(attention.behind());
}

TEST(Attention, AThreadThatNeverWaitsForItsCamera_IsMeasuredByTheCamerasRate) {
  Attention attention;
  attention.begin(kBegin);
  live(attention, kBegin, 20, 2, 2, true, 1ms);  // it decodes so slowly that only two pictures a second were due
  EXPECT_TRUE(attention.behind());
  EXPECT_EQ(attention.rates(kBegin + 20s, 6), (Attention::Rates{6, 2}));
}

TEST(Attention, ANewConnection_BeginsWithoutTheOldOnesCounts) {
  Attention attention;
  attention.begin(kBegin);
  live(attention, kBegin, 8, 6, 0);
  attention.begin(kBegin + 8s);
  live(attention, kBegin + 8s, 20, 6, 6);
  EXPECT_FALSE(attention.behind());
}

TEST(Attention, OnePictureInTenSeconds_IsNotWorthAnAlarm) {
  Attention attention;
  attention.begin(kBegin);
  for (int s = 0; s < 40; ++s) live(attention, kBegin + std::chrono::seconds(s), 1, s % 10 == 0 ? 1 : 0, 0);
  EXPECT_FALSE(attention.behind());
}

}  // namespace
}  // namespace weir::worker

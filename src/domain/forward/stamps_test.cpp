#include "weir/forward/interleave.hpp"
#include "weir/forward/stamps.hpp"

#include <gtest/gtest.h>

#include <random>

namespace weir::forward {
namespace {

constexpr Duration kStep = 40ms;

// Feeds pictures with these presentation times, in steps; what leaves must be possible to mux.
struct Sent {
  Stamps stamps;
  Instant now{100s};
  std::vector<Stamp> all;
  Stamp picture(std::optional<Duration> pts) {
    now += kStep;
    Stamp stamp = stamps.at(Track::video, pts, now);
    EXPECT_LE(stamp.dts, stamp.pts);
    EXPECT_GE(stamp.dts, Duration{0});
    if (!all.empty()) {
      EXPECT_GE(stamp.dts, all.back().dts);
    }
    all.push_back(stamp);
    return stamp;
  }
};

TEST(Stamps, AStreamWithoutReordering_StartsAtZero_AndKeepsItsSteps) {
  Sent sent;
  sent.stamps.begin_input(0, kStep, sent.now);
  for (int i = 0; i < 100; ++i) {
    Stamp stamp = sent.picture(3600s + i * kStep);
    EXPECT_EQ(stamp.pts, i * kStep);
    EXPECT_EQ(stamp.dts, i * kStep);
  }
}

// I P B B P B B …: what x264 makes of two B-frames.
std::vector<int> reordered(int groups) {
  std::vector<int> order{0};
  for (int g = 0; g < groups; ++g)
    for (int at : {3, 1, 2}) order.push_back(g * 3 + at);
  return order;
}

TEST(Stamps, BFrames_AreShownWhereTheyBelong_AndDecodedInStepsBefore) {
  Sent sent;
  sent.stamps.begin_input(1, kStep, sent.now);
  for (int at : reordered(50)) EXPECT_EQ(sent.picture(10s + at * kStep).pts, (at + 1) * kStep);
  for (size_t i = 2; i < sent.all.size(); ++i) EXPECT_EQ(sent.all[i].dts - sent.all[i - 1].dts, kStep) << i;
}

TEST(Stamps, BFramesThatNobodyAnnounced_CostOneStepOnce) {
  Sent sent;
  sent.stamps.begin_input(0, kStep, sent.now);
  for (int at : reordered(50)) sent.picture(10s + at * kStep);
  std::vector<int> order = reordered(50);
  for (size_t i = 6; i < order.size(); ++i)
    EXPECT_EQ(sent.all[i].pts - sent.all[5].pts, (order[i] - order[5]) * kStep) << i;
}

TEST(Stamps, AnInputThatWasAway_GoesOnAsMuchLater) {
  Sent sent;
  sent.stamps.begin_input(0, kStep, sent.now);
  for (int i = 0; i < 10; ++i) sent.picture(i * kStep);
  Duration before = sent.all.back().dts;
  sent.now += 7s;
  sent.stamps.begin_input(0, kStep, sent.now);
  EXPECT_EQ(sent.picture(90000s).dts, before + 7s);
  EXPECT_EQ(sent.picture(90000s + kStep).dts, before + 7s + kStep);
}

TEST(Stamps, BothTracks_StayInStepWithEachOther) {
  Stamps stamps;
  Instant now{1s};
  stamps.begin_input(0, kStep, now);
  EXPECT_EQ(stamps.at(Track::video, 50s, now).pts, 0ms);
  EXPECT_EQ(stamps.at(Track::audio, 50s + 15ms, now).pts, 15ms);
  EXPECT_EQ(stamps.at(Track::audio, 50s + 36ms, now).pts, 36ms);
  EXPECT_EQ(stamps.at(Track::video, 50s + 40ms, now).pts, 40ms);
}

TEST(Stamps, SoundThatBeginsLater_IsStampedWhereThePicturesAre) {
  for (Duration first : {Duration(15s), Duration(0s)}) {  // on the pictures' clock, or on one of its own
    Sent sent;
    sent.stamps.begin_input(0, kStep, sent.now);
    for (int i = 0; i < 375; ++i) sent.picture(i * kStep);
    Duration pictures = sent.all.back().dts;
    for (int i = 0; i < 50; ++i) {
      Stamp sound = sent.stamps.at(Track::audio, first + i * 20ms, sent.now);
      EXPECT_GE(sound.dts, pictures + i * 20ms - 100ms) << first.count();
      EXPECT_LE(sound.dts, pictures + i * 20ms + 100ms) << first.count();
    }
  }
}

TEST(Stamps, SoundWithoutATime_GoesOnByItsOwnStep) {
  Stamps stamps;
  stamps.begin_input(0, kStep, Instant{1s}, 64ms);
  stamps.at(Track::audio, 5s, Instant{1s});
  EXPECT_EQ(stamps.at(Track::audio, std::nullopt, Instant{1s}).dts, 64ms);
  EXPECT_EQ(stamps.at(Track::audio, std::nullopt, Instant{1s}).dts, 128ms);
}

TEST(Stamps, Property_AfterASmallJump_TimeGoesOn) {
  std::mt19937 random(5);
  for (int round = 0; round < 500; ++round) {
    Sent sent;
    sent.stamps.begin_input(static_cast<int>(random() % 4), 16667us, sent.now);
    Duration jump{};
    for (int i = 0; i < 400; ++i) {
      if (random() % 40 == 0) jump += Duration(static_cast<std::int64_t>(random() % 2'000'000) - 1'000'000);
      sent.picture(100s + jump + i * 16667us);
    }
    Duration before = sent.all.back().dts;
    for (int i = 400; i < 500; ++i) sent.picture(100s + jump + i * 16667us);
    EXPECT_GT(sent.all.back().dts, before + 500ms) << "the times stand still";
  }
}

TEST(Stamps, AJump_GoesOnOneStepAfterTheLast) {
  for (Duration jump : {Duration(-30s), Duration(3600s)}) {
    Sent sent;
    sent.stamps.begin_input(0, kStep, sent.now);
    for (int i = 0; i < 10; ++i) sent.picture(100s + i * kStep);
    for (int i = 10; i < 20; ++i) EXPECT_EQ(sent.picture(100s + jump + i * kStep).pts, i * kStep) << jump.count();
  }
}

TEST(Stamps, Property_WhateverComes_WhatLeavesNeverRunsBackwards) {
  std::mt19937 random(11);
  for (int round = 0; round < 500; ++round) {
    Sent sent;
    Duration audio{};
    sent.stamps.begin_input(static_cast<int>(random() % 20), kStep, sent.now);
    for (int i = 0; i < 200; ++i) {
      if (random() % 50 == 0) sent.stamps.begin_input(static_cast<int>(random() % 4), kStep, sent.now);
      std::optional<Duration> pts = Duration(static_cast<std::int64_t>(random() % 4'000'000'000) - 2'000'000'000);
      if (random() % 3 == 0) pts = i * kStep;
      if (random() % 10 == 0) pts = std::nullopt;
      if (random() % 2 == 0) {
        sent.picture(pts);
      } else {
        Stamp stamp = sent.stamps.at(Track::audio, pts, sent.now);
        EXPECT_GE(stamp.dts, audio);
        audio = stamp.dts;
      }
    }
  }
}

// ---- both tracks in one order ----

using Order = Interleaver<int>;

TEST(Interleave, SoundWaitsForThePictures_PicturesForNobody) {
  Order order(true);
  Instant now{1s};
  order.push({Track::audio, {100ms, 100ms}, now, 1});
  EXPECT_FALSE(order.pop(now));
  order.push({Track::video, {80ms, 80ms}, now, 2});
  EXPECT_EQ(order.pop(now)->what, 2);
  EXPECT_FALSE(order.pop(now));
  order.push({Track::video, {120ms, 120ms}, now, 3});
  EXPECT_EQ(order.pop(now)->what, 1);
  EXPECT_EQ(order.pop(now)->what, 3);
}

TEST(Interleave, WherePicturesStop_SoundGoesOnAfterAMoment) {
  Order order(true);
  order.push({Track::audio, {100ms, 100ms}, Instant{1s}, 1});
  EXPECT_FALSE(order.pop(Instant{1s + 499ms}));
  EXPECT_TRUE(order.pop(Instant{1s + 500ms}));
}

TEST(Interleave, PicturesBehindTheSound_KeepTheirOrderOfShowing) {
  Order order(true);
  Instant now{10s};
  order.push({Track::audio, {900ms, 900ms}, Instant{1s}, 0});
  ASSERT_TRUE(order.pop(now));
  order.push({Track::video, {100ms, 220ms}, now, 1});
  order.push({Track::video, {140ms, 140ms}, now, 2});
  auto first = order.pop(now), second = order.pop(now);
  EXPECT_EQ(first->stamp.pts - first->stamp.dts, 120ms);
  EXPECT_LT(second->stamp.pts, first->stamp.pts);
}

TEST(Interleave, SoundAlone_DoesNotWait) {
  Order order(false);
  order.push({Track::audio, {100ms, 100ms}, Instant{1s}, 1});
  EXPECT_TRUE(order.pop(Instant{1s}));
}

TEST(Interleave, Property_TimesOfAConnectionNeverFall) {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    Order order(true);
    Instant now{1s};
    Duration video{}, audio{}, last{};
    for (int i = 0; i < 300; ++i) {
      now += std::chrono::milliseconds(random() % 60);
      if (random() % 2 == 0) order.push({Track::video, {video += Duration(random() % 80'000), video}, now, i});
      else order.push({Track::audio, {audio += Duration(random() % 80'000), audio}, now, i});
      while (auto item = order.pop(now)) {
        EXPECT_GE(item->stamp.dts, last);
        EXPECT_GE(item->stamp.pts, item->stamp.dts);
        last = item->stamp.dts;
      }
    }
  }
}

}  // namespace
}  // namespace weir::forward

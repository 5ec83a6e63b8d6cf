#include "weir/motion/gate.hpp"

#include <gtest/gtest.h>

#include <random>

namespace weir::motion {
namespace {

using camera::MotionGating;

// A grey picture with texture, on which tests paint.
struct Painting {
  int width = 320, height = 240, stride = 336;
  std::vector<std::uint8_t> luma = {};

  explicit Painting(int w = 320, int h = 240) : width(w), height(h), stride(w + 16), luma(size_t(stride) * size_t(h)) {
    for (int y = 0; y < h; ++y)
      for (int x = 0; x < w; ++x) at(x, y) = static_cast<std::uint8_t>(90 + (x * 7 + y * 13) % 23);
  }
  std::uint8_t& at(int x, int y) { return luma[size_t(y) * size_t(stride) + size_t(x)]; }
  Painting with(int x0, int y0, int w, int h, int lighter) const {
    Painting out = *this;
    for (int y = std::max(0, y0); y < std::min(height, y0 + h); ++y)
      for (int x = std::max(0, x0); x < std::min(width, x0 + w); ++x)
        out.at(x, y) = static_cast<std::uint8_t>(std::clamp(out.at(x, y) + lighter, 0, 255));
    return out;
  }
  Painting lighter(int levels) const { return with(0, 0, width, height, levels); }
  Painting noisy(std::mt19937& draw, double sigma) const {
    Painting out = *this;
    std::normal_distribution<double> grain(0, sigma);
    for (std::uint8_t& p : out.luma) p = static_cast<std::uint8_t>(std::clamp(p + grain(draw), 0.0, 255.0));
    return out;
  }
};

Verdict show(MotionGate& gate, const Painting& p) { return gate.look(p.luma.data(), p.stride, p.width, p.height); }

// A gate that has seen the empty scene often enough to have closed.
MotionGate settled(const MotionGating& settings, const Painting& scene) {
  MotionGate gate(settings);
  for (int i = 0; i <= settings.cooldown_frames + 1; ++i) show(gate, scene);
  return gate;
}

const Painting kScene;

TEST(MotionGate, FirstPictureCountsAsMotion_ThenAStillSceneCloses) {
  MotionGate gate(MotionGating{});  // cooldown 2
  Verdict first = show(gate, kScene);
  EXPECT_TRUE(first.moved);
  EXPECT_EQ(first.changed_area_px, 320 * 240);
  for (bool open : {true, true, false, false}) {
    Verdict v = show(gate, kScene);
    EXPECT_FALSE(v.moved);
    EXPECT_EQ(v.open, open);
    EXPECT_EQ(v.changed_area_px, 0);
  }
}

struct AreaCase {
  double downscale;
  int side;
  bool moved;
};

TEST(MotionGate, MinimumAreaIsInPixelsOfTheWholePicture_AtEveryScale) {
  const AreaCase cases[] = {{1.0, 48, true},   {1.0, 32, false}, {0.5, 48, true},   {0.5, 32, false}, {0.33, 48, true},
                            {0.33, 32, false}, {0.25, 48, true}, {0.25, 32, false}, {0.1, 50, true},  {0.1, 30, false}};
  for (const AreaCase& c : cases) {
    MotionGating settings;
    settings.downscale = c.downscale;  // the area stays 1500
    for (int x : {80, 83, 85, 90}) {
      MotionGate gate = settled(settings, kScene);
      Verdict v = show(gate, kScene.with(x, 60, c.side, c.side, 70));
      EXPECT_EQ(v.moved, c.moved) << c.downscale << " " << c.side << " at " << x << ": " << v.changed_area_px;
      EXPECT_NEAR(double(v.changed_area_px), c.side * c.side, 0.45 * c.side * c.side) << c.downscale << " at " << x;
    }
  }
}

TEST(MotionGate, DarkerIsMotionAsMuchAsLighter) {
  for (int levels : {-60, 60, -25, 25}) {
    MotionGate gate = settled(MotionGating{}, kScene);
    EXPECT_TRUE(show(gate, kScene.with(100, 100, 48, 64, levels)).moved) << levels;
  }
}

TEST(MotionGate, PatchesApartDoNotAddUp) {
  MotionGate gate = settled(MotionGating{}, kScene);
  Verdict v = show(gate, kScene.with(40, 40, 32, 32, 70).with(200, 40, 32, 32, 70).with(40, 160, 32, 32, 70));
  EXPECT_FALSE(v.moved);
  EXPECT_NEAR(double(v.changed_area_px), 32 * 32, 100);
  EXPECT_TRUE(show(gate, kScene.with(40, 40, 32, 32, 70).with(72, 72, 32, 32, 70)).moved) << "corner to corner is one";
}

TEST(MotionGate, StaysOpenForTheCooldown_CountedFromTheLastMotion) {
  MotionGating settings;
  settings.cooldown_frames = 3;
  MotionGate gate = settled(settings, kScene);
  EXPECT_TRUE(show(gate, kScene.with(10, 10, 60, 60, 80)).open);
  EXPECT_TRUE(show(gate, kScene.with(20, 10, 60, 60, 80)).open);
  for (bool open : {true, true, true, false}) EXPECT_EQ(show(gate, kScene).open, open);
  settings.cooldown_frames = 0;
  gate = settled(settings, kScene);
  EXPECT_TRUE(show(gate, kScene.with(10, 10, 60, 60, 80)).open);
  EXPECT_FALSE(show(gate, kScene).open);
}

TEST(MotionGate, ADisabledGateIsAlwaysOpen_AndAMinimumOfZeroTakesAnyChange) {
  MotionGating settings;
  settings.enabled = false;
  MotionGate gate(settings);
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(show(gate, kScene).open);
    EXPECT_FALSE(show(gate, kScene).moved);
  }
  settings = {};
  settings.min_area_px = 0;
  gate = settled(settings, kScene);
  EXPECT_FALSE(show(gate, kScene).moved);
  EXPECT_TRUE(show(gate, kScene.with(100, 100, 12, 12, 80)).moved);
}

TEST(MotionGate, WhatStandsStillFadesIn_AndIsMotionAgainWhenItLeaves) {
  MotionGate gate = settled(MotionGating{}, kScene);
  Painting parked = kScene.with(100, 80, 60, 60, 50);
  EXPECT_TRUE(show(gate, parked).moved);
  int looks = 0;
  while (show(gate, parked).open && looks < 1000) ++looks;
  EXPECT_GT(looks, 20) << "somebody who stops for a moment keeps the gate open";
  EXPECT_LT(looks, 150);
  for (int i = 0; i < 200; ++i) show(gate, parked);
  EXPECT_TRUE(show(gate, kScene).moved);
}

TEST(MotionGate, WhoeverFreezes_IsTakenIntoTheBackgroundAfter24Looks_NotBefore) {
  MotionGate gate = settled(MotionGating{}, kScene);
  Painting person = kScene.with(100, 60, 48, 120, 90);
  for (int look = 0; look < 24; ++look) EXPECT_TRUE(show(gate, person).moved) << look;
  EXPECT_FALSE(show(gate, person).moved);
  EXPECT_TRUE(show(gate, kScene).moved) << "it leaves";
}

TEST(MotionGate, ASlowWalkerKeepsItOpen_AtAnyFrameRate) {
  for (int pixels_a_look : {1, 3, 10, 40}) {
    MotionGate gate = settled(MotionGating{}, kScene);
    int looks = 0, moved = 0;
    for (int x = 10; x < 260; x += pixels_a_look, ++looks) moved += show(gate, kScene.with(x, 80, 30, 90, -45)).moved;
    EXPECT_GE(moved, looks - 1) << pixels_a_look;
  }
}

TEST(MotionGate, NoiseDoesNotOpenIt) {
  for (double sigma : {3.0, 8.0, 14.0}) {
    for (double downscale : {1.0, 0.5, 0.25}) {
      std::mt19937 draw(11);
      MotionGating settings;
      settings.downscale = downscale;
      MotionGate gate(settings);
      show(gate, kScene.noisy(draw, sigma));
      for (int i = 0; i < 12; ++i) EXPECT_FALSE(show(gate, kScene.noisy(draw, sigma)).moved) << sigma << " " << i;
    }
  }
}

TEST(MotionGate, NoiseDoesNotHideAWalker) {
  std::mt19937 draw(12);
  MotionGate gate(MotionGating{});
  for (int i = 0; i < 10; ++i) show(gate, kScene.noisy(draw, 8));
  EXPECT_TRUE(show(gate, kScene.with(100, 60, 30, 90, -45).noisy(draw, 8)).moved);
}

// A starved codec drops texture and restores it with every keyframe.
TEST(MotionGate, TextureThatComesAndGoesDoesNotOpenIt) {
  Painting sharp;
  for (int y = 0; y < sharp.height; ++y)
    for (int x = 0; x < sharp.width; ++x) sharp.at(x, y) = ((x / 2 + y / 2) % 2) != 0 ? 150 : 100;
  Painting blurred;
  for (int y = 0; y < blurred.height; ++y)
    for (int x = 0; x < blurred.width; ++x) blurred.at(x, y) = 125;
  MotionGate gate = settled(MotionGating{}, sharp);
  for (int i = 0; i < 50; ++i) EXPECT_FALSE(show(gate, i % 5 == 0 ? sharp : blurred).moved) << i;
}

TEST(MotionGate, SlowLightIsFollowed_AndAJumpCountsOnce) {
  MotionGate gate = settled(MotionGating{}, kScene);
  for (int i = 0; i <= 80; ++i) EXPECT_FALSE(show(gate, kScene.lighter(i)).moved) << i;
  for (int i = 80; i >= -40; i -= 8) EXPECT_FALSE(show(gate, kScene.lighter(i)).moved) << i;
  gate = settled(MotionGating{}, kScene);
  EXPECT_TRUE(show(gate, kScene.lighter(60)).moved);
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(show(gate, kScene.lighter(60)).moved) << i;
  EXPECT_TRUE(show(gate, kScene.lighter(60).with(100, 60, 40, 90, -45)).moved) << "and it sees on at once";
}

TEST(MotionGate, AWalkerIsSeenWhileTheLightChanges) {
  MotionGate gate = settled(MotionGating{}, kScene);
  for (int i = 0; i < 20; ++i) show(gate, kScene.lighter(i * 3));
  EXPECT_TRUE(show(gate, kScene.lighter(60).with(100, 60, 40, 90, -45)).moved);
}

TEST(MotionGate, AnotherSceneCountsOnce) {
  MotionGate gate = settled(MotionGating{}, kScene);
  Painting other;
  for (int y = 0; y < other.height; ++y)
    for (int x = 0; x < other.width; ++x) other.at(x, y) = (x / 40 + y / 40) % 2 != 0 ? 200 : 20;
  EXPECT_TRUE(show(gate, other).moved);
  EXPECT_FALSE(show(gate, other).moved);
}

TEST(MotionGate, AnotherResolutionStartsOver_AndOddSizesAreFine) {
  MotionGate gate = settled(MotionGating{}, kScene);
  for (auto [w, h] : {std::pair{161, 121}, {640, 480}, {33, 17}, {3, 2}, {1, 1}, {320, 240}}) {
    Painting scene(w, h);
    EXPECT_TRUE(show(gate, scene).moved || w * h < 1500) << w;
    for (int i = 0; i < 4; ++i) EXPECT_FALSE(show(gate, scene).moved) << w;
    EXPECT_FALSE(show(gate, scene).open) << w;
  }
}

TEST(MotionGate, NewSettingsKeepWhatWasLearned_UnlessTheScaleChanges) {
  MotionGate gate = settled(MotionGating{}, kScene);
  MotionGating smaller;
  smaller.min_area_px = 300;
  gate.configure(smaller);
  EXPECT_FALSE(show(gate, kScene).moved);
  EXPECT_TRUE(show(gate, kScene.with(40, 40, 24, 24, 70)).moved);
  smaller.downscale = 0.25;
  gate.configure(smaller);
  EXPECT_TRUE(show(gate, kScene).moved) << "the first picture at this scale";
}

}  // namespace
}  // namespace weir::motion

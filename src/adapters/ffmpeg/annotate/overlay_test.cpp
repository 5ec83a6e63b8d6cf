#include "overlay.hpp"

#include "font.hpp"

#include <gtest/gtest.h>

#include <set>

namespace weir::ffmpeg {
namespace {

// A grey picture with room to draw in.
struct Page {
  Page(int wide, int tall)
      : width(wide), height(tall), y(static_cast<size_t>(wide * tall), 100), u(y.size() / 4, 128), v(y.size() / 4, 128) {}
  Canvas canvas() {
    return {{y.data(), u.data(), v.data()}, {width, width / 2, width / 2}, width, height};
  }
  int light(int x, int row) const { return y[static_cast<size_t>(row * width + x)]; }
  bool changed(const Region& where) const {
    for (int row = where.y; row < where.y + where.height; ++row)
      for (int x = where.x; x < where.x + where.width; ++x)
        if (light(x, row) != 100) return true;
    return false;
  }
  int width, height;
  std::vector<std::uint8_t> y, u, v;
};

TEST(Font, EveryPrintableCharacter_LooksLikeItselfOnly) {
  std::set<std::string> shapes;
  for (char c = ' '; c < 0x7F; ++c) {
    std::string shape;
    for (int y = 0; y < font::kHeight; ++y)
      for (int x = 0; x < font::kWidth; ++x) shape += font::point(c, x, y) ? '#' : '.';
    EXPECT_TRUE(shapes.insert(shape).second) << c;
    EXPECT_EQ(shape.find('#') == std::string::npos, c == ' ') << c;
  }
}

TEST(Font, WhatItDoesNotKnow_IsOneBox_HoweverManyBytesItHas) {
  EXPECT_EQ(font::length("a\xC3\xA4" "b"), 3);
  EXPECT_EQ(font::length("\xE2\x82\xAC"), 1);
  EXPECT_TRUE(font::point('\n', 0, 0));
  EXPECT_FALSE(font::point('\n', 2, 3));
  EXPECT_FALSE(font::point('A', 5, 0));
}

TEST(Canvas, ARectangle_ColoursLightAndColour_AndNothingOutside) {
  Page page(64, 48);
  page.canvas().fill({10, 10, 4, 4}, {200, 10, 20});
  EXPECT_EQ(page.light(10, 10), 200);
  EXPECT_EQ(page.light(13, 13), 200);
  EXPECT_EQ(page.light(14, 13), 100);
  EXPECT_EQ(page.u[5 * 32 + 5], 10);
  EXPECT_EQ(page.v[6 * 32 + 6], 20);
  EXPECT_EQ(page.u[7 * 32 + 5], 128);
}

TEST(Canvas, WhatLiesOutside_IsLeftOut) {
  Page page(64, 48);
  Canvas canvas = page.canvas();
  canvas.fill({-20, -20, 200, 21}, kWhite);
  canvas.outline({50, 40, 500, 500}, kWhite, 2);
  canvas.outline({-5, 60, 3, 3}, kWhite, 9);
  canvas.text(60, 44, "outside", 235, 3);
  canvas.label(1000, 1000, "a label that is wider than the whole picture", 1);
  EXPECT_EQ(page.light(63, 0), 235);
}

TEST(Overlay, ABox_ItsLabel_AndTheTime_AreDrawn_AndTheRestIsLeftAlone) {
  Page page(640, 480);
  Canvas canvas = page.canvas();
  Sighting sighting{.detections = {{"person", 0.76, {100, 100, 200, 300}}}, .width = 640, .height = 480};
  draw_overlay(canvas, &sighting, WallTime{});
  EXPECT_TRUE(page.changed({100, 100, 100, 2})) << "the box's upper edge";
  EXPECT_TRUE(page.changed({198, 200, 2, 2})) << "its right edge";
  EXPECT_FALSE(page.changed({110, 120, 80, 170})) << "what is in the box can still be seen";
  EXPECT_TRUE(page.changed({100, 89, 60, 11})) << "the label above it";
  EXPECT_TRUE(page.changed({0, 460, 200, 20})) << "the time";
  EXPECT_FALSE(page.changed({300, 0, 340, 400}));
}

TEST(Overlay, ASightingOfAnotherSize_IsScaled) {
  Page page(640, 480);
  Canvas canvas = page.canvas();
  Sighting sighting{.detections = {{"car", 0.5, {10, 50, 20, 60}}}, .width = 64, .height = 120};
  draw_overlay(canvas, &sighting, WallTime{});
  EXPECT_TRUE(page.changed({100, 200, 4, 40}));
  EXPECT_FALSE(page.changed({0, 0, 640, 150}));
}

}  // namespace
}  // namespace weir::ffmpeg

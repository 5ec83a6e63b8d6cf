#include "weir/camsim/stamp.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace weir::camsim {
namespace {

struct Plane {
  int width, height;
  std::vector<std::uint8_t> luma =
      std::vector<std::uint8_t>(static_cast<size_t>(width) * static_cast<size_t>(height), 90);
  std::uint8_t& at(int x, int y) {
    return luma[static_cast<size_t>(y) * static_cast<size_t>(width) + static_cast<size_t>(x)];
  }
};

Plane stamped(const Stamp& stamp) {
  Plane plane{192, 32};
  paint(stamp, plane.luma.data(), plane.width);
  return plane;
}

constexpr Stamp kStamps[] = {{0, 0}, {1, 100}, {794, 79'400}, {21'845, 349'525}, {65'535, 1'048'575}};

TEST(CamsimStamp, RoundTrip_GivesNumberAndTime) {
  for (const Stamp& stamp : kStamps) {
    Plane plane = stamped(stamp);
    EXPECT_EQ(read_stamp(plane.luma.data(), plane.width), stamp);
  }
}

TEST(CamsimStamp, Noise_DoesNotDisturb) {
  std::mt19937 random(7);
  std::normal_distribution<double> noise(0, 25);
  for (const Stamp& stamp : kStamps) {
    Plane plane = stamped(stamp);
    for (auto& pixel : plane.luma) pixel = static_cast<std::uint8_t>(std::clamp(pixel + noise(random), 0.0, 255.0));
    EXPECT_EQ(read_stamp(plane.luma.data(), plane.width), stamp);
  }
}

TEST(CamsimStamp, HalfSize_StillReads) {
  for (const Stamp& stamp : kStamps) {
    Plane whole = stamped(stamp), half{96, 16};
    for (int y = 0; y < half.height; ++y)
      for (int x = 0; x < half.width; ++x) {
        // A scaler's kernel reaches over the edge of a cell.
        int sum = 0;
        for (int dy = -1; dy < 3; ++dy)
          for (int dx = -1; dx < 3; ++dx)
            sum += whole.at(std::clamp(2 * x + dx, 0, 191), std::clamp(2 * y + dy, 0, 31));
        half.at(x, y) = static_cast<std::uint8_t>(sum / 16);
      }
    EXPECT_EQ(read_stamp(half.luma.data(), half.width, 0.5), stamp);
  }
}

TEST(CamsimStamp, UnstampedPicture_HasNone) {
  for (std::uint8_t shade : {0, 90, 255}) {
    Plane plane{192, 32};
    std::ranges::fill(plane.luma, shade);
    EXPECT_EQ(read_stamp(plane.luma.data(), plane.width), std::nullopt) << int(shade);
  }
}

TEST(CamsimStamp, OneWrongCell_IsNoticed) {
  for (int cell = 0; cell < kStampColumns * kStampRows; ++cell) {
    Plane plane = stamped({1234, 123'400});
    for (int y = 0; y < kStampCell; ++y)
      for (int x = 0; x < kStampCell; ++x) {
        auto& pixel = plane.at(cell % kStampColumns * kStampCell + x, cell / kStampColumns * kStampCell + y);
        pixel = static_cast<std::uint8_t>(251 - pixel);
      }
    EXPECT_EQ(read_stamp(plane.luma.data(), plane.width), std::nullopt) << cell;
  }
}

}  // namespace
}  // namespace weir::camsim

// Canvas: draws rectangles and letters into a planar picture with one sample of colour for two by two of light (YUV
// 4:2:0). Whatever lies outside the picture is left out. One thread.
#pragma once

#include "weir/ports/video_source.hpp"

#include <array>
#include <cstdint>
#include <string_view>

namespace weir::ffmpeg {

struct Colour {
  std::uint8_t y = 0, u = 128, v = 128;
};
inline constexpr Colour kWhite{235, 128, 128}, kDark{24, 128, 128};

class Canvas {
 public:
  // The planes outlive it.
  Canvas(std::array<std::uint8_t*, 3> planes, std::array<int, 3> strides, int width, int height)
      : planes_(planes), strides_(strides), width_(width), height_(height) {}
  int width() const { return width_; }
  int height() const { return height_; }

  void fill(const Region& where, Colour colour);
  // Its edge, `thick` wide, inside of `where`.
  void outline(const Region& where, Colour colour, int thick);
  // Light only: letters are to stand on a ground that was filled. `scale` is a point's width.
  void text(int x, int y, std::string_view text, std::uint8_t light, int scale);
  // A text on its own dark ground, moved so that it lies in the picture.
  void label(int x, int y, std::string_view text, int scale);
  static int label_height(int scale);

 private:
  Region inside(const Region& where) const;
  static void fill_plane(std::uint8_t* plane, int stride, const Region& where, std::uint8_t level);

  const std::array<std::uint8_t*, 3> planes_;
  const std::array<int, 3> strides_;
  const int width_, height_;
};

}  // namespace weir::ffmpeg

#include "canvas.hpp"

#include "font.hpp"

#include <algorithm>

namespace weir::ffmpeg {

Region Canvas::inside(const Region& where) const {
  int x1 = std::clamp(where.x, 0, width_), x2 = std::clamp(where.x + where.width, x1, width_);
  int y1 = std::clamp(where.y, 0, height_), y2 = std::clamp(where.y + where.height, y1, height_);
  return {x1, y1, x2 - x1, y2 - y1};
}

void Canvas::fill_plane(std::uint8_t* plane, int stride, const Region& where, std::uint8_t level) {
  for (int y = where.y; y < where.y + where.height; ++y)
    std::fill_n(plane + std::ptrdiff_t{y} * stride + where.x, where.width, level);
}

void Canvas::fill(const Region& where, Colour colour) {
  Region light = inside(where);
  if (light.width == 0 || light.height == 0) return;
  fill_plane(planes_[0], strides_[0], light, colour.y);
  Region half{light.x / 2, light.y / 2, (light.x + light.width + 1) / 2 - light.x / 2,
              (light.y + light.height + 1) / 2 - light.y / 2};
  fill_plane(planes_[1], strides_[1], half, colour.u);
  fill_plane(planes_[2], strides_[2], half, colour.v);
}

void Canvas::outline(const Region& where, Colour colour, int thick) {
  fill({where.x, where.y, where.width, thick}, colour);
  fill({where.x, where.y + where.height - thick, where.width, thick}, colour);
  fill({where.x, where.y, thick, where.height}, colour);
  fill({where.x + where.width - thick, where.y, thick, where.height}, colour);
}

void Canvas::text(int x, int y, std::string_view text, std::uint8_t light, int scale) {
  for (size_t at = 0; at < text.size(); x += font::kAdvance * scale) {
    char letter = font::next(text, at);
    for (int row = 0; row < font::kHeight; ++row)
      for (int column = 0; column < font::kWidth; ++column) {
        if (!font::point(letter, column, row)) continue;
        Region point = inside({x + column * scale, y + row * scale, scale, scale});
        fill_plane(planes_[0], strides_[0], point, light);
      }
  }
}

int Canvas::label_height(int scale) { return (font::kHeight + 4) * scale; }

void Canvas::label(int x, int y, std::string_view words, int scale) {
  int wide = (font::length(words) * font::kAdvance + 3) * scale, tall = label_height(scale);
  x = std::max(0, std::min(x, width_ - wide));
  y = std::max(0, std::min(y, height_ - tall));
  fill({x, y, wide, tall}, kDark);
  text(x + 2 * scale, y + 2 * scale, words, kWhite.y, scale);
}

}  // namespace weir::ffmpeg

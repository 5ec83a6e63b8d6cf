// Pictures for tests: a grey plane of a given size. Any thread.
#pragma once

#include "weir/ports/video_source.hpp"

#include <algorithm>

namespace weir::worker {

class GreyPicture final : public Picture {
 public:
  GreyPicture(int width, int height, std::uint8_t level)
      : width_(width), height_(height), luma_(static_cast<size_t>(width) * static_cast<size_t>(height), level) {}
  int width() const override { return width_; }
  int height() const override { return height_; }
  const std::uint8_t* luma() const override { return luma_.data(); }
  int luma_stride() const override { return width_; }
  bool to_rgb(Region, int, int, std::span<std::uint8_t> out) const override {
    std::ranges::fill(out, luma_[0]);
    return true;
  }
  std::string to_jpeg(int, int) const override { return "jpeg"; }
  void paint(int x, int y, int width, int height, std::uint8_t level) {
    for (int row = y; row < y + height; ++row)
      std::fill_n(luma_.begin() + row * width_ + x, width, level);
  }

 private:
  int width_, height_;
  std::vector<std::uint8_t> luma_;
};

inline PicturePtr picture(std::int64_t number, std::uint8_t level = 128) {
  auto made = std::make_shared<GreyPicture>(64, 48, level);
  made->number = number;
  return made;
}

}  // namespace weir::worker
